"""The usage page: a chart over time, and a table by any key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.account import KEY_DESCRIPTIONS
from threadline.errors import BadQuery
from threadline.model.text import count, short_model_name
from threadline.model.times import in_zone, parse_moment, zone_name
from threadline.model.totals import Row, Rows, Sum
from threadline.render import short_number, shorten, visible
from threadline.render.html import (
    EMPTY,
    MAX_PARTS,
    Bar,
    Child,
    Column,
    TableRow,
    bar_chart,
    cost_element,
    el,
    facts_row,
    join,
    number_element,
    project_link,
    render_table,
)
from threadline.reports import build_usage_report, fill_agent_types, usage_document, usage_notes
from threadline.web import urls
from threadline.web.archive_pool import cached_figure
from threadline.web.pages.forms import ALL, FormField, choice_chip, filter_form, form_on_error
from threadline.web.pages.sessions import all_sessions, suggested_values
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.web.request import PageRequest

_DEFAULT_DAYS = 30
_TIME_SPANS = (("7d", "7 days", 7), ("30d", "30 days", 30), ("90d", "90 days", 90), ("365d", "a year", 365))
_ONE_DAY = timedelta(days=1)


def _fields(asked: PageRequest) -> Iterator[FormField]:
    yield FormField("since", "Since", "30d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")
    yield FormField("project", "Project", "part of path", offered=suggested_values(asked.archive, "project"))
    yield FormField("model", "Model", "part of name", offered=suggested_values(asked.archive, "model"))
    yield FormField("session", "Session", "the start of its id")


@form_on_error("Usage", _fields, "by", "measure", "limit")
def usage(asked: PageRequest) -> Page:
    """What was spent."""
    here = asked.zone()
    names = _parse_keys(asked)
    measure = asked.choice("measure", tuple(MEASURES), "cost")
    spending = _parse_filter(asked, here, names)
    told = cached_figure(
        asked.archive, "usage", lambda: compute_usage(asked.archive, spending, here), spending, zone_name(here)
    )
    main = join(
        (
            el("div", el("h1", "Usage"), facts_row(_span_facts(spending, here)), class_="head"),
            _choices(asked, names, measure, is_all=spending.since is None),
            filter_form(asked, list(_fields(asked)), kept=("by", "measure", "tz", "limit")),
            _totals_block(told.total),
            el("section", render_usage_chart(told, spending, measure, here), class_="block"),
            el("section", render_usage_table(asked, told, names), class_="block"),
            el("ul", [el("li", visible(note)) for note in told.notes], class_="notes") if told.notes else EMPTY,
        )
    )
    return Page("Usage", "usage", main, told.document)


def _parse_keys(asked: PageRequest) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(asked.texts("by"))) or ("day",)
    for name in names:
        if name not in KEY_DESCRIPTIONS:
            raise BadQuery(f"by={shorten(name, 40)!r} is none of {', '.join(KEY_DESCRIPTIONS)}.")
    return names


def _parse_filter(asked: PageRequest, here: tzinfo, names: tuple[str, ...]) -> UsageFilter:
    """What is asked for; without a time, the last thirty days, whole."""
    since, until = asked.text("since"), asked.text("until")
    today = in_zone(asked.now, here).date()
    if since == ALL:
        first = None
    elif since is None and until is None:
        first = _default_since(asked, _midnight(today - (_DEFAULT_DAYS - 1) * _ONE_DAY, here))
    elif (days := {word: number for word, _label, number in _TIME_SPANS}.get(since or "")) is not None:
        first = _midnight(today - (days - 1) * _ONE_DAY, here)
    else:
        first = asked.moment("since", zone=here)
    last = asked.moment("until", end=True, zone=here)
    if first is not None and last is not None and first > last:
        raise BadQuery("since is later than until: nothing can lie between them.")
    return UsageFilter(
        names=names,
        today=today,
        since=first,
        until=last,
        project=asked.text("project"),
        model=asked.text("model"),
        session=asked.text("session"),
        limit=asked.number("limit", 200, least=1, most=2000),
    )


def _default_since(asked: PageRequest, first: datetime) -> datetime | None:
    """Where nothing was spent of late, all of it is shown."""
    return first if asked.archive.ledger().where(since=first).total.charges else None


def _midnight(day: date, here: tzinfo) -> datetime:
    return parse_moment(day.isoformat(), zone=here)


def _span_facts(spending: UsageFilter, here: tzinfo) -> list[Child]:
    first = in_zone(spending.since, here).date().isoformat() if spending.since is not None else "the beginning"
    last = in_zone(spending.until, here).date().isoformat() if spending.until is not None else "today"
    return [f"from {first} to {last}", f"days of {zone_name(here)}"]


def _choices(asked: PageRequest, names: tuple[str, ...], measure: str, *, is_all: bool) -> Child:
    since, until = asked.text("since"), asked.text("until")
    spans = [
        choice_chip(
            asked.here(since=word, until=None),
            label,
            is_chosen=until is None and (since == word or (since is None and number == _DEFAULT_DAYS and not is_all)),
        )
        for word, label, number in _TIME_SPANS
    ]
    spans.append(choice_chip(asked.here(since=ALL, until=None), "all", is_chosen=is_all and until is None))
    keys = [choice_chip(asked.here(by=name), name, is_chosen=names == (name,)) for name in KEY_DESCRIPTIONS]
    measures = [choice_chip(asked.here(measure=name), name, is_chosen=name == measure) for name in MEASURES]
    return el(
        "div",
        el("p", el("span", "Time", class_="label"), spans, class_="chips"),
        el("p", el("span", "By", class_="label"), keys, class_="chips"),
        el("p", el("span", "Chart", class_="label"), measures, class_="chips"),
        class_="ways",
    )


def _totals_block(total: Sum) -> Child:
    figures: tuple[tuple[str, Child], ...] = (
        ("cost", cost_element(total.amount, total.unpriced) or "$0.00"),
        ("tokens", number_element(total.tokens)),
        ("input", number_element(total.input)),
        ("output", number_element(total.output)),
        ("cache write", number_element(total.cache_write)),
        ("cache read", number_element(total.cache_read)),
        (count(total.charges, "reply", "replies").partition(" ")[2], f"{total.charges:,}"),
    )
    return el(
        "div", [el("div", el("b", value), el("span", name), class_="total") for name, value in figures], class_="totals"
    )


class UsageFilter(Struct, frozen=True):
    """What is asked for."""

    names: tuple[str, ...]
    today: date
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    limit: int = 200


class UsageAnswer(Struct, frozen=True):
    """The answer. `parts` are sums by a unit of time and model; `left_out` is how many values are beyond the limit.

    `openable` are the sessions among the rows that have a page, if one that leads to what is left of them.
    """

    rows: Rows
    total: Sum
    unit: str
    parts: tuple[Row, ...]
    titles: Mapping[str, str]
    openable: frozenset[str]
    notes: tuple[str, ...]
    left_out: int
    rest: Sum
    document: dict[str, Any]


def compute_usage(archive: Archive, asked: UsageFilter, here: tzinfo) -> UsageAnswer:
    """What the ledger says; it holds nothing of the ledger itself."""
    chosen = archive.ledger().where(
        since=asked.since, until=asked.until, project=asked.project, model=asked.model, session=asked.session
    )
    if "agent-type" in asked.names:
        fill_agent_types(archive.found, chosen)
    made = build_usage_report(
        chosen, asked.names, here, extra={}, limit=asked.limit, since=asked.since, until=asked.until
    )
    days = chosen.by("day", zone=here)
    unit = choose_unit(asked.names[0], [row.keys["day"] for row in days], asked.today)
    sessions = {row.keys["session"] for row in made.rows} if "session" in asked.names else set()
    return UsageAnswer(
        rows=made.rows,
        total=made.total,
        unit=unit,
        parts=chosen.by(unit, "model", zone=here).rows,
        titles=archive.titles(sessions) if sessions else {},
        openable=frozenset(_sessions_with_page(archive, sessions)) if sessions else frozenset(),
        notes=tuple(usage_notes(made)),
        left_out=made.left_out,
        rest=made.rest,
        document=usage_document(made),
    )


def _sessions_with_page(archive: Archive, sessions: Collection[str]) -> Iterator[str]:
    listed = {one.name for one in all_sessions(archive)}
    listed |= {
        transcript.session
        for home in archive.found
        for transcript in home.transcripts
        if transcript.session is not None
    }
    for session in sessions:
        if session in listed or archive.open_index().find_transcript_naming(session) is not None:
            yield session


_NO_PAGE = "This session is only named by others: there is no page of it."
_FIGURE_COLUMNS = ("Replies", "Input", "Output", "Cache write", "Cache read", "Cost")


def render_usage_table(asked: PageRequest, told: UsageAnswer, names: tuple[str, ...]) -> Child:
    """The rows, and their sum below; times are the newest first."""
    title = f"By {' and '.join(names)}"
    if not told.rows.rows:
        return el("h2", title), el("p", "Nothing was spent that fits all of that.", class_="nothing")
    columns = (*(Column(name.capitalize()) for name in names), *(Column(name, "number") for name in _FIGURE_COLUMNS))
    rows = [
        TableRow([*(_key_cell(asked, told, row, name) for name in names), *_figure_cells(row)], item=True)
        for row in _ordered_rows(told)
    ]
    foot = ["Total", *("" for _ in names[1:]), *_figure_cells(told.total)]
    more = _more_rows_link(asked, told) if told.left_out else EMPTY
    made = render_table(title, columns, rows, kind="list usage", foot=foot, hidden_caption=True)
    return join((el("h2", title), made, more))


def _ordered_rows(told: UsageAnswer) -> list[Row]:
    rows = list(told.rows.rows)
    return rows[::-1] if told.rows.by[0] in {"day", "week", "month"} else rows


def _figure_cells(row: Sum) -> list[Child]:
    counts = (row.input, row.output, row.cache_write, row.cache_read)
    return [f"{row.charges:,}", *map(number_element, counts), cost_element(row.amount, row.unpriced)]


def _more_rows_link(asked: PageRequest, told: UsageAnswer) -> Child:
    there = el("a", "Show more", href=asked.here(limit=2000))
    return el("p", f"{told.left_out:,} more are not shown; they are in the total. ", there, class_="note")


def _key_cell(asked: PageRequest, told: UsageAnswer, row: Row, name: str) -> Child:
    value = row.keys[name]
    address = _row_url(asked, name, value)
    if name == "project":
        return project_link(value, address)
    if name == "session":
        label = shorten(told.titles.get(value) or value, 90)
        if address is not None and value not in told.openable:
            return el("span", label, title=_NO_PAGE)
        return el("a", label, href=address, title=shorten(value, 80)) if address else label
    label = shorten(value, 90)
    return el("a", label, href=address) if address else label


def _row_url(asked: PageRequest, name: str, value: str) -> str | None:
    """Where a row leads; None for what no list can be asked for."""
    if value.startswith("("):  # what has no such value
        return None
    if name == "session":
        return urls.session_url(value)
    if name == "tool":
        return urls.build_url(urls.CALLS, tool=value, **_carried_filters(asked, "project", "since", "until"))
    if name in {"day", "week", "month"}:
        since, until = unit_days(value, name)
        return urls.build_url(urls.SESSIONS, since=since, until=until, **_carried_filters(asked, "project", "model"))
    if name in {"project", "model", "branch"}:
        kept = {
            key: text
            for key, text in _carried_filters(asked, "project", "model", "since", "until").items()
            if key != name
        }
        return urls.build_url(urls.SESSIONS, **{name: value}, **kept)
    return None


def _carried_filters(asked: PageRequest, *names: str) -> dict[str, str]:
    """What else was asked for and belongs to both pages."""
    return {name: text for name in names if (text := asked.text(name)) and text != ALL}


_DAY = timedelta(days=1)
_MAX_DAYS, _MAX_WEEKS = 120, 120
_MAX_COLUMNS = 600
_OTHER_MODELS = "others"
_WHOLE_DOLLARS_FROM = 100  # dollars from which on cents say nothing

MEASURES: dict[str, Callable[[Row], Decimal | int]] = {
    "cost": lambda row: row.amount or 0,
    "tokens": lambda row: row.tokens,
    "output": lambda row: row.output,
    "replies": lambda row: row.charges,
}
"""What a chart can show the size of."""


def choose_unit(name: str, days: Sequence[str], today: date) -> str:
    """What a column is: what was asked for, or else days, as long as there is room for them."""
    if name in {"day", "week", "month"} and name != "day":
        return name
    dated = sorted(filter(None, map(_parse_date, days)))
    span = (max(today, dated[-1]) - dated[0]).days + 1 if dated else 0
    return "day" if span <= _MAX_DAYS else "week" if span <= 7 * _MAX_WEEKS else "month"


def render_usage_chart(told: UsageAnswer, spending: UsageFilter, measure: str, here: tzinfo) -> Child:
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
    apart = ordered[: MAX_PARTS - 1] if len(ordered) > MAX_PARTS else ordered
    rest = ordered[len(apart) :]
    columns = [
        Bar(name, _column_parts(sizes.get(name, {}), apart, rest), _column_url(name, told.unit, spending))
        for name in _column_names(sorted(filter(_is_date_name, sizes)), told.unit, spending, here)
    ]
    parts = [*(shorten(short_model_name(model), 40) for model in apart), *([_OTHER_MODELS] if rest else [])]
    title = f"{measure.capitalize()} by {told.unit} and model"
    return el("h2", title), bar_chart("spent", title, parts, columns, _FORMAT_OF_MEASURE.get(measure, _format_count))


def _column_parts(sizes: dict[str, float], apart: Sequence[str], rest: Sequence[str]) -> list[float]:
    made = [sizes.get(model, 0.0) for model in apart]
    return [*made, sum(sizes.get(model, 0.0) for model in rest)] if rest else made


def _column_names(known: Sequence[str], unit: str, spending: UsageFilter, here: tzinfo) -> list[str]:
    """Every day, week or month from the first to the last, those with nothing included."""
    if not known:
        return []
    first, last = known[0], known[-1]
    if spending.since is not None:
        first = min(first, _unit_name(in_zone(spending.since, here).date(), unit))
    end = in_zone(spending.until, here).date() if spending.until is not None else spending.today
    last = max(last, _unit_name(min(end, spending.today), unit))
    made = list(_units_between(first, last, unit))
    return made[-_MAX_COLUMNS:]


def _units_between(first: str, last: str, unit: str) -> Iterator[str]:
    day = date.fromisoformat(first if unit != "month" else f"{first}-01")
    with suppress(OverflowError):  # after the year 9999
        while (name := _unit_name(day, unit)) <= last:
            yield name
            day = _next_unit(day, unit)


def _next_unit(day: date, unit: str) -> date:
    if unit == "month":
        return (day.replace(day=1) + 32 * _DAY).replace(day=1)
    return day + (7 if unit == "week" else 1) * _DAY


def _unit_name(day: date, unit: str) -> str:
    if unit == "month":
        return f"{day:%Y-%m}"
    return (day - day.weekday() * _DAY if unit == "week" else day).isoformat()


def _column_url(name: str, unit: str, spending: UsageFilter) -> str:
    since, until = unit_days(name, unit)
    return urls.build_url(urls.SESSIONS, since=since, until=until, project=spending.project, model=spending.model)


def unit_days(name: str, unit: str) -> tuple[str, str]:
    """The first and the last day of a day, week or month, as forms take them."""
    if unit == "week" and (monday := _parse_date(name)) is not None:
        return name, (monday + 6 * _DAY).isoformat()
    return name, name


def _parse_date(text: str) -> date | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, wherever it is
    except ValueError:  # of what says no time
        return None


def _is_date_name(name: str) -> bool:
    return name[:1].isdigit()


def _format_count(value: float) -> str:
    return short_number(round(value)).strip()


def _format_dollars(value: float) -> str:
    return f"${value:,.0f}" if value >= _WHOLE_DOLLARS_FROM or value == int(value) else f"${value:,.2f}"


_FORMAT_OF_MEASURE: dict[str, Callable[[float], str]] = {"cost": _format_dollars}
