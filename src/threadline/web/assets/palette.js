// The command palette: go to a session, turn, entry or page, or run an action, by typing a part of its name.

import { carriedParameters, fetchJson, isAborted } from "./fetch.js";

const DEBOUNCE_MS = 80;
const MAX_CHOICES = 50;

/** @typedef {{title: string, detail: string, address: string, action: string}} Choice */

/** The dialog with its text field and list. */
class Palette {
  constructor() {
    this.dialog = document.createElement("dialog");
    this.dialog.className = "palette";
    this.dialog.setAttribute("aria-label", "Go to");
    this.input = document.createElement("input");
    this.list = document.createElement("ul");
    /** @type {Choice[]} */
    this.choices = [];
    this.selected = 0;
    this.abort = null;
    this.timer = 0;
    this.loading = Promise.resolve();
    this.#build();
  }

  open() {
    if (this.dialog.open) return;
    this.input.value = "";
    this.dialog.showModal();
    this.input.focus();
    this.#reload();
  }

  #build() {
    const { input, list, dialog } = this;
    input.type = "text";
    input.placeholder = "Sessions, pages, text, turns, actions";
    input.autocomplete = "off";
    input.spellcheck = false;
    for (const [name, value] of [
      ["role", "combobox"],
      ["aria-expanded", "true"],
      ["aria-controls", "palette-list"],
      ["aria-autocomplete", "list"],
      ["aria-label", "Go to a session or page"],
    ]) {
      input.setAttribute(name, value);
    }
    list.id = "palette-list";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Sessions and pages");
    dialog.append(input, list);
    document.body.append(dialog);
    input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#reload(), DEBOUNCE_MS);
    });
    input.addEventListener("keydown", (event) => this.#handleKey(event));
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option !== null) this.#open(Number(option.dataset.index), event);
    });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener("close", () => {
      this.abort?.abort();
      list.replaceChildren();
    });
  }

  #reload() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.loading = this.#load();
  }

  async #load() {
    this.abort?.abort();
    this.abort = new AbortController();
    const query = new URLSearchParams({ q: this.input.value, ...openSession(), ...carriedParameters() });
    try {
      this.choices = (await fetchJson(`/palette.json?${query}`, this.abort.signal)).slice(0, MAX_CHOICES);
      this.selected = 0;
      this.#render();
    } catch (error) {
      if (isAborted(error)) return;
      this.choices = [];
      this.#render("No response from the server.");
    }
  }

  #render(emptyText = "Nothing matches.") {
    const options = this.choices.map((choice, index) => {
      const option = document.createElement("li");
      option.id = `palette-${index}`;
      option.dataset.index = String(index);
      option.setAttribute("role", "option");
      const title = document.createElement("span");
      title.className = "title";
      title.textContent = choice.title;
      option.append(title);
      if (choice.detail) {
        const detail = document.createElement("span");
        detail.className = "detail";
        detail.textContent = choice.detail;
        option.append(detail);
      }
      return option;
    });
    if (options.length === 0) {
      const none = document.createElement("li");
      none.className = "none";
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = emptyText;
      options.push(none);
    }
    this.list.replaceChildren(...options);
    this.#select(0);
  }

  #select(index) {
    this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    const option = this.list.children[index];
    if (this.choices.length === 0 || option === undefined) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    this.selected = index;
    option.setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  #handleKey(event) {
    const count = this.choices.length;
    if (event.key === "Escape") {
      // The browser would do it a moment later, and lose a key pressed meanwhile.
      event.preventDefault();
      this.dialog.close();
      this.input.blur();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#openSelected(event);
    } else if (count > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.#select((this.selected + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
    }
  }

  /** Open the selected choice. If the list is not yet that of the text, wait for it: it may be another choice then. */
  async #openSelected(event) {
    if (this.timer !== 0) this.#reload();
    await this.loading;
    if (this.dialog.open) this.#open(this.selected, event);
  }

  #open(index, event) {
    const choice = this.choices[index];
    if (choice === undefined) return;
    if (choice.action) {
      this.dialog.close();
      runAction(choice.action);
      return;
    }
    const url = new URL(choice.address, location.href);
    // Only pages of this server: text in a transcript must not lead anywhere else.
    if (url.origin !== location.origin) return;
    this.dialog.close();
    if (event.ctrlKey || event.metaKey) open(url, "_blank", "noopener");
    else location.assign(url);
  }
}

/** The parameter with the session that this page shows, if it shows one. */
function openSession() {
  const match = /^\/session\/([^/]+)/.exec(location.pathname);
  return match === null ? {} : { session: decodeURIComponent(match[1]).replaceAll("~2F", "/").replaceAll("~7E", "~") };
}

/** Run an action as its button would. */
function runAction(name) {
  const button = document.createElement("button");
  button.type = "button";
  button.hidden = true;
  button.dataset.action = name;
  document.body.append(button);
  button.click();
  button.remove();
}

let palette = null;

/** Open the palette. */
export function openPalette() {
  palette ??= new Palette();
  palette.open();
}
