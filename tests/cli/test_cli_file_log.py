"""`threadline files PATH --log`: every edit of a file, in one session and in all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters
from tests.thread.state_rows import edit_call, read_call, write_call
from tests.transcripts import SESSION, START, Pen, prompt, transcript, write

import threadline

A = "/work/app/src/a.py"
OTHER = f"{SESSION[:-1]}7"
HOSTILE = "\x1b]0;owned\x07\u202ename\x9b31m"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two sessions of two projects that edit the same file, and a fork of the first."""
    first = transcript(
        prompt(f"make {HOSTILE}"), write_call(A, "one\n"), prompt("on"), edit_call(A, "one\n", "one", f"2 {HOSTILE}")
    )
    write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *first)
    fork = [{**row, "sessionId": f"{SESSION[:-1]}9"} for row in first if isinstance(row, dict)]
    write(tmp_path / "home/projects/-work-app" / f"{SESSION[:-1]}9.jsonl", *fork)
    later = transcript(
        prompt("again"),
        read_call(A, "three\n"),
        edit_call(A, "three\n", "three", "four"),
        pen=Pen(OTHER, START.replace(month=2), cwd="/work/lib"),
    )
    write(tmp_path / "home/projects/-work-lib" / f"{OTHER}.jsonl", *later)
    return tmp_path / "home"


def test_log_lists_edits_of_all_sessions_newest_first(cli: CliRunner, home: Path) -> None:
    """With session, turn, prompt, model, place and time. What a fork copied is listed once."""
    result = cli("files", "src/a.py", "--log", "--home", home, "--json")
    assert (result.code, result.err) == (0, "")
    assert [(row["session"], row["turn"], row["how"], row["prompt"]) for row in result.json] == [
        (OTHER, 1, "edit", "again"),
        (SESSION, 2, "edit", "on"),
        (SESSION, 1, "write", f"make {HOSTILE}"),
    ]
    newest = result.json[0]
    assert "-three\n+four\n" in newest["diff"]
    assert (newest["project"], newest["path"], newest["proven"]) == ("/work/lib", A, True)
    assert newest["place"].endswith(f"{OTHER}.jsonl:5")
    assert newest["timestamp"].startswith("2026-02-05T09:00")
    assert newest["model"]
    jsonl = cli("files", A, "--log", "--home", home, "--jsonl").out.splitlines()
    assert [json.loads(line) for line in jsonl] == result.json
    assert cli("files", A, "--log", "--home", home, "--csv").out.startswith("timestamp,path,how,tool,session")


def test_log_can_be_filtered_limited_and_reversed(cli: CliRunner, home: Path) -> None:
    """By session, project and time."""

    def sessions(*options: str) -> list[str]:
        return [row["session"] for row in cli("files", "a.py", "--log", "--home", home, "--json", *options).json]

    assert sessions("--session", SESSION) == [SESSION, SESSION]
    assert sessions("--session", f"{SESSION[:-1]}9") == [f"{SESSION[:-1]}9"] * 2
    assert sessions("--session", "last") == [OTHER]
    assert sessions("--project", "lib") == [OTHER]
    assert sessions("--since", "2026-02-01") == [OTHER]
    assert sessions("--until", "2026-02-01") == [SESSION, SESSION]
    assert sessions("--limit", "2") == [OTHER, SESSION]
    assert sessions("--limit", "2", "--reverse") == [SESSION, OTHER]
    assert sessions("--session", str(home / f"projects/-work-lib/{OTHER}.jsonl")) == [OTHER]


def test_log_prints_patches_with_comments(cli: CliRunner, home: Path) -> None:
    """Nothing in it controls a terminal."""
    result = cli("files", A, "--log", "--home", home, "--reverse")
    assert result.code == 0
    head, second, *_ = result.out.splitlines()
    assert head.startswith("# 2026-01-05 09:00 UTC")
    assert f"session {SESSION[:8]}, turn 1" in head
    assert second.startswith("# Prompt: make ")
    assert "\n--- /dev/null\n" in result.out
    assert control_characters("\n".join(line for line in result.out.splitlines() if line.startswith("#"))) == set()
    assert "Showing the newest 1 edit." in cli("files", A, "--log", "--home", home, "--limit", "1").err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["b.py", "--log"], 2, "No session edited a file 'b.py'."),
        (["last", "--log"], 2, "use --session"),
        (["a.py", "--log", "--since", "2027-01-01"], 1, "No matching edit"),
        (["a.py", "--log", "--project", "zzz"], 1, "No project matches 'zzz'"),
        (["b.py", "--log", "--session", "last"], 1, "This session did not edit a file 'b.py'."),
        (["a.py", "--log", "--session", "zzzz"], 2, "zzzz"),
        (["--log"], 2, "--log requires PATH"),
        (["a.py", "--log", "--at", "1"], 2, "cannot be combined"),
        (["a.py", "--log", "--session", "last", "--project", "lib"], 2, "--project"),
        (["last", "--reverse"], 2, "require --log"),
        (["a.py", "--log", "--since", "banana"], 2, "banana"),
    ],
)
def test_log_without_a_result_says_why(
    cli: CliRunner, home: Path, arguments: list[str], code: int, message: str
) -> None:
    """The exit code is 1 if nothing matches, 2 if the question is wrong."""
    result = cli("files", *arguments, "--home", home)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    if code == 1:
        assert cli("files", *arguments, "--home", home, "--json").json == []


def test_library_and_command_have_the_same_log(cli: CliRunner, home: Path) -> None:
    """`Archive.file_log` of all sessions, `Session.file_log` of one."""
    rows = cli("files", "a.py", "--log", "--home", home, "--json").json
    with threadline.open(home) as archive:
        edits = archive.file_log("a.py")
        session = archive.session(SESSION)
        assert [(edit.session, edit.call, edit.diff) for edit in edits] == [
            (row["session"], row["call"], row["diff"]) for row in rows
        ]
        assert [edit.call for edit in session.file_log(A)] == [
            edit.call for edit in archive.file_log(A, session=SESSION)
        ][::-1]
        assert archive.file_log("a.py", limit=1) == edits[:1]
        assert archive.file_log("a.py", since="2026-02-01") == edits[:1]
        assert [row["diff"] for row in edits.records()] == [edit.diff for edit in edits]


def test_only_sessions_that_edited_the_file_are_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index knows which: no other transcript is opened."""
    read: list[str] = []

    def count_reads(path: str, **options: object) -> object:
        read.append(Path(path).stem)
        return threadline.read(path, **options)  # type: ignore[arg-type] # passes on what it was given

    monkeypatch.setattr("threadline.archive.file_log.read", count_reads)
    with threadline.open(home) as archive:
        archive.file_log("a.py", project="lib")
        archive.file_log("b.py")
    assert read == [OTHER]
