// Folds: what the person has opened or folded stays so when its section is emptied and filled again.

/** Remembers folds by the item they stand in and their place in it. */
export class Folds {
  /** @param {HTMLElement} feed */
  constructor(feed) {
    /** @type {Map<string, Map<number, boolean>>} */
    this.known = new Map();
    // A `toggle` event also tells of what was open from the start; a click is what a person does, also by Enter.
    feed.addEventListener("click", (event) => {
      const summary = event.target instanceof Element ? event.target.closest("summary") : null;
      const fold = summary?.parentElement;
      if (fold?.localName === "details" && !event.defaultPrevented && !event.target.closest("a")) {
        this.#remember(fold, !fold.open);
      }
    });
  }

  /**
   * Open or fold.
   * @param {HTMLDetailsElement} fold
   * @param {boolean} isOpen
   */
  set(fold, isOpen) {
    fold.open = isOpen;
    this.#remember(fold, isOpen);
  }

  /** Open all that an element stands in. */
  reveal(element) {
    for (let fold = element.parentElement?.closest("details"); fold; fold = fold.parentElement?.closest("details")) {
      if (!fold.open) this.set(fold, true);
    }
  }

  /** Put the folds of content as they were, before it is shown. */
  restore(content) {
    if (this.known.size === 0) return;
    for (const item of content.querySelectorAll("article[id]")) {
      const folds = this.known.get(item.id);
      if (folds === undefined) continue;
      const all = own(item);
      for (const [at, isOpen] of folds) if (all[at] !== undefined) all[at].open = isOpen;
    }
  }

  /** Whether the person has opened something in an element that is still open. */
  isOpened(element) {
    if (this.known.size === 0) return false;
    return Array.from(element.querySelectorAll("article[id]")).some((item) => {
      const folds = this.known.get(item.id);
      return folds !== undefined && Array.from(folds.values()).includes(true);
    });
  }

  #remember(fold, isOpen) {
    const item = fold.closest("article[id]");
    if (item === null) return;
    const folds = this.known.get(item.id) ?? new Map();
    folds.set(own(item).indexOf(fold), isOpen);
    this.known.set(item.id, folds);
  }
}

/** The folds of an item, without those of items inside it. */
function own(item) {
  return Array.from(item.querySelectorAll("details")).filter((fold) => fold.closest("article[id]") === item);
}
