"""What sessions produced, and what that cost: commits, pull requests, test runs, lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline import insight
from threadline.model.insight.outcomes import OutcomeKind
from threadline.model.text import count, format_amount, format_changes, noun_for
from threadline.model.times import zone_name
from threadline.render import shorten
from threadline.render.html import (
    Child,
    Column,
    TableRow,
    choice_chip,
    el,
    figures_row,
    join,
    render_table,
    time_element,
)
from threadline.web import urls
from threadline.web.insight.causes import path_end
from threadline.web.insight.frame import by_chips, insight_head, lend_zone, list_filters, period_fields
from threadline.web.pages.forms import PageRange, filter_form, form_on_error, pager, parse_range
from threadline.web.pages.lists import session_link
from threadline.web.pages.period import Period, parse_period, period_chips
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.model.insight.outcomes import OutcomeGroup, SessionOutcome
    from threadline.web.request import PageRequest

_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "commit": ("commits", ("commit",)),
    "pull-request": ("pull requests", ("pull-request",)),
    "push": ("pushes", ("push",)),
    "test": ("test runs", ("test",)),
    "file": ("files", ("file",)),
    "all": ("everything", ()),
}
"""The values of `kind`: their names, and the kinds of outcomes that they list."""
_ROWS_PER_PAGE = 50
_MAX_GROUPS = 40
_MAX_LABEL, _SHORT_REF = 140, 9


class OutcomeAnswer(Struct, frozen=True):
    """What the page shows. It holds nothing of the index, so that it can be cached."""

    groups: tuple[OutcomeGroup, ...]
    total: OutcomeGroup | None
    outcomes: tuple[SessionOutcome, ...]
    titles: Mapping[str, str]


@form_on_error("Outcomes", "insight", period_fields, "by", "kind", "limit")
def outcomes_page(request: PageRequest) -> Page:
    """What all sessions produced in a period, by session, project, day or model; and each outcome."""
    by = request.choice("by", insight.OUTCOME_KEYS, "session")
    kind = request.choice("kind", tuple(_KINDS), "commit")
    shown = parse_range(request, _ROWS_PER_PAGE)
    period = parse_period(request)
    zone = request.zone()
    answer = request.cached(
        "outcomes",
        lambda: _compute(request, period, by, kind),
        period,
        request.text("project"),
        by,
        kind,
        zone_name(zone),
    )
    main = join(
        (
            insight_head(request, "Outcomes", *period.describe(zone)),
            el("div", period_chips(request, period), by_chips(request, insight.OUTCOME_KEYS, by), class_="links"),
            filter_form(request, list(period_fields(request)), preserve=("by", "kind", "limit")),
            figures_row(outcome_figures(answer.total)) if answer.total is not None else None,
            _group_section(request, answer, by) if answer.groups else None,
            _outcome_section(request, answer, kind, shown),
        )
    )
    data = {
        "by": by,
        "kind": kind,
        "since": period.since,
        "until": period.until,
        "total": insight.outcome_group_record(answer.total, by) if answer.total is not None else None,
        "rows": [insight.outcome_group_record(group, by) for group in answer.groups],
        "outcomes": [insight.outcome_record(outcome) for outcome in shown.select(answer.outcomes)],
    }
    return Page("Outcomes", "insight", main, data)


def _compute(request: PageRequest, period: Period, by: str, kind: str) -> OutcomeAnswer:
    project = request.text("project")
    with lend_zone(request) as archive:
        groups = archive.outcome_groups(by, project=project, since=period.since, until=period.until)
        outcomes = archive.outcomes(kinds=_KINDS[kind][1], project=project, since=period.since, until=period.until)
    sessions = {str(outcome.session) for outcome in outcomes if outcome.session is not None}
    if by == "session":
        sessions |= {group.key for group in groups}
    return OutcomeAnswer(tuple(groups), groups.total, tuple(reversed(outcomes)), request.archive.titles(sessions))


def outcome_figures(total: OutcomeGroup) -> list[tuple[Child, Child, str | None]]:
    """What was produced in all, and what each part of it cost on average."""
    runs = f"{count(total.test_runs, 'test run').partition(' ')[2]}, {total.failed_runs:,} failed"
    figures: list[tuple[Child, Child, str | None]] = [
        (f"{total.commits:,}", noun_for(total.commits, "commit"), None),
        (f"{total.pull_requests:,}", noun_for(total.pull_requests, "pull request"), None),
        (f"{total.test_runs:,}", runs, None),
        (format_changes(total.added, total.removed), f"lines in {count(total.files, 'file')}", None),
        (f"{total.surviving:,}", "lines survive", "added lines that no later edit of the same session removed"),
        (format_amount(total.amount), "spent", None),
        (format_amount(total.per_commit), "per commit", "everything that was spent, divided by commits"),
        (format_amount(total.per_pull_request), "per pull request", "everything that was spent, divided by them"),
        (format_amount(total.per_100_lines), "per 100 surviving lines", "everything that was spent, divided by lines"),
    ]
    return [figure for figure in figures if figure[0]]


def _positive(number: int) -> str:
    return f"{number:,}" if number else ""


_MAIN_FIGURES = frozenset(("Amount", "Commits", "Added"))
"""The columns that a phone shows."""
_GROUP_FIGURES: tuple[tuple[str, str | None, Callable[[OutcomeGroup], str]], ...] = (
    ("Amount", None, lambda group: format_amount(group.amount)),
    ("Commits", None, lambda group: _positive(group.commits)),
    ("Pull requests", None, lambda group: _positive(group.pull_requests)),
    ("Test runs", None, lambda group: _positive(group.test_runs)),
    ("Failed", "test runs that failed", lambda group: _positive(group.failed_runs)),
    ("Files", None, lambda group: _positive(group.files)),
    ("Added", "lines added", lambda group: _positive(group.added)),
    ("Removed", "lines removed", lambda group: _positive(group.removed)),
    ("Survive", "added lines that no later edit of the session removed", lambda group: _positive(group.surviving)),
    ("Per commit", None, lambda group: format_amount(group.per_commit)),
    ("Per 100 lines", "surviving lines", lambda group: format_amount(group.per_100_lines)),
)


def _group_section(request: PageRequest, answer: OutcomeAnswer, by: str) -> Markup:
    is_all = request.text("groups") == "all"
    shown = answer.groups if is_all else answer.groups[:_MAX_GROUPS]
    columns = [
        Column(by.capitalize(), "title"),
        *(
            Column(name, "number" if name in _MAIN_FIGURES else "number minor", hint)
            for name, hint, _ in _GROUP_FIGURES
        ),
    ]
    rows = [
        TableRow(
            [_group_cell(request, group, by, answer.titles), *(show(group) for _, _, show in _GROUP_FIGURES)], item=True
        )
        for group in shown
    ]
    table = render_table(f"By {by}", columns, rows, kind="list figures", hidden_caption=True)
    left = len(answer.groups) - len(shown)
    more = el("p", el("a", f"Show {left:,} more", href=request.url_with(groups="all")), class_="note") if left else None
    return el("section", el("h2", f"By {by}"), join((table, more)), class_="block")


def _group_cell(request: PageRequest, group: OutcomeGroup, by: str, titles: Mapping[str, str]) -> Child:
    if group.key.startswith("("):  # a placeholder for a missing value
        return group.key
    match by:
        case "session":
            label = shorten(titles.get(group.key) or group.key, 80)
            return el("a", label, href=urls.session_url(group.key, "outcomes"))
        case "project":
            url = request.url_with(project=group.key, by="session", after=None, groups=None)
            return el("a", path_end(group.key), href=url, title=shorten(group.key, 400))
        case "day":
            kept = list_filters(request) | {"since": group.key, "until": group.key}
            return el("a", group.key, href=urls.build_url(urls.SESSIONS, **kept))
        case _:
            return shorten(group.key, 80)


def _outcome_section(request: PageRequest, answer: OutcomeAnswer, kind: str, shown: PageRange) -> Markup:
    chips = [
        choice_chip(request.url_with(kind=name, after=None), label, is_chosen=name == kind)
        for name, (label, _kinds) in _KINDS.items()
    ]
    rows = shown.select(answer.outcomes)
    content: Child = el("p", "Nothing of this kind in this period.", class_="nothing")
    if rows:
        content = render_outcomes(
            rows,
            request.zone(),
            lambda outcome: urls.place_url(request.archive, outcome.place),
            lambda outcome: session_link(outcome.session, answer.titles, 48),
        )
    return el(
        "section",
        el("h2", "What was done, newest first"),
        el("p", chips, class_="chips"),
        content,
        pager(request, shown, len(rows), len(answer.outcomes)),
        class_="block",
    )


def render_outcomes(
    outcomes: Sequence[SessionOutcome],
    zone: tzinfo,
    place_url: Callable[[SessionOutcome], str | None],
    session: Callable[[SessionOutcome], Child] | None = None,
) -> Markup:
    """A table of outcomes, each with a link to its place. Pages of several sessions add the session of each."""
    columns = [
        Column("When", "when"),
        Column("What", "what"),
        Column("Kind"),
        Column("Result"),
        *([Column("Session", "title")] if session is not None else []),
    ]
    rows: list[TableRow] = []
    for outcome in outcomes:
        url = place_url(outcome)
        label = _label(outcome)
        cells: list[Child] = [
            time_element(outcome.timestamp, zone),
            [
                el("a", label, href=url, title=shorten(outcome.evidence, 300) or None) if url else label,
                el("span", "agent", class_="agent-mark", title=shorten(outcome.agent, 40)) if outcome.agent else None,
            ],
            shorten(str(outcome.kind).replace("-", " "), 40),
            _result(outcome),
            *([session(outcome)] if session is not None else []),
        ]
        rows.append(TableRow(cells, item=True))
    return render_table("Outcomes", columns, rows, kind="list outcomes", heading=1, hidden_caption=True)


def _label(outcome: SessionOutcome) -> str:
    match outcome.kind:
        case OutcomeKind.COMMIT:
            label = " ".join(filter(None, ((outcome.ref or "")[:_SHORT_REF], outcome.label)))
        case OutcomeKind.PUSH:
            label = f"{outcome.branch} to {outcome.label}" if outcome.label else outcome.branch or ""
        case OutcomeKind.PULL_REQUEST:
            label = " ".join(dict.fromkeys(filter(None, (outcome.label, outcome.ref))))
        case _:
            label = outcome.label
    return shorten(label, _MAX_LABEL) or str(outcome.kind)


def _result(outcome: SessionOutcome) -> Child:
    parts = [shorten(outcome.action, 40)]
    if outcome.is_replaced:
        parts.append("replaced later")
    if outcome.passed is not None:
        parts += [f"{outcome.passed:,} passed", f"{outcome.failed:,} failed" if outcome.failed else ""]
        parts.append(f"{outcome.skipped:,} skipped" if outcome.skipped else "")
    elif outcome.kind is OutcomeKind.TEST:
        parts.append("result unknown" if outcome.is_ok is None else "passed" if outcome.is_ok else "failed")
    if outcome.added is not None or outcome.removed is not None:
        parts.append(format_changes(outcome.added, outcome.removed))
    if outcome.kind is OutcomeKind.FILE and outcome.surviving is not None:
        parts.append(f"{outcome.surviving:,} survive")
    return ", ".join(filter(None, parts))
