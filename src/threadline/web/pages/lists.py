"""The lists of tool calls and of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from threadline.errors import BadQuery
from threadline.model.call_summary import summarize_call
from threadline.model.calls import Outcome
from threadline.model.text import count, format_duration, format_percent
from threadline.model.times import in_zone, zone_name
from threadline.render import shorten, visible
from threadline.render.html import (
    EMPTY,
    Child,
    Column,
    TableRow,
    el,
    facts_row,
    folded_table,
    join,
    project_link,
    render_table,
    share_bar,
    time_element,
    time_zone_note,
)
from threadline.web import urls
from threadline.web.pages.forms import FormField, filter_form, form_on_error, is_safe_value, pager, parse_range
from threadline.web.pages.sessions import suggested_values
from threadline.web.request import Page
from threadline.web.urls import entry_url

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import FileTouch
    from threadline.model.calls import ListedCall, ListedFile, ToolGroup
    from threadline.web.request import PageRequest

_ROWS_PER_PAGE = 100
_MAX_TOUCHES = 500
_MAX_INPUT, _MAX_PATH = 110, 110
_CALL_COLUMNS = (
    Column("When", "when"),
    Column("Tool", "tool"),
    Column("What", "what"),
    Column("Outcome", "outcome"),
    Column("Took", "number"),
    Column("Session", "title"),
    Column("Project", "path"),
)
_FILE_COLUMNS = (
    Column("Last used", "when"),
    Column("File", "path"),
    Column("Reads", "number"),
    Column("Writes", "number"),
    Column("Session", "title"),
    Column("Project", "path"),
)
_OUTCOME_ORDER = [outcome for outcome in Outcome if outcome is not Outcome.OK] + [Outcome.OK]
"""The order of calls by outcome: failures first."""
_CALL_SORTS: dict[str, Callable[[ListedCall], Any] | None] = {
    "time": None,
    "tool": lambda call: call.tool.casefold(),
    "outcome": lambda call: _OUTCOME_ORDER.index(call.outcome),
    "duration": lambda call: -(call.duration or timedelta()),
}
"""The sort key of calls; None for the order in which the index lists them."""
_MAX_STRIP_TOOLS = 12
_STRIP_COLUMNS = (
    Column("Tool", "title"),
    Column("Calls", "number"),
    Column("Failed", "share"),
    Column("Median", "number"),
    Column("95th percentile", "number"),
)
_HOW = {"outside": "changed outside Claude"}
_TOUCH_COLUMNS = (Column("When", "when"), Column("How"), Column("Session", "title"), Column("By"))


def common_fields(request: PageRequest) -> list[FormField]:
    """The filters that lists across sessions share."""
    return [
        FormField("project", "Project", "part of path", suggestions=suggested_values(request, "project")),
        FormField("session", "Session", "start of its id"),
        FormField("since", "Since", "7d, 2026-11-03"),
        FormField("until", "Until", "yesterday"),
    ]


def _call_fields(request: PageRequest) -> list[FormField]:
    counts = request.cached("tools", request.archive.open_index().tool_counts)
    tools = [(tool, f"{shorten(tool, 50)} ({number:,})") for tool, number in counts.items() if is_safe_value(tool)]
    outcomes = [(str(outcome), str(outcome)) for outcome in Outcome]
    return [
        FormField("tool", "Tool", choices=[("", "all tools"), *tools]),
        FormField("outcome", "Outcome", choices=[("", "any"), *outcomes]),
        *common_fields(request),
    ]


@form_on_error("Calls", "calls", _call_fields, "limit", "sort")
def calls_page(request: PageRequest) -> Page:
    """Tool calls that match the filters, newest first."""
    archive = request.archive
    zone = request.zone()
    shown = parse_range(request, _ROWS_PER_PAGE)
    tools, outcomes = request.texts("tool"), request.texts("outcome")
    unknown = next((word for word in outcomes if word not in list(Outcome)), None)
    if unknown is not None:
        raise BadQuery(f"outcome={shorten(unknown, 40)!r} must be one of {', '.join(Outcome)}.")
    since, until = request.time_range()
    sort = request.choice("sort", tuple(_CALL_SORTS), "time")
    sort_key = _CALL_SORTS[sort]
    matches = archive.calls(
        tools=tools,
        exact_tools=request.flag("exact_tools"),
        outcomes=outcomes,
        session=request.text("session"),
        project=request.text("project"),
        since=since,
        until=until,
        limit=shown.stop if sort_key is None else None,
    )
    rows = sorted(matches, key=sort_key) if sort_key is not None else list(matches)
    more = len(rows) > shown.after + shown.limit
    calls = shown.select(rows)
    titles = archive.titles({str(call.session) for call in calls if call.session is not None})
    summaries = {call: summarize_call(call.tool, archive.call_input(call)) for call in calls}
    main = join(
        (
            el(
                "div",
                el("h1", "Calls"),
                facts_row(
                    (
                        f"times in {zone_name(zone)}",
                        el("a", "All errors, including API errors", href=urls.build_url(urls.ERRORS)),
                        el("a", "All tools", href=urls.build_url(urls.TOOLS)),
                    )
                ),
                class_="head",
            ),
            filter_form(request, _call_fields(request), preserve=("limit", "sort")),
            _tool_strip(request, tools),
            _call_table(request, calls, summaries, titles, sort)
            if calls
            else el("p", visible(_explain_no_calls(archive, tools)), class_="nothing"),
            pager(request, shown, len(calls), None, more=more),
        )
    )
    data = {
        "calls": [{**call.record(summaries[call]), "title": titles.get(str(call.session))} for call in calls],
        "after": shown.after,
        "more": more,
    }
    return Page("Calls", "calls", main, data)


def _call_table(
    request: PageRequest,
    calls: Sequence[ListedCall],
    summaries: Mapping[ListedCall, str],
    titles: Mapping[str, str],
    sort: str,
) -> Child:
    rows = [_call_row(call, summaries[call], titles, request.zone()) for call in calls]
    sorts = {"When": "time", "Tool": "tool", "Outcome": "outcome", "Took": "duration"}
    columns = [
        Column(_sort_link(request, str(column.name), sorts[str(column.name)], sort), column.kind)
        if str(column.name) in sorts
        else column
        for column in _CALL_COLUMNS
    ]
    return render_table("Calls", columns, rows, kind="list calls", heading=2, hidden_caption=True)


def _sort_link(request: PageRequest, label: str, name: str, sort: str) -> Child:
    url = request.url_with(sort=name if name != "time" else None, after=None)
    hint = "Sort by outcome, failures first" if name == "outcome" else f"Sort by {name}"
    return el("a", label, href=url, aria_current="true" if name == sort else None, title=hint)


def _tool_strip(request: PageRequest, tools: Sequence[str]) -> Child:
    """Calls, failures and durations of the tools that are called most, unless the list is about one of them."""
    archive = request.archive
    if tools or not request.pool.insight.is_stored(archive):
        return EMPTY
    filters = tuple(request.text(name) for name in ("project", "session", "since", "until"))
    zone = request.zone()
    today = in_zone(request.now, zone).date()  # `7d` and `yesterday` are other times tomorrow, and in another zone

    def compute() -> list[ToolGroup]:
        since, until = request.time_range()
        return list(archive.tools("tool", project=filters[0], session=filters[1], since=since, until=until))[
            :_MAX_STRIP_TOOLS
        ]

    groups = request.cached("tool strip", compute, *filters, today, zone_name(zone))
    rows = [
        [
            el("a", shorten(group.key, 50), href=request.url_with(tool=group.key, after=None)),
            f"{group.calls:,}",
            [share_bar(group.failure_rate, kind="failures"), format_percent(group.failure_rate)]
            if group.failure_rate
            else "",
            *(
                format_duration(timedelta(seconds=value)) if value is not None else ""
                for value in (group.median, group.p95)
            ),
        ]
        for group in groups
    ]
    table = render_table("Most called tools", _STRIP_COLUMNS, rows, kind="list figures", hidden_caption=True)
    return folded_table("Failure rates and durations by tool", table) if rows else EMPTY


def _call_row(call: ListedCall, summary: str, titles: Mapping[str, str], zone: tzinfo) -> TableRow:
    url = entry_url(call.session, call.agent, call.place.line)
    label = shorten(summary, _MAX_INPUT) or "(no input)"
    code = f" {call.exit_code}" if call.exit_code else ""
    agent = el("span", "agent", class_="agent-mark", title=shorten(str(call.agent), 80)) if call.agent else EMPTY
    cells: list[Child] = [
        time_element(call.timestamp, zone),
        shorten(call.tool, 50),
        el("a", label, href=url) if url else label,
        el("span", f"{call.outcome}{code}", class_=f"outcome {call.outcome}"),
        format_duration(call.duration),
        [session_link(call.session, titles, 48), agent],
        project_link(call.project, urls.build_url(urls.CALLS, project=call.project)),
    ]
    return TableRow(cells, str(call.outcome), item=True)


def _explain_no_calls(archive: Archive, tools: tuple[str, ...]) -> str:
    reason = archive.explain_unused_tools(tools) if tools else None
    return f"No matching calls: {reason}." if reason else "No matching calls. Remove a filter."


def file_fields(request: PageRequest) -> list[FormField]:
    """The filters of lists of files."""
    return [FormField("path", "File", "a path or its end", kind="search", is_wide=True), *common_fields(request)]


@form_on_error("Files", "files", file_fields, "limit")
def files_page(request: PageRequest) -> Page:
    """Files that match the filters; for a single file, its history, too."""
    archive = request.archive
    zone = request.zone()
    shown = parse_range(request, _ROWS_PER_PAGE)
    path = request.text("path")
    since, until = request.time_range()
    files = archive.files(
        path,
        session=request.text("session"),
        project=request.text("project"),
        since=since,
        until=until,
        limit=shown.stop,
    )[shown.after :]
    more = len(files) > shown.limit
    files = files[: shown.limit]
    single = files[0].path if path is not None and len({file.path for file in files}) == 1 else None
    touches = archive.open_index().touches(single, _MAX_TOUCHES) if single is not None else []
    titles = archive.titles({str(file.session) for file in files} | {str(touch.session) for touch in touches})
    main = join(
        (
            el(
                "div",
                el("h1", shorten(single, 300) if single else "Files"),
                facts_row([*_file_summary(files), f"times in {zone_name(zone)}", *_file_links(single, files)])
                if single
                else time_zone_note(zone),
                class_="head",
            ),
            filter_form(request, file_fields(request), preserve=("limit",)),
            _file_table(files, titles, zone, named=single is None)
            if files
            else el("p", _explain_no_files(path), class_="nothing"),
            pager(request, shown, len(files), None, more=more),
            _history_section(touches, titles, zone) if touches else EMPTY,
        )
    )
    data = {
        "files": [{"title": titles.get(str(file.session)), "file": file} for file in files],
        "touches": touches,
        "after": shown.after,
        "more": more,
    }
    return Page(shorten(single, 80) if single else "Files", "files", main, data)


def _file_summary(files: list[ListedFile]) -> tuple[str, ...]:
    reads, writes = sum(file.reads for file in files), sum(file.writes for file in files)
    return count(len(files), "session"), count(reads, "read"), count(writes, "write")


def _file_table(files: list[ListedFile], titles: Mapping[str, str], zone: tzinfo, *, named: bool) -> Child:
    """The files and the sessions that used them; `named` is False if all of them are the same file."""
    rows = [_file_row(file, titles, zone, named=named) for file in files]
    columns = _FILE_COLUMNS if named else tuple(column for column in _FILE_COLUMNS if column.name != "File")
    return render_table("Files", columns, rows, kind="list files", heading=1 if named else 3, hidden_caption=True)


def _file_row(file: ListedFile, titles: Mapping[str, str], zone: tzinfo, *, named: bool) -> TableRow:
    url = urls.build_url(urls.FILES, path=file.path)
    cells: list[Child] = [
        time_element(file.last, zone),
        *([el("a", _shorten_path(file.path), href=url, title=shorten(file.path, 400))] if named else []),
        [f"{file.reads:,}", el("span", " read" if file.reads == 1 else " reads", class_="unit")] if file.reads else "",
        [
            _log_link(file.path, f"{file.writes:,}", session=file.session),
            el("span", " write" if file.writes == 1 else " writes", class_="unit"),
        ]
        if file.writes
        else "",
        session_link(file.session, titles),
        project_link(file.project, urls.build_url(urls.FILES, project=file.project)),
    ]
    return TableRow(cells, item=True)


def _file_links(path: str, files: list[ListedFile]) -> Iterator[Child]:
    yield _log_link(path, "All edits as diffs")
    if any(file.writes for file in files):
        yield el("a", "Who wrote each line", href=urls.build_url(urls.BLAME, path=path))


def _log_link(path: str, label: str, *, session: str | None = None) -> Child:
    """A link to the edits of a file."""
    url = urls.build_url(urls.FILE_LOG, path=path, session=session)
    return el("a", label, href=url, title="The edits as diffs")


def _shorten_path(path: str) -> str:
    """A path in one line; of a long one the end, which says more."""
    return shorten(path, _MAX_PATH) if len(path) <= _MAX_PATH else "…" + shorten(path[1 - _MAX_PATH :], _MAX_PATH)


def session_link(session: str | None, titles: Mapping[str, str], width: int = 70) -> Child:
    """A link to a session's page, with its title."""
    if session is None:
        return ""
    return el("a", shorten(titles.get(str(session)) or str(session), width), href=urls.session_url(str(session)))


def _history_section(touches: list[FileTouch], titles: Mapping[str, str], zone: tzinfo) -> Child:
    number = f"last {_MAX_TOUCHES}" if len(touches) == _MAX_TOUCHES else f"{len(touches):,}"
    rows = [_touch_row(touch, titles, zone) for touch in touches]
    table = render_table("History", _TOUCH_COLUMNS, rows, kind="list", hidden_caption=True)
    content = table if len(touches) <= _ROWS_PER_PAGE else folded_table("View as table", table)
    return el("section", el("h2", f"History ({number})"), content, class_="block")


def _touch_row(touch: FileTouch, titles: Mapping[str, str], zone: tzinfo) -> list[Child]:
    url = entry_url(touch.session, touch.agent, touch.place.line)
    moment = time_element(touch.timestamp, zone) or "time unknown"
    return [
        el("a", moment, href=url) if url else moment,
        _HOW.get(touch.how, shorten(touch.how, 20)),
        session_link(touch.session, titles),
        _describe_writer(touch),
    ]


def _describe_writer(touch: FileTouch) -> str:
    if touch.how in _HOW:
        return "not by Claude"
    return f"agent {shorten(str(touch.agent), 20)}" if touch.agent else "main agent"


def _explain_no_files(path: str | None) -> str:
    if path is None:
        return "No matching files. Remove a filter."
    return f"No session used a file whose path is {shorten(path, 200)} or ends with it. Enter complete folder names."
