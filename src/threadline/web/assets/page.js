// Entry point of every page: starts what the kind of page needs.

import { pageActions, sessionActions, startItemButtons } from "./actions.js";
import { startBlockButtons, startCopyButtons } from "./copy.js";
import { Find } from "./find.js";
import { FoldState } from "./fold_state.js";
import { ScrollHistory } from "./history.js";
import { handleClicks, handleFeedKeys, handleKeys, readShortcuts } from "./keys.js";
import { startLazyDetails } from "./lazy_details.js";
import { Live } from "./live.js";
import { MiniHead } from "./mini_head.js";
import { ItemNavigation } from "./navigation.js";
import { Panel } from "./panel.js";
import { prepareLinks, prepareShare } from "./prepare.js";
import { ScrollStrip } from "./scroll_strip.js";
import { Session } from "./session.js";
import { SessionFrame } from "./session_frame.js";
import { startStatus } from "./status.js";
import { followTheme } from "./theme.js";
import { TurnList } from "./turn_list.js";
import { Windowing } from "./windowing.js";

function start() {
  const shortcuts = readShortcuts();
  const actions = pageActions(shortcuts);
  const session = Session.fromPage();
  if (session !== null) Object.assign(actions, startSession(session));
  else startLazyDetails();
  handleKeys(shortcuts, actions);
  handleClicks(actions);
  startStatus();
  startCopyButtons();
  startBlockButtons();
  followTheme();
  prepareLinks();
  document.addEventListener("change", (event) => event.target.closest("form.choose")?.requestSubmit());
}

function startSession(session) {
  const windowing = new Windowing(session, new FoldState(session.feed));
  const navigation = new ItemNavigation(session, windowing);
  const find = new Find(session, navigation, windowing);
  const panel = new Panel(session, windowing);
  const frame = new SessionFrame(session, windowing);
  windowing.start();
  const live = new Live(session, navigation, windowing, frame);
  const scrollHistory = new ScrollHistory(navigation, windowing);
  scrollHistory.start();
  showSession(session, windowing, navigation, { live, scrollHistory, find, panel, frame });
  const actions = sessionActions({ session, navigation, windowing, find, panel });
  handleFeedKeys(session.feed, actions);
  startItemButtons(session.feed);
  startLazyDetails(windowing);
  prepareShare(session);
  return actions;
}

/** Restore the scroll position, or go to the item in the URL. What needs the whole session waits until it is loaded. */
async function showSession(session, windowing, navigation, { live, scrollHistory, find, panel, frame }) {
  const wasPreview = session.isPreview;
  if (wasPreview) {
    session.loaded = live.update().finally(() => delete session.root.dataset.partial);
    await session.loaded;
  }
  panel.start();
  const arrival = Promise.resolve(scrollHistory.restore());
  find.start(arrival);
  live.start();
  if (wasPreview) await frame.complete();
  const side = document.querySelector(".side");
  if (side !== null) (frame.turnList = new TurnList(side, session, windowing)).start();
  const bar = document.querySelector(".mini-head");
  if (bar !== null) (frame.miniHead = new MiniHead(bar, session, windowing)).start();
  const strip = document.querySelector(".usage-strip");
  if (strip === null) return;
  const scrollStrip = new ScrollStrip(strip, windowing, navigation);
  frame.scrollStrip = scrollStrip;
  scrollStrip.start();
  const markMatches = () => scrollStrip.setMatches(find.hits.map((hit) => hit.position));
  find.addEventListener("matches", markMatches);
  markMatches();
}

start();
