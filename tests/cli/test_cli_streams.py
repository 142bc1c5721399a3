"""Terminals, pipes, locales and Ctrl-C (hostile.md row 47)."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli import home_counts
from tests.cli.runner import (
    COMMAND,
    CliResult,
    control_characters,
    run_in_subprocess,
    start_in_subprocess,
    subprocess_environment,
)
from tests.transcripts import SESSION, prompt, reply, transcript, write

QUESTIONS: tuple[list[str], ...] = (
    [],
    ["doctor"],
    ["entries", "HOME"],
    ["entries", "HOME", "--jsonl"],
    ["entries", "HOME", "--raw"],
)


def enlarged(demo: Path, path: Path, megabytes: int) -> Path:
    """A transcript of that size, made of the lines of a demo home's."""
    piece = b"".join(
        main.read_bytes() for main in home_counts.main_transcripts(demo) if main.read_bytes().endswith(b"\n")
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for _ in range(megabytes * 1_000_000 // len(piece)):
            file.write(piece)
    return path


@pytest.fixture(scope="module")
def big_home(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that takes seconds to read: a hundred names of one transcript."""
    home = tmp_path_factory.mktemp("big")
    paths = [home / f"projects/-a/5e551011-0000-4000-8000-{number:012}.jsonl" for number in range(100)]
    first = enlarged(demo_home, paths[0], 10)
    for other in paths[1:]:
        other.hardlink_to(first)
    return home


@pytest.fixture(scope="module")
def uneven_home(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of a large transcript and a small one: of two workers, one has nothing to do most of the time."""
    home = tmp_path_factory.mktemp("uneven")
    enlarged(demo_home, home / "projects/-a/5e551011-0000-4000-8000-000000000001.jsonl", 250)
    enlarged(demo_home, home / "projects/-a/5e551011-0000-4000-8000-000000000002.jsonl", 1)
    return home


def asked(question: list[str], home: Path) -> list[str]:
    """The question, of this home."""
    words = [str(home) if word == "HOME" else word for word in question]
    return words if "HOME" in question else [*words, "--home", str(home)]


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(words, marks=[pytest.mark.slow] * ("--jsonl" not in words), id=" ".join(words))
        for words in QUESTIONS
    ],
)
@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"HOME": ""},
        *(
            pytest.param(env, marks=pytest.mark.slow)
            for env in (
                {"LC_ALL": "C"},
                {"PYTHONIOENCODING": "ascii"},
                {"PYTHONIOENCODING": "latin-1"},
                {"TERM": "dumb"},
            )
        ),
    ],
    ids=lambda env: ",".join(f"{name}={value}" for name, value in env.items()),
)
def test_any_locale_and_terminal_will_do(demo_home: Path, question: list[str], env: dict[str, str]) -> None:
    """Locale C, ASCII or Latin-1 streams, a dumb terminal, no HOME: the answer comes, without a traceback."""
    result = run_in_subprocess(*asked(question, demo_home), **env)
    assert result.code == 0
    assert result.raw_err == b""
    assert result.raw
    if "--jsonl" in question:
        assert len(result.jsonl) > 500  # UTF-8, whatever the locale


def test_no_home_at_all() -> None:
    """Without HOME in the environment, and without a user of that number, nothing breaks."""
    result = run_in_subprocess()
    assert result.code in {0, 1}
    assert b"Traceback" not in result.raw_err
    env = subprocess_environment()
    del env["HOME"]
    done = subprocess.run([*COMMAND, "--json"], env=env, capture_output=True, check=False, timeout=60)  # noqa: S603 - ours
    assert done.returncode in {0, 1}
    assert json.loads(done.stdout)["problems"] is not None


@pytest.mark.sample(4)
@pytest.mark.parametrize("output", ["", "--json", "--jsonl", "--csv", "--raw"])
def test_a_reader_that_has_seen_enough_is_no_error(demo_home: Path, output: str) -> None:
    """`threadline entries … | head -1`: exit code 0, and not a word on standard error."""
    with start_in_subprocess("entries", demo_home, *output.split()) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline()
        asking.stdout.close()
        assert asking.wait(60) == 0
        assert asking.stderr is not None
        assert asking.stderr.read() == b""


@pytest.mark.parametrize(
    "question",
    [[], ["--help"], *(pytest.param(words, marks=pytest.mark.slow) for words in (*QUESTIONS[1:], ["--version"]))],
    ids=" ".join,
)
def test_a_closed_or_gone_standard_output_is_no_error(demo_home: Path, question: list[str]) -> None:
    """With standard output closed from the start, or a pipe that nobody reads, there is no traceback."""
    words = asked(question, demo_home) if question[0:1] not in (["--help"], ["--version"]) else question
    closed = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *words],
        env=subprocess_environment(),
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert (closed.returncode, closed.stderr) == (0, b"")
    reading, writing = os.pipe()
    os.close(reading)
    gone = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *words],
        env=subprocess_environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (0, b"")


def test_a_closed_standard_error_hides_no_exit_code(tmp_path: Path) -> None:
    """With standard error closed there is nowhere to complain, and the exit code still tells."""
    done = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "doctor", str(tmp_path / "nowhere")],
        env=subprocess_environment(),
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.sample(4)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_full_disk_is_an_error_with_a_sentence(demo_home: Path, question: list[str]) -> None:
    """An answer that cannot be written: exit code 2 and one sentence."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603 - our own command
            [*COMMAND, *asked(question, demo_home)],
            env=subprocess_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"threadline: Cannot write to standard output: No space left on device")
    assert done.stderr.count(b"\n") == 1


class Terminal:
    """A terminal that a process writes its standard error to."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.seen = b""

    def read(self, seconds: float = 60, until: bytes | None = None) -> bytes:
        """Read until this is seen, or until the process has closed the terminal."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (until is None or until not in self.seen):
            if not select.select([self.ours], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # closed at the other end
                break
            if not piece:
                break
            self.seen += piece
        return self.seen


@contextmanager
def on_a_terminal(*arguments: str | Path, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    """The command with standard error on a terminal, leading a process group of its own."""
    terminal = Terminal()
    with start_in_subprocess(*arguments, stderr=terminal.theirs, **{"TERM": "xterm", **env}) as asking:
        os.close(terminal.theirs)
        try:
            yield asking, terminal
        finally:
            if asking.poll() is None:
                os.killpg(asking.pid, signal.SIGKILL)
            os.close(terminal.ours)


def answer_on_a_terminal(*arguments: str | Path, **env: str) -> CliResult:
    """The whole answer, with standard error on a terminal."""
    with on_a_terminal(*arguments, **env) as (asking, terminal):
        assert asking.stdout is not None
        out = asking.stdout.read()
        err = terminal.read()
        return CliResult(asking.wait(60), out, err)


@pytest.mark.sample(2)
@pytest.mark.parametrize("question", [[], ["doctor", "--check"]], ids=["overview", "doctor"])
def test_the_progress_bar_is_for_a_terminal(demo_home: Path, question: list[str]) -> None:
    """On a terminal a bar runs on standard error; the answer on standard output is the same as without one."""
    shown = answer_on_a_terminal(*question, "--home", demo_home, THREADLINE_INDEX="off")
    piped = run_in_subprocess(*question, "--home", demo_home)
    assert shown.code == piped.code == 0
    assert b"Reading" in shown.raw_err
    assert b"100%" in shown.raw_err
    assert shown.raw_err.endswith(b"\x1b[1A\x1b[2K")  # and is gone when the answer comes
    assert shown.raw == piped.raw
    assert piped.raw_err == b""
    assert control_characters(shown.out) == set()


def test_a_dumb_terminal_gets_no_bar(demo_home: Path) -> None:
    """A terminal that cannot move its cursor gets no bar."""
    result = answer_on_a_terminal("--home", demo_home, TERM="dumb")
    assert (result.code, result.raw_err) == (0, b"")


def children(parent: int) -> list[str]:
    """The processes that a process has started."""
    return [one for path in Path(f"/proc/{parent}/task").glob("*/children") for one in path.read_text().split()]


@pytest.mark.sample(4)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc to see workers in")
@pytest.mark.parametrize("home", ["big_home", "uneven_home"])
@pytest.mark.parametrize(
    "question", [["doctor", "--check", "--jobs", "2"], ["doctor", "--jobs", "1"], ["--jobs", "2"]], ids=" ".join
)
def test_an_interrupt_while_reading(request: pytest.FixtureRequest, home: str, question: list[str]) -> None:
    """Ctrl-C, which every process of the terminal gets, ends it with 130 before all is read, without a traceback."""
    with on_a_terminal(*question, "--home", request.getfixturevalue(home)) as (asking, terminal):
        assert b"Reading" in terminal.read(until=b"Reading")
        while len(children(asking.pid)) < (1 if "2" in question else 0):
            time.sleep(0.01)
        time.sleep(0.05)  # in the midst of it
        os.killpg(asking.pid, signal.SIGINT)
        assert asking.stdout is not None
        out = asking.stdout.read()
        said = terminal.read()
        assert asking.wait(30) == 130
        assert out == b""
        assert b"100%" not in said
        assert b"Traceback" not in said
        assert b"KeyboardInterrupt" not in said


@pytest.mark.sample(4)
@pytest.mark.parametrize("output", ["", "--json", "--jsonl", "--csv", "--raw"])
def test_an_interrupt_while_writing(big_home: Path, output: str) -> None:
    """Ctrl-C while entries are printed ends it with 130, and without a traceback."""
    with start_in_subprocess("entries", big_home, *output.split()) as asking:
        assert asking.stdout is not None
        assert asking.stderr is not None
        assert asking.stdout.readline()
        os.killpg(asking.pid, signal.SIGINT)
        while asking.stdout.read(1 << 20):
            pass
        assert asking.wait(30) == 130
        assert asking.stderr.read().strip() == b""


def shown_on_a_terminal(*arguments: str | Path, **env: str) -> bytes:
    """What the command shows where standard output is a terminal of 80 columns."""
    wanted = subprocess_environment(**{"COLUMNS": "80", "TERM": "xterm", **env})
    pid, ours = pty.fork()
    if not pid:
        os.execve(COMMAND[0], [*COMMAND, *map(str, arguments)], wanted)  # noqa: S606 - our own command
    terminal = Terminal.__new__(Terminal)
    terminal.ours, terminal.seen = ours, b""
    seen = terminal.read()
    os.close(ours)
    assert os.waitpid(pid, 0)[1] == 0
    return seen


@pytest.mark.sample(2)
@pytest.mark.parametrize("question", [[], ["doctor"]], ids=["overview", "doctor"])
def test_headings_are_bold_on_a_terminal(demo_home: Path, question: list[str]) -> None:
    """On a terminal headings are bold; NO_COLOR and a dumb terminal get none of it, nor does a pipe."""
    words = [*question, "--home", str(demo_home)]
    heading = b"Largest transcripts" if not question else b"Entry kinds"
    assert b"\x1b[1m" + heading + b"\x1b[0m" in shown_on_a_terminal(*words)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plainly = shown_on_a_terminal(*words, **env)
        assert heading in plainly
        assert b"\x1b[1m" not in plainly
    assert b"\x1b" not in run_in_subprocess(*words).raw


def test_an_opened_hit_is_where_the_pager_begins(tmp_path: Path) -> None:
    """The pager is told the line; with --no-pager the turn is printed."""
    less = tmp_path / "bin" / "less"
    less.parent.mkdir()
    less.write_text('#!/bin/sh\necho "less $*"\ncat > /dev/null\n')
    less.chmod(0o755)
    said = "\n\n".join(f"paragraph {number}" for number in range(50))
    rows = transcript(prompt("begin"), reply(f"{said}\n\nthe mole is wet\n\n{said}"))
    write(tmp_path / "home" / "projects" / "-srv" / f"{SESSION}.jsonl", *rows)
    words: list[str | Path] = ["search", "mole", "--open", "--home", tmp_path / "home"]
    env = {"PAGER": str(less), "THREADLINE_CACHE": str(tmp_path / "cache")}
    paged = shown_on_a_terminal(*words, **env).decode()
    begin = re.search(r"less \+(\d+)", paged)
    assert begin is not None
    printed = shown_on_a_terminal(*words, "--no-pager", **env).decode()
    assert "the mole is wet" in printed
    assert "less +" not in printed
    before, after = printed.split("the mole is wet")
    assert before.count("\n") - 10 < int(begin[1]) <= before.count("\n")
    assert after.count("\n") > 50
