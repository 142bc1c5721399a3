"""Files in the shapes of other descriptions of the format: rows for calls, defaults, results of several tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import write

import threadline

SESSION = "5e551011-0000-4000-8000-000000000001"
ROWS: list[dict[str, Any]] = [
    {"type": "user", "timestamp": "2024-01-15T10:00:00.000Z", "uuid": "u1", "message": {"content": "run it"}},
    {
        "type": "tool_use",
        "timestamp": "2024-01-15T10:00:13.000Z",
        "uuid": "t1",
        "tool": {"name": "Bash", "input": {"command": "echo zebra"}},
    },
    {
        "type": "tool_result",
        "timestamp": "2024-01-15T10:00:14.000Z",
        "uuid": "r1",
        "result": {"output": "one lion", "error": "exit code 1: hippo failed"},
    },
    {
        "type": "assistant",
        "timestamp": "2024-01-15T10:00:16.000Z",
        "uuid": "a1",
        "message": {"model": "claude-3-opus", "content": [{"type": "text", "text": "It failed."}]},
    },
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session whose call and result are rows of their own."""
    write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *ROWS)
    return tmp_path / "home"


def test_call_rows_are_in_every_list(cli: CliRunner, home: Path) -> None:
    """`calls` with an index and of one session, `errors` of all and of one, SQL, and search by tool."""
    for arguments in (("calls",), ("calls", SESSION)):
        (row,) = cli(*arguments, "--home", home, "--json").json
        assert (row["tool"], row["outcome"], row["call"]) == ("Bash", "error", "t1")
    for arguments in (("errors",), ("errors", SESSION)):
        (failure,) = cli(*arguments, "--home", home, "--json").json
        assert (failure["what"], failure["tool"], failure["input"]) == ("error", "Bash", "echo zebra")
        assert "hippo failed" in failure["text"]
    (record,) = cli("sql", "SELECT tool, outcome, line, result_line FROM calls", "--home", home, "--json").json
    assert record == {"tool": "Bash", "outcome": "error", "line": 2, "result_line": 3}
    (hit,) = cli("search", "tool:bash hippo", "--home", home, "--json").json
    assert hit["place"].endswith(f"{SESSION}.jsonl:3")


def test_call_rows_are_shown_and_exported(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`show`, `entries`, and every format of `export` have the command, the output and the error."""
    assert all(word in cli("show", SESSION, "--home", home).out for word in ("zebra", "lion", "hippo"))
    entries = cli("entries", SESSION, "--home", home, "--json").json
    assert "zebra" in entries[1]["text"]
    assert "hippo" in entries[2]["text"]
    for suffix in ("md", "json", "html", "txt"):
        path = tmp_path / f"session.{suffix}"
        assert cli("export", SESSION, "--home", home, "--tools", "full", "--out", path).code == 0
        assert all(word in path.read_text() for word in ("zebra", "lion", "hippo")), suffix


def test_call_rows_that_arrive_later_are_paired(cli: CliRunner, home: Path) -> None:
    """A refresh between the call and its result does not lose the pair."""
    path = home / f"projects/-work-app/{SESSION}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    outcomes = []
    path.write_bytes(lines[0])
    for line in lines[1:]:
        with path.open("ab") as file:
            file.write(line)
        outcomes.append(cli("calls", "--home", home, "--json").json[0]["outcome"])
    assert outcomes == ["pending", "error", "error"]


def test_file_with_a_summary_alone_is_nowhere_a_session(cli: CliRunner, tmp_path: Path) -> None:
    """It is not counted or listed. It can be searched and shown, with the same title."""
    summary = {"type": "summary", "summary": "Mending the gate", "leafUuid": "f0000000-0000-4000-8000-000000000001"}
    write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", summary)
    assert cli("--home", tmp_path, "--json").json["sessions"] == 0
    assert cli("list", "--home", tmp_path, "--json").json == []
    assert cli("sql", "SELECT session FROM sessions", "--home", tmp_path, "--json").json == []
    (hit,) = cli("search", "gate", "--home", tmp_path, "--json").json
    shown = cli("show", SESSION, "--home", tmp_path, "--json").json
    assert hit["title"] == shown["title"] == "Mending the gate"


def test_missing_fields_count_as_their_defaults(cli: CliRunner, tmp_path: Path) -> None:
    """A row without `isSidechain` and `gitBranch` gives the same answers as with false and an empty branch."""
    answers = []
    for fields in ({}, {"isSidechain": False, "gitBranch": ""}):
        row = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "hi"}}
        path = write(tmp_path / f"{len(fields)}" / f"{SESSION}.jsonl", row | fields)
        session = threadline.read(path)
        (entry,) = cli("entries", path, "--json").json
        answers.append((session.git_branches, len(session.conversation), entry["is_agent"], entry["agent"]))
    assert answers == [((), 1, False, None)] * 2


def test_result_with_the_fields_of_several_tools_is_reported_once(cli: CliRunner, tmp_path: Path) -> None:
    """It is typed by the call's tool, and `doctor` does not list each field of the others."""
    keys = "bytes code result durationMs interrupted isImage stdout stderr status prompt agentId content newField"
    merged: dict[str, Any] = dict.fromkeys(keys.split(), "x")
    use = {"type": "tool_use", "id": "toolu_01XYZ", "name": "Read", "input": {"file_path": "/a"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_01XYZ", "content": "File contents..."}
    rows = [
        {"type": "assistant", "uuid": "a1", "message": {"role": "assistant", "content": [use]}},
        {
            "type": "user",
            "uuid": "u1",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": merged,
        },
    ]
    path = write(tmp_path / f"{SESSION}.jsonl", *rows)
    drift = cli("doctor", path, "--json").json["drift"]
    assert [(item["what"], item["name"]) for item in drift] == [
        ("field", "newField"),
        ("tool-result", "ReadResult and ShellResult and AgentResult"),
    ]
    (call,) = threadline.read(path).calls
    assert type(call.result).__name__ == "ReadResult"
    assert call.answer is not None
    assert call.answer.data["toolUseResult"] == merged


def test_call_rows_fill_the_context_and_are_no_requests(home: Path) -> None:
    """A row for a call is not a message of the model, and its result has the name of the tool."""
    context = threadline.read(home / f"projects/-work-app/{SESSION}.jsonl").context()
    assert [window.place.line for window in context.windows] == [4]
    assert "Bash" in {part.name for part in context.filling}
