// Status: one quiet line that says what was done, to eyes and to screen readers.

const SECONDS = 4;

let line = null;
let timer = 0;

/**
 * Say something; it goes away by itself.
 * @param {string} text
 */
export function say(text) {
  line ??= made();
  line.textContent = text;
  line.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => {
    line.hidden = true;
    line.textContent = "";
  }, SECONDS * 1000);
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
