"""Records as data frames, through whichever library is installed; none is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any

from threadline.errors import Missing

Record = dict[str, Any]
# Wider than any sum of prices per token comes to: amounts stay exact.
_DIGITS, _PLACES = 38, 18


def arrow(columns: Mapping[str, type], records: list[Record]) -> Any:
    """The records as a `pyarrow.Table`; amounts are exact decimals, of one type whatever the records hold."""
    library = _library("pyarrow")
    types = {str: library.string(), int: library.int64(), Decimal: library.decimal128(_DIGITS, _PLACES)}
    schema = library.schema([(name, types[kind]) for name, kind in columns.items()])
    return library.Table.from_pylist(records, schema=schema)


def polars(columns: Mapping[str, type], records: list[Record]) -> Any:
    """The records as a `polars.DataFrame`; amounts are exact decimals."""
    return _library("polars").from_arrow(arrow(columns, records))


def pandas(columns: Mapping[str, type], records: list[Record]) -> Any:
    """The records as a `pandas.DataFrame`; amounts are Python's decimals, exact as they are."""
    return _library("pandas").DataFrame.from_records(records, columns=list(columns))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Missing(f"{name} is not installed; install it with `pip install 'threadline[frames]'`.") from None
