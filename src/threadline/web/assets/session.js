// Session: which one the page shows, and where what belongs to it is asked for.

// What the address says about this window only, not about what is drawn.
const NOT_DRAWN = ["at", "section", "find", "side", "state", "raw", "token"];

/** The session of a page, and the addresses below it. */
export class Session {
  /** @param {HTMLElement} root the element that says which session it is */
  constructor(root) {
    this.root = root;
    this.id = root.dataset.session;
    this.agent = root.dataset.agent || null;
    this.feed = root.querySelector(".feed");
    /** @type {Promise<unknown>} done when all sections are known */
    this.whole = Promise.resolve();
    /** @type {string|null} why there is nothing more to be had of it */
    this.gone = null;
  }

  /** The session of this page; null where it shows none. */
  static here() {
    const root = document.querySelector("[data-session]");
    return root?.querySelector(".feed") ? new Session(root) : null;
  }

  /**
   * The address of something below the session, drawn as this page is.
   * @param {string[]} below
   * @param {Object<string, string|number>} [more] of the query
   * @param {string} [search] the query of a page that shows it otherwise
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

  /** Whether the page shows only the beginning yet, of a session that takes a while to be read. */
  get isPartial() {
    return this.root.dataset.partial !== undefined;
  }

  /** Which part of a very long session this page shows, and how many there are. */
  get number() {
    return Number(this.root.dataset.part ?? 1);
  }

  get parts() {
    return Number(this.root.dataset.parts ?? 1);
  }

  /** The page of another part, shown as this one is; `end` is where to begin in it. */
  inPart(number, { end = false } = {}) {
    const address = new URL(location.href);
    for (const name of ["at", "section", "find"]) address.searchParams.delete(name);
    address.searchParams.set("part", String(number));
    address.hash = end ? "end" : "";
    return address.href;
  }

  /** Of the sections that shape.json tells of, those of the part of a very long session that this page shows. */
  ofPart(sections) {
    return sections.filter((one) => (one.part ?? 1) === this.number);
  }

  part(number) {
    return this.address(["part", String(number)]);
  }

  shape() {
    return this.address(["shape.json"], { seen: 1 });
  }

  /** Where all that stands around the conversation is asked for, with the turns around one. */
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

  /** The address of this page that begins at an item, to be sent to somebody or kept. */
  link(anchor) {
    const address = new URL(location.href);
    for (const name of ["at", "section", "find", "side", "state", "raw"]) address.searchParams.delete(name);
    if (anchor) address.searchParams.set("at", anchor);
    address.hash = anchor ? anchor : "";
    return address.href;
  }
}
