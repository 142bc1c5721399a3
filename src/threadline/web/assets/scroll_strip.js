// The strip beside the conversation: shows the current position, and scrolls when it is clicked or dragged.

import { firstSectionBelow } from "./visibility.js";

/** Minimum height in pixels. */
const MIN_HEIGHT = 120;

/** Moves the marker on the strip as the page scrolls, and scrolls the page as the strip is dragged. */
export class ScrollStrip {
  /**
   * @param {Element} strip
   * @param {import("./windowing.js").Windowing} windowing
   * @param {import("./navigation.js").ItemNavigation} navigation
   */
  constructor(strip, windowing, navigation) {
    this.strip = strip;
    this.windowing = windowing;
    this.navigation = navigation;
    this.isDragging = false;
    /** @type {number[]} positions of matches */
    this.matches = [];
    this.card = null;
  }

  get svg() {
    return this.strip.querySelector("svg");
  }

  start() {
    addEventListener("scroll", () => this.draw(), { passive: true });
    addEventListener("resize", () => this.draw(), { passive: true });
    this.windowing.addEventListener("filled", () => this.draw());
    this.strip.addEventListener("pointerdown", (event) => {
      if (this.svg?.contains(event.target)) this.#drag(event, this.svg);
    });
    this.strip.addEventListener("pointermove", (event) => this.#showCard(event), { passive: true });
    this.strip.addEventListener("pointerleave", () => this.card?.remove(), { passive: true });
    this.draw();
  }

  /**
   * Mark the matches of the find box.
   * @param {number[]} positions of items, from 1
   */
  setMatches(positions) {
    this.matches = positions;
    this.#drawMatches();
  }

  #drawMatches() {
    const path = this.svg?.querySelector(".matches") ?? null;
    if (path === null) return;
    const width = this.#box().width * 0.4;
    path.setAttribute("d", this.matches.map((position) => `M0 ${position - 0.5}h${width}`).join(""));
  }

  /** Show what a band describes beside the pointer, at once; a `<title>` takes a second. */
  #showCard(event) {
    const text = event.target instanceof Element ? event.target.closest(".band")?.textContent : undefined;
    if (text === undefined || this.isDragging) {
      this.card?.remove();
      return;
    }
    this.card ??= Object.assign(document.createElement("p"), { className: "strip-card" });
    this.card.textContent = text;
    this.card.style.top = `${event.clientY}px`;
    if (!this.card.isConnected) this.strip.append(this.card);
  }

  /** Copy the content of another strip, unless this one is being dragged. */
  replace(strip) {
    if (this.isDragging) return;
    this.strip.replaceChildren(...strip.childNodes);
    this.#drawMatches();
    this.draw();
  }

  /** Mark the visible share of the items: the scale of the strip is items, not pixels. */
  draw() {
    const marker = this.svg?.querySelector(".here") ?? null;
    if (marker === null) return;
    this.#fit();
    const from = this.#shareAbove(0);
    const to = this.#shareAbove(innerHeight);
    const { y, height } = this.#box();
    const size = Math.max(height * (to - from), height * 0.008);
    marker.setAttribute("y", String(y + Math.min(height * from, height - size)));
    marker.setAttribute("height", String(size));
  }

  /** Fit the strip into the window below what is above it, which scrolls away. */
  #fit() {
    const room = Math.round(innerHeight - Math.max(0, this.strip.getBoundingClientRect().top));
    const height = `${Math.max(MIN_HEIGHT, room)}px`;
    if (this.strip.style.height !== height) this.strip.style.height = height;
  }

  #box() {
    const { y, width, height } = this.svg.viewBox.baseVal;
    return height > 0 ? { y, width, height } : { y: 0, width, height: this.svg.getBoundingClientRect().height };
  }

  /** The share of all items above a y position in the window, from 0 to 1. */
  #shareAbove(y) {
    const { sections } = this.windowing;
    const current = firstSectionBelow(sections, y);
    let above = 0;
    let total = 0;
    sections.forEach((section, index) => {
      total += section.items;
      if (index < current) above += section.items;
    });
    if (total === 0) return 0;
    if (current < sections.length) {
      const { top, height } = sections[current].element.getBoundingClientRect();
      above += sections[current].items * Math.min(1, Math.max(0, (y - top) / (height || 1)));
    }
    return above / total;
  }

  #drag(event, svg) {
    if (event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    this.isDragging = true;
    let hasMoved = false;
    const move = (moveEvent) => {
      hasMoved ||= Math.abs(moveEvent.clientY - event.clientY) > 3;
      if (hasMoved) this.#scrollTo(moveEvent.clientY);
    };
    const release = (endEvent) => {
      svg.removeEventListener("pointermove", move);
      this.isDragging = false;
      // Bands are links for browsers without scripts. With scripts, a click scrolls to exactly that position.
      if (!hasMoved && endEvent.type === "pointerup") this.#scrollTo(endEvent.clientY);
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerup", release, { once: true });
    svg.addEventListener("pointercancel", release, { once: true });
    svg.addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
  }

  /** Scroll so that the item at a y position of the strip is in the middle of the window. */
  #scrollTo(clientY) {
    const { top, height } = this.svg.getBoundingClientRect();
    const { sections } = this.windowing;
    const total = sections.reduce((sum, section) => sum + section.items, 0);
    let offset = Math.min(1, Math.max(0, (clientY - top) / (height || 1))) * total;
    let section = null;
    for (section of sections) {
      if (offset < section.items) break;
      offset -= section.items;
    }
    if (section === null) return;
    this.navigation.cancel();
    const box = section.element.getBoundingClientRect();
    const share = section.items > 0 ? Math.min(1, offset / section.items) : 0;
    scrollBy({ top: box.top + box.height * share - innerHeight / 2, behavior: "instant" });
  }
}
