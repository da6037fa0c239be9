// The clusters: watches and caches, requests, what is served; then webhooks, certificate, leader and configuration.

import { activityText, clusterOf, kindOf, lastHeard, leadershipText, QUIET_AFTER } from "./actors.js";
import { wordsOf } from "./bundles.js";
import { make, makeLink, makePanel, setAttribute, setClass, setText, setTitle, showFacts, showList } from "./dom.js";
import { addressOfActor } from "./route.js";
import { agoText, clockText, countText, durationText, pluralText, rateText, secondsText, shortAgo, whenText } from "./text.js";
import { makeSearch } from "./tools.js";

/** Watches in the order of their troubles. */
const RANKS = new Map([["failing", 0], ["quarantined", 0], ["quiet", 1], ["backingOff", 2], ["waiting", 3], ["starting", 3]]);
/** In milliseconds. A certificate that ends sooner is worth a look. */
const CERTIFICATE_SOON = 14 * 86_400_000;
/** Codes of an API server that has too much to do, or does not answer. */
const BUSY = new Set(["429", "500", "502", "503", "504", "<error>"]);

export class ClustersView {
  title = "Clusters";
  keys = [["/", "search"], ["Esc", "clear"]];
  #page;
  #query = "";

  constructor(page) {
    this.#page = page;
    const search = makeSearch("Search kinds and configuration", "Kind, error, key of the configuration", { input: (query) => this.#goTo(query), leave: () => this.focus() });
    this.search = search.input;
    this.webhookList = make("div", "webhook-rows");
    const columns = [["Path", "path"], ["Per second", "number"], ["Total", "number total"], ["Median", "number"], ["99 of 100", "number"], ["Errors", "number"]];
    this.webhooks = makePanel("webhooks-panel", "Webhooks", makeTable("Webhooks", "webhook-table", makeHead("webhook-row", columns), this.webhookList));
    this.processFacts = make("dl", "facts-list");
    this.process = makePanel("process-panel", "Process", this.processFacts);
    this.lines = make("ol", "config");
    setAttribute(this.lines, "tabindex", "0");
    setAttribute(this.lines, "aria-label", "Configuration in effect");
    this.found = make("span", "fold-summary");
    this.config = makePanel("config-panel", "Configuration in effect", this.lines);
    this.config.head.append(this.found);
    this.clusters = [make("div", "stack"), make("div", "stack")];
    this.columns = [make("div", "stack", this.clusters[0], this.process.panel, this.webhooks.panel), make("div", "stack", this.clusters[1], this.config.panel)];
    this.element = make("section", "view clusters", make("div", "tools", search.element), make("div", "cluster-grid", ...this.columns));
    this.element.tabIndex = -1;
    setAttribute(this.element, "aria-label", "Clusters");
  }

  // --- what the page calls

  show({ query }, isOther) {
    this.#query = query.q ?? "";
    if (this.search.value !== this.#query) this.search.value = this.#query;
    if (isOther) this.#page.ask(null);
    this.#refresh();
    this.#showConfig();
  }

  update(change) {
    if (change.all) this.#showConfig();
    if (change.all || change.figures || change.gone.length > 0 || change.changed.some(({ role }) => role === "watch")) this.#refresh();
  }

  tick() {
    this.#refresh();
  }

  focus() {
    this.element.focus({ preventScroll: true });
  }

  escape() {
    this.#goTo("");
    this.focus();
  }

  #goTo(query) {
    this.#page.replace({ view: "clusters", query: { q: query } });
  }

  // --- what is shown

  #refresh() {
    const { feed } = this.#page;
    const now = this.#page.now();
    const watches = groupBy(feed.watchRows(), clusterOf);
    const known = new Map(feed.figures.clusters.map((cluster) => [cluster.name, cluster]));
    const names = [...new Set([...known.keys(), ...watches.keys()])];
    const heard = lastHeard(feed.watchRows());
    const words = wordsOf(this.#query);
    // One cluster after the other into the two columns.
    this.clusters.forEach((host, column) => showList(host, names.filter((_, index) => index % 2 === column), makeCluster, (shown, name) => {
      showCluster(shown, { name, ...known.get(name) }, { watches: watches.get(name) ?? [], heard: heard.get(name), words, now });
    }));
    this.#page.showCount(pluralText(names.length, "cluster"));
    this.#showWebhooks();
    this.#showProcess(now);
  }

  #showWebhooks() {
    const { webhooks } = this.#page.feed.figures;
    this.webhooks.panel.hidden = webhooks.length === 0;
    showList(this.webhookList, webhooks, () => makeCells("webhook-row", ["path", "number", "number total", "number", "number", "number"]), ({ cells }, { path, perSecond, total, errors, p50, p99 }) => {
      [path, rateText(perSecond), countText(total ?? 0), total > 0 ? secondsText(p50) : "–", total > 0 ? secondsText(p99) : "–", countText(errors ?? 0)].forEach((text, index) => setText(cells[index], text));
      setClass(cells[5], `number ${errors > 0 ? "bad" : "faint"}`);
      setTitle(cells[0], path);
    });
  }

  #showProcess(now) {
    const { process, figures } = this.#page.feed;
    const end = figures.certificate?.notAfter;
    const left = end ? Date.parse(end) - now : Infinity;
    showFacts(this.processFacts, [
      ["Leader election", leadershipText(process.leadership)],
      ["Leader", process.leader ?? ""],
      ["Serving certificate", end ? `${left > 0 ? `ends in ${durationText(left)}` : `ended ${durationText(-left)} ago`} (${clockText(end)})` : "", left <= 0 ? "bad" : left < CERTIFICATE_SOON ? "warn" : ""],
      ["Host", process.host],
      ["Version", process.version],
      ["Started", whenText(process.started, now)],
    ]);
  }

  #showConfig() {
    const { config } = this.#page.feed;
    this.config.panel.hidden = config === "";
    const words = wordsOf(this.#query);
    let found = 0;
    let first = null;
    showList(this.lines, config.replace(/\n$/, "").split("\n"), () => ({ element: make("li") }), ({ element }, line) => {
      setText(element, line);
      const matches = words.length > 0 && words.every((word) => line.toLowerCase().includes(word));
      setClass(element, matches ? "found" : "");
      if (!matches) return;
      found += 1;
      first ??= element;
    });
    setText(this.found, words.length > 0 ? `${pluralText(found, "line")} found` : "");
    if (first) this.lines.scrollTop = first.offsetTop - this.lines.clientHeight / 3;
  }
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

function makeHead(className, columns) {
  const head = make("div", `${className} head`, ...columns.map(([label, cellClass]) => {
    const cell = make("span", cellClass, label);
    setAttribute(cell, "role", "columnheader");
    return cell;
  }));
  setAttribute(head, "role", "row");
  return head;
}

function makeTable(label, className, head, rows) {
  setAttribute(rows, "role", "rowgroup");
  const table = make("div", className, head, rows);
  for (const [name, value] of [["role", "table"], ["aria-label", label], ["tabindex", "0"]]) setAttribute(table, name, value);
  return table;
}

function makeCells(className, classes) {
  const cells = classes.map((cellClass) => make("span", cellClass));
  for (const cell of cells) setAttribute(cell, "role", "cell");
  const element = make("div", className, ...cells);
  setAttribute(element, "role", "row");
  return { element, cells };
}

// --- one cluster

function makeCluster() {
  const shown = { facts: make("dl", "facts-list"), watches: make("div", "watch-rows"), requests: make("div", "request-rows"), failed: make("ul", "failed-groups"), state: make("span", "fold-summary") };
  const watchTable = makeTable("Watches", "watch-table", makeHead("watch-row", [["Kind", "kind"], ["State", "watch-state"], ["Heard", "number"], ["Holds", "records"]]), shown.watches);
  shown.requestTitle = make("h3", "", "Requests");
  shown.requestTable = makeTable("Requests", "request-table", makeHead("request-row", [["Request", "verb"], ["Per second", "number"], ["Total", "number total"], ["By code, a second", "codes"]]), shown.requests);
  shown.parts = makePanel("cluster", "", shown.facts, shown.failed, make("h3", "", "Watches"), watchTable, shown.requestTitle, shown.requestTable);
  shown.parts.head.append(shown.state);
  shown.element = shown.parts.panel;
  return shown;
}

function showCluster(shown, cluster, { watches, heard, words, now }) {
  const { name, sameAs, server, version, limiter, discovery, requests = [] } = cluster;
  setText(shown.parts.heading, name);
  setAttribute(shown.element, "aria-label", `Cluster ${name}`);
  const failing = watches.filter(({ activity }) => activity === "failing").length;
  const quiet = !heard || now - Date.parse(heard) > QUIET_AFTER;
  setText(shown.state, failing > 0 ? `${pluralText(failing, "watch", "watches")} of ${watches.length} failing` : quiet && watches.length > 0 ? "quiet" : `${pluralText(watches.length, "watch", "watches")} fresh`);
  setClass(shown.state, `fold-summary ${failing > 0 ? "tone-bad" : quiet ? "tone-warn" : "tone-good"}`);
  showFacts(shown.facts, [
    ["Server", server],
    ["Version", version],
    ["Last heard", heard ? agoText(heard, now) : "never", quiet ? "warn" : ""],
    ["Served kinds", discovery ? `${countText(discovery.kinds ?? 0)}${discovery.at ? `, ${shortAgo(discovery.at, now)}` : ""}` : ""],
    ["Same connection as", sameAs],
    ["Rate limit", limiter && !sameAs ? limitText(limiter) : "", "", "requests a second, and burst, of each type of resource"],
    ["Waiting for it", limiter && !sameAs ? countText(limiter.waiting ?? 0) : "", limiter?.waiting > 0 ? "warn" : ""],
    ["Writes under way", limiter && !sameAs ? countText(limiter.inFlight ?? 0) : ""],
    ["Requests a second", requests.length > 0 && !sameAs ? rateText(requests.reduce((sum, { perSecond }) => sum + perSecond, 0)) : ""],
  ]);
  const failed = discovery?.failed ?? [];
  shown.failed.hidden = failed.length === 0;
  showList(shown.failed, failed, () => ({ element: make("li") }), ({ element }, { group, error }) => setText(element, `${group} cannot be discovered: ${error}`));
  showWatches(shown.watches, watches, words, now);
  // A shared connection has one limit and one count of requests.
  shown.requestTitle.hidden = Boolean(sameAs);
  shown.requestTable.hidden = Boolean(sameAs);
  showRequests(shown.requests, requests);
}

const limitText = ({ qps, burst }) => (qps ? `${countText(qps)}/s, burst ${countText(burst ?? 0)}` : "none");

function showWatches(host, watches, words, now) {
  const rank = ({ activity }) => RANKS.get(activity) ?? 9;
  const matching = watches.filter((row) => words.length === 0 || words.every((word) => `${row.path}\n${row.lastError?.[1] ?? ""}\n${row.line}`.toLowerCase().includes(word)));
  // If nothing matches, the words are meant for the configuration.
  const found = matching.length > 0 ? matching : watches;
  const inOrder = [...found].sort((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
  showList(host, inOrder, () => {
    const row = { kind: makeLink("kind", ""), dot: make("span", "dot"), word: make("span"), heard: make("span", "number"), records: make("span", "records"), error: make("span", "watch-error") };
    row.element = make("div", "watch-row", row.kind, make("span", "watch-state", row.dot, row.word), row.heard, row.records, row.error);
    setAttribute(row.element, "role", "row");
    for (const cell of row.element.children) setAttribute(cell, "role", "cell");
    row.kind.setAttribute("role", "cell");
    return row;
  }, (row, watch) => {
    const { activity, lastError, problem, heard, line, path } = watch;
    setText(row.kind, kindOf(watch));
    setTitle(row.kind, path);
    setAttribute(row.kind, "href", addressOfActor(path));
    setClass(row.dot, `dot ${activity}`);
    setText(row.word, activityText(activity).toLowerCase());
    setText(row.heard, heard ? shortAgo(heard, now) : "–");
    setText(row.records, line);
    const isBad = activity === "failing" || activity === "quarantined";
    setText(row.error, problem ?? (lastError ? `${agoText(lastError[0], now)}: ${lastError[1]}` : ""));
    setClass(row.error, `watch-error ${isBad ? "problem" : "past"}`);
    row.error.hidden = row.error.textContent === "";
    setClass(row.element, `watch-row ${isBad ? "is-failing" : ""}`);
  });
}

/** A row for each verb, the busiest first, with its codes. */
function showRequests(host, requests) {
  const verbs = [...groupBy(requests, ({ verb }) => verb)].map(([verb, rows]) => ({
    verb, rows: [...rows].sort((a, b) => (a.code < b.code ? -1 : 1)),
    perSecond: rows.reduce((sum, row) => sum + row.perSecond, 0), total: rows.reduce((sum, row) => sum + row.total, 0),
  }));
  verbs.sort((a, b) => b.perSecond - a.perSecond || b.total - a.total);
  showList(host, verbs, () => makeCells("request-row", ["verb", "number", "number total", "codes"]), ({ cells }, { verb, rows, perSecond, total }) => {
    [verb, rateText(perSecond), countText(total)].forEach((text, index) => setText(cells[index], text));
    showList(cells[3], rows, () => {
      const [code, rate] = [make("span"), make("span", "rate")];
      return { element: make("span", "code", code, rate), code, rate };
    }, (item, { code, perSecond: rate, total: count }) => {
      setText(item.code, code);
      setText(item.rate, rateText(rate));
      setTitle(item.element, `${countText(count)} in all`);
      setClass(item.element, `code ${rate === 0 ? "faint" : BUSY.has(code) ? "warn" : ""}`);
    });
  });
}
