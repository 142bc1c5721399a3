// Copying: to the clipboard, and a word about it.

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
