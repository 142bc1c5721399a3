// What keys and buttons do, by the action names in the table of keys.

import { askData, isAborted, Refused } from "./fetching.js";
import { along } from "./carried.js";
import { copy, copyFrom } from "./copy.js";
import { showHelp } from "./help.js";
import { openPalette } from "./palette.js";
import { openRow, stepRow } from "./rows.js";
import { say } from "./status.js";
import { nextTheme } from "./theme.js";

/** Actions of every page. */
export function pageDeeds(keys) {
  const go = (path) => () => location.assign(along(path));
  return {
    "next-item": () => stepRow(1),
    "previous-item": () => stepRow(-1),
    fold: () => openRow(),
    start: () => scrollTo({ top: 0, behavior: "instant" }),
    end: () => scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" }),
    find: () => focusSearch(),
    "copy-link": () => copy(location.href, "Link"),
    palette: () => openPalette(),
    home: go("/"),
    sessions: go("/sessions"),
    usage: go("/usage"),
    theme: () => nextTheme(),
    help: () => showHelp(keys),
    close: () => false,
  };
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
 * @param {{session: import("./session.js").Session, travel: import("./navigation.js").Travel,
 *   windowing: import("./windowing.js").Windowing, find: import("./find.js").Find,
 *   panel: import("./panel.js").Panel}} parts
 */
export function sessionDeeds({ session, travel, windowing, find, panel }) {
  // Steps run one after the other, however fast a key repeats.
  let steps = Promise.resolve();
  const step = (deed) => () => {
    steps = steps.then(deed).catch((error) => {
      // After a failed step, the next key must still work.
      if (error instanceof Refused) say(session.gone ?? "No response from the server.");
      else if (!isAborted(error)) reportError(error);
    });
  };
  const beside = (kind) => (event) => {
    const item = asked(event) ?? travel.current();
    if (item === null) return false;
    travel.mark(item);
    panel.toggle(kind, item.id);
    return true;
  };
  const state = beside("state");
  return {
    "next-item": step(() => travel.step(1)),
    "previous-item": step(() => travel.step(-1)),
    "next-turn": step(() => travel.turn(1)),
    "previous-turn": step(() => travel.turn(-1)),
    start: step(() => travel.toStart()),
    end: step(() => travel.toEnd()),
    find: () => find.open(),
    "next-find": step(() => find.step(1)),
    "previous-find": step(() => find.step(-1)),
    errors: step(() => turnOver(session, "errors", "1", travel.current())),
    focus: step(() => turnOver(session, "focus", "1", travel.current())),
    thinking: step(() => turnOver(session, "thinking", "full", travel.current())),
    calls: step(() => turnOver(session, "calls", "full", travel.current())),
    branches: () => nextBranch(session),
    fold: () => fold(travel, windowing),
    raw: beside("raw"),
    state,
    "left-panel": () => windowing.hold.keep(() => document.body.classList.toggle("no-side")),
    "right-panel": (event) => panel.flip() || state(event),
    "copy-link": (event) => copy(session.link((asked(event) ?? travel.current())?.id), "Link"),
    "copy-markdown": (event) => copyMarkdown(session, asked(event) ?? travel.current()),
    close: () => find.close() || panel.close(),
  };
}

/** The item of the button that was clicked; null for a key, which applies to the current item. */
function asked(event) {
  return event.type === "click" && event.target instanceof Element ? event.target.closest(".feed article") : null;
}

/** Expand or fold an item: toggle its first fold, and set all others to the same state. */
function fold(travel, windowing) {
  const item = travel.current();
  const folds = item === null ? [] : Array.from(item.querySelectorAll("details"));
  const own = folds.filter((one) => one.closest("article") === item);
  if (own.length === 0) return false;
  const isOpen = !own[0].open;
  windowing.hold.keep(() => own.forEach((one) => windowing.folds.set(one, isOpen)));
  travel.mark(item);
  return true;
}

function copyMarkdown(session, item) {
  if (item === null) return false;
  copyFrom(session.markdown(item.id), "Markdown");
  return true;
}

/**
 * Toggle a URL parameter. The URL contains what is shown, so that Back and a copied link show the same.
 * @param {import("./session.js").Session} session
 * @param {string} name
 * @param {string} value
 * @param {Element|null} item the place to keep; if it is not shown then, the item before it
 */
async function turnOver(session, name, value, item) {
  const address = new URL(location.href);
  const query = address.searchParams;
  const isOn = query.get(name) === value;
  if (isOn) query.delete(name);
  else query.set(name, value);
  begin(address, await nearest(session, item, address.search));
}

/** The anchor of the item that a page shows in place of another, or before it; null if it shows none. */
async function nearest(session, item, search) {
  const own = item?.closest(".section > article") ?? item;
  // At the start of the page, there is no place to keep.
  if (own === null || (scrollY === 0 && own.ariaPosInSet === "1")) return null;
  try {
    return (await askData(session.where(own.id, search))).anchor ?? null;
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function nextBranch(session) {
  const many = Number(session.root.dataset.branches ?? 0);
  if (many === 0) {
    say("This session has no branches.");
    return;
  }
  const address = new URL(location.href);
  const next = Number(address.searchParams.get("branch") ?? 0) + 1;
  if (next > many) address.searchParams.delete("branch");
  else address.searchParams.set("branch", String(next));
  begin(address, null);
}

function begin(address, anchor) {
  for (const name of ["at", "section"]) address.searchParams.delete(name);
  address.hash = "";
  if (anchor !== null) {
    address.searchParams.set("at", anchor);
    address.hash = anchor;
  }
  location.assign(address);
}
