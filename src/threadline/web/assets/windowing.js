// Windowing: sections near the visible part are filled, distant ones are empty, however long the session is.

import { isAborted, parseHtml } from "./fetch.js";
import { ScrollAnchor } from "./scroll_anchor.js";
import { SectionCache } from "./section_cache.js";
import { Section } from "./section.js";
import { firstSectionBelow } from "./visibility.js";

/** The maximum number of elements in the feed; the whole document may have 5,000. */
const MAX_ELEMENTS = 4700;
/** Distances in screens: nearer sections are filled, farther ones emptied, and those ahead fetched in advance. */
const FILL_WITHIN = 1.5;
const EMPTY_BEYOND = 3;
const FETCH_WITHIN = 4;
/** Scrolling more screens than this in a frame is passing through. Sections are requested when it has ended. */
const FAST_SCROLL = 2.5;
const FAST_SCROLL_END_MS = 60;
const RETRY_MS = 3000;
/** How often a request is repeated that was aborted, or during which the section changed. */
const MAX_RETRIES = 3;

/**
 * A section near the window, its index, and its distance in screens: 0 if it is visible.
 * @typedef {{section: Section, index: number, distance: number, isAhead: boolean}} Nearby
 */

/** Fills and empties sections. Fires `filled` for each filled section, and `stale` if the server has other sections. */
export class Windowing extends EventTarget {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./fold_state.js").FoldState} foldState
   */
  constructor(session, foldState) {
    super();
    this.feed = session.feed;
    this.foldState = foldState;
    this.sections = Array.from(this.feed.querySelectorAll(":scope > .section"), (element) => new Section(element));
    this.cache = new SectionCache(session);
    this.scrollAnchor = new ScrollAnchor(this.sections);
    /** @type {Set<Section>} sections that a caller waits for */
    this.required = new Set();
    /** All elements of the document, a live collection. */
    this.elements = document.getElementsByTagName("*");
    this.lastY = scrollY;
    this.isScrollingDown = true;
    /** When fast scrolling counts as ended, if nothing more happens. */
    this.fastScrollEnd = 0;
    this.requestTimer = 0;
    this.frame = 0;
  }

  start() {
    this.scrollAnchor.preserve(() => this.#estimateHeights());
    addEventListener("scroll", () => this.#handleScroll(), { passive: true });
    addEventListener("resize", () => this.scheduleUpdate(), { passive: true });
    // In the next frame: by then the page is at the entry in the URL. At the start, the sections around it are distant.
    this.scheduleUpdate();
  }

  /** Estimate the heights of empty sections, corrected by the error for filled ones. */
  #estimateHeights() {
    const filled = this.sections.filter((section) => section.isFilled);
    const estimated = filled.reduce((sum, section) => sum + section.height, 0);
    const actual = filled.reduce((sum, section) => sum + section.element.getBoundingClientRect().height, 0);
    const ratio = estimated > 0 && actual > 0 ? Math.min(3, Math.max(0.4, actual / estimated)) : 1;
    this.ratio = ratio;
    for (const section of this.sections) {
      if (section.isFilled) continue;
      section.height = Math.round(section.height * ratio);
      section.clear();
    }
  }

  #handleScroll() {
    // Our own corrections do not count as scrolling.
    const distance = scrollY - this.lastY;
    this.lastY = scrollY;
    if (distance !== 0) this.isScrollingDown = distance > 0;
    if (Math.abs(distance) > FAST_SCROLL * innerHeight) this.fastScrollEnd = performance.now() + FAST_SCROLL_END_MS;
    this.update();
  }

  /** Update in the next frame. */
  scheduleUpdate() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.update();
    });
  }

  /** Fill and empty sections. */
  update() {
    const nearby = this.#findNearby();
    const chosen = this.#chooseFilled(nearby);
    this.#emptyFar(chosen);
    this.#fill(chosen);
    this.#request(chosen, nearby);
    this.lastY = scrollY;
    this.feed.setAttribute("aria-busy", String(chosen.some((near) => !near.section.isFilled)));
  }

  /**
   * The sections around the window: visible ones first, then by distance; those in scroll direction count as nearer.
   * @returns {Nearby[]}
   */
  #findNearby() {
    const screen = innerHeight || 1;
    const nearby = [];
    const first = firstSectionBelow(this.sections, -FETCH_WITHIN * screen);
    for (let index = first; index < this.sections.length; index += 1) {
      const { top, bottom } = this.sections[index].element.getBoundingClientRect();
      if (top > (1 + FETCH_WITHIN) * screen) break;
      const above = Math.max(0, -bottom);
      const below = Math.max(0, top - screen);
      const isAhead = below > 0 === this.isScrollingDown;
      nearby.push({ section: this.sections[index], index, distance: (above + below) / screen, isAhead });
    }
    return nearby.sort((a, b) => rank(a) - rank(b));
  }

  /** Choose as many near sections as the document has room for; visible ones always. */
  #chooseFilled(nearby) {
    const sections = new Set(nearby.map((near) => near.section));
    let room = MAX_ELEMENTS - this.elements.length;
    for (const section of this.#filled()) {
      if (sections.has(section) || !this.#isProtected(section)) room += section.elements;
    }
    const chosen = [];
    for (const near of nearby) {
      if (near.distance > FILL_WITHIN) continue;
      room -= near.section.elements;
      if (room < 0 && near.distance > 0) break;
      chosen.push(near);
    }
    return chosen;
  }

  #filled() {
    return this.sections.filter((section) => section.isFilled);
  }

  #emptyFar(chosen) {
    const filled = new Set(chosen.map((near) => near.section));
    const reach = EMPTY_BEYOND * innerHeight;
    for (const section of this.#filled()) {
      if (filled.has(section) || this.#isProtected(section) || this.foldState.hasExpanded(section.element)) continue;
      const { top, bottom } = section.element.getBoundingClientRect();
      if (bottom < -reach || top > innerHeight + reach) section.empty();
    }
  }

  /** Fill visible sections at once, others one per frame: filling takes time that scrolling needs. */
  #fill(chosen) {
    for (const near of chosen) {
      if (near.section.isFilled || !this.cache.has(near.section)) continue;
      this.#insert(near.section, near.index);
      if (near.distance > 0) {
        this.scheduleUpdate();
        return;
      }
    }
  }

  #request(chosen, nearby) {
    this.cache.abortExcept([...nearby.map((near) => near.section), ...this.required]);
    const wait = this.fastScrollEnd - performance.now();
    if (wait > 0) {
      clearTimeout(this.requestTimer);
      this.requestTimer = setTimeout(() => this.scheduleUpdate(), wait);
      return;
    }
    const ahead = nearby.filter((near) => near.distance > FILL_WITHIN && near.isAhead);
    for (const { section } of [...chosen, ...ahead]) {
      if (section.isFilled || this.cache.has(section) || this.cache.isPending(section)) continue;
      if (section.retryAt > performance.now()) continue;
      if (!this.cache.hasCapacity) return;
      this.cache.load(section).then(
        () => this.scheduleUpdate(),
        (error) => this.#handleError(section, error),
      );
    }
  }

  #handleError(section, error) {
    if (isAborted(error)) {
      this.scheduleUpdate();
      return;
    }
    section.retryAt = performance.now() + RETRY_MS;
    setTimeout(() => this.scheduleUpdate(), RETRY_MS);
    if (error.status === 404) this.dispatchEvent(new Event("stale"));
    else if (!section.isFilled) section.showError();
  }

  /**
   * Fill a section from the cache.
   * @param {boolean} [isLeaving] whether the visible sections are about to be left, and may be emptied
   */
  #insert(section, centre, isLeaving = false) {
    const content = parseHtml(this.cache.get(section) ?? "");
    this.foldState.restore(content);
    const count = content.querySelectorAll("*").length;
    this.scrollAnchor.preserve(() => {
      this.makeRoom(count, centre, isLeaving);
      section.fill(content);
    });
    this.dispatchEvent(new CustomEvent("filled", { detail: section }));
  }

  /**
   * Empty the most distant sections until there is room for more elements.
   * @param {number} count
   * @param {number} [centre] the index from which distance is measured; by default the visible section
   */
  makeRoom(count, centre = firstSectionBelow(this.sections, 0), isLeaving = false) {
    const isFull = () => this.elements.length + count > MAX_ELEMENTS;
    if (!isFull()) return;
    const candidates = this.#filled()
      .map((section) => ({ section, distance: Math.abs(this.sections.indexOf(section) - centre) }))
      .filter(({ section, distance }) => distance > 0 && !this.#isProtected(section))
      .filter(({ section }) => isLeaving || !isOnScreen(section))
      .sort((a, b) => b.distance - a.distance);
    // Sections with folds that the user expanded go last; they come back expanded.
    for (const hasExpanded of [false, true]) {
      for (const { section } of candidates) {
        if (!isFull()) return;
        if (section.isFilled && this.foldState.hasExpanded(section.element) === hasExpanded) section.empty();
      }
    }
  }

  /** Count the elements of the section that contains an element, which has changed. */
  recount(element) {
    const section = this.sections.find((each) => each.element.contains(element));
    if (section?.isFilled) section.countElements();
  }

  /** Whether emptying a section would lose the focus or a selection. */
  #isProtected(section) {
    return this.required.has(section) || section.element.contains(document.activeElement) || isSelected(section);
  }

  /**
   * Fill a section and its neighbours, then run a function in the same frame.
   * @template T
   * @param {number} number
   * @param {(section: Section) => T} callback
   * @returns {Promise<T|null>} null if there is no such section
   */
  async withFilled(number, callback) {
    const index = this.sections.findIndex((section) => section.number === number);
    if (index < 0) return null;
    const neighbours = [this.sections[index - 1], this.sections[index + 1]].filter((section) => section !== undefined);
    const around = [this.sections[index], ...neighbours];
    for (const section of around) this.required.add(section);
    try {
      const missing = around.filter((section) => !section.isFilled);
      await Promise.all(missing.map((section) => this.#load(section)));
      for (const section of around) {
        if (!section.isFilled && this.cache.has(section)) this.#insert(section, index, true);
      }
      return callback(this.sections[index]);
    } finally {
      for (const section of around) this.required.delete(section);
      this.scheduleUpdate();
    }
  }

  /** Load the content of a section. If the section changes during the request, it is requested again. */
  async #load(section) {
    for (let retries = MAX_RETRIES; ; retries -= 1) {
      try {
        const html = await this.cache.load(section);
        if (this.cache.has(section) || retries === 0) return html;
      } catch (error) {
        if (!isAborted(error) || retries === 0) throw error;
      }
    }
  }

  /** Fill a section that has changed again; the focus stays on its item. */
  async refresh(section) {
    if (isSelected(section)) {
      // A selection is kept: the user may be about to copy it. The new content can wait.
      setTimeout(() => this.refresh(section), RETRY_MS);
      return;
    }
    this.required.add(section);
    const html = await this.#load(section).finally(() => this.required.delete(section));
    if (!section.isFilled) return;
    const focused = section.element.contains(document.activeElement) ? document.activeElement.closest("article") : null;
    const content = parseHtml(html);
    this.foldState.restore(content);
    this.scrollAnchor.preserve(() => section.fill(content));
    if (focused !== null) document.getElementById(focused.id)?.focus({ preventScroll: true });
    this.dispatchEvent(new CustomEvent("filled", { detail: section }));
  }
}

function rank(near) {
  return near.isAhead ? near.distance * 0.5 : near.distance;
}

/** Whether a selection begins or ends in a section. */
function isSelected({ element }) {
  const selection = getSelection();
  if (selection === null || selection.isCollapsed) return false;
  return element.contains(selection.anchorNode) || element.contains(selection.focusNode);
}

function isOnScreen(section) {
  const { top, bottom } = section.element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}
