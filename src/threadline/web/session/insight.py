"""Pages about the cost of a session: what caused it (`why`), and what was avoidable (`waste`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from threadline import insight
from threadline.errors import BadQuery, NotFound
from threadline.model.ledger import sum_amounts
from threadline.render import agent_slug, agent_title, foreign_transcript_slug, shorten
from threadline.render.html import EMPTY, choice_chip, el, figures_row, join
from threadline.web.insight.causes import (
    BY_LABELS,
    CauseLinks,
    explain_method,
    group_causes,
    inner_key,
    key_function,
    render_causes,
    render_groups,
    render_parts,
    render_treemap,
    sum_parts,
)
from threadline.web.insight.frame import by_chips
from threadline.web.insight.outcomes import outcome_figures, render_outcomes
from threadline.web.insight.waste import (
    FindingLinks,
    limit_fields,
    parse_detectors,
    parse_limits,
    render_findings,
)
from threadline.web.pages.forms import filter_form, pager, parse_range
from threadline.web.request import Page
from threadline.web.session.head import page_header

if TYPE_CHECKING:
    from threadline.model.insight.attribution import Attribution, CostCause
    from threadline.model.insight.outcomes import OutcomeGroup, SessionOutcome
    from threadline.model.insight.waste import Waste, WasteLimits
    from threadline.model.places import Place
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

KEYS = ("kind", "tool", "file", "server", "turn", "agent")
"""What the causes of a session can be grouped by."""
_CAUSES_PER_PAGE = 100
_MAX_PROMPT = 60
_COST_PAGES = (
    ("cost", "Cost by turn"),
    ("why", "Why it cost this much"),
    ("waste", "Avoidable costs"),
    ("along", "By turn and agent"),
    ("context/end", "What filled the window"),
    ("outcomes", "Outcomes"),
)
"""The pages about a session's cost, and their names."""


def session_why_page(request: PageRequest) -> Page:
    """What caused the cost of a session."""
    session = request.session()
    attribution = session.costs(request.archive).attribution
    by = request.choice("by", KEYS, "kind")
    group = request.text("group")
    rows = attribution.rows
    if group is not None:
        key = key_function(by)
        rows = tuple(cause for cause in rows if key(cause) == group)
        if not rows:
            raise BadQuery(f"group={shorten(group, 80)!r} is not a {BY_LABELS.get(by, by)} of this session.")
    links = cause_links(request, session, by, is_group=group is not None)
    main = join(
        (
            cost_head(session, "Why it cost this much", "why"),
            by_chips(request, KEYS, by),
            _group_note(request, links, by, group) if group is not None else EMPTY,
            _cost_view(request, attribution, rows, by if group is None else inner_key(rows, by), links)
            if rows
            else _no_cost(session),
        )
    )
    return Page("Why it cost this much", "insight", main, _why_data(attribution, by) if request.wants_data else None)


def _why_data(attribution: Attribution, by: str) -> dict[str, object]:
    groups = [insight.group_record(group, by) for group in insight.group_rows(attribution.rows, by)]
    return {**insight.attribution_record(attribution), "by": by, "groups": groups}


def _cost_view(
    request: PageRequest, attribution: Attribution, rows: Sequence[CostCause], by: str, links: CauseLinks
) -> Markup:
    total = sum_amounts(row.amount for row in rows)
    groups = group_causes(rows, by)
    shown = parse_range(request, _CAUSES_PER_PAGE)
    page_rows = shown.select(rows)
    is_all = request.text("groups") == "all"
    return join(
        (
            render_parts(total, sum_parts(rows), ("causes", f"{len(rows):,}")),
            render_treemap(groups, rows, by, links),
            render_groups(groups, by, links, total, more_url=None if is_all else request.url_with(groups="all")),
            render_causes(page_rows, links, total, title="Causes, most expensive first"),
            pager(request, shown, len(page_rows), len(rows)),
            explain_method(
                attribution.error, attribution.unpriced, has_estimates=any(row.estimated for row in attribution.rows)
            ),
        )
    )


def _no_cost(session: CachedSession) -> Markup:
    reason = (
        "Its messages are counted in the session that it is a copy of."
        if session.continuations
        else "No model with a known price replied in this session."
    )
    return el("p", f"No cost of its own. {reason}", class_="nothing")


def _group_note(request: PageRequest, links: CauseLinks, by: str, group: str) -> Markup:
    back = el("a", "Show everything", href=request.url_with(group=None, after=None, groups=None))
    return el("p", "Only ", el("b", links.label(by, group)), " · ", back, class_="note")


def cause_links(request: PageRequest, session: CachedSession, by: str, *, is_group: bool) -> CauseLinks:
    """The links of causes: to their places, and of groups unless one is shown (`is_group`)."""
    turns = {str(turn.number): turn for turn in session.session.main.turns}
    agents = {str(agent.id): agent for agent in session.session.agents}

    def name(key: str, value: str) -> str | None:
        if key == "turn" and (turn := turns.get(value)) is not None:
            prompt = shorten(turn.act.text, _MAX_PROMPT) if turn.act is not None else ""
            return f"Turn {value}: {prompt}" if prompt else f"Turn {value}"
        if key == "agent" and value in agents:
            return agent_title(agents[value])
        return None

    return CauseLinks(
        lambda cause: place_url(session, cause.place, cause.agent),
        lambda key: None if is_group else request.url_with(by=by, group=key, after=None, groups=None),
        name,
    )


def place_url(session: CachedSession, place: Place | None, agent: str | None) -> str | None:
    """The URL of a place in a session; None if the session does not have it."""
    if place is None or not place.line:
        return None
    entries = session.session.main.entries
    if entries and place.transcript == entries[0].line.transcript:
        anchor = f"L{place.line}"
    elif agent is not None:
        anchor = f"{agent_slug(agent)}.L{place.line}"
    else:
        anchor = f"{foreign_transcript_slug(place.transcript)}.L{place.line}"
    try:
        session.entry(anchor)
    except NotFound:
        return None
    return session.links.entry(anchor)


def session_waste_page(request: PageRequest) -> Page:
    """Avoidable costs in a session."""
    session = request.session()
    limits, detectors = parse_limits(request), parse_detectors(request)
    findings = _find_waste(request, session, limits)
    links = FindingLinks(lambda finding, place: place_url(session, place, finding.agent))
    main = join(
        (
            cost_head(session, "Avoidable costs", "waste"),
            filter_form(request, list(limit_fields()), preserve=("only",)),
            render_findings(request, findings, links, session.costs(request.archive).attribution.amount, detectors),
        )
    )
    records = [insight.waste_record(each) for each in findings if not detectors or each.detector in detectors]
    return Page("Avoidable costs", "insight", main, records)


def session_outcomes_page(request: PageRequest) -> Page:
    """What a session produced."""
    session = request.session()
    name = str(session.session.id or session.id)

    def compute() -> tuple[tuple[SessionOutcome, ...], OutcomeGroup | None]:
        return tuple(request.archive.outcomes(name)), request.archive.outcome_groups(session=name).total

    outcomes, total = request.cached("session outcomes", compute, session.id, session.version)
    table = (
        render_outcomes(outcomes, request.zone(), lambda outcome: place_url(session, outcome.place, outcome.agent))
        if outcomes
        else el("p", "No commits, pull requests, test runs or edits in this session.", class_="nothing")
    )
    figures = figures_row(outcome_figures(total)) if total is not None and outcomes else EMPTY
    main = join((cost_head(session, "Outcomes", "outcomes"), figures, el("section", table, class_="block")))
    return Page("Outcomes", "insight", main, [insight.outcome_record(outcome) for outcome in outcomes])


def _find_waste(request: PageRequest, session: CachedSession, limits: WasteLimits) -> list[Waste]:
    def compute() -> list[Waste]:
        return insight.find_waste(session.costs(request.archive), limits)

    return request.cached("waste", compute, session.id, session.version, limits)


def cost_head(session: CachedSession, title: str, current: str) -> Markup:
    """The title of a page about a session's cost, and links to the others."""
    return join((page_header(session, title), cost_links(session, current)))


def cost_links(session: CachedSession, current: str = "") -> Markup:
    """Links to the pages about a session's cost."""
    links = [
        choice_chip(session.links.below(*page.split("/")), label, is_chosen=page == current)
        for page, label in _COST_PAGES
    ]
    return el("nav", links, class_="chips cost-links", aria_label="Cost of this session")
