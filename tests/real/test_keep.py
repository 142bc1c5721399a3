"""Sessions that the real Claude Code wrote, kept, deleted and restored: it goes on with them, knowing what was said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import API, Client, bash, client, newest, steps

NEWEST = newest() if API.exists() else None

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """The command, with a keep of its own."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return CliRunner(capfdbinary)


def _begun(client: Client) -> str:
    """A session of which the model has said two of three things; it says the third when it sees them again."""
    errand = {"description": "look", "prompt": steps([{"text": "sub done"}]), "subagent_type": "general-purpose"}
    looks = [{"text": "I look."}, bash("echo one"), {"tool": "Agent", "input": errand}]
    session = client.say("begin", steps(looks, [{"text": "There is one."}], [{"text": "I told you: there is one."}]))
    assert session is not None, client.failed
    return session


def _rows(home: Path, session: str) -> list[dict[str, object]]:
    paths = list(home.glob(f"projects/*/{session}.jsonl"))
    assert len(paths) == 1
    return [json.loads(line) for line in paths[0].read_bytes().splitlines()]


def _assert_it_goes_on(client: Client, session: str) -> None:
    """Asked without any script, the model says the third thing: what was said before was sent along."""
    before = _rows(client.claude_home, session)
    assert client.say("again", "what did you find?", "-r", session) == session, client.failed
    assert client.results["again"]["result"] == "I told you: there is one."
    after = _rows(client.claude_home, session)
    assert after[: len(before)] == before
    assert len(after) > len(before)


def test_a_restored_session_is_resumed(tmp_path: Path, cli: CliRunner) -> None:
    """Deleted with all that belongs to it, and put back into the home that it came from."""
    assert NEWEST is not None
    with client(NEWEST, tmp_path) as one:
        session = _begun(one)
        assert cli("keep", "--home", one.claude_home).code == 0
        shutil.rmtree(one.claude_home / "projects")
        assert one.say("lost", "what did you find?", "-r", session) is None
        shutil.rmtree(one.claude_home / "projects", ignore_errors=True)
        answer = cli("keep", "restore", session[:8], "--home", one.claude_home)  # not found by itself: no usual place
        assert answer.code == 0, answer.err
        _assert_it_goes_on(one, session)


def test_a_session_is_resumed_in_another_home(tmp_path: Path, cli: CliRunner) -> None:
    """Put into the home of somebody who never had it, for the same working directory."""
    assert NEWEST is not None
    with client(NEWEST, tmp_path) as one:
        session = _begun(one)
        assert cli("keep", "--home", one.claude_home).code == 0
        one.home = tmp_path / "elsewhere"
        one.home.mkdir()
        answer = cli("keep", "restore", session, "--to", one.claude_home)
        assert answer.code == 0, answer.err
        agents = list(one.claude_home.glob(f"projects/*/{session}/subagents/*.jsonl"))
        assert agents
        _assert_it_goes_on(one, session)
