"""Tables that a screen reader can follow: a caption, and headings that say what they head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.element import EMPTY, Child, el


class Column(Struct, frozen=True):
    """A column: its heading, and the class of its cells (`number`, `when`, `path` …)."""

    name: Child
    kind: str | None = None
    title: str | None = None


class Cells(Struct, frozen=True):
    """A row: the first cell is its heading. `item` says that keys go through these rows."""

    cells: Sequence[Child]
    kind: str | None = None
    item: bool = False


def table(
    caption: Child,
    columns: Sequence[Column],
    rows: Iterable[Cells | Sequence[Child]],
    *,
    kind: str = "table",
    heading: int = 0,
    foot: Sequence[Child] | None = None,
    hidden_caption: bool = False,
) -> Markup:
    """A table; the cell at `heading` of each row is its heading, `foot` a last row that sums up."""
    named = [el("th", one.name, scope="col", class_=one.kind, title=one.title) for one in columns]
    made = [_row(row if isinstance(row, Cells) else Cells(row), columns, heading) for row in rows]
    summed = el("tfoot", _row(Cells(foot), columns, heading)) if foot is not None else EMPTY
    held = el(
        "table",
        el("caption", caption, class_="unseen" if hidden_caption else None),
        el("thead", el("tr", named)),
        el("tbody", made),
        summed,
        class_=kind,
    )
    return el("div", held, class_="scrolled", tabindex=0, role="region", aria_label=_plain(caption))


def folded(summary: str, inside: Child) -> Markup:
    """A table below a chart, folded."""
    return el("details", el("summary", summary), inside, class_="twin")


def _row(row: Cells, columns: Sequence[Column], heading: int) -> Markup:
    cells = [
        el("th", cell, scope="row", class_=column.kind) if at == heading else el("td", cell, class_=column.kind)
        for at, (cell, column) in enumerate(zip(row.cells, columns, strict=True))
    ]
    return el("tr", cells, class_=row.kind, data_item=row.item)


def _plain(caption: Child) -> str:
    return Markup(el("i", caption)).striptags()  # noqa: S704 - it is made of elements
