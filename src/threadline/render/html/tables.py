"""Accessible tables: captions, row and column headings; and the table of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from threadline.model.text import format_duration, short_model_name
from threadline.render import shorten
from threadline.render.html.element import EMPTY, Child, amount_element, el, project_link, time_element


class Column(Struct, frozen=True):
    """A column: its heading, and the class of its cells (`number`, `when`, `path` …)."""

    name: Child
    kind: str | None = None
    title: str | None = None


class TableRow(Struct, frozen=True):
    """A row, whose first cell is its heading. `item`: the row can be selected with keys."""

    cells: Sequence[Child]
    kind: str | None = None
    item: bool = False


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


def share_bar(share: Decimal | float) -> Markup:
    """A bar in a table, as long as a share from 0 to 1. Screen readers skip it; put the figure beside it."""
    bar = el("rect", x=0, y=0, width=f"{100 * min(1, max(0, float(share))):.2f}", height=10)
    return el("svg", bar, class_="share-bar", viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def folded_table(summary: str, inside: Child) -> Markup:
    """A folded table, for use below a chart."""
    return el("details", el("summary", summary), inside, class_="twin")


def _render_row(row: TableRow, columns: Sequence[Column], heading: int) -> Markup:
    cells = [
        el("th", cell, scope="row", class_=column.kind) if at == heading else el("td", cell, class_=column.kind)
        for at, (cell, column) in enumerate(zip(row.cells, columns, strict=True))
    ]
    return el("tr", cells, class_=row.kind, data_item=row.item)


def _caption_text(caption: Child) -> str:
    return Markup(el("i", caption)).striptags()  # noqa: S704 - it consists of elements


_MAX_TITLE = 160


class SessionRow(Struct, frozen=True, rename={"id": "session"}):
    """The facts about a session in a list. `address` is the URL of its page.

    `shared` is what it shares with other sessions, which it is counted for. `unlisted` says why a row is not a session.
    `started` and `ended` are the times of the conversation; `last` is when the file was modified if it has no times.
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
    "amount": Column("Amount", "number"),
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
) -> Markup:
    """A table of sessions. `heads` replaces headings of columns, for example by links."""
    names = list(columns)
    headings = [_with_heading(_SESSION_COLUMNS[name], heads(name) if heads is not None else None) for name in names]
    body_rows = [
        TableRow(
            [_CELL_RENDERERS[name](row, zone, project_address) for name in names],
            "running" if row.running else None,
            item=True,
        )
        for row in rows
    ]
    return render_table(
        caption, headings, body_rows, kind="list sessions", heading=names.index("title"), hidden_caption=True
    )


def _with_heading(column: Column, head: Child) -> Column:
    return column if head is None else Column(head, column.kind, column.title)


def _title_cell(row: SessionRow, _zone: tzinfo, _address: Callable[[str], str]) -> Child:
    mark = el("span", "running", class_="live good") if row.running else EMPTY
    if row.kept:
        mark = el("span", "kept", class_="kept", title=KEPT_HINT)
    return el("a", shorten(row.title, _MAX_TITLE) or "(no title)", href=row.address), mark


_CellRenderer = Callable[[SessionRow, tzinfo, Callable[[str], str]], Child]
_CELL_RENDERERS: dict[str, _CellRenderer] = {
    "time": lambda row, zone, _address: time_element(row.last, zone),
    "title": _title_cell,
    "project": lambda row, _zone, address: project_link(row.project, address(row.project)),
    "model": lambda row, _zone, _address: shorten(short_model_name(row.model), 40),
    "turns": lambda row, _zone, _address: f"{row.turns:,}",
    "calls": lambda row, _zone, _address: f"{row.calls:,}" if row.calls else "",
    "agents": lambda row, _zone, _address: f"{row.agents:,}" if row.agents else "",
    "amount": lambda row, _zone, _address: amount_element(row.amount, row.unpriced),
    "duration": lambda row, _zone, _address: format_duration(row.duration),
}
