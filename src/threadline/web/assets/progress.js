// Shows the progress of work that a page waits for, and the page itself at the end.

import { fetchJson } from "./fetch.js";

const POLL_MS = 1000;

function start() {
  const bar = document.querySelector("progress[data-poll]");
  if (bar !== null) setTimeout(() => poll(bar), POLL_MS);
}

async function poll(bar) {
  let progress = null;
  try {
    progress = await fetchJson(bar.dataset.poll);
  } catch {
    // The server may be busy or away; the link beside the bar still works.
  }
  if (progress?.state === "done") {
    location.replace(bar.dataset.done);
    return;
  }
  if (progress !== null && progress.total > 0) {
    bar.max = progress.total;
    bar.value = progress.done;
  }
  setTimeout(() => poll(bar), POLL_MS);
}

start();
