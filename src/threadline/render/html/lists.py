"""Sessions as a list: one row each, with what people choose by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal

from markupsafe import Markup
from msgspec import Struct

from threadline.render.figures import model_name, span_of_time
from threadline.render.html.element import EMPTY, Child, el
from threadline.render.html.said import money, project, when
from threadline.render.html.table import Cells, Column, table
from threadline.render.html.words import one

_TITLE = 160


class SessionRow(Struct, frozen=True):
    """What a list shows of a session; `address` is its page."""

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

    @property
    def duration(self) -> timedelta | None:
        """From its first time to its last."""
        return self.last - self.first if self.first is not None and self.last is not None else None


KEPT = "deleted by Claude Code; the keep still has it"
"""What `kept` means, for who does not know."""
_COLUMNS: dict[str, Column] = {
    "time": Column("Last used", "when"),
    "title": Column("Title", "title"),
    "project": Column("Project", "path"),
    "model": Column("Model", "model"),
    "turns": Column("Turns", "number"),
    "calls": Column("Calls", "number"),
    "agents": Column("Agents", "number"),
    "cost": Column("Cost", "number"),
    "duration": Column("Duration", "number", "from the first entry to the last"),
}
WHOLE = tuple(_COLUMNS)
"""All columns, in order."""
FEW = ("time", "title", "project", "turns", "cost")
"""Those of a list beside others."""


def session_list(
    caption: str,
    rows: Iterable[SessionRow],
    *,
    zone: tzinfo,
    columns: Iterable[str] = WHOLE,
    project_address: Callable[[str], str],
    heads: Callable[[str], Child] | None = None,
) -> Markup:
    """A table of sessions. `heads` gives what stands at the head of a column instead of its name, such as a link."""
    chosen = list(columns)
    named = [_headed(_COLUMNS[name], heads(name) if heads is not None else None) for name in chosen]
    made = [
        Cells(
            [_CELLS[name](row, zone, project_address) for name in chosen], "running" if row.running else None, item=True
        )
        for row in rows
    ]
    return table(caption, named, made, kind="list sessions", heading=chosen.index("title"), hidden_caption=True)


def _headed(column: Column, head: Child) -> Column:
    return column if head is None else Column(head, column.kind, column.title)


def _title(row: SessionRow, _zone: tzinfo, _address: Callable[[str], str]) -> Child:
    mark = el("span", "running", class_="live good") if row.running else EMPTY
    if row.kept:
        mark = el("span", "kept", class_="kept", title=KEPT)
    return el("a", one(row.title, _TITLE) or "(no title)", href=row.address), mark


_Cell = Callable[[SessionRow, tzinfo, Callable[[str], str]], Child]
_CELLS: dict[str, _Cell] = {
    "time": lambda row, zone, _address: when(row.last, zone),
    "title": _title,
    "project": lambda row, _zone, address: project(row.project, address(row.project)),
    "model": lambda row, _zone, _address: one(model_name(row.model), 40),
    "turns": lambda row, _zone, _address: f"{row.turns:,}",
    "calls": lambda row, _zone, _address: f"{row.calls:,}" if row.calls else "",
    "agents": lambda row, _zone, _address: f"{row.agents:,}" if row.agents else "",
    "cost": lambda row, _zone, _address: money(row.amount, row.unpriced),
    "duration": lambda row, _zone, _address: span_of_time(row.duration),
}
