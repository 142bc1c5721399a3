// What keyboard shortcuts and buttons do, by the action names in the table of keys.

import { carriedParameters, fetchJson, isAborted, postForm, RequestError, withCarriedParameters } from "./fetch.js";
import { copyBlock, copyFromUrl, copyText } from "./copy.js";
import { openPalette } from "./palette.js";
import { isDialogOpen } from "./keys.js";
import { showStatus } from "./status.js";
import { nextTheme } from "./theme.js";

/**
 * Actions of every page.
 * @param {import("./keys.js").Shortcut[]} shortcuts
 */
export function pageActions(shortcuts) {
  const goTo = (path) => () => location.assign(withCarriedParameters(path));
  return {
    "next-item": () => stepRow(1),
    "previous-item": () => stepRow(-1),
    fold: () => openRow(),
    start: () => scrollTo({ top: 0, behavior: "instant" }),
    end: () => scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" }),
    find: () => focusSearch(),
    "copy-link": () => copyText(location.href, "Link"),
    star: (event) => toggleStar(event),
    palette: () => openPalette(),
    home: goTo("/"),
    sessions: goTo("/sessions"),
    usage: goTo("/usage"),
    insight: goTo("/why"),
    theme: () => nextTheme(),
    "time-zone": () => chooseTimeZone(),
    help: () => void import("./help.js").then(({ showHelp }) => showHelp(shortcuts)),
    close: () => false,
  };
}

/**
 * Focus the link of the next or previous row of a list.
 * @param {1|-1} step
 */
function stepRow(step) {
  const links = Array.from(document.querySelectorAll("[data-item]"), linkOfRow).filter((link) => link !== null);
  if (links.length === 0) return false;
  const row = document.activeElement?.closest("[data-item]");
  const index = row ? links.indexOf(linkOfRow(row)) : -1;
  const next = index < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, index + step));
  links[next].focus({ preventScroll: true });
  links[next].scrollIntoView({ block: "nearest", behavior: "instant" });
  return true;
}

/** Open the row that has the focus. */
function openRow() {
  const row = document.activeElement?.closest("[data-item]");
  const link = row ? linkOfRow(row) : null;
  if (link === null) return false;
  link.click();
  return true;
}

function linkOfRow(row) {
  return row.matches("a[href]") ? row : row.querySelector("a[href]");
}

/** Choose the time zone, and come back to this very view. */
function chooseTimeZone() {
  const back = location.pathname + location.search + location.hash;
  location.assign(`/time-zone?${new URLSearchParams({ back, ...carriedParameters() })}`);
}

/** Star the session of the clicked button; for a key or the palette, that of the focused row or of this page. */
function toggleStar(event) {
  const clicked = event.type === "click" ? event.target.closest("button[data-session]") : null;
  const scope = document.activeElement?.closest("[data-item]") ?? document;
  const button = clicked ?? scope.querySelector("button[data-session]");
  if (button === null) return false;
  setStar(button, button.getAttribute("aria-pressed") !== "true");
  return true;
}

async function setStar(button, isStarred) {
  try {
    await postForm("/annotate.json", { session: button.dataset.session, starred: isStarred ? "1" : "0" });
    // An update of the list may have replaced the button meanwhile.
    const selector = `button[data-session="${CSS.escape(button.dataset.session)}"]`;
    for (const each of document.querySelectorAll(selector)) each.setAttribute("aria-pressed", String(isStarred));
    document.dispatchEvent(new Event("annotated"));
    showStatus(isStarred ? "Starred" : "Star removed");
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    showStatus("The star was not saved. See the terminal that runs `threadline serve`.");
  }
}

function focusSearch() {
  const box = document.querySelector("main input[type=search], main input[name=q], input[type=search], input[name=q]");
  if (box === null) return false;
  box.focus();
  box.select();
  return true;
}

/**
 * Actions of a session's page.
 * @param {{session: import("./session.js").Session, navigation: import("./navigation.js").ItemNavigation,
 *   windowing: import("./windowing.js").Windowing, find: import("./find.js").Find,
 *   panel: import("./panel.js").Panel}} parts
 */
export function sessionActions({ session, navigation, windowing, find, panel }) {
  // Steps run one after the other, however fast a key repeats.
  let queue = Promise.resolve();
  const queued = (action) => () => {
    queue = queue.then(action).catch((error) => {
      // After a failed step, the next key must still work.
      if (error instanceof RequestError) showStatus(session.gone ?? "No response from the server.");
      else if (!isAborted(error)) reportError(error);
    });
  };
  const toggle = (name, value) => queued(() => toggleParameter(session, name, value, navigation.current()));
  const togglePanel = (kind) => (event) => {
    const item = clickedItem(event) ?? navigation.current();
    if (item === null) return false;
    navigation.setCurrent(item);
    panel.toggle(kind, item.id);
    return true;
  };
  const toggleState = togglePanel("state");
  return {
    "next-item": queued(() => navigation.step(1)),
    "previous-item": queued(() => navigation.step(-1)),
    "next-turn": queued(() => navigation.stepTurn(1)),
    "previous-turn": queued(() => navigation.stepTurn(-1)),
    start: queued(() => navigation.goToStart()),
    end: queued(() => navigation.goToEnd()),
    find: () => find.open(),
    // Pressed again, the key opens the browser's own search, which only sees what is rendered.
    "find-in-session": () => (find.hasFocus || isDialogOpen() ? false : find.open()),
    "next-find": queued(() => find.step(1)),
    "previous-find": queued(() => find.step(-1)),
    errors: toggle("errors", "1"),
    focus: toggle("focus", "1"),
    thinking: toggle("thinking", "full"),
    calls: toggle("calls", "full"),
    branches: () => nextBranch(session),
    fold: (event) =>
      event.key === "Enter" && find.hasMatches
        ? queued(() => find.step(event.shiftKey ? -1 : 1))()
        : toggleFolds(navigation, windowing),
    raw: togglePanel("raw"),
    state: toggleState,
    context: togglePanel("context"),
    "left-panel": () => windowing.scrollAnchor.preserve(() => document.body.classList.toggle("no-side")),
    "right-panel": (event) => panel.reopenOrClose() || toggleState(event),
    "copy-link": (event) => copyText(session.linkTo((clickedItem(event) ?? navigation.current())?.id), "Link"),
    "copy-block": (event) => copyFirstBlock(clickedItem(event) ?? navigation.current()),
    "copy-markdown": (event) => copyMarkdown(session, clickedItem(event) ?? navigation.current()),
    close: () => find.close() || panel.close() || closeTimeline() || find.clearMarks(),
  };
}

/** Close the timeline below the bar at the top; false if it is not open. */
function closeTimeline() {
  const details = document.querySelector(".mini-head > details[open]");
  if (details === null) return false;
  details.open = false;
  return true;
}

/** The item whose button was clicked; null for a key, which applies to the current item. */
function clickedItem(event) {
  return event.type === "click" && event.target instanceof Element ? event.target.closest(".feed article") : null;
}

/** Expand or fold an item: toggle its first fold, and set all others to the same state. */
function toggleFolds(navigation, windowing) {
  const item = navigation.current();
  const details = item === null ? [] : Array.from(item.querySelectorAll("details"));
  const folds = details.filter((fold) => fold.closest("article") === item);
  if (folds.length === 0) return false;
  const isOpen = !folds[0].open;
  windowing.scrollAnchor.preserve(() => folds.forEach((fold) => windowing.foldState.set(fold, isOpen)));
  navigation.setCurrent(item);
  return true;
}

/** What can be copied of an item. */
const BLOCK = "pre:not(.numbers)";

/** Copy the code, command or output of an item: its first block that is visible. */
function copyFirstBlock(item) {
  const blocks = item === null ? [] : Array.from(item.querySelectorAll(BLOCK));
  const block = blocks.find((each) => each.checkVisibility()) ?? blocks[0];
  if (block === undefined) return false;
  copyBlock(block);
  return true;
}

function copyMarkdown(session, item) {
  if (item === null) return false;
  copyFromUrl(session.markdownUrl(item.id), "Markdown");
  return true;
}

/**
 * Toggle a URL parameter. The URL contains what is shown, so that Back and a copied link show the same.
 * @param {import("./session.js").Session} session
 * @param {string} name
 * @param {string} value
 * @param {Element|null} item the item to stay at; if the other view does not show it, the item before it
 */
async function toggleParameter(session, name, value, item) {
  const url = new URL(location.href);
  const query = url.searchParams;
  if (query.get(name) === value) query.delete(name);
  else query.set(name, value);
  loadView(url, await findAnchorInView(session, item, url.search));
}

/** The anchor of the item that another view shows in place of this item, or before it; null if it shows none. */
async function findAnchorInView(session, item, search) {
  const topItem = item?.closest(".section > article") ?? item;
  // At the start of the page, there is no place to keep.
  if (topItem === null || (scrollY === 0 && topItem.ariaPosInSet === "1")) return null;
  try {
    return (await fetchJson(session.positionUrl(topItem.id, search))).anchor ?? null;
  } catch (error) {
    if (error instanceof RequestError) return null;
    throw error;
  }
}

function nextBranch(session) {
  const count = Number(session.root.dataset.branches ?? 0);
  if (count === 0) {
    showStatus("This session has no branches.");
    return;
  }
  const url = new URL(location.href);
  const next = Number(url.searchParams.get("branch") ?? 0) + 1;
  // The links of the filters lead to the fork, and so does the server for further branches.
  const link = document.querySelector(`.filters a[data-branch="${next > count ? "" : next}"]`);
  if (link !== null) {
    location.assign(link.href);
    return;
  }
  url.searchParams.set("branch", String(next));
  loadView(url, null);
}

function loadView(url, anchor) {
  for (const name of ["at", "section", "mark"]) url.searchParams.delete(name);
  url.hash = "";
  if (anchor !== null) {
    url.searchParams.set("at", anchor);
    url.hash = anchor;
  }
  location.assign(url);
}

/**
 * Show one bar of buttons, which moves to the item that is under the pointer, tapped, or navigated to.
 *
 * A bar in each item would be thousands of elements. `data-action` names what a button does; it applies to the item
 * that contains the bar.
 * @param {HTMLElement} feed
 */
export function startItemButtons(feed) {
  const bar = document.getElementById("tools")?.content.firstElementChild?.cloneNode(true);
  if (!(bar instanceof HTMLElement)) return;
  const canHover = matchMedia("(hover: hover)");
  const show = (item) => {
    // A button that has the keyboard focus stays.
    if (item === null || bar.parentElement === item || bar.querySelector(":focus-visible") !== null) return;
    bar.querySelector("[data-action=copy-block]").hidden = item.querySelector(BLOCK) === null;
    item.append(bar);
  };
  const itemOf = (event) => (event.target instanceof Element ? event.target.closest("article") : null);
  const moveBar = (event) => {
    if (canHover.matches) show(itemOf(event));
  };
  // On a phone, the bar would cover the text that a link leads to. It appears with a tap, and disappears with the next.
  const toggleBar = (event) => {
    if (canHover.matches || event.target.closest("a, button, summary, input, label") !== null) return;
    const item = itemOf(event);
    if (item !== null && bar.parentElement === item) bar.remove();
    else show(item);
  };
  feed.addEventListener("pointerover", moveBar, { passive: true });
  feed.addEventListener("current", moveBar);
  feed.addEventListener("click", toggleBar);
}
