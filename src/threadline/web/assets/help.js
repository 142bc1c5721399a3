// Shows the keyboard shortcuts in a dialog.

const SPELT = { Escape: "Esc", "Ctrl+k": "Ctrl K" };

/** @type {HTMLDialogElement|null} */
let dialog = null;

/**
 * Show the shortcuts of this page.
 * @param {import("./keys.js").Key[]} keys
 */
export function showHelp(keys) {
  dialog ??= made(keys);
  if (!dialog.open) dialog.showModal();
}

function made(keys) {
  const found = document.createElement("dialog");
  found.className = "help";
  found.setAttribute("aria-labelledby", "help-title");
  const title = element("h2", "Keyboard shortcuts");
  title.id = "help-title";
  const close = element("button", "Close");
  close.type = "button";
  close.className = "close";
  close.addEventListener("click", () => found.close());
  found.append(title, ...groups(keys), close);
  // `?` or a click outside closes the dialog. The browser closes it on Escape, but only a moment later.
  found.addEventListener("keydown", (event) => {
    if (event.key === "?" || event.key === "Escape") {
      event.preventDefault();
      found.close();
    }
  });
  found.addEventListener("click", (event) => {
    if (event.target === found) found.close();
  });
  document.body.append(found);
  return found;
}

function groups(keys) {
  const names = [...new Set(keys.map((key) => key.group))];
  return names.map((name) => {
    const section = document.createElement("section");
    const list = document.createElement("dl");
    for (const key of keys.filter((one) => one.group === name)) list.append(shown(key), element("dd", key.what));
    section.append(element("h3", name), list);
    return section;
  });
}

function shown(key) {
  const term = document.createElement("dt");
  key.keys.forEach((spelt, at) => {
    if (at > 0) term.append(" or ");
    term.append(element("kbd", SPELT[spelt] ?? spelt));
  });
  return term;
}

function element(name, text) {
  const found = document.createElement(name);
  found.textContent = text;
  return found;
}
