"""One function over many transcripts, on all cores when that pays."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep
from typing import TypeVar

from threadline.model.found import Transcript

Answer = TypeVar("Answer")

# Below this many bytes, starting workers costs more time than they save.
_WORTH_WORKERS = 64 * 1024 * 1024
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 200
_LOOK_EVERY = 1.0
_OBJECTS = 100_000


def each(
    function: Callable[[Transcript], Answer], transcripts: Iterable[Transcript], *, jobs: int | None = None
) -> Iterator[tuple[Transcript, Answer]]:
    """The function's answer for every transcript, in no particular order.

    `function` must be one that another process can import. `jobs` is how many workers to use: as many as there
    are cores when it is not given, and none where there is little to read.
    """
    # The biggest first, so that no worker is left alone with it at the end.
    waiting = sorted(transcripts, key=lambda transcript: -transcript.size)
    workers = min(jobs or _cores(), len(waiting))
    if workers < 2 or (jobs is None and sum(transcript.size for transcript in waiting) < _WORTH_WORKERS):  # noqa: PLR2004 - one worker is none
        for transcript in waiting:
            yield transcript, function(transcript)
        return
    yield from _with_workers(function, waiting, workers)


def _with_workers(
    function: Callable[[Transcript], Answer], transcripts: list[Transcript], workers: int
) -> Iterator[tuple[Transcript, Answer]]:
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed  # noqa: PLC0415 - where it pays
    from multiprocessing import active_children  # noqa: PLC0415 - the same

    others = set(active_children())
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),)) as pool:
        try:
            with _interrupts_held_back():
                futures = {pool.submit(_all, function, batch): batch for batch in _batches(transcripts)}
            for future in as_completed(futures):
                batch = futures[future]
                try:
                    answers = future.result()
                except BrokenExecutor:
                    # Something ended a worker (memory, as a rule): what it and the others left is read here.
                    answers = _all(function, batch)
                yield from zip(batch, answers, strict=True)
        except BaseException:
            # Interrupted, or nobody wants the rest. Workers only read, so that they can be ended anywhere.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _all(function: Callable[[Transcript], Answer], batch: list[Transcript]) -> list[Answer]:
    return [function(transcript) for transcript in batch]


def _batches(transcripts: list[Transcript]) -> Iterator[list[Transcript]]:
    """Big transcripts one by one, small ones together: handing one over costs as much as reading a small one."""
    batch: list[Transcript] = []
    size = 0
    for transcript in transcripts:
        batch.append(transcript)
        size += transcript.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


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
