// Sets the theme before the first paint, so that a dark page is never light for a moment.
"use strict";
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // Storage may be forbidden; then the system's theme applies.
  }
  const root = document.documentElement;
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  // Lets the style sheet reserve room for what scripts add, so that nothing moves when they have loaded.
  root.classList.add("scripted");
})();
