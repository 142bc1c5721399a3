// Runs the actions of keyboard shortcuts and of buttons with `data-action`.

/** Milliseconds in which the second key of a sequence such as `g s` must follow. */
const SEQUENCE_MS = 1200;
const TEXT_FIELDS =
  "input:not([type=checkbox],[type=radio],[type=button],[type=submit]), textarea, select, [contenteditable]";

/**
 * @typedef {{keys: string[], name: string, what: string, group: string, pages: string[]}} Shortcut
 * @typedef {Object<string, (event: Event) => unknown>} Actions functions by name; one that returns false did nothing
 */

/**
 * The shortcuts that work on this page, from the table of keys that the page contains.
 * @returns {Shortcut[]}
 */
export function readShortcuts() {
  const block = document.getElementById("keys");
  const shortcuts = block === null ? [] : JSON.parse(block.textContent);
  const kinds = document.body.classList;
  return shortcuts.filter(({ pages }) => pages.length === 0 || pages.some((page) => kinds.contains(page)));
}

/**
 * Run the action of a shortcut when its keys are pressed.
 * @param {Shortcut[]} shortcuts
 * @param {Actions} actions
 */
export function handleKeys(shortcuts, actions) {
  const names = new Map(shortcuts.flatMap(({ keys, name }) => keys.map((key) => [key, name])));
  const firstKeys = new Set([...names.keys()].filter((key) => key.includes(" ")).map((key) => key.split(" ")[0]));
  let firstKey = "";
  let timer = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey || isModifier(event.key)) return;
    const key = (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + event.key;
    if (!isShortcut(event, key)) return;
    const sequence = firstKey ? `${firstKey} ${key}` : key;
    clearTimeout(timer);
    const name = names.get(sequence) ?? names.get(key);
    firstKey = name === undefined && firstKeys.has(key) ? key : "";
    if (firstKey) timer = setTimeout(() => (firstKey = ""), SEQUENCE_MS);
    if (name === undefined || actions[name] === undefined) return;
    if (actions[name](event) !== false) event.preventDefault();
  });
}

/** Run the action that a clicked element names in `data-action`. */
export function handleClicks(actions) {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const element = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    const action = element === null ? undefined : actions[element.dataset.action];
    if (action !== undefined && action(event) !== false) event.preventDefault();
  });
}

function isModifier(key) {
  return key === "Shift" || key === "Control" || key === "Meta" || key === "Alt";
}

/** Whether a key is a shortcut, and not input for a text field, menu or button. */
function isShortcut(event, key) {
  const { target } = event;
  if (!(target instanceof Element)) return true;
  if (key.startsWith("Ctrl+")) return true;
  if (isDialogOpen()) return false;
  if (key === "Escape") return true;
  if (target.closest(TEXT_FIELDS)) return false;
  return !(key === "Enter" && target.closest("a, button, summary, input, [role=button]"));
}

/** Whether a dialog covers the page. */
export function isDialogOpen() {
  return document.querySelector("dialog[open]") !== null;
}

/**
 * Handle the keys of the WAI-ARIA feed pattern, which screen reader users know, in addition to the shortcuts.
 *
 * Page Down and Page Up step through items while one of them has the focus. Home and End go to the ends of the whole
 * session, not only of the part that is filled. With Control, the focus leaves the feed.
 * @param {HTMLElement} feed
 * @param {Actions} actions
 */
export function handleFeedKeys(feed, actions) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.metaKey || event.shiftKey || isInput(event.target)) return;
    const isInside = feed.contains(document.activeElement);
    const action = isInside && event.ctrlKey ? leaveFeed(feed, event.key) : moveInFeed(event, isInside, actions);
    if (action === null) return;
    event.preventDefault();
    action(event);
  });
}

function moveInFeed(event, isInside, actions) {
  if (event.ctrlKey || isDialogOpen()) return null;
  if (event.key === "Home") return actions.start;
  if (event.key === "End") return actions.end;
  if (!isInside) return null;
  if (event.key === "PageDown") return actions["next-item"];
  return event.key === "PageUp" ? actions["previous-item"] : null;
}

const FOCUSABLE = "a[href], button:not([disabled]), input:not([disabled]), summary, [tabindex='0']";

/** Focus the first element after the feed, or the last before it. */
function leaveFeed(feed, key) {
  if (key !== "Home" && key !== "End") return null;
  const side = key === "End" ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const targets = Array.from(document.querySelectorAll(FOCUSABLE)).filter(
    (element) => !feed.contains(element) && feed.compareDocumentPosition(element) & side && element.checkVisibility(),
  );
  const target = key === "End" ? targets[0] : targets.at(-1);
  return target === undefined ? null : () => target.focus();
}

function isInput(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}
