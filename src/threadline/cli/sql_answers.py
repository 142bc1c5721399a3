"""Answers to SQL queries as tables, JSON, CSV and Parquet files, and the index's schema for people.

SQLite lets every cell have its own type; a Parquet column has one. A column is widened when a cell does not fit, and
what was written is written again: rarely, and at most three times for each column.

Column comments come from the schema's own text: a comment behind a column describes the column, one behind the
opening line the table. Files are written beside their target and moved into place when complete.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal, InvalidOperation
from enum import Enum
from importlib import import_module
from itertools import count, groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

import click

from threadline.cli import output as out
from threadline.errors import BadQuery, Missing
from threadline.index import PRIVATE, TABLES, VIEWS
from threadline.model.charges import format_decimal
from threadline.model.homes import Home

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import sql

_MAX_CELL = 200
# Columns are as wide as their cells, so the rows of a table are held until it is shown: this many at most.
_ROWS_PER_TABLE = 10_000
# Beyond 64 bits, which DuckDB has and JSON's readers have not.
_MAX_JSON_INTEGER = 2**63
_TIME_TYPES = (dt.date, dt.time)


class Answer(Protocol):
    """The rows of a question, and the names of their columns."""

    columns: list[str]

    def __iter__(self) -> Iterator[Sequence[Any]]: ...

    def write_parquet(self, path: Path) -> int:
        """All rows into a Parquet file; how many there were."""


def print_answer_table(answer: Answer) -> int:
    """Rows under headings, and headings again where there are very many rows; how many there were."""
    headings = [out.plain(name) for name in answer.columns]
    rows = iter(answer)
    count = 0
    while page := [
        (tuple(map(_is_number, row)), list(map(_format_cell, row))) for row in islice(rows, _ROWS_PER_TABLE)
    ]:
        numbers = [at for at in range(len(headings)) if all(is_number[at] for is_number, _ in page)]
        cells = [shown for _, shown in page]
        click.echo(out.format_table(headings, cells, right=numbers, shrink=range(len(headings) - 1)))
        count += len(page)
    if not count:
        click.echo("threadline: No rows.", err=True)
    return count


def print_answer_rows(answer: Answer, output: str, file: IO[bytes] | None = None) -> int:
    """Rows as JSON, JSON Lines or CSV; how many there were."""

    def rows() -> Iterator[Mapping[str, Any]]:
        for row in answer:
            yield dict(zip(answer.columns, map(json_cell, row), strict=True))

    made: Iterable[Mapping[str, Any]] = rows()
    return out.print_rows(made, output, file)


def json_cell(value: Any) -> Any:
    """A value as JSON has it: a blob in hexadecimal, an exact number as text, a moment in ISO 8601.

    >>> plain(bytes([0, 255])), plain(Decimal("1.50")), plain([2**70, None])
    ('00ff', '1.5', ['1180591620717411303424', None])
    """
    if isinstance(value, Mapping):
        return {str(json_cell(key)): json_cell(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_cell(one) for one in value]
    is_json = (
        value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < _MAX_JSON_INTEGER)
    )
    return value if is_json else _scalar_text(value)


def _scalar_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format_decimal(value)
    return value.isoformat() if isinstance(value, _TIME_TYPES) else str(value)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float | Decimal)


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    made = json_cell(value)
    return out.one_line(made if isinstance(made, str) else str(made), _MAX_CELL)


# Of all that SQLite itself holds. It cannot be taken back, so it leaves room for whatever else asks in this process.
SQLITE_HEAP_LIMIT = 768 * 1024 * 1024
"""How many bytes SQLite may hold while it answers."""


class IndexAnswer:
    """An answer that can be written to a Parquet file."""

    def __init__(self, told: sql.QueryResult) -> None:
        self._told = told
        self.columns = told.columns

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return iter(self._told)

    def write_parquet(self, path: Path) -> int:
        """All rows into a Parquet file; how many there were.

        Raises:
            Missing: pyarrow is not installed.
        """
        return write_parquet(
            path, self.columns, [ColumnKind.NOTHING] * len(self.columns), self._told.chunks(CHUNK_ROWS)
        )


@contextmanager
def query_index(archive: Archive, question: str, seconds: float) -> Iterator[IndexAnswer]:
    """Ask the index.

    Raises:
        BadQuery: it cannot be understood, wants more than to read, or takes too long.
        Unreadable: the index is damaged or not there.
    """
    with archive.asking(heap=SQLITE_HEAP_LIMIT) as ask:
        yield IndexAnswer(ask(question, seconds))


_COLUMN_COMMENT = re.compile(r"^\s*(\w+)\b[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_TABLE_COMMENT = re.compile(r"\A\s*CREATE\b[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_FULL_TEXT = "text"
_FULL_TEXT_COMMENTS = {
    "title": "titles and summaries of sessions",
    "prompt": "what a person typed",
    "reply": "what the model answered",
    "thinking": "what it thought",
    "command": "shell commands",
    "path": "paths of files",
    "input": "other input of tools",
    "result": "what tools gave back",
    "injected": "what the program put in by itself",
}


def schema_columns() -> list[dict[str, Any]]:
    """A row for each column, as the schema's own text tells it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for made in (*TABLES.values(), *VIEWS.values()):
            connection.execute(made)
        return [row for name in (*TABLES, *VIEWS) for row in _table_columns(connection, name)]


def table_descriptions() -> dict[str, str]:
    """What each table and view holds, in a few words, where its opening line says it."""
    found = {name: _TABLE_COMMENT.search(made) for name, made in (TABLES | VIEWS).items()}
    told = {name: said[1] for name, said in found.items() if said is not None}
    return {_FULL_TEXT: "full text: text MATCH 'word' finds, and its rowid is the entry_id", **told}


def _table_columns(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    comments = dict(_COLUMN_COMMENT.findall((TABLES | VIEWS)[table]))
    if table == _FULL_TEXT:
        comments = _FULL_TEXT_COMMENTS
    kind = "view" if table in VIEWS else "table"
    found = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return [
        {"table": table, "kind": kind, "column": column, "type": typed or None, "comment": comments.get(column)}
        for column, typed in found
    ]


_UNEXPORTED_TABLE = "text"


def exportable_tables() -> dict[str, dict[str, ColumnKind]]:
    """The tables and views that hold something for people, and what kinds their columns have, as far as is known.

    Full text is none of them: it finds, and holds nothing.
    """
    tables = groupby(schema_columns(), key=lambda row: row["table"])
    return {
        name: {row["column"]: declared_kind(row["column"], row["type"]) for row in rows}
        for name, rows in tables
        if name not in PRIVATE and name != _UNEXPORTED_TABLE
    }


def export_targets(folder: Path) -> list[Path]:
    """The files that an export to this folder would write."""
    return [folder / f"{name}.parquet" for name in exportable_tables()]


def export_tables(archive: Archive, folder: Path, seconds: float, *, force: bool) -> list[dict[str, Any]]:
    """Write all tables and views to the folder, which is made if it is not there; a row for each of them.

    Raises:
        BadQuery: one of the files is there already, and there is no force; or the folder cannot be written to.
        Missing: pyarrow is not installed.
        Unreadable: the index is damaged or not there.
    """
    import_library("pyarrow", "frames")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadQuery(f"The folder {str(folder)!r} cannot be made: {error.strerror or error}.") from None
    with temporary_folder(folder, "threadline") as drafts:
        rows = list(write_tables(archive, drafts, exportable_tables(), seconds))
        for row in rows:
            target = folder / f"{row['table']}.parquet"
            move_into_place(drafts / target.name, target, force=force)
            row["path"] = str(target)
    return rows


def write_tables(archive: Archive, folder: Path, names: Iterable[str], seconds: float) -> Iterator[dict[str, Any]]:
    """Write the tables of these names into the folder; each as it is done, and how many rows it has."""
    kinds = exportable_tables()
    with archive.asking(heap=SQLITE_HEAP_LIMIT) as ask:
        for name in names:
            path = folder / f"{name}.parquet"
            wanted = ", ".join(f'"{column}"' for column in kinds[name])
            answer = ask(f'SELECT {wanted} FROM "{name}"', seconds)  # noqa: S608 - the schema's own names
            rows = write_parquet(path, answer.columns, list(kinds[name].values()), answer.chunks(CHUNK_ROWS))
            yield {"table": name, "rows": rows, "bytes": path.stat().st_size}


FORMAT_BY_SUFFIX = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
"""What a file's name says it is."""


def format_of(target: Path) -> str:
    """The format that the file's name asks for.

    Raises:
        BadQuery: it asks for none that can be written.
    """
    try:
        return FORMAT_BY_SUFFIX[target.suffix.lower()]
    except KeyError:
        known = ", ".join(FORMAT_BY_SUFFIX)
        raise BadQuery(f"{str(target)!r} does not say which format it shall have: end it in one of {known}.") from None


def check_targets(targets: Sequence[Path], homes: Sequence[Home], *, force: bool) -> None:
    """Whether these files may be written.

    Raises:
        BadQuery: one is there already, and there is no force; or it would be in a home, where nothing is written.
    """
    for target in targets:
        real = target.resolve()
        inside = next((home for home in homes if real.is_relative_to(home.path.resolve())), None)
        if inside is not None:
            told = f"{str(target)!r} is within the Claude home {str(inside.path)!r}, where nothing is written"
            raise BadQuery(f"{told}; give another place.")
        if target.is_dir():
            raise BadQuery(f"{str(target)!r} is a folder; give the name of a file.")
        if not force and os.path.lexists(target):
            raise BadQuery(f"{str(target)!r} is there already; give another name, or --force to replace it.")


@contextmanager
def temporary_folder(folder: Path, name: str) -> Iterator[Path]:
    """A folder that is gone afterwards, on the same disk as the one that it lies in.

    Raises:
        BadQuery: there is no such folder, or nothing may be written to it.
    """
    try:
        made = TemporaryDirectory(prefix=f".{name}.", dir=folder)
    except OSError as error:
        raise BadQuery(f"Nothing can be written to {str(folder)!r}: {error.strerror or error}.") from None
    with made as kept:
        yield Path(kept)


def write_answer(answer: Answer, target: Path, form: str, *, force: bool) -> int:
    """Write all rows into one file, which is there when it is whole; how many there were.

    Raises:
        BadQuery: it is there already, and there is no force.
        Missing: the format needs a library that is not installed.
    """
    real = target.resolve()
    with temporary_folder(real.parent, real.name) as folder:
        draft = folder / real.name
        if form == "parquet":
            rows = answer.write_parquet(draft)
        else:
            with draft.open("wb") as file:
                rows = print_answer_rows(answer, form, file)
        move_into_place(draft, target, force=force)
    return rows


def move_into_place(draft: Path, target: Path, *, force: bool) -> None:
    """Put what is whole in its place; a link there stays a link.

    Raises:
        BadQuery: something has come to be there meanwhile.
    """
    with draft.open("rb") as file:  # else a failure of the machine could leave a name without its content
        os.fsync(file.fileno())
    check_targets([target], (), force=force)
    draft.replace(target.resolve())


DIGITS, PLACES = 38, 18
"""Of an amount: as in the frames of a ledger."""

# Beyond this a floating-point number does not tell one whole number from the next.
_MAX_EXACT_FLOAT = 2**53
_MAX_AMOUNT = Decimal(10) ** (DIGITS - PLACES)


class ColumnKind(Enum):
    """What a column holds; NULL is in each of them."""

    NOTHING = "nothing"
    INTEGER = "integer"
    REAL = "real"
    AMOUNT = "amount"
    TEXT = "text"
    BLOB = "blob"


_KIND_OF_TYPE = {int: ColumnKind.INTEGER, float: ColumnKind.REAL, str: ColumnKind.TEXT, bytes: ColumnKind.BLOB}
_KIND_OF_DECLARATION = {
    "INTEGER": ColumnKind.INTEGER,
    "REAL": ColumnKind.REAL,
    "TEXT": ColumnKind.TEXT,
    "BLOB": ColumnKind.BLOB,
}


def declared_kind(column: str, typed: str | None) -> ColumnKind:
    """The kind of a column of the schema, as far as that says it; amounts are kept as text, and known by their name."""
    return ColumnKind.AMOUNT if column == "amount" else _KIND_OF_DECLARATION.get(typed or "", ColumnKind.NOTHING)


def widen_kind(kind: ColumnKind, values: Sequence[Any]) -> ColumnKind:
    """The narrowest kind that holds what the column held before, and these values."""
    found = {_KIND_OF_TYPE[one] for one in set(map(type, values)) if one in _KIND_OF_TYPE}
    if kind is ColumnKind.AMOUNT:
        return kind if all(map(_is_amount, values)) else ColumnKind.TEXT
    if kind is not ColumnKind.NOTHING:
        found.add(kind)
    if found == {ColumnKind.INTEGER, ColumnKind.REAL}:
        return (
            ColumnKind.REAL
            if all(abs(value) <= _MAX_EXACT_FLOAT for value in values if type(value) is int)
            else ColumnKind.TEXT
        )
    if not found:
        return ColumnKind.NOTHING
    return found.pop() if len(found) == 1 else ColumnKind.TEXT


def convert_column(kind: ColumnKind, values: Sequence[Any]) -> Sequence[Any]:
    """The values as this kind; what else is there as text is as it is shown: a blob in hexadecimal."""
    if kind is ColumnKind.AMOUNT:
        return [None if value is None else Decimal(value) for value in values]
    if kind is ColumnKind.REAL:
        return [None if value is None else float(value) for value in values]
    if kind is ColumnKind.TEXT:
        return [value if value is None or type(value) is str else _column_text(value) for value in values]
    return values


def _column_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return format_decimal(value) if isinstance(value, Decimal) else str(value)


def _is_amount(value: Any) -> bool:
    if value is None:
        return True
    try:
        amount = Decimal(value) if isinstance(value, str | int | Decimal) else Decimal("NaN")
    except InvalidOperation:
        return False
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -PLACES and abs(amount) < _MAX_AMOUNT


CHUNK_ROWS = 20_000
"""How many rows are written at once."""


def import_library(name: str, extra: str) -> Any:
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
    path: Path, columns: Sequence[str], kinds: Sequence[ColumnKind], chunks: Iterable[Sequence[Sequence[Any]]]
) -> int:
    """Write all rows; `kinds` are as far as they are known. How many rows there were."""
    with GrowingParquetFile(path, columns, kinds) as growing:
        return sum(growing.add(list(zip(*rows, strict=True))) for rows in chunks)


class GrowingParquetFile:
    """A Parquet file that gets rows, a column at a time; it ends at `path` when all are there.

    What a column holds is known for certain only at its end. A cell that does not fit what came before widens the
    column, and what has been written is written again: seldom, and at most three times for each column.
    """

    def __init__(self, path: Path, columns: Sequence[str], kinds: Sequence[ColumnKind]) -> None:
        self._arrow = import_library("pyarrow", "frames")
        self._parquet = import_library("pyarrow.parquet", "frames")
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
        kinds = [widen_kind(kind, column) for kind, column in zip(self._kinds, values, strict=True)]
        if kinds != self._kinds:
            self._widen(kinds)
        columns = [
            self._arrow.array(convert_column(kind, column), type=self._type(kind))
            for kind, column in zip(self._kinds, values, strict=True)
        ]
        self._writer.write_batch(self._arrow.record_batch(columns, schema=self._schema))
        self._rows += len(values[0])
        return len(values[0])

    def _widen(self, kinds: list[ColumnKind]) -> None:
        before, is_empty = self._draft, not self._rows
        self._writer.close()
        self._begin(kinds)
        if not is_empty:
            for values in self._written(before):
                self.add(values)
        before.unlink()

    def _begin(self, kinds: list[ColumnKind]) -> None:
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

    def _type(self, kind: ColumnKind) -> Any:
        types = {
            ColumnKind.INTEGER: self._arrow.int64(),
            ColumnKind.REAL: self._arrow.float64(),
            ColumnKind.AMOUNT: self._arrow.decimal128(DIGITS, PLACES),
            ColumnKind.BLOB: self._arrow.binary(),
        }
        # A column without a value has to be something: most are text.
        return types.get(kind, self._arrow.string())
