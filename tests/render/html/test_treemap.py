"""Treemaps: areas are in proportion, nothing overlaps, and text is clipped at its rectangle."""

from __future__ import annotations

import re
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from threadline.render.html import Tile, draw_treemap

_RECT = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" class="tile"')
_SIZES = ((1200, 460), (400, 600))
_GAP = 2


def _rectangles(html: str, count: int) -> list[list[tuple[float, float, float, float]]]:
    """The rectangles of both drawings: position and size, without the gaps between them."""
    found = [tuple(map(float, groups)) for groups in _RECT.findall(html)]
    assert len(found) == 2 * count
    drawn = [(x - _GAP / 2, y - _GAP / 2, width + _GAP, height + _GAP) for x, y, width, height in found]
    return [drawn[:count], drawn[count:]]


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=20))
@example([1.0])
def test_areas_are_in_proportion_and_do_not_overlap(values: list[float]) -> None:
    """Each value gets its share of the area, inside the drawing, wide or narrow."""
    values.sort(reverse=True)
    html = draw_treemap("costs", "Costs", "Some.", [Tile("x", value, "$1", f"{value}") for value in values])
    for (width, height), boxes in zip(_SIZES, _rectangles(html, len(values)), strict=True):
        for value, (x, y, wide, high) in zip(values, boxes, strict=True):
            if min(wide, high) > _GAP:  # a smaller one would be drawn with no area
                assert abs(wide * high - width * height * value / sum(values)) <= 0.02 * (wide + high) + 0.02
            assert x >= -0.02
            assert y >= -0.02
            assert x + wide <= width + _GAP + 0.02
            assert y + high <= height + _GAP + 0.02
        for left, right in combinations(boxes, 2):
            across = min(left[0] + left[2], right[0] + right[2]) - max(left[0], right[0])
            down = min(left[1] + left[3], right[1] + right[3]) - max(left[1], right[1])
            assert min(across, down) <= _GAP + 0.02


def test_nothing_fails_without_values() -> None:
    """A treemap without tiles, or with tiles that cost nothing, is an empty drawing."""
    assert "<rect" not in draw_treemap("costs", "Costs", "None.", [])
    assert 'width="0"' in draw_treemap("costs", "Costs", "None.", [Tile("a", 0, "$0", "a")])


def test_long_labels_are_cut_and_amounts_are_not() -> None:
    """A label that does not fit ends with an ellipsis; an amount that does not fit is left out."""
    tiles = [Tile("a long label that cannot fit " * 9, 1, "$1,234.56", "a") for _ in range(40)]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", draw_treemap("costs", "Costs", "Many.", tiles))
    assert {text for text in texts if text.startswith("$")} <= {"$1,234.56"}
    assert all(text.endswith("…") for text in texts if not text.startswith("$"))


def test_treemap_is_drawn_for_wide_and_narrow_screens() -> None:
    """Two drawings with ids of their own; rectangles are links with a title, and text is clipped."""
    inside = [Tile("a <b>", 2, "$2.00", "a <b>: $2.00", "/a"), Tile("c", 1, "$1.00", "c: $1.00")]
    html = draw_treemap("costs", "Costs", "Two groups.", [Tile("x", 3, "$3.00", "x: $3.00", "/x", inside)])
    ids = re.findall(r'id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == 4
    assert html.count('href="/a"') == 2
    assert html.count("<title>a &lt;b&gt;: $2.00</title>") == 2
    assert "<b>" not in html
    assert html.count("<svg x=") == html.count("<text")
