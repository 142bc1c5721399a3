"""Reports that commands have, as pages: errors, five-hour windows, prompt history, and the lists of a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from threadline.account import window_limit
from threadline.model.ledger import UsageWindow
from threadline.model.places import Place
from threadline.model.text import count, format_amount, format_duration, format_percent, format_tokens, short_model_name
from threadline.model.times import zone_name
from threadline.render import shorten
from threadline.render.html import (
    EMPTY,
    Child,
    Column,
    TableRow,
    amount_element,
    el,
    facts_row,
    figures_row,
    join,
    number_element,
    project_link,
    render_table,
    share_bar,
    time_element,
    time_zone_note,
)
from threadline.web import urls
from threadline.web.pages.forms import FormField, filter_form, form_on_error, pager, parse_range
from threadline.web.pages.lists import common_fields, session_link
from threadline.web.pages.period import parse_period, period_chips
from threadline.web.request import Page
from threadline.web.session.head import page_header

if TYPE_CHECKING:
    from threadline.model.ledger import WindowLimit
    from threadline.model.state import State
    from threadline.reports import Failure, TypedPrompt
    from threadline.web.request import PageRequest

_ROWS_PER_PAGE = 100
_OUTCOMES = ("error", "denied", "interrupted", "lost", "api-error")
_ERROR_COLUMNS = (
    Column("When", "when"),
    Column("Tool", "tool"),
    Column("Error", "what"),
    Column("Outcome", "outcome"),
    Column("Session", "title"),
    Column("Project", "path"),
)
_WINDOW_COLUMNS = (
    Column("Started", "when"),
    Column("Worked", "number", "from the first request to the last"),
    Column("Models", "model minor"),
    Column("Tokens", "number minor"),
    Column("Amount", "number"),
    Column(
        "Of the largest", "share", "compared with the largest finished window; Claude Code does not write the limit"
    ),
)
_PROMPT_COLUMNS = (
    Column("When", "when"),
    Column("Prompt", "what"),
    Column("Session", "title"),
    Column("Project", "path"),
)


def _error_fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("tool", "Tool", "name")
    yield FormField("outcome", "Outcome", choices=[("", "any"), *((name, name) for name in _OUTCOMES)])
    yield from common_fields(request)


@form_on_error("Errors", "calls", _error_fields, "limit")
def errors_page(request: PageRequest) -> Page:
    """Failed calls and API requests, newest first."""
    zone = request.zone()
    shown = parse_range(request, _ROWS_PER_PAGE)
    period = parse_period(request)
    filters = (request.text("session"), request.text("project"), request.texts("tool"), request.texts("outcome"))
    failures = request.cached("errors", lambda: _read_failures(request), period, filters)
    page_rows = shown.select(failures)
    titles = request.archive.titles({str(failure.session) for failure in page_rows if failure.session is not None})
    rows = [_error_row(request, failure, titles) for failure in page_rows]
    main = join(
        (
            el("div", el("h1", count(len(failures), "error")), facts_row(period.describe(zone)), class_="head"),
            el("div", period_chips(request, period), class_="links"),
            filter_form(request, list(_error_fields(request)), preserve=("limit",)),
            render_table("Errors", _ERROR_COLUMNS, rows, kind="list calls", heading=2, hidden_caption=True)
            if rows
            else el("p", "No matching errors. Remove a filter.", class_="nothing"),
            pager(request, shown, len(page_rows), len(failures)),
        )
    )
    data = {"errors": page_rows, "total": len(failures), "after": shown.after}
    return Page("Errors", "calls", main, data)


def _read_failures(request: PageRequest) -> list[Failure]:
    period = parse_period(request)
    failures = request.archive.errors(
        period.since,
        session=request.text("session"),
        project=request.text("project"),
        tools=request.texts("tool"),
        outcomes=request.texts("outcome"),
        until=period.until,
    )
    return list(failures)[::-1]


def _error_row(request: PageRequest, failure: Failure, titles: dict[str, str]) -> TableRow:
    place = Place.parse(failure.place)
    url = urls.place_url(request.archive, place)
    label = shorten(failure.text or failure.input, 160)
    project = failure.project or ""
    cells: list[Child] = [
        time_element(failure.timestamp, request.zone()),
        shorten(failure.tool or "API request", 50),
        el("a", label, href=url, title=shorten(failure.input, 300)) if url else label,
        el("span", failure.what, class_=f"outcome {failure.what}"),
        session_link(failure.session, titles, 48),
        project_link(project, urls.build_url(urls.ERRORS, project=project)) if project else "",
    ]
    return TableRow(cells, "error", item=True)


def blocks_page(request: PageRequest) -> Page:
    """The five-hour windows that usage limits apply to, newest first."""
    zone = request.zone()
    ledger = request.archive.ledger()
    windows = ledger.windows(now=request.now)
    limit = window_limit(windows, None, is_given=False)
    shown = parse_range(request, _ROWS_PER_PAGE)
    used = [window for window in reversed(windows) if not window.is_gap]
    page_rows = shown.select(used)
    active = next((window for window in used if window.is_active), None)
    rows = [_window_row(request, window, limit) for window in page_rows]
    main = join(
        (
            el("div", el("h1", "Five-hour windows"), time_zone_note(zone), class_="head"),
            _active_window(active, limit) if active is not None else _no_active_window(used, zone),
            render_table("Five-hour windows", _WINDOW_COLUMNS, rows, kind="list figures", hidden_caption=True)
            if rows
            else el("p", "Nothing was spent yet.", class_="nothing"),
            pager(request, shown, len(page_rows), len(used)),
        )
    )
    data = {"windows": [window.record(limit) for window in page_rows], "total": len(used), "after": shown.after}
    return Page("Five-hour windows", "usage", main, data)


def _no_active_window(used: Sequence[UsageWindow], zone: tzinfo) -> Child:
    """When the newest of the windows ended; nothing if there are none."""
    if not used:
        return EMPTY
    return el("p", "No window is active. The last one ended at ", time_element(used[0].ends, zone), ".", class_="note")


def _active_window(window: UsageWindow, limit: WindowLimit | None) -> Child:
    figures: list[tuple[Child, Child, str | None]] = [
        (number_element(window.sum.tokens), "tokens so far", None),
        (amount_element(window.sum.amount, window.sum.unpriced) or "$0.00", "so far", None),
    ]
    if window.burn is not None:
        figures.append((f"{format_tokens(round(window.burn.tokens_per_minute))}/min", "burn rate", None))
    if window.projection is not None:
        figures.append((format_tokens(window.projection.tokens), "tokens at its end, at this rate", None))
        if window.projection.amount is not None:
            figures.append((format_amount(window.projection.amount), "at its end, at this rate", None))
    if limit is not None:
        figures.append((format_percent(limit.share(window.sum.tokens)), "of the largest window", None))
    return el("section", el("h2", "Active window"), figures_row(figures), class_="block")


def _window_row(request: PageRequest, window: UsageWindow, limit: WindowLimit | None) -> TableRow:
    share = limit.share(window.sum.tokens) if limit is not None else None
    models = ", ".join(dict.fromkeys(short_model_name(model) for model in window.models))
    begins = time_element(window.begins, request.zone())
    cells: list[Child] = [
        [begins, el("span", "active", class_="live good")] if window.is_active else begins,
        format_duration(window.duration),
        shorten(models, 60),
        number_element(window.sum.tokens),
        amount_element(window.sum.amount, window.sum.unpriced),
        [share_bar(share), format_percent(share)] if share is not None else "",
    ]
    return TableRow(cells, item=False)


def _history_fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("q", "Text", "words", kind="search")
    yield FormField("gone", "Sessions", choices=[("", "all"), ("1", "deleted ones")])
    yield from (field for field in common_fields(request) if field.name != "session")


@form_on_error("Prompt history", "calls", _history_fields, "limit")
def history_page(request: PageRequest) -> Page:
    """What was typed in all projects, newest first, also in deleted sessions."""
    zone = request.zone()
    shown = parse_range(request, _ROWS_PER_PAGE)
    since, until = request.time_range()
    history = request.archive.history(
        text=request.text("q"),
        project=request.text("project"),
        since=since,
        until=until,
        gone=request.flag("gone") or None,
        limit=shown.stop,
    )
    prompts = list(history)[shown.after :]
    more = len(prompts) > shown.limit
    prompts = prompts[: shown.limit]
    known = {str(prompt.session) for prompt in prompts if prompt.session is not None and not prompt.gone}
    titles = request.archive.titles(known)
    main = join(
        (
            el("div", el("h1", "Prompt history"), facts_row([f"times in {zone_name(zone)}"]), class_="head"),
            filter_form(request, list(_history_fields(request)), preserve=("limit",)),
            render_table(
                "Prompts",
                _PROMPT_COLUMNS,
                [_prompt_row(request, prompt, titles) for prompt in prompts],
                kind="list calls",
                heading=1,
                hidden_caption=True,
            )
            if prompts
            else el("p", "No matching prompts. Remove a filter.", class_="nothing"),
            pager(request, shown, len(prompts), None, more=more),
        )
    )
    return Page("Prompt history", "calls", main, {"prompts": prompts, "after": shown.after, "more": more})


def _prompt_row(request: PageRequest, prompt: TypedPrompt, titles: dict[str, str]) -> TableRow:
    gone = el("span", "deleted", title="The session's transcript was deleted.")
    session = gone if prompt.gone else session_link(prompt.session, titles, 48)
    query = urls.build_url(urls.SEARCH, q=shorten(prompt.text, 200))
    cells: list[Child] = [
        time_element(prompt.timestamp, request.zone()),
        el("a", shorten(prompt.text, 200) or "(empty)", href=query, title="Search for it"),
        session,
        project_link(prompt.project, urls.build_url(urls.HISTORY, project=prompt.project)) if prompt.project else "",
    ]
    return TableRow(cells, item=True)


def todos_page(request: PageRequest) -> Page:
    """The todo and task lists of a session at its end, those of its agents included."""
    cached = request.session()
    rows = list(_list_rows(cached.session.at()))
    columns = [Column("What", "what"), Column("Status", "outcome"), Column("List")]
    cells: list[list[Child]] = [
        [
            row["text"] or "(no text)",
            _status(row),
            row["list"] if row["agent"] is None else f"{row['list']} of an agent",
        ]
        for row in rows
    ]
    if any(row["owner"] for row in rows):
        columns.append(Column("Owner"))
        cells = [[*row_cells, row["owner"]] for row_cells, row in zip(cells, rows, strict=True)]
    main = join(
        (
            page_header(cached, "Todos"),
            render_table("Todos and tasks", columns, cells, kind="list", hidden_caption=True)
            if cells
            else el("p", "No todos or tasks at the end of this session."),
        )
    )
    title = shorten(cached.session.title.text, 80) or "(no title)"
    return Page(f"Todos · {title}", "calls", main, rows)


def _status(row: dict[str, Any]) -> Child:
    status = row["status"] or ""
    kind = {"completed": "ok", "in_progress": "running"}.get(status, "pending")
    return el("span", shorten(status.replace("_", " "), 40), class_=f"outcome {kind}") if status else EMPTY


def _list_rows(state: State) -> Iterator[dict[str, Any]]:
    for todo_list in state.todos:
        for todo in todo_list.todos:
            text = shorten(todo.content or "", 300) or "(no text)"
            yield {"list": "todo", "agent": todo_list.agent, "status": todo.status, "text": text, "owner": ""}
    for task_state in state.tasks:
        task = task_state.task
        text = shorten(task.subject or "", 300)
        yield {
            "list": "task",
            "agent": None,
            "status": task.status,
            "text": text,
            "owner": shorten(task.owner or "", 40),
        }
