// Updates what surrounds the conversation (head, turns, usage strip) as the session grows.

import { askText, isAborted, Refused } from "./fetching.js";

/** Minimum time between two requests, in milliseconds. */
const PAUSE = 4000;

/** Keeps the surroundings of the conversation current. */
export class About {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(session, windowing) {
    this.session = session;
    this.windowing = windowing;
    /** @type {import("./turns.js").Turns|null} */
    this.turns = null;
    /** @type {import("./scroll_strip.js").ScrollMap|null} */
    this.map = null;
    this.timer = 0;
    this.isLast = true;
    this.last = -Infinity;
  }

  /**
   * Request an update, at most every few seconds, and once more after that: costs are known a little later than the
   * messages.
   */
  soon({ isLast = false } = {}) {
    this.isLast &&= isLast;
    if (this.timer !== 0) return;
    this.isLast = isLast;
    const wait = Math.max(0, this.last + PAUSE - performance.now());
    this.timer = setTimeout(async () => {
      this.timer = 0;
      this.last = performance.now();
      const told = await this.#asked();
      if (told !== null) this.#renew(told);
      if (!this.isLast) this.soon({ isLast: true });
    }, wait);
  }

  /** Add what a preview of a long session lacks. */
  async whole() {
    const told = await this.#asked();
    if (told !== null) this.windowing.hold.keep(() => takeOver(this.session.root, told));
  }

  async #asked() {
    try {
      const page = document.createElement("template");
      page.innerHTML = await askText(this.session.about(this.turns?.turn ?? 0));
      const told = page.content.querySelector("[data-about]");
      if (told !== null) Object.assign(this.session.root.dataset, told.dataset);
      return told;
    } catch (error) {
      // The server may be away for a moment: the next change requests it again.
      if (!(error instanceof Refused) && !isAborted(error)) throw error;
      return null;
    }
  }

  /** Replace an element, unless it contains the focus or a selection: then it waits for the next update. */
  #renew(told) {
    const { root } = this.session;
    this.windowing.hold.keep(() => {
      const head = root.querySelector("header.head");
      const next = told.querySelector("header.head");
      if (next !== null && !isBusy(head)) head.replaceWith(next);
      const side = told.querySelector(".side");
      if (side !== null && this.turns !== null && !isBusy(this.turns.side)) this.turns.take(side);
      const strip = told.querySelector(".along");
      if (strip !== null) this.map?.take(strip);
    });
  }
}

const ALL = ["header.head", "nav.filters", ".left-note", ".side", ".along"];

function takeOver(root, told) {
  let last = null;
  for (const name of ALL) {
    const there = told.querySelector(name);
    if (there === null) continue;
    const here = root.querySelector(name);
    if (here !== null) here.replaceWith(there);
    else if (last !== null) last.after(there);
    last = there;
  }
}

function isBusy(element) {
  if (element === null || element.contains(document.activeElement)) return true;
  const chosen = getSelection();
  return chosen !== null && !chosen.isCollapsed && element.contains(chosen.anchorNode);
}
