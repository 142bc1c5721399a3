"""`fork_map`, `spawn_map` and `map_transcripts`: every task is done, and no worker is left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from msgspec.structs import replace
from tools.demo import write

from threadline import parallel as crews
from threadline.errors import Unreadable
from threadline.find import homes, look
from threadline.model.homes import Transcript
from threadline.parallel import MAX_TASKS, fork_map, map_transcripts, spawn_map


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with about a hundred transcripts."""
    path = tmp_path_factory.mktemp("workers") / "home"
    write(path, megabytes=8)
    return path


def size_of(transcript: Transcript) -> int:
    """A task that another process can import."""
    return transcript.path.stat().st_size


def die_once(transcript: Transcript) -> int:
    """The same task, but the first worker is killed, as the system does when memory runs out."""
    marker = Path(os.environ["THREADLINE_TEST_MARK"])
    if not marker.exists() and os.getpid() != int(os.environ["THREADLINE_TEST_PARENT"]):
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return size_of(transcript)


def test_maps_every_transcript(home: Path) -> None:
    """Large transcripts are single tasks and small ones are batched, and none is skipped."""
    transcripts = look(homes(home)[0]).transcripts
    sizes = dict(map_transcripts(size_of, transcripts, jobs=2))
    assert sizes == {transcript: transcript.size for transcript in transcripts}


def test_killed_worker_loses_no_results(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of a killed worker are done by others."""
    monkeypatch.setenv("THREADLINE_TEST_MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("THREADLINE_TEST_PARENT", str(os.getpid()))
    transcripts = look(homes(home)[0]).transcripts
    assert dict(map_transcripts(die_once, transcripts, jobs=2)) == {
        transcript: transcript.size for transcript in transcripts
    }


def square(number: int) -> int:
    """A task that takes no time."""
    return number * number


def raise_eagain(*_: object) -> int:
    """The error when a system limit is reached."""
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


SQUARES = {number: number * number for number in range(100)}
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for the workers in /proc")


@needs_proc
@pytest.mark.parametrize("allowed", [0, 2])
@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_uses_fewer_workers_at_system_limits(call: str, allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of processes and open files do not change the results, and nothing is left open."""
    real, remaining = getattr(os, call), [allowed]

    def limited() -> object:
        remaining[0] -= 1
        return real() if remaining[0] >= 0 else raise_eagain()

    before, others = open_files(), child_pids(os.getpid())
    monkeypatch.setattr(os, call, limited)
    assert dict(fork_map(square, range(100), 4)) == SQUARES
    assert child_pids(os.getpid()) == others
    assert open_files() == before


@pytest.mark.parametrize("count", [MAX_TASKS, 40_000])
def test_completes_more_tasks_than_a_pipe_holds(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a pipe holds only one page, as for a user with many pipes."""
    fcntl = pytest.importorskip("fcntl")
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        pytest.skip("pipes cannot be made small here")
    real = os.pipe

    def small_pipe() -> tuple[int, int]:
        read, write = real()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        return read, write

    monkeypatch.setattr(os, "pipe", small_pipe)
    assert dict(fork_map(square, range(count), 1)) == {number: number * number for number in range(count)}


def test_number_of_batches_fits_the_smallest_pipe(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task fits into the pipe, however large the home is."""
    batches: list[int] = []

    def counting_fork_map(function: Any, tasks: Any, workers: int) -> Any:
        batches.append(len(tasks))
        return fork_map(function, tasks, workers)

    monkeypatch.setattr("threadline.parallel.fork_map", counting_fork_map)
    monkeypatch.setattr("threadline.parallel.active_count", lambda: 1)  # whatever threads other tests have left
    transcript = look(homes(home)[0]).transcripts[0]
    transcripts = [replace(transcript, size=size) for size in (10**10, *[5_000_000] * 20_000, *[0] * 20_000)]
    assert sum(1 for _ in map_transcripts(str, transcripts, jobs=2)) == len(transcripts)
    assert batches[0] <= MAX_TASKS


def test_starts_no_more_workers_than_batches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million jobs do not start a million processes."""
    calls: list[tuple[int, int]] = []

    def counting_fork_map(function: Any, tasks: Any, workers: int) -> Any:
        calls.append((len(tasks), workers))
        return ((task, function(task)) for task in tasks)

    monkeypatch.setattr("threadline.parallel.fork_map", counting_fork_map)
    monkeypatch.setattr("threadline.parallel.active_count", lambda: 1)  # whatever threads other tests have left
    transcripts = look(homes(home)[0]).transcripts
    assert dict(map_transcripts(size_of, transcripts, jobs=10**20)) == {
        transcript: transcript.size for transcript in transcripts
    }
    assert calls[0][1] == calls[0][0] - 1 < len(transcripts) - 1


@needs_proc
def test_works_with_thousands_of_open_files() -> None:
    """The pipes then have descriptors that `select` does not accept."""
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 1200:
        pytest.skip("so many files may not be open here")
    descriptors = [os.dup(0) for _ in range(1100)]
    try:
        assert dict(fork_map(square, range(100), 2)) == SQUARES
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def test_works_with_sigchld_ignored() -> None:
    """With SIGCHLD ignored, there is no child to wait for."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert dict(fork_map(square, range(100), 2)) == SQUARES
    finally:
        signal.signal(signal.SIGCHLD, before)


@needs_proc
def test_interrupt_while_forking_leaves_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt waits until the new worker is known, and then all of them are ended."""
    real, forks = os.fork, [0]

    def fork() -> int:
        forks[0] += 1
        if forks[0] == 2:
            signal.raise_signal(signal.SIGINT)
        return real()

    others = child_pids(os.getpid())
    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(KeyboardInterrupt):
        list(fork_map(square, range(100), 4))
    assert forks == [2]
    assert child_pids(os.getpid()) == others
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_worker_without_a_reader_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """If nobody wants the results any more, the worker ends without a message."""
    results = fork_map(bytes, [100_000] * 200, 2)
    next(results)
    results.close()
    read, write = os.pipe()
    os.close(read)
    pid = os.fork()
    if pid == 0:
        outbox = crews._Outbox()
        outbox.put(b"answer")
        crews._send_answers(write, outbox)
        os._exit(0)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert capfd.readouterr() == ("", "")


_SLOW_SCRIPT = """
import sys, time
from threadline.find import homes, look
from threadline import parallel as module
from threadline.parallel import map_transcripts as each

module._BATCH_BYTES = 0  # gives every worker a task

def slow(transcript):
    time.sleep(60)

print("ready", flush=True)
list(each(slow, look(homes(sys.argv[1])[0]).transcripts, jobs=3))
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the workers in /proc")
def test_workers_end_with_their_parent(home: Path, tmp_path: Path) -> None:
    """However the parent ends, its workers do not wait for work forever."""
    script = tmp_path / "ask.py"
    script.write_text(_SLOW_SCRIPT)
    command = [sys.executable, str(script), str(home)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    workers = wait_for(lambda: child_pids(parent.pid), least=2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    survivors = [pid for pid in workers if is_alive_after_waiting(pid)]
    assert not survivors


def die_at_first(number: int) -> int:
    """A task whose first worker is killed."""
    marker = Path(os.environ["THREADLINE_TEST_MARK"]) / str(number)
    if number % 3 == 0 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def die(_number: int) -> int:
    """A task whose worker is always killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


class BadError(Exception):
    """An error that can be pickled, but not unpickled."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"{name} {number}")


def fail(number: int) -> int:
    """A task that raises for every second number."""
    if number == 2:
        raise Unreadable("Two is not readable.")
    if number == 4:
        raise BadError("four", number)
    return square(number)


def test_new_processes_complete_every_task() -> None:
    """Each task has one answer, however many workers there are."""
    for workers in (1, 200):
        numbers = range(5)
        assert sorted(spawn_map(square, numbers, workers)) == [(number, square(number)) for number in numbers]
    assert not active_children()


def test_killed_new_process_loses_no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task of a killed worker is done by its successor."""
    monkeypatch.setenv("THREADLINE_TEST_MARK", str(tmp_path))
    assert sorted(spawn_map(die_at_first, range(6), 2)) == [(number, square(number)) for number in range(6)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "3"]
    assert not active_children()


@pytest.mark.slow
def test_new_processes_may_be_killed_at_any_time() -> None:
    """While they start, between tasks and during tasks."""
    for delay in (0.0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        others = {child.pid for child in active_children()}
        done = Event()

        def kill_new_children(delay: float = delay, others: set[int | None] = others, done: Event = done) -> None:
            for _ in range(3):
                done.wait(delay)
                for child in active_children():
                    if child.pid not in others:
                        child.kill()

        killer = Thread(target=kill_new_children)
        killer.start()
        try:
            assert sorted(spawn_map(square, range(30), 2)) == [(number, square(number)) for number in range(30)]
        finally:
            done.set()
            killer.join()


@pytest.mark.slow
def test_task_that_kills_every_worker_is_given_up() -> None:
    """It does not run for ever, and the message says what may help."""
    with pytest.raises(Unreadable, match="--jobs 1"):
        list(spawn_map(die, range(2), 2))
    assert not active_children()


@pytest.mark.parametrize(("number", "error"), [(2, Unreadable), (4, RuntimeError)])
def test_errors_of_new_processes_are_raised(number: int, error: type[Exception]) -> None:
    """Also those that cannot be sent: their text is. No worker is left behind."""
    with pytest.raises(error, match=r"Two is not readable|BadError: four 4"):
        list(spawn_map(fail, [number], 1))
    assert not active_children()


def test_new_processes_end_with_the_caller() -> None:
    """A caller that stops early leaves no process behind."""
    answers = spawn_map(square, range(1000), 2)
    next(answers)
    answers.close()
    assert not active_children()


def open_files() -> list[str]:
    """The open file descriptors of this process."""
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def child_pids(pid: int) -> list[int]:
    """The process ids of a process's children."""
    pids = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            pids.append(int(status.parent.name))
    return sorted(pids)


def wait_for(list_pids: object, *, least: int) -> list[int]:
    """Call the function until it returns enough pids."""
    assert callable(list_pids)
    pids: list[int] = []
    for _ in range(200):
        pids = list_pids()
        if len(pids) >= least:
            break
        time.sleep(0.1)
    return pids


def is_alive_after_waiting(pid: int) -> bool:
    """Whether the process is still alive after ten seconds."""
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return False
        time.sleep(0.1)
    return True
