// Handles keys: looks them up in the table in the page and runs the action of that name.

const PAUSE = 1200;
const TYPED =
  "input:not([type=checkbox],[type=radio],[type=button],[type=submit]), textarea, select, [contenteditable]";

/**
 * @typedef {{keys: string[], name: string, what: string, group: string, pages: string[]}} Key
 * @typedef {Object<string, (event: Event) => unknown>} Deeds actions by name; one that returns false did nothing
 */

/**
 * The table of keys in the page.
 * @returns {Key[]}
 */
export function table() {
  const block = document.getElementById("keys");
  return block === null ? [] : JSON.parse(block.textContent);
}

/**
 * The keys that work on this page.
 * @param {Key[]} keys
 */
export function here(keys) {
  const kinds = document.body.classList;
  return keys.filter((key) => key.pages.length === 0 || key.pages.some((page) => kinds.contains(page)));
}

/**
 * Listen for keys.
 * @param {Key[]} keys
 * @param {Deeds} deeds
 */
export function listen(keys, deeds) {
  const names = new Map(keys.flatMap((key) => key.keys.map((spelt) => [spelt, key.name])));
  const firsts = new Set([...names.keys()].filter((spelt) => spelt.includes(" ")).map((spelt) => spelt.split(" ")[0]));
  let begun = "";
  let timer = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey || isModifier(event.key)) return;
    const spelt = (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + event.key;
    if (!isFree(event, spelt)) return;
    const whole = begun ? `${begun} ${spelt}` : spelt;
    clearTimeout(timer);
    const name = names.get(whole) ?? names.get(spelt);
    begun = name === undefined && firsts.has(spelt) ? spelt : "";
    if (begun) timer = setTimeout(() => (begun = ""), PAUSE);
    if (name === undefined || deeds[name] === undefined) return;
    if (deeds[name](event) !== false) event.preventDefault();
  });
}

/** Run the action that a clicked element names in `data-deed`. */
export function obey(deeds) {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const element = event.target instanceof Element ? event.target.closest("[data-deed]") : null;
    const deed = element === null ? undefined : deeds[element.dataset.deed];
    if (deed !== undefined && deed(event) !== false) event.preventDefault();
  });
}

function isModifier(key) {
  return key === "Shift" || key === "Control" || key === "Meta" || key === "Alt";
}

/** Whether a key is a shortcut, and not input for a text field, menu or button. */
function isFree(event, spelt) {
  const { target } = event;
  if (!(target instanceof Element)) return true;
  if (spelt.startsWith("Ctrl+")) return true;
  const isDialog = document.querySelector("dialog[open]") !== null;
  if (isDialog) return false;
  if (spelt === "Escape") return true;
  if (target.closest(TYPED)) return false;
  return !(spelt === "Enter" && target.closest("a, button, summary, input, [role=button]"));
}
