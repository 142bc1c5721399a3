// Finds text in the whole session, filled or not: the server searches it.

import { askData, isAborted } from "./fetching.js";
import { clearHighlights, highlight, places } from "./matches.js";

const PAUSE = 150;

/** The find box, its matches, and the current match. */
export class Find {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./navigation.js").Travel} travel
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(session, travel, windowing) {
    this.session = session;
    this.travel = travel;
    this.windowing = windowing;
    this.words = "";
    /** @type {{anchor: string, section: number}[]} */
    this.hits = [];
    this.total = 0;
    this.at = -1;
    this.bar = null;
    /** @type {{words: string, at: number}|null} the search when the box was closed */
    this.last = null;
    this.stop = null;
    /** @type {{words: string, answer: Promise<void>}|null} the pending request */
    this.sought = null;
    windowing.addEventListener("filled", () => this.#paint());
  }

  /** Find the text in the URL without going to a match. */
  async start() {
    const words = new URLSearchParams(location.search).get("find");
    if (!words) return;
    this.open({ focus: false });
    this.input.value = words;
    await this.#search();
    if (location.hash === "" && !history.state?.place) await this.step(1);
  }

  get isOpen() {
    return this.bar !== null && !this.bar.hidden;
  }

  open({ focus = true } = {}) {
    this.bar ??= this.#made();
    this.bar.hidden = false;
    if (!focus) return;
    this.input.focus({ preventScroll: true });
    this.input.select();
  }

  close() {
    if (!this.isOpen) return false;
    this.stop?.abort();
    this.bar.hidden = true;
    if (this.words !== "") this.last = { words: this.words, at: this.at };
    this.#take("", { hits: [], total: 0 });
    const item = this.travel.current();
    if (item !== null) item.focus({ preventScroll: true });
    return true;
  }

  /** Go to the next or previous match, wrapping around. */
  async step(step) {
    if (!this.isOpen && this.last !== null) await this.#goOn(this.last);
    if (this.hits.length === 0) return;
    this.at = this.at < 0 ? this.#first(step) : (this.at + step + this.hits.length) % this.hits.length;
    this.#tell();
    const item = await this.travel.to(this.hits[this.at].anchor, { focus: document.activeElement !== this.input });
    if (item === null) return;
    this.#reveal(item);
    this.#paint();
  }

  /** Repeat the search that was active when the box was closed, from the same match. */
  async #goOn({ words, at }) {
    this.open({ focus: false });
    this.input.value = words;
    await this.#search();
    if (at < this.hits.length) this.at = at;
  }

  /** The match to start with: the first from here on. */
  #first(step) {
    const here = Number(this.travel.current()?.closest(".section")?.dataset.number ?? 1);
    const at = this.hits.findIndex((hit) => hit.section >= here);
    if (step > 0) return Math.max(0, at);
    return at > 0 ? at - 1 : this.hits.length - 1;
  }

  /** Expand the folds that hide a match. */
  #reveal(item) {
    const found = places(item, this.words);
    const hidden = found.find((range) => range.startContainer.parentElement.closest("details:not([open])"));
    const isShown = found.some((range) => !range.startContainer.parentElement.closest("details:not([open])"));
    if (hidden !== undefined && !isShown) this.windowing.folds.reveal(hidden.startContainer.parentElement);
    const first = places(item, this.words)[0]?.getBoundingClientRect();
    // In an item that is taller than the window, the match may be far below its top.
    if (first !== undefined && first.bottom > innerHeight) {
      scrollBy({ top: first.top - innerHeight / 3, behavior: "instant" });
      this.windowing.hold.note();
    }
  }

  async #search() {
    const words = this.input.value.trim();
    if (words === this.words) return;
    // Enter during a request waits for the same response.
    if (words === this.sought?.words) {
      await this.sought.answer;
      return;
    }
    this.stop?.abort();
    this.stop = new AbortController();
    const sought = { words, answer: this.#answer(words, this.stop.signal) };
    this.sought = sought;
    await sought.answer;
    if (this.sought === sought) this.sought = null;
  }

  async #answer(words, signal) {
    if (words === "") {
      this.#take("", { hits: [], total: 0 });
      return;
    }
    this.count.textContent = "looking …";
    try {
      this.#take(words, await askData(this.session.find(words), signal));
    } catch (error) {
      if (!isAborted(error)) this.count.textContent = "search failed";
    }
  }

  #take(words, found) {
    this.words = words;
    this.hits = found.hits ?? [];
    this.total = found.total ?? this.hits.length;
    this.at = -1;
    const address = new URL(location.href);
    if (words) address.searchParams.set("find", words);
    else address.searchParams.delete("find");
    if (address.href !== location.href) history.replaceState(history.state, "", address);
    this.#tell();
    this.#paint();
  }

  #tell() {
    const here = this.hits.length.toLocaleString("en");
    const many = this.total > this.hits.length ? `more than ${here}` : here;
    if (this.words === "") this.count.textContent = "";
    else if (this.hits.length === 0) this.count.textContent = "no matches";
    else this.count.textContent = this.at < 0 ? `${many} matches` : `${(this.at + 1).toLocaleString("en")} of ${many}`;
  }

  #paint() {
    if (this.words === "" || this.hits.length === 0) {
      clearHighlights();
      return;
    }
    const current = this.at < 0 ? null : this.hits[this.at].anchor;
    const known = new Set(this.hits.map((hit) => hit.anchor));
    const all = [];
    const now = [];
    for (const item of this.session.feed.querySelectorAll("article")) {
      if (!known.has(item.id)) continue;
      (item.id === current ? now : all).push(...places(item, this.words));
    }
    highlight(all, now);
  }

  #made() {
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
      button("↑", "Previous", () => this.step(-1)),
      button("↓", "Next", () => this.step(1)),
      button("×", "Close", () => this.close()),
    );
    let timer = 0;
    this.input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#search(), PAUSE);
    });
    bar.addEventListener("submit", async (event) => {
      event.preventDefault();
      clearTimeout(timer);
      // n and N are letters in a text box, so the box gives up the focus after a search, unless nothing was found.
      this.travel.current()?.focus({ preventScroll: true });
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

function button(sign, label, deed) {
  const found = document.createElement("button");
  found.type = "button";
  found.textContent = sign;
  found.setAttribute("aria-label", label);
  found.addEventListener("click", deed);
  return found;
}
