"""A sparkline: a row of values as a line no higher than a word."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from threadline.render.html.charts.svg import num
from threadline.render.html.element import EMPTY, el

_STEP, _HIGH = 4, 16
_LEAST = 2


def sparkline(values: Sequence[float], told: str) -> Markup:
    """The values as a line; `told` says in words what it shows, and stands where the figures themselves do."""
    if len(values) < _LEAST:
        return EMPTY
    most = max(values) or 1
    points = " ".join(
        f"{num(at * _STEP)},{num(_HIGH - 1 - (_HIGH - 2) * value / most)}" for at, value in enumerate(values)
    )
    width = (len(values) - 1) * _STEP
    line = el("polyline", points=points, class_="spark")
    return el(
        "svg",
        el("title", told),
        line,
        class_="sparkline",
        viewBox=f"0 0 {width} {_HIGH}",
        width=width,
        height=_HIGH,
        role="img",
        aria_label=told,
    )
