// Shows the progress of the check on the doctor page, and its result at the end.

import { fetchJson, withCarriedParameters } from "./fetch.js";

const POLL_MS = 1000;

function start() {
  const bar = document.querySelector(".progress progress");
  if (bar !== null) setTimeout(() => poll(bar), POLL_MS);
}

async function poll(bar) {
  let progress = null;
  try {
    progress = await fetchJson("/doctor.json");
  } catch {
    // The server may be busy or away; the link beside the bar still works.
  }
  if (progress?.state === "done") {
    location.replace(withCarriedParameters("/doctor"));
    return;
  }
  if (progress !== null && progress.total > 0) {
    bar.max = progress.total;
    bar.value = progress.done;
  }
  setTimeout(() => poll(bar), POLL_MS);
}

start();
