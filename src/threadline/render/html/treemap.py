"""Treemaps: nested rectangles whose areas are amounts, drawn as SVG without scripts.

The layout is squarified (Bruls, Huizing, van Wijk 2000): rectangles are as close to squares as possible. A drawing
cannot reflow, so each treemap is drawn twice, for wide and for narrow screens, and the style sheet shows one of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.element import Child, el, join
from threadline.render.html.svg_charts import MAX_PARTS, chart, svg_link, svg_number, svg_rect, svg_text

_SIZES = {"wide": (1200, 460), "narrow": (400, 600)}
_GAP = 2.0
_HEADING = 19.0
_LINE = 15.0
_PADDING = 5.0
_MIN_TEXT_WIDTH = 26.0
_MIN_CUT = 4
_MIN_HEADED = (60.0, 44.0)
"""The least width and height of a rectangle that has a heading above those inside it."""
_MAX_DEPTH = 3
# The widths of characters at 12 px. A font may be wider, so that text is also clipped.
_NARROW = frozenset("iljtfrI.,:;'!|()[]/ ")
_WIDE = frozenset("mwMW@%")
_NARROW_WIDTH, _MEDIUM_WIDTH, _CAPITAL_WIDTH, _WIDE_WIDTH, _FULL_WIDTH = 4.5, 7.4, 8.5, 11.7, 13.0

_BOLD = 1.2
"""How much wider bold text is."""


class Tile(Struct, frozen=True):
    """A rectangle of a treemap: its label, the value that is its area, that value as text, and the tiles inside.

    `description` is its tooltip and what screen readers read. The values of `tiles` add up to `value`.
    """

    label: str
    value: float
    text: str
    description: str
    href: str | None = None
    tiles: Sequence[Tile] = ()


class Box(Struct, frozen=True):
    """The position and size of a rectangle."""

    x: float
    y: float
    width: float
    height: float

    def inset(self, gap: float, top: float = 0.0) -> Box:
        """The rectangle without a margin on each side, and without `top` at the top."""
        return Box(
            self.x + gap, self.y + gap + top, max(0.0, self.width - 2 * gap), max(0.0, self.height - 2 * gap - top)
        )


def draw_treemap(name: str, title: str, description: str, tiles: Sequence[Tile]) -> Markup:
    """Draw a treemap. Each tile of the first level has a colour, which the tiles inside it share; many repeat them."""
    return join(_draw_size(f"{name}-{size}", size, title, description, tiles) for size in _SIZES)


def _draw_size(name: str, size: str, title: str, description: str, tiles: Sequence[Tile]) -> Markup:
    width, height = _SIZES[size]
    whole = Box(0, 0, width, height)
    shapes = [
        el("g", _render_tile(tile, box, depth=1), class_=f"tint-{at % MAX_PARTS + 1}")
        for at, (tile, box) in enumerate(zip(tiles, squarify([tile.value for tile in tiles], whole), strict=True))
    ]
    drawing = chart(name, title, description, shapes, width=width, height=height, linked=True)
    return el("div", drawing, class_=f"treemap {size}")


def _render_tile(tile: Tile, box: Box, *, depth: int) -> Markup:
    inner = box.inset(_GAP / 2)
    has_heading = inner.width >= _MIN_HEADED[0] and inner.height >= _MIN_HEADED[1]
    if not tile.tiles or depth == _MAX_DEPTH:
        return svg_link(tile.href, tile.description, _rectangle(inner, "tile"), join(_texts(tile, inner)))
    heading = svg_link(
        tile.href,
        tile.description,
        _rectangle(inner, f"tile-{depth}"),
        _heading_text(tile, inner) if has_heading else None,
    )
    below = inner.inset(_GAP / 2, _HEADING if has_heading else 0.0)
    inside = [
        _render_tile(child, place, depth=depth + 1)
        for child, place in zip(tile.tiles, squarify([child.value for child in tile.tiles], below), strict=True)
    ]
    return el("g", heading, inside)


def _rectangle(box: Box, kind: str) -> Markup:
    return svg_rect(box.x, box.y, box.width, box.height, kind)


def _heading_text(tile: Tile, box: Box) -> Child:
    """The label and the amount in one line; the amount is never cut."""
    space = (box.width - 2 * _PADDING) / _BOLD
    amount = f" {tile.text}"
    label = fit_text(tile.label, space - text_width(amount))
    return _text_line(box, 0, label + amount if label else fit_text(tile.label, space), "heading")


def _texts(tile: Tile, box: Box) -> Iterator[Child]:
    """The label, and the amount below it, as far as there is space."""
    space = box.width - 2 * _PADDING
    if box.width < _MIN_TEXT_WIDTH or box.height < _LINE + 2:
        return
    label = fit_text(tile.label, space)
    if label:
        yield _text_line(box, 0, label, "label")
    if box.height >= 2 * _LINE + 4 and text_width(tile.text) * _BOLD <= space:
        yield _text_line(box, 1 if label else 0, tile.text, "amount")


def _text_line(box: Box, line: int, text: str, kind: str) -> Child:
    # A nested drawing clips what a wider font would draw beyond the rectangle.
    return el(
        "svg",
        svg_text(_PADDING, 13 + line * _LINE, text, kind),
        x=svg_number(box.x),
        y=svg_number(box.y),
        width=svg_number(max(0.0, box.width - 2)),
        height=svg_number(max(0.0, box.height - 1)),
    )


def squarify(values: Sequence[float], box: Box) -> list[Box]:
    """Divide a rectangle into one for each value, in order, with areas in proportion to the values.

    >>> squarify([3, 1], Box(0, 0, 4, 1))
    [Box(x=0, y=0, width=3.0, height=1.0), Box(x=3.0, y=0, width=1.0, height=1.0)]
    """
    total = sum(values)
    if total <= 0 or box.width <= 0 or box.height <= 0:
        return [Box(box.x, box.y, 0.0, 0.0) for _value in values]
    scale = box.width * box.height / total
    areas = [max(0.0, value) * scale for value in values]
    boxes: list[Box] = []
    rest, at = box, 0
    while at < len(areas):
        row = [areas[at]]
        side = min(rest.width, rest.height)
        while at + len(row) < len(areas):
            longer = [*row, areas[at + len(row)]]
            if _worst_ratio(longer, side) > _worst_ratio(row, side):
                break
            row = longer
        placed, rest = _place_row(row, rest)
        boxes += placed
        at += len(row)
    return boxes


def _worst_ratio(areas: Sequence[float], side: float) -> float:
    """The ratio of the sides of the least square rectangle, if these areas are a row along a side."""
    total, least, most = sum(areas), min(areas), max(areas)
    if least <= 0 or side <= 0:
        return float("inf")
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _place_row(areas: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """Place areas along the shorter side of a rectangle. Returns their rectangles and what is left."""
    total = sum(areas)
    boxes: list[Box] = []
    if box.width >= box.height:
        width = min(box.width, total / box.height if box.height else 0.0)
        y = box.y
        for area in areas:
            height = box.height * area / total if total else 0.0
            boxes.append(Box(box.x, y, width, height))
            y += height
        return boxes, Box(box.x + width, box.y, max(0.0, box.width - width), box.height)
    height = min(box.height, total / box.width if box.width else 0.0)
    x = box.x
    for area in areas:
        width = box.width * area / total if total else 0.0
        boxes.append(Box(x, box.y, width, height))
        x += width
    return boxes, Box(box.x, box.y + height, box.width, max(0.0, box.height - height))


def fit_text(text: str, width: float) -> str:
    """As much of a text as fits into a width at 12 px, with an ellipsis if it was cut; empty if hardly any does.

    >>> fit_text("Result of Read", 200), fit_text("Result of Read", 60), fit_text("Result of Read", 10)
    ('Result of Read', 'Result o…', '')
    """
    used = 0.0
    for at, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            cut = text[: max(0, at - 1)].rstrip()
            return f"{cut}…" if len(cut) >= _MIN_CUT else ""
    return text


def text_width(text: str) -> float:
    """About how wide a text is at 12 px."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in _NARROW:
        return _NARROW_WIDTH
    if character in _WIDE:
        return _WIDE_WIDTH
    if not character.isascii():
        return _FULL_WIDTH if unicodedata.east_asian_width(character) in "WF" else _CAPITAL_WIDTH
    return _CAPITAL_WIDTH if character.isupper() else _MEDIUM_WIDTH
