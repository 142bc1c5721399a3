"""The day-and-hour map: at which hours of which weekdays work was done."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from threadline.render.html.charts.scale import Shades
from threadline.render.html.charts.svg import drawing, rect, text
from threadline.render.html.element import el, join
from threadline.render.html.table import Column, folded, table

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONG = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOURS = 24
_CELL, _PITCH, _HIGH = 21, 24, 18
_LEFT, _TOP = 36, 18
_LABELS = range(0, _HOURS, 3)


def day_hour(counts: Mapping[tuple[int, int], int], *, unit: str, zone: str) -> Markup:
    """How much was done by weekday (0 is Monday) and hour, with its table; `unit` is what is counted."""
    shades = Shades(counts.values())
    cells = [
        rect(
            _LEFT + hour * _PITCH,
            _TOP + day * _HIGH,
            _CELL,
            _HIGH - 3,
            f"shade-{shades.of(counts.get((day, hour), 0))}",
            el("title", f"{_LONG[day]} {hour:02}:00: {counts.get((day, hour), 0):,} {unit}"),
        )
        for day in range(7)
        for hour in range(_HOURS)
    ]
    labels = [
        *(text(0, _TOP + day * _HIGH + 12, name, "label") for day, name in enumerate(DAYS)),
        *(text(_LEFT + hour * _PITCH, 11, f"{hour:02}", "label") for hour in _LABELS),
    ]
    title = f"{unit.capitalize()} by weekday and hour ({zone})"
    drawn = drawing(
        "day-hour",
        title,
        _told(counts, unit),
        labels,
        cells,
        width=_LEFT + _HOURS * _PITCH,
        height=_TOP + 7 * _HIGH,
    )
    columns = (Column("Hour"), *(Column(name, "number") for name in DAYS))
    rows = [
        [f"{hour:02}:00", *(f"{counts.get((day, hour), 0):,}" for day in range(7))]
        for hour in range(_HOURS)
        if any(counts.get((day, hour)) for day in range(7))
    ]
    return join((drawn, folded("The same as a table", table(title, columns, rows))))


def _told(counts: Mapping[tuple[int, int], int], unit: str) -> str:
    busiest = max(counts, key=lambda key: (counts[key], key), default=None)
    if busiest is None or not counts[busiest]:
        return "There is nothing yet."
    return f"Most at {_LONG[busiest[0]]} {busiest[1]:02}:00: {counts[busiest]:,} {unit}."
