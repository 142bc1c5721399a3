"""The libraries that exports are for can read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.export.interop import FORMATS, check_with_library


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_library_reads_the_demo_home(form: str, demo_home: Path, cli: CliRunner, tmp_path: Path) -> None:
    """The real library reads every session of the demo home, and its totals are the ledger's."""
    rows = check_with_library(form, demo_home, cli, tmp_path)
    assert sum(row["calls"] for row in rows) > 0
