// Fetches the content of sections ahead of time and caches it.

import { askText, isAborted } from "./fetching.js";

const KEPT = 60;
const AT_ONCE = 4;

/** A cache of the HTML of sections, by number and mark. */
export class Parts {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    /** @type {Map<string, string>} oldest first */
    this.kept = new Map();
    /** @type {Map<string, {promise: Promise<string>, stop: AbortController}>} */
    this.asked = new Map();
  }

  /** @param {import("./section.js").Section} section */
  has(section) {
    return this.kept.has(key(section));
  }

  isAsked(section) {
    return this.asked.has(key(section));
  }

  /** Whether another request would not delay the pending ones. */
  get isFree() {
    return this.asked.size < AT_ONCE;
  }

  /** The content of a section, if it is cached. */
  ready(section) {
    const name = key(section);
    const html = this.kept.get(name);
    if (html !== undefined) {
      this.kept.delete(name);
      this.kept.set(name, html);
    }
    return html;
  }

  /**
   * The content of a section.
   * @returns {Promise<string>}
   */
  get(section) {
    const html = this.ready(section);
    if (html !== undefined) return Promise.resolve(html);
    return this.asked.get(key(section))?.promise ?? this.#ask(section);
  }

  /** Abort the requests for all but some sections. */
  keepOnly(sections) {
    const wanted = new Set(sections.map(key));
    for (const [name, { stop }] of this.asked) if (!wanted.has(name)) stop.abort();
  }

  #ask(section) {
    const name = key(section);
    const stop = new AbortController();
    const promise = askText(this.session.part(section.number), stop.signal)
      .then((html) => {
        this.#keep(name, html);
        return html;
      })
      .finally(() => this.asked.delete(name));
    promise.catch((error) => {
      // Callers that wait get the error; there may be none.
      if (!isAborted(error)) section.isMissed = true;
    });
    this.asked.set(name, { promise, stop });
    return promise;
  }

  #keep(name, html) {
    this.kept.set(name, html);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(oldest);
    }
  }
}

function key(section) {
  return `${section.number} ${section.mark}`;
}
