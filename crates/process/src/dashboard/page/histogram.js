// Histograms of durations as values: quantiles, and what small bars show.

/** The value below which the share `q` of all counts lies, interpolated within its bucket; null without counts. */
export function quantile({ bounds = [], counts = [] } = {}, q) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    const count = counts[bucket];
    if (count > 0 && below + count >= q * total) {
      // The last bucket has no upper bound: its lower one is all that is known.
      if (bucket >= bounds.length) return bounds.at(-1) ?? null;
      const lower = bucket === 0 ? 0 : bounds[bucket - 1];
      return lower + ((q * total - below) / count) * (bounds[bucket] - lower);
    }
    below += count;
  }
  return bounds.at(-1) ?? null;
}

export const totalOf = ({ counts = [] } = {}) => counts.reduce((sum, count) => sum + count, 0);

/** Heights from 0 to 1. The square root keeps rare slow calls visible beside many fast ones. */
export function heights(counts) {
  const most = Math.max(1, ...counts);
  return counts.map((count) => Math.sqrt(count / most));
}

/** In seconds. The bars of the pictures: metrics have up to forty buckets. */
const BAR_BOUNDS = [1e-6, 1e-5, 1e-4, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The histogram with few buckets. A bucket goes where its upper bound belongs; empty ones at both ends are left out. */
export function condense({ bounds = [], counts = [] } = {}) {
  const sums = [...BAR_BOUNDS, Infinity].map(() => 0);
  counts.forEach((count, index) => {
    const bound = bounds[index] ?? Infinity;
    const bar = BAR_BOUNDS.findIndex((limit) => bound <= limit * 1.0001);
    sums[bar < 0 ? BAR_BOUNDS.length : bar] += count;
  });
  const last = sums.findLastIndex((count) => count > 0);
  const first = Math.min(sums.findIndex((count) => count > 0), Math.max(0, last - 5));
  return last < 0 ? { bounds: [], counts: [] } : { bounds: BAR_BOUNDS.slice(first, last + 1), counts: sums.slice(first, last + 1) };
}

/** How a reconcile ends, with the words people read and the tone of a condition. In the order of the bars, from below. */
export const RESULTS = new Map([
  ["success", { text: "success", tone: "good" }],
  ["requeueAfter", { text: "again later", tone: "good" }],
  ["requeue", { text: "again", tone: "pending" }],
  ["error", { text: "error", tone: "bad" }],
]);
/** A reconcile whose error a retry cannot mend counts as an error. */
export const resultOf = (result) => (result === "terminalError" ? { text: "final error", tone: "bad" } : RESULTS.get(result) ?? { text: result, tone: "none" });

/** Sums of the results of some minutes. */
export function resultsOf(minutes = []) {
  const sums = Object.fromEntries([...RESULTS.keys()].map((result) => [result, 0]));
  for (const minute of minutes) for (const result of RESULTS.keys()) sums[result] += minute[result] ?? 0;
  return sums;
}
