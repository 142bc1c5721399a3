"""Bars: a column a day, week or month, made of parts that lie upon one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.charts.scale import ticks
from threadline.render.html.charts.svg import drawing, line, link, rect, text
from threadline.render.html.element import Child, el, join
from threadline.render.html.table import Column, folded, table

_WIDTH, _HEIGHT = 960, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 8, 22
_WIDEST = 48
_LABEL = 74  # pixels that a label below takes
PARTS = 8
"""How many parts have a colour of their own; whoever has more puts the rest together."""


class Bar(Struct, frozen=True):
    """A column: its name, what each part of it is, in the order of the parts, and where it leads."""

    name: str
    parts: Sequence[float]
    href: str | None = None

    @property
    def whole(self) -> float:
        """All parts together."""
        return sum(self.parts)


def bars(
    name: str, title: str, parts: Sequence[str], columns: Sequence[Bar], written: Callable[[float], str]
) -> Markup:
    """Columns of parts, with the names of the parts and a table; `written` says a value in words."""
    marks = ticks(max((one.whole for one in columns), default=0))
    high = _HEIGHT - _TOP - _BOTTOM
    drawn = drawing(
        name,
        title,
        _told(columns, written),
        [_grid(mark, marks[-1], high, written) for mark in marks],
        join(_columns(parts, columns, marks[-1], high, written)),
        join(_labels(columns)),
        width=_WIDTH,
        height=_HEIGHT,
        linked=any(one.href for one in columns),
    )
    return join((drawn, _legend(parts), folded("The same as a table", _twin(title, parts, columns, written))))


def _pitch(columns: Sequence[Bar]) -> float:
    return min(_WIDEST, (_WIDTH - _LEFT - _RIGHT) / max(1, len(columns)))


def _grid(mark: float, most: float, high: float, written: Callable[[float], str]) -> Child:
    y = _TOP + high * (1 - mark / most)
    return line(_LEFT, y, _WIDTH - _RIGHT, y, "grid"), text(_LEFT - 6, y + 4, written(mark), "label end")


def _columns(
    parts: Sequence[str], columns: Sequence[Bar], most: float, high: float, written: Callable[[float], str]
) -> Iterator[Markup]:
    pitch = _pitch(columns)
    wide = max(1.0, pitch - max(1.0, pitch * 0.2))
    for at, one in enumerate(columns):
        if one.whole <= 0:
            continue
        x, y = _LEFT + at * pitch + (pitch - wide) / 2, _TOP + high
        shapes = []
        for number, value in enumerate(one.parts):
            tall = high * value / most
            y -= tall
            if value > 0:
                shapes.append(rect(x, y, wide, tall, f"part-{number + 1}"))
        largest = [f"{part} {written(value)}" for part, value in zip(parts, one.parts, strict=True) if value > 0]
        more = f" ({', '.join(largest)})" if len(parts) > 1 else ""
        # The whole height answers the pointer, for a short column is hard to hit.
        area = rect(_LEFT + at * pitch, _TOP, pitch, high, "area")
        yield link(one.href, f"{one.name}: {written(one.whole)}{more}", area, shapes)


def _labels(columns: Sequence[Bar]) -> Iterator[Markup]:
    """Names below as many columns as have room for one."""
    pitch = _pitch(columns)
    every = max(1, -int(-_LABEL // pitch))
    for at in range(0, len(columns), every):
        yield text(_LEFT + at * pitch + pitch / 2, _HEIGHT - 6, columns[at].name, "label middle")


def _legend(parts: Sequence[str]) -> Markup:
    if len(parts) <= 1:
        return Markup()
    return el("ul", [el("li", part, class_=f"part-{at + 1}") for at, part in enumerate(parts)], class_="legend")


def _twin(title: str, parts: Sequence[str], columns: Sequence[Bar], written: Callable[[float], str]) -> Markup:
    several = len(parts) > 1
    heads = (
        Column("When"),
        *(Column(part, "number") for part in (parts if several else ())),
        Column("Total", "number"),
    )
    rows = [
        [
            el("a", one.name, href=one.href) if one.href else one.name,
            *(written(value) for value in (one.parts if several else ())),
            written(one.whole),
        ]
        for one in reversed(columns)
        if one.whole > 0
    ]
    return table(title, heads, rows)


def _told(columns: Sequence[Bar], written: Callable[[float], str]) -> str:
    most = max(columns, key=lambda one: one.whole, default=None)
    if most is None or most.whole <= 0:
        return "There is nothing to show."
    return f"From {columns[0].name} to {columns[-1].name}; the most is {written(most.whole)} on {most.name}."
