// The theme: light, dark or system. initial_theme.js applies it before a page is painted.

import { showStatus } from "./status.js";

const THEMES = ["system", "light", "dark"];

/** The chosen theme; "system" by default. */
function currentTheme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** The order of themes: first the opposite of the system's, so that the first change is visible. */
function themeOrder() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? ["system", "light", "dark"] : ["system", "dark", "light"];
}

/** Switch to the next theme. */
export function nextTheme() {
  const order = themeOrder();
  const theme = order[(order.indexOf(currentTheme()) + 1) % order.length];
  setTheme(theme);
  showStatus(`Theme: ${theme}`);
}

function setTheme(theme) {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Storage may be forbidden; then the choice applies to this page only.
  }
}

/** Apply a theme that was chosen in another tab. */
export function followTheme() {
  addEventListener("storage", (event) => {
    if (event.key === "theme") setTheme(THEMES.includes(event.newValue) ? event.newValue : "system");
  });
}
