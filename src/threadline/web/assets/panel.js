// Panel: what stands beside the conversation: the JSON of an entry, or the state at it.

import { askText, isAborted, nodes } from "./asking.js";

/** Code in colours has an element for every word; beyond so many, its words alone are shown. */
const MOST = 900;

/** The panel at the right; one, whatever it shows. */
export class Panel {
  /** @param {import("./window.js").Windowing} windowing */
  constructor(windowing) {
    this.windowing = windowing;
    this.element = null;
    this.shown = "";
    this.stop = null;
  }

  get isOpen() {
    return this.element !== null && !this.element.hidden;
  }

  /**
   * Show what stands at an address; what is shown already is closed.
   * @param {string} title
   * @param {string} address
   */
  async toggle(title, address) {
    if (this.isOpen && this.shown === address) this.close();
    else await this.show(title, address);
  }

  async show(title, address) {
    this.element ??= this.#made();
    this.shown = address;
    this.title.textContent = title;
    this.whole.href = address;
    this.body.setAttribute("aria-busy", "true");
    this.#open();
    this.stop?.abort();
    this.stop = new AbortController();
    try {
      this.#fill(nodes(await askText(address, this.stop.signal)));
    } catch (error) {
      if (isAborted(error)) return;
      this.#fill("This could not be loaded.");
    }
    this.body.removeAttribute("aria-busy");
  }

  /** Hide it, or show again what it had; false where it never had anything. */
  flip() {
    if (this.element === null) return false;
    if (this.isOpen) this.close();
    else this.#open();
    return true;
  }

  close() {
    if (!this.isOpen) return false;
    const hadFocus = this.element.contains(document.activeElement);
    this.windowing.hold.keep(() => {
      this.element.hidden = true;
      document.body.classList.remove("with-panel");
    });
    if (hadFocus) document.querySelector(".feed article.current")?.focus({ preventScroll: true });
    return true;
  }

  #open() {
    this.windowing.hold.keep(() => {
      this.element.hidden = false;
      document.body.classList.add("with-panel");
    });
  }

  #fill(content) {
    if (typeof content !== "string") {
      thin(content);
      this.windowing.hold.keep(() => this.windowing.makeRoom(content.querySelectorAll("*").length));
    }
    this.body.replaceChildren(content);
    this.body.scrollTop = 0;
  }

  #made() {
    const panel = document.createElement("aside");
    panel.className = "panel";
    panel.setAttribute("aria-labelledby", "panel-title");
    const head = document.createElement("header");
    this.title = document.createElement("h2");
    this.title.id = "panel-title";
    this.whole = document.createElement("a");
    this.whole.textContent = "own page";
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => this.close());
    head.append(this.title, this.whole, close);
    this.body = document.createElement("div");
    this.body.className = "panel-body";
    // What scrolls must be reachable for those who scroll with keys.
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-labelledby", "panel-title");
    panel.append(head, this.body);
    this.windowing.feed.after(panel);
    return panel;
  }
}

/** Take the colours from code until there are few enough elements, and ids that the page has already. */
function thin(content) {
  for (const block of content.querySelectorAll("pre, code")) {
    if (content.querySelectorAll("*").length <= MOST) break;
    if (block.childElementCount > 0) block.textContent = block.textContent;
  }
  for (const element of content.querySelectorAll("[id]")) {
    if (document.getElementById(element.id) !== null) element.removeAttribute("id");
  }
}
