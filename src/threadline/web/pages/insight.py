"""Insight over a period: what caused the costs of all sessions, and which were avoidable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import wraps
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline import insight
from threadline.model.insight.attribution import CauseKind
from threadline.model.text import format_size
from threadline.model.times import zone_name
from threadline.render.html import Child, el, facts_row, join
from threadline.web import urls
from threadline.web.pages.causes import (
    CauseLinks,
    GroupSum,
    InnerGroups,
    by_chips,
    explain_method,
    render_causes,
    render_groups,
    render_parts,
    render_treemap,
)
from threadline.web.pages.findings import FindingLinks, limit_fields, parse_detectors, parse_limits, render_findings
from threadline.web.pages.forms import FormField, choice_chip, filter_form, form_on_error, progress_bar
from threadline.web.pages.lists import session_link
from threadline.web.pages.period import Period, parse_period, period_chips
from threadline.web.pages.sessions import all_sessions, suggested_values
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.insight import CauseGroup, CauseList
    from threadline.model.insight.attribution import CostCause
    from threadline.model.insight.waste import Waste
    from threadline.model.places import Place
    from threadline.web.request import PageRequest

INSIGHT_PAGES = (
    (urls.WHY, "Why"),
    (urls.WASTE, "Waste"),
    (urls.OUTCOMES, "Outcomes"),
    (urls.TOOLS, "Tools"),
    (urls.DIGEST, "Digest"),
)
"""The pages about all sessions, in the order of their links."""
KEYS = ("kind", "tool", "file", "server", "session", "project")
"""What causes can be grouped by."""
_UNNAMED = frozenset(
    (CauseKind.SYSTEM, CauseKind.SUMMARY, CauseKind.THINKING, CauseKind.REPLY, CauseKind.IMAGE, CauseKind.UNSEEN)
)
"""Causes that are told apart by their session."""
_MAX_CAUSES = 100
_MAX_LISTED = 1000


class CauseAnswer(Struct, frozen=True):
    """What the page of causes shows. It holds nothing of the index, so that it can be cached."""

    amount: Decimal
    sessions: int
    unpriced: int
    error: float | None
    groups: tuple[CauseGroup, ...]
    inner: InnerGroups | None
    largest: tuple[CostCause, ...]
    titles: Mapping[str, str]
    addresses: Mapping[Place, str | None]


def insight_head(request: PageRequest, title: str, *facts: Child) -> Markup:
    """The title of a page, and links to the other pages about the same period."""
    return join((el("div", el("h1", title), facts_row(facts), class_="head"), insight_links(request)))


def insight_links(request: PageRequest) -> Markup:
    """Links to the pages of insight, which keep the period and the project."""
    kept = [(name, value) for name, value in request.query if name in {"since", "until", "project"} and value]
    links = [
        choice_chip(urls.build_url(path, kept), label, is_chosen=path == request.path) for path, label in INSIGHT_PAGES
    ]
    return el("nav", links, class_="chips", aria_label="Insight")


@contextmanager
def lend_zone(request: PageRequest) -> Iterator[Archive]:
    """The archive of a request, which meanwhile uses the time zone of the request."""
    archive = request.archive
    zone, archive.zone = archive.zone, request.zone()
    try:
        yield archive
    finally:
        archive.zone = zone


def prepare_first(page: Callable[[PageRequest], Page]) -> Callable[[PageRequest], Page]:
    """Decorate a page that needs the costs of all sessions to be attributed: meanwhile, it shows the progress.

    Its JSON twin waits. With `progress=1`, it only reports how far the preparation is.
    """

    @wraps(page)
    def page_or_progress(request: PageRequest) -> Page:
        is_poll = request.wants_data and request.flag("progress")
        progress = None
        if is_poll or not request.wants_data:
            progress = request.pool.insight.pending(request.archive)
        if progress is None and not is_poll:
            return page(request)
        done, total = (progress.done, progress.total) if progress is not None else (0, 0)
        data = {"state": "at work" if progress is not None else "done", "done": done, "total": total}
        return Page("Insight", "insight", _progress_view(request, done, total), data, scripts=("progress.js",))

    return page_or_progress


def _progress_view(request: PageRequest, done: int, total: int) -> Markup:
    text = f"{format_size(done)} of {format_size(total)}"
    poll = urls.build_url(urls.json_path(request.path), progress=True)
    return join(
        (
            insight_head(request, "Attributing costs"),
            el("p", "Each session is read once to find what caused its cost. You can use other pages meanwhile."),
            progress_bar("Progress", text, done, total, request.url_with(), poll=poll),
        )
    )


def period_fields(request: PageRequest) -> Iterator[FormField]:
    """The filters that pages about a period share."""
    yield FormField("since", "Since", "30d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")
    yield FormField("project", "Project", "part of path", suggestions=suggested_values(request, "project"))


@form_on_error("Why it cost this much", period_fields, "by")
@prepare_first
def why_page(request: PageRequest) -> Page:
    """What caused the costs of all sessions."""
    by = request.choice("by", KEYS, "kind")
    period = parse_period(request)
    project = request.text("project")
    limit = request.number("limit", _MAX_CAUSES, least=1, most=_MAX_LISTED)
    answer = request.cached(
        "causes",
        lambda: _compute_causes(request, period, by, limit),
        period,
        project,
        by,
        limit,
        zone_name(request.zone()),
    )
    main = join(
        (
            insight_head(request, "Why it cost this much", *period.describe(request.zone())),
            el("div", period_chips(request, period), by_chips(request, KEYS, by), class_="links"),
            filter_form(request, list(period_fields(request)), preserve=("by",)),
            _render_answer(request, answer, by, limit)
            if answer.groups
            else el("p", "No cost in this period. Choose another one.", class_="nothing"),
        )
    )
    return Page("Why it cost this much", "insight", main, _causes_document(answer, by, period))


def _compute_causes(request: PageRequest, period: Period, by: str, limit: int) -> CauseAnswer:
    archive = request.archive
    causes = archive.causes(since=period.since, until=period.until, project=request.text("project"))
    groups = causes.by(by)
    largest = causes.largest(limit)
    sessions = {str(cause.session) for cause in largest if cause.session is not None}
    if by in {"session", "project"}:
        sessions |= {str(brief.id) for brief in all_sessions(request)}
    return CauseAnswer(
        causes.amount,
        causes.sessions,
        causes.unpriced,
        causes.error,
        tuple(groups),
        _inner_groups(request, causes, by),
        tuple(largest),
        archive.titles(sessions),
        {cause.place: _place_url(request, cause.place) for cause in largest if cause.place is not None},
    )


def _inner_groups(request: PageRequest, causes: CauseList, by: str) -> InnerGroups | None:
    """The sums within groups: parts of kinds, kinds of tools, sessions of projects."""
    groups: dict[str, list[GroupSum]] = {}
    if by in {"kind", "tool"}:
        for part in causes.by("part"):
            kind, _, name = part.key.partition(" ")
            is_tool = kind in {CauseKind.CALL, CauseKind.RESULT}
            if name and (by == "kind" or is_tool):
                outer, inner = (kind, name) if by == "kind" else (name, kind)
                groups.setdefault(outer, []).append(_group_sum(part, inner))
        return InnerGroups("name" if by == "kind" else "kind", groups)
    if by == "project":
        projects = {str(brief.id): brief.project for brief in all_sessions(request)}
        for session in causes.by("session"):
            if session.key in projects:
                groups.setdefault(projects[session.key], []).append(_group_sum(session, session.key))
        return InnerGroups("session", groups)
    return None


def _group_sum(group: CauseGroup, key: str) -> GroupSum:
    return GroupSum(key, group.causes, group.tokens, group.amount)


def _place_url(request: PageRequest, place: Place) -> str | None:
    return urls.place_url(request.archive, place.transcript, place.line or 0)


def _render_answer(request: PageRequest, answer: CauseAnswer, by: str, limit: int) -> Markup:
    links = CauseLinks(
        lambda cause: answer.addresses.get(cause.place) if cause.place is not None else None,
        lambda key: _group_url(request, by, key),
        lambda key, value: answer.titles.get(value) if key == "session" else None,
        lambda cause: answer.titles.get(str(cause.session)) if by != "session" and cause.kind in _UNNAMED else None,
    )
    groups = [_group_sum(group, group.key) for group in answer.groups]
    parts = tuple(
        insight.add_amounts(amounts)
        for amounts in zip(*((group.write, group.read, group.output) for group in answer.groups), strict=True)
    )
    is_all = request.text("groups") == "all"
    more = request.url_with(limit=_MAX_LISTED) if len(answer.largest) == limit < _MAX_LISTED else None
    return join(
        (
            render_parts(answer.amount, (parts[0], parts[1], parts[2]), ("sessions", f"{answer.sessions:,}")),
            render_treemap(groups, answer.largest, by, links, answer.inner),
            render_groups(
                groups, by, links, answer.amount, more_url=None if is_all else request.url_with(groups="all")
            ),
            render_causes(
                answer.largest,
                links,
                answer.amount,
                title="Most expensive causes",
                session=lambda cause: session_link(cause.session, answer.titles, 48),
            ),
            el("p", el("a", "Show more", href=more), class_="note") if more is not None else None,
            explain_method(
                answer.error, answer.unpriced, has_estimates=any(group.estimated for group in answer.groups)
            ),
        )
    )


def _group_url(request: PageRequest, by: str, key: str) -> str | None:
    """The page that a group leads to: that of a session or project, or the list of what it is."""
    if key.startswith("("):  # a placeholder for a missing value
        return None
    match by:
        case "session":
            return urls.session_url(key, "why")
        case "project":
            return request.url_with(project=key, by="session")
        case "file":
            return urls.build_url(urls.FILES, path=key)
        case "tool":
            return urls.build_url(urls.CALLS, tool=key)
        case _:
            return None


def _causes_document(answer: CauseAnswer, by: str, period: Period) -> dict[str, Any]:
    return {
        "amount": answer.amount,
        "sessions": answer.sessions,
        "error": round(answer.error, 3) if answer.error is not None else None,
        "unpriced": answer.unpriced,
        "by": by,
        "since": period.since,
        "until": period.until,
        "rows": [insight.group_record(group, by) for group in answer.groups],
        "causes": [insight.cause_record(cause) for cause in answer.largest],
    }


def _waste_fields(request: PageRequest) -> Iterator[FormField]:
    yield from period_fields(request)
    yield from limit_fields()


class WasteAnswer(Struct, frozen=True):
    """What the page of waste shows."""

    findings: tuple[Waste, ...]
    total: Decimal
    titles: Mapping[str, str]


@form_on_error("Avoidable costs", _waste_fields, "only")
@prepare_first
def waste_page(request: PageRequest) -> Page:
    """Avoidable costs in all sessions."""
    limits, detectors = parse_limits(request), parse_detectors(request)
    period = parse_period(request)
    project = request.text("project")

    def compute() -> WasteAnswer:
        found = request.archive.waste(limits=limits, since=period.since, until=period.until, project=project)
        sessions = {str(finding.session) for finding in found if finding.session is not None}
        return WasteAnswer(tuple(found), found.total, request.archive.titles(sessions))

    answer = request.cached("waste", compute, period, project, limits, zone_name(request.zone()))
    links = FindingLinks(
        lambda _finding, place: _place_url(request, place),
        lambda finding: session_link(finding.session, answer.titles, 48),
    )
    main = join(
        (
            insight_head(request, "Avoidable costs", *period.describe(request.zone())),
            el("div", period_chips(request, period), class_="links"),
            filter_form(request, list(_waste_fields(request)), preserve=("only",)),
            render_findings(request, answer.findings, links, answer.total, detectors),
        )
    )
    shown = [finding for finding in answer.findings if not detectors or finding.detector in detectors]
    data = {
        "total": answer.total,
        "since": period.since,
        "until": period.until,
        "rows": [insight.waste_record(finding) for finding in shown],
    }
    return Page("Avoidable costs", "insight", main, data)
