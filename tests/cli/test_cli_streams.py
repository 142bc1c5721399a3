"""Terminals, pipes, locales and Ctrl-C (hostile.md row 47)."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
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

from threadline.cli.output import progress_bar
from threadline.errors import NotFound

COMMANDS: tuple[list[str], ...] = (
    [],
    ["doctor"],
    ["entries", "HOME"],
    ["entries", "HOME", "--jsonl"],
    ["entries", "HOME", "--raw"],
)


def write_large_transcript(demo: Path, path: Path, megabytes: int) -> Path:
    """A transcript of that size, made of the lines of a demo home."""
    block = b"".join(
        main.read_bytes() for main in home_counts.main_transcripts(demo) if main.read_bytes().endswith(b"\n")
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for _ in range(megabytes * 1_000_000 // len(block)):
            file.write(block)
    return path


@pytest.fixture(scope="module")
def big_home(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that takes many seconds to read: hard links to one transcript."""
    home = tmp_path_factory.mktemp("big")
    paths = [home / f"projects/-a/5e551011-0000-4000-8000-{number:012}.jsonl" for number in range(400)]
    first = write_large_transcript(demo_home, paths[0], 10)
    for other in paths[1:]:
        other.hardlink_to(first)
    return home


@pytest.fixture(scope="module")
def uneven_home(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a large transcript and a small one, so that one of two workers is mostly idle."""
    home = tmp_path_factory.mktemp("uneven")
    write_large_transcript(demo_home, home / "projects/-a/5e551011-0000-4000-8000-000000000001.jsonl", 250)
    write_large_transcript(demo_home, home / "projects/-a/5e551011-0000-4000-8000-000000000002.jsonl", 1)
    return home


def with_home(command: list[str], home: Path) -> list[str]:
    """The command's arguments, for this home."""
    words = [str(home) if word == "HOME" else word for word in command]
    return words if "HOME" in command else [*words, "--home", str(home)]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(words, marks=[pytest.mark.slow] * ("--jsonl" not in words), id=" ".join(words))
        for words in COMMANDS
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
def test_any_locale_and_terminal(demo_home: Path, command: list[str], env: dict[str, str]) -> None:
    """Locale C, ASCII or Latin-1 streams, a dumb terminal, no HOME: the command works without a traceback."""
    result = run_in_subprocess(*with_home(command, demo_home), **env)
    assert result.code == 0
    assert result.raw_err == b""
    assert result.raw
    if "--jsonl" in command:
        assert len(result.jsonl) > 500  # UTF-8, whatever the locale


@pytest.mark.slow
def test_no_home_variable() -> None:
    """Without HOME in the environment, and without a matching user, nothing breaks."""
    result = run_in_subprocess()
    assert result.code in {0, 1}
    assert b"Traceback" not in result.raw_err
    env = subprocess_environment()
    del env["HOME"]
    process = subprocess.run([*COMMAND, "--json"], env=env, capture_output=True, check=False, timeout=60)  # noqa: S603 - ours
    assert process.returncode in {0, 1}
    assert json.loads(process.stdout)["problems"] is not None


@pytest.mark.sample(4)
@pytest.mark.parametrize("output", ["", "--json", "--jsonl", "--csv", "--raw"])
def test_closed_pipe_is_not_an_error(demo_home: Path, output: str) -> None:
    """`threadline entries … | head -1`: exit code 0, and nothing on standard error."""
    with start_in_subprocess("entries", demo_home, *output.split()) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "command",
    [[], ["--help"], *(pytest.param(words, marks=pytest.mark.slow) for words in (*COMMANDS[1:], ["--version"]))],
    ids=" ".join,
)
def test_closed_standard_output_is_reported(demo_home: Path, command: list[str]) -> None:
    """Output that cannot be written is an error, never a traceback. A pipe that nobody reads is none."""
    words = with_home(command, demo_home) if command[0:1] not in (["--help"], ["--version"]) else command
    closed = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *words],
        env=subprocess_environment(),
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert (closed.returncode, closed.stderr) == (2, b"threadline: Cannot write to standard output: it is closed.\n")
    reading, writing = os.pipe()
    os.close(reading)
    unread = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *words],
        env=subprocess_environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (unread.returncode, unread.stderr) == (0, b"")


def test_exit_code_with_closed_standard_error(tmp_path: Path) -> None:
    """If standard error is closed, the exit code is still right."""
    process = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "doctor", str(tmp_path / "nowhere")],
        env=subprocess_environment(),
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert (process.returncode, process.stdout) == (2, b"")


@pytest.mark.sample(4)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_full_disk_is_an_error(demo_home: Path, command: list[str]) -> None:
    """Output that cannot be written exits with 2 and one sentence."""
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(  # noqa: S603 - our own command
            [*COMMAND, *with_home(command, demo_home)],
            env=subprocess_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert process.returncode == 2
    assert process.stderr.startswith(b"threadline: Cannot write to standard output: No space left on device")
    assert process.stderr.count(b"\n") == 1


class PseudoTerminal:
    """A terminal that a process writes its standard error to."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.output = b""

    def read(self, seconds: float = 60, until: bytes | None = None) -> bytes:
        """Read until this text appears, or until the process has closed the terminal."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and (until is None or until not in self.output):
            if not wait([self.master], 0.1):
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # closed at the other end
                break
            if not data:
                break
            self.output += data
        return self.output


@contextmanager
def start_on_terminal(*arguments: str | Path, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], PseudoTerminal]]:
    """The command with standard error on a terminal, in its own process group."""
    terminal = PseudoTerminal()
    with start_in_subprocess(*arguments, stderr=terminal.slave, **{"TERM": "xterm", **env}) as process:
        os.close(terminal.slave)
        try:
            yield process, terminal
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            os.close(terminal.master)


def run_on_terminal(*arguments: str | Path, **env: str) -> CliResult:
    """The complete result, with standard error on a terminal."""
    with start_on_terminal(*arguments, **env) as (process, terminal):
        assert process.stdout is not None
        out = process.stdout.read()
        err = terminal.read()
        return CliResult(process.wait(60), out, err)


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", [[], ["doctor", "--check"]], ids=["overview", "doctor"])
def test_progress_bar_on_a_terminal(demo_home: Path, command: list[str]) -> None:
    """A terminal shows a progress bar on standard error. Standard output is the same as without one."""
    result = run_on_terminal(*command, "--home", demo_home, THREADLINE_INDEX="off")
    piped = run_in_subprocess(*command, "--home", demo_home)
    assert result.code == piped.code == 0
    assert b"Reading" in result.raw_err
    assert b"100%" in result.raw_err
    assert result.raw_err.endswith(b"\x1b[1A\x1b[2K")  # and is removed before the output
    assert result.raw == piped.raw
    assert piped.raw_err == b""
    assert control_characters(result.out) == set()


def test_dumb_terminal_gets_no_progress_bar(demo_home: Path) -> None:
    """A terminal that cannot move its cursor gets no bar."""
    result = run_on_terminal("--home", demo_home, TERM="dumb")
    assert (result.code, result.raw_err) == (0, b"")


def test_failed_command_removes_its_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message is not below a bar that stopped."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(NotFound), progress_bar("Pushing", 10):
        raise NotFound("There is no lake.")
    shown = capsys.readouterr().err
    assert "Pushing" in shown
    assert shown.endswith("\x1b[1A\x1b[2K")


def child_processes(parent: int) -> list[str]:
    """The processes that a process has started."""
    return [pid for path in Path(f"/proc/{parent}/task").glob("*/children") for pid in path.read_text().split()]


@pytest.mark.sample(4)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc to see workers in")
@pytest.mark.parametrize("home", ["big_home", "uneven_home"])
@pytest.mark.parametrize(
    "command", [["doctor", "--check", "--jobs", "2"], ["doctor", "--jobs", "1"], ["--jobs", "2"]], ids=" ".join
)
def test_interrupt_while_reading(request: pytest.FixtureRequest, home: str, command: list[str]) -> None:
    """Ctrl-C, sent to the whole process group, exits with 130 before everything is read, without a traceback."""
    with start_on_terminal(*command, "--home", request.getfixturevalue(home)) as (process, terminal):
        os.setpriority(os.PRIO_PROCESS, process.pid, 19)  # on a busy machine it must not end before the signal
        assert b"Reading" in terminal.read(until=b"Reading")
        while len(child_processes(process.pid)) < (1 if "2" in command else 0):
            time.sleep(0.01)
        time.sleep(0.05)  # in the midst of it
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read()
        screen = terminal.read()
        assert process.wait(30) == 130
        assert out == b""
        assert b"100%" not in screen
        assert b"Traceback" not in screen
        assert b"KeyboardInterrupt" not in screen


@pytest.mark.sample(4)
@pytest.mark.parametrize("output", ["", "--json", "--jsonl", "--csv", "--raw"])
def test_interrupt_while_writing(big_home: Path, output: str) -> None:
    """Ctrl-C during output exits with 130, without a traceback."""
    with start_in_subprocess("entries", big_home, *output.split()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        while process.stdout.read(1 << 20):
            pass
        assert process.wait(30) == 130
        assert process.stderr.read().strip() == b""


def terminal_output(*arguments: str | Path, **env: str) -> bytes:
    """What the command shows if standard output is a terminal of 80 columns."""
    environment = subprocess_environment(**{"COLUMNS": "80", "TERM": "xterm", **env})
    pid, master = pty.fork()
    if not pid:
        os.execve(COMMAND[0], [*COMMAND, *map(str, arguments)], environment)  # noqa: S606 - our own command
    terminal = PseudoTerminal.__new__(PseudoTerminal)
    terminal.master, terminal.output = master, b""
    output = terminal.read()
    os.close(master)
    assert os.waitpid(pid, 0)[1] == 0
    return output


def test_export_to_a_terminal_starts_on_a_line_of_its_own(demo_home: Path) -> None:
    """The progress bar is removed before the session is printed. Traces are printed as they are read, without one."""
    words = ["export", "last", "--home", str(demo_home), "--out", "-"]
    text = terminal_output(*words, "--format", "txt")
    title = run_in_subprocess("list", "--home", demo_home, "--limit", "1", "--json").json[0]["title"].encode()
    assert text.partition(b"\x1b[1A\x1b[2K")[2].startswith(title)
    assert terminal_output(*words, "--format", "otlp").startswith(b'{"resourceSpans"')


@pytest.mark.slow
@pytest.mark.parametrize("command", [[], ["doctor"]], ids=["overview", "doctor"])
def test_headings_are_bold_on_a_terminal(demo_home: Path, command: list[str]) -> None:
    """Headings are bold on a terminal, but not with NO_COLOR, on a dumb terminal, or in a pipe."""
    words = [*command, "--home", str(demo_home)]
    heading = b"Largest transcripts" if not command else b"Entry kinds"
    assert b"\x1b[1m" + heading + b"\x1b[0m" in terminal_output(*words)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = terminal_output(*words, **env)
        assert heading in plain
        assert b"\x1b[1m" not in plain
    assert b"\x1b" not in run_in_subprocess(*words).raw


@pytest.mark.slow
def test_pager_starts_at_the_opened_hit(tmp_path: Path) -> None:
    """The pager gets the line number. With --no-pager the turn is printed."""
    less = tmp_path / "bin" / "less"
    less.parent.mkdir()
    less.write_text('#!/bin/sh\necho "less $*"\ncat > /dev/null\n')
    less.chmod(0o755)
    filler = "\n\n".join(f"paragraph {number}" for number in range(50))
    rows = transcript(prompt("begin"), reply(f"{filler}\n\nthe mole is wet\n\n{filler}"))
    write(tmp_path / "home" / "projects" / "-srv" / f"{SESSION}.jsonl", *rows)
    words: list[str | Path] = ["search", "mole", "--open", "--home", tmp_path / "home"]
    env = {"PAGER": str(less), "THREADLINE_CACHE": str(tmp_path / "cache")}
    paged = terminal_output(*words, **env).decode()
    start = re.search(r"less \+(\d+)", paged)
    assert start is not None
    printed = terminal_output(*words, "--no-pager", **env).decode()
    assert "the mole is wet" in printed
    assert "less +" not in printed
    before, after = printed.split("the mole is wet")
    assert before.count("\n") - 10 < int(start[1]) <= before.count("\n")
    assert after.count("\n") > 50
