"""`threadline files`, `todos` and `request`: the state at any place, asked for on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters
from tests.thread.state_rows import edited, read_text, wrote
from tests.thread.test_requests import blob, digest, request, shape, user
from tests.transcripts import SESSION, Pen, call, chain, prompt, reply, transcript, write

A = "/work/app/a.py"
HOSTILE = "\x1b]0;owned\x07\u202ename\x9b31m"
TODOS = [{"content": f"write {HOSTILE}", "status": "in_progress", "activeForm": "writing"}]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session that wrote, edited and read files, made lists and kept its requests."""
    rows = transcript(
        prompt("go"),
        wrote(A, "one\ntwo\n"),
        prompt("on"),
        edited(A, "one\ntwo\n", "two", f"2 {HOSTILE}"),
        read_text("/work/app/long.py", "1\n2\n3\n4\n", 2, 2),
        wrote(f"/work/app/{HOSTILE}", "x"),
        call("Bash", "make a.py", "", details={"stdout": "", "stderr": ""}),
        call("TodoWrite", {"todos": TODOS}, "ok", details={"oldTodos": [], "newTodos": TODOS}),
        call("TaskCreate", {"subject": "task"}, "ok", details={"task": {"id": "1", "subject": "task"}}),
        chain("attachment", attachment={"type": "unknown"}),
        reply("done"),
        shape(),
        blob(user(HOSTILE)),
        request("r1", [user(HOSTILE)]),
        request("r2", [user("on"), "e" * 64], "r1", 1),
        pen=Pen(),
    )
    write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *rows)
    return tmp_path / "home"


def test_files_are_listed_with_what_is_proven(cli: CliRunner, home: Path) -> None:
    """Each file has a row: how far it is proven, by what and where, what ran since, and its path."""
    result = cli("files", "last", "--home", home, "--json")
    assert (result.code, result.err) == (0, "")
    one, long, _ = result.json
    assert (one["path"], one["proven"], one["known_lines"], one["ran_since"]) == (A, "whole", 3, 1)
    assert one["proof"]["how"] == "edit"
    assert one["proof"]["place"] == one["changed"]
    assert [doubt["how"] for doubt in one["doubts"]] == ["command"]
    assert (long["proven"], long["known_lines"], long["total_lines"], long["changed"]) == ("partial", 2, 5, None)
    table = cli("files", SESSION[:8], "--home", home).out
    assert [line.split()[0] for line in table.splitlines()] == ["proven", "whole", "partial", "whole"]


def test_files_stand_as_they_did(cli: CliRunner, home: Path) -> None:
    """`--at` takes a line's number or a place; what came later is not there."""
    line = 3
    place = f"{SESSION}.jsonl:{line}"
    for at in (str(line), place, str(home / "projects/-work-app" / place)):
        result = cli("files", "last", "--home", home, "--at", at, "--path", "a.py", "--content")
        assert (result.code, result.out) == (0, "one\ntwo\n")
    assert cli("files", "last", "--home", home, "--at", "1").code == 1


def test_the_text_of_a_file_is_printed_as_it_is_into_a_pipe(cli: CliRunner, home: Path) -> None:
    """A program gets the bytes; what is known in part comes with numbers, and the rest is said to be missing."""
    result = cli("files", "last", "--home", home, "--path", A, "--content")
    assert result.raw == f"one\n2 {HOSTILE}\n".encode()
    part = cli("files", "last", "--home", home, "--path", "long.py", "--content")
    assert (part.code, part.out) == (0, "...\n     2\t2\n     3\t3\n")
    assert "2 of 5 lines are proven by read" in part.err
    row = cli("files", "last", "--home", home, "--path", A, "--content", "--json").json
    assert row[0]["content"] == f"one\n2 {HOSTILE}\n"


def test_a_diff_between_two_places(cli: CliRunner, home: Path) -> None:
    """`--diff` prints what changed and what is proven of it, so that `patch` takes it."""
    result = cli("files", "last", "--home", home, "--diff", "3", "6", "--path", "a.py")
    assert result.code == 0
    assert result.out.startswith(f"# {A}: Before: Every line is proven by write at line 3. After: ")
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
        (["--content", "--path", "none.py"], "The session had not touched a file 'none.py'"),
        (["--diff", "1", "2", "--at", "3"], "cannot be combined with --at, --content, --since"),
    ],
)
def test_mistakes_are_sentences(cli: CliRunner, home: Path, options: list[str], sentence: str) -> None:
    """What cannot be answered says what to do next, and is an error."""
    result = cli("files", "last", "--home", home, *options)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_several_files_of_a_name_are_listed(cli: CliRunner, tmp_path: Path) -> None:
    """A name that fits several files names them all."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("go"), wrote("/x/a.py", "1"), wrote("/y/a.py", "2")))
    result = cli("files", path, "--path", "a.py", "--content")
    assert result.code == 2
    assert "/x/a.py\n/y/a.py" in result.err


def test_backups_are_read_from_the_home(cli: CliRunner, home: Path) -> None:
    """A backup's name is a name and no path: nothing outside the session's own folder is opened."""
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


def test_todos_and_tasks_are_listed(cli: CliRunner, home: Path) -> None:
    """Both kinds of list are shown as they stand, or stood."""
    result = cli("todos", "last", "--home", home, "--json")
    todo, task = result.json
    assert (todo["list"], todo["status"], todo["text"]) == ("todo", "in_progress", TODOS[0]["content"])
    assert (task["list"], task["id"], task["status"], task["text"]) == ("task", "1", "pending", "task")
    assert "▶ in_progress" in cli("todos", "last", "--home", home).out
    assert cli("todos", "last", "--home", home, "--at", "5").code == 1


def test_requests_are_listed_and_shown(cli: CliRunner, home: Path) -> None:
    """The list counts messages and what is missing; one request is shown with its verdict and its messages."""
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
    whole = cli("request", "last", "2", "--home", home, "--json").json
    assert (whole["verified"], whole["missing"]) == (False, ["e" * 64])
    assert [message["source"] for message in whole["messages"]] == ["blob", "prompt", "unknown"]
    assert cli("request", "last", "3", "--home", home).code == 2
    assert cli("request", "last", "--agent", "nobody", "--home", home).code == 2


def test_sessions_without_lists_or_requests_give_nothing(cli: CliRunner, tmp_path: Path) -> None:
    """Nothing found is exit code 1, no word on standard output, and a sentence on the other."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("go"), reply("ok")))
    for command in ("files", "todos", "request"):
        result = cli(command, path)
        assert (result.code, result.out, result.err.startswith("threadline: No ")) == (1, "", True)


@pytest.mark.parametrize(
    "question",
    [["files"], ["todos"], ["request"], ["request", "1"], ["request", "2"], ["files", "--diff", "1", "6"]],
    ids=" ".join,
)
def test_hostile_text_cannot_steer_a_terminal(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, question: list[str]
) -> None:
    """Whatever paths, todos and messages hold, no control or format character of it is printed on a terminal."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    command, *options = question
    result = cli(command, "last", *options, "--home", home)
    assert result.code == 0
    assert control_characters(result.out) == set()


@pytest.mark.sample(4)
@pytest.mark.parametrize("output", ["--json", "--jsonl", "--csv", ""])
@pytest.mark.parametrize("question", [["files"], ["todos"], ["request"], ["request", "1"]], ids=" ".join)
def test_every_format_answers(cli: CliRunner, home: Path, question: list[str], output: str) -> None:
    """Every listing takes the same output options."""
    command, *options = question
    result = cli(command, "last", *options, "--home", home, *output.split())
    assert (result.code, result.err) == (0, "")
    assert result.out


@pytest.mark.parametrize("value", [1, True, "x", {"a": 1}, {"type": "text", "text": 1}, [1, None, "x"]], ids=str)
def test_odd_requests_and_tasks_are_shown(cli: CliRunner, tmp_path: Path, value: object) -> None:
    """A system prompt, tools or a task's status of a wrong shape are no reason to fail."""
    odd = {"system": value, "tools": value}
    task = {"subject": value, "status": value, "owner": value, "addBlockedBy": value}
    rows = transcript(
        prompt("go"),
        call("TaskCreate", task, "ok", details={"task": {"id": "1", "subject": "task"}}),
        shape(odd),
        request("r1", [user("go")], shapeHash=digest(odd)),
        pen=Pen(),
    )
    path = write(tmp_path / f"{SESSION}.jsonl", *rows)
    for command, *number in (("request", "1"), ("todos",)):
        result = cli(command, path, *number)
        assert (result.code, result.err) == (0, "")


def test_todos_of_agents_inside_are_labelled_by_what_they_do(cli: CliRunner, tmp_path: Path) -> None:
    """Such an agent has no id of its own that would tell anybody anything."""
    given = {"subagent_type": "Explore", "description": "count sheep", "prompt": "Count!"}
    inside = transcript(
        prompt("Count!"),
        call("TodoWrite", {"todos": [{"content": "one", "status": "pending"}]}, "ok"),
        reply("yes"),
        pen=Pen("5e551011-0000-4000-8000-00000000000a", isSidechain=True),
    )
    rows = [{**row, "sessionId": SESSION} for row in inside if isinstance(row, dict)]
    path = write(
        tmp_path / f"{SESSION}.jsonl", *transcript(prompt("go"), call("Task", given, "ok"), reply("ok")), *rows
    )
    assert "todo count sheep" in cli("todos", path).out
