"""How reliable, quick and expensive tools are: failures by kind, durations, and what results cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline import insight
from threadline.model.text import count, format_amount, format_duration, format_percent, format_tokens
from threadline.model.times import zone_name
from threadline.render import shorten
from threadline.render.html import Bar, Child, Column, TableRow, bar_chart, el, join, render_table, share_bar
from threadline.web import urls
from threadline.web.insight.causes import BY_LABELS, path_end
from threadline.web.insight.frame import by_chips, insight_head, lend_zone, list_filters, period_fields, prepare_first
from threadline.web.pages.forms import FormField, filter_form, form_on_error
from threadline.web.pages.period import Period, parse_period, period_chips
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.model.calls import ToolGroup
    from threadline.web.request import PageRequest

_TIME_KEYS = frozenset(("day", "week"))
_MAX_GROUPS = 60
_OUTCOMES = ("ok", "error", "denied", "interrupted or lost")


class _Figure(Struct, frozen=True):
    """A column: its heading, tooltip, what it shows of a group, and its class (phones hide `minor` columns)."""

    heading: str
    hint: str | None
    text: Callable[[ToolGroup], Child]
    kind: str = "number minor"


def _positive(number: int) -> str:
    return f"{number:,}" if number else ""


def _seconds(seconds: float | None) -> str:
    return format_duration(timedelta(seconds=seconds)) if seconds is not None else ""


def _estimated(group: ToolGroup, text: str) -> str:
    return f"~{text}" if text and group.estimated else text


def _failure_cell(group: ToolGroup) -> Child:
    rate = group.failure_rate
    return [share_bar(rate, kind="failures"), format_percent(rate)] if rate else ""


FIGURES: dict[str, _Figure] = {
    "calls": _Figure("Calls", None, lambda group: f"{group.calls:,}", "number"),
    "failed": _Figure(
        "Failed",
        "the share of calls that did not succeed, of those that ended",
        _failure_cell,
        "share",
    ),
    "errors": _Figure(
        "Errors",
        "failed calls, without commands that ended with an exit code",
        lambda group: _positive(group.errors - group.exit_codes),
    ),
    "exit": _Figure(
        "Exit code",
        "commands that ended with an exit code other than 0",
        lambda group: _positive(group.exit_codes),
    ),
    "denied": _Figure(
        "Denied",
        "calls that a person, a rule or a hook refused",
        lambda group: _positive(group.denied),
    ),
    "stopped": _Figure(
        "Stopped",
        "calls that were interrupted, or whose result never came",
        lambda group: _positive(group.interrupted + group.lost),
    ),
    "median": _Figure(
        "Median",
        "half of the calls took longer; with waiting for permission",
        lambda group: _seconds(group.median),
        "number",
    ),
    "p95": _Figure(
        "95th percentile",
        "one in twenty calls took longer",
        lambda group: _seconds(group.p95),
    ),
    "output": _Figure(
        "Output",
        "the size of the results in tokens; ~ marks an estimate",
        lambda group: _estimated(group, format_tokens(group.output_tokens) if group.output_tokens else ""),
    ),
    "amount": _Figure(
        "Amount",
        "what it cost to send the results, and to carry them with later requests; ~ marks an estimate",
        lambda group: _estimated(group, format_amount(group.carried) if group.carried else ""),
        "number",
    ),
}
"""The columns by what they are sorted by, which is a value of `insight.TOOL_SORTS`."""


def _fields(request: PageRequest) -> Iterator[FormField]:
    yield from period_fields(request)
    yield FormField("tool", "Tool", "name")
    yield FormField("session", "Session", "start of its id")


@form_on_error("Tools", "insight", _fields, "by", "sort")
@prepare_first
def tools_page(request: PageRequest) -> Page:
    """Calls, failures, durations and costs by tool, server, program, model, version, time or project."""
    by = request.choice("by", insight.TOOL_KEYS, "tool")
    is_time = by in _TIME_KEYS
    sort = request.choice("sort", (*FIGURES, "key"), "key" if is_time else "calls")
    period = parse_period(request)
    zone = request.zone()
    filters = (period, request.text("project"), request.text("session"), request.texts("tool"))
    groups = request.cached("tools by", lambda: _compute(request, period, by), *filters, by, zone_name(zone))
    shown = groups if sort == "key" else insight.select_tool_groups(groups, by, sort, None)
    content: Child = el("p", "No calls in this period. Remove a filter.", class_="nothing")
    if groups:
        content = join((_chart(groups, by) if is_time else None, _table(request, shown, by, sort)))
    main = join(
        (
            insight_head(request, "Tools", *period.describe(zone)),
            el("div", period_chips(request, period), by_chips(request, insight.TOOL_KEYS, by), class_="links"),
            filter_form(request, list(_fields(request)), preserve=("by", "sort")),
            content,
        )
    )
    data = {
        "by": by,
        "since": period.since,
        "until": period.until,
        "rows": [insight.tool_group_record(group, by) for group in shown],
    }
    return Page("Tools", "insight", main, data)


def _compute(request: PageRequest, period: Period, by: str) -> list[ToolGroup]:
    with lend_zone(request) as archive:
        return list(
            archive.tools(
                by,
                tools=request.texts("tool"),
                session=request.text("session"),
                project=request.text("project"),
                since=period.since,
                until=period.until,
            )
        )


def _chart(groups: Sequence[ToolGroup], by: str) -> Markup:
    """Calls over time by outcome."""
    bars = [Bar(group.key, [group.ok, group.errors, group.denied, group.interrupted + group.lost]) for group in groups]
    drawing = bar_chart("calls", f"Calls by {by}", _OUTCOMES, bars, lambda value: f"{value:,.0f}")
    return el("section", drawing, class_="block")


def _table(request: PageRequest, groups: Sequence[ToolGroup], by: str, sort: str) -> Markup:
    label = BY_LABELS.get(by, by)
    shown = groups if request.text("groups") == "all" else groups[:_MAX_GROUPS]
    columns = [
        Column(f"{label[:1].upper()}{label[1:]}", "title"),
        *(Column(_sort_link(request, name, sort), figure.kind, figure.hint) for name, figure in FIGURES.items()),
    ]
    rows = [
        TableRow([_key_cell(request, group, by), *(figure.text(group) for figure in FIGURES.values())], item=True)
        for group in shown
    ]
    table = render_table(f"Calls by {label}", columns, rows, kind="list figures", hidden_caption=True)
    left = len(groups) - len(shown)
    more = el("p", el("a", f"Show {left:,} more", href=request.url_with(groups="all")), class_="note") if left else None
    # A command counts for each program that it runs, so that these do not add up.
    title = f"By {label}" if by == "command" else f"{count(sum(group.calls for group in groups), 'call')} by {label}"
    return el("section", el("h2", title), join((table, more)), class_="block")


def _sort_link(request: PageRequest, name: str, sort: str) -> Markup:
    return el(
        "a", FIGURES[name].heading, href=request.url_with(sort=name), aria_current="true" if name == sort else None
    )


def _key_cell(request: PageRequest, group: ToolGroup, by: str) -> Child:
    kept = {**list_filters(request), "session": request.text("session")}
    if group.key.startswith("("):  # a placeholder for a missing value
        return group.key
    match by:
        case "tool":
            return el("a", shorten(group.key, 80), href=urls.build_url(urls.CALLS, tool=group.key, **kept))
        case "project":
            url = request.url_with(project=group.key, by="tool", sort=None)
            return el("a", path_end(group.key), href=url, title=shorten(group.key, 400))
        case "day":
            return el(
                "a", group.key, href=urls.build_url(urls.CALLS, **kept | {"since": group.key, "until": group.key})
            )
        case _:
            return shorten(group.key, 80)
