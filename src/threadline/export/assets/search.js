"use strict";
{
  const data = JSON.parse(document.getElementById("index").textContent);
  const input = document.getElementById("words");
  const list = document.getElementById("found");
  const told = document.getElementById("told");
  const most = 200, around = 80;
  const texts = data.items.map((item) => item[3].toLowerCase());

  const snippet = (text, words) => {
    const low = text.toLowerCase();
    const first = Math.max(0, Math.min(...words.map((word) => low.indexOf(word)).filter((at) => at >= 0)) - around);
    const piece = text.slice(first, first + 3 * around), lowPiece = piece.toLowerCase();
    const shown = document.createElement("span");
    if (first) shown.append("…");
    let at = 0;
    while (at < piece.length) {
      const hits = words.map((word) => [lowPiece.indexOf(word, at), word]).filter(([where]) => where >= 0);
      if (!hits.length) break;
      const [where, word] = hits.reduce((a, b) => (b[0] < a[0] ? b : a));
      const mark = document.createElement("mark");
      mark.textContent = piece.slice(where, where + word.length);
      shown.append(piece.slice(at, where), mark);
      at = where + word.length;
    }
    shown.append(piece.slice(at));
    return shown;
  };

  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.replaceChildren();
    if (!words.length) { told.textContent = ""; return; }
    let count = 0, last = -1, rows = null;
    for (let at = 0; at < texts.length; at++) {
      if (!words.every((word) => texts[at].includes(word))) continue;
      if (++count > most) continue;
      const [session, anchor, kind, text] = data.items[at];
      const page = `sessions/${data.sessions[session][0]}.html`;
      if (session !== last) {
        const block = document.createElement("section"), head = document.createElement("h2");
        const title = document.createElement("a");
        block.className = "block";
        title.href = page;
        title.textContent = data.sessions[session][1];
        rows = document.createElement("ul");
        rows.className = "recent";
        head.append(title);
        block.append(head, rows);
        list.append(block);
        last = session;
      }
      const row = document.createElement("li"), link = document.createElement("a"), what = document.createElement("span");
      link.href = `${page}#${anchor}`;
      what.className = "faint";
      what.textContent = kind;
      link.append(what, " ", snippet(text, words));
      row.append(link);
      rows.append(row);
    }
    told.textContent = `${count} ${count === 1 ? "place" : "places"}${count > most ? `, the first ${most} shown` : ""}`;
  };

  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { history.replaceState(null, "", "#" + encodeURIComponent(input.value)); search(); }, 80);
  });
  const from = () => { try { input.value = decodeURIComponent(location.hash.slice(1)); } catch { input.value = ""; } search(); };
  addEventListener("hashchange", from);
  from();
}
