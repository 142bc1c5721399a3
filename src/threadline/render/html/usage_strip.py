"""The strip beside a conversation that shows context size and cost, and works as a map of it.

Its vertical axis counts items, from top to bottom like the page. The width of a band shows how full the context window
was, and its shade how much was spent. A band links to its first item.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from markupsafe import Markup
from msgspec import Struct

from threadline.model.text import count
from threadline.render.html.element import EMPTY, el

MAX_BANDS = 40
"""The maximum number of bands, each of which has three elements."""
STRIP_WIDTH = 28
_LEVELS = 4
_MAX_TICKS = 2000


class UsageBand(Struct, frozen=True):
    """A run of items from `start` to before `stop`.

    `context` is the largest number of tokens in the context window and `amount` the cost; each is None if it is
    unknown. `turn` is the turn of the first item, and `address` its URL.
    """

    start: int
    stop: int
    address: str
    context: int | None = None
    amount: Decimal | None = None
    turn: int | None = None


class StripMarks(Struct, frozen=True):
    """Positions of items that are marked on the strip."""

    prompts: Sequence[int] = ()
    failures: Sequence[int] = ()
    compactions: Sequence[int] = ()


def draw_usage_strip(
    bands: Sequence[UsageBand], marks: StripMarks, *, limit: int | None, twin: str | None = None
) -> Markup:
    """Draw the strip. `limit` is the size of the context window, `twin` the URL of a table with the same data."""
    if not bands:
        return EMPTY
    start, stop = bands[0].start, bands[-1].stop
    fullest = max((band.context or 0 for band in bands), default=0)
    most = max((band.amount or Decimal(0) for band in bands), default=Decimal(0))
    scale = max(limit or 0, fullest, 1)
    drawn = [_render_band(band, scale, most) for band in bands]
    description = (
        f"Context and cost of {count(stop - start, 'entry', 'entries')}: at most {fullest:,} tokens in the window."
    )
    strip = el(
        "svg",
        el("title", description, id="usage-strip-title"),
        *drawn,
        _render_ticks(marks.prompts, "prompts", 5),
        _render_ticks(marks.compactions, "compactions", STRIP_WIDTH),
        _render_ticks(marks.failures, "failures", 9, right=True),
        el("rect", class_="here", x=0, y=start, width=STRIP_WIDTH, height=0),
        viewBox=f"0 {start} {STRIP_WIDTH} {max(1, stop - start)}",
        preserveAspectRatio="none",
        role="group",
        aria_labelledby="usage-strip-title",
        data_items=stop - start,
    )
    table = el("a", "table", href=twin, class_="twin") if twin is not None else EMPTY
    return el("nav", strip, table, class_="usage-strip", aria_label="Map of the conversation")


def _render_band(band: UsageBand, scale: int, most: Decimal) -> Markup:
    width = round(STRIP_WIDTH * (band.context or 0) / scale, 1)
    shape = el(
        "rect",
        el("title", describe_band(band)),
        x=0,
        y=band.start,
        width=max(width, 1),
        height=band.stop - band.start,
        class_=f"band level-{_cost_level(band.amount, most)}",
    )
    return el("a", shape, href=band.address, tabindex=-1)


def describe_band(band: UsageBand) -> str:
    """The description of a band."""
    turn = f"turn {band.turn:,}" if band.turn is not None else "the start"
    context = f"{band.context:,} tokens in the window" if band.context is not None else "context size unknown"
    amount = f", ${band.amount:.2f}" if band.amount is not None else ""
    return f"{turn}: {context}{amount}"


def _cost_level(amount: Decimal | None, most: Decimal) -> int:
    if not amount or not most:
        return 0
    return 1 + min(_LEVELS - 1, int(_LEVELS * amount / most))


def _render_ticks(places: Sequence[int], kind: str, length: int, *, right: bool = False) -> Markup:
    """Short horizontal lines in one path. If there are very many, only as many as can be distinguished."""
    if not places:
        return EMPTY
    step = len(places) // _MAX_TICKS + 1
    x = STRIP_WIDTH - length if right else 0
    path = "".join(f"M{x} {at + 0.5}h{length}" for at in places[::step])
    return el("path", d=path, class_=f"tick {kind}", vector_effect="non-scaling-stroke", aria_hidden="true")
