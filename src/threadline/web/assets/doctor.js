// Doctor: shows how far the reading has come, and what it found once it is done.

import { askData } from "./asking.js";
import { along } from "./carried.js";

const PAUSE = 1000;

function start() {
  const bar = document.querySelector(".progress progress");
  if (bar !== null) setTimeout(() => follow(bar), PAUSE);
}

async function follow(bar) {
  let told = null;
  try {
    told = await askData("/doctor.json");
  } catch {
    // The server may be busy or gone; the link beside the bar stays.
  }
  if (told?.state === "done") {
    location.replace(along("/doctor"));
    return;
  }
  if (told !== null && told.total > 0) {
    bar.max = told.total;
    bar.value = told.done;
  }
  setTimeout(() => follow(bar), PAUSE);
}

start();
