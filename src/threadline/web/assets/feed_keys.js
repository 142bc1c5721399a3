// The keys of the WAI-ARIA feed pattern, which screen reader users know, in addition to the table of keys.

const BESIDE = "a[href], button:not([disabled]), input:not([disabled]), summary, [tabindex='0']";

/**
 * Page Down and Page Up step through items while one of them has the focus. Home and End go to the ends of the whole
 * session, not only of the part that is filled. With Control, the focus leaves the feed.
 * @param {HTMLElement} feed
 * @param {import("./keys.js").Deeds} deeds
 */
export function feedKeys(feed, deeds) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.metaKey || event.shiftKey || isTyping(event.target)) return;
    const isInside = feed.contains(document.activeElement);
    const deed = isInside && event.ctrlKey ? leaving(feed, event.key) : staying(event, isInside, deeds);
    if (deed === null) return;
    event.preventDefault();
    deed(event);
  });
}

function staying(event, isInside, deeds) {
  if (event.ctrlKey || document.querySelector("dialog[open]") !== null) return null;
  if (event.key === "Home") return deeds.start;
  if (event.key === "End") return deeds.end;
  if (!isInside) return null;
  if (event.key === "PageDown") return deeds["next-item"];
  return event.key === "PageUp" ? deeds["previous-item"] : null;
}

function leaving(feed, key) {
  if (key !== "Home" && key !== "End") return null;
  const side = key === "End" ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const all = Array.from(document.querySelectorAll(BESIDE)).filter(
    (one) => !feed.contains(one) && feed.compareDocumentPosition(one) & side && one.checkVisibility(),
  );
  const next = key === "End" ? all[0] : all.at(-1);
  return next === undefined ? null : () => next.focus();
}

function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}
