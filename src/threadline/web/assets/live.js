// Live updates: an open session grows with its transcript, and lists show what changed.

import { fetchJson, isAborted, RequestError, setExists } from "./fetch.js";
import { Section } from "./section.js";
import { setLastingStatus } from "./status.js";
import { remainingScroll } from "./visibility.js";

/** Milliseconds before the event stream is opened again after an error: doubled each time, up to the maximum. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;
/** Within this distance of the end, in pixels, the page follows what is added. */
const END_MARGIN = 40;
const LOGGED_OUT = "This browser is logged out. Press Enter in the terminal where `threadline serve` runs for a new link.";

/** Updates the sections of a session. */
export class Live {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./navigation.js").ItemNavigation} navigation
   * @param {import("./windowing.js").Windowing} windowing
   * @param {import("./session_frame.js").SessionFrame} frame
   */
  constructor(session, navigation, windowing, frame) {
    this.session = session;
    this.navigation = navigation;
    this.windowing = windowing;
    this.frame = frame;
    this.isUpdating = false;
    this.hasPendingEvent = false;
    /** The number of new items that the user has not seen. */
    this.newItems = 0;
    this.button = null;
  }

  start() {
    subscribe(`/live?session=${encodeURIComponent(this.session.id)}`, () => this.update());
    this.windowing.addEventListener("stale", () => this.update());
    addEventListener("scroll", () => this.#clearNewItems(), { passive: true });
  }

  /** Request what has changed: one request at a time, and another one if there was an event meanwhile. */
  async update() {
    if (this.isUpdating) {
      this.hasPendingEvent = true;
      return;
    }
    this.isUpdating = true;
    try {
      do {
        this.hasPendingEvent = false;
        const shape = await fetchJson(this.session.shapeUrl());
        this.#setGone(shape.gone ?? null);
        if (shape.gone === undefined) await this.#apply(shape);
      } while (this.hasPendingEvent);
    } catch (error) {
      // If the server is away for a moment, the event stream triggers another request.
      if (!(error instanceof RequestError) && !isAborted(error)) throw error;
    } finally {
      this.isUpdating = false;
    }
  }

  /** Keep showing a session that was deleted, without further requests until it is restored. */
  #setGone(gone) {
    const { session } = this;
    if (session.gone === gone) return;
    session.gone = gone;
    setExists(session.url([""]).split("?")[0], gone === null);
    setLastingStatus(gone ?? "");
  }

  async #apply(shape) {
    const { windowing } = this;
    const { dataset } = this.session.root;
    dataset.parts = String(shape.parts);
    if (shape.version !== dataset.version && !this.session.isPreview) this.frame.scheduleUpdate();
    const shapes = this.session.sectionsOfPart(shape.sections);
    const { sections } = windowing;
    const isFollowing = this.#isAtEnd();
    const before = countItems(sections);
    const changed = [];
    windowing.scrollAnchor.preserve(() => {
      while (sections.length > shapes.length) sections.pop().element.remove();
      shapes.forEach((sectionShape, index) => {
        if (index >= sections.length) this.#append(sectionShape);
        else if (sections[index].mark !== sectionShape.mark) {
          sections[index].update(sectionShape);
          if (sections[index].isFilled) changed.push(sections[index]);
        }
      });
    });
    for (const section of changed) await windowing.refresh(section);
    const after = countItems(sections);
    if (after !== before) this.#setSize(after);
    windowing.update();
    if (after < before && !this.session.isPreview) setLastingStatus(truncationMessage(before - after));
    // What a preview lacked is not new.
    if (after <= before || this.session.isPreview) return;
    if (isFollowing) await this.#follow();
    else this.#showNewItems(after - before);
  }

  #append(shape) {
    const { sections } = this.windowing;
    const height = Math.round(shape.height * (this.windowing.ratio ?? 1));
    const section = Section.create({ ...shape, height });
    const last = sections.at(-1);
    if (last === undefined) this.session.feed.append(section.element);
    else last.element.after(section.element);
    sections.push(section);
  }

  /** Stay at the end without moving the focus. */
  async #follow() {
    const last = this.windowing.sections.at(-1);
    await this.windowing.withFilled(last.number, () => this.windowing.scrollAnchor.pinEnd());
  }

  /** Tell screen readers how many items the whole session has. */
  #setSize(size) {
    for (const section of this.windowing.sections) {
      if (section.isFilled) for (const item of section.articles()) item.setAttribute("aria-setsize", String(size));
    }
  }

  #showNewItems(count) {
    this.newItems += count;
    this.button ??= this.#createButton();
    const noun = this.newItems === 1 ? "entry" : "entries";
    this.button.textContent = `${this.newItems.toLocaleString("en")} new ${noun} ↓`;
    this.button.hidden = false;
  }

  #isAtEnd() {
    const last = this.windowing.sections.at(-1);
    if (last === undefined) return true;
    const isFeedEnd = last.element.getBoundingClientRect().bottom <= innerHeight + END_MARGIN;
    return remainingScroll() <= END_MARGIN || (isFeedEnd && last.isFilled);
  }

  /** At the end, new items count as seen. */
  #clearNewItems() {
    if (this.newItems === 0 || !this.#isAtEnd()) return;
    this.newItems = 0;
    this.button.hidden = true;
  }

  #createButton() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "new";
    button.addEventListener("click", async () => {
      await this.navigation.goToEnd();
      this.#clearNewItems();
    });
    document.body.append(button);
    return button;
  }
}

function countItems(sections) {
  return sections.reduce((sum, section) => sum + section.items, 0);
}

function truncationMessage(count) {
  const removed = count === 1 ? "1 entry was" : `${count.toLocaleString("en")} entries were`;
  return `The transcript was truncated: ${removed} removed.`;
}

/**
 * Listen to the event stream of the server while the page is visible. An event says that something has changed, never
 * what. The first event says that something may have changed before the stream was opened.
 * @param {string} url
 * @param {() => void} onChange
 * @param {string} [since] the time that the page is of: without a change since then, there is no first event
 */
export function subscribe(url, onChange, since) {
  let source = null;
  let firstUrl = since === undefined ? null : `${url}?since=${since}`;
  let delay = MIN_RETRY_MS;
  let timer = 0;
  let isLoggedOut = false;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const endAccess = () => {
    stop();
    isLoggedOut = true;
    setLastingStatus(LOGGED_OUT);
  };
  /** An event stream does not tell why it was refused. */
  const checkAccess = async () => {
    const response = await fetch(url, { method: "HEAD" }).catch(() => null);
    if (response?.status === 403) endAccess();
  };
  const start = () => {
    stop();
    if (isLoggedOut) return;
    source = new EventSource(firstUrl ?? url);
    firstUrl = null;
    source.addEventListener("open", () => (delay = MIN_RETRY_MS));
    source.addEventListener("message", () => onChange());
    source.addEventListener("logged-out", endAccess);
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) checkAccess();
      // The browser's own retries have no backoff, and stop for good after a response like 503.
      stop();
      timer = setTimeout(start, delay);
      delay = Math.min(MAX_RETRY_MS, delay * 2);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else start();
  });
  // A page that is left closes its connection; one that returns from the cache has to be current.
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => {
    if (event.persisted) start();
  });
  if (!document.hidden) start();
}
