// The panel beside the conversation: the JSON of an entry, files and lists, or the context window at that point. The URL says which.

import { fetchText, isAborted, parseHtml } from "./fetch.js";
import { isVisible } from "./visibility.js";

/** Highlighted code has an element for every word. Beyond this many elements, code is shown without colours. */
const MAX_ELEMENTS = 900;

/** The titles of what it can show, by the name of the URL parameter. */
const TITLES = {
  raw: (anchor) => `Entry ${anchor}`,
  state: (anchor) => (anchor === "end" ? "Files at the end" : `Files at ${anchor}`),
  context: (anchor) => `Context at ${anchor}`,
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
    /** @type {{kind: "raw"|"state"|"context", anchor: string}|null} its content, visible or not */
    this.shown = null;
    this.abort = null;
  }

  /** Show what the URL says, now and whenever it changes. */
  start() {
    addEventListener("popstate", () => this.#readUrl());
    this.#readUrl();
  }

  get isOpen() {
    return this.element !== null && !this.element.hidden;
  }

  /**
   * Show something of an entry, or close the panel if it shows that already.
   * @param {"raw"|"state"|"context"} kind
   * @param {string} anchor
   */
  async toggle(kind, anchor) {
    if (this.isOpen && this.#isShowing(kind, anchor)) this.close();
    else await this.show(kind, anchor);
  }

  async show(kind, anchor) {
    this.element ??= this.#create();
    const url = this.session.panelUrl(kind, anchor);
    this.shown = { kind, anchor };
    this.title.textContent = TITLES[kind](anchor);
    this.pageLink.href = url;
    this.body.setAttribute("aria-busy", "true");
    this.#open();
    this.abort?.abort();
    this.abort = new AbortController();
    try {
      this.#fill(parseHtml(await fetchText(url, this.abort.signal)));
    } catch (error) {
      if (isAborted(error)) return;
      this.#fill(this.session.gone ?? "Loading failed.");
    }
    this.body.removeAttribute("aria-busy");
  }

  /** Close it, or show its last content again; false if it never had any. */
  reopenOrClose() {
    if (this.element === null) return false;
    if (this.isOpen) this.close();
    else this.#open();
    return true;
  }

  close() {
    if (!this.isOpen) return false;
    const hadFocus = this.element.contains(document.activeElement);
    this.#resize(() => {
      this.element.hidden = true;
      document.body.classList.remove("with-panel");
    });
    this.#writeUrl(null);
    if (hadFocus) document.querySelector(".feed article.current")?.focus({ preventScroll: true });
    return true;
  }

  #isShowing(kind, anchor) {
    return this.shown?.kind === kind && this.shown.anchor === anchor;
  }

  #open() {
    this.#resize(() => {
      this.element.hidden = false;
      document.body.classList.add("with-panel");
    });
    this.#writeUrl(this.shown);
  }

  /** Change the width of the conversation; the current item stays in place. */
  #resize(change) {
    const item = this.windowing.feed.querySelector("article.current");
    const top = item !== null && isVisible(item) ? item.getBoundingClientRect().top : null;
    this.windowing.scrollAnchor.preserve(change);
    if (top !== null) this.windowing.scrollAnchor.pin(item, top);
  }

  /** Put the panel into the URL without a history entry: Back goes to the previous place, not through panels. */
  #writeUrl(shown) {
    const url = new URL(location.href);
    for (const kind of Object.keys(TITLES)) url.searchParams.delete(kind);
    if (shown !== null) url.searchParams.set(shown.kind, shown.anchor);
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }

  #readUrl() {
    const query = new URLSearchParams(location.search);
    const kind = Object.keys(TITLES).find((name) => query.get(name));
    if (kind === undefined) this.close();
    else if (!this.isOpen || !this.#isShowing(kind, query.get(kind))) this.show(kind, query.get(kind));
  }

  #fill(content) {
    if (typeof content !== "string") {
      simplify(content);
      this.windowing.scrollAnchor.preserve(() => this.windowing.makeRoom(content.querySelectorAll("*").length));
    }
    this.body.replaceChildren(content);
    this.body.scrollTop = 0;
  }

  #create() {
    const panel = document.createElement("aside");
    panel.className = "panel";
    panel.hidden = true;
    panel.setAttribute("aria-labelledby", "panel-title");
    const head = document.createElement("header");
    this.title = document.createElement("h2");
    this.title.id = "panel-title";
    this.pageLink = document.createElement("a");
    this.pageLink.textContent = "Open as page";
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => this.close());
    head.append(this.title, this.pageLink, close);
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
function simplify(content) {
  for (const block of content.querySelectorAll("pre, code")) {
    if (content.querySelectorAll("*").length <= MAX_ELEMENTS) break;
    if (block.childElementCount > 0) block.textContent = block.textContent;
  }
  for (const element of content.querySelectorAll("[id]")) {
    if (document.getElementById(element.id) !== null) element.removeAttribute("id");
  }
}
