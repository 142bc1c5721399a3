// The palette: go to a session or page by typing a part of its name.

import { askData, isAborted } from "./fetching.js";
import { carried } from "./carried.js";

const PAUSE = 80;

/** @typedef {{title: string, detail?: string, address: string}} Offer */

/** The dialog with its text field and list. */
class Palette {
  constructor() {
    this.dialog = document.createElement("dialog");
    this.dialog.className = "palette";
    this.dialog.setAttribute("aria-label", "Go to");
    this.input = document.createElement("input");
    this.list = document.createElement("ul");
    /** @type {Offer[]} */
    this.offers = [];
    this.chosen = 0;
    this.stop = null;
    this.#make();
  }

  open() {
    if (this.dialog.open) return;
    this.input.value = "";
    this.dialog.showModal();
    this.input.focus();
    this.#ask();
  }

  #make() {
    const { input, list, dialog } = this;
    input.type = "text";
    input.placeholder = "Go to a session or page";
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
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#ask(), PAUSE);
    });
    input.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option !== null) this.#go(Number(option.dataset.at), event);
    });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener("close", () => {
      this.stop?.abort();
      list.replaceChildren();
    });
  }

  async #ask() {
    this.stop?.abort();
    this.stop = new AbortController();
    const query = new URLSearchParams({ q: this.input.value, ...carried() });
    try {
      const found = await askData(`/palette.json?${query}`, this.stop.signal);
      this.offers = (Array.isArray(found) ? found : (found.entries ?? [])).slice(0, 50);
      this.chosen = 0;
      this.#draw();
    } catch (error) {
      if (isAborted(error)) return;
      this.offers = [];
      this.#draw("No response from the server.");
    }
  }

  #draw(empty = "No session or page has this name.") {
    const options = this.offers.map((offer, at) => {
      const option = document.createElement("li");
      option.id = `palette-${at}`;
      option.dataset.at = String(at);
      option.setAttribute("role", "option");
      const title = document.createElement("span");
      title.className = "title";
      title.textContent = offer.title;
      option.append(title);
      if (offer.detail) {
        const detail = document.createElement("span");
        detail.className = "detail";
        detail.textContent = offer.detail;
        option.append(detail);
      }
      return option;
    });
    if (options.length === 0) {
      const none = document.createElement("li");
      none.className = "none";
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = empty;
      options.push(none);
    }
    this.list.replaceChildren(...options);
    this.#choose(0);
  }

  #choose(at) {
    this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    const option = this.list.children[at];
    if (this.offers.length === 0 || option === undefined) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    this.chosen = at;
    option.setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  #key(event) {
    const many = this.offers.length;
    if (event.key === "Escape") {
      // The browser would do it a moment later, and lose a key pressed meanwhile.
      event.preventDefault();
      this.dialog.close();
      this.input.blur();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#go(this.chosen, event);
    } else if (many > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.#choose((this.chosen + (event.key === "ArrowDown" ? 1 : many - 1)) % many);
    }
  }

  #go(at, event) {
    const offer = this.offers[at];
    if (offer === undefined) return;
    const address = new URL(offer.address, location.href);
    // Only pages of this server: text in a transcript must not lead anywhere else.
    if (address.origin !== location.origin) return;
    this.dialog.close();
    if (event.ctrlKey || event.metaKey) open(address, "_blank", "noopener");
    else location.assign(address);
  }
}

let palette = null;

/** Open the palette. */
export function openPalette() {
  palette ??= new Palette();
  palette.open();
}
