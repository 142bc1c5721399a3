"""The session's page, and those of its agents."""

from __future__ import annotations

from urllib.parse import urlencode

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import NotFound
from threadline.render.html.anchor import named
from threadline.render.html.element import EMPTY, Value, el, join
from threadline.render.html.words import one
from threadline.web import addresses
from threadline.web.asked import Asked
from threadline.web.branching import left_note
from threadline.web.kept import Drawn, Kept
from threadline.web.linked import Linked, entry_of
from threadline.web.page import Elsewhere, Fragment, Made, Page
from threadline.web.session_along import along_of
from threadline.web.session_feed import Sight, feed, shape, sight
from threadline.web.session_filters import filters
from threadline.web.session_glimpse import glimpse
from threadline.web.session_head import Head, head, head_data, head_of
from threadline.web.session_side import recent_sessions, side, turn_rows
from threadline.web.session_tools import TOOLS
from threadline.web.standing import stand_of
from threadline.web.viewing import Viewing, viewing
from threadline.web.where import Stand

_FEW = 4 * 1024 * 1024
"""Bytes up to which a session's kin are looked for without being asked: more may take longer than the page."""


class Opened(Struct, frozen=True):
    """A session as a request wants to see it."""

    kept: Kept
    seen: Viewing
    drawn: Drawn


def opened(asked: Asked) -> Opened:
    """The session that a request names, drawn as it wants it.

    Raises:
        NotFound: there is no such session, agent or branch.
        BadQuery: it says nothing sensible.
    """
    kept = asked.shelf.session(asked.named["session"], asked.archive)
    seen = viewing(asked, kept)
    return Opened(kept, seen, kept.drawn(seen.agent, seen.view, seen.links, asked.archive, asked.zone()))


def session_page(asked: Asked) -> Made:
    """The page; of a long session that has yet to be read, its beginning, unless `whole` says to wait."""
    if not asked.flag("whole") and not asked.wants_data and (first := glimpse(asked)) is not None:
        return first
    if (alone := _alone(asked)) is not None:
        return alone
    here = opened(asked)
    kept, seen, drawn = here.kept, here.seen, here.drawn
    at = asked.text("at")
    stand = stand_of(kept, seen, drawn, at) if at is not None else None
    if isinstance(stand, Elsewhere):
        return _found_there(stand, asked)
    if stand is not None and at is not None and stand.anchor != at and not stand.near:
        return Elsewhere(seen.links.own(at=stand.anchor, find=asked.text("find"), side=asked.text("side")))
    shown = sight(drawn, asked.maybe_number("section", least=1), stand, asked.maybe_number("part", least=1))
    agent = kept.agent(seen.agent)
    around = asked.maybe_number("turn") or _turn(drawn, shown, stand)
    told = _told(asked, here, shown.part, around)
    body = el("div", told.side, feed(drawn, shown, seen.links), told.along, class_="session")
    return Page(
        title=told.known.title,
        kind="session" if seen.agent is None else "agent",
        main=join((told.head, told.filters, told.left, _beside(asked, kept), body)),
        data=lambda: {**head_data(told.known), **shape(drawn), "turns_of": list(turn_rows(agent))},
        attributes=_attributes(here, shown.part),
        after=TOOLS,
    )


def _found_there(stand: Elsewhere, asked: Asked) -> Elsewhere:
    """The same place, with what is to be found in it."""
    path, mark, anchor = stand.address.partition("#")
    words = asked.text("find")
    more = f"{'&' if '?' in path else '?'}{urlencode({'find': words}, errors='replace')}" if words else ""
    return Elsewhere(f"{path}{more}{mark}{anchor}", stand.branch)


def about(asked: Asked) -> Made:
    """All of a session's page but the conversation: what a page that is open brings up to date as the session grows."""
    here = opened(asked)
    part = min(asked.number("part", 1, least=1), here.drawn.where.parts)
    told = _told(asked, here, part, asked.number("turn", 0))
    main = el(
        "div", told.head, told.filters, told.left, told.side, told.along, data_about=True, **_attributes(here, part)
    )
    return Fragment(told.known.title, "about", main, head_data(told.known), is_bare=True)


class _About(Struct, frozen=True):
    """What stands around the conversation."""

    known: Head
    head: Markup
    filters: Markup
    left: Markup
    side: Markup
    along: Markup


def _told(asked: Asked, here: Opened, part: int, turn: int) -> _About:
    kept, seen, archive, zone = here.kept, here.seen, asked.archive, asked.zone()
    agent = kept.agent(seen.agent)
    known = head_of(kept, agent, seen.links, archive, related=_is_quick(kept), zone=zone)
    is_listed = asked.choice("side", ("turns", "sessions"), "turns") == "sessions"
    recent = recent_sessions(archive, kept.id, zone) if is_listed else None
    return _About(
        known,
        head(known),
        filters(kept.session, agent, seen),
        left_note(agent, seen),
        side(kept, agent, seen.links, turn, recent),
        along_of(kept, seen, here.drawn, archive, part),
    )


def _attributes(here: Opened, part: int) -> dict[str, Value]:
    """What scripts have to know of the page."""
    kept, seen, drawn = here.kept, here.seen, here.drawn
    return {
        "data_session": addresses.escaped(kept.id),
        "data_agent": seen.agent,
        "data_version": kept.version,
        "data_branches": len(kept.agent(seen.agent).branches),
        "data_branch": seen.view.branch,
        "data_items": len(drawn.drawing.items),
        "data_parts": drawn.where.parts,
        "data_part": part,
    }


def _beside(asked: Asked, kept: Kept) -> Markup:
    """Where what the panel would show can be seen without a script."""
    links = Linked(kept.id, agents=kept.agents)
    raw, state = asked.text("raw"), asked.text("state")
    shown = [("Entry", raw, links.raw(raw))] if raw else []
    shown += [("State at", state, links.state(state))] if state else []
    ways = [el("a", f"{what} {one(at, 40)}", href=there) for what, at, there in shown]
    return el("noscript", el("p", ways, class_="ways")) if ways else EMPTY


def _alone(asked: Asked) -> Elsewhere | None:
    """Where an agent is shown that names this session and does not lie with it: on its own."""
    name = asked.named.get("agent")
    if name is None or name in asked.shelf.session(asked.named["session"], asked.archive).agents:
        return None
    listed = (each.agent for home in asked.archive.found for each in home.transcripts)
    found = next((agent for agent in listed if agent is not None and named(agent) == name), None)
    at = asked.text("at")
    line = at.removeprefix(f"{name}.") if at is not None else None
    return Elsewhere(addresses.session(f"agent-{found}", at=line)) if found is not None else None


def _turn(drawn: Drawn, shown: Sight, stand: Stand | None) -> int:
    """The turn that the page begins at."""
    if stand is not None:
        found = next((item.turn for item in drawn.drawing.items if item.anchor == stand.anchor), None)
        if found is not None:
            return found
    sections = drawn.drawing.sections
    return (sections[shown.section - 1].first_turn or 0) if sections else 0


def _is_quick(kept: Kept) -> bool:
    """Whether looking for what the session continues takes no time worth a word."""
    if kept.size > _FEW:
        return False
    try:
        return sum(1 for _ in kept.path.parent.glob("*.jsonl")) <= 60  # noqa: PLR2004 - files, a millisecond each
    except OSError:
        return False


def anchored(text: str | None) -> str:
    """An anchor that was asked for.

    Raises:
        NotFound: there is none.
    """
    if text is None:
        raise NotFound("Name an entry: anchor=L120.")
    return entry_of(text)
