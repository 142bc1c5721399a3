// Remembers which folds (`<details>`) the user expanded or closed while sections are emptied and filled again.

/** Remembers folds by their item and their position in it. */
export class FoldState {
  /** @param {HTMLElement} feed */
  constructor(feed) {
    /** @type {Map<string, Map<number, boolean>>} whether a fold is open, by item and position */
    this.states = new Map();
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
   * Expand or close a fold.
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
    if (this.states.size === 0) return;
    for (const item of content.querySelectorAll("article[id]")) {
      const states = this.states.get(item.id);
      if (states === undefined) continue;
      const folds = foldsOf(item);
      for (const [index, isOpen] of states) if (folds[index] !== undefined) folds[index].open = isOpen;
    }
  }

  /** Whether an element contains a fold that the user expanded. */
  hasExpanded(element) {
    if (this.states.size === 0) return false;
    return Array.from(element.querySelectorAll("article[id]")).some((item) => {
      const states = this.states.get(item.id);
      return states !== undefined && Array.from(states.values()).includes(true);
    });
  }

  #remember(fold, isOpen) {
    const item = fold.closest("article[id]");
    if (item === null) return;
    const states = this.states.get(item.id) ?? new Map();
    states.set(foldsOf(item).indexOf(fold), isOpen);
    this.states.set(item.id, states);
  }
}

/** The folds of an item, without those of nested items. */
function foldsOf(item) {
  return Array.from(item.querySelectorAll("details")).filter((fold) => fold.closest("article[id]") === item);
}
