// Hold: what is seen stays where it is, whatever changes above it.
//
// The browser has a mechanism for this (overflow-anchor), but not all browsers, and two that correct the same thing
// correct it twice: the style turns it off for the feed, and this is the only one.

import { firstBelow, firstSeen, leftBelow } from "./sight.js";

/**
 * @typedef {{kind: "item", element: HTMLElement, id: string, top: number, y: number}
 *   | {kind: "share", element: HTMLElement, share: number}
 *   | {kind: "end"}} Held
 */

/** Holds what is seen of some sections. */
export class Hold {
  /** @param {import("./section.js").Section[]} sections */
  constructor(sections) {
    this.sections = sections;
    /** @type {{id: string, top: number}|"end"|null} what was gone to, which stays until the person moves on */
    this.pinned = null;
    /** @type {Held|null} */
    this.seen = null;
    this.lastY = scrollY;
    this.#listen();
  }

  /** Change the document in a way that may move things. */
  keep(change) {
    const before = this.#reference();
    change();
    this.#correct(before);
    this.note();
  }

  /** Remember what is seen now, to find out later whether layout has moved it. */
  note() {
    this.lastY = scrollY;
    this.seen = this.#reference();
  }

  /**
   * Go to an item and stay there: pictures and fonts that come late must not push it away.
   * @param {HTMLElement} item
   * @param {number} top where in the window it begins
   */
  pin(item, top) {
    this.pinned = { id: item.id, top };
    this.#correct(this.#reference());
    this.note();
  }

  /** Go to the end and stay there. */
  pinEnd() {
    this.pinned = "end";
    this.#correct({ kind: "end" });
    this.note();
  }

  /** @returns {Held|null} */
  #reference() {
    if (this.pinned === "end") return { kind: "end" };
    if (this.pinned !== null) {
      const element = document.getElementById(this.pinned.id);
      if (element !== null) return { kind: "item", element, id: element.id, top: this.pinned.top, y: scrollY };
    }
    const item = firstSeen(this.sections);
    if (item !== null) {
      return { kind: "item", element: item, id: item.id, top: item.getBoundingClientRect().top, y: scrollY };
    }
    return this.#sharedSection();
  }

  /** Where nothing is filled: the end, if it is seen, or the share of a section that has been passed. */
  #sharedSection() {
    if (leftBelow() <= 2 && scrollY > 0) return { kind: "end" };
    const section = this.sections[firstBelow(this.sections, 0)];
    if (section === undefined) return null;
    const { top, height } = section.element.getBoundingClientRect();
    return top > 0 || height === 0 ? null : { kind: "share", element: section.element, share: -top / height };
  }

  /** @param {Held|null} before */
  #correct(before) {
    if (before === null) return;
    if (before.kind === "end") {
      this.#scrollBy(leftBelow());
    } else if (before.kind === "share") {
      const { top, height } = before.element.getBoundingClientRect();
      this.#scrollBy(top + height * before.share);
    } else {
      const element = before.element.isConnected ? before.element : document.getElementById(before.id);
      if (element !== null) this.#scrollBy(element.getBoundingClientRect().top - before.top);
    }
  }

  #scrollBy(distance) {
    // Screens place whole pixels: less than half of one cannot be put right, and trying would disturb a wheel.
    if (Math.abs(distance) >= 0.5) scrollBy({ top: distance, behavior: "instant" });
    this.lastY = scrollY;
  }

  /** Layout has changed something that was not ours to change: a picture came, a fold opened, the window got narrow. */
  #settle() {
    const { seen } = this;
    if (this.pinned !== null) this.#correct(this.#reference());
    else if (seen?.kind === "item" && seen.element.isConnected) {
      this.#scrollBy(seen.element.getBoundingClientRect().top - (seen.top - (scrollY - seen.y)));
    }
    this.note();
  }

  #release() {
    this.pinned = null;
  }

  #listen() {
    for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      addEventListener(kind, () => this.#release(), { passive: true, capture: true });
    }
    // The scroll bar says nothing when it is taken hold of; that the page has moved, and not by us, must do.
    addEventListener("scroll", () => {
      if (Math.abs(scrollY - this.lastY) > 2) this.#release();
      this.note();
    });
    const observer = new ResizeObserver(() => this.#settle());
    observer.observe(document.body);
    const feed = this.sections[0]?.element.parentElement;
    if (feed) observer.observe(feed);
  }
}
