"""Records as data frames, through whichever library is installed; none is imported before it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from threadline.errors import Missing

Record = dict[str, Any]


def arrow(records: list[Record]) -> Any:
    """The records as a `pyarrow.Table`; amounts are exact decimals."""
    return _library("pyarrow").Table.from_pylist(records)


def polars(records: list[Record]) -> Any:
    """The records as a `polars.DataFrame`; amounts are exact decimals."""
    return _library("polars").from_arrow(arrow(records))


def pandas(records: list[Record]) -> Any:
    """The records as a `pandas.DataFrame`; amounts are Python's decimals, exact as they are."""
    return _library("pandas").DataFrame.from_records(records)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Missing(f"{name} is not installed; install it with `pip install 'threadline[frames]'`.") from None
