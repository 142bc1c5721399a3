"""Tests of `threadline waste`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.runner import CliRunner
from tests.thread.context_rows import cached_reply
from tests.transcripts import SESSION, prompt, transcript, write


def test_suggestions_name_the_cause(cli: CliRunner, tmp_path: Path) -> None:
    """A cache break has its cause; advice that can be followed is before that of an unknown cause."""
    parts = (
        cached_reply(0, 20_000, input_=0, after=1),
        cached_reply(0, 20_000, input_=0, after=1),
        cached_reply(20_000, 10, input_=0, after=1),
        cached_reply(0, 20_000, input_=0, after=90),
    )
    write(tmp_path / f"projects/-a/{SESSION}.jsonl", *transcript(prompt("go"), *parts))
    result = cli("waste", SESSION, "--min", "0", "--home", tmp_path)
    suggestions = [line.split(",")[0] for line in result.out.splitlines() if line.startswith("cache-break (")]
    assert suggestions == ["cache-break (idle)", "cache-break (unknown)"], result
