// Stores the scroll position in the browser's history, so that Back, Forward and reload restore it.

import { firstVisibleItem } from "./visibility.js";

/** Browsers throttle pages that write to the history more often. */
const SAVE_MS = 250;
/** URL parameters of this window, which stay when a link to another item is followed. */
const KEPT_PARAMETERS = ["part", "raw", "state", "context", "open"];

/** Stores and restores the scroll position, and follows links to items of this page. */
export class ScrollHistory {
  /**
   * @param {import("./navigation.js").ItemNavigation} navigation
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(navigation, windowing) {
    this.navigation = navigation;
    this.windowing = windowing;
    this.timer = 0;
    // The stored position must not be overwritten before it is restored.
    this.isRestored = false;
  }

  start() {
    history.scrollRestoration = "manual";
    addEventListener("scroll", () => this.#scheduleSave(), { passive: true });
    addEventListener("pagehide", () => this.save());
    addEventListener("popstate", () => {
      if (history.state?.position) this.#goToPosition(history.state.position);
    });
    addEventListener("hashchange", () => {
      if (!history.state?.position) this.#goToUrl({ focus: true });
    });
    document.addEventListener("click", (event) => this.#followLink(event));
  }

  /** Go to the stored position, or to the item in the URL. */
  restore() {
    this.isRestored = true;
    return history.state?.position ? this.#goToPosition(history.state.position) : this.#goToUrl({});
  }

  /** Store the current position. */
  save() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.isRestored) return;
    history.replaceState({ ...history.state, position: this.#position() }, "");
  }

  #scheduleSave() {
    if (this.isRestored && this.timer === 0) this.timer = setTimeout(() => this.save(), SAVE_MS);
  }

  #position() {
    const item = scrollY > 0 ? firstVisibleItem(this.windowing.sections) : null;
    if (item === null) return { y: scrollY };
    return { anchor: item.id, top: Math.round(item.getBoundingClientRect().top) };
  }

  #goToPosition(position) {
    if (position.anchor !== undefined) return this.navigation.goTo(position.anchor, { top: position.top });
    scrollTo({ top: position.y, behavior: "instant" });
    this.windowing.scheduleUpdate();
    return null;
  }

  /** Go to the item in the URL. */
  #goToUrl(options) {
    if (location.hash === "#end") return this.navigation.goToEndOfPart();
    const anchor = anchorOf(location.hash);
    return anchor === null ? null : this.navigation.goTo(anchor, options);
  }

  /** Follow a link to an item of this page without loading a page, even if the item is not filled. */
  #followLink(event) {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (link === null || link.hasAttribute("target") || link.hasAttribute("download")) return;
    // In an SVG, `href` is not a string.
    const target = new URL(link.getAttribute("href"), location.href);
    const anchor = anchorOf(target.hash);
    const current = new URL(location.href);
    if (anchor === null || viewOf(target) !== viewOf(current)) return;
    // The item may be in another part, which is another page.
    const { session } = this.navigation;
    if (session.parts > 1 && document.getElementById(anchor) === null) return;
    event.preventDefault();
    this.save();
    target.searchParams.delete("at");
    target.searchParams.delete("section");
    for (const name of KEPT_PARAMETERS) {
      if (current.searchParams.has(name)) target.searchParams.set(name, current.searchParams.get(name));
    }
    history.pushState(null, "", target);
    this.navigation.goTo(anchor, { focus: true });
  }
}

/** The anchor of the item that a fragment names; null if it names something else. */
function anchorOf(hash) {
  let name;
  try {
    name = decodeURIComponent(hash.slice(1));
  } catch {
    return null;
  }
  return /(^|\.)L\d+(-\d+)?$/.test(name) ? name : null;
}

/** A URL without the parameters that do not change what is rendered. */
function viewOf(url) {
  const query = new URLSearchParams(url.search);
  for (const name of ["at", "section", "find", "mark", ...KEPT_PARAMETERS]) query.delete(name);
  query.sort();
  return `${url.origin}${url.pathname}?${query}`;
}
