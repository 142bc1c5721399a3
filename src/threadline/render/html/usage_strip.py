"""The strip beside a conversation that shows context size and cost, and works as a map of it.

Its height is counted in items, top to bottom as on the page. Each band is as wide as the window was full, darker the
more was spent there, and links to its first item.
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
    """A run of items: where it begins and ends, how many tokens the window held at most, and what was spent.

    None where nothing tells it. `turn` is the one that it begins in, `address` leads to its first item.
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
    fullest = max((usage_band.context or 0 for usage_band in bands), default=0)
    most = max((usage_band.amount or Decimal(0) for usage_band in bands), default=Decimal(0))
    scale = max(limit or 0, fullest, 1)
    drawn = [_render_band(usage_band, scale, most) for usage_band in bands]
    description = (
        f"Context and cost along {count(stop - start, 'entry', 'entries')}: at most {fullest:,} tokens in the window."
    )
    strip = el(
        "svg",
        el("title", description, id="along-title"),
        *drawn,
        _render_ticks(marks.prompts, "prompts", 5),
        _render_ticks(marks.compactions, "compactions", STRIP_WIDTH),
        _render_ticks(marks.failures, "failures", 9, right=True),
        el("rect", class_="here", x=0, y=start, width=STRIP_WIDTH, height=0),
        viewBox=f"0 {start} {STRIP_WIDTH} {max(1, stop - start)}",
        preserveAspectRatio="none",
        role="group",
        aria_labelledby="along-title",
        data_items=stop - start,
    )
    table = el("a", "table", href=twin, class_="twin") if twin is not None else EMPTY
    return el("nav", strip, table, class_="along", aria_label="Map of the conversation")


def _render_band(usage_band: UsageBand, scale: int, most: Decimal) -> Markup:
    width = round(STRIP_WIDTH * (usage_band.context or 0) / scale, 1)
    shape = el(
        "rect",
        el("title", describe_band(usage_band)),
        x=0,
        y=usage_band.start,
        width=max(width, 1),
        height=usage_band.stop - usage_band.start,
        class_=f"band level-{_cost_level(usage_band.amount, most)}",
    )
    return el("a", shape, href=usage_band.address, tabindex=-1)


def describe_band(usage_band: UsageBand) -> str:
    """The description of a band."""
    turn = f"turn {usage_band.turn:,}" if usage_band.turn is not None else "the start"
    context = (
        f"{usage_band.context:,} tokens in the window"
        if usage_band.context is not None
        else "size of the window not told"
    )
    amount = f", ${usage_band.amount:.2f}" if usage_band.amount is not None else ""
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
