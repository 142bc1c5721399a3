"""A timeline of a session: turns, agents in lanes, and marks, with idle time shortened.

Time runs from left to right. Every pause has the same small width, however long it was, so that work fills the chart.
Every shape links to its entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from markupsafe import Markup
from msgspec import Struct

from threadline.model.text import count, format_duration
from threadline.render.html.element import Child, el, join
from threadline.render.html.svg_charts import chart, svg_link, svg_rect, svg_text

IDLE = timedelta(minutes=5)
"""Longer pauses count as idle time."""
MARK_KINDS = {"failure": "mark-failure", "commit": "mark-commit", "compaction": "mark-compaction"}
"""The kinds of marks, and the classes of their shapes."""
_WIDTHS = {"wide": 1200, "narrow": 400}
_GAP, _MIN_WIDTH = 14.0, 1.5
_TOP, _TURN_HEIGHT, _MARK_HEIGHT, _LANE, _MAX_LANES = 16, 18, 12, 12, 8
_MAX_GAP_SHARE = 0.4
_LABEL_ROOM, _DIGIT = 9.0, 6.5


class Span(Struct, frozen=True):
    """A turn or an agent: its name, when it ran, and its URL."""

    label: str
    start: datetime
    end: datetime
    url: str | None = None


class Mark(Struct, frozen=True):
    """Something at one moment: a failure, a commit or a compaction."""

    kind: str
    label: str
    time: datetime
    url: str | None = None


def find_gaps(times: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """The idle times between sorted moments."""
    return [(before, after) for before, after in pairwise(times) if after - before > IDLE]


def draw_timeline(
    turns: Sequence[Span], agents: Sequence[Span], marks: Sequence[Mark], gaps: Sequence[tuple[datetime, datetime]]
) -> Markup:
    """Draw the timeline of at least one turn, for wide and for narrow screens."""
    return join(_draw_size(size, turns, agents, marks, gaps) for size in _WIDTHS)


def _draw_size(
    size: str,
    turns: Sequence[Span],
    agents: Sequence[Span],
    marks: Sequence[Mark],
    gaps: Sequence[tuple[datetime, datetime]],
) -> Markup:
    begin = min((*(span.start for span in (*turns, *agents)), *(mark.time for mark in marks)))
    end = max((*(span.end for span in (*turns, *agents)), *(mark.time for mark in marks)))
    scale = _TimeScale(_WIDTHS[size], begin, end, gaps)
    lanes = _assign_lanes(agents)
    marks_top = _TOP + _TURN_HEIGHT + 3
    lanes_top = marks_top + _MARK_HEIGHT + 4
    shown = min(_MAX_LANES, max((lane + 1 for lane in lanes), default=0))
    description = (
        f"{count(len(turns), 'turn')}, {count(len(agents), 'agent')}, {count(len(gaps), 'pause')}, "
        + ", ".join(count(sum(mark.kind == kind for mark in marks), kind) for kind in MARK_KINDS)
    )
    return chart(
        "timeline",
        "Timeline",
        description,
        [_draw_gap(scale, gap, lanes_top + shown * _LANE) for gap in gaps],
        [_draw_span(scale, span, _TOP, _TURN_HEIGHT, f"turn-span shade-{1 + at % 2}") for at, span in enumerate(turns)],
        list(_turn_labels(scale, turns)),
        [
            _draw_span(scale, span, lanes_top + min(lane, _MAX_LANES - 1) * _LANE, _LANE - 3, "agent-span")
            for span, lane in zip(agents, lanes, strict=True)
        ],
        [_draw_mark(scale, mark, marks_top) for mark in marks],
        width=_WIDTHS[size],
        height=lanes_top + shown * _LANE + 4,
        size=size,
        linked=True,
    )


class _TimeScale:
    """Maps moments to x positions. Idle time takes a fixed width."""

    def __init__(self, width: float, begin: datetime, end: datetime, gaps: Sequence[tuple[datetime, datetime]]) -> None:
        self.width = width
        self._begin = begin
        self._gaps = [gap for gap in gaps if begin <= gap[0] and gap[1] <= end]
        self._starts = [start for start, _ in self._gaps]
        self._gap_width = min(_GAP, _MAX_GAP_SHARE * width / max(1, len(self._gaps)))
        # How much idle time there is before each gap, and after the last.
        self._idle = list(accumulate((after - before for before, after in self._gaps), initial=timedelta()))
        self._active = max((end - begin - self._idle[-1]).total_seconds(), 1.0)
        self._room = width - self._gap_width * len(self._gaps)

    def x(self, moment: datetime) -> float:
        """The x position of a moment."""
        number = bisect_right(self._starts, moment)
        position = 0.0
        if number and moment < self._gaps[number - 1][1]:  # within the last pause
            start, stop = self._gaps[number - 1]
            position = self._gap_width * (moment - start) / (stop - start)
            moment, number = start, number - 1
        active = (moment - self._begin - self._idle[number]).total_seconds()
        return min(self.width, position + number * self._gap_width + self._room * max(0.0, active) / self._active)


def _assign_lanes(agents: Sequence[Span]) -> list[int]:
    """The lane of each agent: the first that is free when it starts. Agents are sorted by their start."""
    ends: list[datetime] = []
    lanes = []
    for agent in agents:
        lane = next((at for at, end in enumerate(ends) if end <= agent.start), len(ends))
        ends[lane : lane + 1] = [agent.end]
        lanes.append(lane)
    return lanes


def _draw_span(scale: _TimeScale, span: Span, y: float, height: float, kind: str) -> Markup:
    x = scale.x(span.start)
    width = max(_MIN_WIDTH, scale.x(span.end) - x - 0.5)
    return svg_link(
        span.url, f"{span.label} · {format_duration(span.end - span.start)}", svg_rect(x, y, width, height, kind)
    )


def _turn_labels(scale: _TimeScale, turns: Sequence[Span]) -> Iterator[Markup]:
    """The numbers of turns, as many as fit."""
    free = 0.0
    for span in turns:
        x = scale.x(span.start)
        number = span.label.partition(":")[0].rpartition(" ")[2]
        end = x + _DIGIT * len(number)
        if x >= free and end <= scale.width:
            yield svg_text(x + 1, _TOP - 4, number, "label")
            free = end + _LABEL_ROOM


def _draw_gap(scale: _TimeScale, gap: tuple[datetime, datetime], height: float) -> Markup:
    x = scale.x(gap[0])
    width = max(1.0, scale.x(gap[1]) - x)
    title = el("title", f"Idle for {format_duration(gap[1] - gap[0])}")
    return svg_rect(x, _TOP, width, height - _TOP, "idle", title)


def _draw_mark(scale: _TimeScale, mark: Mark, y: float) -> Child:
    shape = svg_rect(scale.x(mark.time) - 1.5, y, 3, _MARK_HEIGHT, MARK_KINDS[mark.kind])
    return svg_link(mark.url, mark.label, shape)
