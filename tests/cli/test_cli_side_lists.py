"""`threadline todos` reads the files under `todos/` and `tasks/`, too: the newest state of each list wins."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, START, Part, call, prompt, transcript, write

import threadline

OLD = [{"content": "from the transcript", "status": "pending", "activeForm": "x"}]
NEW = [{"content": "from the file", "status": "completed", "activeForm": "x"}]
BEFORE, AFTER = START - timedelta(days=1), START + timedelta(days=1)


def write_home(folder: Path, *parts: Part) -> Path:
    """Write a home with one session."""
    write(folder / "home/projects/-work-app" / f"{SESSION}.jsonl", *transcript(prompt("go"), *parts))
    return folder / "home"


def write_list(path: Path, content: Any, when: Any = AFTER) -> None:
    """Write a side file that was modified at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (when.timestamp(), when.timestamp()))


def todo_call() -> Part:
    """A call that writes the old list."""
    return call("TodoWrite", {"todos": OLD}, "ok", details={"oldTodos": [], "newTodos": OLD})


def rows_of(cli: CliRunner, home: Path, *options: str) -> list[tuple[Any, ...]]:
    """The listed items: list, agent, text, status and source."""
    rows = cli("todos", SESSION[:8], "--home", home, "--json", *options).json or []
    return [tuple(row[name] for name in ("list", "agent", "text", "status", "source")) for row in rows]


@pytest.mark.parametrize("name", [f"{SESSION}.json", f"{SESSION}-agent-{SESSION}.json"])
def test_todo_file_of_a_session_is_listed(cli: CliRunner, tmp_path: Path, name: str) -> None:
    """Both names of the main agent's file, and those of subagents. Files of other sessions are not."""
    home = write_home(tmp_path)
    assert cli("todos", SESSION[:8], "--home", home).code == 1
    write_list(home / "todos" / name, NEW)
    write_list(
        home / f"todos/{SESSION}-agent-abc1234.json", [{"content": "of an agent", "status": "pending", "id": "1"}]
    )
    write_list(home / f"todos/{SESSION[:-1]}9-agent-{SESSION[:-1]}9.json", OLD)
    assert rows_of(cli, home) == [
        ("todo", None, "from the file", "completed", "file"),
        ("todo", "abc1234", "of an agent", "pending", "file"),
    ]
    row = cli("todos", SESSION[:8], "--home", home, "--json").json[0]
    assert row["place"] == f"{home / 'todos' / name}:1"
    assert row["updated"] == "2026-01-06T09:00:00Z"
    assert " file " in cli("todos", SESSION[:8], "--home", home).out


@pytest.mark.parametrize(
    ("content", "when", "expected"),
    [
        (NEW, AFTER, ("from the file", "file")),
        (NEW, BEFORE, ("from the transcript", "transcript")),
        (OLD, AFTER, ("from the transcript", "transcript")),
        ([], AFTER, ("from the transcript", "transcript")),
        ("[{", AFTER, ("from the transcript", "transcript")),
        ('{"not": "a list"}', AFTER, ("from the transcript", "transcript")),
    ],
)
def test_newest_state_of_a_todo_list_wins(
    cli: CliRunner, tmp_path: Path, content: Any, when: Any, expected: tuple[str, str]
) -> None:
    """The same list adds nothing. An empty file neither: Claude Code empties a list when all of it is done."""
    home = write_home(tmp_path, todo_call())
    write_list(home / f"todos/{SESSION}-agent-{SESSION}.json", content, when)
    assert [(text, source) for _, _, text, _, source in rows_of(cli, home)] == [expected]


def test_place_has_the_state_of_the_transcript(cli: CliRunner, tmp_path: Path) -> None:
    """Files have only the last state."""
    home = write_home(tmp_path, todo_call(), prompt("on"))
    write_list(home / f"todos/{SESSION}.json", NEW)
    assert rows_of(cli, home, "--at", "4") == [("todo", None, "from the transcript", "pending", "transcript")]
    assert cli("todos", SESSION[:8], "--home", home, "--at", "1").err.endswith("at the end of the session.\n")


def test_task_files_are_listed_in_order(cli: CliRunner, tmp_path: Path) -> None:
    """By session, and by the name of a team. The newest state of each task wins; marks are not tasks."""
    created = call("TaskCreate", {"subject": "first"}, "ok", details={"task": {"id": "1", "subject": "first"}})
    home = write_home(tmp_path, created, prompt("hi", teamName="crew"))
    write_list(home / f"tasks/{SESSION}/1.json", {"id": "1", "subject": "first", "status": "completed"})
    for number in (10, 2):
        task = {"id": str(number), "subject": f"task {number}", "status": "pending", "owner": "me", "blockedBy": ["1"]}
        write_list(home / f"tasks/{SESSION}/{number}.json", task)
    write_list(home / f"tasks/{SESSION}/.highwatermark", "10")
    write_list(home / "tasks/crew/7.json", {"id": "7", "subject": "of the team", "status": "in_progress"})
    write_list(home / "tasks/other/8.json", {"id": "8", "subject": "of another list", "status": "pending"})
    assert [(text, status, source) for _, _, text, status, source in rows_of(cli, home)] == [
        ("first", "completed", "file"),
        ("task 2", "pending", "file"),
        ("of the team", "in_progress", "file"),
        ("task 10", "pending", "file"),
    ]
    row = cli("todos", SESSION[:8], "--home", home, "--json").json[1]
    assert (row["owner"], row["blocked_by"]) == ("me", ["1"])


def test_library_and_command_have_the_same_lists(cli: CliRunner, tmp_path: Path) -> None:
    """`Session.at()` reads them."""
    home = write_home(tmp_path, todo_call())
    write_list(home / f"todos/{SESSION}.json", NEW)
    write_list(home / f"tasks/{SESSION}/1.json", {"id": "1", "subject": "t", "status": "pending"})
    with threadline.open(home) as archive:
        state = archive.session(SESSION).at()
    assert [(todo.todos[0].content, str(todo.source)) for todo in state.todos] == [("from the file", "file")]
    assert [(task.task.subject, str(task.source)) for task in state.tasks] == [("t", "file")]
    assert [text for _, _, text, _, _ in rows_of(cli, home)] == ["from the file", "t"]


def test_transcript_outside_a_home_has_no_side_files(cli: CliRunner, tmp_path: Path) -> None:
    """Only `projects/` is in a home."""
    path = write(tmp_path / "a/b" / f"{SESSION}.jsonl", *transcript(prompt("go")))
    write_list(tmp_path / f"todos/{SESSION}.json", NEW)
    assert cli("todos", path).code == 1
