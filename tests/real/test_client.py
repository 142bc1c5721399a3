"""Homes that the real Claude Code writes while the test runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import API, Program, from_npm, newest, play, start_client

NEWEST = newest() if API.exists() else None
OLDER = from_npm() if API.exists() else []

pytestmark = [pytest.mark.real, pytest.mark.slow]


def examine(program: Program, folder: Path, streams: pytest.CaptureFixture[bytes]) -> dict[str, str]:
    """Let the program write a home and the doctor read it. Returns the failed runs."""
    with start_client(program, folder) as client:
        play(client)
    answer = CliRunner(streams)("doctor", "--check", "--json", "--home", client.claude_home)
    report = answer.json
    with streams.disabled():
        figures = {
            key: report[key] for key in ("transcripts", "lines", "bytes", "understood", "kinds", "problems", "drift")
        }
        print(f"\n{program.version}: {figures}, failed runs: {client.failures}")  # noqa: T201 - figures are wanted here
    assert (answer.code, answer.err) == (0, "")
    assert "tools" in client.sessions
    assert report["transcripts"] >= 5
    assert program.version in report["versions"]
    assert report["round_trip"] is True
    assert report["missing_fields"] == []
    assert report["drift"] == []
    assert report["understood"] >= 0.999
    return client.failures


@pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed")
def test_understands_the_newest_client(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The newest build's home (parallel calls, edits, a subagent, a retry, continue, fork, compact) is understood."""
    assert NEWEST is not None
    assert examine(NEWEST, tmp_path, capfdbinary) == {}


@pytest.mark.skipif(not OLDER, reason="CLAUDE_NPM names no directory with older clients")
@pytest.mark.parametrize("program", OLDER, ids=[program.version for program in OLDER])
def test_understands_older_clients(program: Program, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """An older build's home is understood too. What that build cannot do is left out."""
    examine(program, tmp_path, capfdbinary)
