// Navigation to an item, a turn, the start or the end, whether it is filled or not.

import { askData, isAborted, Refused } from "./fetching.js";
import { firstSeen, inset, isSeen } from "./visibility.js";
import { say } from "./status.js";

/** Navigates within a session. */
export class Travel {
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
      if (item !== null && item.id !== this.currentId) this.mark(item);
    });
    /** The number of the latest navigation: an earlier one that takes longer must not overtake it. */
    this.journey = 0;
    /** How often a target was chosen: steps requested before that are dropped. */
    this.setOuts = 0;
    /** @type {Promise<unknown>} the queue of steps: none is lost while one waits */
    this.steps = Promise.resolve();
  }

  /** The current item: the last target if it is visible, otherwise the first visible item. */
  current() {
    const known = this.currentId === null ? null : document.getElementById(this.currentId);
    if (known !== null && isSeen(known)) return known;
    return firstSeen(this.windowing.sections);
  }

  /**
   * Go to an item by its anchor.
   * @param {string} anchor
   * @param {{top?: number, focus?: boolean}} [how] `top` is its distance from the top of the window
   * @returns {Promise<HTMLElement|null>}
   */
  async to(anchor, { top, focus = false } = {}) {
    const journey = this.#setOut();
    const item = document.getElementById(anchor);
    if (item !== null && this.session.feed.contains(item)) {
      const section = item.closest(".section");
      if (section === null) return this.#arrive(item, { top, focus });
      return this.windowing.around(Number(section.dataset.number), () => {
        const found = document.getElementById(anchor);
        return found === null || journey !== this.journey ? null : this.#arrive(found, { top, focus });
      });
    }
    return this.#fromAfar(anchor, journey, { top, focus });
  }

  /** Start a navigation, which cancels all others; returns its number. */
  #setOut() {
    this.journey += 1;
    this.setOuts += 1;
    return this.journey;
  }

  async #fromAfar(anchor, journey, how) {
    try {
      const found = await askData(this.session.where(anchor));
      if (journey !== this.journey) return null;
      if (found.section === null && !found.page) throw new Refused(404, anchor);
      if (found.page || this.#isElsewhere(found.section)) {
        location.assign(found.page ?? this.session.link(anchor));
        return null;
      }
      return await this.windowing.around(found.section, (section) => {
        if (journey !== this.journey) return null;
        const item = document.getElementById(anchor);
        if (item !== null) return this.#arrive(item, how);
        say("This entry is hidden in this view. This is the entry before it.");
        const near = document.getElementById(found.anchor) ?? section.articles()[0];
        return near === undefined ? null : this.#arrive(near, how);
      });
    } catch (error) {
      if (error instanceof Refused) say("This entry does not exist, or is hidden in this view.");
      else if (!isAborted(error)) throw error;
      return null;
    }
  }

  /** Whether a section is in another part of a very long session. */
  #isElsewhere(number) {
    return this.windowing.sections.every((section) => section.number !== number);
  }

  #arrive(item, { top, focus }) {
    this.windowing.folds.reveal(item);
    this.mark(item);
    if (focus) item.focus({ preventScroll: true });
    this.windowing.hold.pin(item, top ?? inset());
    return item;
  }

  /** Make an item the current one. */
  mark(item) {
    const before = this.session.feed.querySelector("article.current");
    if (before !== item) {
      before?.classList.remove("current");
      before?.setAttribute("tabindex", "-1");
    }
    this.currentId = item.id;
    item.classList.add("current");
    // Only the current item can be reached with Tab.
    item.setAttribute("tabindex", "0");
    item.dispatchEvent(new Event("marked", { bubbles: true }));
  }

  /** Move the focus to an item, scrolling as little as needed. */
  focus(item) {
    this.journey += 1;
    this.mark(item);
    item.focus({ preventScroll: true });
    const { top, bottom } = item.getBoundingClientRect();
    if (top < inset() - 1 || bottom > innerHeight) this.windowing.hold.pin(item, inset());
    else this.windowing.hold.note();
  }

  /**
   * Step to the next or previous item.
   * @param {1|-1} step
   */
  step(step) {
    return this.#inTurn(() => this.#step(step));
  }

  /** Run a step after the previous ones, unless another target was chosen by then. */
  #inTurn(deed) {
    const { setOuts } = this;
    const next = () => (setOuts === this.setOuts ? deed() : undefined);
    this.steps = this.steps.then(next, next);
    return this.steps;
  }

  async #step(step) {
    const from = this.current();
    if (from === null) return;
    // The first key only shows the current item, unless it is shown already.
    const isHere = document.activeElement?.closest("article") === from || this.currentId === from.id;
    const item = isHere ? await this.#beside(from, step, "article") : from;
    if (item !== null) this.focus(item);
    else this.#beyond(step);
  }

  /** Step to the next or previous turn. */
  turn(step) {
    return this.#inTurn(() => this.#turn(step));
  }

  async #turn(step) {
    const from = this.current();
    if (from === null) return;
    const item = await this.#beside(from, step, "article.turn-start");
    if (item === null) {
      if (!this.#beyond(step)) say(step > 0 ? "This is the last turn." : "This is the first turn.");
    } else {
      this.focus(item);
      this.windowing.hold.pin(item, inset());
    }
  }

  /** The next item of a kind, in this section or a following one. */
  async #beside(from, step, kind) {
    const found = beside(within(this.session.feed, kind, from.closest(".section")), from, step);
    if (found !== null) return found;
    const { sections } = this.windowing;
    const here = sections.findIndex((section) => section.element.contains(from));
    for (let at = here + step; at >= 0 && at < sections.length; at += step) {
      if (kind !== "article" && !this.#mayBegin(at)) continue;
      const item = await this.windowing.around(sections[at].number, (section) => {
        const all = within(this.session.feed, kind, section.element);
        return (step > 0 ? all[0] : all.at(-1)) ?? null;
      });
      if (item !== null) return item;
    }
    if (step < 0 || !this.session.isPartial) return null;
    await this.session.whole;
    return this.#beside(document.getElementById(from.id) ?? this.current() ?? from, step, kind);
  }

  /** Go to the part before or after this one; false if there is none. */
  #beyond(step) {
    const number = this.session.number + step;
    if (number < 1 || number > this.session.parts) return false;
    location.assign(this.session.inPart(number, { end: step < 0 }));
    return true;
  }

  /** Whether a turn may begin in a section, judging by its data and the next one's. */
  #mayBegin(at) {
    const { sections } = this.windowing;
    const [before, here, after] = [sections[at - 1], sections[at], sections[at + 1]];
    if (here.turn === null || before === undefined || after === undefined) return true;
    return here.turn !== before.turn || here.turn !== after.turn;
  }

  async toStart() {
    const journey = this.#setOut();
    if (this.session.number > 1) {
      location.assign(this.session.inPart(1));
      return;
    }
    const first = this.windowing.sections[0];
    const item = first && (await this.windowing.around(first.number, (section) => section.articles()[0] ?? null));
    if (journey !== this.journey) return;
    if (item) {
      this.mark(item);
      item.focus({ preventScroll: true });
    }
    scrollTo({ top: 0, behavior: "instant" });
    this.windowing.hold.note();
    this.windowing.soon();
  }

  async toEnd() {
    const journey = this.#setOut();
    await this.session.whole;
    if (journey !== this.journey) return;
    if (this.session.number < this.session.parts) {
      location.assign(this.session.inPart(this.session.parts, { end: true }));
    } else {
      await this.toEndOfPart();
    }
  }

  /** Go to the end of this page, whether or not another part follows. */
  async toEndOfPart() {
    const journey = this.#setOut();
    const last = this.windowing.sections.at(-1);
    const item = last && (await this.windowing.around(last.number, (section) => section.articles().at(-1) ?? null));
    if (!item || journey !== this.journey) return;
    this.mark(item);
    item.focus({ preventScroll: true });
    this.windowing.hold.pinEnd();
    this.windowing.soon();
  }
}

/** The items in an element that are visible when it is scrolled to. */
function within(feed, kind, element) {
  const all = Array.from((element ?? feed).querySelectorAll(kind));
  return all.filter((item) => item.parentElement.closest("details:not([open])") === null);
}

/** The item of a list that comes next to another in the document. */
function beside(items, from, step) {
  const side = step > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const found = items.filter((item) => item !== from && from.compareDocumentPosition(item) & side);
  return (step > 0 ? found[0] : found.at(-1)) ?? null;
}
