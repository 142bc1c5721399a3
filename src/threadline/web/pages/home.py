"""The home page: this week and its costs, running sessions, sessions to resume, activity, projects, totals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.annotations import NO_ANNOTATION
from threadline.files import escape_path
from threadline.model.insight.digest import DigestPeriod, PeriodUnit
from threadline.model.ledger import Sum
from threadline.model.places import ProblemKind
from threadline.model.text import count, format_amount, format_changes, format_duration, format_percent, noun_for
from threadline.model.times import in_zone, parse_moment, zone_name
from threadline.render import shorten, visible
from threadline.render.html import (
    EMPTY,
    SHORT_COLUMNS,
    Child,
    Column,
    DayActivity,
    SessionRow,
    activity_calendar,
    amount_element,
    daily_strip,
    el,
    facts_row,
    figures_row,
    icon,
    join,
    number_element,
    project_link,
    render_table,
    session_detail,
    session_table,
    share_bar,
    time_element,
    weekday_hour_map,
)
from threadline.web import urls
from threadline.web.insight.digest import compute_digest, latest_with_usage
from threadline.web.pages.annotations import SEND_ORIGIN, read_or_none, saved_searches_list
from threadline.web.pages.forms import progress_bar
from threadline.web.pages.sessions import all_sessions, project_url, row_facts, row_star, session_cost, session_rows
from threadline.web.pages.usage import budget_list, current_budgets, parse_date
from threadline.web.request import Page
from threadline.web.session.resume import home_for_resume, resume_command, resume_line

if TYPE_CHECKING:
    from threadline.index import Activity, SessionBrief
    from threadline.model.insight.digest import Digest, DigestCause
    from threadline.web.request import PageRequest

_MAX_RECENT, _MAX_EXPENSIVE, _MAX_PROJECTS = 10, 8, 8
_MAX_RUNNING, _MAX_RESUMED, _MAX_STARRED = 8, 3, 8
_TREND_DAYS = 30
_DIRECTORY = re.compile(r"/|[A-Za-z]:[\\/]")
_FILE_PROBLEMS = frozenset((ProblemKind.CHANGED, ProblemKind.UNREADABLE, ProblemKind.SKIPPED))
_SPANS = (("Today", "today"), ("7 days", "7d"), ("30 days", "30d"), ("All time", None))


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

    def record(self) -> dict[str, Any]:
        """For programs."""
        return {
            "days": {
                day: {"charges": charges, "sessions": sessions, "spent": spent}
                for day, (charges, sessions, spent) in self.days.items()
            },
            "hours": [
                {"weekday": day, "hour": hour, "charges": charges}
                for (day, hour), charges in sorted(self.hours.items())
            ],
        }


def home_page(request: PageRequest) -> Page:
    """This week and its costs, running sessions, and sessions to resume; below, the whole year."""
    zone = request.zone()
    name = zone_name(zone)
    today = in_zone(request.now, zone).date()
    briefs = all_sessions(request)
    spans = request.cached("spans", lambda: list(_spans(request, zone)), name, today)
    calendar = request.cached("calendar", lambda: _work_calendar(request, zone), name)
    running_ids = request.archive.running()
    running = session_rows(request, [brief for brief in briefs if brief.id in running_ids][:_MAX_RUNNING])
    recent = session_rows(request, briefs[:_MAX_RECENT])
    top = session_rows(request, _most_expensive(request))
    projects = request.cached("projects", lambda: _project_rows(request))
    problems = request.archive.open_index().problem_counts()
    week = _read_week(request)
    budgets = current_budgets(request)
    annotations = read_or_none()
    starred_briefs = [brief for brief in briefs if annotations.sessions.get(brief.id or "", NO_ANNOTATION).starred]
    starred = session_rows(request, starred_briefs[:_MAX_STARRED])
    main = join(
        (
            el("h1", "threadline", class_="visually-hidden"),
            _week_section(request, week, calendar, today),
            _session_block("Running now", running, zone) if running else None,
            _resume_section(briefs, recent, zone),
            _causes_section(request, week),
            _block("Budgets", budget_list(budgets)) if budgets else None,
            _session_block("Recent sessions", recent, zone, urls.build_url(urls.SESSIONS), "All sessions", today=today),
            _session_block("Starred", starred, zone, urls.build_url(urls.SESSIONS, only="starred"), "All starred")
            if starred
            else None,
            saved_searches_list(annotations, urls.HOME) or None,
            _block("Activity", _calendar_chart(calendar, today)),
            _block(f"Busiest hours ({name})", weekday_hour_map(calendar.hours, unit="charge", zone=name)),
            _block("Projects", _project_table(projects, zone), urls.build_url(urls.USAGE, by="project"), "Usage"),
            _totals_section(spans, problems),
            _session_block(
                "Most expensive sessions", top, zone, urls.build_url(urls.SESSIONS, sort="amount"), "All by amount"
            ),
        )
    )
    data: dict[str, Any] = {
        "spans": spans,
        "week": week.record(),
        "running": running,
        "budgets": [use.record() for use in budgets],
        **calendar.record(),
        "recent": recent,
        "starred": starred,
        "top": top,
        "projects": projects,
        "problems": problems,
        "homes": [str(home.path) for home in request.archive.homes],
        "zone": name,
    }
    scripts = () if week.digest is not None else ("progress.js",)
    if not briefs:
        main = _no_sessions(request)
    return Page("", "home", main, data, request.list_attributes(), head=SEND_ORIGIN, scripts=scripts)


def _no_sessions(request: PageRequest) -> Markup:
    """What an archive without sessions shows: where it looked, and what to do."""
    homes = [str(home.path) for home in request.archive.homes]
    places = [el("li", el("code", visible(escape_path(home)))) for home in homes]
    commands = (
        ("Read another home", "threadline serve --home DIR"),
        ("Try the demo home", "threadline demo demo-home && threadline serve --home demo-home"),
    )
    steps = [
        el(
            "li",
            el("span", f"{label}: "),
            el("code", command, id=f"command-{at}"),
            el("button", icon("copy"), "Copy", type="button", data_copy=f"command-{at}", hidden=True),
        )
        for at, (label, command) in enumerate(commands, 1)
    ]
    return el(
        "section",
        el("h1", "No sessions yet"),
        el("p", "threadline looked in these folders:" if homes else "threadline found no Claude home."),
        el("ul", places) if places else None,
        el("p", "Sessions appear here as soon as Claude Code writes them. You can also:"),
        el("ul", steps),
        class_="message",
    )


class Week(Struct, frozen=True):
    """This week, or the newest in which something was spent. `digest` is None before costs have been attributed."""

    title: str
    period: DigestPeriod
    spent: Sum
    before: Sum
    digest: Digest | None = None

    def record(self) -> dict[str, Any]:
        """The week as data."""
        return {
            "period": self.period.record(),
            "spent": self.spent,
            "before": self.before,
            "digest": self.digest.record() if self.digest is not None else None,
        }


def _read_week(request: PageRequest) -> Week:
    zone = request.zone()
    this_week = DigestPeriod.parse(PeriodUnit.WEEK, "", now=request.now, zone=zone)
    period = latest_with_usage(request, this_week)
    first, last = in_zone(period.since, zone), in_zone(period.until, zone)
    year = f" {last.year}" if last.year != in_zone(request.now, zone).year else ""
    days = f"{first.day} {first:%B} to {last.day} {last:%B}{year}"
    title = "This week" if period == this_week else f"Last week with usage: {days}"
    digest = compute_digest(request, period) if request.pool.insight.is_stored(request.archive) else None
    if digest is not None:
        return Week(title, period, digest.sum, digest.compared, digest)
    ledger = request.archive.ledger(calls=False)
    before = period.previous(zone)
    return Week(
        title,
        period,
        ledger.where(since=period.since, until=period.until).total,
        ledger.where(since=before.since, until=before.until).total,
    )


def _week_section(request: PageRequest, week: Week, calendar: WorkCalendar, today: date) -> Child:
    digest_url = urls.build_url(urls.DIGEST, unit="week", when=week.period.name)
    days = {day: float(spent.amount or 0) for day, (_charges, _sessions, spent) in calendar.days.items()}
    last = min(in_zone(week.period.until, request.zone()).date(), today)
    shown = [(last - timedelta(days=_TREND_DAYS - 1 - at)).isoformat() for at in range(_TREND_DAYS)]
    strip = daily_strip(
        "trend",
        f"Amount in the {_TREND_DAYS} days up to {last}",
        [(day, days.get(day, 0.0)) for day in shown],
        format_amount,
    )
    return el(
        "section",
        el("h2", week.title, " ", el("a", "Digest", href=digest_url, class_="all")),
        figures_row(_week_figures(week)),
        el("p", f"Spent per day, {_TREND_DAYS} days", class_="caption"),
        strip,
        class_="block week",
    )


def _week_figures(week: Week) -> Iterator[tuple[Child, Child, str | None]]:
    amount = amount_element(week.spent.amount, week.spent.unpriced) or "$0.00"
    yield amount, _describe_change(week), "compared with the week before, up to the same time"
    yield number_element(week.spent.tokens), "tokens", None
    digest = week.digest
    if digest is None:
        return
    yield f"{len(digest.sessions):,}", noun_for(len(digest.sessions), "session"), None
    yield format_duration(digest.worked) or "0s", "worked", "the time in which at least one session was active"
    work = digest.work
    if work.commits:
        yield f"{work.commits:,}", noun_for(work.commits, "commit"), None
    if work.files:
        yield format_changes(work.added, work.removed), f"lines in {count(work.files, 'file')}", None
    rewritten = next((waste for waste in digest.waste if waste.label.startswith("Cache breaks")), None)
    if rewritten is not None and rewritten.share:
        yield format_percent(rewritten.share), "sent again after cache breaks", rewritten.suggestion


def _describe_change(week: Week) -> str:
    before, amount = week.before.amount, week.spent.amount or 0
    if not before:
        return "spent"
    change = (amount - before) / before
    direction = "more" if change >= 0 else "less"
    return f"spent, {abs(float(change)):.0%} {direction} than the week before"


def _resume_section(briefs: Sequence[SessionBrief], rows: list[SessionRow], zone: tzinfo) -> Child:
    """The newest sessions, each with the command that resumes it."""
    items = []
    for number, (brief, row) in enumerate(zip(briefs[:_MAX_RESUMED], rows, strict=False), 1):
        cwd = brief.project if _DIRECTORY.match(brief.project) else None
        command = resume_command(brief, cwd, home_for_resume(Path(brief.path)))
        items.append(
            el(
                "li",
                el("a", shorten(row.title, 120) or "(no title)", href=row.address, class_="title"),
                facts_row((time_element(row.last, zone), project_link(row.project, project_url(row.project)))),
                session_detail(row, row_facts(row)),
                resume_line(command, f"resume-{number}") if command else None,
                data_item=True,
            )
        )
    return _block("Resume where you left off", el("ol", items, class_="resumable"))


def _causes_section(request: PageRequest, week: Week) -> Child:
    """What the week's costs were caused by, and what could have been saved."""
    url = urls.build_url(urls.WHY, since=f"{in_zone(week.period.since, request.zone()):%Y-%m-%d}")
    if week.digest is None:
        poll = urls.build_url(urls.json_path(urls.WHY), progress=True)
        text = "Working out what caused the costs …"
        content: Child = progress_bar("Attributing costs", text, 0, 1, request.url_with(), poll=poll)
    else:
        causes = [_cause_item(cause) for cause in week.digest.causes]
        waste = [_cause_item(cause) for cause in week.digest.waste]
        saved = [el("h3", "Avoidable costs"), el("ul", waste, class_="cause-list")] if waste else []
        content = [el("ul", causes, class_="cause-list"), saved] if causes else el("p", "Nothing was spent.")
    return _block("What it was spent on", content, url, "Why it cost this much")


def _cause_item(cause: DigestCause) -> Child:
    share = (share_bar(cause.share), format_percent(cause.share))
    example = shorten(cause.example, 90)
    link = el("a", example, href=urls.session_url(cause.session)) if cause.session is not None and example else example
    amount = f"{'~' if cause.estimated else ''}{format_amount(cause.amount)}"
    label = el("span", visible(cause.label), class_="label")
    return el(
        "li",
        el("p", el("b", amount), " ", label, " ", el("span", share, class_="share"), class_="cause"),
        el("p", cause.suggestion, class_="advice") if cause.suggestion else None,
        el("p", "Most expensive: ", link, class_="note") if example else None,
    )


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
    everything = next((span.spent for span in spans if span.since is None), Sum())
    spans = [span for span in spans if span.done.sessions or span.since is None]  # no columns of zeros
    columns = (Column(el("span", "What", class_="visually-hidden")), *(Column(span.name, "number") for span in spans))
    figures = (
        ("Sessions", [f"{span.done.sessions:,}" for span in spans]),
        ("Prompts", [f"{span.done.prompts:,}" for span in spans]),
        ("Calls", [f"{span.done.calls:,}" for span in spans]),
        ("Agents", [f"{span.done.agents:,}" for span in spans]),
        ("Tokens", [number_element(span.spent.tokens) for span in spans]),
        ("Amount", [amount_element(span.spent.amount, span.spent.unpriced) or "$0.00" for span in spans]),
    )
    notes: list[Child] = []
    if everything.unpriced:
        models = el("a", "See models", href=urls.build_url(urls.USAGE, by="model"))
        charges = count(everything.unpriced, "charge")
        notes.append(el("p", f"Amounts exclude {charges} without a known price. ", models))
    if problems:
        link = el("a", "details", href=urls.build_url(urls.DOCTOR))
        noun = "problem" if _FILE_PROBLEMS & problems.keys() else "damaged line"
        notes.append(el("p", f"{count(sum(problems.values()), noun)} found while indexing · ", link))
    table = render_table(
        "Totals", columns, [[name, *cells] for name, cells in figures], kind="glance", hidden_caption=True
    )
    note = el("div", notes, class_="note") if notes else EMPTY
    heading = el("h2", "Totals")
    return el("section", heading, table, note, class_="block totals-table", aria_label="Totals by period")


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


def _session_block(  # noqa: PLR0917 - a title, a table and a link
    title: str, rows: list[SessionRow], zone: tzinfo, url: str | None = None, label: str = "", today: date | None = None
) -> Child:
    table = session_table(
        title,
        rows,
        zone=zone,
        columns=SHORT_COLUMNS,
        project_address=project_url,
        today=today,
        marks=row_star,
        facts=row_facts,
    )
    return _block(title, table, url, label)


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
