// The status line: says what was done, visibly and to screen readers.

const SECONDS = 4;

let line = null;
let timer = 0;
let lasting = "";

/**
 * Show a message for a moment.
 * @param {string} text
 */
export function say(text) {
  show(text);
  timer = setTimeout(() => show(lasting), SECONDS * 1000);
}

/**
 * Show a message permanently. Other messages cover it for a moment.
 * @param {string} text
 */
export function keepSaying(text) {
  if (text === lasting) return;
  lasting = text;
  show(text);
}

function show(text) {
  line ??= made();
  clearTimeout(timer);
  line.textContent = text;
  line.hidden = text === "";
}

/** The line exists from the start: screen readers do not read a live region that is inserted with its text. */
export function startStatus() {
  line ??= made();
}

function made() {
  const found = document.createElement("p");
  found.className = "status";
  found.setAttribute("role", "status");
  found.setAttribute("aria-live", "polite");
  found.hidden = true;
  document.body.append(found);
  return found;
}
