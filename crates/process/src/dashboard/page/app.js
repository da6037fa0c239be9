// The page: keeps the last snapshot, shows the rows in view, changes only what differs.
//
// Names and texts may hold anything; they reach the page through textContent alone.

import {
  ACTIVITIES, QUIET_AFTER, activityText, agoText, buildTree, clockText, countdownText, durationText, isBad, lastHeard, leadershipText,
  makeFilter, markQuiet, summarize, visibleRows,
} from "./actors.js";
import { connect } from "./connection.js";

/** In pixels; `--row` of the style sheet. */
const ROW_HEIGHT = 26;
/** Rows beyond the edges of the view, so that fast scrolling shows no gaps. */
const MARGIN = 8;

const byId = (id) => document.getElementById(id);
const page = {
  table: byId("table"), rows: byId("rows"), empty: byId("empty"), search: byId("search"), shown: byId("shown"),
  details: byId("details"), list: byId("details-list"), title: byId("details-title"),
};

const state = {
  status: null,
  tree: buildTree([]),
  rows: [],
  collapsed: new Set(),
  activities: new Set(),
  query: "",
  selected: null,
  detailsOpen: false,
  /** Server clock minus browser clock, in milliseconds. */
  skew: 0,
};

const now = () => Date.now() + state.skew;

// --- small helpers for the page

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function setTitle(element, text) {
  setAttribute(element, "title", text === "" ? null : text);
}

// --- header, tiles, chips

const clearFilters = () => { state.activities.clear(); setQuery(""); };
const filterBy = (...activities) => () => {
  state.activities = sameSet(state.activities, activities) ? new Set() : new Set(activities);
  refresh();
};
const sameSet = (set, values) => set.size === values.length && values.every((value) => set.has(value));

/** label, value, tone by value, what a click does (if it does), whether that is in effect */
const TILES = [
  ["Actors", (s) => `${s.actors}`, () => "", clearFilters, () => false],
  ["Running", (s) => `${s.activities.get("running")}`, (s) => (s.activities.get("running") ? "running" : ""),
    filterBy("running"), () => sameSet(state.activities, ["running"])],
  ["Failing", (s) => `${s.failing}`, (s) => (s.failing ? "failing" : ""),
    filterBy("failing", "quarantined"), () => sameSet(state.activities, ["failing", "quarantined"])],
  ["Back-off", (s) => `${s.activities.get("backingOff")}`, (s) => (s.activities.get("backingOff") ? "backingOff" : ""),
    filterBy("backingOff"), () => sameSet(state.activities, ["backingOff"])],
  ["Stores fresh", (s) => `${s.fresh} / ${s.stores}`, (s) => (s.fresh < s.stores ? "backingOff" : ""),
    () => setQuery(state.query === "role:watch" ? "" : "role:watch"), () => state.query === "role:watch"],
  ["Restarts", (s) => `${s.restarts}`, () => "", null, () => null],
];

const tiles = TILES.map(([label, value, tone, click, active]) => {
  const number = make("span", "tile-value", "–");
  const tile = make(click ? "button" : "div", "tile", number, make("span", "tile-label", label));
  if (click) tile.addEventListener("click", click);
  byId("tiles").append(tile);
  return { tile, number, value, tone, active };
});

const chips = [...ACTIVITIES].map(([activity, label]) => {
  const count = make("span", "count", "0");
  const button = make("button", "chip", make("span", `dot ${activity}`), label, count);
  button.type = "button";
  button.addEventListener("click", () => {
    if (!state.activities.delete(activity)) state.activities.add(activity);
    refresh();
  });
  byId("chips").append(button);
  const bar = make("span", activity);
  byId("spectrum").append(bar);
  return { activity, button, count, bar };
});

function showSummary() {
  const summary = summarize(state.status?.actors ?? []);
  for (const { tile, number, value, tone, active } of tiles) {
    setText(number, value(summary));
    setAttribute(tile, "data-tone", tone(summary));
    setAttribute(tile, "aria-pressed", active()?.toString() ?? null);
  }
  for (const { activity, button, count, bar } of chips) {
    const actors = summary.activities.get(activity) ?? 0;
    setText(count, `${actors}`);
    setAttribute(button, "aria-pressed", `${state.activities.has(activity)}`);
    button.classList.toggle("none", actors === 0);
    bar.style.flexGrow = `${actors}`;
  }
}

function showProcess() {
  const { process } = state.status;
  setText(byId("name"), process.name);
  setText(byId("version"), process.version);
  setText(byId("host"), process.host);
  setText(byId("leadership"), leadershipText(process.leadership));
  setAttribute(byId("leadership"), "data-state", process.leadership);
  const title = `${process.host} · ${process.name}`;
  if (document.title !== title) document.title = title;
}

/** Since when nothing was heard of the API servers. */
function showHeard() {
  const clusters = [...lastHeard(state.status.actors)];
  const isQuiet = clusters.some(([, heard]) => now() - Date.parse(heard) > QUIET_AFTER);
  setText(byId("heard"), clusters.map(([cluster, heard]) => `${cluster} ${agoText(heard, now())}`).join(" · ") || "never");
  setAttribute(byId("heard"), "data-state", isQuiet || clusters.length === 0 ? "quiet" : "live");
}

// --- rows

/** The elements of rows, reused: row i is shown by element i modulo their number. */
const pool = [];

function makeRow() {
  const row = {
    twist: make("span", "twist"), dot: make("span", "dot"), name: make("span", "name"), count: make("span", "badge"),
    failing: make("span", "badge bad"), backingOff: make("span", "badge slow"),
    activity: make("span", "activity"), current: make("span", "current"),
    mailbox: make("span"), high: make("span", "faint"), finished: make("span", "number"), restarts: make("span", "number"),
    next: make("span", "number next"), line: make("span", "words"), error: make("span", "words error"), index: -1,
  };
  row.count.title = "actors below";
  row.failing.title = "failing or quarantined below";
  row.backingOff.title = "in back-off below";
  const tree = make("span", "tree", row.twist, row.dot, row.name, row.count, row.failing, row.backingOff);
  const what = make("span", "what", row.activity, row.current);
  const mailbox = make("span", "number", row.mailbox, row.high);
  row.tree = tree;
  row.element = make("div", "row", tree, what, mailbox, row.finished, row.restarts, row.next, row.line, row.error);
  row.element.setAttribute("role", "row");
  for (const cell of row.element.children) cell.setAttribute("role", "gridcell");
  row.element.id = `row-${pool.length}`;
  row.twist.addEventListener("click", (event) => { event.stopPropagation(); toggle(state.rows[row.index]?.node); });
  row.element.addEventListener("click", () => { select(row.index); openDetails(true); });
  row.element.addEventListener("dblclick", () => toggle(state.rows[row.index]?.node));
  page.rows.append(row.element);
  pool.push(row);
}

function showRow(row, index) {
  const { node, open, faint } = state.rows[index];
  const { actor } = node;
  const selected = node.path === state.selected;
  const element = row.element;
  if (row.index !== index) {
    row.index = index;
    element.style.transform = `translateY(${index * ROW_HEIGHT}px)`;
    element.setAttribute("aria-rowindex", `${index + 2}`);
  }
  element.hidden = false;
  element.classList.toggle("group", actor === null);
  element.classList.toggle("faint-row", faint);
  setAttribute(element, "aria-selected", `${selected}`);
  setAttribute(element, "aria-level", `${node.depth + 1}`);
  setAttribute(element, "aria-expanded", node.children.length > 0 ? `${open}` : null);
  if (selected) setAttribute(page.table, "aria-activedescendant", element.id);

  row.tree.style.setProperty("--depth", node.depth);
  setText(row.twist, node.children.length === 0 ? "" : open ? "▾" : "▸");
  setAttribute(row.dot, "class", `dot ${actor?.activity ?? "none"}`);
  setText(row.name, node.name);
  setTitle(row.name, node.path);
  setText(row.count, node.below > 0 ? `${node.below}` : "");
  setText(row.failing, node.failing > 0 ? `✕ ${node.failing}` : "");
  setText(row.backingOff, node.backingOff > 0 ? `↻ ${node.backingOff}` : "");

  setText(row.activity, actor ? activityText(actor.activity) : "");
  setAttribute(row.activity, "class", `activity ${actor?.activity ?? ""}`);
  setText(row.mailbox, actor ? `${actor.mailbox}` : "");
  row.mailbox.classList.toggle("faint", actor?.mailbox === 0);
  setText(row.high, actor ? ` / ${actor.mailboxHigh}` : "");
  setText(row.finished, actor ? actor.finished.toLocaleString("en") : "");
  setText(row.restarts, actor ? `${actor.restarts}` : "");
  row.restarts.classList.toggle("faint", actor?.restarts === 0);
  row.restarts.classList.toggle("warn", actor !== null && actor.restarts > 0);
  setText(row.line, actor?.line ?? "");
  setTitle(row.line, actor?.line ?? "");
  const error = actor?.problem ?? actor?.lastError?.[1] ?? "";
  setTitle(row.error, error);
  const isPast = actor !== null && !actor.problem && !isBad(actor.activity) && actor.activity !== "backingOff";
  row.error.classList.toggle("past", isPast);
  showTimes(row, actor);
}

/** What changes with time alone. */
function showTimes(row, actor) {
  const current = actor?.activity === "quiet" ? `for ${durationText(now() - Date.parse(actor.heard))}` : actor?.current ?? "";
  setText(row.current, current);
  setTitle(row.current, current);
  setText(row.next, countdownText(actor?.nextTimer, now()));
  const lastError = actor?.lastError ? `${agoText(actor.lastError[0], now())} · ${actor.lastError[1]}` : "";
  setText(row.error, actor?.problem ?? lastError);
}

function showRows() {
  const first = Math.max(0, Math.floor(page.table.scrollTop / ROW_HEIGHT) - MARGIN);
  const wanted = Math.ceil(page.table.clientHeight / ROW_HEIGHT) + 2 * MARGIN;
  const end = Math.min(state.rows.length, first + wanted);
  while (pool.length < Math.min(wanted, state.rows.length)) makeRow();

  setAttribute(page.table, "aria-activedescendant", null);
  const used = new Set();
  for (let index = first; index < end; index += 1) {
    used.add(pool[index % pool.length]);
    showRow(pool[index % pool.length], index);
  }
  for (const row of pool) if (!used.has(row)) row.element.hidden = true;
}

/** Computes the rows anew and shows everything. */
function refresh() {
  const filter = makeFilter(state.query, state.activities);
  state.rows = visibleRows(state.tree, filter, state.collapsed);
  page.rows.style.height = `${state.rows.length * ROW_HEIGHT}px`;
  setAttribute(page.table, "aria-rowcount", `${state.rows.length + 1}`);
  page.empty.hidden = state.rows.length > 0;
  if (state.status) setText(page.empty, filter.active ? "No actor matches." : "There are no actors.");
  const total = state.status?.actors.length ?? 0;
  const shown = state.rows.filter((row) => row.node.actor !== null && !row.faint).length;
  setText(page.shown, shown === total ? `${total} actors` : `${shown} of ${total} actors`);
  showSummary();
  showRows();
  showDetails();
}

// --- selection, collapse, details

function select(index) {
  const row = state.rows[index];
  if (!row) return;
  state.selected = row.node.path;
  const top = index * ROW_HEIGHT;
  const view = page.table.clientHeight - ROW_HEIGHT;
  if (top < page.table.scrollTop) page.table.scrollTop = top;
  if (top + ROW_HEIGHT > page.table.scrollTop + view) page.table.scrollTop = top + ROW_HEIGHT - view;
  showRows();
  showDetails();
}

const selectedIndex = () => state.rows.findIndex((row) => row.node.path === state.selected);

function toggle(node) {
  if (!node || node.children.length === 0) return;
  if (!state.collapsed.delete(node.path)) state.collapsed.add(node.path);
  refresh();
}

function openDetails(open) {
  state.detailsOpen = open;
  showDetails();
  showRows();
}

const DETAILS = [
  ["State", (a) => (a.current ? `${activityText(a.activity)} · ${a.current}` : activityText(a.activity))],
  ["Role", (a) => a.role],
  ["Next timer", (a) => (a.nextTimer ? `${countdownText(a.nextTimer, now())} (${clockText(a.nextTimer)})` : "none")],
  ["Mailbox", (a) => `${a.mailbox} now, ${a.mailboxHigh} at most`],
  ["Finished", (a) => a.finished.toLocaleString("en")],
  ["Restarts", (a) => `${a.restarts}`],
  ["Server last heard", (a) => (a.heard ? `${agoText(a.heard, now())} (${clockText(a.heard)})` : "–")],
  ["Last change", (a) => (a.changed ? `${agoText(a.changed, now())} (${clockText(a.changed)})` : "never")],
  ["Problem", (a) => a.problem ?? "none"],
  ["Notes", (a) => a.line || "none"],
  ["Details", (a) => (a.details ?? []).map(([label, text]) => `${label}: ${text}`).join("\n") || "none"],
  ["Last error", (a) => (a.lastError ? `${agoText(a.lastError[0], now())} (${clockText(a.lastError[0])})\n${a.lastError[1]}` : "none")],
].map(([label, text]) => {
  const value = make("dd");
  page.list.append(make("div", "", make("dt", "", label), value));
  return { value, text };
});

function showDetails() {
  const node = state.detailsOpen ? state.tree.nodes.get(state.selected) : undefined;
  page.details.hidden = !node;
  if (!node) return;
  setText(page.title, node.path);
  page.list.hidden = node.actor === null;
  if (node.actor) for (const { value, text } of DETAILS) setText(value, text(node.actor));
}

function setQuery(query) {
  state.query = query;
  if (page.search.value !== query) page.search.value = query;
  refresh();
}

// --- input

page.search.addEventListener("input", () => setQuery(page.search.value));
byId("collapse").addEventListener("click", () => {
  for (const [path, node] of state.tree.nodes) if (node.children.length > 0) state.collapsed.add(path);
  refresh();
});
byId("expand").addEventListener("click", () => { state.collapsed.clear(); refresh(); });
byId("details-close").addEventListener("click", () => { openDetails(false); page.table.focus(); });
page.table.addEventListener("scroll", showRows, { passive: true });
window.addEventListener("resize", showRows);

const pageRows = () => Math.max(1, Math.floor(page.table.clientHeight / ROW_HEIGHT) - 2);
const KEYS = {
  ArrowDown: (index) => select(Math.min(index + 1, state.rows.length - 1)),
  ArrowUp: (index) => select(Math.max(index - 1, 0)),
  PageDown: (index) => select(Math.min(Math.max(index, 0) + pageRows(), state.rows.length - 1)),
  PageUp: (index) => select(Math.max(index - pageRows(), 0)),
  Home: () => select(0),
  End: () => select(state.rows.length - 1),
  Enter: () => openDetails(!state.detailsOpen),
  " ": () => openDetails(!state.detailsOpen),
  ArrowRight: (index) => {
    const row = state.rows[index];
    if (!row || row.node.children.length === 0) return;
    if (row.open) select(index + 1);
    else toggle(row.node);
  },
  ArrowLeft: (index) => {
    const row = state.rows[index];
    if (!row) return;
    if (row.open && row.node.children.length > 0 && !makeFilter(state.query, state.activities).active) toggle(row.node);
    else select(state.rows.findIndex((other) => other.node === row.node.parent));
  },
};

page.table.addEventListener("keydown", (event) => {
  const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action(selectedIndex());
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== page.search) {
    event.preventDefault();
    page.search.focus();
  } else if (event.key === "Escape") {
    if (state.detailsOpen) openDetails(false);
    else clearFilters();
    page.table.focus();
  }
});

// --- data and time

connect("dashboard/events", {
  snapshot(status) {
    state.status = status;
    state.skew = Date.parse(status.now) - Date.now();
    markQuiet(status.actors, now());
    state.tree = buildTree(status.actors);
    for (const path of state.collapsed) if (!state.tree.nodes.has(path)) state.collapsed.delete(path);
    showProcess();
    showClock();
    refresh();
  },
  connection(text) {
    setText(byId("connection"), text);
    setAttribute(byId("connection"), "data-state", text);
    document.body.classList.toggle("stale", text === "reconnecting");
  },
});

function showClock() {
  if (!state.status) return;
  setText(byId("uptime"), durationText(now() - Date.parse(state.status.process.started)));
  showHeard();
  if (markQuiet(state.status.actors, now())) refresh();
  for (const row of pool) {
    const shown = row.element.hidden ? undefined : state.rows[row.index];
    if (shown?.node.actor) showTimes(row, shown.node.actor);
  }
  showDetails();
}
setInterval(showClock, 1000);
showSummary();
