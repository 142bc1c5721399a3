"""Parquet files of rows with cells of any type, in any order."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.cli.sql.answers import guess_kind, widen_kind, write_parquet
from threadline.index import ColumnKind, declared_kind

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

INTEGERS = st.integers(-(2**63), 2**63 - 1)
CELLS = st.one_of(
    st.none(),
    INTEGERS,
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.binary(max_size=5),
)
COLUMNS = st.lists(st.tuples(CELLS, st.none() | INTEGERS, CELLS), max_size=12)


def _as_text(value: Any) -> Any:
    """The text of a value."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _matches(stored: Any, value: Any) -> bool:
    """Whether the stored cell is the value, or its text. An integer may have become an equal float."""
    if value is None or stored is None:
        return stored is value
    if isinstance(stored, str) and not isinstance(value, str):
        return stored == _as_text(value) or stored == str(float(value))
    return bool(stored == value)


@given(rows=COLUMNS, chunk_size=st.integers(1, 5))
def test_every_cell_is_kept(rows: list[tuple[Any, ...]], chunk_size: int) -> None:
    """In any order and any chunks, every cell is stored, unchanged or as its text."""
    chunks = [rows[start : start + chunk_size] for start in range(0, len(rows), chunk_size)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        assert write_parquet(path, ["a", "b", "c"], [ColumnKind.NOTHING] * 3, chunks) == len(rows)
        table = pq.read_table(path)
        assert [file.name for file in Path(folder).iterdir()] == ["a.parquet"]
    stored = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(stored) == len(rows)
    for stored_row, row in zip(stored, rows, strict=True):
        assert all(map(_matches, stored_row, row))
    if any(row[1] is not None for row in rows):
        assert table.schema.field("b").type == pa.int64()


@pytest.mark.parametrize(
    ("cells", "column_type", "expected"),
    [
        (["1.5", None, "0.000000000000000001"], pa.decimal128(38, 18), [Decimal("1.5"), None, Decimal("1e-18")]),
        (["1.5", "much"], pa.string(), ["1.5", "much"]),
        (["1", "NaN"], pa.string(), ["1", "NaN"]),
        (["0.5", "1e-19"], pa.string(), ["0.5", "1e-19"]),
        (["2", "1e20"], pa.string(), ["2", "1e20"]),
    ],
)
def test_amounts_are_decimals_if_all_of_them_fit(
    tmp_path: Path, cells: list[Any], column_type: Any, expected: Any
) -> None:
    """A column of amounts is exact. With any other value, the column is unchanged text."""
    chunks = [[(cell,)] for cell in cells]
    write_parquet(tmp_path / "a.parquet", ["amount"], [declared_kind("amount", "TEXT")], chunks)
    (column,) = pq.read_table(tmp_path / "a.parquet").columns
    assert (column.type, column.to_pylist()) == (column_type, expected)


def test_integers_and_floats_become_text_if_inexact() -> None:
    """A column of both is floats, unless that would change a number."""
    assert widen_kind(ColumnKind.INTEGER, [0.5]) is ColumnKind.REAL
    assert widen_kind(ColumnKind.REAL, [2**53]) is ColumnKind.REAL
    assert widen_kind(ColumnKind.REAL, [2**53 + 1]) is ColumnKind.TEXT


def test_interrupted_write_leaves_no_file(tmp_path: Path) -> None:
    """The partial file is removed."""

    def chunks() -> Any:
        yield [(1,)]
        yield [("a",)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(tmp_path / "a.parquet", ["a"], [ColumnKind.NOTHING], chunks())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cells", "column_type", "expected"),
    [
        (
            ["2026-01-02T03:04:05.678Z", None, "2026-01-02T03:04:05+01:00"],
            pa.timestamp("us", tz="UTC"),
            [datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC), None, datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)],
        ),
        (["2026-01-02T03:04:05.678Z", "soon"], pa.string(), ["2026-01-02T03:04:05.678Z", "soon"]),
        (["2026-01-02T03:04:05.678Z", "1767323045678"], pa.string(), ["2026-01-02T03:04:05.678Z", "1767323045678"]),
        ([], pa.timestamp("us", tz="UTC"), []),
    ],
)
def test_times_are_timestamps_if_all_of_them_are_times(
    tmp_path: Path, cells: list[Any], column_type: Any, expected: Any
) -> None:
    """A column of times is in UTC with microseconds. With any other value, the column is text."""
    chunks = [[(cell,)] for cell in cells]
    write_parquet(tmp_path / "a.parquet", ["timestamp"], [declared_kind("timestamp", "TEXT")], chunks)
    (column,) = pq.read_table(tmp_path / "a.parquet").columns
    assert (column.type, column.to_pylist()) == (column_type, expected)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("timestamp", ["2026-01-02T03:04:05.678Z", None], ColumnKind.TIME),
        ("timestamp", [1767323045678], ColumnKind.NOTHING),
        ("last", ["soon"], ColumnKind.NOTHING),
        ("amount", ["0.5"], ColumnKind.AMOUNT),
        ("amount", [0.5], ColumnKind.NOTHING),
        ("text", ["2026-01-02T03:04:05.678Z"], ColumnKind.NOTHING),
    ],
)
def test_select_has_times_and_amounts_by_name(name: str, values: list[Any], kind: ColumnKind) -> None:
    """A sum of amounts is a floating-point number, as SQLite returns it."""
    assert guess_kind(name, values) is kind
