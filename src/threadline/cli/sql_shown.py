"""Rows of an answer for people, for programs and in files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

import click

from threadline.cli import output as out
from threadline.model.rate import plain_number

_CELL = 200
# Columns are as wide as their cells, so the rows of a table are held until it is shown: this many at most.
_PAGE = 10_000
# Beyond 64 bits, which DuckDB has and JSON's readers have not.
_LARGE = 2**63
_MOMENT = (dt.date, dt.time)


class Answer(Protocol):
    """The rows of a question, and the names of their columns."""

    columns: list[str]

    def __iter__(self) -> Iterator[Sequence[Any]]: ...

    def write_parquet(self, path: Path) -> int:
        """All rows into a Parquet file; how many there were."""


def print_table(answer: Answer) -> int:
    """Rows under headings, and headings again where there are very many rows; how many there were."""
    headings = [out.plain(name) for name in answer.columns]
    rows = iter(answer)
    count = 0
    while page := [(tuple(map(_is_number, row)), list(map(_shown, row))) for row in islice(rows, _PAGE)]:
        numbers = [at for at in range(len(headings)) if all(is_number[at] for is_number, _ in page)]
        cells = [shown for _, shown in page]
        click.echo(out.table(headings, cells, right=numbers, shrink=range(len(headings) - 1)))
        count += len(page)
    if not count:
        click.echo("threadline: No rows.", err=True)
    return count


def print_rows(answer: Answer, output: str, file: IO[bytes] | None = None) -> int:
    """Rows as JSON, JSON Lines or CSV; how many there were."""

    def rows() -> Iterator[Mapping[str, Any]]:
        for row in answer:
            yield dict(zip(answer.columns, map(plain, row), strict=True))

    made: Iterable[Mapping[str, Any]] = rows()
    return out.print_rows(made, output, file)


def plain(value: Any) -> Any:
    """A value as JSON has it: a blob in hexadecimal, an exact number as text, a moment in ISO 8601.

    >>> plain(bytes([0, 255])), plain(Decimal("1.50")), plain([2**70, None])
    ('00ff', '1.5', ['1180591620717411303424', None])
    """
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    is_json = value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < _LARGE)
    return value if is_json else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return plain_number(value)
    return value.isoformat() if isinstance(value, _MOMENT) else str(value)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float | Decimal)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    made = plain(value)
    return out.one_line(made if isinstance(made, str) else str(made), _CELL)
