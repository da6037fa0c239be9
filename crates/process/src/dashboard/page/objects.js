// Objects of a bundle as values: their order, groups and filters. No page.

import { wordsOf } from "./bundles.js";

export const nameOf = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name);
/** `Deployment kube-system/coredns`. */
export const titleOf = (object) => `${object.kind} ${nameOf(object)}`;

/** The state of an object in one word and a text. `tone` is that of a condition, `rank` the order, the worst first. */
export function stateOf({ health, healthText, progress, pendingDeletion, last, gone }) {
  if (gone) return { rank: 7, tone: "none", word: last?.what ?? "gone", text: last?.error ?? "" };
  if (health === "unhealthy") return { rank: 0, tone: "bad", word: "unhealthy", text: healthText ?? "" };
  if (last?.what === "failed") return { rank: 1, tone: "bad", word: "failed", text: last.error || healthText || "the last write failed" };
  if (pendingDeletion) return { rank: 2, tone: "pending", word: "being deleted", text: pendingDeletion.why ?? "" };
  if (progress) return { rank: 3, tone: "pending", word: "progressing", text: progress };
  if (health === "unknown") return { rank: 4, tone: "none", word: "unknown", text: healthText ?? "" };
  if (health === "healthy") return { rank: 5, tone: "good", word: "healthy", text: healthText ?? "" };
  return { rank: 5, tone: "good", word: "present", text: healthText ?? "" };
}

export const FILTERS = new Map([
  ["all", { label: "All", passes: () => true }],
  ["unhealthy", { label: "Not healthy", passes: (object) => stateOf(object).rank < 5 }],
  ["claimed", { label: "In several bundles", passes: ({ claimedBy }) => (claimedBy?.length ?? 0) > 0 }],
]);

/**
 * The objects below the documents that hold them: rows `{key, object, depth}` and, if there is more than one Secret or data key, rows
 * `{key, group, count, bad, open, depth}`. What is worst comes first. Also how many objects pass each filter.
 */
export function objectRows(objects, { filter, query, collapsed }) {
  const words = wordsOf(query);
  const { passes } = FILTERS.get(filter);
  const counts = new Map([...FILTERS].map(([id, { passes: each }]) => [id, objects.filter(each).length]));
  const shown = inOrder(objects.filter((object) => passes(object) && words.every((word) => textOf(object).includes(word))));
  const groups = new Map();
  for (const each of shown) {
    const group = groupOf(each.object);
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(each);
  }
  if (groups.size <= 1) return { rows: shown.map(({ object }) => objectRow(object, 0)), counts };
  const rows = [];
  for (const [group, members] of groups) {
    const open = !collapsed.has(group);
    rows.push({ key: `group ${group}`, group, count: members.length, bad: members.filter(({ state }) => state.tone === "bad").length, open, depth: 0 });
    if (open) rows.push(...members.map(({ object }) => objectRow(object, 1)));
  }
  return { rows, counts };
}

const objectRow = (object, depth) => ({ key: `${object.apiVersion} ${titleOf(object)}`, object, depth });

function groupOf({ document, gone }) {
  if (gone) return "left the bundle";
  return document ? `${document.secret} · ${document.key}` : "in no document";
}

/** The worst first; equals stay in the order of the status. */
function inOrder(objects) {
  return objects.map((object, index) => ({ object, index, state: stateOf(object) })).sort((a, b) => a.state.rank - b.state.rank || a.index - b.index);
}

const textOf = (object) => `${titleOf(object)}\n${object.apiVersion}\n${object.healthText ?? ""}\n${object.document?.secret ?? ""}\n${object.last?.what ?? ""} ${(object.last?.why ?? []).join(" ")}`.toLowerCase();
