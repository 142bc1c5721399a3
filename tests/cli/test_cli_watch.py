"""`threadline watch`: what happens, as it is written."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner, control_characters, run_in_subprocess, start_in_subprocess
from tests.cli.test_cli_hostile import TEXTS, hostile_home
from tests.transcripts import SESSION, Part, Pen, Row, call, chain, lines, meta, prompt, reply, transcript, write

OTHER = "5e551011-0000-4000-8000-000000000002"
LONG_AGO = ("--since", "99999d")
DENIAL = "The user doesn't want to proceed with this tool use. The tool use was rejected. the user said:\nnot there"


def main(home: Path, session: str = SESSION, folder: str = "-work-app") -> Path:
    """Where a session's main transcript lies."""
    return home / "projects" / folder / f"{session}.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session, of which two rows are already written."""
    write(main(tmp_path), *transcript(prompt("before"), reply("said before")))
    return tmp_path


def add(path: Path, *rows: Row | bytes) -> None:
    """Append rows, as Claude Code does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(lines(*rows))


class Watched:
    """The command in a process of its own, and what it says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.out = process.stdout
        self.err = process.stderr
        self._rest = b""

    def lines(self, count: int) -> list[str]:
        """The next lines, when they have come."""
        end = time.monotonic() + 30
        while self._rest.count(b"\n") < count and time.monotonic() < end:
            if select.select([self.out], [], [], 0.1)[0]:
                self._rest += os.read(self.out.fileno(), 1 << 16)
        *whole, self._rest = self._rest.split(b"\n")
        assert len(whole) == count
        return [line.decode() for line in whole]

    def rows(self, count: int) -> list[dict[str, Any]]:
        """The next rows of `--jsonl`."""
        return [json.loads(line) for line in self.lines(count)]


@contextmanager
def watching(home: Path, *words: str | Path) -> Iterator[Watched]:
    """The command, once it has begun: it has told of the two rows that were there."""
    with start_in_subprocess("watch", *words, "--home", home, *LONG_AGO) as process:
        watched = Watched(process)
        try:
            watched.lines(2)
            yield watched
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


# What may never end is asked in a process of its own, which is given a minute.
def shown(home: Path, *parts: Part, words: tuple[str, ...] = (), count: int = 1) -> list[str]:
    """The lines that a transcript of these parts gives, without their times, sessions and projects."""
    write(main(home), *transcript(*parts))
    result = run_in_subprocess("watch", SESSION, "--home", home, *LONG_AGO, "--limit", str(count), *words)
    assert (result.code, result.err) == (0, "")
    return [line[10:] for line in result.out.splitlines()]


def test_an_appended_entry_is_shown(home: Path) -> None:
    """What is appended comes as one line: time, session, project, and what happened; a torn line when it is whole."""
    with watching(home) as watched:
        rows = transcript(prompt("and now?"), reply("now this"), pen=Pen(SESSION))
        data = lines(*rows)
        add(main(home), data[:-30])
        assert watched.lines(1) == ["09:00:01  5e551011  app             ❯ and now?"]  # noqa: RUF001 - its sign
        add(main(home), data[-30:])
        assert watched.lines(1) == ["09:00:03  5e551011  app             ● now this"]


def test_new_sessions_projects_and_agents_are_shown(home: Path) -> None:
    """A session in a new project, and an agent below a session, are followed from their first line on."""
    with watching(home, "--jsonl") as watched:
        add(main(home, OTHER, "-work-new"), *transcript(prompt("hello"), pen=Pen(OTHER)))
        (row,) = watched.rows(1)
        assert (row["text"], row["session"], row["line"]) == ("hello", OTHER, 1)
        agent = main(home, OTHER, "-work-new").with_suffix("") / "subagents" / "agent-abcd1234.jsonl"
        add(agent, *transcript(reply("I look"), pen=Pen(OTHER, isSidechain=True)))
        (row,) = watched.rows(1)
        assert (row["text"], row["agent"], row["is_agent"]) == ("I look", "abcd1234", True)


def test_a_file_that_is_cut_moved_and_deleted(home: Path) -> None:
    """After a cut, a move and a deletion, each new line comes once, and no old one again."""
    with watching(home, "--jsonl") as watched:
        path = main(home)
        os.truncate(path, path.stat().st_size - 40)
        add(path, b"\n", *transcript(prompt("after the cut"), pen=Pen(SESSION)))
        assert [row["kind"] for row in watched.rows(2)] == ["damaged", "user"]
        moved = main(home, folder="-work-moved")
        moved.parent.mkdir()
        path.rename(moved)
        add(moved, *transcript(prompt("after the move"), pen=Pen(SESSION)))
        assert [row["text"] for row in watched.rows(1)] == ["after the move"]
        moved.unlink()
        add(path, *transcript(prompt("written anew"), pen=Pen(SESSION)))
        assert [row["text"] for row in watched.rows(1)] == ["written anew"]


def test_rows_are_those_of_entries(home: Path) -> None:
    """`--jsonl`, `--json` and `--csv` print for each entry what `threadline entries` does."""
    for output in ("--jsonl", "--csv"):
        told = run_in_subprocess("watch", "--home", home, *LONG_AGO, "--limit", "2", output).out
        assert told == run_in_subprocess("entries", main(home), output).out
    assert run_in_subprocess("watch", "--home", home, *LONG_AGO, "--limit", "2", "--json").jsonl == [
        *run_in_subprocess("entries", main(home), "--jsonl").jsonl
    ]


def test_what_happens_in_one_line(home: Path) -> None:
    """Prompts, replies, thinking, calls and how they ended, errors, compactions: a sign and a few words each."""
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
    assert shown(home, *parts, count=12) == [
        "❯ fix it",  # noqa: RUF001 - its sign
        "✻ let me see",
        "● I will",
        "◌ Bash  npm test",
        "✓ Bash  npm test  1.0s",
        "◌ Read  x.py",
        "✗ Read  x.py  error  1.0s · no such file",
        "◌ Bash  rm -rf /",
        "⊘ Bash  rm -rf /  denied  1.0s · ❯ not there",  # noqa: RUF001 - its sign
        "■ interrupted by the person",
        "═ compacted (auto) · 160,000 tokens",
        "✗ API error: 529 request failed · attempt 2 of 10",
    ]


@pytest.mark.slow
def test_bookkeeping_is_left_out_of_the_table(home: Path) -> None:
    """What the program notes for itself is shown with `--all`, or where its kind is asked for."""
    parts = (meta("mode", mode="plan"), prompt("hello"))
    assert shown(home, *parts) == ["❯ hello"]  # noqa: RUF001 - its sign
    assert shown(home, *parts, words=("--all",), count=2)[0] == "◦ mode: plan"
    assert shown(home, *parts, words=("--kind", "mode")) == ["◦ mode: plan"]


@pytest.mark.slow
def test_filters(home: Path) -> None:
    """`--tool` keeps calls of a tool and their results, `--agent` what an agent wrote, `--kind` a kind of entry."""
    parts = (prompt("go"), call("Read", "x", result="y"), call("Bash", "ls", result="a"), reply("done"))
    assert shown(home, *parts, words=("--tool", "Bash"), count=2) == ["◌ Bash  ls", "✓ Bash  ls  1.0s"]
    assert shown(home, *parts, words=("--kind", "assistant"), count=1) == ["◌ Read  x"]
    agent = main(home).with_suffix("") / "subagents" / "agent-abcd1234.jsonl"
    write(agent, *transcript(reply("I look"), pen=Pen(isSidechain=True)))
    for name in ("sub", "abcd1234"):
        assert shown(home, *parts, words=("--agent", name)) == ["⎇ abcd1234  ● I look"]
    assert shown(home, *parts, words=("--agent", "main")) == ["❯ go"]  # noqa: RUF001 - its sign


@pytest.mark.slow
def test_one_session_and_its_agents(home: Path) -> None:
    """A session is named by its id's start, its path or `last`; what others write is not shown."""
    write(main(home, OTHER), *transcript(prompt("another's"), pen=Pen(OTHER)))
    write(main(home).with_name("agent-beside01.jsonl"), *transcript(reply("beside"), pen=Pen(isSidechain=True)))
    for name in (SESSION, str(main(home))):
        rows = run_in_subprocess("watch", name, "--home", home, *LONG_AGO, "--limit", "3", "--jsonl").jsonl
        assert sorted(row["text"] for row in rows) == ["before", "beside", "said before"]
    (row,) = run_in_subprocess("watch", OTHER[:36], "--home", home, *LONG_AGO, "--limit", "1", "--jsonl").jsonl
    assert row["text"] == "another's"


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_that_is_written_steers_the_terminal(tmp_path: Path, text: str) -> None:
    """Hostile text in any field of a row reaches the table as escapes only."""
    home = hostile_home(tmp_path / "home", text, names=False)
    result = run_in_subprocess("watch", "--home", home, *LONG_AGO, "--all", "--limit", "20")
    assert result.code == 0
    assert len(result.out.splitlines()) >= 20
    assert control_characters(result.out + result.err) == set()


@pytest.mark.sample(3)
@pytest.mark.parametrize("output", ["", "--jsonl", "--csv"])
def test_ctrl_c_ends_it(home: Path, output: str) -> None:
    """Ctrl-C, pressed once or several times, ends it with 130, and without a word."""
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


def test_a_reader_that_has_seen_enough_ends_it(home: Path) -> None:
    """`threadline watch | head -1` ends with 0 when the reader has gone, though nothing more is written."""
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
def test_what_cannot_be_watched(cli: CliRunner, home: Path, words: list[str], sentence: str) -> None:
    """A session that is not there, a time that is none: exit code 2, and a sentence."""
    result = cli("watch", "--home", home, *words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_no_home(cli: CliRunner) -> None:
    """Where there is no home, that is said: exit code 1."""
    result = cli("watch")
    assert (result.code, result.out) == (1, "")
    assert "No Claude home found" in result.err


def test_a_kind_that_is_not_known_is_told(home: Path) -> None:
    """A kind that no version writes is told at once, rather than waited for in silence."""
    result = run_in_subprocess("watch", "--home", home, *LONG_AGO, "--kind", "usr", "--kind", "user", "--limit", "1")
    assert result.code == 0
    assert "Unknown kind of entry 'usr'" in result.err
