"""Columns of a silver table: values of the index, where they come from, and the Arrow arrays of them.

Nearly all values have the right type already, and a whole column is converted at once. Only if that fails, because a
session contains something unusual, each value is converted on its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from threadline import __version__
from threadline.lake.bronze import Source
from threadline.lake.tables import DAY_COLUMNS, NO_DAY, ORIGIN_COLUMNS, arrow_schema, table_columns
from threadline.model.tables import import_library
from threadline.model.text import replace_surrogates
from threadline.model.times import parse_timestamp

_LEAST, _GREATEST = -1 << 63, (1 << 63) - 1
"""The integers that fit. A file may have an mtime after 2262."""
_USUAL_TIME_LENGTH = len("2026-11-18T12:00:00.000Z")


class Origins:
    """The sources that rows come from, and their first days, by number."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._first_days: list[date] = []

    def add(self, source: Source, first_day: date) -> int:
        """Add a source; return its number."""
        self._sources.append(source)
        self._first_days.append(first_day)
        return len(self._sources) - 1

    def column(self, name: str, numbers: Sequence[int], ends: Sequence[int]) -> Any:
        """A column of `ORIGIN_COLUMNS` for rows of sources; the rows of each end where `ends` says."""
        pa = import_library("pyarrow", "lake")
        compute = import_library("pyarrow.compute", "lake")
        sources = [self._sources[number] for number in numbers]
        values: list[Any]
        match name:
            case "source":
                values = [source.id for source in sources]
            case "parser_version":
                values = [__version__] * len(sources)
            case "day":
                values = [self._first_days[number] for number in numbers]
            case _:
                values = [getattr(source, name) for source in sources]
        type_ = arrow_schema("sessions").field(name).type
        runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values, type_))
        return compute.run_end_decode(runs)


class Columns:
    """The columns of a silver table, to which the rows of sources are added."""

    def __init__(self, table: str, origins: Origins) -> None:
        self._table = table
        self._origins = origins
        self._values: dict[str, list[Any]] = {name: [] for name, _, _ in table_columns(table)[: -len(ORIGIN_COLUMNS)]}
        self._numbers: list[int] = []
        self._ends: list[int] = []

    def extend(self, number: int, columns: Iterable[Iterable[Any]]) -> None:
        """Add the rows of the source of that number, column by column; none if there are no columns."""
        for values, new in zip(self._values.values(), columns, strict=False):
            values.extend(new)
        end = len(next(iter(self._values.values())))
        if end > (self._ends[-1] if self._ends else 0):
            self._numbers.append(number)
            self._ends.append(end)

    def days(self, table: Any) -> Iterator[tuple[int, date]]:
        """The numbers of sources, and the days of their rows in the Arrow table of all rows."""
        compute = import_library("pyarrow.compute", "lake")
        starts = [0, *self._ends]
        for number, start, end in zip(self._numbers, starts, self._ends, strict=False):
            days = compute.unique(table.column("day").slice(start, end - start))
            yield from ((number, day) for day in days.to_pylist())

    def to_arrow(self) -> Any:
        """An Arrow table of all rows."""
        pa = import_library("pyarrow", "lake")
        schema = arrow_schema(self._table)
        kinds = {name: kind for name, kind, _ in table_columns(self._table)}
        arrays = {name: to_arrow(values, kinds[name], schema.field(name).type) for name, values in self._values.items()}
        for name, _, _ in ORIGIN_COLUMNS:
            arrays[name] = self._origins.column(name, self._numbers, self._ends)
        if self._table in DAY_COLUMNS:
            days = arrays[DAY_COLUMNS[self._table]].cast(pa.date32())
            arrays["day"] = import_library("pyarrow.compute", "lake").coalesce(days, arrays["day"])
        return pa.Table.from_arrays(list(arrays.values()), schema=schema)


def arrow_table(table: str, columns: Mapping[str, Sequence[Any]]) -> Any:
    """All columns of a silver table as an Arrow table."""
    pa = import_library("pyarrow", "lake")
    schema = arrow_schema(table)
    arrays = [to_arrow(columns[name], kind, schema.field(name).type) for name, kind, _ in table_columns(table)]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_arrow(values: Sequence[Any], kind: str, type_: Any) -> Any:
    """Values as an Arrow array of a kind of column."""
    pa = import_library("pyarrow", "lake")
    if kind == "timestamp":
        return _to_times(values, type_)
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass  # a value of another type, or text that is not valid
    return pa.array([_CONVERTERS[kind](value) for value in values], type_)


def _to_times(values: Sequence[Any], type_: Any) -> Any:
    """Times as an Arrow array. Those that are written as Claude Code writes them are converted at once."""
    pa = import_library("pyarrow", "lake")
    compute = import_library("pyarrow.compute", "lake")
    try:
        texts = pa.array(values, pa.string())
        is_usual = compute.and_(
            compute.equal(compute.utf8_length(texts), _USUAL_TIME_LENGTH), compute.ends_with(texts, "Z")
        )
        if compute.all(is_usual, min_count=0).as_py():
            return texts.cast(type_)
    except (pa.ArrowException, TypeError, ValueError):
        pass
    return pa.array(list(map(_to_time, values)), type_)


def first_day(times: Sequence[Any]) -> date:
    """The first day of some times in UTC; `NO_DAY` if there is none."""
    texts = [time for time in times if time is not None]
    first = min(texts, default=None)
    # Times that are written alike sort like texts.
    if first is not None and all(len(text) == _USUAL_TIME_LENGTH and text[-1] == "Z" for text in texts):
        moment = parse_timestamp(first)
        if moment is not None:
            return moment.date()
    moments = filter(None, map(parse_timestamp, texts))
    return min((moment.date() for moment in moments), default=date.fromisoformat(NO_DAY))


def _to_text(value: Any) -> Any:
    if value is None or (type(value) is str and value.isascii()):
        return value
    return replace_surrogates(
        value if isinstance(value, str) else os.fsdecode(value) if isinstance(value, bytes) else str(value)
    )


def _to_time(value: Any) -> Any:
    return value if value is None or isinstance(value, datetime) else parse_timestamp(value)


_CONVERTERS: Mapping[str, Any] = {
    "string": _to_text,
    "timestamp": _to_time,
    "amount": lambda value: None if value is None else Decimal(value),
    "int64": lambda value: max(_LEAST, min(value, _GREATEST)) if isinstance(value, int) else None,
    "float64": lambda value: value,
    "binary": lambda value: value,
    "date32": lambda value: value,
    "keys": lambda values: [_to_text(value) for value in values],
    "days": lambda values: values,
}
