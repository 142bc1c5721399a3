"""The usage page: a chart over time, and a table by any key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS, measure_budgets, read_budgets
from threadline.errors import BadQuery, Error
from threadline.files import BUDGETS, settings_file
from threadline.model.budgets import BudgetUse
from threadline.model.ledger import Key, Row, Rows, Sum
from threadline.model.text import count, format_amount, format_tokens, last_names, noun_for, short_model_name
from threadline.model.times import in_zone, zone_name
from threadline.render import shorten, visible
from threadline.render.html import (
    EMPTY,
    MAX_PARTS,
    Bar,
    Child,
    Column,
    TableRow,
    Tile,
    amount_element,
    bar_chart,
    chip_row,
    choice_chip,
    draw_treemap,
    el,
    facts_row,
    figures_row,
    join,
    number_element,
    project_link,
    render_table,
)
from threadline.reports import (
    add_session_key,
    build_usage_report,
    thread_key,
    turn_key,
    usage_document,
    usage_notes,
)
from threadline.web import urls
from threadline.web.pages.forms import ALL, FormField, filter_form, form_on_error
from threadline.web.pages.period import Period, parse_period, period_chips
from threadline.web.pages.sessions import all_sessions, suggested_values
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.account import Ledger
    from threadline.archive import Archive
    from threadline.model.homes import Found
    from threadline.web.request import PageRequest

_DAY = timedelta(days=1)
_TIME_KEYS = frozenset({"day", "week", "month"})
_KEYS = (*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS)
_MAIN_KEYS = ("day", "project", "session", "model", "tool")
"""The keys that are offered first."""
_NO_PAGE = "Other sessions refer to this one, but its transcript does not exist."
_FIGURE_COLUMNS = ("Charges", "Input", "Output", "Cache write", "Cache read", "Amount")
_MAIN_FIGURES = frozenset(("Charges", "Output", "Amount"))
"""The columns that a phone shows."""
_MAX_ROWS = 2000
_MAX_DAYS, _MAX_WEEKS = 120, 120
_MAX_COLUMNS = 600
_OTHERS = "others"
_MAX_PROJECT_TILES, _MAX_SESSION_TILES = 14, 24

MEASURES: dict[str, Callable[[Row], Decimal | int]] = {
    "amount": lambda row: row.amount or 0,
    "tokens": lambda row: row.tokens,
    "output": lambda row: row.output,
    "charges": lambda row: row.charges,
}
"""What the chart can show."""
_FORMER_MEASURES = {"cost": "amount", "replies": "charges"}


class UsageFilter(Struct, frozen=True):
    """Which charges are counted, and by which keys they are grouped."""

    keys: tuple[str, ...]
    today: date
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    limit: int = 200
    exact_tools: bool = False


class UsageAnswer(Struct, frozen=True):
    """What the page shows. It holds nothing of the ledger, so it can be cached.

    `prompts` are those of turns, by session and turn. `parts` are sums by `unit` of time and `part_key`, for the chart;
    `shares` are those of the treemap.
    `openable` are the sessions among the rows that have a page. `left_out` is the number of rows beyond the limit.
    """

    rows: Rows
    total: Sum
    unit: str
    part_key: str
    parts: tuple[Row, ...]
    shares: tuple[Row, ...]
    titles: Mapping[str, str]
    prompts: Mapping[tuple[str, str], str]
    openable: frozenset[str]
    notes: tuple[str, ...]
    left_out: int
    document: dict[str, Any]


def _fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("since", "Since", "30d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")
    yield FormField("project", "Project", "part of path", suggestions=suggested_values(request, "project"))
    yield FormField("model", "Model", "part of name", suggestions=suggested_values(request, "model"))
    yield FormField("session", "Session", "start of its id")


@form_on_error("Usage", "usage", _fields, "by", "measure", "limit", "exact_tools")
def usage_page(request: PageRequest) -> Page:
    """Tokens and cost over time, and by any key."""
    zone = request.zone()
    keys = _parse_keys(request)
    measure = request.choice("measure", tuple(MEASURES), "amount", _FORMER_MEASURES)
    period = parse_period(request)
    usage_filter = _parse_filter(request, keys, period)
    usage = request.cached("usage", lambda: compute_usage(request, usage_filter), usage_filter, zone_name(zone))
    is_part = usage_filter.session is not None or usage_filter.model is not None
    budgets = [] if is_part else current_budgets(request)
    main = join(
        (
            el(
                "div",
                el("h1", "Usage"),
                facts_row((*period.describe(zone), el("a", "Five-hour windows", href=urls.build_url(urls.BLOCKS)))),
                class_="head",
            ),
            usage_choices(request, keys, measure, period),
            filter_form(request, list(_fields(request)), preserve=("by", "measure", "limit", "exact_tools")),
            totals_block(usage.total),
            budget_list(budgets),
            el("section", render_usage_chart(usage, usage_filter, measure, zone), class_="block"),
            treemap_block(request, usage, {brief.name for brief in all_sessions(request)}),
            el("section", render_usage_table(request, usage, keys), class_="block"),
            el("ul", [el("li", visible(note)) for note in usage.notes], class_="notes") if usage.notes else EMPTY,
        )
    )
    return Page("Usage", "usage", main, {**usage.document, "budgets": [use.record() for use in budgets]})


def current_budgets(request: PageRequest) -> list[BudgetUse]:
    """What is left of the user's budgets. A wrong file must not hide the page."""
    if not settings_file(BUDGETS).exists():
        return []
    try:
        budgets = read_budgets()
    except Error:
        return []
    return measure_budgets(budgets, request.archive.ledger(calls=False), now=request.now, zone=request.zone())


def budget_list(budgets: Sequence[BudgetUse]) -> Child:
    """Render what is left of each budget."""
    if not budgets:
        return EMPTY
    items = [
        el(
            "li",
            el("b", f"Budget {use.budget}: "),
            el("span", use.describe(), class_="bad" if use.is_over else None),
        )
        for use in budgets
    ]
    return el("ul", items, class_="notes budgets")


def _parse_keys(request: PageRequest) -> tuple[str, ...]:
    keys = tuple(dict.fromkeys(request.texts("by"))) or ("day",)
    for key in keys:
        if key not in _KEYS:
            raise BadQuery(f"by={shorten(key, 40)!r} must be one of {', '.join(_KEYS)}.")
    return _complete_keys(request, keys)


def _complete_keys(request: PageRequest, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(add_session_key(keys, is_one_session=request.text("session") is not None))


def _parse_filter(request: PageRequest, keys: tuple[str, ...], period: Period) -> UsageFilter:
    return UsageFilter(
        keys=keys,
        today=period.today,
        since=period.since,
        until=period.until,
        project=request.text("project"),
        model=request.text("model"),
        session=request.text("session"),
        limit=request.number("limit", 200, least=1, most=_MAX_ROWS),
        exact_tools=request.flag("exact_tools"),
    )


def usage_choices(
    request: PageRequest,
    keys: tuple[str, ...],
    measure: str,
    period: Period,
    *,
    choices: Sequence[str] = _KEYS,
    main: Sequence[str] = _MAIN_KEYS,
) -> Child:
    """Links to other periods, keys and measures. `main` are the keys that are offered first."""
    chips = {
        key: choice_chip(request.url_with(by=key), key, is_chosen=keys == _complete_keys(request, (key,)))
        for key in choices
    }
    others = [key for key in choices if key not in main]
    is_other = any(keys == _complete_keys(request, (key,)) for key in others)
    more = el("details", el("summary", "more"), [chips[key] for key in others], class_="more-keys", open=is_other)
    groups = [*(chips[key] for key in main), more]
    measures = [choice_chip(request.url_with(measure=name), name, is_chosen=name == measure) for name in MEASURES]
    return el(
        "div",
        period_chips(request, period),
        el("div", el("span", "By", class_="label"), groups, class_="chips"),
        chip_row("Chart", measures),
        class_="links",
    )


def totals_block(total: Sum) -> Child:
    """Render a sum as large figures."""
    figures: tuple[tuple[str, Child], ...] = (
        ("amount", amount_element(total.amount, total.unpriced) or "$0.00"),
        ("tokens", number_element(total.tokens)),
        ("input", number_element(total.input)),
        ("output", number_element(total.output)),
        ("cache write", number_element(total.cache_write)),
        ("cache read", number_element(total.cache_read)),
        (noun_for(total.charges, "charge"), f"{total.charges:,}"),
    )
    return figures_row((value, name, None) for name, value in figures)


def compute_usage(request: PageRequest, usage_filter: UsageFilter) -> UsageAnswer:
    """Ask the ledger for what the page shows."""
    archive, keys = request.archive, usage_filter.keys
    ledger = archive.ledger().where(
        since=usage_filter.since,
        until=usage_filter.until,
        project=usage_filter.project,
        model=usage_filter.model,
        session=usage_filter.session,
    )
    return answer_usage(
        ledger,
        usage_filter,
        request.zone(),
        extra=_session_keys(archive, ledger, keys),
        found=archive.found if "session" in keys else (),
        titles=archive.titles,
        with_page=lambda sessions: frozenset(_sessions_with_page(request, archive, sessions)),
    )


def answer_usage(
    ledger: Ledger,
    usage_filter: UsageFilter,
    zone: tzinfo,
    *,
    extra: Mapping[str, Key],
    found: Iterable[Found] = (),
    titles: Callable[[Collection[str]], Mapping[str, str]],
    with_page: Callable[[Collection[str]], frozenset[str]],
) -> UsageAnswer:
    """Compute what the page shows of a ledger.

    `extra` are the functions of keys that a ledger does not have. `titles` returns the titles of sessions, and
    `with_page` those of them that have a page.
    """
    keys = usage_filter.keys
    report = build_usage_report(
        ledger,
        keys,
        zone,
        extra=extra,
        limit=usage_filter.limit,
        since=usage_filter.since,
        until=usage_filter.until,
        found=found,
        exact_tools=usage_filter.exact_tools,
    )
    unit = choose_unit(keys[0], [row.keys["day"] for row in ledger.by("day", zone=zone)], usage_filter.today)
    is_part = keys[0] in {*KEY_DESCRIPTIONS, *extra} - {*_TIME_KEYS, "hour", *SESSION_KEY_DESCRIPTIONS}
    part_key = keys[0] if is_part else "model"
    shares = ledger.by("project", "session").rows if usage_filter.session is None else ()
    sessions = {row.keys["session"] for row in report.rows} if "session" in keys else set()
    largest = {row.keys["session"] for row in _largest(shares, _MAX_SESSION_TILES * 4)}
    titled = sessions | largest
    return UsageAnswer(
        rows=report.rows,
        total=report.total,
        unit=unit,
        part_key=part_key,
        parts=ledger.by(unit, part_key, zone=zone, extra=extra).rows,
        shares=tuple(shares),
        titles=titles(titled) if titled else {},
        prompts=report.prompts,
        openable=with_page(sessions) if sessions else frozenset(),
        notes=tuple(usage_notes(report)),
        left_out=report.left_out,
        document=usage_document(report),
    )


def _largest(rows: Iterable[Row], most: int) -> list[Row]:
    return sorted(rows, key=lambda row: (-(row.amount or 0), *row.keys.values()))[:most]


def _session_keys(archive: Archive, ledger: Ledger, keys: Collection[str]) -> dict[str, Key]:
    """The functions of those keys that need the sessions to be read."""
    functions: dict[str, Key] = {}
    # A server has threads, so it must not fork workers.
    if "thread" in keys:
        functions["thread"] = thread_key(archive.found, ledger, jobs=1)
    if "turn" in keys:
        functions["turn"] = turn_key(archive.found, ledger, jobs=1)
    return functions


def _sessions_with_page(request: PageRequest, archive: Archive, sessions: Collection[str]) -> Iterator[str]:
    """The sessions that have a page, even if that page only links to the transcripts of their agents."""
    listed = {brief.name for brief in all_sessions(request)}
    listed |= {
        transcript.session
        for home in archive.found
        for transcript in home.transcripts
        if transcript.session is not None
    }
    for session in sessions:
        if session in listed or archive.open_index().find_transcript_naming(session) is not None:
            yield session


def render_usage_table(request: PageRequest, usage: UsageAnswer, keys: tuple[str, ...]) -> Child:
    """Render the rows and their total; times newest first."""
    title = f"By {' and '.join(keys)}"
    rows = list(usage.rows.rows)
    if not rows:
        return el("h2", title), el("p", "No matching usage. Remove a filter.", class_="nothing")
    if usage.rows.by[0] in _TIME_KEYS:
        rows.reverse()
    columns = (
        *(Column(key.capitalize()) for key in keys),
        *(Column(name, "number" if name in _MAIN_FIGURES else "number minor") for name in _FIGURE_COLUMNS),
    )
    cells = [
        TableRow(
            [
                *(_key_cell(request, usage, row, key) for key in keys),
                *_figure_cells(row, _receipt_url(usage, row, keys)),
            ],
            item=True,
        )
        for row in rows
    ]
    foot = ["Total", *("" for _ in keys[1:]), *_figure_cells(usage.total)]
    table = render_table(title, columns, cells, kind="list usage", foot=foot, hidden_caption=True)
    return join((el("h2", title), table, _more_rows_link(request, usage) if usage.left_out else EMPTY))


def _figure_cells(row: Sum, receipt_url: str | None = None) -> list[Child]:
    counts = (row.input, row.output, row.cache_write, row.cache_read)
    amount = amount_element(row.amount, row.unpriced)
    if receipt_url is not None and row.charges:
        amount = el("a", amount, href=receipt_url, title="How this was counted")
    return [f"{row.charges:,}", *map(number_element, counts), amount]


def _receipt_url(usage: UsageAnswer, row: Row, keys: tuple[str, ...]) -> str | None:
    """The receipt of a row: rows of one day or one session have one."""
    value = row.keys[keys[0]]
    if not urls.is_offered(urls.RECEIPT):
        return None
    if keys == ("day",) and parse_date(value) is not None:
        return urls.build_url(urls.RECEIPT, day=value)
    return urls.build_url(urls.RECEIPT, session=value) if keys == ("session",) and value in usage.openable else None


def _more_rows_link(request: PageRequest, usage: UsageAnswer) -> Child:
    link = el("a", "Show more", href=request.url_with(limit=_MAX_ROWS))
    return el("p", f"{count(usage.left_out, 'more row')}, included in the total. ", link, class_="note")


def _key_cell(request: PageRequest, usage: UsageAnswer, row: Row, key: str) -> Child:
    value = row.keys[key]
    url = _row_url(request, key, value)
    if key == "project":
        return project_link(value, url)
    if key == "session":
        label = shorten(usage.titles.get(value) or value, 90)
        if url is not None and value not in usage.openable:
            return el("span", label, title=_NO_PAGE)
        return el("a", label, href=url, title=shorten(value, 80)) if url else label
    if key == "turn":
        prompt = usage.prompts.get((row.keys.get("session", ""), value), "")
        return shorten(f"{value}  {prompt}".strip(), 90)
    label = shorten("abandoned branch" if (key, value) == ("thread", "left branch") else value, 90)
    return el("a", label, href=url) if url else label


def _row_url(request: PageRequest, key: str, value: str) -> str | None:
    """The list that a row links to; None if there is no list for it."""
    if value.startswith("(") or (key == "tool" and not urls.is_offered(urls.CALLS)):  # a placeholder, or no list
        return None
    if key == "session":
        return urls.session_url(value)
    if key == "tool":
        return urls.build_url(urls.CALLS, tool=value, **_current_filters(request, "project", "since", "until"))
    if key in _TIME_KEYS:
        since, until = unit_days(value, key)
        return urls.build_url(
            urls.SESSIONS, since=since, until=until, **_current_filters(request, "project", "model", "person", "team")
        )
    if key in {"project", "model", "branch", "person", "team"}:
        filters = _current_filters(request, "project", "model", "person", "team", "since", "until")
        return urls.build_url(urls.SESSIONS, **{**filters, key: value})
    return None


def _current_filters(request: PageRequest, *names: str) -> dict[str, str]:
    """The current filters of these names, which the linked page also has."""
    return {name: text for name in names if (text := request.text(name)) and text != ALL}


def choose_unit(key: str, days: Sequence[str], today: date) -> str:
    """Choose what a column of the chart is: the key if it is a time, otherwise days as long as they fit."""
    if key in {"week", "month"}:
        return key
    dates = sorted(filter(None, map(parse_date, days)))
    span = (max(today, dates[-1]) - dates[0]).days + 1 if dates else 0
    return "day" if span <= _MAX_DAYS else "week" if span <= 7 * _MAX_WEEKS else "month"


def render_usage_chart(usage: UsageAnswer, usage_filter: UsageFilter, measure: str, zone: tzinfo) -> Child:
    """Render the chart and its table."""
    measure_of = MEASURES[measure]
    values: dict[str, float] = {}
    columns: dict[str, dict[str, float]] = {}
    for row in usage.parts:
        part, value = row.keys[usage.part_key], float(measure_of(row))
        values[part] = values.get(part, 0) + value
        columns.setdefault(row.keys[usage.unit], {})[part] = value
    ordered = sorted((part for part in values if values[part] > 0), key=lambda part: (-values[part], part))
    if not ordered:
        return el("p", "Nothing to show: there is no usage in this range, or its price is unknown.", class_="nothing")
    separate = ordered[: MAX_PARTS - 1] if len(ordered) > MAX_PARTS else ordered
    others = ordered[len(separate) :]
    names = _column_names(sorted(name for name in columns if name[:1].isdigit()), usage.unit, usage_filter, zone)
    bars = [
        Bar(
            name,
            _bar_parts(columns.get(name, {}), separate, others),
            _column_url(name, usage.unit, usage_filter),
            _axis_label(name, usage.unit, names[-1]),
        )
        for name in names
    ]
    parts = [*(_part_name(usage, part) for part in separate), *([_OTHERS] if others else [])]
    title = f"{measure.capitalize()} by {usage.unit} and {usage.part_key}"
    return el("h2", title), bar_chart(
        "spent", title, parts, bars, format_amount if measure == "amount" else _format_count
    )


def _part_name(usage: UsageAnswer, part: str) -> str:
    """The name of a part in the legend."""
    match usage.part_key:
        case "model":
            return shorten(short_model_name(part), 40)
        case "session":
            return shorten(usage.titles.get(part) or part, 40)
        case "project" | "home" | "transcript":
            return shorten(last_names(part), 40)
        case _:
            return shorten(part, 40)


def _axis_label(name: str, unit: str, last: str) -> str:
    """A day, week or month on the axis: `21 Jul`; with the year if it is not that of the last column."""
    day = parse_date(name if unit != "month" else f"{name}-01")
    if day is None:
        return name
    year = "" if name[:4] == last[:4] else f" {day.year}"
    return f"{day:%b}{year}" if unit == "month" else f"{day.day} {day:%b}{year}"


def treemap_block(request: PageRequest, usage: UsageAnswer, listed: Collection[str]) -> Child:
    """The amounts by project and session. A project leads to its sessions, a session to its turns and their parts.

    `listed` are the sessions that have a page.
    """
    tiles = list(_project_tiles(request, usage, listed))
    if not tiles:
        return EMPTY
    if len(tiles) == 1 and tiles[0].tiles:
        tiles = list(tiles[0].tiles)
    total = format_amount(sum((row.amount or Decimal(0) for row in usage.shares), Decimal(0)))
    description = f"{total} in {count(len(tiles), 'rectangle')}. The tables by project and by session list the same."
    treemap = draw_treemap("shares", "Amount by project and session", description, tiles)
    return el("section", el("h2", "Where it went"), treemap, class_="block")


def _project_tiles(request: PageRequest, usage: UsageAnswer, listed: Collection[str]) -> Iterator[Tile]:
    projects: dict[str, list[Row]] = {}
    for row in usage.shares:
        if row.amount:
            projects.setdefault(row.keys["project"], []).append(row)
    sums = {name: sum((row.amount or Decimal(0) for row in rows), Decimal(0)) for name, rows in projects.items()}
    ordered = sorted(projects, key=lambda name: (-sums[name], name))
    for name in ordered[:_MAX_PROJECT_TILES]:
        label = shorten(last_names(name), 60)
        url = request.url_with(project=name, by="session")
        yield _tile(label, sums[name], url, list(_session_tiles(usage, projects[name], url, listed)))
    rest = sum((sums[name] for name in ordered[_MAX_PROJECT_TILES:]), Decimal(0))
    if rest:
        yield _tile(_OTHERS, rest, request.url_with(by="project"))


def _session_tiles(
    usage: UsageAnswer, rows: Sequence[Row], project_url: str, listed: Collection[str]
) -> Iterator[Tile]:
    largest = _largest(rows, _MAX_SESSION_TILES)
    for row in largest:
        session = row.keys["session"]
        url = urls.session_url(session, "why") if session in listed else None
        yield _tile(shorten(usage.titles.get(session) or session, 60), row.amount or Decimal(0), url)
    shown = set(map(id, largest))
    rest = sum((row.amount or Decimal(0) for row in rows if id(row) not in shown), Decimal(0))
    if rest:
        yield _tile(_OTHERS, rest, project_url)


def _tile(label: str, amount: Decimal, url: str | None, tiles: Sequence[Tile] = ()) -> Tile:
    text = format_amount(amount)
    return Tile(label, float(amount), text, f"{label}: {text}", url, tiles)


def _bar_parts(values: Mapping[str, float], separate: Sequence[str], others: Sequence[str]) -> list[float]:
    parts = [values.get(model, 0.0) for model in separate]
    return [*parts, sum(values.get(model, 0.0) for model in others)] if others else parts


def _column_names(known: Sequence[str], unit: str, usage_filter: UsageFilter, zone: tzinfo) -> list[str]:
    """Every day, week or month of the period; without a start, from the first to the last with usage."""
    if not known:
        return []
    first, last = known[0], known[-1]
    if usage_filter.since is not None:
        first = min(first, _unit_name(in_zone(usage_filter.since, zone).date(), unit))
        until = in_zone(usage_filter.until, zone).date() if usage_filter.until is not None else usage_filter.today
        last = max(last, _unit_name(min(until, usage_filter.today), unit))
    days = {"month": 31, "week": 7}.get(unit, 1) * _MAX_COLUMNS  # times may be thousands of years apart
    last_day = date.fromisoformat(last if unit != "month" else f"{last}-01")
    first = max(first, _unit_name(last_day - min(days, (last_day - date.min).days) * _DAY, unit))
    return list(_units_between(first, last, unit))[-_MAX_COLUMNS:]


def _units_between(first: str, last: str, unit: str) -> Iterator[str]:
    day = date.fromisoformat(first if unit != "month" else f"{first}-01")
    name = _unit_name(day, unit)
    while name <= last:
        yield name
        day = _add_days(day.replace(day=1), 32) if unit == "month" else _add_days(day, 7 if unit == "week" else 1)
        previous, name = name, _unit_name(day, unit)
        if name == previous:  # the calendar ends here
            return


def _add_days(day: date, days: int) -> date:
    """Add days to a date, but not beyond the last date that Python knows, in year 9999."""
    return day + min(days, (date.max - day).days) * _DAY


def _unit_name(day: date, unit: str) -> str:
    if unit == "month":
        return day.isoformat()[:7]
    return (day - min(day.weekday(), (day - date.min).days) * _DAY if unit == "week" else day).isoformat()


def _column_url(name: str, unit: str, usage_filter: UsageFilter) -> str:
    since, until = unit_days(name, unit)
    return urls.build_url(
        urls.SESSIONS, since=since, until=until, project=usage_filter.project, model=usage_filter.model
    )


def unit_days(name: str, unit: str) -> tuple[str, str]:
    """The first and the last day of a day, week or month, as the filters accept them."""
    if unit == "week" and (monday := parse_date(name)) is not None:
        return name, _add_days(monday, 6).isoformat()
    return name, name


def parse_date(text: str) -> date | None:
    """Parse a date like `2026-11-03`; None for the placeholder of a missing date."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, in any zone
    except ValueError:
        return None


def _format_count(value: float) -> str:
    return format_tokens(round(value))
