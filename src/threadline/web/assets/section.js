// Section: a run of items that is filled and emptied together.

/** How many elements a section is taken to have before it was ever filled. */
const UNKNOWN = 600;

/** One section of the feed; empty, it keeps the height it had, or is thought to have. */
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

  /** A section that the page did not have when it was made. */
  static made(told) {
    const element = document.createElement("section");
    element.className = "section";
    element.id = `s${told.number}`;
    const section = new Section(element);
    section.tell(told);
    return section;
  }

  /** Take over what shape.json says of it. */
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

  /** @returns {HTMLElement[]} the items that stand in it, without those inside of others */
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

  /** Empty it; what is below does not move. */
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

  /** Stand empty, as high as is known. */
  rest() {
    if (this.element.firstChild !== null) this.element.replaceChildren();
    this.element.style.height = `${this.height}px`;
  }

  /** Say that it could not be had, with a link that needs no script. */
  fail() {
    const link = document.createElement("a");
    link.className = "unfilled";
    const address = new URL(location.href);
    address.searchParams.set("section", String(this.number));
    address.hash = "";
    link.href = address.href;
    link.textContent = "This part could not be loaded: try again";
    this.element.replaceChildren(link);
  }
}
