// The status line: shows a short message, and lets screen readers announce it.

const SHOWN_MS = 4000;

let line = null;
let timer = 0;
let lasting = "";

/**
 * Show a message for a moment.
 * @param {string} text
 * @param {number} duration in milliseconds
 */
export function showStatus(text, duration = SHOWN_MS) {
  show(text);
  timer = setTimeout(() => show(lasting), duration);
}

/**
 * Show a message permanently. Other messages cover it for a moment.
 * @param {string} text
 */
export function setLastingStatus(text) {
  if (text === lasting) return;
  lasting = text;
  show(text);
}

function show(text) {
  line ??= createLine();
  clearTimeout(timer);
  line.textContent = text;
  line.hidden = text === "";
}

/** Create the line. Screen readers ignore a live region that is inserted together with its text. */
export function startStatus() {
  line ??= createLine();
}

function createLine() {
  const element = document.createElement("p");
  element.className = "status";
  element.setAttribute("role", "status");
  element.setAttribute("aria-live", "polite");
  element.hidden = true;
  document.body.append(element);
  return element;
}
