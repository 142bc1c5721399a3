// Page: what every page starts with; it finds out by itself what it is.

import { startCopying } from "./copy.js";
import { pageDeeds, sessionDeeds } from "./deeds.js";
import { feedKeys } from "./feed.js";
import { Find } from "./find.js";
import { Folds } from "./folds.js";
import { here, listen, obey, table } from "./keys.js";
import { Live, watchList } from "./live.js";
import { ScrollMap } from "./map.js";
import { Panel } from "./panel.js";
import { Place } from "./place.js";
import { Session } from "./session.js";
import { startStatus } from "./status.js";
import { followTheme } from "./theme.js";
import { Travel } from "./travel.js";
import { Turns } from "./turns.js";
import { isPartial, tellWhole } from "./whole.js";
import { Windowing } from "./window.js";

/** Lists that say when they are not current any more. */
const LISTS = ["home", "sessions"];

function start() {
  const keys = here(table());
  const deeds = pageDeeds(keys);
  const session = Session.here();
  if (session !== null) Object.assign(deeds, startSession(session));
  listen(keys, deeds);
  obey(deeds);
  startStatus();
  startCopying();
  followTheme();
  if (LISTS.some((kind) => document.body.classList.contains(kind))) watchList();
}

function startSession(session) {
  const windowing = new Windowing(session, new Folds(session.feed));
  const travel = new Travel(session, windowing);
  const find = new Find(session, travel, windowing);
  const panel = new Panel(windowing);
  windowing.start();
  const live = new Live(session, travel, windowing);
  const place = new Place(travel, windowing);
  place.start();
  arrive(session, windowing, travel, { live, place, find });
  const deeds = sessionDeeds({ session, travel, windowing, find, panel });
  feedKeys(session.feed, deeds);
  return deeds;
}

/** Go where one was or wants to be. Where only the beginning is there, whatever is about the whole waits for it. */
async function arrive(session, windowing, travel, { live, place, find }) {
  const wasPartial = isPartial(session);
  if (wasPartial) {
    session.whole = live.changed().finally(() => delete session.root.dataset.partial);
    await session.whole;
  }
  place.begin();
  find.start();
  live.start();
  if (wasPartial) await tellWhole(session, windowing);
  const side = document.querySelector(".side");
  if (side !== null) new Turns(side, session, windowing).start();
  const strip = document.querySelector(".along");
  if (strip !== null) new ScrollMap(strip, windowing, travel).start();
}

start();
