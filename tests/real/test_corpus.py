"""The corpus of real transcripts, where it is at hand."""

from __future__ import annotations

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import SHARED

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


def test_the_doctor_finds_the_corpus_healthy(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """All 90 transcripts are read: each comes back byte for byte, 99.9 % is understood, nothing is drift."""
    answer = CliRunner(capfdbinary)("doctor", "--check", "--json", "--home", HOME)
    seen = answer.json
    shown = {key: value for key, value in seen.items() if key not in {"kinds", "versions"}}
    with capfdbinary.disabled():
        print(f"\ncorpus: {shown}")  # noqa: T201 - figures are wanted here
    assert (answer.code, answer.err) == (0, "")
    assert seen["transcripts"] == 90
    assert seen["bytes"] == sum(path.stat().st_size for path in HOME.glob("projects/**/*.jsonl"))
    assert seen["round_trip"] is True
    assert seen["understood"] >= 0.999
    assert seen["drift"] == []


@pytest.mark.parametrize("question", [[], ["doctor"], ["entries"]], ids=["overview", "doctor", "entries"])
@pytest.mark.parametrize("output", ["", "--json", "--jsonl", "--csv"])
def test_every_command_has_an_answer(
    capfdbinary: pytest.CaptureFixture[bytes], question: list[str], output: str
) -> None:
    """Every command answers in every format, in UTF-8, without a word on standard error."""
    where = [str(HOME)] if question == ["entries"] else ["--home", str(HOME)]
    answer = CliRunner(capfdbinary)(*question, *where, *output.split())
    assert (answer.code, answer.err) == (0, "")
    assert answer.out or question == ["doctor"]  # whose rows are findings: there may be none
