// Windowing: sections near the visible part are filled, distant ones are empty, however long the session is.

import { isAborted, nodes } from "./fetching.js";
import { Hold } from "./scroll_anchor.js";
import { Parts } from "./section_cache.js";
import { Section } from "./section.js";
import { firstBelow } from "./visibility.js";

/** The maximum number of elements in the feed; the whole document may have 5,000. */
const MOST = 4700;
/** Distances in screens: below the first, sections are filled; beyond the second, emptied; up to the third, fetched. */
const NEAR = 1.5;
const FAR = 3;
const AHEAD = 4;
/** Scrolling more than this in a frame is passing through; milliseconds of rest that count as an arrival. */
const RUSH = 2.5;
const ARRIVED = 60;
const RETRY = 3000;
/** How often an aborted request is repeated. */
const TRIES = 3;

/** Fills and empties sections. Calls `filled` for what was filled, and `stale` if the server has other sections. */
export class Windowing extends EventTarget {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./folds.js").Folds} folds
   */
  constructor(session, folds) {
    super();
    this.feed = session.feed;
    this.folds = folds;
    this.sections = Array.from(this.feed.querySelectorAll(":scope > .section"), (element) => new Section(element));
    this.parts = new Parts(session);
    this.hold = new Hold(this.sections);
    /** @type {Set<Section>} sections that a caller waits for */
    this.required = new Set();
    this.all = document.getElementsByTagName("*");
    this.y = scrollY;
    this.isDown = true;
    this.arrival = 0;
    this.frame = 0;
  }

  start() {
    this.hold.keep(() => this.#rest());
    addEventListener("scroll", () => this.#scrolled(), { passive: true });
    addEventListener("resize", () => this.soon(), { passive: true });
    this.update();
  }

  /** Estimate the heights of empty sections, corrected by the error for filled ones. */
  #rest() {
    const filled = this.sections.filter((section) => section.isFilled);
    const guessed = filled.reduce((sum, section) => sum + section.height, 0);
    const real = filled.reduce((sum, section) => sum + section.element.getBoundingClientRect().height, 0);
    const ratio = guessed > 0 && real > 0 ? Math.min(3, Math.max(0.4, real / guessed)) : 1;
    this.ratio = ratio;
    for (const section of this.sections) {
      if (section.isFilled) continue;
      section.height = Math.round(section.height * ratio);
      section.rest();
    }
  }

  #scrolled() {
    // Our own corrections do not count as scrolling.
    const moved = scrollY - this.y;
    this.y = scrollY;
    if (moved !== 0) this.isDown = moved > 0;
    if (Math.abs(moved) > RUSH * innerHeight) this.arrival = performance.now() + ARRIVED;
    this.update();
  }

  /** Update in the next frame. */
  soon() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.update();
    });
  }

  /** Fill and empty sections. */
  update() {
    const order = this.#order();
    const wanted = this.#affordable(order);
    this.#emptyFar(wanted);
    this.#fill(wanted);
    this.#ask(wanted, order);
    this.y = scrollY;
    this.feed.setAttribute("aria-busy", String(wanted.some((near) => !near.section.isFilled)));
  }

  /**
   * The sections around: visible ones first, then by distance; those ahead count as nearer.
   * @returns {{section: Section, at: number, far: number}[]} `far` is in screens, 0 for visible ones
   */
  #order() {
    const screen = innerHeight || 1;
    const found = [];
    for (let at = firstBelow(this.sections, -AHEAD * screen); at < this.sections.length; at += 1) {
      const { top, bottom } = this.sections[at].element.getBoundingClientRect();
      if (top > (1 + AHEAD) * screen) break;
      const above = Math.max(0, -bottom);
      const below = Math.max(0, top - screen);
      found.push({ section: this.sections[at], at, far: (above + below) / screen, isAhead: below > 0 === this.isDown });
    }
    return found.sort((one, other) => rank(one) - rank(other));
  }

  /** Choose as many near sections as the document has room for; visible ones always. */
  #affordable(order) {
    const taken = new Set(order.map((near) => near.section));
    let room = MOST - this.all.length;
    for (const section of this.#filled()) {
      if (taken.has(section) || !this.#isProtected(section)) room += section.elements;
    }
    const wanted = [];
    for (const near of order) {
      if (near.far > NEAR) continue;
      room -= near.section.elements;
      if (room < 0 && near.far > 0) break;
      wanted.push(near);
    }
    return wanted;
  }

  #filled() {
    return this.sections.filter((section) => section.isFilled);
  }

  #emptyFar(wanted) {
    const kept = new Set(wanted.map((near) => near.section));
    const reach = FAR * innerHeight;
    for (const section of this.#filled()) {
      if (kept.has(section) || this.#isProtected(section) || this.folds.isOpened(section.element)) continue;
      const { top, bottom } = section.element.getBoundingClientRect();
      if (bottom < -reach || top > innerHeight + reach) section.empty();
    }
  }

  /** Fill visible sections at once, others one per frame: filling takes time that scrolling needs. */
  #fill(wanted) {
    for (const near of wanted) {
      if (near.section.isFilled || !this.parts.has(near.section)) continue;
      this.#insert(near.section, near.at);
      if (near.far > 0) {
        this.soon();
        return;
      }
    }
  }

  #ask(wanted, order) {
    this.parts.keepOnly([...order.map((near) => near.section), ...this.required]);
    const wait = this.arrival - performance.now();
    if (wait > 0) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.soon(), wait);
      return;
    }
    const ahead = order.filter((near) => near.far > NEAR && near.isAhead);
    for (const { section } of [...wanted, ...ahead]) {
      if (section.isFilled || this.parts.has(section) || this.parts.isAsked(section)) continue;
      if (section.retryAt > performance.now()) continue;
      if (!this.parts.isFree) return;
      this.parts.get(section).then(
        () => this.soon(),
        (error) => this.#failed(section, error),
      );
    }
  }

  #failed(section, error) {
    if (isAborted(error)) {
      this.soon();
      return;
    }
    section.retryAt = performance.now() + RETRY;
    setTimeout(() => this.soon(), RETRY);
    if (error.status === 404) this.dispatchEvent(new Event("stale"));
    else if (!section.isFilled) section.fail();
  }

  /**
   * Fill a section from the cache.
   * @param {boolean} [isLeaving] whether the visible sections are about to be left, and may be emptied
   */
  #insert(section, centre, isLeaving = false) {
    const content = nodes(this.parts.ready(section) ?? "");
    this.folds.restore(content);
    const more = content.querySelectorAll("*").length;
    this.hold.keep(() => {
      this.makeRoom(more, centre, isLeaving);
      section.fill(content);
    });
    this.dispatchEvent(new CustomEvent("filled", { detail: section }));
  }

  /**
   * Empty the most distant sections until there is room for more elements.
   * @param {number} more
   * @param {number} [centre] the index from which distance is measured; by default the visible section
   */
  makeRoom(more, centre = firstBelow(this.sections, 0), isLeaving = false) {
    const over = () => this.all.length + more > MOST;
    if (!over()) return;
    const far = this.#filled()
      .map((section) => ({ section, far: Math.abs(this.sections.indexOf(section) - centre) }))
      .filter(({ section, far }) => far > 0 && !this.#isProtected(section) && (isLeaving || !isOnScreen(section)))
      .sort((one, other) => other.far - one.far);
    // Sections with folds that the user expanded go last; they come back expanded.
    for (const isOpened of [false, true]) {
      for (const { section } of far) {
        if (!over()) return;
        if (section.isFilled && this.folds.isOpened(section.element) === isOpened) section.empty();
      }
    }
  }

  /** Whether emptying a section would lose the focus or a selection. */
  #isProtected(section) {
    return this.required.has(section) || section.element.contains(document.activeElement) || isSelected(section);
  }

  /**
   * Fill a section and its neighbours, then run a function in the same frame.
   * @template T
   * @param {number} number
   * @param {(section: Section) => T} then
   * @returns {Promise<T|null>} null if there is no such section
   */
  async around(number, then) {
    const at = this.sections.findIndex((section) => section.number === number);
    if (at < 0) return null;
    const near = [at, at - 1, at + 1].map((one) => this.sections[one]).filter((one) => one !== undefined);
    for (const section of near) this.required.add(section);
    try {
      const missing = near.filter((section) => !section.isFilled);
      await Promise.all(missing.map((section) => this.#had(section)));
      for (const section of near) {
        if (!section.isFilled && this.parts.has(section)) this.#insert(section, at, true);
      }
      return then(this.sections[at]);
    } finally {
      for (const section of near) this.required.delete(section);
      this.soon();
    }
  }

  /** The content of a section. If the section changes during the request, it is requested again. */
  async #had(section) {
    for (let left = TRIES; ; left -= 1) {
      try {
        return await this.parts.get(section);
      } catch (error) {
        if (!isAborted(error) || left === 0) throw error;
      }
    }
  }

  /** Fill a section that has changed again; the focus stays on its item. */
  async refresh(section) {
    if (isSelected(section)) {
      // A selection is kept: the user may be about to copy it. The new content can wait.
      setTimeout(() => this.refresh(section), RETRY);
      return;
    }
    this.required.add(section);
    const html = await this.#had(section).finally(() => this.required.delete(section));
    if (!section.isFilled) return;
    const focused = section.element.contains(document.activeElement) ? document.activeElement.closest("article") : null;
    const content = nodes(html);
    this.folds.restore(content);
    this.hold.keep(() => section.fill(content));
    if (focused !== null) document.getElementById(focused.id)?.focus({ preventScroll: true });
    this.dispatchEvent(new CustomEvent("filled", { detail: section }));
  }
}

function rank(near) {
  return near.isAhead ? near.far * 0.5 : near.far;
}

/** Whether a selection begins or ends in a section. */
function isSelected({ element }) {
  const chosen = getSelection();
  if (chosen === null || chosen.isCollapsed) return false;
  return element.contains(chosen.anchorNode) || element.contains(chosen.focusNode);
}

function isOnScreen(section) {
  const { top, bottom } = section.element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}
