"""The list of all sessions, and the session rows that other pages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from threadline.annotations import NO_ANNOTATION, Annotation
from threadline.files import escape_path
from threadline.model.ledger import Sum
from threadline.model.places import starts_id
from threadline.model.text import count, last_names, short_model_name
from threadline.model.times import in_zone
from threadline.render import shorten
from threadline.render.html import ALL_COLUMNS, Child, SessionRow, el, join, session_table, time_zone_note
from threadline.web import urls
from threadline.web.pages.annotations import (
    SEND_ORIGIN,
    annotation_facts,
    read_or_none,
    save_search_form,
    star_button,
)
from threadline.web.pages.forms import (
    FormField,
    PageRange,
    filter_form,
    form_on_error,
    is_safe_value,
    pager,
    parse_range,
)
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import SharedSpending
    from threadline.index import SessionBrief
    from threadline.web.request import PageRequest

_PAGE_SIZE = 100
_SORT_KEYS: dict[str, Callable[[SessionRow], Any]] = {
    "amount": lambda row: (-(row.amount or 0), -row.tokens),
    "turns": lambda row: -row.turns,
    "calls": lambda row: -row.calls,
    "agents": lambda row: (-max(row.agents, row.started_agents), -row.agents),
    "duration": lambda row: -(row.duration or timedelta()).total_seconds(),
    "title": lambda row: row.title.casefold(),
    "project": lambda row: row.project.casefold(),
}
_SORTS = ("time", *_SORT_KEYS)


_ONLY = {
    "starred": "starred",
    "noted": "with tags or notes",
    "running": "running",
    "agents": "with agents",
    "kept": "kept",
}
_MAX_FACETS = 60


def _fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("grep", "Title", "words, or an id", kind="search")
    yield FormField("project", "Project", choices=[("", "all"), *_project_facets(request)])
    yield FormField("model", "Model", choices=[("", "all"), *_model_facets(request)])
    yield FormField("only", "Only", choices=[("", "all sessions"), *_ONLY.items()])
    if tags := read_or_none().tags:
        yield FormField("tag", "Tag", choices=[("", "any"), *((tag, f"#{shorten(tag, 40)}") for tag in tags)])
    yield FormField("branch", "Branch", "a git branch", suggestions=suggested_values(request, "branch"))
    yield FormField("since", "Since", "7d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")


def _project_facets(request: PageRequest) -> list[tuple[str, str]]:
    """Projects and how many sessions they have, most sessions first."""
    projects = Counter(brief.project for brief in all_sessions(request) if is_safe_value(brief.project))
    return [
        (name, f"{shorten(last_names(name), 40)} ({number:,})") for name, number in projects.most_common(_MAX_FACETS)
    ]


def _model_facets(request: PageRequest) -> list[tuple[str, str]]:
    """Models and in how many sessions they were used."""
    counts = request.cached(
        "sessions by model",
        lambda: Counter(row.keys["model"] for row in request.archive.ledger().by("session", "model")),
    )
    return [
        (model, f"{shorten(short_model_name(model), 40)} ({number:,})")
        for model, number in counts.most_common(_MAX_FACETS)
        if is_safe_value(model) and not model.startswith("(")
    ]


@form_on_error("Sessions", "sessions", _fields, "sort", "limit")
def sessions_page(request: PageRequest) -> Page:
    """All sessions that match the filters."""
    zone = request.zone()
    shown = parse_range(request, _PAGE_SIZE)
    sort = request.choice("sort", _SORTS, "time", {"cost": "amount"})
    rows, total = _page_rows(request, shown, sort)
    more = len(rows) > shown.limit
    listed = rows[: shown.limit]
    rows = listed if more else [*listed, *_unlisted_rows(request)]
    main = join(
        (
            el("div", el("h1", count(total, "session")), time_zone_note(zone), class_="head"),
            filter_form(request, list(_fields(request)), preserve=("sort", "limit")),
            sortable_table(request, rows, sort, row_facts)
            if rows
            else el("p", _explain_nothing(request), class_="nothing"),
            pager(request, shown, len(listed), total, more=more),
            save_search_form(request, _describe_filters(request)) if request.query else None,
        )
    )
    data = {"sessions": rows, "total": total, "after": shown.after, "more": more, "sort": sort}
    return Page("Sessions", "sessions", main, data, request.list_attributes(), head=SEND_ORIGIN)


def _describe_filters(request: PageRequest) -> str:
    """The current filters as the name of a saved search."""
    names = ("grep", "project", "model", "branch", "only", "tag", "since", "until")
    return " ".join(text for name in names if (text := request.text(name)) is not None) or "Sessions"


def _unlisted_rows(request: PageRequest) -> list[SessionRow]:
    """What was spent in no session, as rows. Filters that need a session leave it out."""
    if any(request.text(name) is not None for name in ("grep", "model", "branch", "only", "tag", "since", "until")):
        return []
    part = (request.text("project") or "").casefold()
    listed = {Path(brief.path) for brief in all_sessions(request)}
    return [
        SessionRow(
            id=spent.session,
            title=f"Not a session: {spent.reason}",
            address=urls.session_url(escape_path(spent.transcripts[0])),
            project=spent.project,
            first=None,
            last=None,
            model=None,
            turns=0,
            calls=0,
            agents=0,
            amount=spent.total.amount,
            unpriced=spent.total.unpriced,
            tokens=spent.total.tokens,
            unlisted=spent.reason,
        )
        for spent in request.archive.spending().unlisted(listed)
        if part in spent.project.casefold()
    ]


def _page_rows(request: PageRequest, shown: PageRange, sort: str) -> tuple[list[SessionRow], int]:
    """The rows to show and one more, if there is one; and how many there are in total."""
    since, until = request.time_range()
    briefs = [brief for brief in all_sessions(request) if _matches_filters(brief, request, since, until)]
    briefs = _matching_marks(request, briefs)
    for key in ("model", "branch"):
        if (text := request.text(key)) is not None:
            spenders = _sessions_spending_on(request, key, text)
            briefs = [brief for brief in briefs if brief.id in spenders]
    if sort == "time":
        return session_rows(request, briefs[shown.after : shown.stop]), len(briefs)
    # Counting all calls is slow: do it only to sort by them, and otherwise for the rows that are shown.
    rows = session_rows(request, briefs, _all_call_counts(request) if sort == "calls" else {})
    if sort == "agents":
        started = _started_agents(request)
        rows = [
            replace(row, started_agents=started.get(brief.path, 0)) for row, brief in zip(rows, briefs, strict=True)
        ]
    pairs = sorted(zip(rows, briefs, strict=True), key=lambda pair: _SORT_KEYS[sort](pair[0]))
    return session_rows(request, [brief for _row, brief in pairs[shown.after : shown.stop]]), len(pairs)


def _matches_filters(brief: SessionBrief, request: PageRequest, since: datetime | None, until: datetime | None) -> bool:
    project, text = request.text("project"), request.text("grep")
    return (
        (project is None or _contains(brief.project, project))
        and (text is None or _contains(brief.title, text) or names_session(text, brief))
        and (since is None or (brief.last is not None and brief.last >= since))
        and (until is None or ((start := brief.first or brief.last) is not None and start <= until))
    )


def names_session(text: str, brief: SessionBrief) -> bool:
    """Whether a session's id, or its name in URLs, begins with a text. Ignores case, as `match_ids` does."""
    return starts_id(text, brief.id) or starts_id(text, brief.name)


def _matching_marks(request: PageRequest, briefs: list[SessionBrief]) -> list[SessionBrief]:
    """The sessions that the filters `only` and `tag` choose."""
    only, tag = request.choice("only", ("", *_ONLY), ""), request.text("tag")
    if not only and tag is None:
        return briefs
    annotations = read_or_none().sessions
    running = request.archive.running() if only == "running" else ()
    started = _started_agents(request) if only == "agents" else {}
    tests: dict[str, Callable[[SessionBrief], bool]] = {
        "": lambda _brief: True,
        "starred": lambda brief: annotations.get(brief.id or "", NO_ANNOTATION).starred,
        "noted": lambda brief: brief.id in annotations,
        "running": lambda brief: brief.id in running,
        "agents": lambda brief: brief.agents > 0 or started.get(brief.path, 0) > 0,
        "kept": lambda brief: brief.kept,
    }
    return [
        brief
        for brief in briefs
        if tests[only](brief) and (tag is None or tag in annotations.get(brief.id or "", NO_ANNOTATION).tags)
    ]


def _sessions_spending_on(request: PageRequest, key: str, text: str) -> Collection[str]:
    """The sessions that spent anything on a model, or on a branch, whose name contains a text."""
    archive = request.archive
    pairs = request.cached(
        f"spenders by {key}",
        lambda: frozenset((row.keys["session"], row.keys[key]) for row in archive.ledger().by("session", key)),
    )
    return {session for session, value in pairs if _contains(value, text)}


def _contains(text: str, part: str) -> bool:
    return part.casefold() in text.casefold()


def suggested_values(request: PageRequest, key: str) -> list[str]:
    """The values of a key, largest cost first, as suggestions in a form."""
    archive = request.archive
    return request.cached(f"values of {key}", lambda: [row.keys[key] for row in archive.ledger().by(key)])


def sortable_table(
    request: PageRequest,
    rows: list[SessionRow],
    sort: str,
    facts: Callable[[SessionRow], list[Child]],
    columns: Iterable[str] = ALL_COLUMNS,
) -> Child:
    """The table of a list of sessions, with links that sort it. `facts` are shown in the second line of a row."""
    zone = request.zone()
    today = in_zone(request.now, zone).date() if sort == "time" else None

    def head(name: str) -> Child:
        label = {"time": "Last used"}.get(name, name.capitalize())
        url = request.url_with(sort=name if name != "time" else None, after=None)
        return el("a", label, href=url, aria_current="true" if name == sort else None, title=f"Sort by {name}")

    return session_table(
        "Sessions",
        rows,
        zone=zone,
        project_address=project_url,
        columns=columns,
        heads=head,
        today=today,
        marks=row_star,
        facts=facts,
    )


def row_star(row: SessionRow) -> Child:
    """The button that stars the session of a row."""
    return star_button(row.id, Annotation(starred=row.starred))


def row_facts(row: SessionRow) -> list[Child]:
    """The tags and the note of the session of a row."""
    return annotation_facts(Annotation(tags=row.tags, note=row.note))


def _explain_nothing(request: PageRequest) -> str:
    briefs = all_sessions(request)
    if briefs:
        return "No matching sessions. Remove a filter."
    homes = shorten(", ".join(str(home.path) for home in request.archive.homes), 400)
    return f"There are no sessions in {homes}." if homes else "No home found. Name one with --home."


def session_cost(request: PageRequest, brief: SessionBrief) -> Sum:
    """What a session spent, its agents included."""
    return request.archive.spending().of(Path(brief.path))


def all_sessions(request: PageRequest) -> tuple[SessionBrief, ...]:
    """All sessions, newest first."""
    return request.cached("sessions", request.archive.open_index().sessions)


def _all_call_counts(request: PageRequest) -> Mapping[str, int]:
    return request.cached("calls", request.archive.open_index().call_counts)


def _started_agents(request: PageRequest) -> Mapping[str, int]:
    """How many agents each session had, with or without a transcript, by its path."""
    ids = {brief.id for brief in all_sessions(request) if brief.id is not None}
    return request.cached("started agents", lambda: request.archive.open_index().started_agents(ids))


def session_rows(
    request: PageRequest, briefs: Iterable[SessionBrief], call_counts: Mapping[str, int] | None = None
) -> list[SessionRow]:
    """Build table rows of sessions. With `call_counts`, they have only what rows are sorted by."""
    briefs = list(briefs)
    running = request.archive.running()
    details = request.archive.open_index().session_details(
        {brief.id for brief in briefs if brief.id is not None and not brief.shares_name and call_counts is None}
    )
    started_agents = request.archive.open_index().started_agents(
        {brief.id for brief in briefs if brief.id is not None and call_counts is None}
    )
    commits = commit_counts(request)
    annotations = read_or_none()
    if call_counts is None:
        call_counts = request.archive.open_index().call_counts([brief.id for brief in briefs if brief.id is not None])
    rows: list[SessionRow] = []
    for brief in briefs:
        calls = _count_own_calls(request, brief) if brief.shares_name else call_counts.get(brief.id or "", 0)
        shared = tuple(shared_record(part) for part in request.archive.spending().shared.get(Path(brief.path), ()))
        cost = session_cost(request, brief)
        row = _session_row(brief, cost, calls, shared, is_running=brief.id in running)
        row = replace(row, started_agents=started_agents.get(brief.path, row.agents))
        if (annotation := annotations.sessions.get(brief.id or "")) is not None:
            row = replace(row, starred=annotation.starred, tags=annotation.tags, note=annotation.note)
        if brief.id in details:
            row = replace(row, **asdict(details[brief.id]), commits=commits.get(brief.id, 0))
        rows.append(row)
    return rows


def commit_counts(request: PageRequest) -> Mapping[str, int]:
    """The number of commits of each session; none before they have been extracted, which other pages start."""
    archive = request.archive
    if not request.pool.insight.is_stored(archive):
        return {}
    return request.cached("commits", lambda: {group.key: group.commits for group in archive.outcome_groups("session")})


def shared_record(shared: SharedSpending) -> dict[str, Any]:
    """What a session shares with another one, as data."""
    return {"session": shared.session, "path": shared.transcript, "tokens": shared.tokens}


def _count_own_calls(request: PageRequest, brief: SessionBrief) -> int:
    """The number of calls of a session, without those of sessions of the same name."""
    folder = brief.path[: -len(brief.path.replace("\\", "/").rpartition("/")[2])]
    calls = request.archive.calls(session=brief.id, limit=None)
    return sum(call.place.transcript.startswith(folder) for call in calls)


def project_url(path: str) -> str:
    """The list of a project's sessions."""
    return urls.build_url(urls.SESSIONS, project=path)


def _session_row(
    brief: SessionBrief, cost: Sum, calls: int, shared: tuple[dict[str, Any], ...], *, is_running: bool
) -> SessionRow:
    return SessionRow(
        id=brief.id,
        title=brief.title,
        address=urls.session_url(brief.name),
        project=brief.project,
        first=brief.first,
        last=brief.last,
        model=brief.model,
        turns=brief.turns,
        calls=calls,
        agents=brief.agents,
        amount=cost.amount,
        unpriced=cost.unpriced,
        tokens=cost.tokens,
        running=is_running,
        kept=brief.kept,
        shared=shared,
        started=brief.first,
        ended=brief.ended,
    )
