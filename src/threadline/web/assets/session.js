// The session that the page shows, and the URLs of its data.

import { withCarriedParameters } from "./fetch.js";

/** URL parameters that concern this window only, not what the server renders. */
const WINDOW_PARAMETERS = ["at", "section", "find", "mark", "open", "side", "state", "raw", "context", "token"];

/** The session of a page, and the URLs below it. */
export class Session {
  /** @param {HTMLElement} root the element whose attributes describe the session */
  constructor(root) {
    this.root = root;
    this.id = root.dataset.session;
    this.agent = root.dataset.agent || null;
    this.feed = root.querySelector(".feed");
    /** @type {Promise<unknown>} resolved when all sections are known */
    this.loaded = Promise.resolve();
    /** @type {string|null} why nothing more can be loaded */
    this.gone = null;
  }

  /** The session of this page; null if it shows none. */
  static fromPage() {
    const root = document.querySelector("[data-session]");
    return root?.querySelector(".feed") ? new Session(root) : null;
  }

  /** Whether the page is a preview of a session that is still being read. */
  get isPreview() {
    return this.root.dataset.partial !== undefined;
  }

  /** The part of a very long session that this page shows. */
  get part() {
    return Number(this.root.dataset.part ?? 1);
  }

  /** The number of parts. */
  get parts() {
    return Number(this.root.dataset.parts ?? 1);
  }

  /** The sections in shape.json that belong to the part that this page shows. */
  sectionsOfPart(sections) {
    return sections.filter((section) => (section.part ?? 1) === this.part);
  }

  /**
   * The URL of something below the session, in the same view as this page.
   * @param {string[]} segments
   * @param {Object<string, string|number>} [parameters] in addition to those of the view
   * @param {string} [search] the query of another view
   */
  url(segments, parameters = {}, search = location.search) {
    const query = new URLSearchParams(search);
    for (const name of WINDOW_PARAMETERS) query.delete(name);
    if (this.agent !== null) query.set("agent", this.agent);
    for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
    const path = `/session/${[this.id, ...segments].map(encodeURIComponent).join("/")}`;
    const text = query.toString();
    return text ? `${path}?${text}` : path;
  }

  sectionUrl(number) {
    return this.url(["part", String(number)]);
  }

  /** The URL of the list of sections. */
  shapeUrl() {
    return this.url(["shape.json"], { seen: 1 });
  }

  /** The URL of what surrounds the conversation, with the turns around a turn. */
  frameUrl(turn) {
    const side = new URLSearchParams(location.search).get("side");
    return this.url(["about"], { turn, part: this.part, ...(side ? { side } : {}) });
  }

  /** The URL of the position of an item: its section, or another page. */
  positionUrl(anchor, search = location.search) {
    return this.url(["where.json"], { anchor }, search);
  }

  findUrl(text) {
    return this.url(["find.json"], { q: text });
  }

  /** The URL of what the panel shows of an entry. */
  panelUrl(kind, anchor) {
    return this.url([kind === "raw" ? "entry" : kind, anchor]);
  }

  /** The URL that exports the file of the page *Share* ahead, which does not depend on the view of this page. */
  sharePreparationUrl() {
    return withCarriedParameters(`/session/${encodeURIComponent(this.id)}/share/prepare`);
  }

  markdownUrl(anchor) {
    return this.url(["markdown"], { anchor });
  }

  /** The URL of another part in the same view; with `end`, it begins at the end of the part. */
  partUrl(number, { end = false } = {}) {
    const url = new URL(location.href);
    for (const name of ["at", "section", "find", "mark"]) url.searchParams.delete(name);
    url.searchParams.set("part", String(number));
    url.hash = end ? "end" : "";
    return url.href;
  }

  /** The URL of this page that begins at an item, for copying. */
  linkTo(anchor) {
    const url = new URL(location.href);
    for (const name of ["at", "section", "find", "mark", "open", "side", "state", "raw", "context"]) url.searchParams.delete(name);
    if (anchor) url.searchParams.set("at", anchor);
    url.hash = anchor ? anchor : "";
    return url.href;
  }
}
