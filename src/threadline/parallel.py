"""Map a function over transcripts or tasks with forked worker processes.

The parent and its forks take task numbers from one pipe until it is empty. The system gives each number to one reader
only, so nobody waits for anybody. A worker sends its answers through a pipe of its own. Tasks of a worker that dies,
and tasks whose numbers did not fit into the pipe, are done by the parent at the end. If the system gives no more
pipes or forks, fewer processes work.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from struct import Struct
from threading import Condition, Thread, active_count
from time import sleep
from typing import Any, NoReturn, TypeVar

from threadline.model.homes import Transcript

Result = TypeVar("Result")

# Below this many bytes, starting workers costs more time than they save.
_MIN_PARALLEL_BYTES = 32 * 1024 * 1024
# Small transcripts go together, for each task has its price; and no more tasks are made than a crew can take.
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 200


def map_transcripts(
    function: Callable[[Transcript], Result], transcripts: Iterable[Transcript], *, jobs: int | None = None
) -> Iterator[tuple[Transcript, Result]]:
    """The function's answer for every transcript, in no particular order.

    `jobs` is how many processes are to work, this one included: as many as there are cores when it is not given, and
    this one alone where there is little to read, or where processes cannot be forked.
    """
    # The biggest first, so that nobody is left alone with it at the end.
    waiting = sorted(transcripts, key=lambda transcript: -transcript.size)
    batches = list(_batches(waiting))
    workers = min(jobs or cpu_count(), len(batches)) - 1  # one without a batch would only be made and ended
    little = jobs is None and sum(transcript.size for transcript in waiting) < _MIN_PARALLEL_BYTES
    if workers < 1 or little or not can_fork():
        for transcript in waiting:
            yield transcript, function(transcript)
        return
    for batch, answers in fork_map(partial(_map_batch, function), batches, workers):
        yield from zip(batch, answers, strict=True)


def _map_batch(function: Callable[[Transcript], Result], batch: list[Transcript]) -> list[Result]:
    return [function(transcript) for transcript in batch]


def _batches(transcripts: list[Transcript]) -> Iterator[list[Transcript]]:
    """Big transcripts one by one, small ones together."""
    most_bytes = max(_BATCH_BYTES, 2 * sum(one.size for one in transcripts) // MAX_TASKS)
    most_files = max(_BATCH_FILES, 2 * len(transcripts) // MAX_TASKS)
    batch: list[Transcript] = []
    size = 0
    for transcript in transcripts:
        batch.append(transcript)
        size += transcript.size
        if size > most_bytes or len(batch) > most_files:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def cpu_count() -> int:
    """How many processes can work at once here."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


Task = TypeVar("Task")
Answer = TypeVar("Answer")

_LOCAL_TASK = object()
_TASK_NUMBER = Struct("<I")
_ANSWER_HEADER = Struct("<IQ")
MAX_TASKS = 1000
"""As many numbers as the smallest of pipes holds: a page, where somebody has many of them."""
_PARENT_CHECK_SECONDS = 1.0
_GC_THRESHOLD = 100_000
_PIPE_BYTES = 1 << 20
# How many bytes of answers a worker holds for a parent that has no time to read them; then it waits.
_MAX_UNSENT_BYTES = 24 << 20


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Look for reference cycles less often: reading makes objects by the million, and no cycles of them."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def can_fork() -> bool:
    """Whether forks are safe here: where the system has them, and no other thread may hold a lock."""
    return hasattr(os, "fork") and active_count() == 1


def fork_map(
    function: Callable[[Task], Answer], tasks: Sequence[Task], workers: int
) -> Generator[tuple[Task, Answer], None, None]:
    """The function's answer for every task, in no particular order, by this process and so many forks of it.

    What forks have answered comes first: this process takes a task only where none of them has anything for it.
    """
    try:
        numbers = _fill_task_pipe(len(tasks))
    except OSError:
        yield from ((task, function(task)) for task in tasks)
    else:
        yield from _run_tasks(function, tasks, workers, numbers)


def _run_tasks(
    function: Callable[[Task], Answer], tasks: Sequence[Task], workers: int, numbers: int
) -> Iterator[tuple[Task, Answer]]:
    hands: list[_Worker] = []
    answered: set[int] = set()
    try:
        _start_workers(hands, workers, function, tasks, numbers)
        for number, answer in _receive_answers(hands, numbers):
            answered.add(number)
            yield tasks[number], function(tasks[number]) if answer is _LOCAL_TASK else answer
        for number, task in enumerate(tasks):
            if number not in answered:
                yield task, function(task)
    finally:
        # Interrupted, perhaps, or nobody wants the rest. Workers only read, so that they can be ended anywhere.
        os.close(numbers)
        for hand in hands:
            hand.end()


def _receive_answers(hands: list[_Worker], numbers: int) -> Iterator[tuple[int, Any]]:
    """What workers have answered, as it comes in; where nothing has, a task for this process while any are left."""
    is_left = True
    while is_left or any(hand.is_open for hand in hands):
        ready = _readable_workers(hands, 0 if is_left else None)
        for hand in ready:
            yield from hand.answers()
        if not ready and is_left:
            mine = _next_task(numbers)
            is_left = mine is not None
            if mine is not None:
                yield mine, _LOCAL_TASK


def _fill_task_pipe(count: int) -> int:
    """The end to read of a pipe that holds the numbers of all tasks, or as many as it has room for."""
    read, write = os.pipe()
    try:
        os.set_blocking(write, False)
        os.write(write, b"".join(map(_TASK_NUMBER.pack, range(count))))
    finally:
        os.close(write)
    return read


def _next_task(numbers: int) -> int | None:
    told = os.read(numbers, _TASK_NUMBER.size)
    return _TASK_NUMBER.unpack(told)[0] if len(told) == _TASK_NUMBER.size else None


def _readable_workers(hands: list[_Worker], wait: float | None) -> list[_Worker]:
    """The workers that have answered something."""
    by_pipe = {hand.pipe: hand for hand in hands if hand.is_open}
    # Not `select`, which takes no pipe beyond the first thousand open files of a process.
    asking = select.poll()
    for pipe in by_pipe:
        asking.register(pipe, select.POLLIN)
    return [by_pipe[pipe] for pipe, _ in asking.poll(wait)] if by_pipe else []


def _start_workers(
    hands: list[_Worker],
    workers: int,
    function: Callable[[Task], Answer],
    tasks: Sequence[Task],
    numbers: int,
) -> None:
    """Add so many workers, or as many as the system gives."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for _ in range(workers):
        try:
            # Ctrl-C reaches every process of the terminal; a fork leaves it to its parent, from its first moment on.
            # Nor may it come between a fork and the list by which that is ended.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            hands.append(_Worker(function, tasks, numbers))
        except OSError:
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """One fork, as this process sees it."""

    def __init__(self, function: Callable[[Task], Answer], tasks: Sequence[Task], numbers: int) -> None:
        self.pipe, write = os.pipe()
        _enlarge_pipe(self.pipe)
        self.is_open = True
        self._held = bytearray()
        parent = os.getpid()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self.pipe)
            os.close(write)
            raise
        if self._pid == 0:
            _worker_main(function, tasks, numbers, write, parent)
        os.close(write)

    def answers(self) -> Iterator[tuple[int, Any]]:
        """What has come in whole; at the end of the pipe, the worker is done."""
        data = os.read(self.pipe, _PIPE_BYTES)
        if not data:
            self.is_open = False
            return
        self._held += data
        at = 0
        while len(self._held) - at >= _ANSWER_HEADER.size:
            number, size = _ANSWER_HEADER.unpack_from(self._held, at)
            if len(self._held) - at - _ANSWER_HEADER.size < size:
                break
            at += _ANSWER_HEADER.size
            yield number, pickle.loads(memoryview(self._held)[at : at + size])  # noqa: S301 - from our own fork
            at += size
        del self._held[:at]

    def end(self) -> None:
        """End the worker, whatever it is doing."""
        os.close(self.pipe)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _worker_main(
    function: Callable[[Task], Answer], tasks: Sequence[Task], numbers: int, write: int, parent: int
) -> NoReturn:
    """In a fork: take tasks until there are none. However it ends, nothing of the parent's is tidied up or printed."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.set_threshold(_GC_THRESHOLD)  # as in `relaxed_gc`
        Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
        # The parent reads when it has time. Meanwhile the next task is done, and not waited with.
        done = _Outbox()
        sender = Thread(target=_send_answers, args=(write, done), daemon=True)
        sender.start()
        while (number := _next_task(numbers)) is not None:
            answer = pickle.dumps(function(tasks[number]), pickle.HIGHEST_PROTOCOL)
            done.put(_ANSWER_HEADER.pack(number, len(answer)) + answer)
        done.put(None)
        sender.join()
    except BaseException:  # noqa: BLE001 - the parent does what a fork leaves undone, and tells what goes wrong there
        os._exit(1)
    os._exit(0)


def _enlarge_pipe(pipe: int) -> None:
    """Let a pipe hold more, where the system can: each look of the parent then brings all that has been answered."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class _Outbox:
    """Answers that a worker has made and its parent has not read yet. Beyond some bytes of them, the worker waits."""

    def __init__(self) -> None:
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._size = 0
        self._room = Condition()

    def put(self, answer: bytes | None) -> None:
        """Leave an answer to be sent, when there is room for it; None is the last."""
        with self._room:
            self._room.wait_for(lambda: self._size < _MAX_UNSENT_BYTES)
            self._size += len(answer or b"")
        self._answers.put(answer)

    def get(self) -> bytes | None:
        """The next answer to be sent."""
        return self._answers.get()

    def sent(self, answer: bytes) -> None:
        """Make room for others."""
        with self._room:
            self._size -= len(answer)
            self._room.notify()


def _send_answers(pipe: int, done: _Outbox) -> None:
    try:
        while (data := done.get()) is not None:
            view = memoryview(data)
            while view:
                view = view[os.write(pipe, view) :]
            done.sent(data)
    except OSError:  # nobody reads any more
        os._exit(1)


def _exit_with_parent(parent: int) -> None:
    """End when the parent is gone, however it went; an orphan would work for nobody."""
    while os.getppid() == parent:
        sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)
