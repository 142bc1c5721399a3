// Entry point of all pages but the conversations: rows follow the transcripts, and filters apply while typing.

import { showCopyButtons } from "./copy.js";
import { fetchText, isAborted, parseHtml, RequestError } from "./fetch.js";
import { subscribe } from "./live.js";
import { setLastingStatus } from "./status.js";

/** Pages with lists that follow the transcripts. */
const LIST_PAGES = ["home", "sessions"];
const TYPING_MS = 250;
/** Milliseconds between two updates of a list while sessions grow. */
const UPDATE_MS = 1500;

/** The request under way. A newer one replaces it. */
let abort = null;

/** Fetch this page again and show what has changed, once for all events within a short time. */
function createListUpdater() {
  let timer = 0;
  let next = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      next = Date.now() + UPDATE_MS;
      // Whoever types in a form of the list, or edits a note, must not lose the text.
      const isTyping = (document.activeElement?.closest("main form") ?? null) !== null;
      if (!isTyping) show(location.href);
    }, Math.max(0, next - Date.now()));
  };
}

/** Update the rows when a session changes. */
function watchList() {
  subscribe("/live", createListUpdater(), document.getElementById("main").dataset.since);
  // An update that was requested before a star was saved would remove the star from the row.
  document.addEventListener("annotated", () => {
    if (abort !== null) show(location.href);
  });
}

/** Apply the filters of a list while they are typed. Without scripts, the form has a button. */
function startFilters() {
  const form = document.querySelector("main > form.filters");
  if (form === null) return;
  let timer = 0;
  const apply = (delay) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const url = filterUrl(form);
      if (await show(url)) history.replaceState(history.state, "", url);
    }, delay);
  };
  form.addEventListener("input", (event) => apply(event.target instanceof HTMLSelectElement ? 0 : TYPING_MS));
  form.addEventListener("submit", () => clearTimeout(timer));
}

/** Say that a form takes a while: redacting a long session takes seconds. */
function announceSlowForms() {
  for (const form of document.querySelectorAll("form[data-busy]")) {
    form.addEventListener("submit", () => setLastingStatus(form.dataset.busy));
  }
}

/** Suggest the browser's own time zone. */
function fillBrowserZone() {
  const box = document.querySelector("input[data-browser-zone]");
  if (box !== null && box.value === "") box.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
}

/** The URL that submitting a form would open, without empty fields. */
function filterUrl(form) {
  const url = new URL(form.action);
  const pairs = [...new FormData(form)].filter(([, value]) => typeof value === "string" && value.trim() !== "");
  url.search = new URLSearchParams(pairs).toString();
  return url.href;
}

/**
 * Replace the content of the page by that of a URL. The form, the focus, unfolded details and the position stay.
 * @returns {Promise<boolean>} whether there was a valid answer
 */
async function show(url) {
  abort?.abort();
  const own = (abort = new AbortController());
  try {
    replaceContent(parseHtml(await fetchText(url, own.signal)));
    return true;
  } catch (error) {
    // A half-typed date is refused; the list stays until the filter is complete.
    if (error instanceof RequestError || isAborted(error)) return false;
    throw error;
  } finally {
    if (abort === own) abort = null;
  }
}

/** Replace the siblings of a form by those of another. The form itself stays where it is, or it would lose the focus. */
function replaceAround(form, newForm) {
  const siblings = Array.from(newForm.parentNode.childNodes);
  const at = siblings.indexOf(newForm);
  for (const node of Array.from(form.parentNode.childNodes)) if (node !== form) node.remove();
  form.before(...siblings.slice(0, at));
  form.after(...siblings.slice(at + 1));
}

function replaceContent(content) {
  const main = document.getElementById("main");
  const position = scrollY;
  const focused = document.activeElement?.closest("main a[href]")?.getAttribute("href") ?? null;
  const openFolds = Array.from(main.querySelectorAll("details"), (fold) => fold.open);
  const form = main.querySelector(":scope > form.filters");
  const newForm = content.querySelector("form.filters");
  if (form !== null && newForm !== null) replaceAround(form, newForm);
  else main.replaceChildren(content);
  const folds = main.querySelectorAll("details");
  if (folds.length === openFolds.length) folds.forEach((fold, at) => (fold.open = openFolds[at]));
  showCopyButtons(main);
  if (focused !== null) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  scrollTo({ top: position, behavior: "instant" });
}

startFilters();
fillBrowserZone();
announceSlowForms();
if (LIST_PAGES.some((kind) => document.body.classList.contains(kind))) watchList();
