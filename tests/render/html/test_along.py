"""The strip beside a conversation: small, whole, and without a word of style in it."""

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
    """Whatever was spent: no more than 150 elements, and no band wider than the strip."""
    places = list(range(3 * len(counts)))
    drawn = draw_usage_strip(_bands(counts), StripMarks(places, places, places), limit=limit, twin="/table")
    assert len(re.findall(r"<[a-z]", drawn)) <= 150
    widths = [float(one) for one in re.findall(r'width="([\d.]+)" height="\d+" class="band', drawn)]
    assert len(widths) == len(counts)
    assert all(0 < width <= STRIP_WIDTH for width in widths)
    assert f'viewBox="0 0 {STRIP_WIDTH} {3 * len(counts)}"' in drawn
    assert "style=" not in drawn


def test_each_band_says_what_it_is_and_where_it_leads() -> None:
    """Its title tells turn, tokens and cost; what is not known is said."""
    drawn = draw_usage_strip(_bands([(150_000, 120), (None, None)]), StripMarks(), limit=200_000)
    assert "turn 0: 150,000 tokens in the window, $1.20" in drawn
    assert "turn 1: context size unknown" in drawn
    assert 'href="/x?at=L1"' in drawn
    assert f'width="{STRIP_WIDTH * 0.75}"' in drawn


def test_nothing_is_drawn_of_nothing() -> None:
    """A conversation without items has no strip."""
    assert draw_usage_strip([], StripMarks(), limit=None) == ""
