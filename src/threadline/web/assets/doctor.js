// Shows the progress of the check on the doctor page, and its result at the end.

import { askData } from "./fetching.js";
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
    // The server may be busy or away; the link beside the bar still works.
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
