"""Treemaps: areas are in proportion, nothing overlaps, and no text is outside its rectangle."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from threadline.render.html import Tile, draw_treemap
from threadline.render.html.treemap import Box, fit_text, squarify, text_width


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60), st.floats(1, 2000), st.floats(1, 2000))
def test_areas_are_in_proportion_and_inside(values: list[float], width: float, height: float) -> None:
    """Each value gets its share of the area, inside the rectangle, without overlaps."""
    boxes = squarify(sorted(values, reverse=True), Box(0, 0, width, height))
    scale = width * height / sum(values)
    for value, box in zip(sorted(values, reverse=True), boxes, strict=True):
        assert abs(box.width * box.height - value * scale) <= 1e-6 * width * height + 1e-9
        assert box.x >= -1e-6
        assert box.y >= -1e-6
        assert box.x + box.width <= width * (1 + 1e-6)
        assert box.y + box.height <= height * (1 + 1e-6)
    area = sum(box.width * box.height for box in boxes)
    assert abs(area - width * height) <= 1e-6 * width * height


def test_empty_and_zero_values_have_no_area() -> None:
    """Nothing fails without values, or if all are zero."""
    assert squarify([], Box(0, 0, 10, 10)) == []
    assert [box.width * box.height for box in squarify([0, 0], Box(0, 0, 10, 10))] == [0, 0]
    assert squarify([1, 2], Box(0, 0, 0, 10))[0].width == 0


@given(st.text(max_size=80), st.floats(0, 400))
def test_cut_text_fits(text: str, width: float) -> None:
    """A text that does not fit is cut with an ellipsis, or left out."""
    fitted = fit_text(text, width)
    assert fitted in (text, "") or fitted.endswith("…")
    assert text_width(fitted) <= width or fitted == ""


def test_treemap_is_drawn_for_wide_and_narrow_screens() -> None:
    """Two drawings with ids of their own; rectangles are links with a title, and text is clipped."""
    inside = [Tile("a <b>", 2, "$2.00", "a <b>: $2.00", "/a"), Tile("c", 1, "$1.00", "c: $1.00")]
    html = draw_treemap("costs", "Costs", "Two groups.", [Tile("x", 3, "$3.00", "x: $3.00", "/x", inside)])
    ids = re.findall(r'id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == 4
    assert html.count('href="/a"') == 2
    assert html.count("<title>a &lt;b&gt;: $2.00</title>") == 2
    assert "<b>" not in html
    assert all(inner.startswith("<text") for inner in re.findall(r"<svg x=[^>]*>(<text)", html))
