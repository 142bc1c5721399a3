// Remembers what the user expanded or folded while sections are emptied and filled again.

/** Remembers folds by their item and their position in it. */
export class Folds {
  /** @param {HTMLElement} feed */
  constructor(feed) {
    /** @type {Map<string, Map<number, boolean>>} */
    this.known = new Map();
    // `toggle` events also fire for folds that are open from the start. Only a user causes clicks, also with Enter.
    feed.addEventListener("click", (event) => {
      const summary = event.target instanceof Element ? event.target.closest("summary") : null;
      const fold = summary?.parentElement;
      if (fold?.localName === "details" && !event.defaultPrevented && !event.target.closest("a")) {
        this.#remember(fold, !fold.open);
      }
    });
  }

  /**
   * Expand or fold.
   * @param {HTMLDetailsElement} fold
   * @param {boolean} isOpen
   */
  set(fold, isOpen) {
    fold.open = isOpen;
    this.#remember(fold, isOpen);
  }

  /** Expand all folds around an element. */
  reveal(element) {
    for (let fold = element.parentElement?.closest("details"); fold; fold = fold.parentElement?.closest("details")) {
      if (!fold.open) this.set(fold, true);
    }
  }

  /** Restore the folds of content before it is shown. */
  restore(content) {
    if (this.known.size === 0) return;
    for (const item of content.querySelectorAll("article[id]")) {
      const folds = this.known.get(item.id);
      if (folds === undefined) continue;
      const all = own(item);
      for (const [at, isOpen] of folds) if (all[at] !== undefined) all[at].open = isOpen;
    }
  }

  /** Whether an element contains a fold that the user expanded. */
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

/** The folds of an item, without those of nested items. */
function own(item) {
  return Array.from(item.querySelectorAll("details")).filter((fold) => fold.closest("article[id]") === item);
}
