"""Exports of the corpus of real transcripts for readers: redaction never refuses what it could not judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.real.client import SHARED
from tests.subtests import Subtests

import threadline
from threadline.export import ExportFormat, ExportOptions, export_sessions

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


@pytest.mark.parametrize("form", ["html", "json", "md"])
def test_every_session_can_be_exported(form: str, tmp_path: Path) -> None:
    """Formats agree that nothing secret is left: the final check of each finds nothing in any session."""
    archive = threadline.open(HOME)
    options = ExportOptions(ExportFormat(form))
    with Subtests() as subtests:
        for number, session in enumerate(archive.sessions()):
            with subtests.test(session.id):
                result = export_sessions([session.path], options, tmp_path / str(number), homes=archive.homes)
                assert result.files
