// Finds and highlights text in the items that are in the document.

/** A letter without accents, in lower case, as the server compares them. */
function bare(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/**
 * The ranges in an element that match a text, even across child elements.
 * @param {Element} element
 * @param {string} words
 * @returns {Range[]}
 */
export function places(element, words) {
  const wanted = bare(words.trim());
  if (wanted === "") return [];
  const { text, from } = gathered(element);
  const found = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    const range = document.createRange();
    const [first, last] = [from[at], from[at + wanted.length - 1]];
    range.setStart(first.node, first.offset);
    range.setEnd(last.node, Math.min(last.node.length, last.offset + last.width));
    found.push(range);
  }
  return found;
}

/** The folded text of an element, and the source of each of its characters. */
function gathered(element) {
  const from = [];
  let text = "";
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    let offset = 0;
    for (const letter of node.data) {
      const plain = bare(letter);
      for (let at = 0; at < plain.length; at += 1) from.push({ node, offset, width: letter.length });
      text += plain;
      offset += letter.length;
    }
  }
  return { text, from };
}

const CAN = typeof Highlight === "function" && CSS.highlights !== undefined;

/**
 * Highlight ranges with the CSS highlight API, if the browser has it. The document is not changed.
 * @param {Range[]} all
 * @param {Range[]} now
 */
export function highlight(all, now) {
  if (!CAN) return;
  CSS.highlights.set("found", new Highlight(...all));
  const current = new Highlight(...now);
  current.priority = 1;
  CSS.highlights.set("found-now", current);
}

export function clearHighlights() {
  if (!CAN) return;
  CSS.highlights.delete("found");
  CSS.highlights.delete("found-now");
}
