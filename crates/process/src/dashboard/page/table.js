// A table of many rows: only the rows in view have elements, and only what differs changes. With keyboard and sorting.

import { isSelecting, make, makeButton, setAttribute, setText } from "./dom.js";

/** Rows beyond the edges of the view, so that fast scrolling shows no gaps. */
const MARGIN = 8;
let tables = 0;

/**
 * Options:
 * `label`; `role`: `grid` or `treegrid`; `columns`: `{id, label, title, className, sorts}`;
 * `key(item)`: what stays the same when an item changes;
 * `makeRow()`: an object with `cells`, and whatever `fill` needs;
 * `fill(row, item, {selected})`, `fillTimes(row, item)`: what changes with time alone;
 * `onOpen(item)`, `onSelect(item)`, `onSort(column)`; `keys`: more keys, each gets the selected item.
 */
export class Table {
  items = [];
  selected = null;
  #options;
  #pool = [];
  #heads = new Map();
  #rowHeight = 26;
  #indexes = null;
  #prefix = `table-${(tables += 1)}`;

  constructor(className, options) {
    this.#options = options;
    this.head = make("div", "row head", ...options.columns.map((column) => this.#makeHead(column)));
    setAttribute(this.head, "role", "row");
    setAttribute(this.head, "aria-rowindex", "1");
    this.rows = make("div", "rows");
    setAttribute(this.rows, "role", "rowgroup");
    this.empty = make("p", "empty");
    this.element = make("div", `table ${className}`, this.head, this.rows, this.empty);
    for (const [name, value] of [["role", options.role ?? "grid"], ["aria-label", options.label], ["aria-colcount", `${options.columns.length}`], ["tabindex", "0"]]) {
      setAttribute(this.element, name, value);
    }
    this.element.addEventListener("scroll", () => this.refill(), { passive: true });
    this.element.addEventListener("keydown", (event) => { if (event.target === this.element) this.onKey(event); });
    new ResizeObserver(() => this.#resize()).observe(this.element);
  }

  #makeHead({ id, label, title, className, sorts }) {
    const head = make("span", className ?? "");
    setAttribute(head, "role", "columnheader");
    if (title) setAttribute(head, "title", title);
    if (sorts) {
      const button = makeButton("sort", () => this.#options.onSort(id), label);
      button.tabIndex = -1;
      head.append(button);
      this.#heads.set(id, head);
    } else {
      head.append(label);
    }
    return head;
  }

  /** Shows which column sorts. */
  showSort({ column, descending }) {
    for (const [id, head] of this.#heads) {
      setAttribute(head, "aria-sort", id === column ? (descending ? "descending" : "ascending") : null);
    }
  }

  /** Takes the items to show. The item at the top of the view stays there, unless the view is at the top of the list. */
  setItems(items, emptyText) {
    const { key } = this.#options;
    const top = this.element.scrollTop;
    const first = Math.floor(top / this.#rowHeight);
    const anchor = top > 0 && this.items[first] ? key(this.items[first]) : null;
    this.items = items;
    this.#indexes = null;
    this.rows.style.height = `${items.length * this.#rowHeight}px`;
    setAttribute(this.element, "aria-rowcount", `${items.length + 1}`);
    this.empty.hidden = items.length > 0;
    setText(this.empty, emptyText);
    if (anchor !== null) {
      const at = this.items[first] && key(this.items[first]) === anchor ? first : this.indexOf(anchor);
      if (at >= 0 && at !== first) this.element.scrollTop = top + (at - first) * this.#rowHeight;
    }
    this.refill();
  }

  /** The place of the item with this key, or -1. */
  indexOf(key) {
    this.#indexes ??= new Map(this.items.map((item, index) => [this.#options.key(item), index]));
    return this.#indexes.get(key) ?? -1;
  }

  get selectedItem() {
    return this.selected === null ? undefined : this.items[this.indexOf(this.selected)];
  }

  /** Selects an item by its place, and brings it into view. */
  select(index) {
    const item = this.items[index];
    if (!item) return;
    this.selected = this.#options.key(item);
    const top = index * this.#rowHeight;
    const view = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + this.#rowHeight > this.element.scrollTop + view) this.element.scrollTop = top + this.#rowHeight - view;
    this.refill();
    this.#options.onSelect?.(item);
  }

  /** Selects an item by its key; null selects nothing. */
  selectKey(key) {
    if (key !== null && this.indexOf(key) >= 0) this.select(this.indexOf(key));
    else {
      this.selected = key;
      this.refill();
    }
  }

  /** Shows the rows in view. */
  refill() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.#rowHeight) - MARGIN);
    const wanted = Math.ceil(this.element.clientHeight / this.#rowHeight) + 2 * MARGIN;
    const end = Math.min(this.items.length, first + wanted);
    while (this.#pool.length < Math.min(wanted, this.items.length)) this.#addRow();
    const pool = this.#pool;
    let active = null;
    for (const row of pool) row.isUsed = false;
    for (let index = first; index < end; index += 1) {
      const row = pool[index % pool.length];
      row.isUsed = true;
      if (this.#fill(row, index)) active = row.element.id;
    }
    for (const row of pool) row.element.hidden = !row.isUsed;
    setAttribute(this.element, "aria-activedescendant", active);
  }

  /** Shows what changes with time, in the rows in view. */
  tick() {
    for (const row of this.#pool) {
      const item = row.isUsed ? this.items[row.index] : undefined;
      if (item) this.#options.fillTimes?.(row, item);
    }
  }

  #addRow() {
    const row = this.#options.makeRow();
    row.element = make("div", "row", ...row.cells);
    row.element.id = `${this.#prefix}-${this.#pool.length}`;
    row.index = -1;
    setAttribute(row.element, "role", "row");
    for (const cell of row.cells) setAttribute(cell, "role", "gridcell");
    row.element.addEventListener("click", (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || isSelecting()) return;
      this.select(row.index);
      this.#options.onOpen?.(this.items[row.index], event);
    });
    this.rows.append(row.element);
    this.#pool.push(row);
  }

  #fill(row, index) {
    const item = this.items[index];
    if (row.index !== index || row.height !== this.#rowHeight) {
      row.index = index;
      row.height = this.#rowHeight;
      row.element.style.transform = `translateY(${index * this.#rowHeight}px)`;
      setAttribute(row.element, "aria-rowindex", `${index + 2}`);
    }
    const selected = this.selected !== null && this.#options.key(item) === this.selected;
    setAttribute(row.element, "aria-selected", `${selected}`);
    this.#options.fill(row, item, { selected });
    this.#options.fillTimes?.(row, item);
    return selected;
  }

  /** The style sheet gives rows another height where the window is narrow. */
  #resize() {
    const height = Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 26;
    if (height !== this.#rowHeight) {
      const first = this.element.scrollTop / this.#rowHeight;
      this.#rowHeight = height;
      this.rows.style.height = `${this.items.length * height}px`;
      this.element.scrollTop = first * height;
    }
    this.refill();
  }

  /** Moves the selection, or opens the selected item. Returns true if the key means something. */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
    const index = this.selected === null ? -1 : this.indexOf(this.selected);
    const last = this.items.length - 1;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.#rowHeight) - 2);
    const move = {
      ArrowDown: Math.min(index + 1, last), ArrowUp: Math.max(index - 1, 0), Home: 0, End: last,
      PageDown: Math.min(Math.max(index, 0) + page, last), PageUp: Math.max(index - page, 0),
    }[event.key];
    const more = this.#options.keys?.[event.key];
    if (move !== undefined) this.select(move);
    else if (event.key === "Enter" && this.items[index]) this.#options.onOpen?.(this.items[index], event);
    else if (more && this.items[index]) more(this.items[index], index);
    else return false;
    event.preventDefault();
    return true;
  }
}
