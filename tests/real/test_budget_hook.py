"""The hook of docs/budget.md, run by the real Claude Code: a budget that is used up blocks prompts and stops work."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.real.client import API, bash, newest, start_client, steps

NEWEST = newest() if API.exists() else None

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]


def test_budget_blocks_a_prompt_and_stops_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is used up, a turn stops at its next call, and no other prompt is sent."""
    assert NEWEST is not None
    source = Path(__file__).parents[2] / "src"
    command = tmp_path / "bin/threadline"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nTHREADLINE_CACHE={tmp_path}/cache PYTHONPATH={source} exec {sys.executable} -m threadline "$@"\n'
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    hook = [{"hooks": [{"type": "command", "command": "threadline budget check --hook"}]}]
    settings = {"hooks": {"UserPromptSubmit": hook, "PreToolUse": hook, "Stop": hook}}
    with start_client(NEWEST, tmp_path) as client:
        client.claude_home.mkdir(parents=True)
        (client.claude_home / "settings.json").write_text(json.dumps(settings))
        budgets = client.home / ".config/threadline/budgets.conf"
        budgets.parent.mkdir(parents=True)
        client.say("first", steps([{"text": "Hello."}]))
        spent = client.results["first"]["total_cost_usd"]
        budgets.write_text(f"{spent * 3 / 2}/day\n")  # enough to begin a second turn, not to finish it
        client.say("second", steps([bash("echo one > made")], [{"text": "All done."}]))
        client.say("third", steps([{"text": "Hello again."}]))
    assert not client.failures
    assert not (client.work / "made").exists()
    assert client.results["second"]["total_cost_usd"] > 0
    assert client.results["third"]["total_cost_usd"] == 0
    (blocked,) = client.claude_home.rglob(f"{client.sessions['third']}.jsonl")
    assert "is used up" in blocked.read_text()
    assert '"type":"assistant"' not in blocked.read_text()
