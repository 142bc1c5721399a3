// Session: which one the page shows, and where what belongs to it is asked for.

// What the address says about this window only, not about what is drawn.
const NOT_DRAWN = ["at", "section", "find", "side", "state", "token"];

/** The session of a page, and the addresses below it. */
export class Session {
  /** @param {HTMLElement} root the element that says which session it is */
  constructor(root) {
    this.root = root;
    this.id = root.dataset.session;
    this.agent = root.dataset.agent || null;
    this.feed = root.querySelector(".feed");
    /** @type {Promise<unknown>} done when all sections are known; see whole.js */
    this.whole = Promise.resolve();
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
   */
  address(below, more = {}) {
    const query = new URLSearchParams(location.search);
    for (const name of NOT_DRAWN) query.delete(name);
    if (this.agent !== null) query.set("agent", this.agent);
    for (const [name, value] of Object.entries(more)) query.set(name, String(value));
    const path = ["/session", this.id, ...below].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/");
    const asked = query.toString();
    return asked ? `${path}?${asked}` : path;
  }

  /** Of the sections that shape.json tells of, those of the part of a very long session that this page shows. */
  ofPart(sections) {
    const part = Number(this.root.dataset.part ?? 1);
    return sections.filter((one) => (one.part ?? 1) === part);
  }

  part(number) {
    return this.address(["part", String(number)]);
  }

  shape() {
    return this.address(["shape.json"]);
  }

  where(anchor) {
    return this.address(["where.json"], { anchor });
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
    for (const name of ["at", "section", "find", "side", "state"]) address.searchParams.delete(name);
    if (anchor) address.searchParams.set("at", anchor);
    address.hash = anchor ? anchor : "";
    return address.href;
  }
}
