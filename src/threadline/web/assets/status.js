// Status: one quiet line that says what was done, to eyes and to screen readers.

const SECONDS = 4;

let line = null;
let timer = 0;
let lasting = "";

/**
 * Say something; it goes away by itself.
 * @param {string} text
 */
export function say(text) {
  show(text);
  timer = setTimeout(() => show(lasting), SECONDS * 1000);
}

/**
 * Say something that stays true, and stays; what is said meanwhile covers it for a moment. Nothing takes it back.
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

/** The line is there from the start: a live region that comes with its first words is not read. */
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
