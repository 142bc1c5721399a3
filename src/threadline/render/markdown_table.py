"""Markdown tables: columns aligned where they fit, rows as they are where they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from threadline.render.layout import width_of, wrap
from threadline.render.style import Role, Span, Spans

_ROW = re.compile(r"\s*\|.*\|\s*")
_LINE = re.compile(r"[\s|:-]*")
_BETWEEN = re.compile(r"(?<!\\)\|")

Inline = Callable[[str], Iterable[Span]]


def is_row(line: str) -> bool:
    """Whether a line is a row of a table."""
    return _ROW.fullmatch(line) is not None


def table(rows: list[str], width: int, inline: Inline) -> Iterator[Spans]:
    """The rows of a table, the line under its heading drawn; nothing for no rows."""
    if not rows:
        return
    cells = [None if "-" in row and _LINE.fullmatch(row) else _cells(row, inline) for row in rows]
    widths = _widths(row for row in cells if row is not None)
    if sum(widths) + 3 * (len(widths) - 1) > width:
        for written in rows:
            yield from wrap(inline(written.strip()), width)
        return
    for row in cells:
        if row is None:
            yield (Span("─┼─".join("─" * one for one in widths), Role.FAINT),)
        else:
            yield tuple(_padded(row, widths))


def _cells(row: str, inline: Inline) -> list[Spans]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [tuple(inline(cell.strip().replace("\\|", "|"))) for cell in _BETWEEN.split(inner)]


def _widths(rows: Iterable[list[Spans]]) -> list[int]:
    """How wide each column is; rows need not have as many cells as others."""
    widths: list[int] = []
    for row in rows:
        widths += [0] * (len(row) - len(widths))
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], width_of(cell))
    return widths


def _padded(row: list[Spans], widths: list[int]) -> Iterator[Span]:
    missing: list[Spans] = [()] * (len(widths) - len(row))
    for at, (cell, width) in enumerate(zip([*row, *missing], widths, strict=True)):
        if at:
            yield Span(" │ ", Role.FAINT)
        yield from cell
        yield Span(" " * (width - width_of(cell)))
