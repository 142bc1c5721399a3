"""The hook that `keep install` prints, run by the real Claude Code."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import API, newest, start_client, steps

NEWEST = newest() if API.exists() else None

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]


def test_claude_code_runs_the_hook_when_a_session_ends(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client ends as usual, and the session is kept soon after, by a process that outlives the client."""
    assert NEWEST is not None
    source = Path(__file__).parents[2] / "src"
    command = tmp_path / "bin/threadline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={source} exec {sys.executable} -m threadline "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    cli = CliRunner(capfdbinary)
    with start_client(NEWEST, tmp_path) as client:
        (client.claude_home / "projects").mkdir(parents=True)
        options = ("--home", client.claude_home, "--keep", tmp_path / "keep")
        (hook,) = cli("keep", "install", "--timer", "none", "--json", *options).json
        Path(hook["path"]).write_text(hook["text"])
        session = client.say("begin", steps([{"text": "A beginning."}]))
        assert session is not None, client.failures
        deadline = time.monotonic() + 60
        while not any((tmp_path / "keep").glob("runs/*.zst")) and time.monotonic() < deadline:
            time.sleep(0.1)
    rows = cli("keep", "list", "--keep", tmp_path / "keep", "--json").json
    assert [row["session"] for row in rows] == [session]
