// Objects of a bundle as values: their order, tree and filters. No page.

import { wordsOf } from "./bundles.js";

export const nameOf = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name);
/** `Deployment kube-system/coredns`, as `owner` names it. */
export const keyOf = (object) => `${object.kind} ${nameOf(object)}`;

/** What is to be seen of an object at a glance. `tone` is that of a condition. */
export function stateOf({ health, healthText, progress, pendingDeletion, last }) {
  if (health === "unhealthy") return { rank: 0, tone: "bad", word: "unhealthy", text: healthText ?? "" };
  if (last?.what === "failed") return { rank: 1, tone: "bad", word: "failed", text: healthText || "the last write failed" };
  if (pendingDeletion) return { rank: 2, tone: "pending", word: "being deleted", text: pendingDeletion.why ?? "" };
  if (progress) return { rank: 3, tone: "pending", word: "progressing", text: progress };
  if (health === "unknown") return { rank: 4, tone: "none", word: "unknown", text: healthText ?? "" };
  if (health === "healthy") return { rank: 5, tone: "good", word: "healthy", text: healthText ?? "" };
  return { rank: 6, tone: "good", word: "present", text: healthText ?? "" };
}

export const FILTERS = new Map([
  ["all", { label: "All", passes: () => true }],
  ["unhealthy", { label: "Not healthy", passes: (object) => stateOf(object).rank < 5 }],
  ["claimed", { label: "In several bundles", passes: ({ claimedBy }) => (claimedBy?.length ?? 0) > 0 }],
]);

/** The objects by owner, those with a problem first, as rows `{object, depth, faint}`; and how many pass each filter. */
export function objectRows(objects, { filter, query }) {
  const words = wordsOf(query);
  const { passes } = FILTERS.get(filter);
  const counts = new Map([...FILTERS].map(([id, { passes: each }]) => [id, objects.filter(each).length]));
  const isShown = (object) => passes(object) && words.every((word) => textOf(object).includes(word));
  const below = ownedBy(objects);
  const rows = [];
  const seen = new Set();
  const walk = (object, depth) => {
    if (seen.has(object)) return false;
    seen.add(object);
    const at = rows.length;
    const shown = isShown(object);
    rows.push({ object, depth, faint: !shown });
    const children = below.get(keyOf(object)) ?? [];
    const any = inOrder(children).map((child) => walk(child, depth + 1)).includes(true);
    if (!shown && !any) rows.length = at;
    return shown || any;
  };
  for (const object of inOrder(below.get(null) ?? [])) walk(object, 0);
  // Owners in a circle have no root.
  for (const object of objects) walk(object, 0);
  return { rows, counts };
}

function ownedBy(objects) {
  const known = new Set(objects.map(keyOf));
  const below = new Map();
  for (const object of objects) {
    const owner = object.owner && known.has(object.owner) ? object.owner : null;
    if (!below.has(owner)) below.set(owner, []);
    below.get(owner).push(object);
  }
  return below;
}

function inOrder(objects) {
  return objects.map((object, index) => ({ object, index, rank: Math.min(5, stateOf(object).rank) }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index).map(({ object }) => object);
}

const textOf = (object) => `${keyOf(object)}\n${object.apiVersion}\n${object.healthText ?? ""}\n${object.document?.secret ?? ""}\n${(object.last?.why ?? []).join(" ")}`.toLowerCase();
