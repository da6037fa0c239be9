// Addresses of the views: `#/bundles?state=broken&q=core`, `#/bundles/NAMESPACE/NAME`, `#/actors/PATH`, `#/clusters`.
//
// They are in the fragment, so a proxy may serve the page below any path.

/** A place in the page: the view, the segments after it, and the query. An unknown view is "". */
export function parseRoute(fragment) {
  const text = fragment.replace(/^#\/?/, "");
  const question = text.indexOf("?");
  const [path, query] = question < 0 ? [text, ""] : [text.slice(0, question), text.slice(question + 1)];
  const [view, ...segments] = path.split("/").filter((segment) => segment !== "").map(decode);
  return { view: view ?? "", segments, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The fragment of a place. Empty values of the query are left out. */
export function formatRoute({ view, segments = [], query = {} }) {
  const path = [view, ...segments].map(encode).join("/");
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = pairs.map(([key, value]) => `${encode(key)}=${encode(value)}`).join("&");
  return `#/${path}${text ? `?${text}` : ""}`;
}

export const addressOfBundle = ({ namespace, name }) => formatRoute({ view: "bundles", segments: [namespace, name] });
export const addressOfActor = (path) => formatRoute({ view: "actors", segments: path.split("/") });

const encode = (text) => encodeURIComponent(text).replace(/%(2C|3A)/g, (code) => decodeURIComponent(code));

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `-since` as column and direction. */
export function parseSort(text, columns, fallback) {
  const match = /^(-?)(\w+)$/.exec(text ?? "");
  if (!match || !columns.includes(match[2])) return fallback;
  return { column: match[2], descending: match[1] === "-" };
}

/** The reverse; the fallback is "". */
export function formatSort({ column, descending }, fallback) {
  if (column === fallback.column && descending === fallback.descending) return "";
  return `${descending ? "-" : ""}${column}`;
}

/** A list of words separated by commas, as a set of those that are known. */
export const parseSet = (text, known) => new Set((text ?? "").split(",").filter((word) => known.has(word)));
