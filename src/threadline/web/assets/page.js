// Page: what every page starts with; it finds out by itself what it is.

import { About } from "./about.js";
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
import { startTools } from "./tools.js";
import { Travel } from "./travel.js";
import { Turns } from "./turns.js";
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
  const panel = new Panel(session, windowing);
  const about = new About(session, windowing);
  windowing.start();
  const live = new Live(session, travel, windowing, about);
  const place = new Place(travel, windowing);
  place.start();
  arrive(session, windowing, travel, { live, place, find, panel, about });
  const deeds = sessionDeeds({ session, travel, windowing, find, panel });
  feedKeys(session.feed, deeds);
  startTools(session.feed);
  return deeds;
}

/** Go where one was or wants to be. Where only the beginning is there, whatever is about the whole waits for it. */
async function arrive(session, windowing, travel, { live, place, find, panel, about }) {
  const wasPartial = session.isPartial;
  if (wasPartial) {
    session.whole = live.changed().finally(() => delete session.root.dataset.partial);
    await session.whole;
  }
  panel.start();
  place.begin();
  find.start();
  live.start();
  if (wasPartial) await about.whole();
  const side = document.querySelector(".side");
  if (side !== null) (about.turns = new Turns(side, session, windowing)).start();
  const strip = document.querySelector(".along");
  if (strip !== null) (about.map = new ScrollMap(strip, windowing, travel)).start();
}

start();
