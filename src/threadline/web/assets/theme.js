// Theme: light, dark, or as the system has it; early.js sets it again before the next page is painted.

import { say } from "./status.js";

const SAID = { system: "as the system has it", light: "light", dark: "dark" };

/** The theme that was chosen; "system" where none was. */
export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** The themes in turn: first the one that is not what the system shows, so that something is seen to happen. */
function inTurn() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? ["system", "light", "dark"] : ["system", "dark", "light"];
}

/** Go on to the next theme. */
export function nextTheme() {
  const order = inTurn();
  const chosen = order[(order.indexOf(theme()) + 1) % order.length];
  setTheme(chosen);
  say(`Theme: ${SAID[chosen]}`);
}

function setTheme(chosen) {
  const root = document.documentElement;
  if (chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = chosen;
  try {
    if (chosen === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", chosen);
  } catch {
    // Storage may be forbidden; the choice holds for this page then.
  }
}

/** Let other pages of ours that are open follow at once. */
export function followTheme() {
  addEventListener("storage", (event) => {
    if (event.key === "theme") setTheme(Object.hasOwn(SAID, event.newValue ?? "") ? event.newValue : "system");
  });
}
