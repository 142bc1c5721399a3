// Found: words in the items that are drawn, and their highlights.

/** A letter without its marks, in lower case: as the server compares. */
function bare(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/**
 * The places in an element at which words stand, whatever elements they are spread over.
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

/** The text of an element, bare, and for each of its characters where it comes from. */
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
 * Highlight ranges; where the browser cannot, nothing is changed in the document for it.
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
