"""`threadline files`, `todos` and `request`: the state at any place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters
from tests.thread.state_rows import edit_call, read_call, write_call
from tests.thread.test_requests import blob_row, digest, request_row, shape_row, user_message
from tests.transcripts import SESSION, Pen, call, chain, prompt, reply, transcript, write

A = "/work/app/a.py"
HOSTILE = "\x1b]0;owned\x07\u202ename\x9b31m"
TODOS = [{"content": f"write {HOSTILE}", "status": "in_progress", "activeForm": "writing"}]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session that wrote, edited and read files, made lists and stored its requests."""
    rows = transcript(
        prompt("go"),
        write_call(A, "one\ntwo\n"),
        prompt("on"),
        edit_call(A, "one\ntwo\n", "two", f"2 {HOSTILE}"),
        read_call("/work/app/long.py", "1\n2\n3\n4\n", 2, 2),
        write_call(f"/work/app/{HOSTILE}", "x"),
        call("Bash", "make a.py", "", details={"stdout": "", "stderr": ""}),
        call("TodoWrite", {"todos": TODOS}, "ok", details={"oldTodos": [], "newTodos": TODOS}),
        call("TaskCreate", {"subject": "task"}, "ok", details={"task": {"id": "1", "subject": "task"}}),
        chain("attachment", attachment={"type": "unknown"}),
        reply("done"),
        shape_row(),
        blob_row(user_message(HOSTILE)),
        request_row("r1", [user_message(HOSTILE)]),
        request_row("r2", [user_message("on"), "e" * 64], "r1", 1),
        pen=Pen(),
    )
    write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *rows)
    return tmp_path / "home"


def test_files_lists_what_is_proven(cli: CliRunner, home: Path) -> None:
    """Each file has a row: how much is proven, by what and where, what ran since, and its path."""
    result = cli("files", "last", "--home", home, "--json")
    assert (result.code, result.err) == (0, "")
    edited_file, long, _ = result.json
    assert (edited_file["path"], edited_file["proven"], edited_file["known_lines"], edited_file["ran_since"]) == (
        A,
        "whole",
        3,
        1,
    )
    assert edited_file["proof"]["how"] == "edit"
    assert edited_file["proof"]["place"] == edited_file["changed"]
    assert [doubt["how"] for doubt in edited_file["doubts"]] == ["command"]
    assert (long["proven"], long["known_lines"], long["total_lines"], long["changed"]) == ("partial", 2, 5, None)
    table = cli("files", SESSION[:8], "--home", home).out
    rows, legend = table.split("\n\n")
    assert [line.split()[0] for line in rows.splitlines()] == ["proven", "whole", "partial", "whole"]
    assert "doubts: those of them that mention the file" in " ".join(legend.split())


def test_files_at_a_place(cli: CliRunner, home: Path) -> None:
    """`--at` accepts a line number or a place. Later changes are not included."""
    line = 3
    place = f"{SESSION}.jsonl:{line}"
    for at in (str(line), place, str(home / "projects/-work-app" / place)):
        result = cli("files", "last", "--home", home, "--at", at, "--path", "a.py", "--content")
        assert (result.code, result.out) == (0, "one\ntwo\n")
    assert cli("files", "last", "--home", home, "--at", "1").code == 1


def test_content_is_printed_unchanged_into_a_pipe(cli: CliRunner, home: Path) -> None:
    """A pipe gets the bytes. A partly known file has line numbers, and the message says what is missing."""
    result = cli("files", "last", "--home", home, "--path", A, "--content")
    assert result.raw == f"one\n2 {HOSTILE}\n".encode()
    partial = cli("files", "last", "--home", home, "--path", "long.py", "--content")
    assert (partial.code, partial.out) == (0, "...\n     2\t2\n     3\t3\n")
    assert "2 of 5 lines are known from the read" in partial.err
    row = cli("files", "last", "--home", home, "--path", A, "--content", "--json").json
    assert row[0]["content"] == f"one\n2 {HOSTILE}\n"


def test_diff_between_two_places(cli: CliRunner, home: Path) -> None:
    """`--diff` prints the change and what is proven, in a form that `patch` accepts."""
    result = cli("files", "last", "--home", home, "--diff", "3", "6", "--path", "a.py")
    assert result.code == 0
    assert result.out.startswith(f"# {A}: Before: Every line is known from the write at line 3. After: ")
    assert result.out.endswith(f"--- {A}\n+++ {A}\n@@ -1,2 +1,2 @@\n one\n-two\n+2 {HOSTILE}\n")
    (row,) = cli("files", "last", "--home", home, "--diff", "3", "6", "--path", "a.py", "--jsonl").jsonl
    assert (row["proven"], row["before"]["how"], row["after"]["how"]) == (True, "write", "edit")
    assert cli("files", "last", "--home", home, "--diff", "3", "3").code == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--at", "9999"], "The session has no entry at"),
        (["--at", "a.jsonl"], "is not a place. Use FILE:LINE or LINE"),
        (["--content"], "--content requires --path"),
        (["--content", "--path", "none.py"], "The session did not touch a file 'none.py'"),
        (["--diff", "1", "2", "--at", "3"], "cannot be combined with --at, --content, --since"),
    ],
)
def test_invalid_options_are_errors(cli: CliRunner, home: Path, options: list[str], sentence: str) -> None:
    """The message says what to do next, with exit code 2."""
    result = cli("files", "last", "--home", home, *options)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_ambiguous_path_lists_candidates(cli: CliRunner, tmp_path: Path) -> None:
    """A name that matches several files lists them all."""
    path = write(
        tmp_path / "a.jsonl", *transcript(prompt("go"), write_call("/x/a.py", "1"), write_call("/y/a.py", "2"))
    )
    result = cli("files", path, "--path", "a.py", "--content")
    assert result.code == 2
    assert "/x/a.py\n/y/a.py" in result.err


def test_backups_are_read_only_from_the_sessions_folder(cli: CliRunner, home: Path) -> None:
    """A backup name is not a path: nothing outside the session's folder is opened."""
    secret = home / "file-history/secret"
    secret.parent.mkdir()
    secret.write_text("secret")
    (home / "file-history" / SESSION).mkdir()
    (home / "file-history" / SESSION / "aa@v1").write_bytes(b"kept\r\n")
    names = {"kept.py": "aa@v1", "out.py": "../secret", "gone.py": "bb@v1"}
    backups = {
        path: {"backupFileName": name, "version": 1, "backupTime": "2026-01-05T10:00:00.000Z"}
        for path, name in names.items()
    }
    row = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"trackedFileBackups": backups}}
    transcript_ = home / "projects/-work-app" / f"{SESSION}.jsonl"
    write(transcript_, *transcript(prompt("go"), row))
    result = cli("files", "last", "--home", home, "--path", "kept.py", "--content")
    assert (result.code, result.out) == (0, "kept\n")
    assert [file["path"] for file in cli("files", "last", "--home", home, "--json").json] == ["/work/app/kept.py"]


def test_todos_lists_todos_and_tasks(cli: CliRunner, home: Path) -> None:
    """Both kinds of list are shown in their final state, or at a place."""
    result = cli("todos", "last", "--home", home, "--json")
    todo, task = result.json
    assert (todo["list"], todo["status"], todo["text"]) == ("todo", "in_progress", TODOS[0]["content"])
    assert (task["list"], task["id"], task["status"], task["text"]) == ("task", "1", "pending", "task")
    assert "▶ in_progress" in cli("todos", "last", "--home", home).out
    assert cli("todos", "last", "--home", home, "--at", "5").code == 1


def test_request_lists_and_shows_requests(cli: CliRunner, home: Path) -> None:
    """The list counts messages and missing ones. One request is shown with its verdict and messages."""
    rows = cli("request", "last", "--home", home, "--jsonl").jsonl
    assert [(row["number"], row["messages"], row["new"], row["missing"]) for row in rows] == [
        (1, 1, 1, 0),
        (2, 3, 2, 1),
    ]
    first = cli("request", "last", "1", "--home", home)
    assert first.code == 0
    assert "Verified: every part matches the hash that Claude Code wrote." in first.out
    second = cli("request", "last", "2", "--home", home)
    assert "1 of 3 messages are not in the transcript." in second.out
    document = cli("request", "last", "2", "--home", home, "--json").json
    assert (document["verified"], document["missing"]) == (False, ["e" * 64])
    assert [message["source"] for message in document["messages"]] == ["blob", "prompt", "unknown"]
    assert cli("request", "last", "3", "--home", home).code == 2
    assert cli("request", "last", "--agent", "nobody", "--home", home).code == 2


def test_sessions_without_state_exit_with_1(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 1, nothing on standard output, and a sentence on standard error."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("go"), reply("ok")))
    for command in ("files", "todos", "request"):
        result = cli(command, path)
        assert (result.code, result.out, result.err.startswith("threadline: No ")) == (1, "", True)


@pytest.mark.parametrize(
    "words",
    [["files"], ["todos"], ["request"], ["request", "1"], ["request", "2"], ["files", "--diff", "1", "6"]],
    ids=" ".join,
)
def test_escapes_hostile_text(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Control and format characters in paths, todos and messages are escaped on a terminal."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    command, *options = words
    result = cli(command, "last", *options, "--home", home)
    assert result.code == 0
    assert control_characters(result.out) == set()


@pytest.mark.sample(4)
@pytest.mark.parametrize("output", ["--json", "--jsonl", "--csv", ""])
@pytest.mark.parametrize("words", [["files"], ["todos"], ["request"], ["request", "1"]], ids=" ".join)
def test_every_format_works(cli: CliRunner, home: Path, words: list[str], output: str) -> None:
    """Every listing accepts the same output options."""
    command, *options = words
    result = cli(command, "last", *options, "--home", home, *output.split())
    assert (result.code, result.err) == (0, "")
    assert result.out


@pytest.mark.parametrize("value", [1, True, "x", {"a": 1}, {"type": "text", "text": 1}, [1, None, "x"]], ids=str)
def test_shows_requests_and_tasks_of_wrong_shape(cli: CliRunner, tmp_path: Path, value: object) -> None:
    """A system prompt, tools or a task status of a wrong type are shown, too."""
    wrong_shape = {"system": value, "tools": value}
    task = {"subject": value, "status": value, "owner": value, "addBlockedBy": value}
    rows = transcript(
        prompt("go"),
        call("TaskCreate", task, "ok", details={"task": {"id": "1", "subject": "task"}}),
        shape_row(wrong_shape),
        request_row("r1", [user_message("go")], shapeHash=digest(wrong_shape)),
        pen=Pen(),
    )
    path = write(tmp_path / f"{SESSION}.jsonl", *rows)
    for command, *number in (("request", "1"), ("todos",)):
        result = cli(command, path, *number)
        assert (result.code, result.err) == (0, "")


def test_todos_of_inline_agents_are_labelled_by_description(cli: CliRunner, tmp_path: Path) -> None:
    """The id of an inline agent would mean nothing to the reader."""
    arguments = {"subagent_type": "Explore", "description": "count sheep", "prompt": "Count!"}
    inside = transcript(
        prompt("Count!"),
        call("TodoWrite", {"todos": [{"content": "one", "status": "pending"}]}, "ok"),
        reply("yes"),
        pen=Pen("5e551011-0000-4000-8000-00000000000a", isSidechain=True),
    )
    rows = [{**row, "sessionId": SESSION} for row in inside if isinstance(row, dict)]
    path = write(
        tmp_path / f"{SESSION}.jsonl", *transcript(prompt("go"), call("Task", arguments, "ok"), reply("ok")), *rows
    )
    assert "todo count sheep" in cli("todos", path).out
