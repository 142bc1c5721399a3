"""Results as tables: plain records, data frames, and HTML in notebooks.

A table knows the names and types of its columns, so an empty one has the same columns as any other. Times are UTC with
microseconds, amounts are exact decimals. Data frame libraries are imported only when a data frame is requested.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib import import_module
from itertools import islice
from typing import (
    Any,
    ClassVar,
    Generic,
    Self,
    SupportsIndex,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from threadline.errors import Missing
from threadline.model.text import count, format_decimal, replace_surrogates

T = TypeVar("T")
Record = dict[str, Any]
Columns = Mapping[str, type]
"""The columns of a table: `str`, `int`, `float`, `bool`, `Decimal`, `datetime`, `timedelta`, or `list` of text."""

DECIMAL_DIGITS, DECIMAL_PLACES = 38, 18
"""The size of decimals in data frames and Parquet: wider than any sum of prices per token, so amounts stay exact."""
_BATCH_ROWS = 20_000
_HTML_ROWS = 20
_HTML_CHARS = 120


class Table(Generic[T]):
    """Rows with named and typed columns. Iterating gives the rows as objects.

    `records()` gives them as dictionaries; `arrow()`, `polars()` and `pandas()` as data frames. In a notebook, a table
    is shown as one.
    """

    __slots__ = ()

    noun: ClassVar[str] = "row"
    """What a row is, in the singular."""
    plural: ClassVar[str | None] = None
    """The plural, if it is not formed with -s."""
    html_columns: ClassVar[tuple[str, ...]] = ()
    """The columns that notebooks show; all if empty."""

    @property
    def columns(self) -> Columns:
        """The names and types of the columns."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError

    def to_record(self, row: T) -> Record:
        """Return a row as a dictionary with a value for each column."""
        return {name: getattr(row, name) for name in self.columns}

    def records(self) -> list[Record]:
        """Return the rows as dictionaries; amounts are exact decimals, times are datetimes in UTC."""
        return list(self._iter_records())

    def arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`; requires pyarrow."""
        return to_arrow(self.columns, self._iter_records())

    def polars(self) -> Any:
        """Return the rows as a `polars.DataFrame`; requires polars."""
        return to_polars(self.columns, self._iter_records())

    def pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`; requires pandas. Amounts are Python decimals."""
        return to_pandas(self.columns, self._iter_records())

    def _iter_records(self) -> Iterator[Record]:
        for row in self:
            record = self.to_record(row)
            yield {name: to_cell(record[name]) for name in self.columns}

    def _repr_html_(self) -> str:
        rows = list(islice(self, _HTML_ROWS + 1))
        has_more = len(rows) > _HTML_ROWS
        caption = self._describe() + (f"; the first {_HTML_ROWS}" if has_more else "")
        records = [self.to_record(row) for row in rows[:_HTML_ROWS]]
        return html_table(caption, self.html_columns or tuple(self.columns), records)

    def _describe(self) -> str:
        """Return the caption of the HTML table."""
        return type(self).__name__


class Listing(list[T], Table[T]):
    """Rows in memory: a list that is also a table.

    `more` is how many others match, beyond the limit: 0 if there are no others, None if there are but they were not
    counted.

    `row_type` is the class of the rows. Their fields are the columns, except for `hidden` ones; `renamed` gives some of
    them another name, and `added` lists properties that are columns as well.
    """

    row_type: ClassVar[type]
    hidden: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[Mapping[str, str]] = {}
    added: ClassVar[Mapping[str, type]] = {}

    def __init__(self, rows: Iterable[T] = (), more: int | None = 0) -> None:
        super().__init__(rows)
        self.more = more

    @classmethod
    def take(cls, rows: Iterable[T], limit: int | None) -> Self:
        """Return the first rows. Reads a single row beyond the limit, so the others are not counted."""
        remaining = iter(rows)
        first = list(islice(remaining, limit))
        return cls(first, None if any(True for _ in remaining) else 0)

    @property
    def columns(self) -> Columns:
        """The names and types of the columns."""
        return {name: kind for name, (_, kind) in _listing_columns(type(self)).items()}

    def to_record(self, row: T) -> Record:
        """Return a row as a dictionary with a value for each column."""
        return {name: getattr(row, field) for name, (field, _) in _listing_columns(type(self)).items()}

    def __iter__(self) -> Iterator[T]:
        return list.__iter__(self)

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Listing[T]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> T | Listing[T]:
        """Return a row, or with a slice a listing of the same kind."""
        return type(self)(super().__getitem__(at)) if isinstance(at, slice) else super().__getitem__(at)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()})"

    def _describe(self) -> str:
        total = count(len(self), self.noun, self.plural)
        if self.more is None:
            return f"{total} and more"
        return f"{total} of {len(self) + self.more:,}" if self.more else total


@cache
def _listing_columns(class_: type[Listing[Any]]) -> dict[str, tuple[str, type]]:
    """Return the field and the type of each column."""
    kinds = {**struct_columns(class_.row_type, class_.hidden), **class_.added}
    return {class_.renamed.get(field, field): (field, kind) for field, kind in kinds.items()}


def struct_columns(class_: type, hidden: Iterable[str] = ()) -> dict[str, type]:
    """Return the columns for the fields of a class, by their annotations."""
    hints = get_type_hints(class_)
    return {name: _column_kind(hints[name]) for name in class_.__struct_fields__ if name not in set(hidden)}  # type: ignore[attr-defined] # a Struct has them


_KINDS: tuple[type, ...] = (bool, int, float, Decimal, datetime, timedelta)


def _column_kind(annotation: Any) -> type:
    """Return the kind of column for an annotation. What is not a number or a time is text, such as paths and ids."""
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        kinds = {_column_kind(part) for part in get_args(annotation) if part is not types.NoneType}
        return kinds.pop() if len(kinds) == 1 else str
    if origin in {tuple, list}:
        return list
    return annotation if annotation in _KINDS else str


def to_cell(value: Any) -> Any:
    """Return a value as a cell of a data frame: times in UTC, text without lone surrogates, other objects as text."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else replace_surrogates(value)
    if value is None or kind in {int, bool, float, Decimal, timedelta}:
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, tuple | list | set | frozenset):
        return [to_cell(str(part)) for part in value]
    return to_cell(str(value))


def to_arrow(columns: Columns, records: Iterable[Record]) -> Any:
    """Return the records as a `pyarrow.Table`."""
    library = import_library("pyarrow")
    schema = arrow_schema(columns)
    iterator = iter(records)
    batches = []
    while rows := list(islice(iterator, _BATCH_ROWS)):
        batches.append(library.RecordBatch.from_pylist(rows, schema=schema))
    return library.Table.from_batches(batches, schema=schema)


def arrow_schema(columns: Columns) -> Any:
    """Return the `pyarrow.Schema` for these columns."""
    library = import_library("pyarrow")
    arrow_types = {
        str: library.string(),
        int: library.int64(),
        float: library.float64(),
        bool: library.bool_(),
        Decimal: library.decimal128(DECIMAL_DIGITS, DECIMAL_PLACES),
        datetime: library.timestamp("us", tz="UTC"),
        timedelta: library.duration("us"),
        list: library.list_(library.string()),
    }
    return library.schema([(name, arrow_types[kind]) for name, kind in columns.items()])


def to_polars(columns: Columns, records: Iterable[Record]) -> Any:
    """Return the records as a `polars.DataFrame`."""
    library = import_library("polars")
    return library.from_arrow(to_arrow(columns, records))


_PANDAS_TYPES: dict[type, str] = {
    str: "string",
    int: "Int64",
    float: "float64",
    bool: "boolean",
    Decimal: "object",
    datetime: "datetime64[us, UTC]",
    timedelta: "timedelta64[us]",
    list: "object",
}


def to_pandas(columns: Columns, records: Iterable[Record]) -> Any:
    """Return the records as a `pandas.DataFrame`. Amounts are Python decimals; counts may be missing."""
    library = import_library("pandas")
    rows = list(records)
    return library.DataFrame(
        {name: library.Series([row[name] for row in rows], dtype=_PANDAS_TYPES[kind]) for name, kind in columns.items()}
    )


def import_library(name: str, extra: str = "frames") -> Any:
    """Import an optional library.

    Raises:
        Missing: it is not installed; the message names the extra that brings it.
    """
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise Missing(f"{package} is not installed. Run: pip install 'threadline[{extra}]'") from None


def html_table(caption: str, columns: Iterable[str], records: Iterable[Record]) -> str:
    """Return an HTML table. All text is escaped, and long text is shortened."""
    from html import escape  # noqa: PLC0415 - only notebooks need it

    names = list(columns)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_html_text(record[name]))}</td>" for name in names) + "</tr>"
        for record in records
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HTML_FORMATS: dict[type, Callable[[Any], str]] = {
    datetime: lambda value: f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
    Decimal: format_decimal,
    int: lambda value: f"{value:,}",
}


def _html_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple | list):
        value = ", ".join(map(str, value))
    text = _HTML_FORMATS.get(type(value), str)(value)
    return text if len(text) <= _HTML_CHARS else text[: _HTML_CHARS - 1] + "…"
