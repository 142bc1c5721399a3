"""Rows of the index as a Parquet file, in one pass and in bounded memory, whatever kinds of cells come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from threadline.cli.sql_kinds import DIGITS, PLACES, Kind, fitted, widened
from threadline.errors import Missing

CHUNK = 20_000
"""How many rows are written at once."""


def library(name: str, extra: str) -> Any:
    """A library that only some need.

    Raises:
        Missing: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise Missing(f"{package} is not installed; install it with `pip install 'threadline[{extra}]'`.") from None


def write_parquet(
    path: Path, columns: Sequence[str], kinds: Sequence[Kind], chunks: Iterable[Sequence[Sequence[Any]]]
) -> int:
    """Write all rows; `kinds` are as far as they are known. How many rows there were."""
    with Growing(path, columns, kinds) as growing:
        return sum(growing.add(list(zip(*rows, strict=True))) for rows in chunks)


class Growing:
    """A Parquet file that gets rows, a column at a time; it ends at `path` when all are there.

    What a column holds is known for certain only at its end. A cell that does not fit what came before widens the
    column, and what has been written is written again: seldom, and at most three times for each column.
    """

    def __init__(self, path: Path, columns: Sequence[str], kinds: Sequence[Kind]) -> None:
        self._arrow = library("pyarrow", "frames")
        self._parquet = library("pyarrow.parquet", "frames")
        self._path = path
        self._drafts = (path.with_name(f"{path.name}.{number}") for number in count())
        self._columns = columns
        self._begin(list(kinds))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._writer.close()
        if error is None:
            self._draft.replace(self._path)
        else:
            self._draft.unlink(missing_ok=True)

    def add(self, values: Sequence[Sequence[Any]]) -> int:
        """Add rows, given by columns; how many there are."""
        kinds = [widened(kind, column) for kind, column in zip(self._kinds, values, strict=True)]
        if kinds != self._kinds:
            self._widen(kinds)
        columns = [
            self._arrow.array(fitted(kind, column), type=self._type(kind))
            for kind, column in zip(self._kinds, values, strict=True)
        ]
        self._writer.write_batch(self._arrow.record_batch(columns, schema=self._schema))
        self._rows += len(values[0])
        return len(values[0])

    def _widen(self, kinds: list[Kind]) -> None:
        before, is_empty = self._draft, not self._rows
        self._writer.close()
        self._begin(kinds)
        if not is_empty:
            for values in self._written(before):
                self.add(values)
        before.unlink()

    def _begin(self, kinds: list[Kind]) -> None:
        self._draft = next(self._drafts)
        self._kinds = kinds
        self._rows = 0
        self._schema = self._arrow.schema(
            [(name, self._type(kind)) for name, kind in zip(self._columns, kinds, strict=True)]
        )
        self._writer = self._parquet.ParquetWriter(self._draft, self._schema, compression="zstd")

    def _written(self, draft: Path) -> Iterator[list[list[Any]]]:
        with self._parquet.ParquetFile(draft) as file:
            for group in range(file.num_row_groups):
                yield [column.to_pylist() for column in file.read_row_group(group).columns]

    def _type(self, kind: Kind) -> Any:
        types = {
            Kind.INTEGER: self._arrow.int64(),
            Kind.REAL: self._arrow.float64(),
            Kind.AMOUNT: self._arrow.decimal128(DIGITS, PLACES),
            Kind.BLOB: self._arrow.binary(),
        }
        # A column without a value has to be something: most are text.
        return types.get(kind, self._arrow.string())
