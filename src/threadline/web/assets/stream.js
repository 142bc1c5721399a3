// The event stream of the server: says that something has changed, never what.

const SOONEST = 1000;
const LATEST = 30_000;

/**
 * Listen for changes while the page is visible. The server sends every listener a first event without a session,
 * because something may have changed before.
 * @param {string} address
 * @param {(session: string) => void} changed
 */
export function hear(address, changed) {
  let source = null;
  let pause = SOONEST;
  let timer = 0;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const start = () => {
    stop();
    source = new EventSource(address);
    source.addEventListener("open", () => (pause = SOONEST));
    source.addEventListener("message", (event) => changed(JSON.parse(event.data).session));
    source.addEventListener("error", () => {
      // The browser's own retries have no backoff, and stop for good after a response like 503.
      stop();
      timer = setTimeout(start, pause);
      pause = Math.min(LATEST, pause * 2);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else start();
  });
  // A page that is left closes its connection; one that returns from the cache has to be current.
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => {
    if (event.persisted) start();
  });
  if (!document.hidden) start();
}
