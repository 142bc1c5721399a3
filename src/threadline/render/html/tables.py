"""Accessible tables: captions, row and column headings; and the table of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from threadline.model.text import count, format_duration, format_time, short_model_name
from threadline.model.times import in_zone
from threadline.render import shorten
from threadline.render.html.element import (
    EMPTY,
    Child,
    amount_element,
    el,
    facts_row,
    project_link,
    time_element,
)


class Column(Struct, frozen=True):
    """A column: its heading, and the class of its cells (`number`, `when`, `path` …)."""

    name: Child
    kind: str | None = None
    title: str | None = None


class TableRow(Struct, frozen=True):
    """A row, whose first cell is its heading. `item`: the row can be selected with keys.

    `is_group`: its only cell is the heading of the rows below.
    """

    cells: Sequence[Child]
    kind: str | None = None
    item: bool = False
    is_group: bool = False


def render_table(
    caption: Child,
    columns: Sequence[Column],
    rows: Iterable[TableRow | Sequence[Child]],
    *,
    kind: str = "table",
    heading: int = 0,
    foot: Sequence[Child] | None = None,
    hidden_caption: bool = False,
) -> Markup:
    """A table. The cell at index `heading` is the heading of its row, and `foot` is a last row with totals."""
    headings = [el("th", column.name, scope="col", class_=column.kind, title=column.title) for column in columns]
    body_rows = [_render_row(row if isinstance(row, TableRow) else TableRow(row), columns, heading) for row in rows]
    footer = el("tfoot", _render_row(TableRow(foot), columns, heading)) if foot is not None else EMPTY
    table = el(
        "table",
        el("caption", caption, class_="visually-hidden" if hidden_caption else None),
        el("thead", el("tr", headings)),
        el("tbody", body_rows),
        footer,
        class_=kind,
    )
    return el("div", table, class_="scrollable", tabindex=0, role="region", aria_label=_caption_text(caption))


def figures_row(figures: Iterable[tuple[Child, Child, str | None]]) -> Markup:
    """Large figures with their labels below: value, label, and tooltip."""
    cells = [el("div", el("b", value), el("span", label), class_="total", title=hint) for value, label, hint in figures]
    return el("div", cells, class_="totals")


def share_bar(share: Decimal | float, *, kind: str = "") -> Markup:
    """A bar in a table, as long as a share from 0 to 1. Screen readers skip it; put the figure beside it.

    `kind` is another class, which determines its colour.
    """
    bar = el("rect", x=0, y=0, width=f"{100 * min(1, max(0, float(share))):.2f}", height=10)
    name = f"share-bar {kind}".rstrip()
    return el("svg", bar, class_=name, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def folded_table(summary: str, inside: Child) -> Markup:
    """A folded table, for use below a chart."""
    return el("details", el("summary", summary), inside, class_="twin")


def _render_row(row: TableRow, columns: Sequence[Column], heading: int) -> Markup:
    if row.is_group:
        return el("tr", el("th", row.cells[0], scope="colgroup", colspan=len(columns)), class_="group")
    cells = [
        el("th", cell, scope="row", class_=column.kind) if at == heading else el("td", cell, class_=column.kind)
        for at, (cell, column) in enumerate(zip(row.cells, columns, strict=True))
    ]
    return el("tr", cells, class_=row.kind, data_item=row.item)


def _caption_text(caption: Child) -> str:
    return Markup(el("i", caption)).striptags()  # noqa: S704 - it consists of elements


_MAX_TITLE = 160
_MAX_PROMPT = 140
_SAME_START = 40


class SessionRow(Struct, frozen=True, rename={"id": "session"}):
    """The facts about a session in a list. `address` is the URL of its page.

    `shared` is what it shares with other sessions, which it is counted for. `unlisted` says why a row is not a session.
    `started` and `ended` are the times of the conversation; `last` is when the file was modified if it has no times.
    `files` were changed. `started_agents` are all agents, `agents` those that have transcripts.
    """

    id: str | None
    title: str
    address: str
    project: str
    first: datetime | None
    last: datetime | None
    model: str | None
    turns: int
    calls: int
    agents: int
    amount: Decimal | None
    unpriced: int
    tokens: int
    running: bool = False
    kept: bool = False
    shared: tuple[dict[str, Any], ...] = ()
    unlisted: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    last_prompt: str = ""
    branch: str = ""
    files: int = 0
    failed_calls: int = 0
    started_agents: int = 0
    compactions: int = 0
    commits: int = 0
    starred: bool = False
    tags: tuple[str, ...] = ()
    note: str = ""

    @property
    def duration(self) -> timedelta | None:
        """The time from the session's start to its end."""
        return self.last - self.first if self.first is not None and self.last is not None else None


KEPT_HINT = "deleted by Claude Code; the keep still has it"
"""A tooltip that explains `kept`."""
_SESSION_COLUMNS: dict[str, Column] = {
    "time": Column("Last used", "when"),
    "title": Column("Title", "title"),
    "project": Column("Project", "path"),
    "model": Column("Model", "model"),
    "turns": Column("Turns", "number"),
    "calls": Column("Calls", "number"),
    "agents": Column("Agents", "number"),
    "amount": Column("Amount", "number amount"),
    "duration": Column("Duration", "number", "from the first entry to the last"),
}
ALL_COLUMNS = tuple(_SESSION_COLUMNS)
"""All columns, in order."""
SHORT_COLUMNS = ("time", "title", "project", "turns", "amount")
"""The columns of a short list."""


def session_table(
    caption: str,
    rows: Iterable[SessionRow],
    *,
    zone: tzinfo,
    columns: Iterable[str] = ALL_COLUMNS,
    project_address: Callable[[str], str],
    heads: Callable[[str], Child] | None = None,
    today: date | None = None,
    marks: Callable[[SessionRow], Child] | None = None,
    facts: Callable[[SessionRow], Iterable[Child]] | None = None,
) -> Markup:
    """A table of sessions. `heads` replaces headings of columns, for example by links.

    With `today`, rows are grouped by the day of their last use, and show only the time of day. `marks` are shown
    after titles, and `facts` in the second line.
    """
    names = list(columns)
    rows = list(rows)
    headings = [_with_heading(_SESSION_COLUMNS[name], heads(name) if heads is not None else None) for name in names]
    most = max((row.amount or Decimal(0) for row in rows), default=Decimal(0))
    context = _RowContext(zone, project_address, most, today is not None, marks, facts)
    body_rows: list[TableRow] = []
    day: date | None = None
    for row in rows:
        if today is not None and row.last is not None and (row_day := in_zone(row.last, zone).date()) != day:
            day = row_day
            body_rows.append(TableRow([format_day(day, today)], is_group=True))
        cells = [_CELL_RENDERERS[name](row, context) for name in names]
        body_rows.append(TableRow(cells, "running" if row.running else None, item=True))
    return render_table(
        caption, headings, body_rows, kind="list sessions", heading=names.index("title"), hidden_caption=True
    )


class _RowContext(Struct, frozen=True):
    """What all rows share: the time zone, the links of projects, and the largest amount."""

    zone: tzinfo
    project_address: Callable[[str], str]
    most: Decimal
    is_grouped: bool
    marks: Callable[[SessionRow], Child] | None
    facts: Callable[[SessionRow], Iterable[Child]] | None


def format_day(day: date, today: date) -> str:
    """A day in words: `Today`, `Yesterday`, `Wednesday 29 July`, with the year if it is another one."""
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return f"{day:%A} {day.day} {day:%B}" + ("" if day.year == today.year else f" {day.year}")


def _with_heading(column: Column, head: Child) -> Column:
    return column if head is None else Column(head, column.kind, column.title)


def _time_cell(row: SessionRow, context: _RowContext) -> Child:
    if row.last is None:
        return EMPTY
    if not context.is_grouped:
        return time_element(row.last, context.zone)
    clock = f"{in_zone(row.last, context.zone):%H:%M}"
    return el("time", clock, datetime=row.last.isoformat(), title=f"{format_time(row.last)} UTC")


def _title_cell(row: SessionRow, context: _RowContext) -> Child:
    mark = el("span", "running", class_="live good") if row.running else EMPTY
    if row.kept:
        mark = el("span", "kept", class_="kept", title=KEPT_HINT)
    title = el("a", shorten(row.title, _MAX_TITLE) or "(no title)", href=row.address)
    own = context.facts(row) if context.facts is not None else ()
    return title, mark, context.marks(row) if context.marks is not None else None, session_detail(row, own)


def session_detail(row: SessionRow, own: Iterable[Child] = ()) -> Child:
    """The second line of a row: the user's `own` facts, what happened in the session, and the last prompt."""
    agents = max(row.agents, row.started_agents)
    prompt = shorten(row.last_prompt, _MAX_PROMPT)
    facts: list[Child] = [
        *own,
        el("span", shorten(row.branch, 40), class_="git", title="git branch") if row.branch else None,
        count(row.files, "file") if row.files else None,
        el("span", count(agents, "agent"), class_="agent") if agents else None,
        el("span", f"{row.failed_calls:,} failed", class_="bad") if row.failed_calls else None,
        el("span", count(row.commits, "commit"), class_="good") if row.commits else None,
        count(row.compactions, "compaction") if row.compactions else None,
        el("q", prompt) if prompt and prompt[:_SAME_START] != shorten(row.title, _MAX_PROMPT)[:_SAME_START] else None,
    ]
    return facts_row(facts) if any(facts) else EMPTY


def _amount_cell(row: SessionRow, context: _RowContext) -> Child:
    """The amount, and a bar that compares it with the largest in the list."""
    if not row.amount or not context.most:
        return amount_element(row.amount, row.unpriced)
    return amount_element(row.amount, row.unpriced), share_bar(row.amount / context.most)


def _agents_cell(row: SessionRow, _context: _RowContext) -> Child:
    number = max(row.agents, row.started_agents)
    missing = number - row.agents
    return el("span", f"{number:,}", title=f"{missing:,} without a transcript" if missing else None) if number else ""


_CellRenderer = Callable[[SessionRow, _RowContext], Child]
_CELL_RENDERERS: dict[str, _CellRenderer] = {
    "time": _time_cell,
    "title": _title_cell,
    "project": lambda row, context: project_link(row.project, context.project_address(row.project)),
    "model": lambda row, _context: shorten(short_model_name(row.model), 40),
    "turns": lambda row, _context: f"{row.turns:,}",
    "calls": lambda row, _context: f"{row.calls:,}" if row.calls else "",
    "agents": _agents_cell,
    "amount": _amount_cell,
    "duration": lambda row, _context: format_duration(row.duration),
}
