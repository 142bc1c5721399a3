"""Rows of a ledger as data frames."""

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


def test_rows_are_an_arrow_table_with_exact_amounts() -> None:
    """An Arrow table has the keys and figures as columns; amounts are decimals, and unpriced ones null."""
    pytest.importorskip("pyarrow")
    table = ROWS.arrow()
    assert table.column_names[:4] == ["project", "model", "charges", "input"]
    assert table["amount"].to_pylist() == [Decimal("0.000123"), None]


def test_rows_are_a_polars_frame_with_exact_amounts() -> None:
    """A polars frame has the same, exactly."""
    pytest.importorskip("polars")
    frame = ROWS.polars()
    assert frame.shape == (2, 12)
    assert frame["amount"].to_list() == [Decimal("0.000123"), None]


def test_rows_are_a_pandas_frame_with_exact_amounts() -> None:
    """A pandas frame has the same, exactly."""
    pytest.importorskip("pandas")
    frame = ROWS.pandas()
    assert list(frame["output"]) == [5, 1]
    assert frame["amount"][0] == Decimal("0.000123")


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Without the library, the error says what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Missing, match=rf"{library} is not installed.*threadline\[frames\]"):
        getattr(ROWS, {"pyarrow": "arrow"}.get(library, library))()
