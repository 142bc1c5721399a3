"""The chart of what was spent: a column a day, week or month, and in it a part a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING

from threadline.model.sum import Row
from threadline.model.zone import in_zone
from threadline.render.amounts import short
from threadline.render.figures import model_name
from threadline.render.html.charts.bars import PARTS, Bar, bars
from threadline.render.html.element import Child, el
from threadline.render.html.words import one
from threadline.web import addresses

if TYPE_CHECKING:
    from threadline.web.pages.usage_answer import Spending, Told

_ONE_DAY = timedelta(days=1)
_MANY_DAYS, _MANY_WEEKS = 120, 120
_MOST = 600
_OTHERS = "others"
_GREAT = 100  # dollars from which on cents say nothing

MEASURES: dict[str, Callable[[Row], Decimal | int]] = {
    "cost": lambda row: row.amount or 0,
    "tokens": lambda row: row.tokens,
    "output": lambda row: row.output,
    "replies": lambda row: row.charges,
}
"""What a chart can show the size of."""


def unit_of(name: str, days: Sequence[str], today: date) -> str:
    """What a column is: what was asked for, or else days, as long as there is room for them."""
    if name in {"day", "week", "month"} and name != "day":
        return name
    dated = sorted(filter(None, map(_date, days)))
    span = (max(today, dated[-1]) - dated[0]).days + 1 if dated else 0
    return "day" if span <= _MANY_DAYS else "week" if span <= 7 * _MANY_WEEKS else "month"


def chart(told: Told, spending: Spending, measure: str, here: tzinfo) -> Child:
    """The chart with its table; nothing but a sentence where nothing was spent."""
    size = MEASURES[measure]
    models: dict[str, float] = {}
    sizes: dict[str, dict[str, float]] = {}
    for row in told.parts:
        model, value = row.keys["model"], float(size(row))
        models[model] = models.get(model, 0) + value
        sizes.setdefault(row.keys[told.unit], {})[model] = value
    ordered = sorted((model for model in models if models[model] > 0), key=lambda model: (-models[model], model))
    if not ordered:
        return el("p", "There is nothing to draw: nothing was spent here, or no price is known.", class_="nothing")
    apart = ordered[: PARTS - 1] if len(ordered) > PARTS else ordered
    rest = ordered[len(apart) :]
    columns = [
        Bar(name, _parts(sizes.get(name, {}), apart, rest), _address(name, told.unit, spending))
        for name in _names(sorted(filter(_is_dated, sizes)), told.unit, spending, here)
    ]
    parts = [*(one(model_name(model), 40) for model in apart), *([_OTHERS] if rest else [])]
    title = f"{measure.capitalize()} by {told.unit} and model"
    return el("h2", title), bars("spent", title, parts, columns, _WRITTEN.get(measure, _count))


def _parts(sizes: dict[str, float], apart: Sequence[str], rest: Sequence[str]) -> list[float]:
    made = [sizes.get(model, 0.0) for model in apart]
    return [*made, sum(sizes.get(model, 0.0) for model in rest)] if rest else made


def _names(known: Sequence[str], unit: str, spending: Spending, here: tzinfo) -> list[str]:
    """Every day, week or month from the first to the last, those with nothing included."""
    if not known:
        return []
    first, last = known[0], known[-1]
    if spending.since is not None:
        first = min(first, _named(in_zone(spending.since, here).date(), unit))
    end = in_zone(spending.until, here).date() if spending.until is not None else spending.today
    last = max(last, _named(min(end, spending.today), unit))
    made = list(_between(first, last, unit))
    return made[-_MOST:]


def _between(first: str, last: str, unit: str) -> Iterator[str]:
    day = date.fromisoformat(first if unit != "month" else f"{first}-01")
    while (name := _named(day, unit)) <= last:
        yield name
        day = _after(day, unit)


def _after(day: date, unit: str) -> date:
    if unit == "month":
        return (day.replace(day=1) + 32 * _ONE_DAY).replace(day=1)
    return day + (7 if unit == "week" else 1) * _ONE_DAY


def _named(day: date, unit: str) -> str:
    if unit == "month":
        return f"{day:%Y-%m}"
    return (day - day.weekday() * _ONE_DAY if unit == "week" else day).isoformat()


def _address(name: str, unit: str, spending: Spending) -> str:
    since, until = days_of(name, unit)
    return addresses.address(
        addresses.SESSIONS, since=since, until=until, project=spending.project, model=spending.model
    )


def days_of(name: str, unit: str) -> tuple[str, str]:
    """The first and the last day of a day, week or month, as forms take them."""
    if unit == "week" and (monday := _date(name)) is not None:
        return name, (monday + 6 * _ONE_DAY).isoformat()
    return name, name


def _date(text: str) -> date | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, wherever it is
    except ValueError:  # of what says no time
        return None


def _is_dated(name: str) -> bool:
    return name[:1].isdigit()


def _count(value: float) -> str:
    return short(round(value)).strip()


def _dollars(value: float) -> str:
    return f"${value:,.0f}" if value >= _GREAT or value == int(value) else f"${value:,.2f}"


_WRITTEN: dict[str, Callable[[float], str]] = {"cost": _dollars}
