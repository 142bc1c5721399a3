// Entry point of every page: starts what the kind of page needs.

import { About } from "./surroundings.js";
import { startCopying } from "./copy.js";
import { pageDeeds, sessionDeeds } from "./actions.js";
import { feedKeys } from "./feed_keys.js";
import { Find } from "./find.js";
import { Folds } from "./folds.js";
import { here, listen, obey, table } from "./keys.js";
import { Live, watchList } from "./live.js";
import { ScrollMap } from "./scroll_strip.js";
import { Panel } from "./panel.js";
import { Place } from "./history.js";
import { Session } from "./session.js";
import { startStatus } from "./status.js";
import { followTheme } from "./theme.js";
import { startTools } from "./entry_tools.js";
import { Travel } from "./navigation.js";
import { Turns } from "./turns.js";
import { Windowing } from "./windowing.js";

/** Lists that say when they are out of date. */
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

/** Restore the place, or go to that in the URL. In a preview, what needs the whole session waits for it. */
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
