// What an actor waits for, and what it did last. A bundle's page has the same parts.

import { activityText } from "./actors.js";
import { make, makeButton, makeLink, setAttribute, setClass, setText, setTitle, showFacts, showList } from "./dom.js";
import { resultOf } from "./histogram.js";
import { addressOfBundle } from "./route.js";
import { clockText, countText, countdownText, secondsText, shortAgo, whenText } from "./text.js";

/** What a pending reconcile waits for. */
const PENDING = new Map([
  ["running", "runs"], ["next", "after this one"], ["queued", "for a permit"], ["caches", "for caches"], ["waiting", "for a change"], ["backingOff", "back-off"],
  ["timer", "timer"], ["quarantined", "quarantined"],
]);

/** Wakes that wait: reconciler, state, when, why. */
export function showPending(list, pending, now) {
  list.hidden = pending.length === 0;
  showList(list, pending, () => {
    const item = { state: make("span", "pending-state"), reconciler: make("span", "reconciler"), causes: make("span", "causes") };
    return { ...item, element: make("li", "", item.state, item.reconciler, item.causes) };
  }, (item, { reconciler, state, causes = [], due, priority }) => {
    const when = due ? countdownText(due, now) : "";
    setText(item.state, `${PENDING.get(state) ?? state}${when === "" ? "" : when === "now" ? ", now" : `, in ${when}`}`);
    setText(item.reconciler, reconciler);
    setText(item.causes, `${causes.length > 0 ? `because of ${causes.join(", ")}` : ""}${priority === "low" ? " · low priority" : ""}`);
  });
}

/** The last reconciles, newest first. */
export function showReconciles(list, reconciles, now) {
  list.hidden = reconciles.length === 0;
  showList(list, reconciles, () => {
    const item = {
      ended: make("span", "ended"), took: make("span", "took"), result: make("span", "result"), reconciler: make("span", "reconciler"), causes: make("span", "causes"),
      error: make("p", "reconcile-error"),
    };
    return { ...item, element: make("li", "", make("p", "reconcile", item.ended, item.took, item.result, item.reconciler, item.causes), item.error) };
  }, (item, { reconciler, ended, ms, result, causes = [], error }) => {
    setText(item.ended, shortAgo(ended, now));
    setAttribute(item.ended, "title", clockText(ended));
    setText(item.took, ms < 1 ? "<1 ms" : secondsText(ms / 1000));
    const { text, tone } = resultOf(result);
    setText(item.result, text);
    setClass(item.result, `result tone-${tone}`);
    setText(item.reconciler, reconciler);
    setText(item.causes, causes.join(", "));
    setText(item.error, error ?? "");
    setTitle(item.error, error ?? "");
    item.error.hidden = !error;
  });
}

/** The pane at the right of the actors. */
export class ActorDetails {
  #page;
  #row = null;
  #answer = null;

  constructor(page, onClose) {
    this.#page = page;
    this.title = make("h2");
    const close = makeButton("plain", onClose, "✕");
    setAttribute(close, "aria-label", "Close details");
    this.link = makeLink("to-bundle", "");
    this.error = make("p", "failure");
    this.facts = make("dl", "facts-list");
    this.pending = make("ul", "pending");
    this.reconciles = make("ol", "reconciles");
    this.pendingTitle = make("h3", "", "Pending wakes");
    this.reconcilesTitle = make("h3", "", "Last reconciles");
    this.moreTitle = make("h3", "", "Details");
    this.more = make("dl", "facts-list");
    this.element = make("aside", "aside details", make("div", "panel-head", this.title, close), this.link, this.error, this.facts, this.pendingTitle, this.pending,
      this.reconcilesTitle, this.reconciles, this.moreTitle, this.more);
    setAttribute(this.element, "aria-label", "Selected actor");
  }

  /** Shows an actor; null closes the pane. */
  open(path, row) {
    if (this.#row?.path !== path) this.#answer = null;
    this.#row = row ?? null;
    this.element.hidden = !path;
    setText(this.title, path ?? "");
    this.tick();
  }

  showAnswer(path, answer) {
    if (path !== this.#row?.path) return;
    this.#answer = answer.document ? answer : { ...this.#answer, error: answer.error };
    this.tick();
  }

  tick() {
    const row = this.#row;
    this.facts.hidden = !row;
    this.link.hidden = row?.object?.kind !== "ManagedResource";
    const document = row ? this.#answer?.document : undefined;
    const error = row ? this.#answer?.error : "This actor does not exist.";
    setText(this.error, error ?? "");
    this.error.hidden = !error;
    const { pending = [], reconciles = [], details = [], waitsFor } = document ?? {};
    this.pendingTitle.hidden = pending.length === 0;
    this.reconcilesTitle.hidden = reconciles.length === 0;
    this.moreTitle.hidden = details.length === 0;
    const now = this.#page.now();
    showPending(this.pending, pending, now);
    showReconciles(this.reconciles, reconciles, now);
    showFacts(this.more, details);
    if (!row) return;
    if (!this.link.hidden) {
      setText(this.link, "Open the bundle");
      setAttribute(this.link, "href", addressOfBundle(row.object));
    }
    // Texts of the answer are not cut. The row is newer.
    const { lastError, problem, line } = document && isSame(document.row, row) ? { lastError: null, problem: null, line: "", ...document.row } : row;
    showFacts(this.facts, [
      ["State", row.current ? `${activityText(row.activity)} · ${row.current}` : activityText(row.activity)],
      ["Waits for", waitsFor],
      ["Problem", problem, "bad"],
      ["Last error", lastError ? `${whenText(lastError[0], now)}\n${lastError[1]}` : ""],
      ["Next timer", row.nextTimer ? `${countdownText(row.nextTimer, now)} (${clockText(row.nextTimer)})` : "none"],
      ["Notes", line],
      ["Server last heard", row.heard ? whenText(row.heard, now) : ""],
      ["Mailbox", `${row.mailbox} now, ${row.mailboxHigh} at most`],
      ["Finished", countText(row.finished)],
      ["Restarts", `${row.restarts}`],
      ["Last change", row.changed ? whenText(row.changed, now) : "never"],
      ["Role", row.role],
    ]);
  }
}

const isSame = (a, b) => a?.changed === b.changed;
