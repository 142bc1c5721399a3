// Copying: to the clipboard, and a word about it.

import { askText, Refused } from "./asking.js";
import { say } from "./status.js";

/**
 * Copy a text.
 * @param {string} text
 * @param {string} what it is, as the status line shall call it
 */
export async function copy(text, what) {
  const isDone = (await byClipboard(text)) || bySelection(text);
  say(isDone ? `${what} copied` : `${what} could not be copied: the browser does not allow it`);
}

/** Copy what stands at an address. */
export async function copyFrom(address, what) {
  try {
    await copy(await askText(address), what);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(`${what} could not be had`);
  }
}

/** Elements with `data-copy`: a link to be copied, an address whose text is copied, or the command with that id. */
export function startCopying() {
  for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
  document.addEventListener("click", (event) => {
    const element = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (element === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const kind = element.dataset.copy;
    if (kind === "link") copy(element.href, "Link");
    else if (kind === "markdown") copyFrom(element.href, "Markdown");
    else copy(document.getElementById(kind)?.textContent ?? "", "Command");
  });
}

async function byClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Browsers without a clipboard for us copy what is selected. */
function bySelection(text) {
  const focused = document.activeElement;
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "unseen";
  box.style.position = "fixed";
  box.style.opacity = "0";
  document.body.append(box);
  box.select();
  let isDone = false;
  try {
    isDone = document.execCommand("copy");
  } catch {
    isDone = false;
  }
  box.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isDone;
}
