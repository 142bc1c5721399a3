// Copies to the clipboard and reports it in the status line.

import { fetchText, RequestError } from "./fetch.js";
import { showStatus } from "./status.js";

/** How long a text may take to load; redacting a long session takes seconds. */
const LOADING_MS = 60_000;

/**
 * Copy a text.
 * @param {string} text
 * @param {string} label its name in the status line
 */
export async function copyText(text, label) {
  const isCopied = (await writeClipboard(text)) || copySelection(text);
  showStatus(isCopied ? `${label} copied` : "Cannot copy: the browser does not allow it");
}

/** Copy the content of a URL. */
export async function copyFromUrl(url, label) {
  showStatus(`Preparing ${label} …`, LOADING_MS);
  try {
    await copyText(await fetchText(url), label);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    showStatus(`Cannot load ${label}`);
  }
}

/** Handle elements with `data-copy`: a link to copy, a URL whose text to copy, or the id of a command. */
export function startCopyButtons() {
  showCopyButtons(document);
  document.addEventListener("click", (event) => {
    const element = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (element === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const kind = element.dataset.copy;
    if (kind === "link") copyText(element.href, "Link");
    else if (kind === "markdown") copyFromUrl(element.href, "Redacted Markdown");
    else if (kind === "file") copyFromUrl(element.href, "File");
    else if (kind === "patch") copyFromUrl(element.href, "Patch");
    else copyText(document.getElementById(kind)?.textContent ?? "", "Command for your terminal");
  });
}

/**
 * Show the copy buttons in content from the server, which hides them from browsers without scripts.
 * @param {ParentNode} content
 */
export function showCopyButtons(content) {
  for (const button of content.querySelectorAll("button[data-copy]")) button.hidden = false;
}

/** What a copy button copies: code, commands, output and diffs of a conversation or file. */
const COPIED = ".feed pre:not(.numbers), .share-preview, .blame-lines, main pre.code";

/**
 * Show one copy button, which moves to the block under the pointer or with the focus.
 *
 * A button for each block would be thousands of elements.
 */
export function startBlockButtons() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-block";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy this block");
  const move = (event) => {
    const block = event.target instanceof Element ? event.target.closest(COPIED) : null;
    if (block !== null && button.parentElement !== block) block.append(button);
  };
  document.addEventListener("pointerover", move, { passive: true });
  document.addEventListener("focusin", move);
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    copyBlock(button.parentElement);
  });
}

/**
 * Copy the text of a block.
 * @param {Element} block
 */
export function copyBlock(block) {
  const copy = block.cloneNode(true);
  for (const extra of copy.querySelectorAll(".copy-block, .numbers")) extra.remove();
  copyText(copy.textContent, "Block");
}

async function writeClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Fallback for browsers without the clipboard API: select the text and copy the selection. */
function copySelection(text) {
  const focused = document.activeElement;
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "visually-hidden";
  box.style.position = "fixed";
  box.style.opacity = "0";
  document.body.append(box);
  box.select();
  let isCopied = false;
  try {
    isCopied = document.execCommand("copy");
  } catch {
    isCopied = false;
  }
  box.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}
