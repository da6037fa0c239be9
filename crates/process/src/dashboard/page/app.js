// The page: takes events, keeps the address and the view in step, and shows one view at a time.

import { ActorsView } from "./actors-view.js";
import { markQuiet } from "./actors.js";
import { BundleView } from "./bundle-view.js";
import { BundlesView } from "./bundles-view.js";
import { BundleList } from "./bundles.js";
import { ClustersView } from "./clusters-view.js";
import { DetailsQuestion, connect } from "./connection.js";
import { setText } from "./dom.js";
import { Feed } from "./feed.js";
import { VIEWS, showClock, showConnection, showKeys, showProcess, showTabs, troubles } from "./header.js";
import { formatRoute, parseRoute } from "./route.js";

const byId = (id) => document.getElementById(id);
const feed = new Feed();
const bundles = new BundleList();
const connection = { state: "connecting", since: 0, why: "" };
/** The last address of each view, so that a view is as it was left. */
const addresses = new Map();

const now = () => Date.now() + feed.skew;

/** What the views need of the page. */
const page = {
  feed, bundles, now,
  /** Goes to a place; the browser's back button returns. */
  go: (place) => {
    writeAddress();
    location.hash = place;
  },
  /** The same place with another query. */
  replace: (route) => {
    address = formatRoute(route);
    if (writer === 0) writer = setTimeout(writeAddress, ADDRESS_INTERVAL);
    showPlace(address);
  },
  /** The address where a view was left. */
  addressOf: (view) => addresses.get(view) ?? formatRoute({ view }),
  /** Asks for details of an actor; null for none. */
  ask: (path) => question.open(path),
  /** The row of that actor has changed. */
  askAgain: () => question.again(),
  announce: (text) => setText(byId("announcement"), text),
  showCount: (text) => setText(byId("shown"), text),
};
const question = new DetailsQuestion((path, answer) => view?.showAnswer?.(path, answer));

const VIEW_CLASSES = { bundles: BundlesView, bundle: BundleView, actors: ActorsView, clusters: ClustersView };
const views = new Map();
let view = null;

function viewOf(name) {
  if (!views.has(name)) {
    const made = new VIEW_CLASSES[name](page);
    made.element.hidden = true;
    byId("main").append(made.element);
    views.set(name, made);
  }
  return views.get(name);
}

/** The views of this program, in order. */
const viewNames = () => [...VIEWS.keys()].filter((name) => feed.figures.views.includes(name));

// --- the address

/** In milliseconds. Browsers refuse pages that change their address too often, as typing and arrow keys would. */
const ADDRESS_INTERVAL = 200;
let route = null;
/** What the address will be. */
let address = "";
let writer = 0;

function writeAddress() {
  if (writer === 0) return;
  clearTimeout(writer);
  writer = 0;
  history.replaceState(null, "", address);
}

function onAddress() {
  clearTimeout(writer);
  writer = 0;
  showPlace(location.hash);
}

/** Shows the place that a fragment names. */
function showPlace(fragment) {
  if (!feed.isKnown) return;
  let wanted = parseRoute(fragment);
  const names = viewNames();
  if (!names.includes(wanted.view)) {
    wanted = { view: names[0] ?? "actors", segments: [], query: {} };
    history.replaceState(null, "", formatRoute(wanted));
  }
  route = wanted;
  const isBundle = route.view === "bundles" && route.segments.length === 2;
  // The way back from a bundle leads to the list.
  if (!isBundle) addresses.set(route.view, formatRoute(route));
  const next = viewOf(isBundle ? "bundle" : route.view);
  const [isFirst, isOther] = [view === null, next !== view];
  if (isOther) {
    if (view) {
      view.hide?.();
      view.element.hidden = true;
    }
    view = next;
    view.element.hidden = false;
    showKeys([...view.keys, [names.map((_, index) => index + 1).join(" "), "views"]]);
  }
  view.show(route, isOther);
  if (isOther && !isFirst) view.focus?.();
  showFrame();
}

/** The parts around the view that depend on the data. */
function showFrame() {
  const names = viewNames();
  const counts = troubles(feed, bundles, names);
  showTabs({ views: names, current: route?.view, counts, addressOf: page.addressOf });
  showProcess(feed.process);
  const broken = counts[names[0]] ?? 0;
  const title = `${broken > 0 ? `✕ ${broken} · ` : ""}${view?.title ?? VIEWS.get(route?.view) ?? ""} · ${feed.process.host}`;
  if (document.title !== title) document.title = title;
}

// --- events

function onEvent(name, data) {
  const begin = performance.now();
  try {
    takeEvent(name, JSON.parse(data));
  } catch (error) {
    // A defect of the page must not look like a lost connection.
    reportError(error);
  }
  // For whoever measures the page: in milliseconds.
  document.body.dataset.version = feed.version;
  document.body.dataset.shown ??= performance.now().toFixed(0);
  document.body.dataset.took = (performance.now() - begin).toFixed(1);
}

function takeEvent(name, data) {
  const isFirst = !feed.isKnown;
  const change = feed.take(name, data, Date.now());
  if (!change) return;
  if (change.all) bundles.reset(feed.actors.values());
  else change.bundles = bundles.apply(change.changed, change.gone);
  markQuiet(feed.watchRows(), now());
  if (isFirst) {
    onAddress();
  } else {
    if (change.all && !viewNames().includes(route.view)) onAddress();
    view.update(change);
    showFrame();
  }
  showClock(feed, now());
}

function onConnection(state, why = "") {
  if (state === "lost" && connection.state !== "lost") connection.since = Date.now();
  Object.assign(connection, { state, why });
  showConnection(connection, feed);
}

function onSecond() {
  if (!feed.isKnown) return;
  showClock(feed, now());
  if (markQuiet(feed.watchRows(), now())) {
    view.update({ all: false, figures: false, changed: feed.watchRows(), gone: [], structure: false });
    showFrame();
  }
  view.tick();
}

// --- input

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !view) return;
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === "Escape") {
    view.escape();
    event.preventDefault();
  } else if (isTyping) {
    return;
  } else if (event.key === "/") {
    view.search?.focus();
    event.preventDefault();
  } else if (/^[1-9]$/.test(event.key) && viewNames()[event.key - 1]) {
    page.go(page.addressOf(viewNames()[event.key - 1]));
  } else if (event.target === document.body && view.table?.onKey(event)) {
    view.table.element.focus();
  } else {
    view.onKey?.(event.key);
  }
});
window.addEventListener("hashchange", onAddress);
// Before a link is followed, and before the page is left.
document.addEventListener("click", writeAddress, { capture: true });
window.addEventListener("pagehide", writeAddress);

setInterval(onSecond, 1000);
connect("dashboard/events", { event: onEvent, connection: onConnection });
