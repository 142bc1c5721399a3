// The panel beside the conversation: the JSON of an entry, or files and lists at that point. The URL says which.

import { askText, isAborted, nodes } from "./fetching.js";
import { isSeen } from "./visibility.js";

/** Highlighted code has an element for every word. Beyond this many elements, code is shown without colours. */
const MOST = 900;

/** What it can show, by the name of the URL parameter. */
const TITLES = {
  raw: (anchor) => `Entry ${anchor}`,
  state: (anchor) => (anchor === "end" ? "Files at the end" : `Files at ${anchor}`),
};

/** The panel on the right. */
export class Panel {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(session, windowing) {
    this.session = session;
    this.windowing = windowing;
    this.element = null;
    /** @type {{kind: "raw"|"state", anchor: string}|null} its content, visible or not */
    this.shown = null;
    this.stop = null;
  }

  /** Show what the URL says, now and whenever it changes. */
  start() {
    addEventListener("popstate", () => this.#follow());
    this.#follow();
  }

  get isOpen() {
    return this.element !== null && !this.element.hidden;
  }

  /**
   * Show something of an entry, or close it if it is shown already.
   * @param {"raw"|"state"} kind
   * @param {string} anchor
   */
  async toggle(kind, anchor) {
    if (this.isOpen && this.#has(kind, anchor)) this.close();
    else await this.show(kind, anchor);
  }

  async show(kind, anchor) {
    this.element ??= this.#made();
    const address = kind === "raw" ? this.session.raw(anchor) : this.session.state(anchor);
    this.shown = { kind, anchor };
    this.title.textContent = TITLES[kind](anchor);
    this.whole.href = address;
    this.body.setAttribute("aria-busy", "true");
    this.#open();
    this.stop?.abort();
    this.stop = new AbortController();
    try {
      this.#fill(nodes(await askText(address, this.stop.signal)));
    } catch (error) {
      if (isAborted(error)) return;
      this.#fill(this.session.gone ?? "Loading failed.");
    }
    this.body.removeAttribute("aria-busy");
  }

  /** Hide it, or show its last content again; false if it never had any. */
  flip() {
    if (this.element === null) return false;
    if (this.isOpen) this.close();
    else this.#open();
    return true;
  }

  close() {
    if (!this.isOpen) return false;
    const hadFocus = this.element.contains(document.activeElement);
    this.#keep(() => {
      this.element.hidden = true;
      document.body.classList.remove("with-panel");
    });
    this.#write(null);
    if (hadFocus) document.querySelector(".feed article.current")?.focus({ preventScroll: true });
    return true;
  }

  #has(kind, anchor) {
    return this.shown?.kind === kind && this.shown.anchor === anchor;
  }

  #open() {
    this.#keep(() => {
      this.element.hidden = false;
      document.body.classList.add("with-panel");
    });
    this.#write(this.shown);
  }

  /** This changes the width of the conversation; the current item stays in place. */
  #keep(change) {
    const item = this.windowing.feed.querySelector("article.current");
    const top = item !== null && isSeen(item) ? item.getBoundingClientRect().top : null;
    this.windowing.hold.keep(change);
    if (top !== null) this.windowing.hold.pin(item, top);
  }

  /** Put the panel into the URL without a history entry: Back goes to the previous place, not through panels. */
  #write(shown) {
    const address = new URL(location.href);
    for (const kind of Object.keys(TITLES)) address.searchParams.delete(kind);
    if (shown !== null) address.searchParams.set(shown.kind, shown.anchor);
    if (address.href !== location.href) history.replaceState(history.state, "", address);
  }

  #follow() {
    const query = new URLSearchParams(location.search);
    const kind = Object.keys(TITLES).find((name) => query.get(name));
    if (kind === undefined) this.close();
    else if (!this.isOpen || !this.#has(kind, query.get(kind))) this.show(kind, query.get(kind));
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
    panel.hidden = true;
    panel.setAttribute("aria-labelledby", "panel-title");
    const head = document.createElement("header");
    this.title = document.createElement("h2");
    this.title.id = "panel-title";
    this.whole = document.createElement("a");
    this.whole.textContent = "Open as page";
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => this.close());
    head.append(this.title, this.whole, close);
    this.body = document.createElement("div");
    this.body.className = "panel-body";
    // Scrollable areas must be reachable by keyboard.
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-labelledby", "panel-title");
    panel.append(head, this.body);
    this.windowing.feed.after(panel);
    return panel;
  }
}

/** Remove highlighting until there are few enough elements, and remove ids that the page already has. */
function thin(content) {
  for (const block of content.querySelectorAll("pre, code")) {
    if (content.querySelectorAll("*").length <= MOST) break;
    if (block.childElementCount > 0) block.textContent = block.textContent;
  }
  for (const element of content.querySelectorAll("[id]")) {
    if (document.getElementById(element.id) !== null) element.removeAttribute("id");
  }
}
