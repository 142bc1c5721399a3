"""The usage strip beside a conversation is small and complete, without inline styles."""

from __future__ import annotations

import re
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from threadline.render.html import MAX_BANDS, StripMarks, UsageBand
from threadline.render.html.usage_strip import STRIP_WIDTH, draw_usage_strip


def _bands(counts: list[tuple[int | None, int | None]]) -> list[UsageBand]:
    return [
        UsageBand(at * 3, at * 3 + 3, f"/x?at=L{at}", context, Decimal(cents) / 100 if cents is not None else None, at)
        for at, (context, cents) in enumerate(counts)
    ]


_COUNT = st.one_of(st.none(), st.integers(0, 2_000_000))


@given(
    counts=st.lists(st.tuples(_COUNT, _COUNT), min_size=1, max_size=MAX_BANDS),
    limit=st.one_of(st.none(), st.integers(1, 10**6)),
)
def test_a_strip_is_small_and_stays_inside_its_box(
    counts: list[tuple[int | None, int | None]], limit: int | None
) -> None:
    """Whatever was spent, there are at most 150 elements, and no band is wider than the strip."""
    places = list(range(3 * len(counts)))
    html = draw_usage_strip(_bands(counts), StripMarks(places, places, places), limit=limit, twin="/table")
    assert len(re.findall(r"<[a-z]", html)) <= 150
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="\d+" class="band', html)]
    assert len(widths) == len(counts)
    assert all(0 < width <= STRIP_WIDTH for width in widths)
    assert f'viewBox="0 0 {STRIP_WIDTH} {3 * len(counts)}"' in html
    assert "style=" not in html


def test_each_band_has_a_title_and_a_link() -> None:
    """The title has turn, tokens and cost, or says that they are unknown."""
    html = draw_usage_strip(_bands([(150_000, 120), (None, None)]), StripMarks(), limit=200_000)
    assert "turn 0: 150,000 tokens in the window, $1.20" in html
    assert "turn 1: context size unknown" in html
    assert 'href="/x?at=L1"' in html
    assert f'width="{STRIP_WIDTH * 0.75}"' in html


def test_amounts_are_written_as_everywhere() -> None:
    """A small amount is not rounded to zero, and a large one has separators."""
    bands = [UsageBand(0, 1, "/x", 5, Decimal("0.00042")), UsageBand(1, 2, "/x", 5, Decimal("1234.5"))]
    html = draw_usage_strip(bands, StripMarks(), limit=None)
    assert "window, $0.00042<" in html
    assert "window, $1,234.50<" in html


def test_an_empty_conversation_has_no_strip() -> None:
    """A conversation without items has no strip."""
    assert draw_usage_strip([], StripMarks(), limit=None) == ""
