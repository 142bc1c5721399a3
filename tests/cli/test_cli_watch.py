"""`threadline watch`: shows entries as they are written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner, control_characters, run_in_subprocess, start_in_subprocess
from tests.cli.test_cli_hostile import TEXTS, hostile_home
from tests.transcripts import SESSION, Part, Pen, Row, call, chain, lines, meta, prompt, reply, transcript, write

OTHER = "5e551011-0000-4000-8000-000000000002"
LONG_AGO = ("--since", "99999d")
DENIAL = "The user doesn't want to proceed with this tool use. The tool use was rejected. the user said:\nnot there"


def main_transcript(home: Path, session: str = SESSION, folder: str = "-work-app") -> Path:
    """The path of a session's main transcript."""
    return home / "projects" / folder / f"{session}.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session that already has two rows."""
    write(main_transcript(tmp_path), *transcript(prompt("before"), reply("said before")))
    return tmp_path


def append(path: Path, *rows: Row | bytes) -> None:
    """Append rows, as Claude Code does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(lines(*rows))


class WatchProcess:
    """The command in a new process, and its output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.out = process.stdout
        self.err = process.stderr
        self._rest = b""

    def lines(self, count: int) -> list[str]:
        """The next lines, once they are printed."""
        deadline = time.monotonic() + 30
        while self._rest.count(b"\n") < count and time.monotonic() < deadline:
            if wait([self.out.fileno()], 0.1):
                self._rest += os.read(self.out.fileno(), 1 << 16)
        *complete, self._rest = self._rest.split(b"\n")
        assert len(complete) == count
        return [line.decode() for line in complete]

    def rows(self, count: int) -> list[dict[str, Any]]:
        """The next rows of `--jsonl`."""
        return [json.loads(line) for line in self.lines(count)]


@contextmanager
def start_watch(home: Path, *words: str | Path) -> Iterator[WatchProcess]:
    """The command, after it has printed the two existing rows."""
    with start_in_subprocess("watch", *words, "--home", home, *LONG_AGO) as process:
        watched = WatchProcess(process)
        try:
            watched.lines(2)
            yield watched
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


# The command might never end, so it runs in a new process with a timeout.
def watch_lines(home: Path, *parts: Part, words: tuple[str, ...] = (), count: int = 1) -> list[str]:
    """The lines printed for a transcript of these parts, without times, sessions and projects."""
    write(main_transcript(home), *transcript(*parts))
    result = run_in_subprocess("watch", SESSION, "--home", home, *LONG_AGO, "--limit", str(count), *words)
    assert (result.code, result.err) == (0, "")
    return [line[10:] for line in result.out.splitlines()]


def test_shows_appended_entries(home: Path) -> None:
    """Each entry is one line with time, session, project and text. A torn line is shown once it is complete."""
    with start_watch(home) as watched:
        rows = transcript(prompt("and now?"), reply("now this"), pen=Pen(SESSION))
        data = lines(*rows)
        append(main_transcript(home), data[:-30])
        assert watched.lines(1) == ["09:00:01  5e551011  app             ❯ and now?"]  # noqa: RUF001 - its sign
        append(main_transcript(home), data[-30:])
        assert watched.lines(1) == ["09:00:03  5e551011  app             ● now this"]


def test_follows_new_sessions_projects_and_agents(home: Path) -> None:
    """A session in a new project, and an agent of a session, are followed from their first line."""
    with start_watch(home, "--jsonl") as watched:
        append(main_transcript(home, OTHER, "-work-new"), *transcript(prompt("hello"), pen=Pen(OTHER)))
        (row,) = watched.rows(1)
        assert (row["text"], row["session"], row["line"]) == ("hello", OTHER, 1)
        agent = main_transcript(home, OTHER, "-work-new").with_suffix("") / "subagents" / "agent-abcd1234.jsonl"
        append(agent, *transcript(reply("I look"), pen=Pen(OTHER, isSidechain=True)))
        (row,) = watched.rows(1)
        assert (row["text"], row["agent"], row["is_agent"]) == ("I look", "abcd1234", True)


def test_follows_truncated_moved_and_deleted_file(home: Path) -> None:
    """After a truncation, a move and a deletion, each new line is shown once, and no old one again."""
    with start_watch(home, "--jsonl") as watched:
        path = main_transcript(home)
        os.truncate(path, path.stat().st_size - 40)
        append(path, b"\n", *transcript(prompt("after the cut"), pen=Pen(SESSION)))
        assert [row["kind"] for row in watched.rows(2)] == ["damaged", "user"]
        moved = main_transcript(home, folder="-work-moved")
        moved.parent.mkdir()
        path.rename(moved)
        append(moved, *transcript(prompt("after the move"), pen=Pen(SESSION)))
        assert [row["text"] for row in watched.rows(1)] == ["after the move"]
        moved.unlink()
        append(path, *transcript(prompt("written anew"), pen=Pen(SESSION)))
        assert [row["text"] for row in watched.rows(1)] == ["written anew"]


@pytest.mark.slow
def test_rows_equal_those_of_entries(home: Path) -> None:
    """`--jsonl`, `--json` and `--csv` print the same rows as `threadline entries`."""
    for output in ("--jsonl", "--csv"):
        text = run_in_subprocess("watch", "--home", home, *LONG_AGO, "--limit", "2", output).out
        assert text == run_in_subprocess("entries", main_transcript(home), output).out
    assert run_in_subprocess("watch", "--home", home, *LONG_AGO, "--limit", "2", "--json").jsonl == [
        *run_in_subprocess("entries", main_transcript(home), "--jsonl").jsonl
    ]


def test_each_entry_is_one_line(home: Path) -> None:
    """Prompts, replies, thinking, calls and their outcomes, errors, compactions: a sign and a few words each."""
    parts = (
        prompt("fix\nit"),
        reply({"type": "thinking", "thinking": "let me see"}, "I will"),
        call("Bash", "npm test", result="all good"),
        call("Read", "/work/app/x.py", result="no such file", error=True),
        call("Bash", "rm -rf /", result=DENIAL, error=True),
        prompt("[Request interrupted by user]"),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 160000}),
        chain("system", subtype="api_error", error={"status": 529}, retryAttempt=2, maxRetries=10),
    )
    assert watch_lines(home, *parts, count=12) == [
        "❯ fix it",  # noqa: RUF001 - its sign
        "✻ let me see",
        "● I will",
        "◌ Bash  npm test",
        "✓ Bash  npm test  1.0s",
        "◌ Read  x.py",
        "✗ Read  x.py  error  1.0s · no such file",
        "◌ Bash  rm -rf /",
        "⊘ Bash  rm -rf /  denied  1.0s · ❯ not there",  # noqa: RUF001 - its sign
        "■ interrupted by the user",
        "═ compacted (auto) · 160.0k tokens",
        "✗ API error: 529 request failed · attempt 2 of 10",
    ]


@pytest.mark.slow
def test_metadata_is_hidden_by_default(home: Path) -> None:
    """Metadata entries are shown with `--all`, or if their kind is selected."""
    parts = (meta("mode", mode="plan"), prompt("hello"))
    assert watch_lines(home, *parts) == ["❯ hello"]  # noqa: RUF001 - its sign
    assert watch_lines(home, *parts, words=("--all",), count=2)[0] == "◦ mode: plan"
    assert watch_lines(home, *parts, words=("--kind", "mode")) == ["◦ mode: plan"]


@pytest.mark.slow
def test_filters(home: Path) -> None:
    """`--tool` selects calls of a tool and their results, `--agent` an agent's entries, `--kind` a kind of entry."""
    parts = (prompt("go"), call("Read", "x", result="y"), call("Bash", "ls", result="a"), reply("done"))
    assert watch_lines(home, *parts, words=("--tool", "Bash"), count=2) == ["◌ Bash  ls", "✓ Bash  ls  1.0s"]
    assert watch_lines(home, *parts, words=("--kind", "assistant"), count=1) == ["◌ Read  x"]
    agent = main_transcript(home).with_suffix("") / "subagents" / "agent-abcd1234.jsonl"
    write(agent, *transcript(reply("I look"), pen=Pen(isSidechain=True)))
    for name in ("sub", "abcd1234"):
        assert watch_lines(home, *parts, words=("--agent", name)) == ["⎇ abcd1234  ● I look"]
    assert watch_lines(home, *parts, words=("--agent", "main")) == ["❯ go"]  # noqa: RUF001 - its sign


@pytest.mark.slow
def test_follows_one_session_and_its_agents(home: Path) -> None:
    """A session is given by id prefix, path or `last`. Other sessions are not shown."""
    write(main_transcript(home, OTHER), *transcript(prompt("another's"), pen=Pen(OTHER)))
    write(
        main_transcript(home).with_name("agent-beside01.jsonl"), *transcript(reply("beside"), pen=Pen(isSidechain=True))
    )
    for name in (SESSION, str(main_transcript(home))):
        rows = run_in_subprocess("watch", name, "--home", home, *LONG_AGO, "--limit", "3", "--jsonl").jsonl
        assert sorted(row["text"] for row in rows) == ["before", "beside", "said before"]
    (row,) = run_in_subprocess("watch", OTHER[:36], "--home", home, *LONG_AGO, "--limit", "1", "--jsonl").jsonl
    assert row["text"] == "another's"


@pytest.mark.parametrize("text", TEXTS)
def test_escapes_hostile_text(tmp_path: Path, text: str) -> None:
    """Hostile text in any field is escaped."""
    home = hostile_home(tmp_path / "home", text, names=False)
    result = run_in_subprocess("watch", "--home", home, *LONG_AGO, "--all", "--limit", "20")
    assert result.code == 0
    assert len(result.out.splitlines()) >= 20
    assert control_characters(result.out + result.err) == set()


@pytest.mark.sample(3)
@pytest.mark.parametrize("output", ["", "--jsonl", "--csv"])
def test_ctrl_c_ends_the_command(home: Path, output: str) -> None:
    """Ctrl-C, pressed once or several times, exits with 130 and without a message."""
    with start_in_subprocess("watch", "--home", home, *LONG_AGO, *output.split()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        time.sleep(0.2)
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.002)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_closed_pipe_ends_the_command(home: Path) -> None:
    """`threadline watch | head -1` exits with 0 when the reader has ended, even if nothing more is written."""
    with start_in_subprocess("watch", "--home", home, *LONG_AGO) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["/nowhere/x.jsonl"], "There is no file '/nowhere/x.jsonl'"),
        (["ffffffff"], "No session or agent has an id that starts with 'ffffffff'"),
        (["--since", "soon"], "'soon' is not a time"),
        (["--poll", "0"], "--poll"),
    ],
)
def test_invalid_arguments_are_errors(cli: CliRunner, home: Path, words: list[str], sentence: str) -> None:
    """An unknown session or an invalid time: exit code 2, and a sentence."""
    result = cli("watch", "--home", home, *words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_no_home_exits_with_1(cli: CliRunner) -> None:
    """Without a home, a message says so."""
    result = cli("watch")
    assert (result.code, result.out) == (1, "")
    assert "No Claude home found" in result.err


def test_unknown_kind_is_reported(home: Path) -> None:
    """An unknown kind is an error, instead of waiting in silence."""
    result = run_in_subprocess("watch", "--home", home, *LONG_AGO, "--kind", "usr", "--kind", "user", "--limit", "1")
    assert result.code == 2
    assert "Unknown kind of entry 'usr'" in result.err
