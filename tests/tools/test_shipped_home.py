"""The example home that `threadline demo` unpacks."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tools.demo.__main__ import SHIPPED, ship


def test_shipped_home_is_up_to_date(tmp_path: Path) -> None:
    """`python -m tools.demo --ship` writes it again."""
    ship(tmp_path / "new.zip")
    with zipfile.ZipFile(SHIPPED) as shipped, zipfile.ZipFile(tmp_path / "new.zip") as new:
        assert shipped.namelist() == new.namelist()
        assert [name for name in new.namelist() if shipped.read(name) != new.read(name)] == []


def test_shipped_home_is_small() -> None:
    """It adds less than a megabyte to the package."""
    assert SHIPPED.stat().st_size < 1_000_000
