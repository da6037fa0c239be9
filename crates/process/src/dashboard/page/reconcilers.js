// The reconcilers: permits in use, what waits, how long reconciles and waits take, results of the last minutes.

import { make, makeButton, makeSvg, setAttribute, setClass, setText, setTitle, showList } from "./dom.js";
import { RESULTS, condense, heights, quantile, resultsOf, totalOf } from "./histogram.js";
import { countText, pluralText, secondsText } from "./text.js";

const BAR_HEIGHT = 18;
const BAR_WIDTH = 4;
const RESULT_NAMES = [...RESULTS.keys()];

const COLUMNS = [
  ["Reconciler", "reconciler"], ["Permits", "permits", "in use, of concurrentSyncs"], ["Waiting", "number waiting", "wakes that wait for a permit"],
  ["Duration", "histogram", "of a reconcile: bars from fast to slow, then median and the slowest hundredth"], ["Wait", "histogram waits", "for a permit"],
  ["Last ten minutes", "minutes"], ["Errors", "number errors", "in the last ten minutes"],
];

export class Reconcilers {
  isOpen = false;

  constructor() {
    this.toggle = makeButton("fold", () => this.#fold(), "Reconcilers");
    this.summary = make("span", "fold-summary");
    this.body = make("div", "reconciler-rows");
    const head = make("div", "reconciler-row head", ...COLUMNS.map(([label, className, title]) => {
      const cell = make("span", className, label);
      if (title) setAttribute(cell, "title", title);
      setAttribute(cell, "role", "columnheader");
      return cell;
    }));
    setAttribute(head, "role", "row");
    this.table = make("div", "reconciler-table", head, this.body);
    setAttribute(this.table, "role", "table");
    setAttribute(this.table, "aria-label", "Reconcilers");
    setAttribute(this.table, "tabindex", "0");
    setAttribute(this.body, "role", "rowgroup");
    this.element = make("section", "panel reconcilers", make("div", "panel-head", make("h2", "", this.toggle), this.summary), this.table);
    this.#fold(!matchMedia("(max-width: 760px)").matches);
  }

  #fold(open = !this.isOpen) {
    this.isOpen = open;
    this.table.hidden = !open;
    setAttribute(this.toggle, "aria-expanded", `${open}`);
  }

  show(reconcilers) {
    this.element.hidden = reconcilers.length === 0;
    const results = reconcilers.map(({ minutes }) => resultsOf(minutes));
    const errors = results.reduce((sum, { error }) => sum + error, 0);
    const running = reconcilers.reduce((sum, each) => sum + (each.running ?? 0), 0);
    const waiting = reconcilers.reduce((sum, each) => sum + (each.waiting ?? 0), 0);
    setText(this.summary, `${countText(running)} running · ${countText(waiting)} waiting · ${pluralText(errors, "error")} in ten minutes`);
    showList(this.body, reconcilers, makeRow, (row, reconciler, index) => fill(row, reconciler, results[index]));
  }
}

function makeRow() {
  const row = {
    name: make("span", "reconciler"), used: make("span", "used"), permits: make("span", "permits-text"), waiting: make("span", "number waiting"),
    durations: makeHistogram("histogram"), waits: makeHistogram("histogram waits"), minutes: makeBars("minutes"), errors: make("span", "number errors"),
  };
  row.cells = [
    row.name, make("span", "permits", make("span", "gauge", row.used), row.permits), row.waiting, row.durations.element, row.waits.element, row.minutes.element, row.errors,
  ];
  row.element = make("div", "reconciler-row", ...row.cells);
  setAttribute(row.element, "role", "row");
  for (const cell of row.cells) setAttribute(cell, "role", "cell");
  return row;
}

function fill(row, { controller, reconciler, permits, running = 0, waiting = 0, durations, waits, minutes = [] }, results) {
  setText(row.name, reconciler === controller ? controller : `${controller} / ${reconciler}`);
  setTitle(row.name, `controller ${controller}, reconciler ${reconciler}`);
  row.used.style.width = `${permits > 0 ? Math.min(100, (100 * running) / permits) : 0}%`;
  row.used.classList.toggle("full", permits > 0 && running >= permits);
  setText(row.permits, `${running} / ${permits ?? "–"}`);
  setText(row.waiting, countText(waiting));
  row.waiting.classList.toggle("faint", waiting === 0);
  showHistogram(row.durations, durations);
  showHistogram(row.waits, waits);
  showMinutes(row.minutes, minutes, results);
  setText(row.errors, countText(results.error));
  setClass(row.errors, `number errors ${results.error > 0 ? "bad" : "faint"}`);
}

// --- small pictures

function makeBars(className) {
  const picture = makeSvg("svg", { height: BAR_HEIGHT, class: "bars", role: "img" });
  return { element: make("span", className, picture), picture, bars: [] };
}

function makeHistogram(className) {
  const bars = makeBars(className);
  bars.text = make("span", "quantiles");
  bars.element.append(bars.text);
  return bars;
}

/** Gives the picture `count` rectangles, and returns them. */
function rectangles(bars, count) {
  while (bars.bars.length < count) {
    const bar = makeSvg("rect", { width: BAR_WIDTH - 1 });
    bars.picture.append(bar);
    bars.bars.push(bar);
  }
  setAttribute(bars.picture, "width", `${(bars.columns ?? count) * BAR_WIDTH}`);
  return bars.bars;
}

function place(bar, column, from, height, className) {
  setAttribute(bar, "x", `${column * BAR_WIDTH}`);
  setAttribute(bar, "y", (BAR_HEIGHT - from - height).toFixed(1));
  setAttribute(bar, "height", height.toFixed(1));
  setAttribute(bar, "class", className);
}

function showHistogram(bars, histogram = {}) {
  const { counts, bounds } = condense(histogram);
  bars.columns = counts.length;
  const bar = rectangles(bars, counts.length);
  for (const unused of bar.slice(counts.length)) setAttribute(unused, "height", "0");
  heights(counts).forEach((height, index) => place(bar[index], index, 0, counts[index] > 0 ? Math.max(1.5, height * BAR_HEIGHT) : 0.75, counts[index] > 0 ? "some" : "none"));
  const [median, slow] = [quantile(histogram, 0.5), quantile(histogram, 0.99)];
  setText(bars.text, median === null ? "–" : `${secondsText(median)} · ${secondsText(slow)}`);
  const buckets = counts.map((count, index) => (count > 0 ? `${index < bounds.length ? `≤ ${secondsText(bounds[index])}` : `> ${secondsText(bounds.at(-1))}`}: ${countText(count)}` : "")).filter((text) => text);
  setTitle(bars.element, [`${countText(totalOf(histogram))} in all`, median === null ? "" : `median ${secondsText(median)}, 99 of 100 below ${secondsText(slow)}`, ...buckets].filter((text) => text).join("\n"));
  setAttribute(bars.picture, "aria-label", median === null ? "none" : `median ${secondsText(median)}, 99 of 100 below ${secondsText(slow)}`);
}

/** Results of each minute as a column, oldest first, errors on top. */
function showMinutes(bars, minutes, results) {
  bars.columns = minutes.length;
  const bar = rectangles(bars, minutes.length * RESULT_NAMES.length);
  const inOrder = [...minutes].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const sums = inOrder.map((minute) => RESULT_NAMES.reduce((sum, result) => sum + (minute[result] ?? 0), 0));
  const most = Math.max(1, ...sums);
  inOrder.forEach((minute, column) => {
    let from = 0;
    RESULT_NAMES.forEach((result, index) => {
      const count = minute[result] ?? 0;
      // One error among many successes must be seen.
      const height = count === 0 ? 0 : Math.max(result === "error" ? 2 : 1, (count / most) * BAR_HEIGHT);
      const fits = Math.min(height, BAR_HEIGHT - from);
      place(bar[column * RESULT_NAMES.length + index], column, result === "error" ? Math.min(from, BAR_HEIGHT - height) : from, result === "error" ? height : fits, `result-${result}`);
      from += fits;
    });
  });
  const text = RESULT_NAMES.filter((result) => results[result] > 0).map((result) => `${RESULTS.get(result).text} ${countText(results[result])}`).join(", ");
  setTitle(bars.element, text || "none");
  setAttribute(bars.picture, "aria-label", text || "none");
}
