"""The official SDK reads converted sessions, and the real client resumes them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.cli.test_cli_convert import SOURCES, facts, source_rows
from tests.real.client import API, newest, start_client, steps

import threadline
from threadline.convert import convert_files, write_conversion

sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")
NEWEST = newest()

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["tool-rows", "stream-json", "sdk-messages"])
def test_the_sdk_reads_a_converted_session(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`list_sessions` lists it, and `get_session_messages` returns the messages of its thread."""
    (tmp_path / "home/projects").mkdir(parents=True)
    (tmp_path / "app").mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    conversion = convert_files([SOURCES / f"{name}.jsonl"], cwd=str(tmp_path / "app"))
    (path,) = write_conversion(conversion, tmp_path / "home")
    session = threadline.read(path)
    assert session.id in {info.session_id for info in sdk.list_sessions()}
    messages = sdk.get_session_messages(session.id)
    expected = [(entry.kind, entry.uuid) for entry in session.thread.entries if entry.kind in {"user", "assistant"}]
    assert [(message.type, message.uuid) for message in messages] == expected
    assert len(messages) >= 4


def test_the_messages_of_the_sdk_are_understood(tmp_path: Path) -> None:
    """What the SDK makes of stream-json, dumped as its dataclasses, has the same tokens, calls and texts."""
    parser = pytest.importorskip("claude_agent_sdk._internal.message_parser")
    rows = [row for row in source_rows("stream-json") if row["type"] != "stream_event"]
    dumped = tmp_path / "messages.json"
    dumped.write_text(json.dumps([dataclasses.asdict(parser.parse_message(row)) for row in rows], indent=1))
    sessions = []
    for source in (dumped, SOURCES / "stream-json.jsonl"):
        (path,) = write_conversion(convert_files([source], cwd="/work/app"), tmp_path / source.stem)
        sessions.append(threadline.read(path))
    assert facts(sessions[0]) == facts(sessions[1])
    assert [agent.id for agent in sessions[0].agents] == ["a0b1c2d3"]
    assert sessions[0].problems == ()


@pytest.mark.slow
@pytest.mark.skipif(NEWEST is None or not API.exists(), reason="the real client is not available")
@pytest.mark.parametrize("name", ["tool-rows", "stream-json", "sdk-messages"])
def test_the_client_resumes_a_converted_session(name: str, tmp_path: Path) -> None:
    """`claude --resume` continues the transcript after its last row."""
    assert NEWEST is not None
    with start_client(NEWEST, tmp_path) as client:
        client.claude_home.mkdir(parents=True, exist_ok=True)
        (client.claude_home / "projects").mkdir(exist_ok=True)
        rows = source_rows(name)
        for row in rows:
            row.pop("cwd", None)
            if isinstance(row.get("data"), dict):
                row["data"].pop("cwd", None)
        source = tmp_path / "source.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        (path,) = write_conversion(convert_files([source], cwd=str(client.work)), client.claude_home)
        before = threadline.read(path)
        client.say("resumed", steps([{"text": "resumed"}]), "--resume", path.stem)
    assert client.failures == {}
    after = threadline.read(path)
    assert after.id == before.id
    assert [entry.uuid for entry in after.thread.entries][: len(before.thread.entries)] == [
        entry.uuid for entry in before.thread.entries
    ]
    assert threadline.extract_text([e for e in after.thread.entries if e.kind == "assistant"][-1]) == "resumed"
