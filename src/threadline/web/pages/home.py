"""Home: how much there is, when work was done, and what was worked on last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.model.sum import Sum
from threadline.model.when import moment
from threadline.model.zone import in_zone, zone_name
from threadline.render.amounts import amount
from threadline.render.figures import count
from threadline.render.html.charts.calendar import Active, calendar
from threadline.render.html.charts.day_hour import day_hour
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.lists import FEW, SessionRow, session_list
from threadline.render.html.said import money, project, short, when
from threadline.render.html.table import Column, table
from threadline.web import addresses
from threadline.web.page import Page
from threadline.web.pages.listed import costs, every_session, listed, project_address
from threadline.web.pages.recalled import recalled

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index.activity import Activity
    from threadline.index.briefs import Brief
    from threadline.web.asked import Asked

_RECENT, _TOP, _PROJECTS = 12, 8, 12
_SPANS = (("Today", "today"), ("7 days", "7d"), ("30 days", "30d"), ("All", None))


class Span(Struct, frozen=True):
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


class Worked(Struct, frozen=True):
    """When work was done: of each day how many replies, sessions and what amount; and replies by weekday and hour."""

    days: Mapping[str, tuple[int, int, Sum]]
    hours: Mapping[tuple[int, int], int]


def home(asked: Asked) -> Page:
    """Everything at a glance."""
    archive = asked.archive
    here = asked.zone()
    today = in_zone(asked.now, here).date()
    spans = recalled(archive, "spans", lambda: list(_spans(archive, asked.now, here)), zone_name(here), today)
    worked = recalled(archive, "worked", lambda: _worked(archive, here), zone_name(here))
    top = listed(archive, _dearest(archive))
    recent = listed(archive, every_session(archive)[:_RECENT])
    projects = recalled(archive, "projects", lambda: _projects(archive))
    wrong = _problems(archive)
    main = join(
        (
            el("h1", "threadline", class_="unseen"),
            _totals(spans, wrong),
            _block("Activity", _calendar(worked, today)),
            _block(
                f"When work is done, in times of {zone_name(here)}",
                day_hour(worked.hours, unit="replies", zone=zone_name(here)),
            ),
            _block(
                "Recent sessions",
                _sessions("Recent sessions", recent, here),
                addresses.address(addresses.SESSIONS),
                "All sessions",
            ),
            _block(
                "Projects", _project_table(projects, here), addresses.address(addresses.USAGE, by="project"), "Usage"
            ),
            _block(
                "Most expensive sessions",
                _sessions("Most expensive sessions", top, here),
                addresses.address(addresses.SESSIONS, sort="cost"),
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


def _spans(archive: Archive, now: datetime, here: tzinfo) -> Iterator[Span]:
    ledger = archive.ledger()
    for name, words in _SPANS:
        since = moment(words, now=now, zone=here) if words is not None else None
        spent = ledger.where(since=since).total if since is not None else ledger.total
        yield Span(name, words, archive.activity(since), spent)


def _worked(archive: Archive, here: tzinfo) -> Worked:
    ledger = archive.ledger()
    sessions = Counter(row.keys["day"] for row in ledger.by("day", "session", zone=here))
    days = {row.keys["day"]: (row.charges, sessions[row.keys["day"]], row) for row in ledger.by("day", zone=here)}
    hours: Counter[tuple[int, int]] = Counter()
    for row in ledger.by("day", "hour", zone=here):
        if (day := _date(row.keys["day"])) is not None:
            hours[day.weekday(), int(row.keys["hour"][:2])] += row.charges
    return Worked(days, dict(hours))


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # of what says no time
        return None


def _dearest(archive: Archive) -> list[Brief]:
    spent = costs(archive)
    named = {one.id: one for one in every_session(archive) if one.id is not None}
    order = sorted(spent, key=lambda id_: (-(spent[id_].amount or 0), -spent[id_].tokens, id_))
    return [named[id_] for id_ in order if id_ in named][:_TOP]


def _projects(archive: Archive) -> list[ProjectRow]:
    """Projects as sessions name them, so that each leads to just the sessions that it sums up."""
    spent = costs(archive)
    held: dict[str, list[Brief]] = {}
    for one in every_session(archive):
        held.setdefault(one.project, []).append(one)
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


def _problems(archive: Archive) -> dict[str, int]:
    """What reading for the index found wrong, by kind."""
    return archive.problem_counts()


def _totals(spans: list[Span], wrong: Mapping[str, int]) -> Child:
    columns = (Column(el("span", "What", class_="unseen")), *(Column(one.name, "number") for one in spans))
    figures = (
        ("Sessions", [f"{one.done.sessions:,}" for one in spans]),
        ("Prompts", [f"{one.done.prompts:,}" for one in spans]),
        ("Calls", [f"{one.done.calls:,}" for one in spans]),
        ("Agents", [f"{one.done.agents:,}" for one in spans]),
        ("Tokens", [short(one.spent.tokens) for one in spans]),
        ("Cost", [money(one.spent.amount, one.spent.unpriced) or "$0.00" for one in spans]),
    )
    whole = next((one.spent for one in spans if one.since is None), Sum())
    notes: list[Child] = []
    if whole.unpriced:
        models = el("a", "which models", href=addresses.address(addresses.USAGE, by="model"))
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
        notes.append(
            el("p", el("a", words, href=addresses.address(addresses.DOCTOR)), f": {', '.join(list(wrong)[:3])}.")
        )
    made = table(
        "What there is", columns, [[name, *cells] for name, cells in figures], kind="glance", hidden_caption=True
    )
    return el(
        "section", made, el("div", notes, class_="note") if notes else EMPTY, class_="totals-table", aria_label="Totals"
    )


def _calendar(worked: Worked, today: date) -> Child:
    days = {
        day: Active(
            replies,
            f"{count(sessions, 'session')}, {count(replies, 'reply', 'replies')}, {amount(spent.amount) or 'no price'}",
        )
        for text, (replies, sessions, spent) in worked.days.items()
        if (day := _date(text)) is not None
    }
    last = max([today, *(day for day in days if day <= today)])
    return calendar(
        days, last, link_of=lambda day: addresses.address(addresses.SESSIONS, since=str(day), until=str(day))
    )


def _sessions(caption: str, rows: list[SessionRow], here: tzinfo) -> Child:
    if not rows:
        return el("p", "There are no sessions yet.", class_="nothing")
    return session_list(caption, rows, zone=here, columns=FEW, project_address=project_address)


def _project_table(rows: list[ProjectRow], here: tzinfo) -> Child:
    columns = (
        Column("Project", "path"),
        Column("Sessions", "number"),
        Column("Last used", "when"),
        Column("Cost", "number"),
    )
    made = [
        [
            project(row.project, project_address(row.project)),
            f"{row.sessions:,}",
            when(row.last, here),
            money(row.spent.amount, row.spent.unpriced),
        ]
        for row in rows[:_PROJECTS]
    ]
    return table("Projects", columns, made, kind="list", hidden_caption=True)


def _block(title: str, inside: Child, href: str | None = None, more: str = "") -> Child:
    head = el("h2", title, " ", el("a", more, href=href, class_="all") if href is not None else EMPTY)
    return el("section", head, inside, class_="block")
