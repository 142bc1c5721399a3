"""The page of a session or of one of its agents; of a long session that is not read yet, its beginning."""

from __future__ import annotations

from urllib.parse import urlencode

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import NotFound
from threadline.load import read_beginning
from threadline.render import AgentDetail, View, agent_slug, shorten
from threadline.render.html import EMPTY, ConversationRenderer, Scene, Value, el, facts_row, icon, join
from threadline.web import urls
from threadline.web.request import Fragment, Page, PageRequest, PageResult, Redirect
from threadline.web.session.feed import FILLED_SECTIONS, FeedWindow, feed_record, feed_window, render_feed
from threadline.web.session.head import Head, build_head, head_record, render_head
from threadline.web.session.position import Position, PositionIndex
from threadline.web.session.side import recent_sessions, render_filters, render_side, turn_rows
from threadline.web.session.usage import render_usage_strip
from threadline.web.session.view import SessionView, branch_note, parse_view, resolve_anchor
from threadline.web.session_cache import AgentDrawing, CachedSession
from threadline.web.urls import SessionLinks, entry_anchor, escape_segment

_MAX_QUICK_BYTES = 4 * 1024 * 1024
"""Bytes up to which a session's kin are looked for without being asked: more may take longer than the page."""


class OpenedSession(Struct, frozen=True):
    """A session as a request wants to see it."""

    kept: CachedSession
    seen: SessionView
    drawn: AgentDrawing


def open_session(asked: PageRequest) -> OpenedSession:
    """The session that a request names, drawn as it wants it.

    Raises:
        NotFound: there is no such session, agent or branch.
        BadQuery: it says nothing sensible.
    """
    kept = asked.session_cache.session(asked.named["session"], asked.archive)
    seen = parse_view(asked, kept)
    return OpenedSession(kept, seen, kept.drawn(seen.agent, seen.view, seen.links, asked.archive, asked.zone()))


def session_page(asked: PageRequest) -> PageResult:
    """The page; of a long session that has yet to be read, its beginning, unless `whole` says to wait."""
    if not asked.flag("whole") and not asked.wants_data and (first := session_preview(asked)) is not None:
        return first
    if (alone := _redirect_to_lone_agent(asked)) is not None:
        return alone
    here = open_session(asked)
    kept, seen, drawn = here.kept, here.seen, here.drawn
    at = asked.text("at")
    stand = resolve_anchor(kept, seen, drawn, at) if at is not None else None
    if isinstance(stand, Redirect):
        return _with_find(stand, asked)
    if stand is not None and at is not None and stand.anchor != at and not stand.near:
        return Redirect(seen.links.own(at=stand.anchor, find=asked.text("find"), side=asked.text("side")))
    shown = feed_window(drawn, asked.optional_number("section", least=1), stand, asked.optional_number("part", least=1))
    agent = kept.agent(seen.agent)
    around = asked.optional_number("turn") or _first_turn(drawn, shown, stand)
    told = _build_surroundings(asked, here, shown.part, around)
    body = el("div", told.side, render_feed(drawn, shown, seen.links), told.along, class_="session")
    return Page(
        title=told.known.title,
        kind="session" if seen.agent is None else "agent",
        main=join((told.head, told.filters, told.left, _panel_links(asked, kept), body)),
        data=lambda: {**head_record(told.known), **feed_record(drawn), "turns_of": list(turn_rows(agent))},
        attributes=_main_attributes(here, shown.part),
        after=ENTRY_TOOLS,
    )


def _with_find(stand: Redirect, asked: PageRequest) -> Redirect:
    """The same place, with what is to be found in it."""
    path, mark, anchor = stand.address.partition("#")
    words = asked.text("find")
    more = f"{'&' if '?' in path else '?'}{urlencode({'find': words}, errors='replace')}" if words else ""
    return Redirect(f"{path}{more}{mark}{anchor}", stand.branch)


def session_surroundings(asked: PageRequest) -> PageResult:
    """All of a session's page but the conversation: what a page that is open brings up to date as the session grows."""
    here = open_session(asked)
    part = min(asked.number("part", 1, least=1), here.drawn.where.parts)
    told = _build_surroundings(asked, here, part, asked.number("turn", 0))
    main = el(
        "div",
        told.head,
        told.filters,
        told.left,
        told.side,
        told.along,
        data_about=True,
        **_main_attributes(here, part),
    )
    return Fragment(told.known.title, "about", main, head_record(told.known), is_bare=True)


class _Surroundings(Struct, frozen=True):
    """What stands around the conversation."""

    known: Head
    head: Markup
    filters: Markup
    left: Markup
    side: Markup
    along: Markup


def _build_surroundings(asked: PageRequest, here: OpenedSession, part: int, turn: int) -> _Surroundings:
    kept, seen, archive, zone = here.kept, here.seen, asked.archive, asked.zone()
    agent = kept.agent(seen.agent)
    known = build_head(kept, agent, seen.links, archive, related=_is_quick(kept), zone=zone)
    is_listed = asked.choice("side", ("turns", "sessions"), "turns") == "sessions"
    recent = recent_sessions(archive, kept.id, zone) if is_listed else None
    return _Surroundings(
        known,
        render_head(known),
        render_filters(kept.session, agent, seen),
        branch_note(agent, seen),
        render_side(kept, agent, seen.links, turn, recent),
        render_usage_strip(kept, seen, here.drawn, archive, part),
    )


def _main_attributes(here: OpenedSession, part: int) -> dict[str, Value]:
    """What scripts have to know of the page."""
    kept, seen, drawn = here.kept, here.seen, here.drawn
    return {
        "data_session": urls.escape_segment(kept.id),
        "data_agent": seen.agent,
        "data_version": kept.version,
        "data_branches": len(kept.agent(seen.agent).branches),
        "data_branch": seen.view.branch,
        "data_items": len(drawn.drawing.items),
        "data_parts": drawn.where.parts,
        "data_part": part,
    }


def _panel_links(asked: PageRequest, kept: CachedSession) -> Markup:
    """Where what the panel would show can be seen without a script."""
    links = SessionLinks(kept.id, agents=kept.agents)
    raw, state = asked.text("raw"), asked.text("state")
    shown = [("Entry", raw, links.raw(raw))] if raw else []
    shown += [("State at", state, links.state(state))] if state else []
    ways = [el("a", f"{what} {shorten(at, 40)}", href=there) for what, at, there in shown]
    return el("noscript", el("p", ways, class_="ways")) if ways else EMPTY


def _redirect_to_lone_agent(asked: PageRequest) -> Redirect | None:
    """Where an agent is shown that names this session and does not lie with it: on its own."""
    name = asked.named.get("agent")
    if name is None or name in asked.session_cache.session(asked.named["session"], asked.archive).agents:
        return None
    listed = (each.agent for home in asked.archive.found for each in home.transcripts)
    found = next((agent for agent in listed if agent is not None and agent_slug(agent) == name), None)
    at = asked.text("at")
    line = at.removeprefix(f"{name}.") if at is not None else None
    return Redirect(urls.session_url(f"agent-{found}", at=line)) if found is not None else None


def _first_turn(drawn: AgentDrawing, shown: FeedWindow, stand: Position | None) -> int:
    """The turn that the page begins at."""
    if stand is not None:
        found = next((item.turn for item in drawn.drawing.items if item.anchor == stand.anchor), None)
        if found is not None:
            return found
    sections = drawn.drawing.sections
    return (sections[shown.section - 1].first_turn or 0) if sections else 0


def _is_quick(kept: CachedSession) -> bool:
    """Whether looking for what the session continues takes no time worth a word."""
    if kept.size > _MAX_QUICK_BYTES:
        return False
    try:
        return sum(1 for _ in kept.path.parent.glob("*.jsonl")) <= 60  # noqa: PLR2004 - files, a millisecond each
    except OSError:
        return False


def require_anchor(text: str | None) -> str:
    """An anchor that was asked for.

    Raises:
        NotFound: there is none.
    """
    if text is None:
        raise NotFound("Name an entry: anchor=L120.")
    return entry_anchor(text)


LONG_BYTES = 6 * 1024 * 1024
"""Bytes of a main transcript that are read in a moment."""
_PREVIEW_BYTES, _PREVIEW_ENTRIES = 1024 * 1024, 1000
_IGNORED_PARAMETERS = frozenset({"find", "tz", "raw", "state"})


def session_preview(asked: PageRequest) -> Page | None:
    """The beginning of a session that is long and not yet read; None where the whole is at hand, or more is wanted.

    Whatever asks for a place or for less than everything has to wait: only the whole tells.
    """
    if "agent" in asked.named or any(name not in _IGNORED_PARAMETERS for name, value in asked.query if value):
        return None
    place = asked.session_cache.unread(asked.named["session"], asked.archive, LONG_BYTES)
    if place is None:
        return None
    session = read_beginning(place.path, most=_PREVIEW_BYTES, many=_PREVIEW_ENTRIES)
    # Agents were not read, and to say that none was kept would be wrong.
    links = SessionLinks(place.id)
    kept = CachedSession(place.id, session, "", 0)
    scene = Scene(View(agents=AgentDetail.NONE), links, cwd=kept.facts.project or "", zone=asked.zone())
    drawing = ConversationRenderer(session, session.main, scene)
    if not drawing.sections:
        return None
    drawn = AgentDrawing(drawing, PositionIndex(drawing))
    asked.session_cache.begin(place)
    title = shorten(asked.archive.titles([place.id]).get(place.id) or session.title.text, 200) or "(no title)"
    whole = links.page(whole=True)
    facts = (kept.facts.project, scene.told(kept.facts.started) if kept.facts.started else None)
    head = el(
        "header",
        el("h1", title),
        facts_row(shorten(fact, 120) for fact in facts if fact),
        el("p", "The rest of this session is being read. ", el("a", "Wait for it", href=whole), class_="reading"),
        class_="head",
    )
    seen = FeedWindow(1, range(1, FILLED_SECTIONS + 1), 1)
    body = el(
        "div",
        render_side(kept, session.main, links, 0, None),
        render_feed(drawn, seen, links, partial=True),
        el("nav", EMPTY, class_="along", aria_label="Map of the conversation"),
        class_="session",
    )
    return Page(
        title=title,
        kind="session",
        main=join((head, body)),
        after=ENTRY_TOOLS,
        attributes={"data_session": escape_segment(place.id), "data_partial": "1", "data_version": ""},
    )


_ENTRY_ACTIONS = (
    ("link", "copy-link", "Copy a link to this entry (y)"),
    ("raw", "raw", "JSON of this entry (r)"),
    ("state", "state", "Files and lists as they stood here (s)"),
    ("markdown", "copy-markdown", "Copy this entry as Markdown (m)"),
)
# Icons without words: what is found in an item would be found in its buttons, too.
ENTRY_TOOLS = el(
    "template",
    el(
        "div",
        *(
            el("button", icon(drawn), type="button", data_deed=deed, title=said, aria_label=said)
            for drawn, deed, said in _ENTRY_ACTIONS
        ),
        class_="tools-of",
        role="group",
        aria_label="This entry",
    ),
    id="tools",
)
"""What can be done with an entry; a script puts it into the one that is pointed at."""
