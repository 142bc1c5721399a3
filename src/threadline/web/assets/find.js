// Finds text in the whole session. The server searches it, because most of it is not in the document.

import { fetchJson, isAborted } from "./fetch.js";
import { clearHighlights, findRanges, highlight } from "./highlight.js";

const DEBOUNCE_MS = 150;
/** How many words of a search are highlighted. */
const MAX_MARKS = 12;

/** The find box, its matches, and the current match. Fires `matches` if the matches change. */
export class Find extends EventTarget {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./navigation.js").ItemNavigation} navigation
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(session, navigation, windowing) {
    super();
    this.session = session;
    this.navigation = navigation;
    this.windowing = windowing;
    this.query = "";
    /** @type {{anchor: string, position: number}[]} */
    this.hits = [];
    /** @type {string[]} the words of a search that led to this page */
    this.marks = new URLSearchParams(location.search).getAll("mark").slice(0, MAX_MARKS);
    /** The number of all matches; `hits` may be only the first of them. */
    this.total = 0;
    /** The index of the current match; -1 if there is none. */
    this.index = -1;
    this.bar = null;
    /** @type {{query: string, index: number}|null} the search when the box was closed */
    this.last = null;
    /** The timer of a search that starts when the typing stops. */
    this.timer = 0;
    this.abort = null;
    /** @type {{query: string, response: Promise<void>}|null} the pending request */
    this.pending = null;
    windowing.addEventListener("filled", () => this.#showHighlights());
  }

  /**
   * Find the text in the URL. Go to the first match, unless the URL or the history says where to begin.
   * @param {Promise<unknown>} arrival resolved when the page is at the item in the URL
   */
  async start(arrival) {
    if (this.marks.length > 0) arrival.then(() => this.#showMarks({ reveal: true }));
    const query = new URLSearchParams(location.search).get("find");
    // While a long session was loading, the user may have searched already; that search is in the URL, too.
    if (!query || this.isOpen) return;
    this.open({ focus: false });
    this.input.value = query;
    await this.#search();
    if (location.hash === "" && !history.state?.position) await this.step(1);
  }

  get isOpen() {
    return this.bar !== null && !this.bar.hidden;
  }

  get hasFocus() {
    return this.isOpen && document.activeElement === this.input;
  }

  get hasMatches() {
    return this.isOpen && this.hits.length > 0;
  }

  open({ focus = true } = {}) {
    this.bar ??= this.#createBar();
    this.bar.hidden = false;
    if (!focus) return;
    this.input.focus({ preventScroll: true });
    this.input.select();
  }

  close() {
    if (!this.isOpen) return false;
    clearTimeout(this.timer);
    this.abort?.abort();
    this.bar.hidden = true;
    if (this.query !== "") this.last = { query: this.query, index: this.index };
    this.#setResult("", { hits: [], total: 0 });
    const item = this.navigation.current();
    if (item !== null) item.focus({ preventScroll: true });
    return true;
  }

  /** Go to the next or previous match, wrapping around. */
  async step(direction) {
    if (!this.isOpen && this.last !== null) await this.#resume(this.last);
    if (this.hits.length === 0) return;
    const count = this.hits.length;
    this.index = this.index < 0 ? this.#firstIndex(direction) : (this.index + direction + count) % count;
    this.#showCount();
    const { anchor } = this.hits[this.index];
    const item = await this.navigation.goTo(anchor, { focus: document.activeElement !== this.input });
    if (item === null) return;
    this.#reveal(item);
    this.#showHighlights();
  }

  /** Repeat the search that was active when the box was closed, from the same match. */
  async #resume({ query, index }) {
    this.open({ focus: false });
    this.input.value = query;
    await this.#search();
    if (index < this.hits.length) this.index = index;
  }

  /** The index of the match to start with: the first from the current item on, or the last before it. */
  #firstIndex(direction) {
    const item = this.navigation.current()?.closest(".section > article");
    const current = Number(item?.ariaPosInSet ?? 1);
    const index = this.hits.findIndex((hit) => hit.position >= current);
    if (direction > 0) return Math.max(0, index);
    return index > 0 ? index - 1 : this.hits.length - 1;
  }

  /** Remove the highlights of the search that led to this page; false if there are none. */
  clearMarks() {
    if (this.marks.length === 0) return false;
    this.marks = [];
    const url = new URL(location.href);
    url.searchParams.delete("mark");
    history.replaceState(history.state, "", url);
    clearHighlights();
    return true;
  }

  /** Highlight the words of the search in the item that the URL names. */
  #showMarks({ reveal = false } = {}) {
    const item = document.getElementById(new URLSearchParams(location.search).get("at") ?? "");
    if (item === null) return;
    if (reveal) this.#reveal(item, this.marks);
    highlight(findAllRanges(item, this.marks), []);
  }

  /** Expand the folds that hide a match. */
  #reveal(item, words = [this.query]) {
    const ranges = findAllRanges(item, words);
    const isHidden = (range) => range.startContainer.parentElement.closest("details:not([open])") !== null;
    if (ranges.length > 0 && ranges.every(isHidden)) {
      this.windowing.foldState.reveal(ranges[0].startContainer.parentElement);
    }
    const visible = findAllRanges(item, words).find((range) => !isHidden(range));
    if (visible !== undefined) this.#scrollTo(visible, item);
  }

  /** Scroll to a match that is outside the window, cut off at the side of its block, or below the find box. */
  #scrollTo(range, item) {
    for (let box = range.startContainer.parentElement; box !== item; box = box.parentElement) {
      const [match, shown] = [range.getBoundingClientRect(), box.getBoundingClientRect()];
      if (match.left < shown.left || match.right > shown.right) {
        box.scrollLeft += match.left - shown.left - shown.width / 3;
      }
    }
    const { left, top, width, height } = range.getBoundingClientRect();
    if (item.contains(document.elementFromPoint(left + width / 2, top + height / 2))) return;
    // Not only scrolled to, but pinned: sections that are filled above it do not move it away.
    this.windowing.scrollAnchor.pin(item, item.getBoundingClientRect().top - top + innerHeight / 3);
  }

  async #search() {
    const query = this.input.value.trim();
    if (query === this.query) return;
    // Enter during a request waits for the same response.
    if (query === this.pending?.query) {
      await this.pending.response;
      return;
    }
    this.abort?.abort();
    this.abort = new AbortController();
    const pending = { query, response: this.#request(query, this.abort.signal) };
    this.pending = pending;
    await pending.response;
    if (this.pending === pending) this.pending = null;
  }

  async #request(query, signal) {
    if (query === "") {
      this.#setResult("", { hits: [], total: 0 });
      return;
    }
    this.count.textContent = "Searching …";
    try {
      this.#setResult(query, await fetchJson(this.session.findUrl(query), signal));
    } catch (error) {
      if (!isAborted(error)) this.count.textContent = "Search failed";
    }
  }

  #setResult(query, result) {
    this.query = query;
    this.hits = result.hits ?? [];
    this.total = result.total ?? this.hits.length;
    this.index = -1;
    const url = new URL(location.href);
    if (query) url.searchParams.set("find", query);
    else url.searchParams.delete("find");
    if (url.href !== location.href) history.replaceState(history.state, "", url);
    this.#showCount();
    this.#showHighlights();
    this.dispatchEvent(new Event("matches"));
  }

  #showCount() {
    const hits = this.hits.length.toLocaleString("en");
    const count = this.total > this.hits.length ? `more than ${hits}` : hits;
    if (this.query === "") this.count.textContent = "";
    else if (this.hits.length === 0) this.count.textContent = "No matches";
    else if (this.index < 0) this.count.textContent = count === "1" ? "1 match" : `${count} matches`;
    else this.count.textContent = `${(this.index + 1).toLocaleString("en")} of ${count}`;
  }

  #showHighlights() {
    if (this.query === "" || this.hits.length === 0) {
      if (this.marks.length > 0) this.#showMarks();
      else clearHighlights();
      return;
    }
    const current = this.index < 0 ? null : this.hits[this.index].anchor;
    const anchors = new Set(this.hits.map((hit) => hit.anchor));
    const matches = [];
    const currentMatch = [];
    for (const item of this.session.feed.querySelectorAll("article")) {
      if (!anchors.has(item.id)) continue;
      (item.id === current ? currentMatch : matches).push(...findRanges(item, this.query));
    }
    highlight(matches, currentMatch);
  }

  #createBar() {
    const bar = document.createElement("form");
    bar.className = "find";
    bar.setAttribute("role", "search");
    bar.setAttribute("aria-label", "Find in this session");
    this.input = document.createElement("input");
    this.input.type = "search";
    this.input.setAttribute("aria-label", "Text to find");
    this.input.placeholder = "Find in this session";
    this.input.autocomplete = "off";
    this.count = document.createElement("output");
    this.count.className = "count";
    bar.append(
      this.input,
      this.count,
      createButton("↑", "Previous", () => this.step(-1)),
      createButton("↓", "Next", () => this.step(1)),
      createButton("×", "Close", () => this.close()),
    );
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#search(), DEBOUNCE_MS);
    });
    bar.addEventListener("submit", async (event) => {
      event.preventDefault();
      clearTimeout(this.timer);
      // n and N are letters in a text box, so the box gives up the focus after a search, unless nothing was found.
      this.navigation.current()?.focus({ preventScroll: true });
      await this.#search();
      if (this.hits.length === 0) this.input.focus({ preventScroll: true });
      await this.step(1);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.shiftKey) {
        event.preventDefault();
        this.step(-1);
      }
    });
    document.body.append(bar);
    return bar;
  }
}

/** The ranges in an item that match any of some words. */
function findAllRanges(item, words) {
  return words.flatMap((word) => findRanges(item, word));
}

function createButton(sign, label, action) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = sign;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", action);
  return button;
}
