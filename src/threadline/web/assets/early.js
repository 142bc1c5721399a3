// Runs before anything is painted, so that a page chosen to be dark is never light for a moment.
"use strict";
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // Storage may be forbidden; the system's choice holds then.
  }
  const root = document.documentElement;
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  // Style may count on what only scripts do, without anything moving when they have loaded.
  root.classList.add("scripted");
})();
