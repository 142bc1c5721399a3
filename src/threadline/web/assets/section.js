// A section of the feed: consecutive items that are filled and emptied together.

/** Assumed values of a section that was never filled. */
const DEFAULT_ELEMENTS = 600;
const DEFAULT_HEIGHT = 600;

/**
 * A section as shape.json describes it. `mark` is a hash of its content.
 * @typedef {{number: number, items: number, elements?: number, height: number, turn?: number|null, mark: string}} Shape
 */

/** A section of the feed. While empty, it keeps its last or estimated height. */
export class Section {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.number = Number(element.dataset.number);
    this.items = Number(element.dataset.items) || 0;
    this.mark = element.dataset.mark ?? "";
    this.turn = element.dataset.turn ?? null;
    this.height = Number(element.dataset.height) || DEFAULT_HEIGHT;
    this.isMeasured = false;
    this.elements = Number(element.dataset.elements) || DEFAULT_ELEMENTS;
    this.isFilled = element.querySelector(":scope > article") !== null;
    if (this.isFilled) this.countElements();
  }

  /**
   * Create a section that was added after the page was loaded.
   * @param {Shape} shape
   */
  static create(shape) {
    const element = document.createElement("section");
    element.className = "section";
    element.id = `s${shape.number}`;
    const section = new Section(element);
    section.update(shape);
    return section;
  }

  /** @param {Shape} shape */
  update(shape) {
    this.number = shape.number;
    this.items = shape.items;
    this.mark = shape.mark;
    this.turn = shape.turn === undefined || shape.turn === null ? this.turn : String(shape.turn);
    if (!this.isMeasured) this.height = shape.height;
    if (!this.isFilled) this.elements = shape.elements ?? this.elements;
    Object.assign(this.element.dataset, { number: shape.number, items: shape.items, mark: shape.mark });
    if (!this.isFilled) this.clear();
  }

  countElements() {
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
    this.countElements();
  }

  /** Empty it without moving what is below. */
  empty() {
    this.measure();
    this.isFilled = false;
    this.clear();
  }

  measure() {
    if (!this.isFilled) return;
    this.height = this.element.getBoundingClientRect().height;
    this.isMeasured = true;
  }

  /** Remove the content, and set the height of the empty section. */
  clear() {
    if (this.element.firstChild !== null) this.element.replaceChildren();
    this.element.style.height = `${this.height}px`;
  }

  /** Show that loading failed, with a link that loads the page at this section. */
  showError() {
    const link = document.createElement("a");
    link.className = "unfilled";
    const url = new URL(location.href);
    url.searchParams.set("section", String(this.number));
    url.hash = "";
    link.href = url.href;
    link.textContent = "Loading failed. Try again.";
    this.element.replaceChildren(link);
  }
}
