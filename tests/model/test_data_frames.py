"""Tests of ledger rows as data frames."""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest

from threadline.errors import Missing
from threadline.model.ledger import Row, Rows

ROWS = Rows(
    ("project", "model"),
    (
        Row(charges=2, input=10, output=5, amount=Decimal("0.000123"), keys={"project": "/a", "model": "m"}),
        Row(charges=1, input=1, output=1, amount=None, unpriced=1, keys={"project": "/b", "model": "glm"}),
    ),
)


def test_arrow_table_has_exact_amounts() -> None:
    """The keys and figures are columns. Amounts are decimals, and those of unpriced rows are null."""
    pytest.importorskip("pyarrow")
    table = ROWS.arrow()
    assert table.column_names[:4] == ["project", "model", "charges", "input"]
    assert table["amount"].to_pylist() == [Decimal("0.000123"), None]


def test_polars_frame_has_exact_amounts() -> None:
    """It has the same columns and values."""
    pytest.importorskip("polars")
    frame = ROWS.polars()
    assert frame.shape == (2, 12)
    assert frame["amount"].to_list() == [Decimal("0.000123"), None]


def test_pandas_frame_has_exact_amounts() -> None:
    """It has the same columns and values."""
    pytest.importorskip("pandas")
    frame = ROWS.pandas()
    assert list(frame["output"]) == [5, 1]
    assert frame["amount"][0] == Decimal("0.000123")


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Missing, match=rf"{library} is not installed.*\[frames\]"):
        getattr(ROWS, {"pyarrow": "arrow"}.get(library, library))()
