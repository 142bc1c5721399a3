"""The feed: the sections of a conversation, those around the place asked for filled, the others as links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.render.figures import count
from threadline.render.html.element import EMPTY, el
from threadline.render.html.sections import Section
from threadline.web.kept import Drawn
from threadline.web.linked import Linked
from threadline.web.where import Stand, first_of, part_of

FILLED = 3
"""How many sections a page is sent with: the one asked for, and its neighbours."""


class Sight(Struct, frozen=True):
    """What of a feed a page begins with: the section asked for, those that are filled, and the part it is in."""

    section: int
    filled: range
    part: int


def sight(drawn: Drawn, section: int | None, stand: Stand | None, part: int | None) -> Sight:
    """Where a page begins: at a section, an item, or a part's first section; else at the start.

    Raises:
        NotFound: there is no such section or part.
    """
    last = len(drawn.drawing.sections)
    if section is not None and not 1 <= section <= max(1, last):
        raise NotFound(f"There is no section {section}; this conversation has {last}.")
    if part is not None and not 1 <= part <= drawn.where.parts:
        raise NotFound(f"There is no part {part}; this conversation has {drawn.where.parts}.")
    begin = section or (stand.section if stand is not None else first_of(part) if part is not None else 1)
    here = part_of(begin)
    first, after = first_of(here), min(first_of(here + 1), last + 1)
    start = max(first, min(begin - 1, after - FILLED))
    return Sight(begin, range(start, min(start + FILLED, after)), here)


def feed(drawn: Drawn, seen: Sight, links: Linked, *, partial: bool = False) -> Markup:
    """The sections of a part, and the agents that stand apart.

    `partial`: of a beginning, those that are filled; their marks say that the whole may have them otherwise.
    """
    chosen = drawn.where.of_part(seen.part)
    if partial:
        chosen = tuple(replace(one, mark=f"beginning-{one.mark}") for one in chosen if one.number in seen.filled)
    parts = drawn.where.parts
    shown = [_section(drawn, one, links, is_filled=one.number in seen.filled) for one in chosen]
    is_last = seen.part == parts
    return el(
        "div",
        _way(links, seen.part - 1, "Earlier") if seen.part > 1 else EMPTY,
        shown or _nothing(links),
        drawn.drawing.apart() if is_last else EMPTY,
        EMPTY if is_last else _way(links, seen.part + 1, "Later"),
        class_="feed",
        role="feed",
        aria_label="Conversation",
    )


def _nothing(links: Linked) -> Markup:
    if not links.query:
        return el("p", "There is nothing to show here.", class_="nothing")
    every = links.own(**dict.fromkeys(dict(links.query)))
    return el(
        "p", "Nothing here is of the kind that was asked for. ", el("a", "Show all", href=every), class_="nothing"
    )


def _way(links: Linked, part: int, word: str) -> Markup:
    """The way to another part."""
    return el("p", el("a", f"{word}: part {part}", href=links.own(part=part)), class_="parts")


def _section(drawn: Drawn, one: Section, links: Linked, *, is_filled: bool) -> Markup:
    if is_filled:
        inside = drawn.drawing.articles(one)
    else:
        inside = el("a", _said(one), href=f"{links.own(section=one.number)}#{one.first}", class_="unfilled")
    return el(
        "section",
        inside,
        class_="section",
        id=f"s{one.number}",
        data_number=one.number,
        data_items=one.stop - one.start,
        data_elements=one.elements,
        data_height=one.height,
        data_turn=one.first_turn,
        data_mark=one.mark,
    )


def _said(one: Section) -> str:
    turn = f"turn {one.first_turn:,} · " if one.first_turn is not None else ""
    return f"{turn}{count(one.stop - one.start, 'entry', 'entries')} from {one.first}"


def shape(drawn: Drawn) -> dict[str, Any]:
    """The sections as data: what a script needs to know of them, filled or not."""
    return {
        "items": len(drawn.drawing.items),
        "parts": drawn.where.parts,
        "sections": list(_shapes(drawn)),
    }


def _shapes(drawn: Drawn) -> Iterator[dict[str, Any]]:
    for one in drawn.drawing.sections:
        yield {
            "number": one.number,
            "first": one.first,
            "items": one.stop - one.start,
            "elements": one.elements,
            "height": one.height,
            "turn": one.first_turn,
            "mark": one.mark,
            "part": part_of(one.number),
        }
