// Finds and highlights text in the document.

/** Text in lower case and without accents, as the server compares it. */
function normalize(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/**
 * The ranges in an element that match a text, even across child elements.
 * @param {Element} element
 * @param {string} query
 * @returns {Range[]}
 */
export function findRanges(element, query) {
  const needle = normalize(query.trim());
  if (needle === "") return [];
  const { text, sources } = collectText(element);
  const ranges = [];
  for (let start = text.indexOf(needle); start >= 0; start = text.indexOf(needle, start + needle.length)) {
    const range = document.createRange();
    const [first, last] = [sources[start], sources[start + needle.length - 1]];
    range.setStart(first.node, first.offset);
    range.setEnd(last.node, Math.min(last.node.length, last.offset + last.width));
    ranges.push(range);
  }
  return ranges;
}

/** The normalized text of an element, and the source of each of its characters. */
function collectText(element) {
  const sources = [];
  let text = "";
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    let offset = 0;
    for (const letter of node.data) {
      const normalized = normalize(letter);
      for (let count = 0; count < normalized.length; count += 1) sources.push({ node, offset, width: letter.length });
      text += normalized;
      offset += letter.length;
    }
  }
  return { text, sources };
}

const IS_SUPPORTED = typeof Highlight === "function" && CSS.highlights !== undefined;

/**
 * Highlight ranges with the CSS highlight API, if the browser has it. The document is not changed.
 * @param {Range[]} matches all but the current match
 * @param {Range[]} currentMatch its ranges
 */
export function highlight(matches, currentMatch) {
  if (!IS_SUPPORTED) return;
  CSS.highlights.set("match", new Highlight(...matches));
  const current = new Highlight(...currentMatch);
  current.priority = 1;
  CSS.highlights.set("current-match", current);
}

export function clearHighlights() {
  if (!IS_SUPPORTED) return;
  CSS.highlights.delete("match");
  CSS.highlights.delete("current-match");
}
