// The page of one bundle: what is wrong, why, since when, what happens next, and what can be done.

import { showPending, showReconciles } from "./actor-details.js";
import { activityText } from "./actors.js";
import { BundleObjects } from "./bundle-objects.js";
import { STATES, conditionsInOrder, nextSentence } from "./bundles.js";
import { make, makeLink, makePanel, setAttribute, setClass, setText, showFacts, showList } from "./dom.js";
import { commandsFor, hintsFor } from "./hints.js";
import { addressOfActor, addressOfBundle } from "./route.js";
import { agoText, clockText, countText, countdownText, durationText, messageLines, pluralText } from "./text.js";
import { showCommands, showHints } from "./tools.js";

const GLYPHS = { good: "✓", bad: "✕", pending: "◐", none: "–" };
/** How many documents of a Secret are listed. */
const MOST_DOCUMENTS = 300;

export class BundleView {
  keys = [["[ ]", "previous, next bundle"], ["/", "search objects"], ["Esc", "back to the list"]];
  #page;
  #key = { namespace: "", name: "" };
  #bundle = null;
  #document = null;
  #error = "";
  /** The answer whose objects are shown. */
  #shown = null;

  constructor(page) {
    this.#page = page;
    this.objects = new BundleObjects(page);
    this.search = this.objects.search;
    this.table = this.objects.table;
    this.back = makeLink("back", "#/bundles", "‹ Bundles");
    this.previous = makeLink("step", "", "‹ previous");
    this.next = makeLink("step", "", "next ›");
    this.heading = make("h2", "bundle-name");
    this.heading.tabIndex = -1;
    this.state = make("span", "pill");
    this.marks = make("span", "marks");
    this.actor = makeLink("step", "", "Actor");
    this.steps = make("span", "steps", this.actor, this.previous, this.next);
    this.facts = make("dl", "bundle-facts");
    this.failure = make("p", "failure");
    this.#makePanels();
    this.element = make("section", "view bundle-page",
      make("div", "bundle-head", this.back, this.heading, this.state, this.marks, this.steps), this.facts, this.failure,
      make("div", "bundle-grid", make("div", "stack", this.conditions.panel, this.objectsPanel.panel),
        make("div", "stack", this.todo.panel, this.soon.panel, this.events.panel, this.reconciles.panel, this.secrets.panel)));
    setAttribute(this.element, "aria-label", "Bundle");
  }

  #makePanels() {
    this.conditionList = make("ul", "conditions");
    this.noConditions = make("p", "none-yet", "No condition has been reported yet.");
    this.conditions = makePanel("conditions-panel", "Conditions", this.conditionList, this.noConditions);
    this.hints = make("ul", "hints");
    this.commands = make("ul", "commands");
    this.todo = makePanel("todo-panel", "What to do", this.hints, this.commands);
    this.sentence = make("p", "sentence");
    this.waits = make("p", "waits-for");
    this.pending = make("ul", "pending");
    this.soon = makePanel("next-panel", "What happens next", this.sentence, this.waits, this.pending);
    this.objectsPanel = makePanel("objects-panel", "Objects", this.objects.element);
    this.eventList = make("ul", "events");
    this.noEvents = make("p", "none-yet", "This process has recorded no Event about it.");
    this.events = makePanel("events-panel", "Events", this.eventList, this.noEvents);
    this.reconcileList = make("ol", "reconciles");
    this.noReconciles = make("p", "none-yet", "None since this process leads.");
    this.reconciles = makePanel("reconciles-panel", "Last reconciles", this.reconcileList, this.noReconciles);
    this.secretList = make("ul", "secrets");
    this.secrets = makePanel("secrets-panel", "Secrets and documents", this.secretList);
  }

  get title() {
    return `${this.#key.namespace}/${this.#key.name}`;
  }

  // --- what the page calls

  show({ segments: [namespace, name] }) {
    const isOther = namespace !== this.#key.namespace || name !== this.#key.name;
    this.#key = { namespace, name };
    if (isOther) {
      this.#document = null;
      this.#error = "";
      this.objects.reset();
      this.element.scrollTop = 0;
    }
    this.#find();
    this.#show();
    this.#page.announce(`Bundle ${this.title}${this.#bundle ? `, ${STATES.get(this.#bundle.state)}` : ""}`);
  }

  hide() {
    this.#page.ask(null);
  }

  update(change) {
    const { path } = this.#bundle ?? {};
    this.#find();
    if (change.all || change.changed.some((row) => row.path === path)) this.#page.askAgain();
    this.#show();
  }

  tick() {
    this.#show();
    this.objects.tick();
  }

  showAnswer(path, { document, error, status }) {
    if (path !== this.#bundle?.path) return;
    this.#error = error ?? "";
    if (document) this.#document = document;
    else if (status === 404) this.#document = null;
    this.#showAnswered();
  }

  focus() {
    this.heading.focus({ preventScroll: true });
  }

  escape() {
    if (this.objects.clear()) this.#page.go(this.#page.addressOf("bundles"));
    else this.focus();
  }

  onKey(key) {
    const link = { "[": this.previous, "]": this.next }[key];
    if (link && !link.hidden) this.#page.go(link.getAttribute("href"));
  }

  // --- what is shown

  #find() {
    this.#bundle = this.#page.bundles.find(this.#key.namespace, this.#key.name) ?? null;
    this.#page.ask(this.#bundle?.path ?? null);
  }

  #show() {
    const bundle = this.#bundle;
    const now = this.#page.now();
    setText(this.heading, this.title);
    setAttribute(this.back, "href", this.#page.addressOf("bundles"));
    this.#showSteps();
    setText(this.state, bundle ? `${STATES.get(bundle.state)}${bundle.since === null ? "" : ` for ${durationText(now - bundle.since)}`}` : "absent");
    setClass(this.state, `pill state-${bundle?.state ?? "unknown"}`);
    setText(this.marks, (bundle?.marks ?? []).filter((mark) => mark !== bundle.state).join(", "));
    this.#showAnswered();
  }

  #showSteps() {
    const { shownBundles } = this.#page;
    const list = shownBundles ?? this.#page.bundles.select({ query: "", states: new Set(), reason: "" }).shown;
    this.#page.shownBundles = list;
    const at = list.findIndex(({ key }) => key === this.title);
    for (const [link, other] of [[this.previous, list[at - 1]], [this.next, at < 0 ? undefined : list[at + 1]]]) {
      link.hidden = !other;
      if (other) setAttribute(link, "href", addressOfBundle(other));
    }
    this.#page.showCount(at < 0 ? "" : `${countText(at + 1)} of ${countText(list.length)} in the list`);
  }

  #showAnswered() {
    const bundle = this.#bundle;
    const now = this.#page.now();
    const answer = bundle ? this.#document : null;
    const details = answer?.bundle ?? null;
    this.failure.hidden = bundle !== null && this.#error === "";
    setText(this.failure, bundle ? `Details cannot be read at the moment: ${this.#error}.` : absentText(this.title, this.#page.feed.process));
    this.element.classList.toggle("is-absent", !bundle);
    this.actor.hidden = !bundle;
    if (!bundle) return;
    const conditions = details?.conditions ?? bundle.conditions.map((condition) => ({ ...condition, message: "", lastTransitionTime: condition.since }));
    this.noConditions.hidden = conditions.length > 0;
    showConditions(this.conditionList, conditionsInOrder(conditions), now);
    this.#showTodo(conditions);
    this.#showNext(answer, now);
    this.#showFacts(answer, now);
    this.noEvents.hidden = !details || (details.events ?? []).length > 0;
    showEvents(this.eventList, details?.events ?? [], now);
    this.noReconciles.hidden = !answer || (answer.reconciles ?? []).length > 0;
    showReconciles(this.reconcileList, answer?.reconciles ?? [], now);
    if (details !== this.#shown) this.#showContents(details);
  }

  /** What changes with an answer alone. There may be thousands of objects. */
  #showContents(details) {
    this.#shown = details;
    const { objects = [], truncated = 0, secrets = [] } = details ?? {};
    this.objects.show(objects, truncated);
    setText(this.objectsPanel.heading, details ? pluralText(objects.length + truncated, "object") : "Objects");
    showSecrets(this.secretList, secrets);
  }

  #showTodo(conditions) {
    const bundle = this.#bundle;
    const hints = hintsFor(bundle, new Map(conditions.map(({ reason, message }) => [reason, message])));
    showHints(this.hints, hints.length > 0 ? hints : [bundle.state === "healthy" ? "Nothing: all is well." : "Wait: nothing is known to be wrong."]);
    showCommands(this.commands, commandsFor(bundle));
  }

  #showNext(answer, now) {
    setText(this.sentence, nextSentence(this.#bundle, now));
    setText(this.waits, answer?.waitsFor ? `It waits for ${answer.waitsFor}.` : "");
    this.waits.hidden = !answer?.waitsFor;
    showPending(this.pending, answer?.pending ?? [], now);
  }

  #showFacts(answer, now) {
    const { row } = this.#bundle;
    const { class: ofClass, generation, observedGeneration, period } = answer?.bundle ?? { class: row.object.class };
    const observed = generation === observedGeneration ? `${generation}` : `${generation}, applied is ${observedGeneration}`;
    showFacts(this.facts, [
      ["Class", ofClass],
      ["Generation", generation === undefined ? "" : observed, generation === observedGeneration ? "" : "pending"],
      ["Next period", period ? `${countdownText(period, now)} (${clockText(period).slice(11)})` : ""],
      ["Note", row.line],
      ["Actor", `${activityText(row.activity)}${row.current ? `, ${row.current}` : ""}`],
      ["Finished reconciles", countText(row.finished)],
      ["Last change", row.changed ? agoText(row.changed, now) : ""],
    ]);
    setAttribute(this.actor, "href", addressOfActor(row.path));
  }
}

function absentText(key, process) {
  if (process.leadership !== "standby") return `There is no bundle ${key}. It was deleted, or it belongs to another class.`;
  return `This replica is on standby, and knows no bundle. ${process.leader ? `The leader is ${process.leader}` : "Another replica leads"}: its dashboard shows it.`;
}

function showConditions(list, conditions, now) {
  showList(list, conditions, () => {
    const item = {
      glyph: make("span", "glyph"), type: make("span", "type"), status: make("span", "status"), reason: make("span", "reason"), since: make("span", "since"), lines: make("ul", "lines"),
    };
    return { ...item, element: make("li", "", make("p", "condition-head", item.glyph, item.type, item.status, item.reason, item.since), item.lines) };
  }, (item, { type, status, reason, message, tone, lastTransitionTime, lastUpdateTime }) => {
    setClass(item.element, `tone-${tone}`);
    setText(item.glyph, GLYPHS[tone] ?? "–");
    setText(item.type, type);
    setText(item.status, status);
    setText(item.reason, reason);
    setText(item.since, lastTransitionTime ? `for ${durationText(now - Date.parse(lastTransitionTime))}, since ${clockText(lastTransitionTime)}` : "");
    setAttribute(item.since, "title", lastUpdateTime ? `last updated ${clockText(lastUpdateTime)}` : null);
    showList(item.lines, messageLines(message ?? ""), () => ({ element: make("li") }), ({ element }, line) => setText(element, line));
  });
}

function showEvents(list, events, now) {
  showList(list, events, () => {
    const item = { reason: make("span", "reason"), count: make("span", "badge"), time: make("span", "since"), lines: make("ul", "lines") };
    return { ...item, element: make("li", "", make("p", "event-head", item.reason, item.count, item.time), item.lines) };
  }, (item, { time, type, reason, message, count }) => {
    setClass(item.element, type === "Warning" ? "is-warning" : "");
    setText(item.reason, reason);
    setText(item.count, count > 1 ? `× ${countText(count)}` : "");
    setText(item.time, agoText(time, now));
    setAttribute(item.time, "title", clockText(time));
    showList(item.lines, messageLines(message), () => ({ element: make("li") }), ({ element }, line) => setText(element, line));
  });
}

function showSecrets(list, secrets) {
  showList(list, secrets, () => {
    const item = { name: make("span", "secret-name"), note: make("span", "badge"), documents: make("ul", "documents") };
    return { ...item, element: make("li", "", make("details", "", make("summary", "", item.name, item.note), item.documents)) };
  }, (item, { name, documents = [], missing }) => {
    setText(item.name, name);
    setText(item.note, missing ? "does not exist" : pluralText(documents.length, "document"));
    setClass(item.note, missing ? "badge bad" : "badge");
    const lines = documents.slice(0, MOST_DOCUMENTS).map(({ key, index, objects = [] }) => `${key} #${index}: ${objects.join(", ") || "no object"}`);
    if (documents.length > MOST_DOCUMENTS) lines.push(`and ${countText(documents.length - MOST_DOCUMENTS)} more`);
    showList(item.documents, lines, () => ({ element: make("li") }), ({ element }, line) => setText(element, line));
  });
}
