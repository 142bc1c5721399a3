// Which sections and items are visible.

/** @typedef {import("./section.js").Section} Section */

/** The distance of a navigation target from the top of the window: what covers the top, and a margin. */
export function topInset() {
  return Number.parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 64;
}

/**
 * The index of the first section that ends below a y position, by binary search.
 * @param {Section[]} sections
 * @param {number} y
 */
export function firstSectionBelow(sections, y) {
  let low = 0;
  let high = sections.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sections[middle].element.getBoundingClientRect().bottom > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The first visible item in filled sections.
 * @param {Section[]} sections
 * @returns {HTMLElement|null}
 */
export function firstVisibleItem(sections) {
  const top = topInset();
  for (let index = firstSectionBelow(sections, top); index < sections.length; index += 1) {
    const section = sections[index];
    if (section.element.getBoundingClientRect().top >= innerHeight) return null;
    if (!section.isFilled) continue;
    const item = section.articles().find((article) => article.getBoundingClientRect().bottom > top + 1);
    if (item !== undefined) return item.getBoundingClientRect().top < innerHeight ? item : null;
  }
  return null;
}

/**
 * The item that is being read: the first visible one; towards the end of the document, which cannot scroll further,
 * one further down; at the very end, the last.
 * @param {Section[]} sections
 * @returns {HTMLElement|null}
 */
function itemBeingRead(sections) {
  let item = firstVisibleItem(sections);
  if (item === null) return null;
  const remaining = remainingScroll();
  const range = Math.min(innerHeight, remaining + Math.max(0, scrollY));
  const top = topInset();
  const readingLine = range <= 0 || remaining >= range ? top : top + (1 - remaining / range) * (innerHeight - top);
  for (let index = firstSectionBelow(sections, top); index < sections.length; index += 1) {
    if (sections[index].element.getBoundingClientRect().top > readingLine) break;
    for (const article of sections[index].isFilled ? sections[index].articles() : []) {
      if (article.getBoundingClientRect().top > readingLine) return item;
      item = article;
    }
  }
  return item;
}

/** How far the document can still scroll down. */
export function remainingScroll() {
  const root = document.documentElement;
  return root.scrollHeight - root.clientHeight - scrollY;
}

/** Whether an item is at least partly visible. */
export function isVisible(item) {
  const { top, bottom } = item.getBoundingClientRect();
  return bottom > topInset() && top < innerHeight;
}

/** Knows which item is being read: the last navigation target until the user scrolls, or else by what is visible. */
export class ReadingPosition {
  /**
   * @param {HTMLElement} feed
   * @param {Section[]} sections
   */
  constructor(feed, sections) {
    this.sections = sections;
    /** @type {Element|null} the last navigation target, until the user scrolls */
    this.target = feed.querySelector("article.current");
    feed.addEventListener("current", (event) => (this.target = event.target));
    for (const kind of ["wheel", "touchmove"]) addEventListener(kind, () => (this.target = null), { passive: true });
  }

  /** @returns {Element|null} */
  item() {
    const { target } = this;
    const isTargetVisible = target !== null && target.isConnected && isVisible(target);
    return isTargetVisible ? target.closest(".section > article") : itemBeingRead(this.sections);
  }
}
