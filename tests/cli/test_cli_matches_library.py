"""Commands and the library select the same rows with the same filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import Pen, call, prompt, reply, transcript, write

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


OTHER = "5e55ffff-0000-4000-8000-000000000002"


@pytest.fixture
def homes_with_copy(tmp_path: Path) -> Path:
    """Two sessions whose ids start alike, and a copy of the first that somebody made, with other messages."""
    folder = tmp_path / "home" / "projects" / "-work"
    for number, name in enumerate((SESSION, OTHER, f"{SESSION}-copy")):
        rows = transcript(prompt(name), call("Bash", "ls", "a"), reply("ok", output=number), pen=Pen(session=name))
        write(folder / f"{name}.jsonl", *rows)
    return tmp_path / "home"


@pytest.mark.parametrize("has_index", [False, True])
@pytest.mark.parametrize(
    ("start", "names"),
    [
        (SESSION, {SESSION}),
        (SESSION.upper(), {SESSION}),
        ("5E55FF", {OTHER}),
        ("5E55", {SESSION, OTHER, f"{SESSION}-copy"}),
        ("e55", set()),
    ],
)
def test_session_prefix_means_the_same_everywhere(
    homes_with_copy: Path, start: str, names: set[str], *, has_index: bool
) -> None:
    """The id itself, or else every id that starts with it, in any case, for each question."""
    with threadline.open(homes_with_copy, keep=False) as archive:
        if has_index:
            archive.refresh()
        assert {charge.session for charge in archive.ledger(session=start)} == names
        assert {row.keys["session"] for row in archive.ledger(session=start).by("session")} == names
        assert {call.session for call in archive.calls(session=start)} == names
        assert {row["session"] for row in archive.entries(session=start).records()} == names
        assert {prompt.session for prompt in archive.prompts(session=start)} == names
        assert {problem.session for problem in archive.problems(session=start)} <= names


def test_usage_and_ledger_agree_on_a_prefix(cli: CliRunner, homes_with_copy: Path) -> None:
    """`usage --session` takes the same prefix in any case, but only if it names a single session."""
    with threadline.open(homes_with_copy, keep=False) as archive:
        for start in (SESSION, SESSION.upper(), "5E55FF", "5e55ff"):
            usage = cli("usage", "--session", start, "--by", "session", "--json", "--home", homes_with_copy).json
            ledger = archive.ledger(session=start)
            assert [row["session"] for row in usage["rows"]] == [ledger.charges[0].session]
            assert usage["total"]["output"] == ledger.total.output
    ambiguous = cli("usage", "--session", "5E55", "--home", homes_with_copy)
    assert (ambiguous.code, "session ids start with '5E55'" in ambiguous.err) == (2, True)
