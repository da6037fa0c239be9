// Bundles as values: their states, order, filters and counts. No page, no clock: both come in.

import { countdownText } from "./text.js";

/** States of a bundle, worst first, with the words people read. */
export const STATES = new Map([
  ["broken", "Broken"],
  ["deleting", "Deleting"],
  ["progressing", "Progressing"],
  ["unknown", "Unknown"],
  ["ignored", "Ignored"],
  ["healthy", "Healthy"],
]);

const RANKS = new Map([...STATES.keys()].map((state, rank) => [state, rank]));
const TONES = ["bad", "pending", "none", "good"];

/** Marks of bundles on which nothing is done, with what that means. */
export const MARKS = new Map([
  ["ignored", { state: "ignored", text: "ignored: nothing is touched" }],
  ["wait-for-state", { state: "ignored", text: "the annotation gardener.cloud/operation: wait-for-state stops all work" }],
  ["handed-over", { state: "deleting", text: "its class changed; the objects are being removed" }],
  ["waits-for-class", { state: "progressing", text: "another class has not finished with it" }],
]);

/** The columns of conditions, and the type that each shows. */
export const CONDITIONS = new Map([
  ["applied", "ResourcesApplied"],
  ["healthy", "ResourcesHealthy"],
  ["progressing", "ResourcesProgressing"],
]);

/** Conditions as people read them: bad ones first, then in the order of the columns, then others. */
export function conditionsInOrder(conditions) {
  const types = [...CONDITIONS.values()];
  const rank = ({ type, tone }) => (tone === "bad" ? 0 : 10) + (types.includes(type) ? types.indexOf(type) : types.length);
  return [...conditions].sort((a, b) => rank(a) - rank(b));
}

/** Columns that sort, and whether the first click sorts descending. */
export const SORTS = new Map([
  ["name", false], ["state", false], ["applied", false], ["healthy", false], ["progressing", false], ["objects", true], ["since", true],
  ["next", false], ["problem", false],
]);
/** Worst first, and among equals the latest change first. */
export const DEFAULT_SORT = { column: "state", descending: false };

/** What the lists need of a row, computed once for each change of the row. */
export function newBundle(row) {
  const { namespace, name, conditions = [], marks = [], objects = 0 } = row.object;
  const state = stateOf(row, conditions, marks);
  const decisive = decisiveConditions(state, conditions);
  return {
    row, namespace, name, state, objects, marks, conditions,
    path: row.path,
    key: `${namespace}/${name}`,
    since: sinceOf(state, decisive),
    reasons: reasonsOf(row, state, decisive),
    next: row.nextTimer ? Date.parse(row.nextTimer) : Infinity,
    problem: problemOf(row, state, decisive) || (MARKS.get(marks[0])?.text ?? ""),
    text: null,
  };
}

function stateOf({ problem, activity }, conditions, marks) {
  if (problem || activity === "quarantined" || conditions.some(({ tone }) => tone === "bad")) return "broken";
  if (marks.includes("deleting")) return "deleting";
  const [mark] = marks.filter((each) => MARKS.has(each));
  if (mark) return MARKS.get(mark).state;
  if (activity === "backingOff" || conditions.some(({ tone }) => tone === "pending")) return "progressing";
  if (conditions.length === 0 || conditions.some(({ tone }) => tone !== "good")) return "unknown";
  return "healthy";
}

/** The conditions that make the state. */
function decisiveConditions(state, conditions) {
  const tone = { broken: "bad", deleting: "pending", progressing: "pending", unknown: "none" }[state];
  const those = tone ? conditions.filter((condition) => condition.tone === tone) : [];
  return those.length > 0 ? those : conditions;
}

/** In milliseconds since 1970: of a healthy bundle the last change, of another the first of the conditions that make its state. */
function sinceOf(state, decisive) {
  const times = decisive.map(({ since }) => Date.parse(since)).filter((time) => !Number.isNaN(time));
  if (times.length === 0) return null;
  return state === "healthy" || state === "ignored" ? Math.max(...times) : Math.min(...times);
}

function reasonsOf({ activity }, state, decisive) {
  if (activity === "quarantined") return ["Quarantined"];
  if (state === "healthy" || state === "ignored") return [];
  const reasons = decisive.filter(({ tone }) => state !== "broken" || tone === "bad").map(({ reason }) => reason);
  return reasons.length > 0 ? [...new Set(reasons)] : state === "broken" ? ["Problem"] : [];
}

function problemOf({ problem, lastError, activity }, state, decisive) {
  // The columns of conditions say which condition it is.
  if (problem) return problem.replaceAll(/(^|; )Resources(Applied|Healthy) /g, "$1");
  if (activity === "quarantined" || activity === "backingOff") return lastError?.[1] ?? "";
  if (state === "broken" || state === "deleting" || state === "progressing") {
    return [...new Set(decisive.map(({ reason }) => reason))].join("; ");
  }
  return state === "unknown" && decisive.length === 0 ? "no condition yet" : "";
}

/** What happens next to a bundle: word and time, e.g. `retry 12s`. */
export function nextText({ state, row }, now) {
  const { activity, nextTimer } = row;
  if (activity === "running" || activity === "queued" || activity === "waiting" || activity === "starting") return activity;
  if (!nextTimer) return state === "ignored" ? "" : "–";
  const left = countdownText(nextTimer, now);
  return activity === "backingOff" ? `retry ${left}` : left;
}

/** The same as a sentence. */
export function nextSentence({ state, row }, now) {
  const { activity, nextTimer, current } = row;
  if (activity === "running") return `It runs now${current ? `: ${current}` : ""}.`;
  if (activity === "queued") return "It waits for a permit: all permits of its controller are in use.";
  if (activity === "waiting") return "It waits for a cache, for example for a first list.";
  if (state === "ignored") return "Nothing, until the annotation is removed or the bundle is deleted.";
  if (!nextTimer) return "It waits for a change.";
  const left = countdownText(nextTimer, now);
  const due = left === "now" ? "is due." : `follows in ${left}, or after a change.`;
  return activity === "backingOff" ? `The next attempt ${due}` : `The next check ${due}`;
}

/** The condition of a type, or undefined. */
export const conditionOf = (bundle, type) => bundle.conditions.find((condition) => condition.type === type);

/** What is searched, in lower case. `class:seed`, `reason:ApplyFailed`, `is:ignored` are words of it. */
function textOf(bundle) {
  bundle.text ??= [
    bundle.key, bundle.problem, bundle.row.line, bundle.row.lastError?.[1] ?? "", `ns:${bundle.namespace}`, `class:${bundle.row.object.class ?? ""}`,
    ...bundle.marks.map((mark) => `is:${mark}`), `is:${bundle.state}`, ...bundle.conditions.map(({ reason }) => `reason:${reason}`),
  ].join("\n").toLowerCase();
  return bundle.text;
}

/** Words of a search, in lower case. */
export const wordsOf = (query) => query.toLowerCase().split(/\s+/).filter((word) => word !== "");

/** All bundles in the order of one column. A change moves only the bundles that changed. */
export class BundleList {
  #sorted = [];
  #byPath = new Map();
  #byKey = new Map();
  #sort = DEFAULT_SORT;

  get size() {
    return this.#sorted.length;
  }

  /** The bundle with this namespace and name. */
  find(namespace, name) {
    return this.#byKey.get(`${namespace}/${name}`);
  }

  /** Takes all rows. */
  reset(rows) {
    this.#byPath.clear();
    this.#byKey.clear();
    this.#sorted = [];
    for (const row of rows) if (isBundle(row)) this.#sorted.push(this.#add(newBundle(row)));
    this.#sorted.sort(comparison(this.#sort));
  }

  /** Takes changed rows and paths that are gone. Returns true if there was a bundle among them. */
  apply(rows, gone) {
    const leaving = new Set();
    const coming = [];
    const remove = (path) => {
      const old = this.#byPath.get(path);
      if (!old) return;
      leaving.add(old);
      this.#byPath.delete(path);
      if (this.#byKey.get(old.key) === old) this.#byKey.delete(old.key);
    };
    gone.forEach(remove);
    for (const row of rows) {
      remove(row.path);
      if (isBundle(row)) coming.push(this.#add(newBundle(row)));
    }
    if (leaving.size > 0 || coming.length > 0) this.#merge(leaving, coming);
    return leaving.size > 0 || coming.length > 0;
  }

  sortBy(sort) {
    if (sort.column === this.#sort.column && sort.descending === this.#sort.descending) return;
    this.#sort = sort;
    this.#sorted.sort(comparison(sort));
  }

  #add(bundle) {
    this.#byPath.set(bundle.path, bundle);
    this.#byKey.set(bundle.key, bundle);
    return bundle;
  }

  #merge(leaving, coming) {
    const compare = comparison(this.#sort);
    coming.sort(compare);
    const merged = [];
    let next = 0;
    for (const bundle of this.#sorted) {
      if (leaving.has(bundle)) continue;
      while (next < coming.length && compare(coming[next], bundle) < 0) merged.push(coming[next++]);
      merged.push(bundle);
    }
    while (next < coming.length) merged.push(coming[next++]);
    this.#sorted = merged;
  }

  /**
   * The bundles that pass `{query, states, reason}`; counts by state of those that pass all but `states`; counts by reason of the
   * broken ones that pass `query` alone.
   */
  select({ query, states, reason }) {
    const words = wordsOf(query);
    const counts = new Map([...STATES.keys()].map((state) => [state, 0]));
    const reasons = new Map();
    const shown = [];
    let total = 0;
    for (const bundle of this.#sorted) {
      if (words.length > 0 && !words.every((word) => textOf(bundle).includes(word))) continue;
      if (bundle.state === "broken") countReasons(reasons, bundle);
      if (reason && !bundle.reasons.includes(reason)) continue;
      counts.set(bundle.state, counts.get(bundle.state) + 1);
      total += 1;
      if (states.size === 0 || states.has(bundle.state)) shown.push(bundle);
    }
    return { shown, counts, total, reasons: [...reasons.values()].sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1)) };
  }

  /** How many bundles are broken. */
  get broken() {
    let broken = 0;
    for (const bundle of this.#sorted) if (bundle.state === "broken") broken += 1;
    return broken;
  }
}

const isBundle = (row) => row.object?.kind === "ManagedResource";

function countReasons(reasons, bundle) {
  for (const reason of bundle.reasons) {
    const group = reasons.get(reason) ?? { reason, count: 0, first: null, last: null, next: Infinity, example: bundle };
    group.count += 1;
    if (bundle.since !== null) {
      if (group.first === null || bundle.since < group.first) group.first = bundle.since;
      if (group.last === null || bundle.since > group.last) [group.last, group.example] = [bundle.since, bundle];
    }
    group.next = Math.min(group.next, bundle.next);
    reasons.set(reason, group);
  }
}

const VALUES = {
  name: ({ key }) => key,
  state: ({ state }) => RANKS.get(state),
  applied: (bundle) => toneRank(bundle, "applied"),
  healthy: (bundle) => toneRank(bundle, "healthy"),
  progressing: (bundle) => toneRank(bundle, "progressing"),
  objects: ({ objects }) => objects,
  since: ({ since }) => since ?? -Infinity,
  next: ({ next }) => next,
  // Texts first, in alphabetical order.
  problem: ({ problem }) => problem || "\u{10ffff}",
};

const toneRank = (bundle, column) => TONES.indexOf(conditionOf(bundle, CONDITIONS.get(column))?.tone ?? "none");

function comparison({ column, descending }) {
  const value = VALUES[column];
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x !== y) return x < y ? -sign : sign;
    // Of broken bundles, the latest first: what has just happened is what people look for.
    if (column === "state" && a.state !== "healthy" && a.since !== b.since) return (b.since ?? 0) - (a.since ?? 0);
    return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
  };
}
