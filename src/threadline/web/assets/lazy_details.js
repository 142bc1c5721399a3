// Loads the content of a fold when it is first opened: `<details data-src>`. Without scripts, it contains a link.

import { fetchText, isAborted, parseHtml, RequestError } from "./fetch.js";

/**
 * @param {import("./windowing.js").Windowing|null} windowing of the session's page, which limits the number of elements
 */
export function startLazyDetails(windowing = null) {
  // The event does not bubble. It also fires for folds that are open when they are inserted.
  document.addEventListener("toggle", (event) => loadDetails(event.target, windowing), { capture: true });
  for (const details of document.querySelectorAll("details[data-src][open]")) loadDetails(details, windowing);
}

async function loadDetails(details, windowing) {
  if (!(details instanceof HTMLDetailsElement)) return;
  if (details.dataset.open !== undefined) writeUrl(details);
  if (!details.open || details.dataset.src === undefined) return;
  const url = details.dataset.src;
  delete details.dataset.src;
  details.setAttribute("aria-busy", "true");
  try {
    const content = parseHtml(await fetchText(url));
    fill(details, content, windowing);
  } catch (error) {
    // The link that is in it leads to the same content.
    details.dataset.src = url;
    if (!(error instanceof RequestError) && !isAborted(error)) throw error;
  } finally {
    details.removeAttribute("aria-busy");
  }
}

function fill(details, content, windowing) {
  const change = () => {
    windowing?.makeRoom(content.querySelectorAll("*").length);
    while (details.lastElementChild !== null && details.lastElementChild.localName !== "summary") {
      details.lastElementChild.remove();
    }
    details.append(content);
  };
  if (windowing?.feed.contains(details)) {
    windowing.scrollAnchor.preserve(change);
    windowing.recount(details);
  } else {
    change();
    windowing?.scrollAnchor.remember();
  }
}

/** Put the name of an open fold into the URL, so that a reload or a copied link shows it, too. */
function writeUrl(details) {
  const url = new URL(location.href);
  const open = new Set((url.searchParams.get("open") ?? "").split(",").filter(Boolean));
  if (details.open) open.add(details.dataset.open);
  else open.delete(details.dataset.open);
  if (open.size > 0) url.searchParams.set("open", [...open].join(","));
  else url.searchParams.delete("open");
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}
