"""What caused the costs of all sessions in a period."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline import insight
from threadline.model.insight.attribution import CauseKind
from threadline.model.times import zone_name
from threadline.render.html import el, join
from threadline.web import urls
from threadline.web.insight.causes import (
    CauseLinks,
    GroupSum,
    InnerGroups,
    explain_method,
    render_causes,
    render_groups,
    render_parts,
    render_treemap,
)
from threadline.web.insight.frame import by_chips, insight_head, list_filters, period_fields, prepare_first
from threadline.web.pages.forms import filter_form, form_on_error
from threadline.web.pages.lists import session_link
from threadline.web.pages.period import Period, parse_period, period_chips
from threadline.web.pages.sessions import all_sessions
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.insight import CauseGroup, CauseList
    from threadline.model.insight.attribution import CostCause
    from threadline.model.places import Place
    from threadline.web.request import PageRequest

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


@form_on_error("Why it cost this much", "insight", period_fields, "by")
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
        {cause.place: urls.place_url(request.archive, cause.place) for cause in largest if cause.place is not None},
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
            return urls.build_url(urls.FILES, path=key, **list_filters(request))
        case "tool":
            return urls.build_url(urls.CALLS, tool=key, **list_filters(request))
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
