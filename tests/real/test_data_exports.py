"""Exports of the corpus of real transcripts, read by the libraries that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.export.interop import FORMATS, check_with_library
from tests.real.client import SHARED

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


@pytest.mark.parametrize("form", FORMATS)
def test_library_reads_every_session(form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The real library reads all 77 sessions, with all their calls, and its totals are the ledger's."""
    rows = check_with_library(form, HOME, CliRunner(capfdbinary), tmp_path)
    assert len({row["session"] for row in rows}) == 77
    assert sum(row["calls"] for row in rows) == 5324
