// The list of turns: marks the visible turn, and loads more turns at the ends of the list.

import { fetchText, isAborted, parseHtml, RequestError } from "./fetch.js";
import { ReadingPosition } from "./visibility.js";

const UPDATE_MS = 120;

/** Keeps the list at the visible turn. */
export class TurnList {
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
    /** @type {string|null} the number of the marked turn */
    this.turn = null;
    this.position = new ReadingPosition(session.feed, windowing.sections);
    this.abort = null;
  }

  start() {
    // Sessions may be listed instead; they stay as they are.
    if (this.side.querySelector(".turns") === null) return;
    addEventListener("scroll", () => this.#scheduleUpdate(), { passive: true });
    this.windowing.addEventListener("filled", () => this.#scheduleUpdate());
    this.session.feed.addEventListener("current", () => this.#scheduleUpdate());
    this.side.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[data-fragment]") : null;
      if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#load(link.dataset.fragment);
    });
    this.#scheduleUpdate();
  }

  #scheduleUpdate() {
    if (this.timer === 0) {
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.#update();
      }, UPDATE_MS);
    }
  }

  async #update() {
    const turn = this.#visibleTurn();
    if (turn === null || turn === this.turn) return;
    this.turn = turn;
    if (this.#markTurn()) return;
    await this.#load(this.session.url(["turns"], { around: turn }));
    this.#markTurn();
  }

  /** The turn of the item that is being read. */
  #visibleTurn() {
    const item = this.position.item();
    return item === null ? null : turnOf(item);
  }

  /** Mark the visible turn; false if it is not in the list. */
  #markTurn() {
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
   * Replace the turns with those of another list.
   * @param {Element} side
   */
  replace(side) {
    const list = side.querySelector(".turns");
    if (list === null || this.side.querySelector(".turns") === null) return;
    this.#setContent(...side.querySelectorAll("p.more, .turns"));
    if (this.turn !== null) this.#markTurn();
  }

  #setContent(...content) {
    for (const more of this.side.querySelectorAll("p.more")) more.remove();
    this.side.querySelector(".turns").replaceWith(...content);
  }

  async #load(url) {
    this.abort?.abort();
    this.abort = new AbortController();
    try {
      const content = parseHtml(await fetchText(url, this.abort.signal));
      this.windowing.scrollAnchor.preserve(() => {
        this.windowing.makeRoom(content.querySelectorAll("*").length);
        this.#setContent(content);
      });
    } catch (error) {
      if (!isAborted(error) && !(error instanceof RequestError)) throw error;
    }
  }
}

/**
 * The number of an item's turn; null if no turn has begun.
 * @param {Element} item
 */
export function turnOf(item) {
  for (let sibling = item; sibling !== null; sibling = sibling.previousElementSibling) {
    const number = sibling.querySelector(":scope.turn-start h2.turn")?.textContent.replace(/\D/g, "");
    if (number) return number;
  }
  return item.closest(".section").dataset.turn ?? null;
}
