"""The strip beside a conversation that shows context size and cost, and works as a map of it.

Its vertical axis counts items, from top to bottom like the page. The width of a band shows how full the context window
was, and its shade how much was spent. A band links to its first item.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from markupsafe import Markup
from msgspec import Struct

from threadline.model.text import count, format_amount
from threadline.render.html.element import EMPTY, el

MAX_BANDS = 40
"""The maximum number of bands, each of which has three elements."""
STRIP_WIDTH = 28
_LEVELS = 4
_MAX_TICKS = 2000


class UsageBand(Struct, frozen=True):
    """A run of items from `start` to before `stop`.

    `context` is the largest number of tokens in the context window and `amount` the cost; each is None if it is
    unknown. `turn` and `time` are those of the first item, and `address` its URL. `cache_break` is the cause of a cache
    break in it.
    """

    start: int
    stop: int
    address: str
    context: int | None = None
    amount: Decimal | None = None
    turn: int | None = None
    time: str = ""
    cache_break: str = ""


class StripMarks(Struct, frozen=True):
    """Positions of items that are marked on the strip."""

    prompts: Sequence[int] = ()
    failures: Sequence[int] = ()
    compactions: Sequence[int] = ()
    agents: Sequence[int] = ()
    commits: Sequence[int] = ()


_LEGEND = (
    ("key-here", "the visible part"),
    ("key-width", "width: how full the context window was"),
    ("key-shade", "shade: cost"),
    ("key-prompts", "prompt"),
    ("key-agents", "agent started"),
    ("key-commits", "commit"),
    ("key-compactions", "compaction"),
    ("key-failures", "failure"),
    ("key-matches", "match of the find box"),
)


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
    html = [_render_band(band, scale, most) for band in bands]
    description = (
        f"Context and cost of {count(stop - start, 'entry', 'entries')}: at most {fullest:,} tokens in the window."
    )
    strip = el(
        "svg",
        el("title", description, id="usage-strip-title"),
        *html,
        _render_ticks(marks.prompts, "prompts", 5),
        _render_ticks(marks.compactions, "compactions", STRIP_WIDTH),
        _render_ticks(marks.failures, "failures", 9, right=True),
        _render_ticks(marks.agents, "agents", 7, at=10),
        _render_ticks(marks.commits, "commits", 7, at=10),
        el("path", d="", class_="tick matches", vector_effect="non-scaling-stroke", aria_hidden="true"),
        el("rect", class_="here", x=0, y=start, width=STRIP_WIDTH, height=0),
        viewBox=f"0 {start} {STRIP_WIDTH} {max(1, stop - start)}",
        preserveAspectRatio="none",
        role="group",
        aria_labelledby="usage-strip-title",
        data_items=stop - start,
    )
    table = el("a", "Numbers", href=twin, class_="twin") if twin is not None else EMPTY
    legend = el(
        "details",
        el("summary", "?", aria_label="What the map shows", title="What the map shows"),
        el("ul", [el("li", label, class_=kind) for kind, label in _LEGEND]),
        class_="strip-legend",
    )
    return el("nav", strip, legend, table, class_="usage-strip", aria_label="Map of the conversation")


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
    amount = f", {format_amount(band.amount)}" if band.amount is not None else ""
    when = f", {band.time}" if band.time else ""
    breaks = f", cache broke: {band.cache_break}" if band.cache_break else ""
    return f"{turn}{when}: {context}{amount}{breaks}"


def _cost_level(amount: Decimal | None, most: Decimal) -> int:
    if not amount or not most:
        return 0
    return 1 + min(_LEVELS - 1, int(_LEVELS * amount / most))


def _render_ticks(places: Sequence[int], kind: str, length: int, *, at: int = 0, right: bool = False) -> Markup:
    """Short horizontal lines in one path. If there are very many, only as many as can be distinguished."""
    if not places:
        return EMPTY
    step = len(places) // _MAX_TICKS + 1
    x = STRIP_WIDTH - length if right else at
    path = "".join(f"M{x} {place + 0.5}h{length}" for place in places[::step])
    return el("path", d=path, class_=f"tick {kind}", vector_effect="non-scaling-stroke", aria_hidden="true")
