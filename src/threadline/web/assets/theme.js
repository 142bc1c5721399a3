// The theme: light, dark or system. early.js applies it before the next page is painted.

import { say } from "./status.js";

const LABELS = { system: "system", light: "light", dark: "dark" };

/** The chosen theme; "system" by default. */
export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** The order of themes: first the opposite of the system's, so that the first change is visible. */
function inTurn() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? ["system", "light", "dark"] : ["system", "dark", "light"];
}

/** Switch to the next theme. */
export function nextTheme() {
  const order = inTurn();
  const chosen = order[(order.indexOf(theme()) + 1) % order.length];
  setTheme(chosen);
  say(`Theme: ${LABELS[chosen]}`);
}

function setTheme(chosen) {
  const root = document.documentElement;
  if (chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = chosen;
  try {
    if (chosen === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", chosen);
  } catch {
    // Storage may be forbidden; then the choice applies to this page only.
  }
}

/** Apply the theme to other open pages at once. */
export function followTheme() {
  addEventListener("storage", (event) => {
    if (event.key === "theme") setTheme(Object.hasOwn(SAID, event.newValue ?? "") ? event.newValue : "system");
  });
}
