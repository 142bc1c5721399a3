// Navigation to an item, a turn, the start or the end, whether it is filled or not.

import { fetchJson, isAborted, RequestError } from "./fetch.js";
import { firstVisibleItem, isVisible, topInset } from "./visibility.js";
import { showStatus } from "./status.js";

/** Navigates within a session. */
export class ItemNavigation {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(session, windowing) {
    this.session = session;
    this.windowing = windowing;
    /** @type {string|null} the current item, to which keys apply */
    this.currentId = null;
    // A click or Tab into an item makes it the current one.
    session.feed.addEventListener("focusin", (event) => {
      const item = event.target.closest("article");
      if (item !== null && item.id !== this.currentId) this.setCurrent(item);
    });
    /** The id of the latest navigation: an earlier one that takes longer must not override it. */
    this.latestId = 0;
    /** The number of targets chosen so far: steps that were requested before the latest one are dropped. */
    this.targets = 0;
    /** @type {Promise<unknown>} the queue of steps: none is lost while one waits */
    this.queue = Promise.resolve();
  }

  /** The current item: the last target if it is visible, otherwise the first visible item. */
  current() {
    const target = this.currentId === null ? null : document.getElementById(this.currentId);
    if (target !== null && isVisible(target)) return target;
    return firstVisibleItem(this.windowing.sections);
  }

  /**
   * Go to an item by its anchor.
   * @param {string} anchor
   * @param {{top?: number, focus?: boolean}} [options] `top` is its distance from the top of the window
   * @returns {Promise<HTMLElement|null>}
   */
  async goTo(anchor, { top, focus = false } = {}) {
    const id = this.#begin();
    const item = document.getElementById(anchor);
    if (item !== null && this.session.feed.contains(item)) {
      const section = item.closest(".section");
      if (section === null) return this.#show(item, { top, focus });
      return this.windowing.withFilled(Number(section.dataset.number), () => {
        const target = document.getElementById(anchor);
        return target === null || id !== this.latestId ? null : this.#show(target, { top, focus });
      });
    }
    return this.#loadAndShow(anchor, id, { top, focus });
  }

  /** Start a navigation, which cancels all others, and return its id. */
  #begin() {
    this.latestId += 1;
    this.targets += 1;
    return this.latestId;
  }

  /** Cancel the current navigation: the user has scrolled somewhere else. */
  cancel() {
    this.latestId += 1;
  }

  /** Go to an item that is not in the document. */
  async #loadAndShow(anchor, id, options) {
    try {
      const position = await fetchJson(this.session.positionUrl(anchor));
      if (id !== this.latestId) return null;
      if (position.section === null && !position.page) throw new RequestError(404, anchor);
      if (position.page || this.#isInOtherPart(position.section)) {
        location.assign(position.page ?? this.session.linkTo(anchor));
        return null;
      }
      return await this.windowing.withFilled(position.section, (section) => {
        if (id !== this.latestId) return null;
        const item = document.getElementById(anchor);
        if (item !== null) return this.#show(item, options);
        showStatus("This entry is hidden in this view. Showing the entry before it.");
        const nearest = document.getElementById(position.anchor) ?? section.articles()[0];
        return nearest === undefined ? null : this.#show(nearest, options);
      });
    } catch (error) {
      if (error instanceof RequestError) showStatus("This entry does not exist, or is hidden in this view.");
      else if (!isAborted(error)) throw error;
      return null;
    }
  }

  /** Whether a section is in another part of a very long session. */
  #isInOtherPart(number) {
    return this.windowing.sections.every((section) => section.number !== number);
  }

  #show(item, { top, focus }) {
    this.windowing.foldState.reveal(item);
    this.setCurrent(item);
    if (focus) item.focus({ preventScroll: true });
    this.windowing.scrollAnchor.pin(item, top ?? topInset());
    return item;
  }

  /** Make an item the current one. */
  setCurrent(item) {
    const previous = this.session.feed.querySelector("article.current");
    if (previous !== item) {
      previous?.classList.remove("current");
      previous?.setAttribute("tabindex", "-1");
    }
    this.currentId = item.id;
    item.classList.add("current");
    // Only the current item can be reached with Tab.
    item.setAttribute("tabindex", "0");
    item.dispatchEvent(new Event("current", { bubbles: true }));
  }

  /** Move the focus to an item, scrolling as little as needed. */
  #focus(item) {
    this.cancel();
    this.setCurrent(item);
    item.focus({ preventScroll: true });
    const { top, bottom } = item.getBoundingClientRect();
    if (top < topInset() - 1 || bottom > innerHeight) this.windowing.scrollAnchor.pin(item, topInset());
    else this.windowing.scrollAnchor.remember();
  }

  /**
   * Step to the next or previous item.
   * @param {1|-1} direction
   */
  step(direction) {
    return this.#enqueue(() => this.#step(direction));
  }

  /** Run a step after the previous ones, unless another target was chosen by then. */
  #enqueue(action) {
    const { targets } = this;
    const run = () => (targets === this.targets ? action() : undefined);
    this.queue = this.queue.then(run, run);
    return this.queue;
  }

  async #step(direction) {
    const from = this.current();
    if (from === null) return;
    // The first key only shows the current item, unless it is shown already.
    const isShown = document.activeElement?.closest("article") === from || this.currentId === from.id;
    const item = isShown ? await this.#findNext(from, direction, "article") : from;
    if (item !== null) this.#focus(item);
    else this.#goToNextPart(direction);
  }

  /** Step to the next or previous turn. */
  stepTurn(direction) {
    return this.#enqueue(() => this.#stepTurn(direction));
  }

  async #stepTurn(direction) {
    const from = this.current();
    if (from === null) return;
    const item = await this.#findNext(from, direction, "article.turn-start");
    if (item === null) {
      if (this.#goToNextPart(direction)) return;
      showStatus(direction > 0 ? "This is the last turn." : "This is the first turn.");
    } else {
      this.#focus(item);
      this.windowing.scrollAnchor.pin(item, topInset());
    }
  }

  /** Find the next or previous item that matches a selector, in this section or another one. */
  async #findNext(from, direction, selector) {
    const next = nextInDocument(itemsWithin(from.closest(".section") ?? this.session.feed, selector), from, direction);
    if (next !== null) return next;
    const { sections } = this.windowing;
    const current = sections.findIndex((section) => section.element.contains(from));
    for (let index = current + direction; index >= 0 && index < sections.length; index += direction) {
      if (selector !== "article" && !this.#mayStartTurn(index)) continue;
      const item = await this.windowing.withFilled(sections[index].number, (section) => {
        const items = itemsWithin(section.element, selector);
        return (direction > 0 ? items[0] : items.at(-1)) ?? null;
      });
      if (item !== null) return item;
    }
    if (direction < 0 || !this.session.isPreview) return null;
    await this.session.loaded;
    return this.#findNext(document.getElementById(from.id) ?? this.current() ?? from, direction, selector);
  }

  /** Go to the part before or after this one; false if there is none. */
  #goToNextPart(direction) {
    const part = this.session.part + direction;
    if (part < 1 || part > this.session.parts) return false;
    location.assign(this.session.partUrl(part, { end: direction < 0 }));
    return true;
  }

  /** Whether a turn may begin in a section, judging by its number and those of its neighbours. */
  #mayStartTurn(index) {
    const { sections } = this.windowing;
    const [previous, section, next] = [sections[index - 1], sections[index], sections[index + 1]];
    if (section.turn === null || previous === undefined || next === undefined) return true;
    return section.turn !== previous.turn || section.turn !== next.turn;
  }

  /** Go to the start of the session. */
  async goToStart() {
    const id = this.#begin();
    if (this.session.part > 1) {
      location.assign(this.session.partUrl(1));
      return;
    }
    const first = this.windowing.sections[0];
    const item = first && (await this.windowing.withFilled(first.number, (section) => section.articles()[0] ?? null));
    if (id !== this.latestId) return;
    if (item) {
      this.setCurrent(item);
      item.focus({ preventScroll: true });
    }
    this.windowing.scrollAnchor.scrollToStart();
    this.windowing.scheduleUpdate();
  }

  /** Go to the end of the session. */
  async goToEnd() {
    const id = this.#begin();
    await this.session.loaded;
    if (id !== this.latestId) return;
    if (this.session.part < this.session.parts) {
      location.assign(this.session.partUrl(this.session.parts, { end: true }));
    } else {
      await this.goToEndOfPart();
    }
  }

  /** Go to the end of this page, whether or not another part follows. */
  async goToEndOfPart() {
    const id = this.#begin();
    const last = this.windowing.sections.at(-1);
    const item = last && (await this.windowing.withFilled(last.number, (section) => section.articles().at(-1) ?? null));
    if (!item || id !== this.latestId) return;
    this.setCurrent(item);
    item.focus({ preventScroll: true });
    this.windowing.scrollAnchor.pinEnd();
    this.windowing.scheduleUpdate();
  }
}

/** The items in an element that match a selector and are not in a closed fold. */
function itemsWithin(element, selector) {
  const isShown = (item) => item.parentElement.closest("details:not([open])") === null;
  return Array.from(element.querySelectorAll(selector)).filter(isShown);
}

/** The item of a list that comes next after or before another in the document. */
function nextInDocument(items, from, direction) {
  const side = direction > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const candidates = items.filter((item) => item !== from && from.compareDocumentPosition(item) & side);
  return (direction > 0 ? candidates[0] : candidates.at(-1)) ?? null;
}
