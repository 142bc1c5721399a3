"""One function over many transcripts, on all cores when that pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from threadline.model.found import Transcript
from threadline.survey.crew import MOST_TASKS, can_fork, crew

Answer = TypeVar("Answer")

# Below this many bytes, starting workers costs more time than they save.
_WORTH_WORKERS = 32 * 1024 * 1024
# Small transcripts go together, for each task has its price; and no more tasks are made than a crew can take.
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 200


def each(
    function: Callable[[Transcript], Answer], transcripts: Iterable[Transcript], *, jobs: int | None = None
) -> Iterator[tuple[Transcript, Answer]]:
    """The function's answer for every transcript, in no particular order.

    `jobs` is how many processes are to work, this one included: as many as there are cores when it is not given, and
    this one alone where there is little to read, or where processes cannot be forked.
    """
    # The biggest first, so that nobody is left alone with it at the end.
    waiting = sorted(transcripts, key=lambda transcript: -transcript.size)
    batches = list(_batches(waiting))
    workers = min(jobs or cores(), len(batches)) - 1  # one without a batch would only be made and ended
    little = jobs is None and sum(transcript.size for transcript in waiting) < _WORTH_WORKERS
    if workers < 1 or little or not can_fork():
        for transcript in waiting:
            yield transcript, function(transcript)
        return
    for batch, answers in crew(partial(_all, function), batches, workers):
        yield from zip(batch, answers, strict=True)


def _all(function: Callable[[Transcript], Answer], batch: list[Transcript]) -> list[Answer]:
    return [function(transcript) for transcript in batch]


def _batches(transcripts: list[Transcript]) -> Iterator[list[Transcript]]:
    """Big transcripts one by one, small ones together."""
    most_bytes = max(_BATCH_BYTES, 2 * sum(one.size for one in transcripts) // MOST_TASKS)
    most_files = max(_BATCH_FILES, 2 * len(transcripts) // MOST_TASKS)
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


def cores() -> int:
    """How many processes can work at once here."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
