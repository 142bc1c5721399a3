"""The session's page, and those of its agents."""

from __future__ import annotations

from msgspec import Struct

from threadline.errors import NotFound
from threadline.render.html.anchor import named
from threadline.render.html.element import el, join
from threadline.web import addresses
from threadline.web.asked import Asked
from threadline.web.kept import Drawn, Kept
from threadline.web.linked import entry_of
from threadline.web.page import Elsewhere, Made, Page
from threadline.web.session_along import along_of
from threadline.web.session_feed import Sight, feed, shape, sight
from threadline.web.session_filters import filters
from threadline.web.session_glimpse import glimpse
from threadline.web.session_head import head, head_data, head_of
from threadline.web.session_side import recent_sessions, side, turn_rows
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
        return stand
    if stand is not None and at is not None and stand.anchor != at and not stand.near:
        return Elsewhere(seen.links.own(at=stand.anchor, find=asked.text("find"), side=asked.text("side")))
    shown = sight(drawn, asked.maybe_number("section", least=1), stand, asked.maybe_number("part", least=1))
    agent = kept.agent(seen.agent)
    known = head_of(kept, agent, seen.links, asked.archive, related=_is_quick(kept), zone=asked.zone())
    recent = (
        recent_sessions(asked.archive, kept.id, asked.zone())
        if asked.choice("side", ("turns", "sessions"), "turns") == "sessions"
        else None
    )
    around = asked.maybe_number("turn") or _turn(drawn, shown, stand)
    main = join(
        (
            head(known),
            filters(kept.session, agent, seen),
            el(
                "div",
                side(kept, agent, seen.links, around, recent),
                feed(drawn, shown, seen.links),
                along_of(kept, seen, drawn, asked.archive, shown.part),
                class_="session",
            ),
        )
    )
    return Page(
        title=known.title,
        kind="session" if seen.agent is None else "agent",
        main=main,
        data=lambda: {**head_data(known), **shape(drawn), "turns_of": list(turn_rows(agent))},
        attributes={
            "data_session": addresses.escaped(kept.id),
            "data_agent": seen.agent,
            "data_version": kept.version,
            "data_branches": len(agent.branches),
            "data_branch": seen.view.branch,
            "data_items": len(drawn.drawing.items),
            "data_parts": drawn.where.parts,
            "data_part": shown.part,
        },
    )


def _alone(asked: Asked) -> Elsewhere | None:
    """Where an agent is shown that names this session and does not lie with it: on its own."""
    name = asked.named.get("agent")
    if name is None or name in asked.shelf.session(asked.named["session"], asked.archive).agents:
        return None
    every = (one.agent for home in asked.archive.found for one in home.transcripts if one.agent is not None)
    found = next((agent for agent in every if named(agent) == name), None)
    at = asked.text("at")
    line = at.removeprefix(f"{name}.") if at is not None else None
    return Elsewhere(addresses.session(f"agent-{found}", at=line)) if found is not None else None


def _turn(drawn: Drawn, shown: Sight, stand: Stand | None) -> int:
    """The turn that the page begins at."""
    if stand is not None:
        found = next((one.turn for one in drawn.drawing.items if one.anchor == stand.anchor), None)
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
