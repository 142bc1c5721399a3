// The outline of turns: marks the visible turn, and loads more turns at the ends of the list.

import { askText, isAborted, nodes, Refused } from "./fetching.js";
import { isSeen, readAt } from "./visibility.js";

const PAUSE = 120;

/** Keeps the outline at the visible turn. */
export class Turns {
  /**
   * @param {HTMLElement} side
   * @param {import("./session.js").Session} session
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(side, session, windowing) {
    this.side = side;
    this.session = session;
    this.windowing = windowing;
    this.timer = 0;
    this.turn = null;
    /** @type {Element|null} the last navigation target */
    this.marked = null;
    this.stop = null;
  }

  start() {
    // Sessions may be listed instead; they stay as they are.
    if (this.side.querySelector(".turns") === null) return;
    addEventListener("scroll", () => this.#later(), { passive: true });
    this.windowing.addEventListener("filled", () => this.#later());
    // A navigation target counts as the visible item until the user scrolls.
    this.session.feed.addEventListener("marked", (event) => {
      this.marked = event.target;
      this.#later();
    });
    for (const kind of ["wheel", "touchmove"]) addEventListener(kind, () => (this.marked = null), { passive: true });
    this.side.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[data-fragment]") : null;
      if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#load(link.dataset.fragment);
    });
    this.#later();
  }

  #later() {
    if (this.timer === 0) {
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.#look();
      }, PAUSE);
    }
  }

  async #look() {
    const turn = this.#seen();
    if (turn === null || turn === this.turn) return;
    this.turn = turn;
    if (this.#show()) return;
    await this.#load(this.session.address(["turns"], { around: turn }));
    this.#show();
  }

  /** The turn of the last navigation target, or of the item that is being read. */
  #seen() {
    const { marked } = this;
    const isHere = marked !== null && marked.isConnected && isSeen(marked);
    const item = isHere ? marked.closest(".section > article") : readAt(this.windowing.sections);
    if (item === null) return null;
    for (let one = item; one !== null; one = one.previousElementSibling) {
      const number = one.querySelector(":scope.turn-start h2.turn")?.textContent.replace(/\D/g, "");
      if (number) return number;
    }
    return item.closest(".section").dataset.turn ?? null;
  }

  /** Mark a turn; false if it is not in the list. */
  #show() {
    const link = this.side.querySelector(`a[data-turn="${CSS.escape(this.turn)}"]`);
    if (link === null) return false;
    this.side.querySelector("a[data-turn][aria-current]")?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    this.#scrollTo(link);
    return true;
  }

  /** Scroll the list only: `scrollIntoView` would scroll the page as well. */
  #scrollTo(link) {
    for (let box = link.parentElement; box !== null && this.side.contains(box); box = box.parentElement) {
      if (box.scrollHeight <= box.clientHeight || getComputedStyle(box).overflowY === "visible") continue;
      const [inner, outer] = [link.getBoundingClientRect(), box.getBoundingClientRect()];
      if (inner.top < outer.top || inner.bottom > outer.bottom) {
        box.scrollTop += inner.top - outer.top - outer.height / 3;
      }
      return;
    }
  }

  /**
   * Copy the turns of another outline.
   * @param {Element} side
   */
  take(side) {
    const list = side.querySelector(".turns");
    if (list === null || this.side.querySelector(".turns") === null) return;
    this.#put(...side.querySelectorAll("p.more, .turns"));
    if (this.turn !== null) this.#show();
  }

  #put(...content) {
    for (const more of this.side.querySelectorAll("p.more")) more.remove();
    this.side.querySelector(".turns").replaceWith(...content);
  }

  async #load(address) {
    this.stop?.abort();
    this.stop = new AbortController();
    try {
      const content = nodes(await askText(address, this.stop.signal));
      this.windowing.hold.keep(() => {
        this.windowing.makeRoom(content.querySelectorAll("*").length);
        this.#put(content);
      });
    } catch (error) {
      if (!isAborted(error) && !(error instanceof Refused)) throw error;
    }
  }
}
