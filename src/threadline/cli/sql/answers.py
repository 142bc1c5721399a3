"""Results of SQL queries as tables, JSON, CSV and Parquet files, and the index's schema for people.

In SQLite every cell has its own type; a Parquet column has one. If a cell does not fit, its column is widened and the
rows written so far are written again: rarely, and at most three times per column.

Files are written next to their target and moved into place when complete.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import chain, count, groupby, islice
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

import click

from threadline import files
from threadline.cli import output as out
from threadline.cli.output import print_message
from threadline.errors import BadQuery
from threadline.index import PRIVATE, ColumnKind, declared_kind, schema_columns
from threadline.model.homes import Home
from threadline.model.tables import DECIMAL_DIGITS, DECIMAL_PLACES, import_library
from threadline.model.text import format_decimal, plain_decimal
from threadline.model.times import parse_timestamp, sortable_time
from threadline.render import display_width, one_line, plain

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import QueryResult

_MAX_CELL = 200
# Columns are as wide as their cells, so a table's rows are held until it is printed: this many at most.
_ROWS_PER_TABLE = 10_000
# DuckDB has integers beyond 64 bits; JSON readers do not.
_MAX_JSON_INTEGER = 2**63
# A table has at least this much of each column, if its cells are not shorter.
_READABLE_WIDTH = 12
_TIME_TYPES = (dt.date, dt.time)


class AnswerRows(Protocol):
    """The rows of a query, and the names of their columns."""

    columns: list[str]

    def __iter__(self) -> Iterator[Sequence[Any]]: ...


class Answer(AnswerRows, Protocol):
    """The rows of a query, which can be written to a file."""

    def write_parquet(self, path: Path) -> int:
        """Write all rows to a Parquet file; return how many."""


def print_answer_table(answer: AnswerRows) -> int:
    """Print rows as a table, repeating the headings if there are very many rows; return how many.

    If there are too many columns for the width, each row is a block with a line per column.
    """
    headings = [plain(name) for name in answer.columns]
    rows = iter(answer)
    total = 0
    is_table = True
    while page := [
        (tuple(map(_is_number, row)), list(map(_format_cell, row))) for row in islice(rows, _ROWS_PER_TABLE)
    ]:
        cells = [shown for _, shown in page]
        is_table = is_table and _fits_table(headings, cells)
        if is_table:
            numbers = [at for at in range(len(headings)) if all(is_number[at] for is_number, _ in page)]
            click.echo(out.format_table(headings, cells, right=numbers, shrink=range(len(headings) - 1)))
        else:
            for number, row in enumerate(cells, total + 1):
                _print_block(number, headings, row)
        total += len(page)
    if not total:
        print_message("No rows.")
    return total


def _fits_table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> bool:
    """Whether a table has room for a readable part of every column."""
    columns = zip(headings, *cells, strict=True)
    needed = sum(len(out.GAP) + min(_READABLE_WIDTH, max(map(display_width, column))) for column in columns)
    return needed <= out.terminal_width()


def _print_block(number: int, headings: Sequence[str], row: Sequence[str]) -> None:
    width = max(map(display_width, headings))
    click.echo(("\n" if number > 1 else "") + out.format_heading(f"row {number:,}"))
    for heading, cell in zip(headings, row, strict=True):
        label = f"{out.GAP}{heading}{' ' * (width - display_width(heading))}{out.GAP}"
        click.echo(out.wrap_text(cell, label) if cell else label.rstrip())


def print_schema_table(rows: Iterable[Mapping[str, Any]], titles: Mapping[str, str]) -> None:
    """Print the columns of tables, under the title of each table. The keys of a row are those of `sql --schema`."""
    for table, columns in groupby(rows, key=lambda row: str(row["table"])):
        title = out.wrap_text(f"{table}{out.GAP}{titles.get(table, '')}".rstrip(), indent=out.GAP)
        click.echo(out.format_heading(table) + title.removeprefix(table))
        for row in columns:
            label = f"{out.GAP}{row['column']:<16}{row['type'] or '':<10}"
            click.echo(out.wrap_text(row["comment"], label) if row["comment"] else label.rstrip())


def print_answer_rows(answer: AnswerRows, output: str, file: IO[bytes] | None = None) -> int:
    """Print rows as JSON, JSON Lines or CSV; return how many."""

    def convert(row: Sequence[Any]) -> dict[str, Any]:
        values = zip(answer.columns, row, strict=True)
        return {name: json_cell(_as_amount(value) if name == "amount" else value) for name, value in values}

    return out.print_rows(map(convert, answer), output, file, columns=answer.columns)


def _as_amount(value: Any) -> Any:
    """The decimal that SQLite stores as text."""
    return Decimal(value) if isinstance(value, str) and _is_amount(value) else value


def json_cell(value: Any) -> Any:
    """A value for JSON: blobs in hexadecimal, times in ISO 8601, integers beyond 64 bits as text.

    >>> json_cell(bytes([0, 255])), json_cell(Decimal("1.50")), json_cell([2**70, None])
    ('00ff', Decimal('1.5'), ['1180591620717411303424', None])
    """
    if isinstance(value, Mapping):
        return {str(json_cell(key)): json_cell(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_cell(item) for item in value]
    if isinstance(value, Decimal):
        return plain_decimal(value)
    is_json = (
        value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < _MAX_JSON_INTEGER)
    )
    return value if is_json else _scalar_text(value)


def _scalar_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return f"{sortable_time(value)}Z"
    return value.isoformat() if isinstance(value, _TIME_TYPES) else str(value)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float | Decimal)


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    cell = json_cell(value)
    return one_line(cell if isinstance(cell, str) else str(cell), _MAX_CELL)


# For everything SQLite holds. It cannot be undone, so it leaves room for other queries in this process.
SQLITE_HEAP_LIMIT = 768 * 1024 * 1024
"""How many bytes SQLite may hold while it runs a query."""


class IndexAnswer:
    """The result of a query of the index."""

    def __init__(self, result: QueryResult) -> None:
        self._result = result
        self.columns = result.columns

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return iter(self._result)

    def write_parquet(self, path: Path) -> int:
        """Write all rows to a Parquet file; return how many.

        Raises:
            Missing: pyarrow is not installed.
        """
        chunks = self._result.chunks(CHUNK_ROWS)
        first = next(chunks, [])
        kinds = [guess_kind(name, [row[at] for row in first]) for at, name in enumerate(self.columns)]
        return write_parquet(path, self.columns, kinds, chain([first] if first else [], chunks))


@contextmanager
def query_index(archive: Archive, query: str, seconds: float) -> Iterator[IndexAnswer]:
    """Query the index.

    Raises:
        BadQuery: the query is invalid, not read-only, or takes too long.
        Unreadable: the index is damaged or missing.
    """
    with archive.sql_runner(heap=SQLITE_HEAP_LIMIT) as ask:
        yield IndexAnswer(ask(query, seconds))


_UNEXPORTED_TABLE = "text"


def exportable_tables() -> dict[str, dict[str, ColumnKind]]:
    """The tables and views to export, with the kinds of their columns as far as the schema says.

    Full text is not among them: it can be searched, but does not contain the text.
    """
    tables = groupby(schema_columns(), key=lambda row: row["table"])
    return {
        name: {row["column"]: declared_kind(row["column"], row["type"]) for row in rows}
        for name, rows in tables
        if name not in PRIVATE and name != _UNEXPORTED_TABLE
    }


def export_targets(folder: Path) -> list[Path]:
    """The files that an export to this folder writes."""
    return [folder / f"{name}.parquet" for name in exportable_tables()]


def export_tables(archive: Archive, folder: Path, seconds: float, *, force: bool) -> list[dict[str, Any]]:
    """Write all tables and views to a folder, creating it if needed; return a row for each.

    Raises:
        BadQuery: a file already exists and `force` is not set, or the folder is not writable.
        Missing: pyarrow is not installed.
        Unreadable: the index is damaged or missing.
    """
    import_library("pyarrow", "frames")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadQuery(f"Cannot create the folder {str(folder)!r}: {error.strerror or error}.") from None
    with report_write_errors(folder), files.staging_folder(folder, ".threadline") as drafts:
        rows = list(write_tables(archive, drafts, exportable_tables(), seconds))
        for row in rows:
            target = folder / f"{row['table']}.parquet"
            with report_write_errors(target):
                files.move_file(drafts / target.name, target, overwrite=force)
            row["path"] = str(target)
    return rows


def write_tables(archive: Archive, folder: Path, names: Iterable[str], seconds: float) -> Iterator[dict[str, Any]]:
    """Write these tables to a folder; yield a row for each when it is written."""
    kinds = exportable_tables()
    with archive.sql_runner(heap=SQLITE_HEAP_LIMIT) as ask:
        for name in names:
            path = folder / f"{name}.parquet"
            columns = ", ".join(f'"{column}"' for column in kinds[name])
            answer = ask(f'SELECT {columns} FROM "{name}"', seconds)  # noqa: S608 - the schema's own names
            rows = write_parquet(path, answer.columns, list(kinds[name].values()), answer.chunks(CHUNK_ROWS))
            yield {"table": name, "rows": rows, "bytes": path.stat().st_size}


FORMAT_BY_SUFFIX = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
"""The format that each file suffix means."""


def format_of(target: Path) -> str:
    """The format that a file's suffix means.

    Raises:
        BadQuery: no format has this suffix.
    """
    try:
        return FORMAT_BY_SUFFIX[target.suffix.lower()]
    except KeyError:
        raise BadQuery(
            f"Unknown format of {str(target)!r}. Use one of these suffixes: {', '.join(FORMAT_BY_SUFFIX)}."
        ) from None


def check_targets(targets: Sequence[Path], homes: Sequence[Home], *, force: bool) -> None:
    """Check that these files may be written.

    Raises:
        BadQuery: one already exists and `force` is not set, or it is inside a home, where nothing is written.
    """
    for target in targets:
        real = target.resolve()
        home = next((home for home in homes if real.is_relative_to(home.path.resolve())), None)
        if home is not None:
            raise BadQuery(
                f"{str(target)!r} is inside the Claude home {str(home.path)!r}, where threadline does not write."
                " Choose another path."
            )
        if target.is_dir():
            raise BadQuery(f"{str(target)!r} is a folder. Name a file.")
        if not force and os.path.lexists(target):
            raise BadQuery(f"{str(target)!r} already exists. Choose another name, or use --force.")


@contextmanager
def report_write_errors(target: Path) -> Iterator[None]:
    """Turn errors of the file system into messages about a target.

    Raises:
        BadQuery: it exists already, or cannot be written.
    """
    try:
        yield
    except FileExistsError:
        raise BadQuery(f"{str(target)!r} already exists. Choose another name, or use --force.") from None
    except OSError as error:
        raise BadQuery(f"{str(target)!r} cannot be written: {error.strerror or error}.") from None


def write_answer(answer: Answer, target: Path, output_format: str, *, force: bool) -> int:
    """Write all rows into one file atomically, and return how many there were.

    Raises:
        BadQuery: it exists already and `force` is false, or it cannot be written.
        Missing: the format needs a library that is not installed.
    """
    with report_write_errors(target), files.staged_path(target, overwrite=force) as draft:
        if output_format == "parquet":
            return answer.write_parquet(draft)
        with draft.open("wb") as file:
            return print_answer_rows(answer, output_format, file)


# Beyond this, floating-point numbers cannot represent every integer.
_MAX_EXACT_FLOAT = 2**53
_MAX_AMOUNT = Decimal(10) ** (DECIMAL_DIGITS - DECIMAL_PLACES)


_KIND_OF_TYPE = {int: ColumnKind.INTEGER, float: ColumnKind.REAL, str: ColumnKind.TEXT, bytes: ColumnKind.BLOB}


def guess_kind(column: str, values: Sequence[Any]) -> ColumnKind:
    """The kind to start with for a column of a SELECT: amounts and times by their names, if the first values fit."""
    kind = declared_kind(column, None)
    is_text = all(value is None or isinstance(value, str) for value in values)
    return kind if is_text and widen_kind(kind, values) is kind else ColumnKind.NOTHING


def widen_kind(kind: ColumnKind, values: Sequence[Any]) -> ColumnKind:
    """The narrowest kind that fits both the column so far and these values."""
    kinds = {_KIND_OF_TYPE[type_] for type_ in set(map(type, values)) if type_ in _KIND_OF_TYPE}
    if kind in _CHECKS:
        return kind if all(map(_CHECKS[kind], values)) else ColumnKind.TEXT
    if kind is not ColumnKind.NOTHING:
        kinds.add(kind)
    if kinds == {ColumnKind.INTEGER, ColumnKind.REAL}:
        return (
            ColumnKind.REAL
            if all(abs(value) <= _MAX_EXACT_FLOAT for value in values if type(value) is int)
            else ColumnKind.TEXT
        )
    if not kinds:
        return ColumnKind.NOTHING
    return kinds.pop() if len(kinds) == 1 else ColumnKind.TEXT


def convert_column(kind: ColumnKind, values: Sequence[Any]) -> Sequence[Any]:
    """Convert values to this kind. As text, blobs are in hexadecimal."""
    if kind is ColumnKind.AMOUNT:
        return [None if value is None else Decimal(value) for value in values]
    if kind is ColumnKind.TIME:
        return [parse_timestamp(value) for value in values]
    if kind is ColumnKind.REAL:
        return [None if value is None else float(value) for value in values]
    if kind is ColumnKind.TEXT:
        return [value if value is None or type(value) is str else _column_text(value) for value in values]
    return values


def _column_text(value: Any) -> str:
    if isinstance(value, bytes | dt.datetime):
        return _scalar_text(value)
    return format_decimal(value) if isinstance(value, Decimal) else str(value)


def _is_amount(value: Any) -> bool:
    if value is None:
        return True
    try:
        amount = Decimal(value) if isinstance(value, str | int | Decimal) else Decimal("NaN")
    except InvalidOperation:
        return False
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -DECIMAL_PLACES and abs(amount) < _MAX_AMOUNT


def _is_time(value: Any) -> bool:
    """Whether a value is a time in ISO 8601; numbers are not."""
    is_iso = isinstance(value, str) and _ISO_TIME.match(value) is not None
    return value is None or isinstance(value, dt.datetime) or (is_iso and parse_timestamp(value) is not None)


_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_CHECKS: dict[ColumnKind, Callable[[Any], bool]] = {ColumnKind.AMOUNT: _is_amount, ColumnKind.TIME: _is_time}

CHUNK_ROWS = 20_000
"""How many rows are written at a time."""


def write_parquet(
    path: Path, columns: Sequence[str], kinds: Sequence[ColumnKind], chunks: Iterable[Sequence[Sequence[Any]]]
) -> int:
    """Write all rows, starting with these kinds of columns; return how many."""
    with GrowingParquetFile(path, columns, kinds) as growing:
        return sum(growing.add(list(zip(*rows, strict=True))) for rows in chunks)


class GrowingParquetFile:
    """Writes a Parquet file whose column types become known as rows arrive. It appears at `path` when complete."""

    def __init__(self, path: Path, columns: Sequence[str], kinds: Sequence[ColumnKind]) -> None:
        self._arrow = import_library("pyarrow", "frames")
        self._parquet = import_library("pyarrow.parquet", "frames")
        self._path = path
        self._drafts = (path.with_name(f"{path.name}.{number}") for number in count())
        self._columns = columns
        self._start(list(kinds))

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
        """Add rows, given as columns; return how many."""
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
        self._start(kinds)
        if not is_empty:
            for values in self._read_draft(before):
                self.add(values)
        before.unlink()

    def _start(self, kinds: list[ColumnKind]) -> None:
        self._draft = next(self._drafts)
        self._kinds = kinds
        self._rows = 0
        self._schema = self._arrow.schema(
            [(name, self._type(kind)) for name, kind in zip(self._columns, kinds, strict=True)]
        )
        self._writer = self._parquet.ParquetWriter(self._draft, self._schema, compression="zstd")

    def _read_draft(self, draft: Path) -> Iterator[list[list[Any]]]:
        with self._parquet.ParquetFile(draft) as file:
            for group in range(file.num_row_groups):
                yield [column.to_pylist() for column in file.read_row_group(group).columns]

    def _type(self, kind: ColumnKind) -> Any:
        types = {
            ColumnKind.INTEGER: self._arrow.int64(),
            ColumnKind.REAL: self._arrow.float64(),
            ColumnKind.AMOUNT: self._arrow.decimal128(DECIMAL_DIGITS, DECIMAL_PLACES),
            ColumnKind.TIME: self._arrow.timestamp("us", tz="UTC"),
            ColumnKind.BLOB: self._arrow.binary(),
        }
        # A column without any value needs a type: most are text.
        return types.get(kind, self._arrow.string())
