// The start page: all bundles, the broken ones first, and what is wrong with them.

import { CONDITIONS, DEFAULT_SORT, SORTS, STATES, conditionOf, nextSentence, nextText } from "./bundles.js";
import { make, makeButton, makeLink, setAttribute, setClass, setText, setTitle, showList } from "./dom.js";
import { commandsFor, hintOf, hintsFor } from "./hints.js";
import { addressOfBundle, formatSort, parseSet, parseSort } from "./route.js";
import { Table } from "./table.js";
import { countText, durationText, pluralText, shortDuration } from "./text.js";
import { makeSearch, showCommands, showHints } from "./tools.js";

const GLYPHS = { good: "✓", bad: "✕", pending: "◐", none: "–" };
/** How many reasons have a filter of their own. */
const MOST_REASONS = 8;

const COLUMNS = [
  { id: "state", label: "State", className: "state", sorts: true },
  { id: "name", label: "Bundle", className: "name", sorts: true },
  { id: "applied", label: "Applied", className: "condition", sorts: true, title: "ResourcesApplied: the objects are as their manifests describe them" },
  { id: "healthy", label: "Healthy", className: "condition", sorts: true, title: "ResourcesHealthy: the objects work" },
  { id: "progressing", label: "Progressing", className: "condition", sorts: true, title: "ResourcesProgressing: objects are being rolled out" },
  { id: "objects", label: "Objects", className: "number objects", sorts: true },
  { id: "since", label: "Since", className: "number since", sorts: true, title: "since when it is in this state" },
  { id: "next", label: "Next", className: "number next", sorts: true, title: "when the program acts by itself next" },
  { id: "problem", label: "Problem, or note", className: "words", sorts: true },
];

export class BundlesView {
  title = "Bundles";
  keys = [["↑ ↓", "select"], ["Enter", "open"], ["/", "search"], ["Esc", "clear"]];
  #page;
  #filter = { query: "", states: new Set(), reason: "", sort: DEFAULT_SORT };
  #scrollTop = 0;
  #reasons = [];

  constructor(page) {
    this.#page = page;
    this.#makeTiles();
    this.#makeTools();
    this.table = new Table("bundles", {
      label: "Bundles", columns: COLUMNS, key: ({ path }) => path,
      makeRow, fill: (row, bundle) => fill(row, bundle), fillTimes: (row, bundle) => fillTimes(row, bundle, page.now()),
      onOpen: (bundle) => page.go(addressOfBundle(bundle)),
      onSelect: () => this.#showAside(), onSort: (column) => this.#sortBy(column),
    });
    this.wrongs = make("ul", "wrongs");
    this.preview = makePreview();
    this.asideTitle = make("h2", "", "What is wrong");
    this.aside = make("aside", "aside", make("div", "panel-head", this.asideTitle), this.wrongs, this.preview.element);
    setAttribute(this.aside, "aria-label", "What is wrong");
    this.element = make("section", "view", this.tiles, this.spectrum, this.tools, make("div", "split", this.table.element, this.aside));
    setAttribute(this.element, "aria-label", "Bundles");
  }

  #makeTiles() {
    this.tiles = make("div", "tiles");
    setAttribute(this.tiles, "role", "group");
    setAttribute(this.tiles, "aria-label", "Filter by state");
    this.spectrum = make("div", "spectrum");
    setAttribute(this.spectrum, "aria-hidden", "true");
    const tile = (label, states) => {
      const value = make("span", "tile-value", "–");
      const element = makeButton("tile", () => this.#goTo({ states: isSame(this.#filter.states, states) ? new Set() : new Set(states) }), value, make("span", "tile-label", label));
      this.tiles.append(element);
      return { element, value, states };
    };
    this.all = tile("All bundles", []);
    this.byState = [...STATES].map(([state, label]) => {
      const bar = make("span", `bar state-${state}`);
      this.spectrum.append(bar);
      return { ...tile(label, [state]), state, bar };
    });
  }

  #makeTools() {
    const search = makeSearch("Search bundles", "Name, error, reason:…, class:…", {
      input: (query) => this.#goTo({ query }),
      leave: () => { this.table.element.focus(); if (!this.table.selectedItem) this.table.select(0); },
    });
    this.search = search.input;
    this.chips = make("div", "chips");
    setAttribute(this.chips, "role", "group");
    setAttribute(this.chips, "aria-label", "Filter by reason");
    this.order = make("select", "order", ...COLUMNS.map(({ id, label }) => Object.assign(make("option", "", `by ${label.toLowerCase()}`), { value: id })));
    setAttribute(this.order, "aria-label", "Order");
    this.order.addEventListener("change", () => this.#goTo({ sort: { column: this.order.value, descending: SORTS.get(this.order.value) } }));
    this.tools = make("div", "tools bundles-tools", search.element, this.chips, this.order);
  }

  // --- what the page calls

  show({ query }, isOther) {
    this.#filter = {
      query: query.q ?? "", states: parseSet(query.state, STATES), reason: query.reason ?? "", sort: parseSort(query.sort, [...SORTS.keys()], DEFAULT_SORT),
    };
    if (this.search.value !== this.#filter.query) this.search.value = this.#filter.query;
    this.order.value = this.#filter.sort.column;
    this.table.showSort(this.#filter.sort);
    this.#refresh();
    if (isOther) {
      this.#page.ask(null);
      this.table.element.scrollTop = this.#scrollTop;
    }
  }

  hide() {
    this.#scrollTop = this.table.element.scrollTop;
  }

  update(change) {
    if (change.all || change.bundles) this.#refresh();
  }

  tick() {
    this.table.tick();
    this.#showAside();
  }

  focus() {
    this.table.element.focus({ preventScroll: true });
  }

  escape() {
    if (document.activeElement !== this.search && this.table.selectedItem) {
      this.table.selectKey(null);
      this.#showAside();
    } else {
      this.#goTo({ query: "", states: new Set(), reason: "" });
    }
    this.table.element.focus();
  }

  // --- filters

  #goTo(change) {
    const { query, states, reason, sort } = { ...this.#filter, ...change };
    this.#page.replace({ view: "bundles", query: { state: [...states].join(","), reason, q: query, sort: formatSort(sort, DEFAULT_SORT) } });
    if (!("sort" in change)) {
      this.table.element.scrollTop = 0;
      this.#page.announce(`${pluralText(this.table.items.length, "bundle")} shown`);
    }
  }

  #sortBy(column) {
    const { sort } = this.#filter;
    this.#goTo({ sort: { column, descending: sort.column === column ? !sort.descending : SORTS.get(column) } });
  }

  #refresh() {
    const { bundles, feed } = this.#page;
    bundles.sortBy(this.#filter.sort);
    const { shown, counts, total, reasons } = bundles.select(this.#filter);
    this.#reasons = reasons;
    this.#page.shownBundles = shown;
    this.table.setItems(shown, emptyText(bundles.size, feed.process));
    setText(this.all.value, countText(total));
    setAttribute(this.all.element, "aria-pressed", null);
    for (const { element, value, state, states, bar } of this.byState) {
      const count = counts.get(state);
      setText(value, countText(count));
      setAttribute(element, "aria-pressed", `${isSame(this.#filter.states, states) || (this.#filter.states.size > 1 && this.#filter.states.has(state))}`);
      setAttribute(element, "data-state", count > 0 ? state : "none");
      bar.style.flexGrow = `${count}`;
      bar.hidden = count === 0;
    }
    this.#page.showCount(shown.length === bundles.size ? pluralText(shown.length, "bundle") : `${countText(shown.length)} of ${pluralText(bundles.size, "bundle")}`);
    this.#showChips();
    this.#showAside();
  }

  #showChips() {
    const { reason } = this.#filter;
    const groups = this.#reasons.slice(0, MOST_REASONS);
    if (reason && !groups.some((group) => group.reason === reason)) groups.unshift({ reason, count: this.table.items.length });
    showList(this.chips, groups, () => {
      const [name, count] = [make("span"), make("span", "count")];
      const chip = { name, count, reason: "" };
      chip.element = makeButton("chip", () => this.#toggleReason(chip.reason), name, count);
      return chip;
    }, (chip, group) => {
      chip.reason = group.reason;
      setText(chip.name, group.reason);
      setText(chip.count, countText(group.count));
      setAttribute(chip.element, "aria-pressed", `${group.reason === reason}`);
    });
  }

  #toggleReason(reason) {
    this.#goTo({ reason: this.#filter.reason === reason ? "" : reason });
  }

  // --- at the right: what is wrong, or the selected bundle

  #showAside() {
    const now = this.#page.now();
    const bundle = this.table.selectedItem;
    this.aside.hidden = !bundle && this.#reasons.length === 0;
    setText(this.asideTitle, bundle ? "Selected bundle" : "What is wrong");
    this.wrongs.hidden = Boolean(bundle);
    this.preview.element.hidden = !bundle;
    if (bundle) showPreview(this.preview, bundle, now);
    else this.#showWrongs(now);
  }

  #showWrongs(now) {
    showList(this.wrongs, this.#reasons.slice(0, MOST_REASONS), () => {
      const [name, count, times, hint] = [make("span", "wrong-name"), make("span", "badge bad"), make("p", "wrong-times"), make("p", "wrong-hint")];
      const example = makeLink("wrong-example", "#");
      const wrong = { name, count, times, hint, example, reason: "" };
      wrong.button = makeButton("wrong-head", () => this.#toggleReason(wrong.reason), name, count);
      wrong.element = make("li", "wrong", wrong.button, times, example, hint);
      return wrong;
    }, (wrong, { reason, count, first, last, next, example }) => {
      wrong.reason = reason;
      setText(wrong.name, reason);
      setText(wrong.count, countText(count));
      setAttribute(wrong.button, "aria-pressed", `${this.#filter.reason === reason}`);
      const since = first === null ? "" : count === 1 ? `for ${durationText(now - first)}` : `first ${shortDuration(now - first)} ago, latest ${shortDuration(now - last)} ago`;
      const due = Number.isFinite(next) ? (next > now ? `next run in ${durationText(next - now + 999)}` : "next run is due") : "";
      setText(wrong.times, [since, due].filter((text) => text).join(" · "));
      setText(wrong.example, count === 1 ? example.key : `latest: ${example.key}`);
      setAttribute(wrong.example, "href", addressOfBundle(example));
      setTitle(wrong.example, example.problem);
      setText(wrong.hint, hintOf(reason, example.problem));
    });
  }
}

const isSame = (set, values) => set.size === values.length && values.every((value) => set.has(value));

function emptyText(total, process) {
  if (total > 0) return "No bundle matches. Esc clears the filters.";
  if (process.leadership !== "standby") return "There are no bundles.";
  const leader = process.leader ? `The leader is ${process.leader}` : "Another replica leads";
  return `This replica is on standby. ${leader}: its dashboard shows the bundles.`;
}

// --- rows

function makeRow() {
  const row = {
    dot: make("span", "dot"), state: make("span", "state-text"), link: makeLink("bundle-link", ""), namespace: make("span", "namespace"), name: make("span"),
    mark: make("span", "badge"), objects: make("span", "number objects"), since: make("span", "number since"), next: make("span", "number next"), words: make("span", "words"),
  };
  row.link.tabIndex = -1;
  row.link.append(row.namespace, "/", row.name);
  row.conditions = [...CONDITIONS].map(([, type]) => {
    const [glyph, status] = [make("span", "glyph"), make("span", "status")];
    return { cell: make("span", "condition", glyph, status), glyph, status, type };
  });
  row.cells = [
    make("span", "state", row.dot, row.state), make("span", "name", row.link, row.mark), ...row.conditions.map(({ cell }) => cell), row.objects, row.since, row.next, row.words,
  ];
  return row;
}

function fill(row, bundle) {
  const { row: actor, state, namespace, name, marks, objects, problem } = bundle;
  setClass(row.dot, `dot state-${state}${actor.activity === "running" ? " is-running" : ""}`);
  setText(row.state, STATES.get(state));
  setClass(row.state, `state-text state-${state}`);
  setText(row.namespace, namespace);
  setText(row.name, name);
  setAttribute(row.link, "href", addressOfBundle(bundle));
  setTitle(row.link, bundle.key);
  setText(row.mark, marks.join(", "));
  for (const { cell, glyph, status, type } of row.conditions) {
    const condition = conditionOf(bundle, type);
    const tone = condition?.tone ?? "none";
    setText(glyph, GLYPHS[tone] ?? "–");
    setText(status, condition?.status ?? "");
    setClass(cell, `condition tone-${tone}`);
    setTitle(cell, condition ? `${type} ${condition.status}: ${condition.reason}` : `${type}: not reported`);
  }
  setText(row.objects, countText(objects));
  setText(row.words, problem || actor.line);
  setTitle(row.words, problem || actor.line);
  setClass(row.words, `words ${problem ? `state-${state}` : ""}`);
}

function fillTimes(row, bundle, now) {
  setText(row.since, bundle.since === null ? "–" : durationText(now - bundle.since));
  setText(row.next, nextText(bundle, now));
}

// --- the selected bundle in short

function makePreview() {
  const preview = {
    link: makeLink("preview-name", ""), state: make("p", "pill"), conditions: make("ul", "short-conditions"), problem: make("p", "preview-problem"),
    next: make("p", "preview-next"), hints: make("ul", "hints"), commands: make("ul", "commands"),
  };
  preview.element = make("div", "preview", preview.link, preview.state, preview.conditions, preview.problem, make("h3", "", "What happens next"), preview.next,
    make("h3", "", "What to do"), preview.hints, preview.commands);
  return preview;
}

function showPreview(preview, bundle, now) {
  setText(preview.link, bundle.key);
  setAttribute(preview.link, "href", addressOfBundle(bundle));
  setText(preview.state, `${STATES.get(bundle.state)}${bundle.since === null ? "" : ` for ${durationText(now - bundle.since)}`}`);
  setClass(preview.state, `pill state-${bundle.state}`);
  showList(preview.conditions, bundle.conditions, () => {
    const item = { glyph: make("span", "glyph"), type: make("span", "type"), reason: make("span", "reason") };
    return { ...item, element: make("li", "", item.glyph, item.type, item.reason) };
  }, (item, { type, tone, reason, since }) => {
    setText(item.glyph, GLYPHS[tone] ?? "–");
    setText(item.type, type);
    setText(item.reason, since ? `${reason}, ${durationText(now - Date.parse(since))}` : reason);
    setClass(item.element, `tone-${tone}`);
  });
  setText(preview.problem, bundle.problem);
  setText(preview.next, nextSentence(bundle, now));
  showHints(preview.hints, hintsFor(bundle));
  showCommands(preview.commands, commandsFor(bundle));
}
