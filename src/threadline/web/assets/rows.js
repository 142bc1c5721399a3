// Moves through the rows of a list with keys.

/**
 * Focus the link of the next or previous row.
 * @param {1|-1} step
 */
export function stepRow(step) {
  const links = Array.from(document.querySelectorAll("[data-item]"), linkOf).filter((link) => link !== null);
  if (links.length === 0) return false;
  const row = document.activeElement?.closest("[data-item]");
  const at = row ? links.indexOf(linkOf(row)) : -1;
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
  links[next].focus({ preventScroll: true });
  links[next].scrollIntoView({ block: "nearest", behavior: "instant" });
  return true;
}

/** Open the row that has the focus. */
export function openRow() {
  const row = document.activeElement?.closest("[data-item]");
  const link = row ? linkOf(row) : null;
  if (link === null) return false;
  link.click();
  return true;
}

function linkOf(row) {
  return row.matches("a[href]") ? row : row.querySelector("a[href]");
}
