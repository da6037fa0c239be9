// The status of the actors as values: tree, filters, counts and texts. No page, no clock: both come in.

/** All activities in the order of the filters, with the words people read. */
export const ACTIVITIES = new Map([
  ["running", "Running"],
  ["queued", "Queued"],
  ["waiting", "Waiting"],
  ["quiet", "Quiet"],
  ["backingOff", "Back-off"],
  ["failing", "Failing"],
  ["quarantined", "Quarantined"],
  ["starting", "Starting"],
  ["idle", "Idle"],
  ["stopped", "Stopped"],
]);

const LEADERSHIPS = new Map([
  ["leading", "leading"],
  ["standby", "standby"],
  ["unneeded", "off (always active)"],
]);

/**
 * Milliseconds. An API server at rest sends a bookmark about once a minute, to watches of kinds that had a change since it was
 * started: a cluster of which no watch has heard for longer than that, and half a minute of grace, may hang.
 */
export const QUIET_AFTER = 90_000;
/** Milliseconds after which a store counts as fresh no longer if its own watch has heard nothing. */
const FRESH_FOR = 150_000;

const FRESH = new Set(["idle", "running", "queued"]);
const BAD = new Set(["failing", "quarantined"]);

export const activityText = (activity) => ACTIVITIES.get(activity) ?? activity;
export const leadershipText = (leadership) => LEADERSHIPS.get(leadership) ?? "–";
export const isBad = (activity) => BAD.has(activity);

/**
 * Marks an idle watch as `quiet` if its last contact, or that of its cluster, is too long ago, and as idle again after a contact.
 * No snapshot arrives while a server hangs, so this depends on time alone. Returns true if a watch changed.
 */
export function markQuiet(actors, now) {
  const clusters = lastHeard(actors);
  const isOver = (heard, limit) => now - Date.parse(heard) > limit;
  let changed = false;
  for (const actor of actors) {
    if (!actor.heard || (actor.activity !== "idle" && actor.activity !== "quiet")) continue;
    const quiet = isOver(actor.heard, FRESH_FOR) || isOver(clusters.get(clusterOf(actor)), QUIET_AFTER);
    const activity = quiet ? "quiet" : "idle";
    changed ||= activity !== actor.activity;
    actor.activity = activity;
  }
  return changed;
}

/** `source` or `target`, of a watch. */
const clusterOf = ({ path }) => path.split("/")[1];

/** By cluster, `source` and `target`, when it was last heard of by any of its watches. */
export function lastHeard(actors) {
  const clusters = new Map();
  for (const actor of actors) {
    const { heard } = actor;
    if (!heard) continue;
    const cluster = clusterOf(actor);
    if (!(Date.parse(clusters.get(cluster)) >= Date.parse(heard))) clusters.set(cluster, heard);
  }
  return clusters;
}

/** Counts of all actors: by activity, and what the tiles show. */
export function summarize(actors) {
  const activities = new Map([...ACTIVITIES.keys()].map((activity) => [activity, 0]));
  const summary = { activities, actors: actors.length, failing: 0, stores: 0, fresh: 0, restarts: 0 };
  for (const actor of actors) {
    activities.set(actor.activity, (activities.get(actor.activity) ?? 0) + 1);
    summary.restarts += actor.restarts;
    if (isBad(actor.activity)) summary.failing += 1;
    if (actor.role === "watch") {
      summary.stores += 1;
      if (FRESH.has(actor.activity)) summary.fresh += 1;
    }
  }
  return summary;
}

/** The actors as a tree by the segments of their paths; a segment without an actor becomes a group. */
export function buildTree(actors) {
  const root = newNode("", "", -1);
  const nodes = new Map();
  for (const actor of actors) {
    nodeAt(root, nodes, actor.path).actor = actor;
  }
  sortAndCount(root);
  return { root, nodes };
}

function newNode(path, name, depth) {
  return { path, name, depth, actor: null, parent: null, children: [], below: 0, failing: 0, backingOff: 0 };
}

function nodeAt(root, nodes, path) {
  const known = nodes.get(path);
  if (known) return known;
  const slash = path.lastIndexOf("/");
  const parent = slash < 0 ? root : nodeAt(root, nodes, path.slice(0, slash));
  const node = newNode(path, path.slice(slash + 1), parent.depth + 1);
  node.parent = parent;
  parent.children.push(node);
  nodes.set(path, node);
  return node;
}

/** Sorts children by name and counts, for each node, the actors below it. */
function sortAndCount(node) {
  node.children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  for (const child of node.children) {
    sortAndCount(child);
    const activity = child.actor?.activity;
    node.below += child.below + (child.actor ? 1 : 0);
    node.failing += child.failing + (isBad(activity) ? 1 : 0);
    node.backingOff += child.backingOff + (activity === "backingOff" ? 1 : 0);
  }
}

/** A filter of the words of `query` (all must occur) and of `activities` (one must be it; empty = any). */
export function makeFilter(query, activities) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const active = words.length > 0 || activities.size > 0;
  const matches = (actor) => {
    if (activities.size > 0 && !activities.has(actor.activity)) return false;
    if (words.length === 0) return true;
    const error = actor.lastError ? actor.lastError[1] : "";
    const details = (actor.details ?? []).flat().join("\n");
    const text = `${actor.path}\n${actor.line}\n${actor.current ?? ""}\n${actor.problem ?? ""}\n${error}\n${details}\nrole:${actor.role}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return { active, matches };
}

/**
 * The rows to show, top to bottom. Without a filter: everything but what lies below a collapsed node. With one: what
 * matches and its ancestors, collapsed or not.
 */
export function visibleRows(tree, filter, collapsed) {
  const rows = [];
  const walk = (node) => {
    const at = rows.length;
    const matches = node.actor !== null && filter.matches(node.actor);
    rows.push({ node, open: true, faint: filter.active && !matches });
    if (!filter.active && collapsed.has(node.path) && node.children.length > 0) {
      rows[at].open = false;
      return;
    }
    node.children.forEach(walk);
    if (filter.active && !matches && rows.length === at + 1) rows.pop();
  };
  tree.root.children.forEach(walk);
  return rows;
}

/** A duration in milliseconds as at most two units: `45s`, `3m 20s`, `2d 4h`. */
export function durationText(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [s, m, h, d] = [seconds % 60, Math.floor(seconds / 60) % 60, Math.floor(seconds / 3600) % 24, Math.floor(seconds / 86400)];
  if (d > 0) return h > 0 ? `${d}d ${h}h` : `${d}d`;
  if (h > 0) return m > 0 ? `${h}h ${m}m` : `${h}h`;
  if (m > 0) return s > 0 ? `${m}m ${s}s` : `${m}m`;
  return `${s}s`;
}

/** The time until `timestamp`, rounded up so that it ends with `1s`, then `now`. */
export function countdownText(timestamp, now) {
  if (!timestamp) return "";
  const left = Date.parse(timestamp) - now;
  return left <= 0 ? "now" : durationText(left + 999);
}

export const agoText = (timestamp, now) => `${durationText(now - Date.parse(timestamp))} ago`;

/** `2026-05-01T10:11:12.345678901Z` without the fraction. */
export const clockText = (timestamp) => timestamp.replace(/\.\d+/, "").replace("T", " ");
