"""Commands and the library select the same rows with the same filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import Pen, prompt, transcript, write

import threadline

AGENT = "a1b2c3d4"
SESSION = "5e550000-0000-4000-8000-000000000001"
CHOICES = ("main", "sub", AGENT, "a1b2", "a1", "A1B2", f"agent-{AGENT}", "AGENTS", "c3d4e5f6", "e5f6")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A session with an agent, of which one row names its author only in `agent_id`, and an agent's own transcript."""
    folder = tmp_path / "home" / "projects" / "-work"
    snake_case = Pen(isSidechain=True, agent_id="c3d4e5f6")
    rows = [*transcript(prompt("main")), *transcript(prompt("snake"), pen=snake_case)]
    rows += transcript(prompt("no id"), pen=Pen(isSidechain=True))
    write(folder / f"{SESSION}.jsonl", *rows)
    own = [*transcript(prompt("own")), {"type": "summary", "summary": "title", "leafUuid": "x"}]
    write(folder / SESSION / "subagents" / f"agent-{AGENT}.jsonl", *own)
    return tmp_path / "home"


@pytest.mark.parametrize("agent", CHOICES)
def test_agent_selects_the_same_entries(cli: CliRunner, home: Path, agent: str) -> None:
    """An id, its start in any case, `agent-<id>`, `main` and `sub` mean the same for the command and the library."""
    result = cli("entries", home, "--agent", agent, "--jsonl")
    command: list[dict[str, Any]] = result.jsonl if result.code == 0 else []
    with threadline.open(home, keep=False) as archive:
        library = archive.entries(agent=agent).records()
    columns = ("place", "session", "agent", "kind", "subtype")
    assert [[row[name] for name in columns] for row in library] == [[row[name] for name in columns] for row in command]
    assert bool(library) == (agent not in {"AGENTS", "e5f6"})
