// Whole: a very long session is sent from its beginning at once; what the server did not know yet is put in later.

import { askText, isAborted, Refused } from "./asking.js";

/** What stands beside the feed and is about all of the session, each in its place. */
const ABOUT = ["header.head", "nav.filters", ".side", ".along"];

/** Whether the page shows only the beginning yet. */
export function isPartial(session) {
  return session.root.dataset.partial !== undefined;
}

/**
 * Put in what is told about all of the session, once all of its sections are there.
 * @param {import("./session.js").Session} session
 * @param {import("./window.js").Windowing} windowing
 */
export async function tellWhole(session, windowing) {
  const address = new URL(location.href);
  address.searchParams.set("whole", "1");
  address.hash = "";
  try {
    const page = document.createElement("template");
    page.innerHTML = await askText(address.href);
    const main = page.content.querySelector("main");
    if (main !== null) windowing.hold.keep(() => takeOver(session.root, main));
  } catch (error) {
    if (!(error instanceof Refused) && !isAborted(error)) throw error;
  }
}

function takeOver(root, main) {
  Object.assign(root.dataset, main.dataset);
  let last = null;
  for (const name of ABOUT) {
    const there = main.querySelector(name);
    if (there === null) continue;
    const here = root.querySelector(name);
    if (here !== null) here.replaceWith(there);
    else if (last !== null) last.after(there);
    last = there;
  }
}
