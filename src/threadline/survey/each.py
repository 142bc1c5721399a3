"""One function over many transcripts, on all cores when that pays."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, TypeVar

from threadline.model.found import Transcript

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Answer = TypeVar("Answer")

# Below this many bytes, starting workers costs more time than they save.
_WORTH_WORKERS = 64 * 1024 * 1024
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 200
# How many batches each worker has, so that it need not wait while this process reads one of its own.
_AHEAD = 2
# What a worker takes is the n-th part of its share of what is left.
_PARTS = 6
_LOOK_EVERY = 1.0
_OBJECTS = 100_000


def each(
    function: Callable[[Transcript], Answer], transcripts: Iterable[Transcript], *, jobs: int | None = None
) -> Iterator[tuple[Transcript, Answer]]:
    """The function's answer for every transcript, in no particular order.

    `function` must be one that another process can import. `jobs` is how many processes are to work, this one included:
    as many as there are cores when it is not given, and this one alone where there is little to read.
    """
    # The biggest first, so that no worker is left alone with it at the end.
    waiting = sorted(transcripts, key=lambda transcript: -transcript.size)
    workers = min(jobs or _cores(), len(waiting)) - 1
    if workers < 1 or (jobs is None and sum(transcript.size for transcript in waiting) < _WORTH_WORKERS):
        for transcript in waiting:
            yield transcript, function(transcript)
        return
    yield from _with_workers(function, waiting, workers)


def _with_workers(
    function: Callable[[Transcript], Answer], transcripts: list[Transcript], workers: int
) -> Iterator[tuple[Transcript, Answer]]:
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - where it pays
    from multiprocessing import active_children  # noqa: PLC0415 - the same

    others = set(active_children())
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),)) as pool:
        try:
            yield from _together(function, transcripts, pool, workers)
        except BaseException:
            # Interrupted, or nobody wants the rest. Workers only read, so that they can be ended anywhere.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _together(
    function: Callable[[Transcript], Answer], transcripts: list[Transcript], pool: Executor, workers: int
) -> Iterator[tuple[Transcript, Answer]]:
    """Workers take the biggest, and meanwhile this process the smallest: what it reads is handed to nobody."""
    from concurrent.futures import FIRST_COMPLETED, wait  # noqa: PLC0415 - where it pays

    left = _Left(transcripts)
    futures: dict[Future[list[Answer]], list[Transcript]] = {}
    while left or futures:
        with _interrupts_held_back():
            while left and len(futures) < _AHEAD * workers:
                batch = left.biggest(1 / (_PARTS * (workers + 1)))
                futures[pool.submit(_all, function, batch)] = batch
        if left:
            batch = left.smallest()
            yield from zip(batch, _all(function, batch), strict=True)
        done = [future for future in futures if future.done()]
        if not done and not left:
            done = list(wait(futures, return_when=FIRST_COMPLETED).done)
        for future in done:
            batch = futures.pop(future)
            yield from zip(batch, _answers(future, function, batch), strict=True)


class _Left:
    """The transcripts that nobody has taken yet, biggest first."""

    def __init__(self, transcripts: list[Transcript]) -> None:
        self._waiting = deque(transcripts)
        self._size = sum(transcript.size for transcript in transcripts)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def biggest(self, share: float) -> list[Transcript]:
        """A share of what is left. Handing over takes time, so much is handed over at first, and at the end little."""
        return self._take(self._waiting.popleft, max(_BATCH_BYTES, int(self._size * share)))

    def smallest(self) -> list[Transcript]:
        """Few of the smallest: soon done with, so that workers do not wait for more."""
        return self._take(self._waiting.pop, _BATCH_BYTES)

    def _take(self, take: Callable[[], Transcript], size: int) -> list[Transcript]:
        batch: list[Transcript] = []
        taken = 0
        while self._waiting and taken < size and len(batch) < _BATCH_FILES:
            batch.append(take())
            taken += batch[-1].size
        self._size -= taken
        return batch


def _answers(
    future: Future[list[Answer]], function: Callable[[Transcript], Answer], batch: list[Transcript]
) -> list[Answer]:
    from concurrent.futures import BrokenExecutor  # noqa: PLC0415 - where it pays

    try:
        return future.result()
    except BrokenExecutor:
        # Something ended a worker (memory, as a rule): what it and the others left is read here.
        return _all(function, batch)


def _all(function: Callable[[Transcript], Answer], batch: list[Transcript]) -> list[Answer]:
    return [function(transcript) for transcript in batch]


def _begin(parent: int) -> None:
    """In a worker: make ready, and end when the parent is gone, however it went; an orphan would wait forever."""
    # Reading makes objects by the million and no rings of them: looking for rings often is time lost.
    gc.set_threshold(_OBJECTS)

    def watch() -> None:
        while os.getppid() == parent:
            sleep(_LOOK_EVERY)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C reaches every process of the terminal; workers that are started here leave it to their parent."""
    if not hasattr(signal, "pthread_sigmask"):  # not on every system
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
