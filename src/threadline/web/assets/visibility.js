// Which sections and items are visible.

/** @typedef {import("./section.js").Section} Section */

/** The distance of a navigation target from the top of the window: what covers the top, and a margin. */
export function inset() {
  const item = document.querySelector(".feed article");
  const margin = item === null ? 0 : Number.parseFloat(getComputedStyle(item).scrollMarginTop);
  return margin > 0 ? margin : 64;
}

/**
 * The index of the first section that ends below a y position, by binary search.
 * @param {Section[]} sections
 * @param {number} y
 */
export function firstBelow(sections, y) {
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
export function firstSeen(sections) {
  const top = inset();
  for (let at = firstBelow(sections, top); at < sections.length; at += 1) {
    const section = sections[at];
    if (section.element.getBoundingClientRect().top >= innerHeight) return null;
    if (!section.isFilled) continue;
    const found = section.articles().find((item) => item.getBoundingClientRect().bottom > top + 1);
    if (found !== undefined) return found.getBoundingClientRect().top < innerHeight ? found : null;
  }
  return null;
}

/**
 * The item that is being read: the first visible one; towards the end of the document, which cannot scroll further,
 * one further down; at the very end, the last.
 * @param {Section[]} sections
 * @returns {HTMLElement|null}
 */
export function readAt(sections) {
  const first = firstSeen(sections);
  if (first === null) return null;
  const left = leftBelow();
  const way = Math.min(innerHeight, left + Math.max(0, scrollY));
  const top = inset();
  const line = way <= 0 || left >= way ? top : top + (1 - left / way) * (innerHeight - top);
  let found = first;
  for (let at = firstBelow(sections, top); at < sections.length; at += 1) {
    if (sections[at].element.getBoundingClientRect().top > line) break;
    for (const item of sections[at].isFilled ? sections[at].articles() : []) {
      if (item.getBoundingClientRect().top > line) return found;
      found = item;
    }
  }
  return found;
}

/** How far the document can still scroll down. */
export function leftBelow() {
  const root = document.documentElement;
  return root.scrollHeight - root.clientHeight - scrollY;
}

/** Whether an item is at least partly visible. */
export function isSeen(item) {
  const { top, bottom } = item.getBoundingClientRect();
  return bottom > inset() && top < innerHeight;
}
