"""Parquet files of rows whose cells are of any kind, in any order."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.cli.sql_answers import ColumnKind, declared_kind, widen_kind, write_parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

WHOLE = st.integers(-(2**63), 2**63 - 1)
CELLS = st.one_of(
    st.none(),
    WHOLE,
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.binary(max_size=5),
)
COLUMNS = st.lists(st.tuples(CELLS, st.none() | WHOLE, CELLS), max_size=12)


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


def _fits(kept: Any, value: Any) -> bool:
    """Whether what was kept is the value, itself or as text; a whole number may have become a float that equals it."""
    if value is None or kept is None:
        return kept is value
    if isinstance(kept, str) and not isinstance(value, str):
        return kept == _shown(value) or kept == str(float(value))
    return bool(kept == value)


@given(rows=COLUMNS, most=st.integers(1, 5))
def test_every_cell_is_kept(rows: list[tuple[Any, ...]], most: int) -> None:
    """Whatever comes after whatever, in whichever chunks: every cell is there, as it was or as its text."""
    chunks = [rows[at : at + most] for at in range(0, len(rows), most)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        assert write_parquet(path, ["a", "b", "c"], [ColumnKind.NOTHING] * 3, chunks) == len(rows)
        table = pq.read_table(path)
        assert [one.name for one in Path(folder).iterdir()] == ["a.parquet"]
    kept = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(kept) == len(rows)
    for mine, theirs in zip(kept, rows, strict=True):
        assert all(map(_fits, mine, theirs))
    if any(row[1] is not None for row in rows):
        assert table.schema.field("b").type == pa.int64()


@pytest.mark.parametrize(
    ("cells", "typed", "kept"),
    [
        (["1.5", None, "0.000000000000000001"], pa.decimal128(38, 18), [Decimal("1.5"), None, Decimal("1e-18")]),
        (["1.5", "much"], pa.string(), ["1.5", "much"]),
        (["1", "NaN"], pa.string(), ["1", "NaN"]),
        (["0.5", "1e-19"], pa.string(), ["0.5", "1e-19"]),
        (["2", "1e20"], pa.string(), ["2", "1e20"]),
    ],
)
def test_amounts_are_decimals_where_all_of_them_are(tmp_path: Path, cells: list[Any], typed: Any, kept: Any) -> None:
    """A column of amounts is exact; one that holds something else is text, none of it changed."""
    chunks = [[(cell,)] for cell in cells]
    write_parquet(tmp_path / "a.parquet", ["amount"], [declared_kind("amount", "TEXT")], chunks)
    (column,) = pq.read_table(tmp_path / "a.parquet").columns
    assert (column.type, column.to_pylist()) == (typed, kept)


def test_whole_numbers_that_a_float_cannot_tell_apart_are_text() -> None:
    """A column of both is of floats, unless that would change a number."""
    assert widen_kind(ColumnKind.INTEGER, [0.5]) is ColumnKind.REAL
    assert widen_kind(ColumnKind.REAL, [2**53]) is ColumnKind.REAL
    assert widen_kind(ColumnKind.REAL, [2**53 + 1]) is ColumnKind.TEXT


def test_a_file_that_breaks_off_is_not_there(tmp_path: Path) -> None:
    """What was written of it is taken away again."""

    def chunks() -> Any:
        yield [(1,)]
        yield [("a",)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(tmp_path / "a.parquet", ["a"], [ColumnKind.NOTHING], chunks())
    assert list(tmp_path.iterdir()) == []
