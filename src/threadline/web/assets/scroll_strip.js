// The strip beside the conversation: shows the current position, and scrolls when it is clicked or dragged.

import { firstBelow } from "./visibility.js";

/** Minimum height in pixels. */
const LOWEST = 120;

/** Moves the marker on the strip as the page scrolls, and scrolls the page as the strip is dragged. */
export class ScrollMap {
  /**
   * @param {Element} strip
   * @param {import("./windowing.js").Windowing} windowing
   * @param {import("./navigation.js").Travel} travel
   */
  constructor(strip, windowing, travel) {
    this.strip = strip;
    this.windowing = windowing;
    this.travel = travel;
    this.isHeld = false;
  }

  get svg() {
    return this.strip.querySelector("svg");
  }

  start() {
    addEventListener("scroll", () => this.draw(), { passive: true });
    addEventListener("resize", () => this.draw(), { passive: true });
    this.windowing.addEventListener("filled", () => this.draw());
    this.strip.addEventListener("pointerdown", (event) => {
      if (this.svg?.contains(event.target)) this.#grab(event, this.svg);
    });
    this.draw();
  }

  /** Copy the content of another strip, unless this one is being dragged. */
  take(strip) {
    if (this.isHeld) return;
    this.strip.replaceChildren(...strip.childNodes);
    this.draw();
  }

  /** Mark the visible share of the items: the scale of the strip is items, not pixels. */
  draw() {
    const here = this.svg?.querySelector(".here") ?? null;
    if (here === null) return;
    this.#fit();
    const from = this.#share(0);
    const to = this.#share(innerHeight);
    const { y, height } = this.#box();
    const size = Math.max(height * (to - from), height * 0.008);
    here.setAttribute("y", String(y + Math.min(height * from, height - size)));
    here.setAttribute("height", String(size));
  }

  /** Fit the strip into the window below what is above it, which scrolls away. */
  #fit() {
    const room = Math.round(innerHeight - Math.max(0, this.strip.getBoundingClientRect().top));
    const height = `${Math.max(LOWEST, room)}px`;
    if (this.strip.style.height !== height) this.strip.style.height = height;
  }

  #box() {
    const { y, height } = this.svg.viewBox.baseVal ?? { y: 0, height: 0 };
    return height > 0 ? { y, height } : { y: 0, height: this.svg.getBoundingClientRect().height };
  }

  /** The share of all items above a y position in the window. */
  #share(at) {
    const { sections } = this.windowing;
    const number = firstBelow(sections, at);
    let above = 0;
    let all = 0;
    sections.forEach((section, index) => {
      all += section.items;
      if (index < number) above += section.items;
    });
    if (all === 0) return 0;
    if (number < sections.length) {
      const { top, height } = sections[number].element.getBoundingClientRect();
      above += sections[number].items * Math.min(1, Math.max(0, (at - top) / (height || 1)));
    }
    return above / all;
  }

  #grab(event, svg) {
    if (event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    this.isHeld = true;
    let isMoved = false;
    const move = (moved) => {
      isMoved ||= Math.abs(moved.clientY - event.clientY) > 3;
      if (isMoved) this.#jump(moved.clientY);
    };
    const release = (last) => {
      svg.removeEventListener("pointermove", move);
      this.isHeld = false;
      // Bands are links for browsers without scripts. With scripts, a click scrolls to exactly that position.
      if (!isMoved && last.type === "pointerup") this.#jump(last.clientY);
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerup", release, { once: true });
    svg.addEventListener("pointercancel", release, { once: true });
    svg.addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
  }

  /** Scroll so that the item at a y position of the strip is in the middle of the window. */
  #jump(clientY) {
    const { top, height } = this.svg.getBoundingClientRect();
    const { sections } = this.windowing;
    const all = sections.reduce((sum, section) => sum + section.items, 0);
    let left = Math.min(1, Math.max(0, (clientY - top) / (height || 1))) * all;
    const section = sections.find((one) => (left < one.items ? true : ((left -= one.items), false))) ?? sections.at(-1);
    if (section === undefined) return;
    this.travel.journey += 1;
    const box = section.element.getBoundingClientRect();
    const share = section.items > 0 ? Math.min(1, left / section.items) : 0;
    scrollBy({ top: box.top + box.height * share - innerHeight / 2, behavior: "instant" });
  }
}
