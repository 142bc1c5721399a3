"""Workers: all cores at work, and none left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tools.demo import write

from threadline import parallel as crews
from threadline.find import homes, look
from threadline.model.homes import Transcript
from threadline.parallel import MAX_TASKS, fork_map, map_transcripts


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with some hundred transcripts."""
    place = tmp_path_factory.mktemp("workers") / "home"
    write(place, megabytes=8)
    return place


def size_of(transcript: Transcript) -> int:
    """What a worker is asked: something that another process can import."""
    return transcript.path.stat().st_size


def die_once(transcript: Transcript) -> int:
    """The same, but the first worker that is asked is ended from outside, as the system does for want of memory."""
    mark = Path(os.environ["THREADLINE_TEST_MARK"])
    if not mark.exists() and os.getpid() != int(os.environ["THREADLINE_TEST_PARENT"]):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return size_of(transcript)


def test_workers_answer_for_every_transcript(home: Path) -> None:
    """Big transcripts go one by one and small ones together, and none is forgotten."""
    transcripts = look(homes(home)[0]).transcripts
    answers = dict(map_transcripts(size_of, transcripts, jobs=2))
    assert answers == {transcript: transcript.size for transcript in transcripts}


def test_what_a_killed_worker_left_is_read_all_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that the system ends takes no answer with it."""
    monkeypatch.setenv("THREADLINE_TEST_MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("THREADLINE_TEST_PARENT", str(os.getpid()))
    transcripts = look(homes(home)[0]).transcripts
    assert dict(map_transcripts(die_once, transcripts, jobs=2)) == {
        transcript: transcript.size for transcript in transcripts
    }


def square(number: int) -> int:
    """A task that takes no time."""
    return number * number


def refused(*_: object) -> int:
    """What the system says when a limit is reached."""
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


SQUARES = {number: number * number for number in range(100)}
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for the workers in /proc")


@needs_proc
@pytest.mark.parametrize("given", [0, 2])
@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_where_the_system_gives_no_more_forks_or_pipes_fewer_work(
    call: str, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits of processes and open files change nothing about the answers, and nothing is left open."""
    real, left = getattr(os, call), [given]

    def few() -> object:
        left[0] -= 1
        return real() if left[0] >= 0 else refused()

    before, others = _open_files(), _children(os.getpid())
    monkeypatch.setattr(os, call, few)
    assert dict(fork_map(square, range(100), 4)) == SQUARES
    assert _children(os.getpid()) == others
    assert _open_files() == before


@pytest.mark.parametrize("count", [MAX_TASKS, 40_000])
def test_more_tasks_than_a_pipe_holds_are_all_done(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a pipe holds no more than a page, as for somebody who has many."""
    fcntl = pytest.importorskip("fcntl")
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        pytest.skip("pipes cannot be made small here")
    real = os.pipe

    def small() -> tuple[int, int]:
        read, write = real()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        return read, write

    monkeypatch.setattr(os, "pipe", small)
    assert dict(fork_map(square, range(count), 1)) == {number: number * number for number in range(count)}


def test_no_more_batches_are_made_than_the_smallest_pipe_holds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much a home holds, every task finds room."""
    made: list[int] = []

    def counted(function: Any, tasks: Any, workers: int) -> Any:
        made.append(len(tasks))
        return fork_map(function, tasks, workers)

    monkeypatch.setattr("threadline.parallel.fork_map", counted)
    one = look(homes(home)[0]).transcripts[0]
    many = [replace(one, size=size) for size in (10**10, *[5_000_000] * 20_000, *[0] * 20_000)]
    assert sum(1 for _ in map_transcripts(str, many, jobs=2)) == len(many)
    assert made[0] <= MAX_TASKS


def test_no_more_workers_are_made_than_there_are_batches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a million jobs gets no million processes."""
    asked: list[tuple[int, int]] = []

    def counted(function: Any, tasks: Any, workers: int) -> Any:
        asked.append((len(tasks), workers))
        return ((task, function(task)) for task in tasks)

    monkeypatch.setattr("threadline.parallel.fork_map", counted)
    transcripts = look(homes(home)[0]).transcripts
    assert dict(map_transcripts(size_of, transcripts, jobs=10**20)) == {
        transcript: transcript.size for transcript in transcripts
    }
    assert asked[0][1] == asked[0][0] - 1 < len(transcripts) - 1


@needs_proc
def test_workers_answer_in_a_process_with_thousands_of_open_files() -> None:
    """Their pipes have numbers that `select` does not take."""
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 1200:
        pytest.skip("so many files may not be open here")
    held = [os.dup(0) for _ in range(1100)]
    try:
        assert dict(fork_map(square, range(100), 2)) == SQUARES
    finally:
        for one in held:
            os.close(one)


def test_workers_answer_where_ended_children_are_ignored() -> None:
    """With SIGCHLD ignored, there is nothing to wait for."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert dict(fork_map(square, range(100), 2)) == SQUARES
    finally:
        signal.signal(signal.SIGCHLD, before)


@needs_proc
def test_an_interrupt_while_workers_are_made_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the worker that is being made is known, and then ends all of them."""
    real, made = os.fork, [0]

    def fork() -> int:
        made[0] += 1
        if made[0] == 2:
            signal.raise_signal(signal.SIGINT)
        return real()

    others = _children(os.getpid())
    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(KeyboardInterrupt):
        list(fork_map(square, range(100), 4))
    assert made == [2]
    assert _children(os.getpid()) == others
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_worker_that_nobody_listens_to_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """The answers that nobody wants any more end with their worker, without a word."""
    asked = fork_map(bytes, [100_000] * 200, 2)
    next(asked)
    asked.close()
    read, write = os.pipe()
    os.close(read)
    pid = os.fork()
    if pid == 0:
        done = crews._Outbox()
        done.put(b"answer")
        crews._send_answers(write, done)
        os._exit(0)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert capfd.readouterr() == ("", "")


_ASK = """
import sys, time
from threadline.find import homes, look
from threadline import parallel as module
from threadline.parallel import map_transcripts as each

module._BATCH_BYTES = 0  # so that there is work for all of them

def slow(transcript):
    time.sleep(60)

print("ready", flush=True)
list(each(slow, look(homes(sys.argv[1])[0]).transcripts, jobs=3))
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the workers in /proc")
def test_workers_end_with_their_parent(home: Path, tmp_path: Path) -> None:
    """However the parent goes, its workers do not wait for work forever."""
    script = tmp_path / "ask.py"
    script.write_text(_ASK)
    command = [sys.executable, str(script), str(home)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    workers = _wait_for(lambda: _children(parent.pid), least=2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    left = [pid for pid in workers if _wait_until_gone(pid)]
    assert not left


def _open_files() -> list[str]:
    return sorted(one.name for one in Path("/proc/self/fd").iterdir())


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return sorted(found)


def _wait_for(cli: object, *, least: int) -> list[int]:
    assert callable(cli)
    found: list[int] = []
    for _ in range(200):
        found = cli()
        if len(found) >= least:
            break
        time.sleep(0.1)
    return found


def _wait_until_gone(pid: int) -> bool:
    """Whether it is still there after a while."""
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return False
        time.sleep(0.1)
    return True
