// Values as people read them. No page, no clock: the time comes in.

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

/** A duration in milliseconds as its largest unit, for narrow columns: `3m`. */
export const shortDuration = (milliseconds) => durationText(milliseconds).split(" ", 1)[0];
export const shortAgo = (timestamp, now) => `${shortDuration(now - Date.parse(timestamp))} ago`;

/** `2026-05-01T10:11:12.345678901Z` without the fraction. */
export const clockText = (timestamp) => timestamp.replace(/\.\d+/, "").replace("T", " ");

/** A time in the past, relative and absolute. */
export const whenText = (timestamp, now) => (timestamp ? `${agoText(timestamp, now)} (${clockText(timestamp)})` : "–");

export const countText = (number) => number.toLocaleString("en");

/** `1 object`, `2 objects`. */
export const pluralText = (number, one, many = `${one}s`) => `${countText(number)} ${number === 1 ? one : many}`;

/** A measured time in seconds: `800 µs`, `4.2 ms`, `310 ms`, `2.3 s`, `4m 10s`. */
export function secondsText(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds >= 60) return durationText(seconds * 1000);
  if (seconds === 0) return "0";
  if (seconds >= 0.9995) return `${digits(seconds)} s`;
  if (seconds >= 0.0009995) return `${digits(seconds * 1000)} ms`;
  return `${digits(seconds * 1e6)} µs`;
}

/** A frequency: `0`, `0.02`, `3.1`, `120`. */
export const rateText = (perSecond) => (perSecond > 0 ? (perSecond < 0.01 ? "<0.01" : digits(perSecond)) : "0");

const digits = (number) => (number >= 100 ? countText(Math.round(number)) : `${Number(number.toPrecision(2))}`);

const LIST = " errors occurred: [";

/**
 * The message of a condition as lines, one for each error. An error may have commas itself. So a comma ends an error only if the
 * next text begins with the same two words as the first error.
 */
export function messageLines(message) {
  const lines = allLines(message);
  if (lines.length <= MOST_LINES) return lines;
  return [...lines.slice(0, MOST_LINES), `and ${lines.length - MOST_LINES} more`];
}

/** Lines of a message that are shown. */
const MOST_LINES = 200;

function allLines(message) {
  const at = message.indexOf(LIST);
  if (at < 0 || !message.endsWith("]")) return message.split("\n").filter((line) => line.trim() !== "");
  const head = `${message.slice(0, at)}${LIST.slice(0, -2)}:`;
  const list = message.slice(at + LIST.length, -1);
  const begin = list.split(" ", 2).join(" ");
  const errors = list.split(`, ${begin}`).map((error, index) => (index === 0 ? error : `${begin}${error}`));
  return [head.replace(/:+$/, ":"), ...errors];
}

/** A word of a command line. */
export const shellWord = (word) => (/^[A-Za-z0-9._\/:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
