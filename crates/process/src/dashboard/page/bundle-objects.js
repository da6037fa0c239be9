// The objects of a bundle: a table, and everything about the selected one.

import { make, makeButton, makeCommand, makeLink, setAttribute, setClass, setText, setTitle, showFacts, showList } from "./dom.js";
import { traceCommand } from "./hints.js";
import { FILTERS, nameOf, objectRows, stateOf, titleOf } from "./objects.js";
import { addressOfBundle } from "./route.js";
import { Table } from "./table.js";
import { countText, shortAgo, whenText } from "./text.js";
import { makeSearch } from "./tools.js";

const GLYPHS = { good: "✓", bad: "✕", pending: "◐", none: "?" };

const COLUMNS = [
  { id: "object", label: "Object", className: "object" },
  { id: "health", label: "Health", className: "health" },
  { id: "text", label: "Why", className: "words" },
  { id: "last", label: "Last write", className: "last", title: "what the program last did to it, and why" },
  { id: "document", label: "Document", className: "document", title: "data key and index in its Secret" },
];

export class BundleObjects {
  #page;
  #objects = [];
  #truncated = 0;
  #filter = { filter: "all", query: "", collapsed: new Set() };

  constructor(page) {
    this.#page = page;
    const search = makeSearch("Search objects", "Kind, name, text", {
      input: (query) => this.#setFilter({ query }), leave: () => { this.table.element.focus(); this.table.select(0); },
    });
    this.search = search.input;
    this.chips = make("div", "chips");
    setAttribute(this.chips, "role", "group");
    setAttribute(this.chips, "aria-label", "Filter objects");
    this.filters = [...FILTERS].map(([filter, { label }]) => {
      const count = make("span", "count", "0");
      const element = makeButton("chip", () => this.#setFilter({ filter: this.#filter.filter === filter ? "all" : filter }), label, count);
      this.chips.append(element);
      return { filter, element, count };
    });
    this.table = new Table("objects", {
      label: "Objects", role: "treegrid", columns: COLUMNS, key: ({ key }) => key,
      makeRow, fill, fillTimes: (row, item) => fillTimes(row, item, page.now()), onSelect: () => this.#showSelected(),
      onOpen: (item) => this.#toggle(item),
      keys: { ArrowLeft: (item) => { if (item.open) this.#toggle(item); }, ArrowRight: (item) => { if (item.open === false) this.#toggle(item); } },
    });
    this.facts = make("dl", "facts-list");
    this.claims = make("p", "claims");
    this.commands = make("ul", "commands");
    this.title = make("h3", "selected-title");
    this.selected = make("div", "selected-object", this.title, this.facts, this.claims, this.commands);
    this.note = make("p", "note");
    this.element = make("div", "", make("div", "tools", search.element, this.chips), this.table.element, this.note, this.selected);
  }

  /** Begins with another bundle. */
  reset() {
    this.#filter = { filter: "all", query: "", collapsed: new Set() };
    this.search.value = "";
    this.table.selected = null;
    this.show([], 0);
  }

  show(objects, truncated) {
    this.#objects = objects;
    this.#truncated = truncated;
    this.#refresh();
  }

  tick() {
    this.table.tick();
    this.#showSelected();
  }

  clear() {
    const wasClear = this.#filter.query === "" && this.#filter.filter === "all" && this.table.selected === null;
    this.search.value = "";
    this.table.selected = null;
    this.#setFilter({ query: "", filter: "all" });
    return wasClear;
  }

  #toggle({ group }) {
    if (group === undefined) return;
    const { collapsed } = this.#filter;
    if (!collapsed.delete(group)) collapsed.add(group);
    this.#refresh();
  }

  #setFilter(change) {
    Object.assign(this.#filter, change);
    this.#refresh();
  }

  #refresh() {
    const { rows, counts } = objectRows(this.#objects, this.#filter);
    this.table.element.style.setProperty("--items", `${Math.max(rows.length, 1)}`);
    this.table.setItems(rows, this.#objects.length === 0 ? "No object is known." : "No object matches.");
    for (const { filter, element, count } of this.filters) {
      setText(count, countText(counts.get(filter)));
      setAttribute(element, "aria-pressed", `${filter === this.#filter.filter}`);
      element.classList.toggle("none", counts.get(filter) === 0);
    }
    this.note.hidden = this.#truncated === 0;
    setText(this.note, `${countText(this.#truncated)} more objects are not shown. The command describe shows all.`);
    this.#showSelected();
  }

  #showSelected() {
    const object = this.table.selectedItem?.object;
    this.selected.hidden = !object;
    if (!object) return;
    const now = this.#page.now();
    const { word, tone, text } = stateOf(object);
    const { last, pendingDeletion, document, progress, claimedBy = [] } = object;
    setText(this.title, `${object.apiVersion} ${titleOf(object)}`);
    showFacts(this.facts, [
      ["Health", text ? `${word}: ${text}` : word, tone],
      ["Progress", progress && progress !== text ? progress : ""],
      ["Last write", last ? `${last.what} ${whenText(last.at, now)}` : ""],
      ["Because of", (last?.why ?? []).join(", ")],
      ["Error", last?.error !== text ? last?.error : "", "bad"],
      ["Changed fields", (last?.paths ?? []).join("\n")],
      ["Pending deletion", pendingDeletion ? [pendingDeletion.since ? `since ${whenText(pendingDeletion.since, now)}` : "", pendingDeletion.why ?? ""].filter((part) => part).join(": ") : ""],
      ["Document", document ? `${document.secret}, ${document.key}, index ${document.index}` : ""],
    ]);
    this.claims.hidden = claimedBy.length === 0;
    showList(this.claims, claimedBy, () => {
      const link = makeLink("", "");
      return { element: make("span", "claim", "also in ", link), link };
    }, ({ link }, claim) => {
      setText(link, claim);
      const [namespace, name] = claim.split("/", 2);
      setAttribute(link, "href", addressOfBundle({ namespace, name }));
    });
    showList(this.commands, [traceCommand(object)], makeCommand, ({ code, note }, command) => {
      setText(code, command);
      setText(note, "finds its bundle, Secret and document");
    });
  }
}

function makeRow() {
  const row = {
    twist: make("span", "twist"), kind: make("span", "kind"), name: make("span", "object-name"), claimed: make("span", "badge slow"), glyph: make("span", "glyph"), word: make("span"),
    words: make("span", "words"), last: make("span", "last"), document: make("span", "document"),
  };
  row.object = make("span", "object", row.twist, row.kind, row.name, row.claimed);
  row.health = make("span", "health", row.glyph, row.word);
  row.cells = [row.object, row.health, row.words, row.last, row.document];
  return row;
}

function fill(row, item) {
  row.object.style.setProperty("--depth", item.depth);
  setAttribute(row.element, "aria-level", `${item.depth + 1}`);
  setAttribute(row.element, "aria-expanded", item.group === undefined ? null : `${item.open}`);
  row.element.classList.toggle("group", item.group !== undefined);
  row.twist.hidden = item.group === undefined;
  if (item.group === undefined) fillObject(row, item.object);
  else fillGroup(row, item);
}

function fillGroup(row, { group, count, bad, open }) {
  setText(row.twist, open ? "▾" : "▸");
  setText(row.kind, "");
  setText(row.name, group);
  setTitle(row.object, group);
  setText(row.claimed, "");
  setText(row.glyph, bad > 0 ? GLYPHS.bad : "");
  setText(row.word, bad > 0 ? `${countText(bad)} of ${countText(count)}` : countText(count));
  setClass(row.health, bad > 0 ? "health tone-bad" : "health");
  for (const cell of [row.words, row.document]) {
    setText(cell, "");
    setTitle(cell, "");
  }
}

function fillObject(row, object) {
  const { word, tone, text } = stateOf(object);
  setText(row.kind, object.kind);
  setText(row.name, nameOf(object));
  setTitle(row.object, `${object.apiVersion} ${titleOf(object)}`);
  const claims = object.claimedBy ?? [];
  setText(row.claimed, claims.length > 0 ? "shared" : "");
  setTitle(row.claimed, claims.length > 0 ? `also in ${claims.join(", ")}` : "");
  setText(row.glyph, GLYPHS[tone]);
  setText(row.word, word);
  setClass(row.health, `health tone-${tone}`);
  setText(row.words, text);
  setTitle(row.words, text);
  const { document } = object;
  setText(row.document, document ? `${document.key} #${document.index}` : "");
  setTitle(row.document, document ? `Secret ${document.secret}, data key ${document.key}, index ${document.index}` : "");
}

function fillTimes(row, { object }, now) {
  const last = object?.last;
  const text = last ? `${last.what} ${shortAgo(last.at, now)}${last.why?.length ? ` · ${last.why.join(", ")}` : ""}` : "";
  setText(row.last, text);
  setTitle(row.last, text);
}
