"""The session store and the official SDK: its conformance suite, and the real Claude Code, which resumes from it."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.real.client import API, Client, bash, newest, start_client, steps, tool

import threadline
from threadline.store import SessionStore

NEWEST = newest() if API.exists() else None
pytestmark = [pytest.mark.real, pytest.mark.slow]


def load_sdk() -> Any:
    """The SDK, if it is installed."""
    return pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")


@pytest.mark.parametrize("name", ["store-{}", "store-{}.db"])
def test_conformance(tmp_path: Path, name: str) -> None:
    """All 14 contracts of the SDK, for a folder and for a SQLite file."""
    load_sdk()
    testing = importlib.import_module("claude_agent_sdk.testing")
    numbers = count()
    asyncio.run(testing.run_session_store_conformance(lambda: SessionStore(tmp_path / name.format(next(numbers)))))
    assert next(numbers) > 12  # a store per contract


async def ask(sdk: Any, client: Client, store: SessionStore, text: str, **options: Any) -> Any:
    """Send a prompt to the real program, with the store; return its result message."""
    environment = {**client._environment(), "CLAUDE_CONFIG_DIR": str(client.claude_home)}
    settings = sdk.ClaudeAgentOptions(
        cwd=str(client.work), session_store=store, permission_mode="bypassPermissions", env=environment, **options
    )

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        yield {"type": "user", "message": {"role": "user", "content": text}}

    messages = [message async for message in sdk.query(prompt=prompts(), options=settings)]
    return [message for message in messages if isinstance(message, sdk.ResultMessage)][-1]


@pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed")
@pytest.mark.parametrize("name", ["store", "store.db"])
def test_client_resumes_a_stored_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A session with a subagent is mirrored while it runs; another machine resumes it from the store alone."""
    sdk = load_sdk()
    assert NEWEST is not None
    store = SessionStore(tmp_path / name)
    for variable in [name for name in os.environ if name.startswith(("CLAUDE", "ANTHROPIC"))]:
        monkeypatch.delenv(variable)
    agent_prompt = steps([{"text": "I look."}, bash("echo sub")], [{"text": "sub done"}])
    agent = tool("Agent", description="look", prompt=agent_prompt, subagent_type="general-purpose")
    (tmp_path / "first").mkdir()
    with start_client(NEWEST, tmp_path / "first") as client:
        script = steps([{"text": "A beginning."}, bash("echo begin")], [agent], [{"text": "All done."}])
        result = asyncio.run(ask(sdk, client, store, script))
        session = result.session_id
        work = client.work
    with threadline.open(store.path) as archive:
        mirrored = archive.session(session)
        assert [agent.type for agent in mirrored.agents] == ["general-purpose"]
        assert archive.ledger(session=session).total.amount
    (tmp_path / "second").mkdir()
    with start_client(NEWEST, tmp_path / "second") as client:
        client.work = work  # the same project
        assert not list(client.claude_home.glob(f"projects/*/{session}.jsonl"))
        result = asyncio.run(ask(sdk, client, store, steps([bash("echo more")], [{"text": "ok"}]), resume=session))
    assert (result.session_id, result.is_error) == (session, False)
    with threadline.open(store.path) as archive:
        resumed = archive.session(session)
        assert [call.input["command"] for call in resumed.main.calls if call.tool == "Bash"] == [
            "echo begin",
            "echo more",
        ]
        assert resumed.main.turns[-1].number == 2
        places = {entry.uuid for entry in resumed.main.entries if entry.kind in {"user", "assistant"}}
        assert places >= {entry.uuid for entry in mirrored.main.entries if entry.kind in {"user", "assistant"}}
