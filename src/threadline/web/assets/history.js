// Stores the place in the browser's history, so that Back, Forward and reload restore it.

import { firstSeen } from "./visibility.js";

/** Browsers throttle pages that write to the history more often. */
const PAUSE = 250;
/** URL parameters of this window, which stay when the place changes. */
const STAYING = ["part", "raw", "state"];

/** Stores and restores the place. */
export class Place {
  /**
   * @param {import("./navigation.js").Travel} travel
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(travel, windowing) {
    this.travel = travel;
    this.windowing = windowing;
    this.timer = 0;
  }

  start() {
    history.scrollRestoration = "manual";
    // The stored place must not be overwritten before it is restored.
    this.isBegun = false;
    addEventListener("scroll", () => this.#later(), { passive: true });
    addEventListener("pagehide", () => this.save());
    addEventListener("popstate", () => {
      if (history.state?.place) this.#restore(history.state.place);
    });
    addEventListener("hashchange", () => {
      if (!history.state?.place) this.#follow({ focus: true });
    });
    document.addEventListener("click", (event) => this.#clicked(event));
  }

  /** Go to the stored place, or to that in the URL. */
  begin() {
    this.isBegun = true;
    return history.state?.place ? this.#restore(history.state.place) : this.#follow({});
  }

  /** Store the current place. */
  save() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.isBegun) return;
    history.replaceState({ ...history.state, place: this.#here() }, "");
  }

  #later() {
    if (this.isBegun && this.timer === 0) this.timer = setTimeout(() => this.save(), PAUSE);
  }

  #here() {
    const item = scrollY > 0 ? firstSeen(this.windowing.sections) : null;
    if (item === null) return { y: scrollY };
    return { anchor: item.id, top: Math.round(item.getBoundingClientRect().top) };
  }

  #restore(place) {
    if (place.anchor !== undefined) return this.travel.to(place.anchor, { top: place.top });
    scrollTo({ top: place.y, behavior: "instant" });
    this.windowing.soon();
    return null;
  }

  /** Go to the place in the URL. */
  #follow(how) {
    if (location.hash === "#end") return this.travel.toEndOfPart();
    const anchor = anchorOf(location.hash);
    return anchor === null ? null : this.travel.to(anchor, how);
  }

  /** Follow a link to an item of this page without loading a page, even if the item is not filled. */
  #clicked(event) {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (link === null || link.target || link.hasAttribute("download")) return;
    const there = new URL(link.href, location.href);
    const anchor = anchorOf(there.hash);
    const here = new URL(location.href);
    if (anchor === null || plain(there) !== plain(here)) return;
    // The item may be in another part, which is another page.
    const { session } = this.travel;
    if (session.parts > 1 && document.getElementById(anchor) === null) return;
    event.preventDefault();
    this.save();
    there.searchParams.delete("at");
    there.searchParams.delete("section");
    for (const name of STAYING) {
      if (here.searchParams.has(name)) there.searchParams.set(name, here.searchParams.get(name));
    }
    history.pushState(null, "", there);
    this.travel.to(anchor, { focus: true });
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

/** A URL without the parameters that only say where to begin. */
function plain(address) {
  const query = new URLSearchParams(address.search);
  for (const name of ["at", "section", "find", ...STAYING]) query.delete(name);
  query.sort();
  return `${address.origin}${address.pathname}?${query}`;
}
