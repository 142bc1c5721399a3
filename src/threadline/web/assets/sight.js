// Sight: which sections and items can be seen.

/** @typedef {import("./section.js").Section} Section */

/** How far below the window's top an item begins that was gone to: what covers the top, and a little air. */
export function inset() {
  const item = document.querySelector(".feed article");
  const margin = item === null ? 0 : Number.parseFloat(getComputedStyle(item).scrollMarginTop);
  return margin > 0 ? margin : 64;
}

/**
 * The index of the first section that ends below a height of the window; sections stand in order, so it is halved for.
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
 * The first item that can be seen, filled sections only.
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

/** How far the document can still be scrolled down. */
export function leftBelow() {
  const root = document.documentElement;
  return root.scrollHeight - root.clientHeight - scrollY;
}

/** Whether an item can be seen, at least in part. */
export function isSeen(item) {
  const { top, bottom } = item.getBoundingClientRect();
  return bottom > inset() && top < innerHeight;
}
