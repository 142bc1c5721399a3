// Fetches the content of sections ahead of time and caches it.

import { fetchText } from "./fetch.js";

const MAX_SECTIONS = 60;
const MAX_REQUESTS = 4;

/** A cache of the HTML of sections, by number and mark. */
export class SectionCache {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    /** @type {Map<string, string>} HTML by key, least recently used first */
    this.cached = new Map();
    /** @type {Map<string, {promise: Promise<string>, abort: AbortController}>} */
    this.pending = new Map();
  }

  /** @param {import("./section.js").Section} section */
  has(section) {
    return this.cached.has(keyOf(section));
  }

  isPending(section) {
    return this.pending.has(keyOf(section));
  }

  /** Whether another request would not delay the pending ones. */
  get hasCapacity() {
    return this.pending.size < MAX_REQUESTS;
  }

  /** The content of a section if it is cached; otherwise undefined. */
  get(section) {
    const key = keyOf(section);
    const html = this.cached.get(key);
    if (html !== undefined) {
      this.cached.delete(key);
      this.cached.set(key, html);
    }
    return html;
  }

  /**
   * Get the content of a section from the cache or from the server.
   * @returns {Promise<string>}
   */
  load(section) {
    const html = this.get(section);
    if (html !== undefined) return Promise.resolve(html);
    return this.pending.get(keyOf(section))?.promise ?? this.#request(section);
  }

  /** Abort the requests for all other sections. */
  abortExcept(sections) {
    const keys = new Set(sections.map(keyOf));
    for (const [key, { abort }] of this.pending) if (!keys.has(key)) abort.abort();
  }

  #request(section) {
    const key = keyOf(section);
    const abort = new AbortController();
    const promise = fetchText(this.session.sectionUrl(section.number), abort.signal)
      .then((html) => {
        this.#store(key, html);
        return html;
      })
      .finally(() => this.pending.delete(key));
    // Callers that wait get the error. If nobody waits, the browser must not report it as unhandled.
    promise.catch(() => {});
    this.pending.set(key, { promise, abort });
    return promise;
  }

  #store(key, html) {
    this.cached.set(key, html);
    for (const oldest of this.cached.keys()) {
      if (this.cached.size <= MAX_SECTIONS) break;
      this.cached.delete(oldest);
    }
  }
}

function keyOf(section) {
  return `${section.number} ${section.mark}`;
}
