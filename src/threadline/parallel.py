"""Map a function over transcripts or tasks with worker processes.

`map_transcripts` and `fork_map` fork. The parent and its forks take task numbers from one pipe until it is empty. The
system gives each number to one reader only, so nobody waits for anybody. A worker sends its answers through a pipe of
its own. Tasks of a worker that dies, and tasks whose numbers did not fit into the pipe, are done by the parent at the
end. If the system gives no more pipes or forks, fewer processes work.

`spawn_map` starts new processes, for a parent that has threads and must not fork. Each worker has a pipe of its own, by
which it gets one task after the other. No lock is shared, so a worker can be killed at any point.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from struct import Struct
from threading import Condition, Thread, active_count
from time import sleep
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from threadline.errors import Unreadable

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext

Result = TypeVar("Result")


class File(Protocol):
    """What a function is mapped over: a transcript, or something else with a size in bytes."""

    @property
    def size(self) -> int:
        """Its size in bytes."""


Source = TypeVar("Source", bound=File)

# Below this many bytes, starting workers costs more time than they save.
_MIN_PARALLEL_BYTES = 32 * 1024 * 1024
# Small transcripts are batched, because each task has a cost. There are never more than `MAX_TASKS` tasks.
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 200


def map_transcripts(
    function: Callable[[Source], Result],
    transcripts: Iterable[Source],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[Source, Result]]:
    """The function's result for every transcript, in no particular order.

    `jobs` is the number of processes, including this one. By default it is the number of processors, or 1 if there is
    little to read. Where processes cannot be forked, this one does everything. `progress` is called with the size of
    each transcript whose result is ready.
    """
    for transcript, result in _map_transcripts(function, transcripts, jobs):
        if progress is not None:
            progress(transcript.size)
        yield transcript, result


def _map_transcripts(
    function: Callable[[Source], Result], transcripts: Iterable[Source], jobs: int | None
) -> Iterator[tuple[Source, Result]]:
    # The largest first, so that no process is left alone with it at the end.
    waiting = sorted(transcripts, key=lambda transcript: -transcript.size)
    batches = list(_batches(waiting))
    workers = min(jobs or cpu_count(), len(batches)) - 1  # no worker without a batch
    is_small = jobs is None and sum(transcript.size for transcript in waiting) < _MIN_PARALLEL_BYTES
    if workers < 1 or is_small or not can_fork():
        for transcript in waiting:
            yield transcript, function(transcript)
        return
    for batch, results in fork_map(partial(_map_batch, function), batches, workers):
        yield from zip(batch, results, strict=True)


def _map_batch(function: Callable[[Source], Result], batch: list[Source]) -> list[Result]:
    return [function(transcript) for transcript in batch]


def _batches(transcripts: list[Source]) -> Iterator[list[Source]]:
    """Large transcripts one by one, small ones together."""
    max_bytes = max(_BATCH_BYTES, 2 * sum(transcript.size for transcript in transcripts) // MAX_TASKS)
    max_files = max(_BATCH_FILES, 2 * len(transcripts) // MAX_TASKS)
    batch: list[Source] = []
    size = 0
    for transcript in transcripts:
        batch.append(transcript)
        size += transcript.size
        if size > max_bytes or len(batch) > max_files:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def cpu_count() -> int:
    """The number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


Task = TypeVar("Task")
Answer = TypeVar("Answer")

_LOCAL_TASK = object()
_TASK_NUMBER = Struct("<I")
_ANSWER_HEADER = Struct("<IQ")
MAX_TASKS = 1000
"""The most task numbers that the smallest pipe holds: one page, for a user with many open pipes."""
_PARENT_CHECK_SECONDS = 1.0
_GC_THRESHOLD = 100_000
_PIPE_BYTES = 1 << 20
# The most bytes of answers a worker keeps for a parent that is too busy to read them; then it waits.
_MAX_UNSENT_BYTES = 24 << 20


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Run the garbage collector less often: reading creates millions of objects, but no reference cycles."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def can_fork() -> bool:
    """Whether forking is possible and safe: no other thread may hold a lock."""
    return hasattr(os, "fork") and active_count() == 1


def fork_map(
    function: Callable[[Task], Answer], tasks: Sequence[Task], workers: int
) -> Generator[tuple[Task, Answer], None, None]:
    """The function's answer for every task, in no particular order, from this process and `workers` forks of it.

    Answers of workers come first: this process takes a task only if no answer is ready.
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
    started: list[_Worker] = []
    answered: set[int] = set()
    try:
        _start_workers(started, workers, function, tasks, numbers)
        for number, answer in _receive_answers(started, numbers):
            answered.add(number)
            yield tasks[number], function(tasks[number]) if answer is _LOCAL_TASK else answer
        for number, task in enumerate(tasks):
            if number not in answered:
                yield task, function(task)
    finally:
        # Perhaps interrupted, or the caller stopped early. Workers only read, so they can be killed at any point.
        os.close(numbers)
        for worker in started:
            worker.end()


def _receive_answers(workers: list[_Worker], numbers: int) -> Iterator[tuple[int, Any]]:
    """The answers of workers as they arrive, or a task for this process if none has and tasks are left."""
    has_tasks = True
    while has_tasks or any(worker.is_open for worker in workers):
        ready = _readable_workers(workers, 0 if has_tasks else None)
        for worker in ready:
            yield from worker.answers()
        if not ready and has_tasks:
            number = _next_task(numbers)
            has_tasks = number is not None
            if number is not None:
                yield number, _LOCAL_TASK


def _fill_task_pipe(count: int) -> int:
    """The read end of a pipe that contains the numbers of all tasks, or as many as fit."""
    read, write = os.pipe()
    try:
        os.set_blocking(write, False)
        os.write(write, b"".join(map(_TASK_NUMBER.pack, range(count))))
    finally:
        os.close(write)
    return read


def _next_task(numbers: int) -> int | None:
    data = os.read(numbers, _TASK_NUMBER.size)
    return _TASK_NUMBER.unpack(data)[0] if len(data) == _TASK_NUMBER.size else None


def _readable_workers(workers: list[_Worker], timeout: float | None) -> list[_Worker]:
    """The workers that have sent something."""
    by_pipe = {worker.pipe: worker for worker in workers if worker.is_open}
    # Not `select`, which fails for file descriptors above 1023.
    poll = select.poll()
    for pipe in by_pipe:
        poll.register(pipe, select.POLLIN)
    return [by_pipe[pipe] for pipe, _ in poll.poll(timeout)] if by_pipe else []


def _start_workers(
    workers: list[_Worker],
    count: int,
    function: Callable[[Task], Answer],
    tasks: Sequence[Task],
    numbers: int,
) -> None:
    """Start `count` workers, or as many as the system allows."""
    for _ in range(count):
        try:
            # Ctrl-C reaches every process of the terminal. A worker ignores it from the start: the parent ends it. And
            # it must not arrive between the fork and the list by which the parent ends its workers.
            with _delayed_interrupts():
                workers.append(_Worker(function, tasks, numbers))
        except OSError:
            return


class _Worker:
    """A forked worker, as the parent sees it."""

    def __init__(self, function: Callable[[Task], Answer], tasks: Sequence[Task], numbers: int) -> None:
        self.pipe, write = os.pipe()
        _enlarge_pipe(self.pipe)
        self.is_open = True
        self._buffer = bytearray()
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
        """The complete answers that have arrived. The end of the pipe means that the worker has finished."""
        data = os.read(self.pipe, _PIPE_BYTES)
        if not data:
            self.is_open = False
            return
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= _ANSWER_HEADER.size:
            number, size = _ANSWER_HEADER.unpack_from(self._buffer, at)
            if len(self._buffer) - at - _ANSWER_HEADER.size < size:
                break
            at += _ANSWER_HEADER.size
            yield number, pickle.loads(memoryview(self._buffer)[at : at + size])  # noqa: S301 - from our own fork
            at += size
        del self._buffer[:at]

    def end(self) -> None:
        """Kill the worker, whatever it is doing."""
        os.close(self.pipe)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _worker_main(
    function: Callable[[Task], Answer], tasks: Sequence[Task], numbers: int, write: int, parent: int
) -> NoReturn:
    """Runs in a fork: do tasks until none are left. `os._exit` skips the parent's exit handlers and output."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.set_threshold(_GC_THRESHOLD)  # as in `relaxed_gc`
        Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
        # A thread sends the answers, so that the worker does not wait until the parent has time to read them.
        outbox = _Outbox()
        sender = Thread(target=_send_answers, args=(write, outbox), daemon=True)
        sender.start()
        while (number := _next_task(numbers)) is not None:
            answer = pickle.dumps(function(tasks[number]), pickle.HIGHEST_PROTOCOL)
            outbox.put(_ANSWER_HEADER.pack(number, len(answer)) + answer)
        outbox.put(None)
        sender.join()
    except BaseException:  # noqa: BLE001 - the parent does the tasks that are left, and raises what went wrong
        os._exit(1)
    os._exit(0)


def _enlarge_pipe(pipe: int) -> None:
    """Enlarge a pipe's buffer if the system can, so that the parent reads more at a time."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class _Outbox:
    """Answers that the parent has not read yet. If they grow too large, the worker waits."""

    def __init__(self) -> None:
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._size = 0
        self._room = Condition()

    def put(self, answer: bytes | None) -> None:
        """Add an answer, when there is room for it; None marks the end."""
        with self._room:
            self._room.wait_for(lambda: self._size < _MAX_UNSENT_BYTES)
            self._size += len(answer or b"")
        self._answers.put(answer)

    def get(self) -> bytes | None:
        """The next answer to send."""
        return self._answers.get()

    def sent(self, answer: bytes) -> None:
        """Note that an answer has been sent, which makes room for others."""
        with self._room:
            self._size -= len(answer)
            self._room.notify()


def _send_answers(pipe: int, outbox: _Outbox) -> None:
    try:
        while (data := outbox.get()) is not None:
            view = memoryview(data)
            while view:
                view = view[os.write(pipe, view) :]
            outbox.sent(data)
    except OSError:  # nobody reads the pipe any more
        os._exit(1)


def _exit_with_parent(parent: int) -> None:
    """Exit when the parent is gone: nobody would read the answers of an orphan."""
    while os.getppid() == parent:
        sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


_MAX_DEATHS = 5
"""A task whose worker dies this often is not tried again."""


def spawn_map(
    function: Callable[[Task], Answer], tasks: Sequence[Task], workers: int
) -> Generator[tuple[Task, Answer], None, None]:
    """The function's answer for every task, in no particular order, from `workers` new processes.

    The function, the tasks and the answers must be picklable. If a worker dies, another one gets its task. What the
    function raises is raised here; tasks that are running then are finished first.

    Raises:
        Unreadable: a task's worker died again and again.
    """
    from multiprocessing import get_context  # noqa: PLC0415 - slow to import, and most commands never need it
    from multiprocessing.connection import wait  # noqa: PLC0415 - the same

    context = get_context("spawn")
    waiting = deque(range(len(tasks)))
    deaths = Counter[int]()
    started: list[_SpawnedWorker] = []
    busy: dict[Any, tuple[_SpawnedWorker, int]] = {}
    try:
        idle = [_SpawnedWorker(context, function, started) for _ in range(min(workers, len(tasks)))]
        while waiting or busy:
            while waiting and idle:
                worker, number = idle.pop(), waiting.popleft()
                worker.send(tasks[number])
                busy[worker.connection] = worker, number
            for connection in wait(list(busy)):
                worker, number = busy.pop(connection)
                try:
                    answer = worker.receive()
                except _WorkerDied:
                    deaths[number] += 1
                    if deaths[number] == _MAX_DEATHS:
                        raise Unreadable(
                            "Worker processes were killed again and again, perhaps for want of memory. "
                            "Use fewer: --jobs 1."
                        ) from None
                    waiting.append(number)
                    worker = _SpawnedWorker(context, function, started)
                else:
                    yield tasks[number], answer
                idle.append(worker)
    finally:
        for worker in started:
            worker.connection.close()
        for worker in started:
            worker.join()


class _WorkerDied(Exception):
    """A worker ended without an answer."""


class _SpawnedWorker:
    """A new process that does one task after the other, as the parent sees it."""

    def __init__(self, context: SpawnContext, function: Callable[[Any], Any], started: list[_SpawnedWorker]) -> None:
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_spawned_main, args=(function, theirs), daemon=True)
        started.append(self)  # before Ctrl-C can arrive
        if sys.platform != "win32":
            from multiprocessing.resource_tracker import ensure_running  # noqa: PLC0415 - not on every system

            ensure_running()  # the first start would do it, and stop the delay of interrupts
        with _delayed_interrupts():
            self._process.start()
        theirs.close()

    def send(self, task: object) -> None:
        """Give the worker a task. If it has died, `receive` will say so."""
        with suppress(OSError):
            self.connection.send(task)

    def receive(self) -> Any:
        """The answer to the task.

        Raises:
            _WorkerDied: there will be none.
        """
        try:
            answer, error = self.connection.recv()
        except (EOFError, OSError):
            raise _WorkerDied from None
        if error is not None:
            raise error
        return answer

    def join(self) -> None:
        """Wait until the running task and the process have ended."""
        if self._process.pid is not None:
            self._process.join()


def _spawned_main(function: Callable[[Any], Any], connection: Connection[Any, Any]) -> None:
    """Runs in a new process: do tasks until the parent closes the pipe or is gone."""
    if sys.platform != "win32":
        # Ctrl-C ends this process at once. The parent reports what happened.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with suppress(EOFError, OSError):
        while True:
            task = connection.recv()
            try:
                reply = pickle.dumps((function(task), None))
            except Exception as error:  # noqa: BLE001 - raised again in the parent
                reply = pickle.dumps((None, _picklable(error)))
            connection.send_bytes(reply)


def _picklable(error: Exception) -> Exception:
    """The exception, or one with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever its class does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _delayed_interrupts() -> Iterator[None]:
    """Delay Ctrl-C. Processes that are started here delay it too, until they can end without a traceback."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
