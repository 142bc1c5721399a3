"""Along: how full the window was and what was spent along a conversation, as a strip that is also its map.

Its height is counted in items, top to bottom as they stand in the page. Each band is as wide as the window was full,
the darker the more was spent there, and leads to its first item.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from markupsafe import Markup
from msgspec import Struct

from threadline.render.figures import count
from threadline.render.html.element import EMPTY, el

MOST = 40
"""Bands at most: each is three elements."""
WIDTH = 28
_LEVELS = 4
_SHOWN = 2000


class Band(Struct, frozen=True):
    """A run of items: where it begins and ends, how many tokens the window held at most, and what was spent.

    None where nothing tells it. `turn` is the one that it begins in, `address` leads to its first item.
    """

    start: int
    stop: int
    address: str
    context: int | None = None
    amount: Decimal | None = None
    turn: int | None = None


class Marks(Struct, frozen=True):
    """Items that stand out, by their places."""

    prompts: Sequence[int] = ()
    failures: Sequence[int] = ()
    compactions: Sequence[int] = ()


def along(bands: Sequence[Band], marks: Marks, *, limit: int | None, twin: str | None = None) -> Markup:
    """The strip. `limit` is how many tokens a window may hold, `twin` where the same is told in a table."""
    if not bands:
        return EMPTY
    start, stop = bands[0].start, bands[-1].stop
    fullest = max((one.context or 0 for one in bands), default=0)
    most = max((one.amount or Decimal(0) for one in bands), default=Decimal(0))
    scale = max(limit or 0, fullest, 1)
    drawn = [_band(one, scale, most) for one in bands]
    told = (
        f"Context and cost along {count(stop - start, 'entry', 'entries')}: at most {fullest:,} tokens in the window."
    )
    strip = el(
        "svg",
        el("title", told, id="along-title"),
        *drawn,
        _ticks(marks.prompts, "prompts", 5),
        _ticks(marks.compactions, "compactions", WIDTH),
        _ticks(marks.failures, "failures", 9, right=True),
        el("rect", class_="here", x=0, y=start, width=WIDTH, height=0),
        viewBox=f"0 {start} {WIDTH} {max(1, stop - start)}",
        preserveAspectRatio="none",
        role="group",
        aria_labelledby="along-title",
        data_items=stop - start,
    )
    table = el("a", "table", href=twin, class_="twin") if twin is not None else EMPTY
    return el("nav", strip, table, class_="along", aria_label="Map of the conversation")


def _band(one: Band, scale: int, most: Decimal) -> Markup:
    width = round(WIDTH * (one.context or 0) / scale, 1)
    shape = el(
        "rect",
        el("title", told(one)),
        x=0,
        y=one.start,
        width=max(width, 1),
        height=one.stop - one.start,
        class_=f"band level-{_level(one.amount, most)}",
    )
    return el("a", shape, href=one.address, tabindex=-1)


def told(one: Band) -> str:
    """A band in words."""
    turn = f"turn {one.turn:,}" if one.turn is not None else "the start"
    context = f"{one.context:,} tokens in the window" if one.context is not None else "size of the window not told"
    amount = f", ${one.amount:.2f}" if one.amount is not None else ""
    return f"{turn}: {context}{amount}"


def _level(amount: Decimal | None, most: Decimal) -> int:
    if not amount or not most:
        return 0
    return 1 + min(_LEVELS - 1, int(_LEVELS * amount / most))


def _ticks(places: Sequence[int], kind: str, length: int, *, right: bool = False) -> Markup:
    """Short lines across, all in one path; of very many, as many as can be told apart."""
    if not places:
        return EMPTY
    step = len(places) // _SHOWN + 1
    x = WIDTH - length if right else 0
    path = "".join(f"M{x} {at + 0.5}h{length}" for at in places[::step])
    return el("path", d=path, class_=f"tick {kind}", vector_effect="non-scaling-stroke", aria_hidden="true")
