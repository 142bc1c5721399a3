// Copies to the clipboard and reports it in the status line.

import { askText, Refused } from "./fetching.js";
import { say } from "./status.js";

/**
 * Copy a text.
 * @param {string} text
 * @param {string} what its name in the status line
 */
export async function copy(text, what) {
  const isDone = (await byClipboard(text)) || bySelection(text);
  say(isDone ? `${what} copied` : `Cannot copy ${what}: the browser does not allow it`);
}

/** Copy the content of a URL. */
export async function copyFrom(address, what) {
  try {
    await copy(await askText(address), what);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(`Cannot load ${what}`);
  }
}

/** Handle elements with `data-copy`: a link to copy, a URL whose text to copy, or the id of a command. */
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

/** Fallback for browsers without the clipboard API: select the text and copy the selection. */
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
