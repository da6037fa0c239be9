// The top of the page: the process, the views, and how fresh everything is.

import { QUIET_AFTER, isBad, lastHeard, leadershipText } from "./actors.js";
import { make, makeLink, setAttribute, setText, setTitle, showList } from "./dom.js";
import { agoText, clockText, countText, durationText } from "./text.js";

const byId = (id) => document.getElementById(id);

/** The words of each view, in the order of the keys 1, 2, 3. */
export const VIEWS = new Map([
  ["bundles", "Bundles"],
  ["actors", "Actors"],
  ["clusters", "Clusters"],
]);

/** Links to the views. `views` are in order; `counts` tells how many troubles each has; `addressOf` is where a view was left. */
export function showTabs({ views, current, counts, addressOf }) {
  showList(byId("tabs"), views, () => {
    const [key, label, badge] = [make("kbd"), make("span"), make("span", "badge bad")];
    setAttribute(key, "aria-hidden", "true");
    return { element: makeLink("tab", "", key, label, badge), key, label, badge };
  }, (tab, view, index) => {
    setText(tab.key, `${index + 1}`);
    setText(tab.label, VIEWS.get(view));
    const count = counts[view] ?? 0;
    setText(tab.badge, count > 0 ? countText(count) : "");
    setTitle(tab.badge, count > 0 ? `${countText(count)} with a problem` : "");
    setAttribute(tab.element, "href", addressOf(view));
    setAttribute(tab.element, "aria-current", view === current ? "page" : null);
    setAttribute(tab.element, "data-view", view);
  });
}

/** How many troubles each view has. Each is counted in one view only. */
export function troubles(feed, bundles, views) {
  let actors = 0;
  for (const row of feed.actors.values()) {
    if (isBad(row.activity) && row.role !== "watch" && !(row.object && views.includes("bundles"))) actors += 1;
  }
  const watches = feed.watchRows().filter(({ activity }) => activity === "failing" || activity === "quiet").length;
  const groups = feed.figures.clusters.reduce((sum, { discovery }) => sum + (discovery?.failed?.length ?? 0), 0);
  return { bundles: bundles.broken, actors, clusters: watches + groups };
}

export function showProcess(process) {
  setText(byId("name"), process.name);
  setText(byId("version"), process.version);
  setText(byId("host"), process.host);
  const leads = process.leadership !== "standby";
  setText(byId("leadership"), !leads && process.leader ? `standby of ${process.leader}` : leadershipText(process.leadership));
  setAttribute(byId("leadership"), "data-state", process.leadership);
  setTitle(byId("leadership"), process.leader ? `leader: ${process.leader}` : "");
}

/** What changes with time alone. */
export function showClock(feed, now) {
  setText(byId("uptime"), durationText(now - Date.parse(feed.process.started)));
  const clusters = [...lastHeard(feed.watchRows())];
  const isQuiet = clusters.some(([, heard]) => now - Date.parse(heard) > QUIET_AFTER);
  setText(byId("heard"), clusters.map(([cluster, heard]) => `${cluster} ${agoText(heard, now)}`).join(" · ") || "never");
  setAttribute(byId("heard"), "data-state", isQuiet || clusters.length === 0 ? "quiet" : "live");
}

/** `state`: `connecting`, `live` or `lost`, since a time of the browser's clock. */
export function showConnection({ state, since, why }, feed) {
  const lost = state === "lost";
  setText(byId("connection"), lost ? "lost" : state);
  setAttribute(byId("connection"), "data-state", state);
  document.body.classList.toggle("stale", lost && feed.isKnown);
  const banner = byId("banner");
  banner.hidden = !lost;
  if (!lost) return;
  const asOf = feed.isKnown ? ` What you see is as of ${clockText(new Date(since + feed.skew).toISOString())}.` : "";
  setText(banner, `Connection lost (${why}).${asOf} Connecting again …`);
}

/** Key and meaning, at the bottom of the page. */
export function showKeys(keys) {
  showList(byId("keys"), keys, () => {
    const [kbd, text] = [make("kbd"), document.createTextNode("")];
    return { element: make("span", "", kbd, text), kbd, text };
  }, (shown, [key, meaning]) => {
    setText(shown.kbd, key);
    const text = ` ${meaning}`;
    if (shown.text.data !== text) shown.text.data = text;
  });
}
