// Shows the keyboard shortcuts in a dialog.

/** Labels of keys that are not shown by their own name. */
const LABELS = { Escape: "Esc", "Ctrl+k": "Ctrl K", "Ctrl+f": "Ctrl F" };

/** @type {HTMLDialogElement|null} */
let dialog = null;

/**
 * Show the shortcuts of this page.
 * @param {import("./keys.js").Shortcut[]} shortcuts
 */
export function showHelp(shortcuts) {
  dialog ??= createDialog(shortcuts);
  if (!dialog.open) dialog.showModal();
}

function createDialog(shortcuts) {
  const help = document.createElement("dialog");
  help.className = "help";
  help.setAttribute("aria-labelledby", "help-title");
  const title = createElement("h2", "Keyboard shortcuts");
  title.id = "help-title";
  const close = createElement("button", "Close");
  close.type = "button";
  close.className = "close";
  close.addEventListener("click", () => help.close());
  help.append(title, ...createGroups(shortcuts), close);
  // `?` or a click outside closes the dialog. The browser closes it on Escape, but only a moment later.
  help.addEventListener("keydown", (event) => {
    if (event.key === "?" || event.key === "Escape") {
      event.preventDefault();
      help.close();
    }
  });
  help.addEventListener("click", (event) => {
    if (event.target === help) help.close();
  });
  document.body.append(help);
  return help;
}

function createGroups(shortcuts) {
  const names = [...new Set(shortcuts.map((shortcut) => shortcut.group))];
  return names.map((name) => {
    const section = document.createElement("section");
    const list = document.createElement("dl");
    for (const shortcut of shortcuts.filter(({ group }) => group === name)) {
      list.append(createTerm(shortcut.keys), createElement("dd", shortcut.what));
    }
    section.append(createElement("h3", name), list);
    return section;
  });
}

function createTerm(keys) {
  const term = document.createElement("dt");
  keys.forEach((key, index) => {
    if (index > 0) term.append(" or ");
    term.append(createElement("kbd", LABELS[key] ?? key));
  });
  return term;
}

function createElement(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
