"""Avoidable costs of a period: findings by detector, with evidence, places and advice.

The page of a session shows its findings in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline import insight
from threadline.errors import BadQuery
from threadline.model.context import BreakCause
from threadline.model.insight.waste import WASTE_RULES, WasteLimits
from threadline.model.text import count, format_amount, format_tokens, noun_for
from threadline.model.times import zone_name
from threadline.render import shorten
from threadline.render.html import EMPTY, Child, Column, TableRow, choice_chip, el, figures_row, join, render_table
from threadline.web.insight.causes import format_share
from threadline.web.insight.frame import insight_head, period_fields, prepare_first
from threadline.web.pages.forms import FormField, filter_form, form_on_error
from threadline.web.pages.lists import session_link
from threadline.web.pages.period import parse_period, period_chips
from threadline.web.request import Page
from threadline.web.urls import place_url

if TYPE_CHECKING:
    from threadline.model.insight.waste import Waste
    from threadline.model.places import Place
    from threadline.web.request import PageRequest

_DEFAULTS = WasteLimits()
_MAX_ROWS = 25
_MAX_EXPONENT = 15
_MAX_PLACES = 4
_MAX_LABEL, _MAX_EVIDENCE = 160, 240


class FindingLinks(Struct, frozen=True):
    """Where findings lead: a place of one, and its session if there are several."""

    place: Callable[[Waste, Place], str | None]
    session: Callable[[Waste], Child] | None = None


def limit_fields() -> Iterator[FormField]:
    """The fields of the limits."""
    yield FormField("min", "At least USD", f"{_DEFAULTS.min_amount}")
    yield FormField("large_output", "Large output (tokens)", f"{_DEFAULTS.large_output}")


def parse_limits(request: PageRequest) -> WasteLimits:
    """Parse the thresholds for reporting.

    Raises:
        BadQuery: `min` is not an amount.
    """
    text = request.text("min")
    try:
        least = Decimal(text[:20]) if text is not None else _DEFAULTS.min_amount
    except InvalidOperation:
        least = Decimal(-1)
    # Written out, 1e999999999 would fill the memory.
    is_amount = least.is_finite() and least >= 0 and (not least or abs(least.adjusted()) <= _MAX_EXPONENT)
    if not is_amount:
        raise BadQuery(f"min={shorten(text or '', 40)!r} is not an amount in USD, such as 0.50.")
    return WasteLimits(request.number("large_output", _DEFAULTS.large_output, least=1), least or Decimal(0))


def parse_detectors(request: PageRequest) -> tuple[str, ...]:
    """Parse which detectors to show: `only`, may be repeated; empty for all.

    Raises:
        BadQuery: there is no such detector.
    """
    names = request.texts("only")
    for name in names:
        if name not in insight.DETECTORS:
            raise BadQuery(f"only={shorten(name, 40)!r} must be one of {', '.join(insight.DETECTORS)}.")
    return names


def detector_label(name: str) -> str:
    """The name of a detector for people."""
    return WASTE_RULES[name].label


def render_findings(
    request: PageRequest, findings: Sequence[Waste], links: FindingLinks, total: Decimal, detectors: Sequence[str]
) -> Markup:
    """The sum, a link for each detector, and the findings by advice. `findings` are those of all detectors."""
    sums = {name: _sum(group) for name, group in _by_detector(findings).items()}
    shown = [finding for finding in findings if not detectors or finding.detector in detectors]
    if not shown:
        return join((_chips(request, sums, detectors), el("p", _explain_nothing(request), class_="nothing")))
    amount = _sum(shown)
    figures: tuple[tuple[Child, str], ...] = (
        (format_amount(amount), "in findings, which may overlap"),
        (format_share(amount, total), f"of {format_amount(total)}"),
        (f"{len(shown):,}", noun_for(len(shown), "finding")),
    )
    return join(
        (
            figures_row((value, name, None) for value, name in figures if value),
            _chips(request, sums, detectors),
            [_section(request, group, links, is_cut=not detectors) for group in _by_detector(shown).values()],
            el(
                "p",
                "A finding is an observation, not a verdict: a failing test is often what was asked for. Findings may "
                "overlap (a failed call can also be a repeated command), so their sum is not what could be saved.",
                class_="note method",
            ),
        )
    )


def _by_detector(findings: Sequence[Waste]) -> dict[str, list[Waste]]:
    return _group(findings, lambda finding: finding.detector)


def _group(findings: Sequence[Waste], key: Callable[[Waste], str]) -> dict[str, list[Waste]]:
    """The findings by a key, most expensive first."""
    groups: dict[str, list[Waste]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return dict(sorted(groups.items(), key=lambda item: -_sum(item[1])))


def _by_advice(findings: Sequence[Waste]) -> dict[str, list[Waste]]:
    """The findings by what to do about them, most expensive first; last those that nothing can be done about."""
    groups = _group(findings, lambda finding: finding.advice)
    return dict(sorted(groups.items(), key=lambda item: not _has_advice(item[1][0])))


def _has_advice(finding: Waste) -> bool:
    """Whether the cause is known, so that there is something to do."""
    return finding.cause is not BreakCause.UNKNOWN


def _sum(findings: Sequence[Waste]) -> Decimal:
    return insight.add_amounts(finding.amount for finding in findings)


def _chips(request: PageRequest, sums: dict[str, Decimal], detectors: Sequence[str]) -> Child:
    if not sums:
        return EMPTY
    chips = [choice_chip(request.url_with(only=None), "all", is_chosen=not detectors)]
    chips += [
        choice_chip(
            request.url_with(only=name),
            f"{detector_label(name)} {format_amount(amount)}",
            is_chosen=list(detectors) == [name],
        )
        for name, amount in sums.items()
    ]
    return el("p", chips, class_="chips")


def _section(request: PageRequest, group: Sequence[Waste], links: FindingLinks, *, is_cut: bool) -> Markup:
    """The findings of one detector, by what to do about them."""
    detector = group[0].detector
    parts: list[Child] = []
    lead = el("b", "What to do: ")
    for number, (advice, findings) in enumerate(_by_advice(group).items(), 1):
        shown = findings[:_MAX_ROWS] if is_cut else findings
        parts += [
            el("p", lead if _has_advice(findings[0]) else EMPTY, shorten(advice, 400), class_="advice"),
            _table(f"{detector_label(detector)} {number}" if number > 1 else detector_label(detector), shown, links),
        ]
        if left := len(findings) - len(shown):
            more = el("a", f"Show {left:,} more", href=request.url_with(only=detector))
            parts.append(el("p", more, class_="note"))
    title = f"{detector_label(detector)}: {format_amount(_sum(group))}"
    return el(
        "section", el("h2", title, " ", el("small", count(len(group), "finding"))), parts, class_="block", id=detector
    )


def _table(label: str, findings: Sequence[Waste], links: FindingLinks) -> Markup:
    columns = [
        Column("What happened", "title"),
        *([Column("Session", "title minor")] if links.session is not None else []),
        Column("Amount", "number"),
        Column("Tokens", "number", "~ marks an estimate"),
        Column("Turn", "number minor"),
        Column("Places", "places"),
    ]
    rows = [TableRow(_cells(finding, links), item=True) for finding in findings]
    return render_table(label, columns, rows, kind="list findings", hidden_caption=True)


def _cells(finding: Waste, links: FindingLinks) -> list[Child]:
    places = [(place, links.place(finding, place)) for place in finding.places[:_MAX_PLACES]]
    first = next((url for _place, url in places if url is not None), None)
    label = shorten(finding.label, _MAX_LABEL)
    size = format_tokens(finding.tokens)
    return [
        [
            el("a", label, href=first) if first is not None else label,
            el("span", shorten(finding.evidence, _MAX_EVIDENCE), class_="evidence") if finding.evidence else None,
        ],
        *([links.session(finding)] if links.session is not None else []),
        format_amount(finding.amount),
        [
            el("span", f"~{size}" if finding.estimated else size, title=f"{finding.tokens:,}"),
            el("span", " tokens", class_="unit"),
        ],
        str(finding.turn) if finding.turn is not None else "",
        _place_links(finding, places),
    ]


def _place_links(finding: Waste, places: Sequence[tuple[Place, str | None]]) -> Child:
    links: list[Child] = []
    for place, url in places:
        text = f"line {place.line:,}"
        links += [", " if links else None, el("a", text, href=url) if url is not None else text]
    left = len(finding.places) - len(places)
    return [links, f" and {left:,} more" if left > 0 else None]


def _explain_nothing(request: PageRequest) -> str:
    least = parse_limits(request).min_amount
    if not least:
        return "No avoidable costs found."
    return f"No findings that cost at least {format_amount(least)}. Add min=0 to the URL, or lower the amount above."


def _waste_fields(request: PageRequest) -> Iterator[FormField]:
    yield from period_fields(request)
    yield from limit_fields()


class WasteAnswer(Struct, frozen=True):
    """What the page of waste shows."""

    findings: tuple[Waste, ...]
    total: Decimal
    titles: Mapping[str, str]


@form_on_error("Avoidable costs", "insight", _waste_fields, "only")
@prepare_first
def waste_page(request: PageRequest) -> Page:
    """Avoidable costs in all sessions."""
    limits, detectors = parse_limits(request), parse_detectors(request)
    period = parse_period(request)
    project = request.text("project")

    def compute() -> WasteAnswer:
        findings = request.archive.waste(limits=limits, since=period.since, until=period.until, project=project)
        sessions = {str(finding.session) for finding in findings if finding.session is not None}
        return WasteAnswer(tuple(findings), findings.total, request.archive.titles(sessions))

    answer = request.cached("waste", compute, period, project, limits, zone_name(request.zone()))
    links = FindingLinks(
        lambda _finding, place: place_url(request.archive, place),
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
