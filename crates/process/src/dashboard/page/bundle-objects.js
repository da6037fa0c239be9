// The objects of a bundle: a table, and everything about the selected one.

import { make, makeButton, makeCommand, makeLink, setAttribute, setClass, setText, setTitle, showFacts, showList } from "./dom.js";
import { traceCommand } from "./hints.js";
import { FILTERS, keyOf, nameOf, objectRows, stateOf } from "./objects.js";
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
  #filter = { filter: "all", query: "" };

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
      label: "Objects", role: "treegrid", columns: COLUMNS, key: ({ object }) => `${object.apiVersion} ${keyOf(object)}`,
      makeRow, fill, fillTimes: (row, item) => fillTimes(row, item, page.now()), onSelect: () => this.#showSelected(),
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
    this.#filter = { filter: "all", query: "" };
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
    const { last, pendingDeletion, document, owner, progress, claimedBy = [] } = object;
    setText(this.title, `${object.apiVersion} ${keyOf(object)}`);
    showFacts(this.facts, [
      ["Health", text ? `${word}: ${text}` : word, tone],
      ["Progress", progress && progress !== text ? progress : ""],
      ["Last write", last ? `${last.what} ${whenText(last.at, now)}` : ""],
      ["Because of", (last?.why ?? []).join(", ")],
      ["Changed fields", (last?.paths ?? []).join("\n")],
      ["Pending deletion", pendingDeletion ? [pendingDeletion.since ? `since ${whenText(pendingDeletion.since, now)}` : "", pendingDeletion.why ?? ""].filter((part) => part).join(": ") : ""],
      ["Document", document ? `${document.secret}, ${document.key}, index ${document.index}` : ""],
      ["Owner", owner ?? ""],
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
    kind: make("span", "kind"), name: make("span", "object-name"), claimed: make("span", "badge slow"), glyph: make("span", "glyph"), word: make("span"),
    words: make("span", "words"), last: make("span", "last"), document: make("span", "document"),
  };
  row.object = make("span", "object", row.kind, row.name, row.claimed);
  row.health = make("span", "health", row.glyph, row.word);
  row.cells = [row.object, row.health, row.words, row.last, row.document];
  return row;
}

function fill(row, { object, depth, faint }) {
  const { word, tone, text } = stateOf(object);
  row.object.style.setProperty("--depth", depth);
  setAttribute(row.element, "aria-level", `${depth + 1}`);
  row.element.classList.toggle("faint-row", faint);
  setText(row.kind, object.kind);
  setText(row.name, nameOf(object));
  setTitle(row.object, `${object.apiVersion} ${keyOf(object)}`);
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
  const { last } = object;
  const text = last ? `${last.what} ${shortAgo(last.at, now)}${last.why?.length ? ` · ${last.why.join(", ")}` : ""}` : "";
  setText(row.last, text);
  setTitle(row.last, text);
}
