// Actors as values: tree, filters, order and counts. No page, no clock: both come in.

import { wordsOf } from "./bundles.js";

/** All activities in the order of the filters, with the words people read. */
export const ACTIVITIES = new Map([
  ["failing", "Failing"],
  ["backingOff", "Back-off"],
  ["running", "Running"],
  ["idle", "Idle"],
  ["quarantined", "Quarantined"],
  ["quiet", "Quiet"],
  ["queued", "Queued"],
  ["waiting", "Waiting"],
  ["starting", "Starting"],
  ["stopped", "Stopped"],
]);

/** Filters that are there even if they would find nothing. */
export const COMMON = new Set(["failing", "backingOff", "running", "idle"]);

const WORST_FIRST = ["failing", "quarantined", "backingOff", "quiet", "running", "queued", "waiting", "starting", "idle", "stopped"];
const RANKS = new Map(WORST_FIRST.map((activity, rank) => [activity, rank]));

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

const BAD = new Set(["failing", "quarantined"]);

export const activityText = (activity) => ACTIVITIES.get(activity) ?? activity;
export const leadershipText = (leadership) => LEADERSHIPS.get(leadership) ?? "–";
export const isBad = (activity) => BAD.has(activity);

/**
 * Marks an idle watch as `quiet` if its last contact, or that of its cluster, is too long ago, and as idle again after a contact.
 * No event arrives while a server hangs, so this depends on time alone. Returns true if a watch changed.
 */
export function markQuiet(watches, now) {
  const clusters = lastHeard(watches);
  const isOver = (heard, limit) => now - Date.parse(heard) > limit;
  let changed = false;
  for (const watch of watches) {
    if (!watch.heard || (watch.activity !== "idle" && watch.activity !== "quiet")) continue;
    const quiet = isOver(watch.heard, FRESH_FOR) || isOver(clusters.get(clusterOf(watch)), QUIET_AFTER);
    const activity = quiet ? "quiet" : "idle";
    changed ||= activity !== watch.activity;
    watch.activity = activity;
  }
  return changed;
}

/** The cluster of a watch, e.g. `source`. */
export const clusterOf = ({ path }) => path.split("/")[1] ?? "";

/** The kind of a watch, e.g. `deployments.v1.apps`. */
export const kindOf = ({ path }) => path.split("/").slice(2).join("/");

/** By cluster, when it was last heard of by any of its watches. */
export function lastHeard(watches) {
  const clusters = new Map();
  for (const watch of watches) {
    const { heard } = watch;
    if (!heard) continue;
    const cluster = clusterOf(watch);
    if (!(Date.parse(clusters.get(cluster)) >= Date.parse(heard))) clusters.set(cluster, heard);
  }
  return clusters;
}

/** Numbers of actors by activity, and how many actors restarted. */
export function summarize(actors) {
  const activities = new Map([...ACTIVITIES.keys()].map((activity) => [activity, 0]));
  let restarted = 0;
  for (const actor of actors) {
    activities.set(actor.activity, (activities.get(actor.activity) ?? 0) + 1);
    if (actor.restarts > 0) restarted += 1;
  }
  return { activities, restarted };
}

/** The actors as a tree by the segments of their paths; a segment without an actor becomes a group. */
export class ActorTree {
  root = newNode("", "");
  nodes = new Map();

  /** Takes all actors. */
  reset(actors) {
    this.root = newNode("", "");
    this.nodes = new Map();
    for (const actor of actors) this.#nodeAt(actor.path).actor = actor;
    sortChildren(this.root);
    count(this.root);
  }

  /** Takes actors that changed, none of which is new. */
  update(actors) {
    for (const actor of actors) this.#nodeAt(actor.path).actor = actor;
    count(this.root);
  }

  #nodeAt(path) {
    const known = this.nodes.get(path);
    if (known) return known;
    const slash = path.lastIndexOf("/");
    const parent = slash < 0 ? this.root : this.#nodeAt(path.slice(0, slash));
    const node = newNode(path, path.slice(slash + 1));
    node.parent = parent;
    parent.children.push(node);
    this.nodes.set(path, node);
    return node;
  }

  /** Paths of nodes with more than `limit` actors below them, which are better collapsed at first. */
  large(limit) {
    return [...this.nodes.values()].filter(({ below }) => below > limit).map(({ path }) => path);
  }
}

function newNode(path, name) {
  return { path, name, actor: null, parent: null, children: [], below: 0, failing: 0, backingOff: 0 };
}

function sortChildren(node) {
  node.children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  node.children.forEach(sortChildren);
}

/** Counts, for each node, the actors below it. */
function count(node) {
  node.below = 0;
  node.failing = 0;
  node.backingOff = 0;
  for (const child of node.children) {
    count(child);
    const activity = child.actor?.activity;
    node.below += child.below + (child.actor ? 1 : 0);
    node.failing += child.failing + (isBad(activity) ? 1 : 0);
    node.backingOff += child.backingOff + (activity === "backingOff" ? 1 : 0);
  }
}

const texts = new WeakMap();

/** What is searched of a row, in lower case. A changed row is a new one. */
function textOf(actor) {
  let text = texts.get(actor);
  if (text === undefined) {
    const { path, line, current, problem, lastError, role } = actor;
    text = `${path}\n${line}\n${current ?? ""}\n${problem ?? ""}\n${lastError?.[1] ?? ""}\nrole:${role}`.toLowerCase();
    texts.set(actor, text);
  }
  return text;
}

/** A filter of the words of `query` (all must occur), of `activities` (one must be it; empty = any), and of restarted actors. */
export function makeFilter({ query, activities, restarted = false }) {
  const words = wordsOf(query);
  const active = words.length > 0 || activities.size > 0 || restarted;
  const matches = (actor) => {
    if (activities.size > 0 && !activities.has(actor.activity)) return false;
    if (restarted && actor.restarts === 0) return false;
    return words.length === 0 || words.every((word) => textOf(actor).includes(word));
  };
  return { active, matches };
}

/**
 * The rows to show as a tree, top to bottom. Without a filter: everything except nodes below a collapsed one. With a filter: what
 * matches and its ancestors, collapsed or not.
 */
export function treeRows(tree, filter, collapsed) {
  const rows = [];
  const walk = (top, depth) => {
    let [node, label] = [top, top.name];
    // A group of one is a row together with it.
    while (node.actor === null && node.children.length === 1) {
      [node] = node.children;
      label += `/${node.name}`;
    }
    const at = rows.length;
    const matches = node.actor !== null && filter.matches(node.actor);
    rows.push({ node, open: true, faint: filter.active && !matches, depth, label });
    if (!filter.active && collapsed.has(node.path) && node.children.length > 0) {
      rows[at].open = false;
      return;
    }
    for (const child of node.children) walk(child, depth + 1);
    if (filter.active && !matches && rows.length === at + 1) rows.pop();
  };
  for (const child of tree.root.children) walk(child, 0);
  return rows;
}

/** Columns that sort, and whether the first click sorts descending. The first is the tree. */
export const SORTS = new Map([
  ["name", false], ["state", false], ["mailbox", true], ["finished", true], ["restarts", true], ["next", false], ["error", true],
]);
export const DEFAULT_SORT = { column: "name", descending: false };

const VALUES = {
  name: ({ path }) => path,
  state: ({ activity }) => RANKS.get(activity) ?? RANKS.size,
  mailbox: ({ mailbox, mailboxHigh }) => mailbox * 1e6 + mailboxHigh,
  finished: ({ finished }) => finished,
  restarts: ({ restarts }) => restarts,
  next: ({ nextTimer }) => (nextTimer ? Date.parse(nextTimer) : Infinity),
  error: ({ problem, lastError }) => (lastError ? Date.parse(lastError[0]) : problem ? 0 : -1),
};

/** The rows to show as a list in the order of a column. */
export function flatRows(tree, filter, { column, descending }) {
  const value = VALUES[column];
  const sign = descending ? -1 : 1;
  const found = [];
  for (const node of tree.nodes.values()) if (node.actor && filter.matches(node.actor)) found.push({ node, value: value(node.actor) });
  found.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : a.node.path < b.node.path ? -1 : 1));
  return found.map(({ node }) => ({ node, open: false, faint: false, depth: 0, label: node.path }));
}
