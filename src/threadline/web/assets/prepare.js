// Lets the server prepare what takes long and will probably be requested.

import { fetchText } from "./fetch.js";

/** How long a session must be open before its file to share is prepared. Those that are only passed do not need it. */
const STAY_MS = 250;

/** Prepare a page when the pointer or the focus comes near the link to it. */
export function prepareLinks() {
  const prepared = new Set();
  const prepare = (event) => {
    const url = event.target instanceof Element ? event.target.closest("[data-prepare]")?.dataset.prepare : undefined;
    if (url === undefined || prepared.has(url)) return;
    prepared.add(url);
    fetchText(url).catch(() => prepared.delete(url));
  };
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, prepare, { passive: true });
}

/**
 * Prepare the file of a session once the reader has stayed for a moment, but not on battery, if the browser reports that.
 * When the request is aborted, the server stops, unless the reader went to the page of the file.
 * @param {import("./session.js").Session} session
 */
export function prepareShare(session) {
  let stay = new AbortController();
  const prepare = async ({ signal }) => {
    const battery = await navigator.getBattery?.().catch(() => undefined);
    if (signal.aborted || battery?.charging === false) return;
    await fetchText(session.sharePreparationUrl(), signal).catch(() => {});
  };
  const leave = () => stay.abort();
  const arrive = () => {
    leave();
    if (document.visibilityState === "hidden") return;
    stay = new AbortController();
    const timer = setTimeout(prepare, STAY_MS, stay);
    stay.signal.addEventListener("abort", () => clearTimeout(timer));
  };
  for (const name of ["pageshow", "visibilitychange"]) addEventListener(name, arrive);
  addEventListener("pagehide", leave);
}
