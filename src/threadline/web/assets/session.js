// The session that the page shows, and the URLs of its data.

// URL parameters that concern this window only, not what is rendered.
const NOT_DRAWN = ["at", "section", "find", "side", "state", "raw", "token"];

/** The session of a page, and the URLs below it. */
export class Session {
  /** @param {HTMLElement} root the element whose attributes describe the session */
  constructor(root) {
    this.root = root;
    this.id = root.dataset.session;
    this.agent = root.dataset.agent || null;
    this.feed = root.querySelector(".feed");
    /** @type {Promise<unknown>} resolved when all sections are known */
    this.whole = Promise.resolve();
    /** @type {string|null} why nothing more can be loaded */
    this.gone = null;
  }

  /** The session of this page; null if it shows none. */
  static here() {
    const root = document.querySelector("[data-session]");
    return root?.querySelector(".feed") ? new Session(root) : null;
  }

  /**
   * The URL of something below the session, in the same view as this page.
   * @param {string[]} below
   * @param {Object<string, string|number>} [more] parameters
   * @param {string} [search] the query of another view
   */
  address(below, more = {}, search = location.search) {
    const query = new URLSearchParams(search);
    for (const name of NOT_DRAWN) query.delete(name);
    if (this.agent !== null) query.set("agent", this.agent);
    for (const [name, value] of Object.entries(more)) query.set(name, String(value));
    const path = ["/session", this.id, ...below].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/");
    const asked = query.toString();
    return asked ? `${path}?${asked}` : path;
  }

  /** Whether the page is a preview of a session that is still being read. */
  get isPartial() {
    return this.root.dataset.partial !== undefined;
  }

  /** The part of a very long session that this page shows, and the number of parts. */
  get number() {
    return Number(this.root.dataset.part ?? 1);
  }

  get parts() {
    return Number(this.root.dataset.parts ?? 1);
  }

  /** The URL of another part in the same view; `end` is where to begin in it. */
  inPart(number, { end = false } = {}) {
    const address = new URL(location.href);
    for (const name of ["at", "section", "find"]) address.searchParams.delete(name);
    address.searchParams.set("part", String(number));
    address.hash = end ? "end" : "";
    return address.href;
  }

  /** The sections in shape.json that belong to the part that this page shows. */
  ofPart(sections) {
    return sections.filter((one) => (one.part ?? 1) === this.number);
  }

  part(number) {
    return this.address(["part", String(number)]);
  }

  shape() {
    return this.address(["shape.json"], { seen: 1 });
  }

  /** The URL of what surrounds the conversation, with the turns around a turn. */
  about(turn) {
    const side = new URLSearchParams(location.search).get("side");
    return this.address(["about"], { turn, part: this.number, ...(side ? { side } : {}) });
  }

  where(anchor, search = location.search) {
    return this.address(["where.json"], { anchor }, search);
  }

  find(words) {
    return this.address(["find.json"], { q: words });
  }

  raw(anchor) {
    return this.address(["entry", anchor]);
  }

  state(anchor) {
    return this.address(["state", anchor]);
  }

  markdown(anchor) {
    return this.address(["markdown"], { anchor });
  }

  /** The URL of this page that begins at an item, for copying. */
  link(anchor) {
    const address = new URL(location.href);
    for (const name of ["at", "section", "find", "side", "state", "raw"]) address.searchParams.delete(name);
    if (anchor) address.searchParams.set("at", anchor);
    address.hash = anchor ? anchor : "";
    return address.href;
  }
}
