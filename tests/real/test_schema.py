"""Every real line and side file validates against the generated schema."""

from __future__ import annotations

import pytest
from tests.cli.schema_validation import SchemaValidator, check_all
from tests.real.client import SHARED

import threadline

HOME = SHARED / "corpus/home"

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there"),
]


def test_the_corpus_validates(capfd: pytest.CaptureFixture[str]) -> None:
    """All lines of 90 transcripts, their tool results, and the side files beside them are valid."""
    found = threadline.look(HOME)
    validator = SchemaValidator()
    check_all(validator, [transcript.path for transcript in found.transcripts], found.side_files)
    with capfd.disabled():
        print(f"\nvalidated: {dict(validator.counts)}")  # noqa: T201 - figures are wanted here
    assert sum(validator.counts.values()) > 29_000
