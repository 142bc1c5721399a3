// A section of the feed: consecutive items that are filled and emptied together.

/** The assumed number of elements of a section that was never filled. */
const UNKNOWN = 600;

/** A section of the feed. While empty, it keeps its last or estimated height. */
export class Section {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.number = Number(element.dataset.number);
    this.items = Number(element.dataset.items) || 0;
    this.mark = element.dataset.mark ?? "";
    this.turn = element.dataset.turn ?? null;
    this.height = Number(element.dataset.height) || 600;
    this.isMeasured = false;
    this.elements = Number(element.dataset.elements) || UNKNOWN;
    this.isFilled = element.querySelector(":scope > article") !== null;
    if (this.isFilled) this.count();
  }

  /** Create a section that was added after the page was loaded. */
  static made(told) {
    const element = document.createElement("section");
    element.className = "section";
    element.id = `s${told.number}`;
    const section = new Section(element);
    section.tell(told);
    return section;
  }

  /** Apply its data from shape.json. */
  tell(told) {
    this.number = told.number;
    this.items = told.items;
    this.mark = told.mark;
    this.turn = told.turn === undefined || told.turn === null ? this.turn : String(told.turn);
    if (!this.isMeasured) this.height = told.height;
    if (!this.isFilled) this.elements = told.elements ?? this.elements;
    Object.assign(this.element.dataset, { number: told.number, items: told.items, mark: told.mark });
    if (!this.isFilled) this.rest();
  }

  count() {
    this.elements = this.element.getElementsByTagName("*").length;
  }

  /** @returns {HTMLElement[]} its items, without nested ones */
  articles() {
    return Array.from(this.element.children).filter((child) => child.localName === "article");
  }

  /** @param {DocumentFragment} content */
  fill(content) {
    this.element.replaceChildren(content);
    this.element.style.height = "";
    this.isFilled = true;
    this.count();
  }

  /** Empty it without moving what is below. */
  empty() {
    this.measure();
    this.isFilled = false;
    this.rest();
  }

  measure() {
    if (!this.isFilled) return;
    this.height = this.element.getBoundingClientRect().height;
    this.isMeasured = true;
  }

  /** Set the height of the empty section. */
  rest() {
    if (this.element.firstChild !== null) this.element.replaceChildren();
    this.element.style.height = `${this.height}px`;
  }

  /** Show that loading failed, with a link that works without scripts. */
  fail() {
    const link = document.createElement("a");
    link.className = "unfilled";
    const address = new URL(location.href);
    address.searchParams.set("section", String(this.number));
    address.hash = "";
    link.href = address.href;
    link.textContent = "Loading failed: try again";
    this.element.replaceChildren(link);
  }
}
