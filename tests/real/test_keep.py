"""Real Claude Code resumes a session that was kept, deleted and restored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import API, Client, bash, newest, start_client, steps

NEWEST = newest() if API.exists() else None

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """The command with its own keep."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return CliRunner(capfdbinary)


def _start_session(client: Client) -> str:
    """A session with two of three scripted replies. The model gives the third when it sees the first two again."""
    agent_arguments = {
        "description": "look",
        "prompt": steps([{"text": "sub done"}]),
        "subagent_type": "general-purpose",
    }
    blocks = [{"text": "I look."}, bash("echo one"), {"tool": "Agent", "input": agent_arguments}]
    session = client.say("begin", steps(blocks, [{"text": "There is one."}], [{"text": "I told you: there is one."}]))
    assert session is not None, client.failures
    return session


def _rows(home: Path, session: str) -> list[dict[str, object]]:
    paths = list(home.glob(f"projects/*/{session}.jsonl"))
    assert len(paths) == 1
    return [json.loads(line) for line in paths[0].read_bytes().splitlines()]


def _check_resumed(client: Client, session: str) -> None:
    """Without a script, the model gives the third reply, because the earlier ones were sent along."""
    before = _rows(client.claude_home, session)
    assert client.say("again", "what did you find?", "-r", session) == session, client.failures
    assert client.results["again"]["result"] == "I told you: there is one."
    after = _rows(client.claude_home, session)
    assert after[: len(before)] == before
    assert len(after) > len(before)


def test_resumes_a_restored_session(tmp_path: Path, cli: CliRunner) -> None:
    """The session is deleted with everything that belongs to it, and restored into its home."""
    assert NEWEST is not None
    with start_client(NEWEST, tmp_path) as client:
        session = _start_session(client)
        assert cli("keep", "--home", client.claude_home).code == 0
        shutil.rmtree(client.claude_home / "projects")
        assert client.say("lost", "what did you find?", "-r", session) is None
        shutil.rmtree(client.claude_home / "projects", ignore_errors=True)
        answer = cli("keep", "restore", session[:8], "--home", client.claude_home)  # not a usual place, so it is given
        assert answer.code == 0, answer.err
        _check_resumed(client, session)


def test_resumes_a_session_in_another_home(tmp_path: Path, cli: CliRunner) -> None:
    """The session is restored into another user's home, for the same working directory."""
    assert NEWEST is not None
    with start_client(NEWEST, tmp_path) as client:
        session = _start_session(client)
        assert cli("keep", "--home", client.claude_home).code == 0
        client.home = tmp_path / "elsewhere"
        client.home.mkdir()
        answer = cli("keep", "restore", session, "--to", client.claude_home)
        assert answer.code == 0, answer.err
        agents = list(client.claude_home.glob(f"projects/*/{session}/subagents/*.jsonl"))
        assert agents
        _check_resumed(client, session)
