// Scroll anchoring: what is visible stays in place, whatever changes above it.
//
// Some browsers have a mechanism for this (overflow-anchor). Two mechanisms would correct the same shift twice, so the
// style sheet turns the browser's off for the feed.

import { firstSectionBelow, firstVisibleItem, remainingScroll } from "./visibility.js";

/**
 * @typedef {{kind: "item", element: HTMLElement, id: string, top: number, y: number}
 *   | {kind: "share", element: HTMLElement, share: number}
 *   | {kind: "end"}} Reference
 */

/** Keeps the visible part of sections in place. */
export class ScrollAnchor {
  /** @param {import("./section.js").Section[]} sections */
  constructor(sections) {
    this.sections = sections;
    /** @type {{id: string, top: number}|"end"|null} the target of the last navigation, until the user scrolls */
    this.pinned = null;
    /** @type {Reference|null} what was visible after the last change or scroll */
    this.visible = null;
    this.lastY = scrollY;
    this.#listen();
  }

  /** Change the document, and correct the scroll position so that what is visible does not move. */
  preserve(change) {
    const before = this.#reference();
    change();
    this.#correct(before);
    this.remember();
  }

  /** Remember what is visible now, to detect later whether layout has moved it. */
  remember() {
    this.lastY = scrollY;
    this.visible = this.#reference();
  }

  /**
   * Scroll to an item and keep it there while images and fonts load.
   * @param {HTMLElement} item
   * @param {number} top its offset from the top of the window
   */
  pin(item, top) {
    this.pinned = { id: item.id, top };
    this.#correct(this.#reference());
    this.remember();
  }

  /** Scroll to the end and stay there. */
  pinEnd() {
    this.pinned = "end";
    this.#correct({ kind: "end" });
    this.remember();
  }

  /** Scroll to the start, wherever the last navigation went. */
  scrollToStart() {
    this.pinned = null;
    scrollTo({ top: 0, behavior: "instant" });
    this.remember();
  }

  /** @returns {Reference|null} */
  #reference() {
    if (this.pinned === "end") return { kind: "end" };
    if (this.pinned !== null) {
      const element = document.getElementById(this.pinned.id);
      if (element !== null) return { kind: "item", element, id: element.id, top: this.pinned.top, y: scrollY };
    }
    const item = firstVisibleItem(this.sections);
    if (item !== null) {
      return { kind: "item", element: item, id: item.id, top: item.getBoundingClientRect().top, y: scrollY };
    }
    return this.#sectionShare();
  }

  /** If no visible section is filled: the end, if it is visible, or how far a section has been scrolled. */
  #sectionShare() {
    if (remainingScroll() <= 2 && scrollY > 0) return { kind: "end" };
    const section = this.sections[firstSectionBelow(this.sections, 0)];
    if (section === undefined) return null;
    const { top, height } = section.element.getBoundingClientRect();
    return top > 0 || height === 0 ? null : { kind: "share", element: section.element, share: -top / height };
  }

  /** @param {Reference|null} before */
  #correct(before) {
    if (before === null) return;
    if (before.kind === "end") {
      this.#scrollBy(remainingScroll());
    } else if (before.kind === "share") {
      const { top, height } = before.element.getBoundingClientRect();
      this.#scrollBy(top + height * before.share);
    } else {
      const element = before.element.isConnected ? before.element : document.getElementById(before.id);
      if (element !== null) this.#scrollBy(element.getBoundingClientRect().top - before.top);
    }
  }

  #scrollBy(distance) {
    // Screens round to whole pixels. Correcting less than half a pixel has no effect but disturbs wheel scrolling.
    if (Math.abs(distance) >= 0.5) scrollBy({ top: distance, behavior: "instant" });
    this.lastY = scrollY;
  }

  /** Handle a layout change that we did not cause: an image loaded, a fold opened, the window was resized. */
  #handleResize() {
    const { visible } = this;
    // At the very start, something above the conversation was opened: the page stays at its start.
    if (scrollY === 0 && this.pinned === null) {
      this.remember();
      return;
    }
    if (this.pinned !== null) this.#correct(this.#reference());
    else if (visible?.kind === "item" && visible.element.isConnected) {
      this.#scrollBy(visible.element.getBoundingClientRect().top - (visible.top - (scrollY - visible.y)));
    }
    this.remember();
  }

  #unpin() {
    this.pinned = null;
  }

  #listen() {
    for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      addEventListener(kind, () => this.#unpin(), { passive: true, capture: true });
    }
    // Grabbing the scroll bar fires no event, so any scrolling that we did not cause counts as the user's.
    addEventListener("scroll", () => {
      if (Math.abs(scrollY - this.lastY) > 2) this.#unpin();
      this.remember();
    });
    const observer = new ResizeObserver(() => this.#handleResize());
    observer.observe(document.body);
    const feed = this.sections[0]?.element.parentElement;
    if (feed) observer.observe(feed);
  }
}
