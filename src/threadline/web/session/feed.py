"""The feed of a conversation: sections around the requested place filled, the others as links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.model.text import count
from threadline.render.html import EMPTY, Section, el
from threadline.web.session.position import Position, first_section_of, part_of
from threadline.web.session_cache import AgentDrawing
from threadline.web.urls import SessionLinks

FILLED_SECTIONS = 3
"""How many sections a page is sent with: the one asked for, and its neighbours."""


class FeedWindow(Struct, frozen=True):
    """What of a feed a page begins with: the section asked for, those that are filled, and the part it is in."""

    section: int
    filled: range
    part: int


def feed_window(drawn: AgentDrawing, section: int | None, stand: Position | None, part: int | None) -> FeedWindow:
    """Where a page begins: at a section, an item, or a part's first section; else at the start.

    Raises:
        NotFound: there is no such section or part.
    """
    last = len(drawn.drawing.sections)
    if section is not None and not 1 <= section <= max(1, last):
        raise NotFound(f"There is no section {section}; this conversation has {last}.")
    if part is not None and not 1 <= part <= drawn.where.parts:
        raise NotFound(f"There is no part {part}; this conversation has {drawn.where.parts}.")
    begin = section or (stand.section if stand is not None else first_section_of(part) if part is not None else 1)
    here = part_of(begin)
    first, after = first_section_of(here), min(first_section_of(here + 1), last + 1)
    start = max(first, min(begin - 1, after - FILLED_SECTIONS))
    return FeedWindow(begin, range(start, min(start + FILLED_SECTIONS, after)), here)


def render_feed(drawn: AgentDrawing, seen: FeedWindow, links: SessionLinks, *, partial: bool = False) -> Markup:
    """The sections of a part, and the agents that stand apart.

    `partial`: of a beginning, those that are filled; their marks say that the whole may have them otherwise.
    """
    chosen = drawn.where.of_part(seen.part)
    if partial:
        chosen = tuple(replace(one, mark=f"beginning-{one.mark}") for one in chosen if one.number in seen.filled)
    parts = drawn.where.parts
    shown = [_render_section(drawn, one, links, is_filled=one.number in seen.filled) for one in chosen]
    is_last = seen.part == parts
    return el(
        "div",
        _part_link(links, seen.part - 1, "Earlier") if seen.part > 1 else EMPTY,
        shown or _empty_feed(links),
        drawn.drawing.apart() if is_last else EMPTY,
        EMPTY if is_last else _part_link(links, seen.part + 1, "Later"),
        class_="feed",
        role="feed",
        aria_label="Conversation",
    )


def _empty_feed(links: SessionLinks) -> Markup:
    if not links.query:
        return el("p", "There is nothing to show here.", class_="nothing")
    every = links.own(**dict.fromkeys(dict(links.query)))
    return el(
        "p", "Nothing here is of the kind that was asked for. ", el("a", "Show all", href=every), class_="nothing"
    )


def _part_link(links: SessionLinks, part: int, word: str) -> Markup:
    """The way to another part."""
    return el("p", el("a", f"{word}: part {part}", href=links.own(part=part)), class_="parts")


def _render_section(drawn: AgentDrawing, section: Section, links: SessionLinks, *, is_filled: bool) -> Markup:
    if is_filled:
        inside = drawn.drawing.articles(section)
    else:
        inside = el(
            "a", _section_label(section), href=f"{links.own(section=section.number)}#{section.first}", class_="unfilled"
        )
    return el(
        "section",
        inside,
        class_="section",
        id=f"s{section.number}",
        data_number=section.number,
        data_items=section.stop - section.start,
        data_elements=section.elements,
        data_height=section.height,
        data_turn=section.first_turn,
        data_mark=section.mark,
    )


def _section_label(section: Section) -> str:
    turn = f"turn {section.first_turn:,} · " if section.first_turn is not None else ""
    return f"{turn}{count(section.stop - section.start, 'entry', 'entries')} from {section.first}"


def feed_record(drawn: AgentDrawing) -> dict[str, Any]:
    """The sections as data: what a script needs to know of them, filled or not."""
    return {
        "items": len(drawn.drawing.items),
        "parts": drawn.where.parts,
        "sections": list(_section_records(drawn)),
    }


def _section_records(drawn: AgentDrawing) -> Iterator[dict[str, Any]]:
    for section in drawn.drawing.sections:
        yield {
            "number": section.number,
            "first": section.first,
            "items": section.stop - section.start,
            "elements": section.elements,
            "height": section.height,
            "turn": section.first_turn,
            "mark": section.mark,
            "part": part_of(section.number),
        }
