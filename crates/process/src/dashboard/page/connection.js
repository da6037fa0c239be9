// The stream of snapshots.

/** How long to wait when the server refused the stream (all are taken); other failures the browser handles itself. */
const REFUSED_WAIT = 5000;

/**
 * Reads server-sent events from `url` for ever. `snapshot` gets each status document; `connection` gets `live` or `reconnecting`.
 */
export function connect(url, { snapshot, connection }) {
  const source = new EventSource(url);
  source.addEventListener("open", () => connection("live"));
  source.addEventListener("actors", (event) => {
    connection("live");
    snapshot(JSON.parse(event.data));
  });
  source.addEventListener("error", () => {
    connection("reconnecting");
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(() => connect(url, { snapshot, connection }), REFUSED_WAIT);
    }
  });
}
