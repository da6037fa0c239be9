// All actors as a tree or, in the order of a column, as a list; the reconcilers above it.

import { ActorDetails } from "./actor-details.js";
import {
  ACTIVITIES, ActorTree, COMMON, DEFAULT_SORT, SORTS, activityText, flatRows, isBad, makeFilter, summarize, treeRows,
} from "./actors.js";
import { make, makeButton, setAttribute, setClass, setText, setTitle } from "./dom.js";
import { Reconcilers } from "./reconcilers.js";
import { formatSort, parseSet, parseSort } from "./route.js";
import { Table } from "./table.js";
import { agoText, countText, countdownText, durationText, pluralText } from "./text.js";
import { makeChip, makeSearch } from "./tools.js";

/** Nodes with more actors below them are collapsed at first. */
const LARGE = 40;

const COLUMNS = [
  { id: "name", label: "Actor", className: "actor", sorts: true },
  { id: "state", label: "State", className: "what", sorts: true },
  { id: "mailbox", label: "Mailbox", className: "number mailbox", sorts: true, title: "waiting now / most that ever waited" },
  { id: "finished", label: "Finished", className: "number finished", sorts: true },
  { id: "restarts", label: "Restarts", className: "number restarts", sorts: true },
  { id: "next", label: "Next", className: "number next", sorts: true, title: "when it acts by itself next" },
  { id: "line", label: "Notes", className: "words line" },
  { id: "error", label: "Last error", className: "words error-cell", sorts: true },
];

export class ActorsView {
  title = "Actors";
  keys = [["↑ ↓", "select"], ["← →", "collapse, expand"], ["Enter", "details"], ["/", "search"], ["Esc", "clear"]];
  #page;
  #tree = new ActorTree();
  #collapsed = null;
  #filter = { query: "", activities: new Set(), restarted: false, sort: DEFAULT_SORT };
  #path = "";
  /** The query of the address that is shown. */
  #query = "";
  #scrollTop = 0;

  constructor(page) {
    this.#page = page;
    this.reconcilers = new Reconcilers();
    const search = makeSearch("Search actors", "Name, note, error, role:…", {
      input: (query) => this.#goTo({ query }), leave: () => { this.table.element.focus(); if (!this.table.selectedItem) this.table.select(0); },
    });
    this.search = search.input;
    this.#makeChips();
    const fold = make("div", "buttons", makeButton("plain", () => this.#foldAll(true), "Collapse"), makeButton("plain", () => this.#foldAll(false), "Expand"));
    this.table = new Table("actors", {
      label: "Actors", role: "treegrid", columns: COLUMNS, key: ({ node }) => node.path,
      makeRow: () => this.#makeRow(), fill, fillTimes: (row, item) => fillTimes(row, item, page.now()),
      onOpen: ({ node }, event) => this.#open(event.key === "Enter" && node.path === this.#path ? "" : node.path),
      onSelect: ({ node }) => { if (this.#path !== "") this.#open(node.path); },
      onSort: (column) => this.#sortBy(column),
      keys: { ArrowLeft: (row) => this.#left(row), ArrowRight: (row, index) => this.#right(row, index), " ": ({ node }) => this.#toggle(node) },
    });
    this.details = new ActorDetails(page, () => { this.#open(""); this.table.element.focus(); });
    this.element = make("section", "view", this.reconcilers.element, make("div", "tools", search.element, this.chips, fold), make("div", "split", this.table.element, this.details.element));
    setAttribute(this.element, "aria-label", "Actors");
  }

  #makeChips() {
    this.chips = make("div", "chips");
    setAttribute(this.chips, "role", "group");
    setAttribute(this.chips, "aria-label", "Filter by state");
    this.byActivity = [...ACTIVITIES].map(([activity, label]) => {
      const chip = makeChip(activity, label, () => {
        const activities = new Set(this.#filter.activities);
        if (!activities.delete(activity)) activities.add(activity);
        this.#goTo({ activities });
      });
      this.chips.append(chip.element);
      return { activity, ...chip };
    });
    this.restarted = makeChip("", "Restarted", () => this.#goTo({ restarted: !this.#filter.restarted }));
    this.chips.append(this.restarted.element);
  }

  #makeRow() {
    const row = {
      twist: make("span", "twist"), dot: make("span", "dot"), name: make("span", "actor-name"), count: make("span", "badge"), failing: make("span", "badge bad"),
      backingOff: make("span", "badge slow"), activity: make("span", "activity"), current: make("span", "current"), mailbox: make("span"), high: make("span", "faint"),
      finished: make("span", "number finished"), restarts: make("span", "number restarts"), next: make("span", "number next"), line: make("span", "words line"),
      error: make("span", "words error-cell"),
    };
    row.count.title = "actors below";
    row.failing.title = "failing or quarantined below";
    row.backingOff.title = "in back-off below";
    row.actor = make("span", "actor", row.twist, row.dot, row.name, row.count, row.failing, row.backingOff);
    row.cells = [
      row.actor, make("span", "what", row.activity, row.current), make("span", "number mailbox", row.mailbox, row.high), row.finished, row.restarts, row.next, row.line, row.error,
    ];
    row.twist.addEventListener("click", (event) => {
      event.preventDefault();
      this.#toggle(this.table.items[row.index]?.node);
    });
    return row;
  }

  // --- what the page calls

  show({ segments, query }, isOther) {
    const wasKnown = this.#collapsed !== null;
    if (isOther) this.#rebuild();
    this.#filter = {
      query: query.q ?? "", activities: parseSet(query.state, ACTIVITIES), restarted: query.restarted === "true", sort: parseSort(query.sort, [...SORTS.keys()], DEFAULT_SORT),
    };
    if (this.search.value !== this.#filter.query) this.search.value = this.#filter.query;
    this.table.showSort(this.#filter.sort);
    const isOtherList = isOther || this.#query !== JSON.stringify(query);
    this.#query = JSON.stringify(query);
    const path = segments.join("/");
    const isNewPath = path !== this.#path || isOther;
    this.#path = path;
    const isHidden = path !== "" && isNewPath && this.#reveal(path);
    if (isOtherList || isHidden) this.#refresh();
    if (isOther && wasKnown) this.table.element.scrollTop = this.#scrollTop;
    if (path !== "" && isNewPath && this.table.selected !== path) this.table.selectKey(path);
    this.#showDetails();
  }

  hide() {
    this.#scrollTop = this.table.element.scrollTop;
    this.#page.ask(null);
  }

  update(change) {
    if (change.all || change.structure) this.#rebuild();
    else if (change.changed.length > 0) this.#tree.update(change.changed);
    if (change.all || change.changed.some(({ path }) => path === this.#path)) this.#page.askAgain();
    this.#refresh();
    this.#showDetails();
  }

  tick() {
    this.table.tick();
    this.details.tick();
  }

  showAnswer(path, answer) {
    this.details.showAnswer(path, answer);
  }

  focus() {
    this.table.element.focus({ preventScroll: true });
  }

  escape() {
    if (this.#path !== "") this.#open("");
    else this.#goTo({ query: "", activities: new Set(), restarted: false });
    this.table.element.focus();
  }

  // --- what is shown

  #rebuild() {
    this.#tree.reset(this.#page.feed.actors.values());
    this.#collapsed ??= new Set(this.#tree.large(LARGE));
  }

  #refresh() {
    const { feed } = this.#page;
    const filter = makeFilter(this.#filter);
    const { sort } = this.#filter;
    const isTree = sort.column === DEFAULT_SORT.column && !sort.descending;
    this.table.setItems(isTree ? treeRows(this.#tree, filter, this.#collapsed) : flatRows(this.#tree, filter, sort), filter.active ? "No actor matches. Esc clears the filters." : "There are no actors.");
    const { activities, restarted } = summarize(feed.actors.values());
    for (const { activity, element, count } of this.byActivity) showChip(element, count, activities.get(activity), this.#filter.activities.has(activity), COMMON.has(activity));
    showChip(this.restarted.element, this.restarted.count, restarted, this.#filter.restarted, false);
    this.reconcilers.show(feed.figures.reconcilers);
    const total = feed.actors.size;
    if (!filter.active) return this.#page.showCount(pluralText(total, "actor"));
    const shown = this.table.items.filter(({ node, faint }) => node.actor !== null && !faint).length;
    return this.#page.showCount(`${countText(shown)} of ${pluralText(total, "actor")}`);
  }

  #showDetails() {
    const row = this.#page.feed.actors.get(this.#path);
    const isGroup = !row && this.#tree.nodes.has(this.#path);
    this.#page.ask(row ? this.#path : null);
    this.details.open(isGroup ? null : this.#path || null, row);
  }

  // --- input

  #goTo(change, path = this.#path) {
    const { query, activities, restarted, sort } = { ...this.#filter, ...change };
    this.#page.replace({
      view: "actors", segments: path === "" ? [] : path.split("/"),
      query: { state: [...activities].join(","), restarted: restarted ? "true" : "", q: query, sort: formatSort(sort, DEFAULT_SORT) },
    });
    if (Object.keys(change).length > 0) this.#page.announce(`${pluralText(this.table.items.length, "row")} shown`);
  }

  #open(path) {
    if (path !== this.#path) this.#goTo({}, path);
  }

  #sortBy(column) {
    const { sort } = this.#filter;
    this.#goTo({ sort: { column, descending: sort.column === column ? !sort.descending : SORTS.get(column) } });
  }

  /** Expands what hides an actor. Returns true if something did. */
  #reveal(path) {
    let wasHidden = false;
    for (let node = this.#tree.nodes.get(path)?.parent; node; node = node.parent) wasHidden = this.#collapsed.delete(node.path) || wasHidden;
    return wasHidden;
  }

  #foldAll(collapse) {
    this.#collapsed.clear();
    if (collapse) for (const [path, node] of this.#tree.nodes) if (node.children.length > 0) this.#collapsed.add(path);
    this.#refresh();
  }

  #toggle(node) {
    if (!node || node.children.length === 0) return;
    if (!this.#collapsed.delete(node.path)) this.#collapsed.add(node.path);
    this.#refresh();
  }

  #right({ node, open }, index) {
    if (node.children.length === 0) return;
    if (open) this.table.select(index + 1);
    else this.#toggle(node);
  }

  #left({ node, open }) {
    if (open && node.children.length > 0 && !makeFilter(this.#filter).active) return this.#toggle(node);
    for (let parent = node.parent; parent; parent = parent.parent) {
      const index = this.table.indexOf(parent.path);
      if (index >= 0) return this.table.select(index);
    }
  }
}

function showChip(element, count, number, pressed, isCommon) {
  element.hidden = !isCommon && !pressed && number === 0;
  setText(count, countText(number));
  setAttribute(element, "aria-pressed", `${pressed}`);
  element.classList.toggle("none", number === 0);
}

function fill(row, { node, open, faint, depth, label }) {
  const { actor } = node;
  row.element.classList.toggle("group", actor === null);
  row.element.classList.toggle("faint-row", faint);
  setAttribute(row.element, "aria-level", `${depth + 1}`);
  setAttribute(row.element, "aria-expanded", node.children.length > 0 ? `${open}` : null);
  row.actor.style.setProperty("--depth", depth);
  setText(row.twist, node.children.length === 0 ? "" : open ? "▾" : "▸");
  setClass(row.dot, `dot ${actor?.activity ?? "none"}${actor?.activity === "running" ? " is-running" : ""}`);
  setText(row.name, label);
  setTitle(row.name, node.path);
  setText(row.count, node.below > 0 ? countText(node.below) : "");
  setText(row.failing, node.failing > 0 ? `✕ ${countText(node.failing)}` : "");
  setText(row.backingOff, node.backingOff > 0 ? `↻ ${countText(node.backingOff)}` : "");
  setText(row.activity, actor ? activityText(actor.activity) : "");
  setClass(row.activity, `activity ${actor?.activity ?? ""}`);
  setText(row.mailbox, actor ? `${actor.mailbox}` : "");
  setClass(row.mailbox, actor?.mailbox === 0 ? "faint" : "");
  setText(row.high, actor ? ` / ${actor.mailboxHigh}` : "");
  setText(row.finished, actor ? countText(actor.finished) : "");
  setText(row.restarts, actor ? `${actor.restarts}` : "");
  setClass(row.restarts, `number restarts ${actor === null ? "" : actor.restarts > 0 ? "warn" : "faint"}`);
  setText(row.line, actor?.line ?? "");
  setTitle(row.line, actor?.line ?? "");
  setTitle(row.error, actor?.problem ?? actor?.lastError?.[1] ?? "");
  const isPast = actor !== null && !actor.problem && !isBad(actor.activity);
  setClass(row.error, `words error-cell ${isPast ? "past" : "problem"}`);
}

/** What changes with time alone. */
function fillTimes(row, { node: { actor } }, now) {
  const current = actor?.activity === "quiet" ? `for ${durationText(now - Date.parse(actor.heard))}` : actor?.current ?? "";
  setText(row.current, current);
  setTitle(row.current, current);
  setText(row.next, countdownText(actor?.nextTimer, now));
  const lastError = actor?.lastError ? `${agoText(actor.lastError[0], now)} · ${actor.lastError[1]}` : "";
  setText(row.error, actor?.problem ?? lastError);
}
