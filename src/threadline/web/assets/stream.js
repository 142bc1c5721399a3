// Stream: the server's word that something has changed; never what.

const SOONEST = 1000;
const LATEST = 30_000;

/**
 * Hear of changes, while the page is looked at. The server tells every listener once at the start, of no session, since
 * something may have changed before.
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
      // The browser's own way of trying again knows no patience, and gives up for good on an answer such as 503.
      stop();
      timer = setTimeout(start, pause);
      pause = Math.min(LATEST, pause * 2);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else start();
  });
  // A page that is left is not to hold a connection; one that comes back from the cache is to be current.
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => {
    if (event.persisted) start();
  });
  if (!document.hidden) start();
}
