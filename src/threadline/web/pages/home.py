"""The home page: totals, activity, recent and expensive sessions, projects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.model.ledger import Sum
from threadline.model.text import count, format_amount
from threadline.model.times import in_zone, parse_moment, zone_name
from threadline.render.html import (
    EMPTY,
    SHORT_COLUMNS,
    Child,
    Column,
    DayActivity,
    SessionRow,
    activity_calendar,
    amount_element,
    el,
    join,
    number_element,
    project_link,
    render_table,
    session_table,
    time_element,
    weekday_hour_map,
)
from threadline.web import urls
from threadline.web.pages.sessions import all_sessions, project_url, session_cost, session_rows
from threadline.web.pages.usage import parse_date
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.index import Activity, SessionBrief
    from threadline.web.request import PageRequest

_MAX_RECENT, _MAX_EXPENSIVE, _MAX_PROJECTS = 12, 8, 12
_SPANS = (("Today", "today"), ("7 days", "7d"), ("30 days", "30d"), ("All", None))


class TimeSpan(Struct, frozen=True):
    """A span of time up to now: what was done in it, and what it cost."""

    name: str
    since: str | None
    done: Activity
    spent: Sum


class ProjectRow(Struct, frozen=True):
    """A project: its sessions, when it was last used, and what it cost."""

    project: str
    sessions: int
    last: datetime | None
    spent: Sum


class WorkCalendar(Struct, frozen=True):
    """Charges, sessions and amount of each day; and charges by weekday and hour."""

    days: Mapping[str, tuple[int, int, Sum]]
    hours: Mapping[tuple[int, int], int]


def home_page(request: PageRequest) -> Page:
    """Everything at a glance."""
    zone = request.zone()
    name = zone_name(zone)
    today = in_zone(request.now, zone).date()
    spans = request.cached("spans", lambda: list(_spans(request, zone)), name, today)
    calendar = request.cached("calendar", lambda: _work_calendar(request, zone), name)
    top = session_rows(request, _most_expensive(request))
    recent = session_rows(request, all_sessions(request)[:_MAX_RECENT])
    projects = request.cached("projects", lambda: _project_rows(request))
    problems = request.archive.open_index().problem_counts()
    main = join(
        (
            el("h1", "threadline", class_="visually-hidden"),
            _totals_section(spans, problems),
            _block("Activity", _calendar_chart(calendar, today)),
            _block(f"Busiest hours ({name})", weekday_hour_map(calendar.hours, unit="charges", zone=name)),
            _block(
                "Recent sessions",
                _session_table("Recent sessions", recent, zone),
                urls.build_url(urls.SESSIONS),
                "All sessions",
            ),
            _block("Projects", _project_table(projects, zone), urls.build_url(urls.USAGE, by="project"), "Usage"),
            _block(
                "Most expensive sessions",
                _session_table("Most expensive sessions", top, zone),
                urls.build_url(urls.SESSIONS, sort="amount"),
                "All by amount",
            ),
        )
    )
    data: dict[str, Any] = {
        "spans": spans,
        "days": {
            day: {"charges": charges, "sessions": sessions, "spent": spent}
            for day, (charges, sessions, spent) in calendar.days.items()
        },
        "hours": [
            {"weekday": day, "hour": hour, "charges": charges}
            for (day, hour), charges in sorted(calendar.hours.items())
        ],
        "recent": recent,
        "top": top,
        "projects": projects,
        "problems": problems,
        "zone": name,
    }
    return Page("", "home", main, data)


def _spans(request: PageRequest, zone: tzinfo) -> Iterator[TimeSpan]:
    ledger = request.archive.ledger()
    for name, text in _SPANS:
        since = parse_moment(text, now=request.now, tz=zone) if text is not None else None
        spent = ledger.where(since=since).total if since is not None else ledger.total
        yield TimeSpan(name, text, request.archive.open_index().activity(since), spent)


def _work_calendar(request: PageRequest, zone: tzinfo) -> WorkCalendar:
    ledger = request.archive.ledger()
    sessions = Counter(row.keys["day"] for row in ledger.by("day", "session", zone=zone))
    days = {row.keys["day"]: (row.charges, sessions[row.keys["day"]], row) for row in ledger.by("day", zone=zone)}
    hours: Counter[tuple[int, int]] = Counter()
    for row in ledger.by("day", "hour", zone=zone):
        if (day := parse_date(row.keys["day"])) is not None:
            hours[day.weekday(), int(row.keys["hour"][:2])] += row.charges
    return WorkCalendar(days, dict(hours))


def _most_expensive(request: PageRequest) -> list[SessionBrief]:
    costs = [(session_cost(request, brief), brief) for brief in all_sessions(request)]
    costs.sort(key=lambda pair: (-(pair[0].amount or 0), -pair[0].tokens, pair[1].name))
    return [brief for cost, brief in costs if cost.charges][:_MAX_EXPENSIVE]


def _project_rows(request: PageRequest) -> list[ProjectRow]:
    """Projects by the names that sessions have for them, so that each row links to exactly the sessions it sums up."""
    projects: dict[str, list[SessionBrief]] = {}
    for brief in all_sessions(request):
        projects.setdefault(brief.project, []).append(brief)
    rows = [
        ProjectRow(
            name,
            len(briefs),
            max((brief.last for brief in briefs if brief.last is not None), default=None),
            Sum.of(session_cost(request, brief) for brief in briefs),
        )
        for name, briefs in projects.items()
    ]
    return sorted(rows, key=lambda row: (row.last.timestamp() if row.last else 0, row.project), reverse=True)


def _totals_section(spans: list[TimeSpan], problems: Mapping[str, int]) -> Child:
    columns = (Column(el("span", "What", class_="visually-hidden")), *(Column(span.name, "number") for span in spans))
    figures = (
        ("Sessions", [f"{span.done.sessions:,}" for span in spans]),
        ("Prompts", [f"{span.done.prompts:,}" for span in spans]),
        ("Calls", [f"{span.done.calls:,}" for span in spans]),
        ("Agents", [f"{span.done.agents:,}" for span in spans]),
        ("Tokens", [number_element(span.spent.tokens) for span in spans]),
        ("Amount", [amount_element(span.spent.amount, span.spent.unpriced) or "$0.00" for span in spans]),
    )
    everything = next((span.spent for span in spans if span.since is None), Sum())
    notes: list[Child] = []
    if everything.unpriced:
        models = el("a", "See models", href=urls.build_url(urls.USAGE, by="model"))
        charges = count(everything.unpriced, "charge")
        notes.append(el("p", f"Amounts exclude {charges} without a known price. ", models))
    if problems:
        link = el("a", "details", href=urls.build_url(urls.DOCTOR))
        kinds = ", ".join(list(problems)[:3])
        notes.append(el("p", f"{count(sum(problems.values()), 'problem')} in transcripts ({kinds}) · ", link))
    table = render_table(
        "Totals", columns, [[name, *cells] for name, cells in figures], kind="glance", hidden_caption=True
    )
    note = el("div", notes, class_="note") if notes else EMPTY
    return el("section", table, note, class_="totals-table", aria_label="Totals")


def _calendar_chart(calendar: WorkCalendar, today: date) -> Child:
    days = {
        day: DayActivity(
            charges,
            f"{count(sessions, 'session')}, {count(charges, 'charge')}, "
            f"{format_amount(spent.amount) or 'amount unknown'}",
        )
        for text, (charges, sessions, spent) in calendar.days.items()
        if (day := parse_date(text)) is not None
    }
    last = max([today, *(day for day in days if day <= today)])
    return activity_calendar(
        days, last, link_of=lambda day: urls.build_url(urls.SESSIONS, since=str(day), until=str(day))
    )


def _session_table(caption: str, rows: list[SessionRow], zone: tzinfo) -> Child:
    if not rows:
        return el("p", "There are no sessions yet.", class_="nothing")
    return session_table(caption, rows, zone=zone, columns=SHORT_COLUMNS, project_address=project_url)


def _project_table(projects: list[ProjectRow], zone: tzinfo) -> Child:
    columns = (
        Column("Project", "path"),
        Column("Sessions", "number"),
        Column("Last used", "when"),
        Column("Amount", "number"),
    )
    rows = [
        [
            project_link(project.project, project_url(project.project)),
            f"{project.sessions:,}",
            time_element(project.last, zone),
            amount_element(project.spent.amount, project.spent.unpriced),
        ]
        for project in projects[:_MAX_PROJECTS]
    ]
    return render_table("Projects", columns, rows, kind="list", hidden_caption=True)


def _block(title: str, content: Child, url: str | None = None, label: str = "") -> Child:
    head = el("h2", title, " ", el("a", label, href=url, class_="all") if url is not None else EMPTY)
    return el("section", head, content, class_="block")
