"""Homes that the real Claude Code writes while the test runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import API, Program, client, from_npm, newest, play

NEWEST = newest() if API.exists() else None
OLDER = from_npm() if API.exists() else []

pytestmark = [pytest.mark.real, pytest.mark.slow]


def examined(program: Program, folder: Path, streams: pytest.CaptureFixture[bytes]) -> dict[str, str]:
    """Have the program write a home and the doctor read it; give the runs that failed."""
    with client(program, folder) as one:
        play(one)
    answer = CliRunner(streams)("doctor", "--check", "--json", "--home", one.claude_home)
    seen = answer.json
    with streams.disabled():
        shown = {
            key: seen[key] for key in ("transcripts", "lines", "bytes", "understood", "kinds", "problems", "drift")
        }
        print(f"\n{program.version}: {shown}, failed runs: {one.failed}")  # noqa: T201 - figures are wanted here
    assert (answer.code, answer.err) == (0, "")
    assert "tools" in one.sessions
    assert seen["transcripts"] >= 5
    assert program.version in seen["versions"]
    assert seen["round_trip"] is True
    assert seen["drift"] == []
    assert seen["understood"] >= 0.999
    return one.failed


@pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed")
def test_the_newest_client(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The newest build's home (parallel calls, edits, a subagent, a retry, continue, fork, compact) is understood."""
    assert NEWEST is not None
    assert examined(NEWEST, tmp_path, capfdbinary) == {}


@pytest.mark.skipif(not OLDER, reason="CLAUDE_NPM names no directory with older clients")
@pytest.mark.parametrize("program", OLDER, ids=[program.version for program in OLDER])
def test_an_older_client(program: Program, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """An older build's home is understood as well; what that build cannot do yet is left out."""
    examined(program, tmp_path, capfdbinary)
