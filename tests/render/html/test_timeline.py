"""The timeline of a session as a drawing."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from threadline.render.html import Span, draw_timeline, find_gaps

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


def _draw(moments: list[datetime]) -> str:
    """The timeline of turns of one minute that begin at these moments."""
    turns = [Span(f"Turn {number}", moment, moment + _MINUTE) for number, moment in enumerate(moments, 1)]
    times = sorted([*moments, *(moment + _MINUTE for moment in moments)])
    return str(draw_timeline(turns, [], [], find_gaps(times)))


def test_work_has_the_same_scale_before_and_after_pauses() -> None:
    """Turns that took equally long are equally wide, however long the pauses between them were."""
    drawing = _draw([_START, _START + timedelta(hours=1), _START + timedelta(days=3), _START + timedelta(days=9)])
    wide = drawing.partition("timeline-narrow")[0]
    spans = re.findall(r'x="([\d.]+)"[^>]*width="([\d.]+)"[^>]*class="turn-span', wide)
    idle = re.findall(r'width="([\d.]+)"[^>]*class="idle"', wide)
    assert len({width for _, width in spans}) == 1
    assert len(set(idle)) == 1
    assert len(idle) == 3
    assert [float(x) for x, _ in spans] == sorted(float(x) for x, _ in spans)


def test_many_pauses_take_linear_time() -> None:
    """Four times the turns with pauses between them take about four times as long, not sixteen times."""

    def seconds(size: int) -> float:
        moments = [_START + timedelta(hours=number) for number in range(size)]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            _draw(moments)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(4_000) / seconds(1_000) < 8
