"""Usage: what was spent, as a chart by time and as a table by whatever was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from threadline.account.keys import WHAT_KEYS_MEAN
from threadline.errors import BadQuery
from threadline.model.sum import Sum
from threadline.model.when import moment
from threadline.model.zone import in_zone, zone_name
from threadline.render.figures import count
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.said import money, row_of_facts, short
from threadline.render.html.words import one, shown
from threadline.web.page import Page
from threadline.web.pages.asking_again import asking_again
from threadline.web.pages.filters import ALL, Field, chosen, filters
from threadline.web.pages.recalled import recalled
from threadline.web.pages.sessions import values
from threadline.web.pages.usage_answer import Spending, told_of
from threadline.web.pages.usage_chart import MEASURES, chart
from threadline.web.pages.usage_table import usage_table

if TYPE_CHECKING:
    from threadline.web.asked import Asked

_USUAL = 30
_SPANS = (("7d", "7 days", 7), ("30d", "30 days", 30), ("90d", "90 days", 90), ("365d", "a year", 365))
_ONE_DAY = timedelta(days=1)


def _fields(asked: Asked) -> Iterator[Field]:
    yield Field("since", "Since", "30d, 2026-11-03")
    yield Field("until", "Until", "yesterday")
    yield Field("project", "Project", "part of path", offered=values(asked.archive, "project"))
    yield Field("model", "Model", "part of name", offered=values(asked.archive, "model"))
    yield Field("session", "Session", "the start of its id")


@asking_again("Usage", _fields, "by", "measure", "limit")
def usage(asked: Asked) -> Page:
    """What was spent."""
    here = asked.zone()
    names = _names(asked)
    measure = asked.choice("measure", tuple(MEASURES), "cost")
    spending = _spending(asked, here, names)
    told = recalled(asked.archive, "usage", lambda: told_of(asked.archive, spending, here), spending, zone_name(here))
    main = join(
        (
            el("div", el("h1", "Usage"), row_of_facts(_span(spending, here)), class_="head"),
            _ways(asked, names, measure, is_all=spending.since is None),
            filters(asked, list(_fields(asked)), kept=("by", "measure", "tz", "limit")),
            _totals(told.total),
            el("section", chart(told, spending, measure, here), class_="block"),
            el("section", usage_table(asked, told, names), class_="block"),
            el("ul", [el("li", shown(note)) for note in told.notes], class_="notes") if told.notes else EMPTY,
        )
    )
    return Page("Usage", "usage", main, told.document)


def _names(asked: Asked) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(asked.texts("by"))) or ("day",)
    for name in names:
        if name not in WHAT_KEYS_MEAN:
            raise BadQuery(f"by={one(name, 40)!r} is none of {', '.join(WHAT_KEYS_MEAN)}.")
    return names


def _spending(asked: Asked, here: tzinfo, names: tuple[str, ...]) -> Spending:
    """What is asked for; without a time, the last thirty days, whole."""
    since, until = asked.text("since"), asked.text("until")
    today = in_zone(asked.now, here).date()
    if since == ALL:
        first = None
    elif since is None and until is None:
        first = _usual(asked, _midnight(today - (_USUAL - 1) * _ONE_DAY, here))
    elif (days := {word: number for word, _label, number in _SPANS}.get(since or "")) is not None:
        first = _midnight(today - (days - 1) * _ONE_DAY, here)
    else:
        first = asked.moment("since", zone=here)
    last = asked.moment("until", end=True, zone=here)
    if first is not None and last is not None and first > last:
        raise BadQuery("since is later than until: nothing can lie between them.")
    return Spending(
        names=names,
        today=today,
        since=first,
        until=last,
        project=asked.text("project"),
        model=asked.text("model"),
        session=asked.text("session"),
        limit=asked.number("limit", 200, least=1, most=2000),
    )


def _usual(asked: Asked, first: datetime) -> datetime | None:
    """Where nothing was spent of late, all of it is shown."""
    return first if asked.archive.ledger().where(since=first).total.charges else None


def _midnight(day: date, here: tzinfo) -> datetime:
    return moment(day.isoformat(), zone=here)


def _span(spending: Spending, here: tzinfo) -> list[Child]:
    first = in_zone(spending.since, here).date().isoformat() if spending.since is not None else "the beginning"
    last = in_zone(spending.until, here).date().isoformat() if spending.until is not None else "today"
    return [f"from {first} to {last}", f"days of {zone_name(here)}"]


def _ways(asked: Asked, names: tuple[str, ...], measure: str, *, is_all: bool) -> Child:
    since, until = asked.text("since"), asked.text("until")
    spans = [
        chosen(
            asked.here(since=word, until=None),
            label,
            is_chosen=until is None and (since == word or (since is None and number == _USUAL and not is_all)),
        )
        for word, label, number in _SPANS
    ]
    spans.append(chosen(asked.here(since=ALL, until=None), "all", is_chosen=is_all and until is None))
    keys = [chosen(asked.here(by=name), name, is_chosen=names == (name,)) for name in WHAT_KEYS_MEAN]
    measures = [chosen(asked.here(measure=name), name, is_chosen=name == measure) for name in MEASURES]
    return el(
        "div",
        el("p", el("span", "Time", class_="label"), spans, class_="chips"),
        el("p", el("span", "By", class_="label"), keys, class_="chips"),
        el("p", el("span", "Chart", class_="label"), measures, class_="chips"),
        class_="ways",
    )


def _totals(total: Sum) -> Child:
    figures: tuple[tuple[str, Child], ...] = (
        ("cost", money(total.amount, total.unpriced) or "$0.00"),
        ("tokens", short(total.tokens)),
        ("input", short(total.input)),
        ("output", short(total.output)),
        ("cache write", short(total.cache_write)),
        ("cache read", short(total.cache_read)),
        (count(total.charges, "reply", "replies").partition(" ")[2], f"{total.charges:,}"),
    )
    return el(
        "div", [el("div", el("b", value), el("span", name), class_="total") for name, value in figures], class_="totals"
    )
