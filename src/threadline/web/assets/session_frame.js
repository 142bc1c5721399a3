// Updates the frame of the conversation (header, filters, turn list, usage strip) as the session grows.

import { showCopyButtons } from "./copy.js";
import { fetchText, isAborted, RequestError } from "./fetch.js";

/** Minimum time between two requests, in milliseconds. */
const MIN_INTERVAL_MS = 4000;

/** Keeps the frame of the conversation current. */
export class SessionFrame {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(session, windowing) {
    this.session = session;
    this.windowing = windowing;
    /** @type {import("./turn_list.js").TurnList|null} */
    this.turnList = null;
    /** @type {import("./scroll_strip.js").ScrollStrip|null} */
    this.scrollStrip = null;
    /** @type {import("./mini_head.js").MiniHead|null} */
    this.miniHead = null;
    this.timer = 0;
    this.isLast = true;
    this.lastUpdate = -Infinity;
  }

  /**
   * Request an update, at most every few seconds, and once more after that: costs are known a little later than the
   * messages.
   */
  scheduleUpdate({ isLast = false } = {}) {
    this.isLast &&= isLast;
    if (this.timer !== 0) return;
    this.isLast = isLast;
    const wait = Math.max(0, this.lastUpdate + MIN_INTERVAL_MS - performance.now());
    this.timer = setTimeout(async () => {
      this.timer = 0;
      this.lastUpdate = performance.now();
      const frame = await this.#fetch();
      if (frame !== null) this.#replace(frame);
      if (!this.isLast) this.scheduleUpdate({ isLast: true });
    }, wait);
  }

  /** Add what a preview of a long session lacks. */
  async complete() {
    const frame = await this.#fetch();
    if (frame !== null) this.windowing.scrollAnchor.preserve(() => replaceAll(this.session.root, frame));
  }

  async #fetch() {
    try {
      const page = document.createElement("template");
      page.innerHTML = await fetchText(this.session.frameUrl(this.turnList?.turn ?? 0));
      const frame = page.content.querySelector("[data-about]");
      showCopyButtons(page.content);
      if (frame !== null) Object.assign(this.session.root.dataset, frame.dataset);
      return frame;
    } catch (error) {
      // The server may be away for a moment: the next change requests it again.
      if (!(error instanceof RequestError) && !isAborted(error)) throw error;
      return null;
    }
  }

  /** Replace each part of the frame, unless it contains the focus or a selection: then it waits for the next update. */
  #replace(frame) {
    const { root } = this.session;
    this.windowing.scrollAnchor.preserve(() => {
      const head = root.querySelector("header.head");
      const newHead = frame.querySelector("header.head");
      if (newHead !== null && !isBusy(head)) head.replaceWith(newHead);
      const side = frame.querySelector(".side");
      if (side !== null && this.turnList !== null && !isBusy(this.turnList.side)) this.turnList.replace(side);
      const strip = frame.querySelector(".usage-strip");
      if (strip !== null) this.scrollStrip?.replace(strip);
      const bar = frame.querySelector(".mini-head");
      if (bar !== null) this.miniHead?.refresh(bar);
    });
  }
}

/** The parts of the frame, in the order of the document. */
const PARTS = ["header.head", "nav.filters", ".branch-note", ".mini-head", ".side", ".usage-strip"];

function replaceAll(root, frame) {
  let previous = null;
  for (const selector of PARTS) {
    const part = frame.querySelector(selector);
    if (part === null) continue;
    const oldPart = root.querySelector(selector);
    if (oldPart !== null) oldPart.replaceWith(part);
    else if (previous !== null) previous.after(part);
    previous = part;
  }
}

function isBusy(element) {
  if (element === null || element.contains(document.activeElement)) return true;
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode);
}
