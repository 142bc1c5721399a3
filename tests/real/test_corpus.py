"""The corpus of real transcripts, if it is available."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import SHARED

import threadline
from threadline.insight import GROUP_KEYS

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


def test_the_doctor_finds_the_corpus_healthy(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """All 90 transcripts are read byte for byte, 99.9 % is understood, no field is missing, and there is no drift."""
    answer = CliRunner(capfdbinary)("doctor", "--check", "--json", "--home", HOME)
    report = answer.json
    figures = {key: value for key, value in report.items() if key not in {"kinds", "versions"}}
    with capfdbinary.disabled():
        print(f"\ncorpus: {figures}")  # noqa: T201 - figures are wanted here
    assert (answer.code, answer.err) == (0, "")
    assert report["transcripts"] == 90
    assert report["bytes"] == sum(path.stat().st_size for path in HOME.glob("projects/**/*.jsonl"))
    assert report["round_trip"] is True
    assert report["understood"] >= 0.999
    assert report["missing_fields"] == []
    assert report["drift"] == []


@pytest.mark.parametrize("question", [[], ["doctor"], ["entries"]], ids=["overview", "doctor", "entries"])
@pytest.mark.parametrize("output", ["", "--json", "--jsonl", "--csv"])
def test_every_command_works_in_every_format(
    capfdbinary: pytest.CaptureFixture[bytes], question: list[str], output: str
) -> None:
    """Every command answers in every format, in UTF-8, with nothing on standard error."""
    arguments = [str(HOME)] if question == ["entries"] else ["--home", str(HOME)]
    answer = CliRunner(capfdbinary)(*question, *arguments, *output.split())
    assert (answer.code, answer.err) == (0, "")
    assert answer.out or question == ["doctor"]  # its rows are findings, so there may be none


def test_causes_sum_to_the_ledger(tmp_path: Path) -> None:
    """Across all sessions, of a part of them, and by every key: to the last digit."""
    selections: list[dict[str, Any]] = [{}, {"since": "2026-02-01T10:07"}, {"project": "cli", "until": "2026-03-01"}]
    with threadline.open(HOME, index=tmp_path / "index.sqlite", keep=False) as archive:
        for selection in selections:
            expected = archive.ledger(**selection).total.amount
            causes = archive.causes(**selection)
            assert sum(cause.amount for cause in causes) == causes.amount == expected
            for key in GROUP_KEYS:
                assert sum(group.amount for group in causes.by(key)) == expected, key
            assert archive.waste(**selection).total == expected
