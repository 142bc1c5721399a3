// The search page of an exported site: finds items that contain all words of the query, in the texts in the page.
"use strict";
{
  const MAX_RESULTS = 200;
  /** Characters shown before the first match; a snippet is three times as long. */
  const CONTEXT = 80;
  const DEBOUNCE_MS = 80;

  /** `sessions` are pairs of a file name and a title; `items` are a session's index, an anchor, a kind and a text. */
  const data = JSON.parse(document.getElementById("index").textContent);
  const input = document.getElementById("query");
  const results = document.getElementById("results");
  const status = document.getElementById("status");
  const lowerTexts = data.items.map((item) => item[3].toLowerCase());

  /** The part of a text around the first match, with the words marked. */
  const createSnippet = (text, words) => {
    const lowerText = text.toLowerCase();
    const matches = words.map((word) => lowerText.indexOf(word)).filter((index) => index >= 0);
    const start = Math.max(0, Math.min(...matches) - CONTEXT);
    const part = text.slice(start, start + 3 * CONTEXT);
    const lowerPart = part.toLowerCase();
    const snippet = document.createElement("span");
    if (start > 0) snippet.append("…");
    let end = 0;
    while (end < part.length) {
      const hits = words.map((word) => [lowerPart.indexOf(word, end), word]).filter(([index]) => index >= 0);
      if (hits.length === 0) break;
      const [index, word] = hits.reduce((a, b) => (b[0] < a[0] ? b : a));
      const mark = document.createElement("mark");
      mark.textContent = part.slice(index, index + word.length);
      snippet.append(part.slice(end, index), mark);
      end = index + word.length;
    }
    snippet.append(part.slice(end));
    return snippet;
  };

  /** Add the heading of a session, and return the list for its items. */
  const appendSession = (url, title) => {
    const block = document.createElement("section");
    const heading = document.createElement("h2");
    const link = document.createElement("a");
    const list = document.createElement("ul");
    block.className = "block";
    link.href = url;
    link.textContent = title;
    list.className = "recent";
    heading.append(link);
    block.append(heading, list);
    results.append(block);
    return list;
  };

  const createRow = (url, kind, snippet) => {
    const row = document.createElement("li");
    const link = document.createElement("a");
    const label = document.createElement("span");
    link.href = url;
    label.className = "faint";
    label.textContent = kind;
    link.append(label, " ", snippet);
    row.append(link);
    return row;
  };

  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.replaceChildren();
    status.textContent = "";
    if (words.length === 0) return;
    let count = 0;
    let currentSession = -1;
    let list = null;
    lowerTexts.forEach((lowerText, index) => {
      if (!words.every((word) => lowerText.includes(word))) return;
      count += 1;
      if (count > MAX_RESULTS) return;
      const [session, anchor, kind, text] = data.items[index];
      const [name, title] = data.sessions[session];
      const url = `sessions/${name}.html`;
      if (session !== currentSession) {
        list = appendSession(url, title);
        currentSession = session;
      }
      list.append(createRow(`${url}#${anchor}`, kind, createSnippet(text, words)));
    });
    const matches = count === 0 ? "No matches" : count === 1 ? "1 match" : `${count} matches`;
    status.textContent = count > MAX_RESULTS ? `${matches}. Showing the first ${MAX_RESULTS}.` : matches;
  };

  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", `#${encodeURIComponent(input.value)}`);
      search();
    }, DEBOUNCE_MS);
  });

  const searchFromUrl = () => {
    try {
      input.value = decodeURIComponent(location.hash.slice(1));
    } catch {
      input.value = "";
    }
    search();
  };
  addEventListener("hashchange", searchFromUrl);
  searchFromUrl();
}
