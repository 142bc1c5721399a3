"""The activity calendar: a year of days, a column a week, darker where more was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.charts.scale import Shades
from threadline.render.html.charts.svg import drawing, link, rect, text
from threadline.render.html.element import Child, el, join
from threadline.render.html.table import Column, folded, table

_WEEKS = 53
_DAY = timedelta(days=1)
_CELL, _PITCH = 11, 14
_LEFT, _TOP = 32, 18
_ROOM = 3  # weeks that the name of a month takes
_NAMED_DAYS = (0, 2, 4)


class Active(Struct, frozen=True):
    """A day: how much was done, which is its shade, and the same in words."""

    value: float
    told: str


def calendar(
    days: Mapping[date, Active], last: date, *, link_of: Callable[[date], str | None], what: str = "Activity"
) -> Markup:
    """The year up to a day, with its table; a day on which something was done leads to it."""
    monday = last - timedelta(days=last.weekday()) - timedelta(weeks=_WEEKS - 1)
    shown = {day: one for day, one in days.items() if monday <= day <= last and one.value > 0}
    shades = Shades(one.value for one in shown.values())
    cells = join(_cells(monday, last, shown, shades, link_of))
    labels = [*_months(monday), *(text(0, _TOP + row * _PITCH + 9, _weekday(row), "label") for row in _NAMED_DAYS)]
    told = f"{len(shown):,} of the {(last - monday).days + 1} days up to {last.isoformat()} have something."
    drawn = drawing(
        "calendar",
        f"{what} by day",
        told,
        labels,
        cells,
        _legend(),
        width=_LEFT + _WEEKS * _PITCH,
        height=_TOP + 7 * _PITCH + 18,
        linked=True,
    )
    rows = [[_name(day, link_of), one.told] for day, one in sorted(shown.items(), reverse=True)]
    twin = table(f"{what} by day", (Column("Day", "when"), Column("What was done")), rows)
    return join((drawn, folded("The same as a table", twin)))


def _cells(
    monday: date, last: date, shown: Mapping[date, Active], shades: Shades, link_of: Callable[[date], str | None]
) -> Iterator[Markup]:
    for number in range((last - monday).days + 1):
        day = monday + number * _DAY
        week, row = divmod(number, 7)
        x, y = _LEFT + week * _PITCH, _TOP + row * _PITCH
        one = shown.get(day)
        if one is None:
            yield rect(x, y, _CELL, _CELL, "shade-0")
        else:
            cell = rect(x, y, _CELL, _CELL, f"shade-{shades.of(one.value)}")
            yield link(link_of(day), f"{_spelt(day)}: {one.told}", cell)


def _months(monday: date) -> Iterator[Markup]:
    """The name of a month above the week in which it begins, where there is room for it."""
    before = -_ROOM
    for week in range(_WEEKS):
        sunday = monday + timedelta(days=7 * week + 6)
        if (sunday.day <= 7 or week == 0) and week - before >= _ROOM and week <= _WEEKS - _ROOM + 1:  # noqa: PLR2004 - a week
            before = week
            yield text(_LEFT + week * _PITCH, 10, f"{sunday:%b}", "label")


def _legend() -> Child:
    y = _TOP + 7 * _PITCH + 6
    x = _LEFT + (_WEEKS - 11) * _PITCH
    cells = [rect(x + 30 + shade * _PITCH, y, _CELL, _CELL, f"shade-{shade}") for shade in range(5)]
    return el("g", text(x, y + 9, "less", "label"), cells, text(x + 34 + 5 * _PITCH, y + 9, "more", "label"))


def _name(day: date, link_of: Callable[[date], str | None]) -> Child:
    href = link_of(day)
    return el("a", day.isoformat(), href=href) if href is not None else day.isoformat()


def _spelt(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


def _weekday(row: int) -> str:
    return ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[row]
