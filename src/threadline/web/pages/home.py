"""The home page: totals, activity, recent and expensive sessions, projects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.model.text import count
from threadline.model.times import in_zone, parse_moment, zone_name
from threadline.model.totals import Sum
from threadline.render import format_amount
from threadline.render.html import (
    EMPTY,
    SHORT_COLUMNS,
    Child,
    Column,
    DayActivity,
    SessionRow,
    activity_calendar,
    cost_element,
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
from threadline.web.archive_pool import cached_figure
from threadline.web.pages.sessions import all_sessions, project_url, session_costs, session_rows
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import Archive
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
    """A project: how many sessions, when it was worked on last, and what it cost."""

    project: str
    sessions: int
    last: datetime | None
    spent: Sum


class WorkCalendar(Struct, frozen=True):
    """When work was done: of each day how many replies, sessions and what amount; and replies by weekday and hour."""

    days: Mapping[str, tuple[int, int, Sum]]
    hours: Mapping[tuple[int, int], int]


def home(asked: PageRequest) -> Page:
    """Everything at a glance."""
    archive = asked.archive
    here = asked.zone()
    today = in_zone(asked.now, here).date()
    spans = cached_figure(archive, "spans", lambda: list(_spans(archive, asked.now, here)), zone_name(here), today)
    worked = cached_figure(archive, "worked", lambda: _work_calendar(archive, here), zone_name(here))
    top = session_rows(archive, _most_expensive(archive))
    recent = session_rows(archive, all_sessions(archive)[:_MAX_RECENT])
    projects = cached_figure(archive, "projects", lambda: _project_rows(archive))
    wrong = _problem_counts(archive)
    main = join(
        (
            el("h1", "threadline", class_="unseen"),
            _totals_section(spans, wrong),
            _block("Activity", _calendar_chart(worked, today)),
            _block(
                f"When work is done, in times of {zone_name(here)}",
                weekday_hour_map(worked.hours, unit="replies", zone=zone_name(here)),
            ),
            _block(
                "Recent sessions",
                _session_table("Recent sessions", recent, here),
                urls.build_url(urls.SESSIONS),
                "All sessions",
            ),
            _block("Projects", _project_table(projects, here), urls.build_url(urls.USAGE, by="project"), "Usage"),
            _block(
                "Most expensive sessions",
                _session_table("Most expensive sessions", top, here),
                urls.build_url(urls.SESSIONS, sort="cost"),
                "All by cost",
            ),
        )
    )
    data: dict[str, Any] = {
        "spans": spans,
        "days": {day: {"replies": told[0], "sessions": told[1], "spent": told[2]} for day, told in worked.days.items()},
        "hours": [{"weekday": day, "hour": hour, "replies": n} for (day, hour), n in sorted(worked.hours.items())],
        "recent": recent,
        "top": top,
        "projects": projects,
        "problems": wrong,
        "zone": zone_name(here),
    }
    return Page("", "home", main, data)


def _spans(archive: Archive, now: datetime, here: tzinfo) -> Iterator[TimeSpan]:
    ledger = archive.ledger()
    for name, words in _SPANS:
        since = parse_moment(words, now=now, zone=here) if words is not None else None
        spent = ledger.where(since=since).total if since is not None else ledger.total
        yield TimeSpan(name, words, archive.open_index().activity(since), spent)


def _work_calendar(archive: Archive, here: tzinfo) -> WorkCalendar:
    ledger = archive.ledger()
    sessions = Counter(row.keys["day"] for row in ledger.by("day", "session", zone=here))
    days = {row.keys["day"]: (row.charges, sessions[row.keys["day"]], row) for row in ledger.by("day", zone=here)}
    hours: Counter[tuple[int, int]] = Counter()
    for row in ledger.by("day", "hour", zone=here):
        if (day := _parse_date(row.keys["day"])) is not None:
            hours[day.weekday(), int(row.keys["hour"][:2])] += row.charges
    return WorkCalendar(days, dict(hours))


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # of what says no time
        return None


def _most_expensive(archive: Archive) -> list[SessionBrief]:
    spent = session_costs(archive)
    named = {session.id: session for session in all_sessions(archive) if session.id is not None}
    order = sorted(spent, key=lambda id_: (-(spent[id_].amount or 0), -spent[id_].tokens, id_))
    return [named[id_] for id_ in order if id_ in named][:_MAX_EXPENSIVE]


def _project_rows(archive: Archive) -> list[ProjectRow]:
    """Projects as sessions name them, so that each leads to just the sessions that it sums up."""
    spent = session_costs(archive)
    held: dict[str, list[SessionBrief]] = {}
    for session in all_sessions(archive):
        held.setdefault(session.project, []).append(session)
    rows = [
        ProjectRow(
            name,
            len(some),
            max((one.last for one in some if one.last is not None), default=None),
            Sum.of(spent.get(one.id or "", Sum()) for one in some),
        )
        for name, some in held.items()
    ]
    return sorted(rows, key=lambda row: (row.last.timestamp() if row.last else 0, row.project), reverse=True)


def _problem_counts(archive: Archive) -> dict[str, int]:
    """What reading for the index found wrong, by kind."""
    return archive.open_index().problem_counts()


def _totals_section(spans: list[TimeSpan], wrong: Mapping[str, int]) -> Child:
    columns = (Column(el("span", "What", class_="unseen")), *(Column(time_span.name, "number") for time_span in spans))
    figures = (
        ("Sessions", [f"{time_span.done.sessions:,}" for time_span in spans]),
        ("Prompts", [f"{time_span.done.prompts:,}" for time_span in spans]),
        ("Calls", [f"{time_span.done.calls:,}" for time_span in spans]),
        ("Agents", [f"{time_span.done.agents:,}" for time_span in spans]),
        ("Tokens", [number_element(time_span.spent.tokens) for time_span in spans]),
        ("Cost", [cost_element(time_span.spent.amount, time_span.spent.unpriced) or "$0.00" for time_span in spans]),
    )
    whole = next((time_span.spent for time_span in spans if time_span.since is None), Sum())
    notes: list[Child] = []
    if whole.unpriced:
        models = el("a", "which models", href=urls.build_url(urls.USAGE, by="model"))
        notes.append(
            el(
                "p",
                f"{count(whole.unpriced, 'reply', 'replies')} have no known price and are in no cost: ",
                models,
                ".",
            )
        )
    if wrong:
        words = f"{count(sum(wrong.values()), 'problem')} in transcripts"
        notes.append(el("p", el("a", words, href=urls.build_url(urls.DOCTOR)), f": {', '.join(list(wrong)[:3])}."))
    made = render_table(
        "What there is", columns, [[name, *cells] for name, cells in figures], kind="glance", hidden_caption=True
    )
    return el(
        "section", made, el("div", notes, class_="note") if notes else EMPTY, class_="totals-table", aria_label="Totals"
    )


def _calendar_chart(worked: WorkCalendar, today: date) -> Child:
    days = {
        day: DayActivity(
            replies,
            f"{count(sessions, 'session')}, {count(replies, 'reply', 'replies')}, "
            f"{format_amount(spent.amount) or 'no price'}",
        )
        for text, (replies, sessions, spent) in worked.days.items()
        if (day := _parse_date(text)) is not None
    }
    last = max([today, *(day for day in days if day <= today)])
    return activity_calendar(
        days, last, link_of=lambda day: urls.build_url(urls.SESSIONS, since=str(day), until=str(day))
    )


def _session_table(caption: str, rows: list[SessionRow], here: tzinfo) -> Child:
    if not rows:
        return el("p", "There are no sessions yet.", class_="nothing")
    return session_table(caption, rows, zone=here, columns=SHORT_COLUMNS, project_address=project_url)


def _project_table(rows: list[ProjectRow], here: tzinfo) -> Child:
    columns = (
        Column("Project", "path"),
        Column("Sessions", "number"),
        Column("Last used", "when"),
        Column("Cost", "number"),
    )
    made = [
        [
            project_link(row.project, project_url(row.project)),
            f"{row.sessions:,}",
            time_element(row.last, here),
            cost_element(row.spent.amount, row.spent.unpriced),
        ]
        for row in rows[:_MAX_PROJECTS]
    ]
    return render_table("Projects", columns, made, kind="list", hidden_caption=True)


def _block(title: str, inside: Child, href: str | None = None, more: str = "") -> Child:
    head = el("h2", title, " ", el("a", more, href=href, class_="all") if href is not None else EMPTY)
    return el("section", head, inside, class_="block")
