"""The tasks of a build: which sessions are read together, what a task does, and the engines that run tasks.

Engines differ only in where tasks run: `local` uses processes, `sc://HOST:PORT` a Spark Connect server whose workers
have threadline installed, and `sail` such a server inside this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from threadline import __version__
from threadline.errors import BadQuery, Unreadable
from threadline.find import TRANSCRIPT_SUFFIX
from threadline.lake.bronze import SegmentReader, Source, forgotten_sessions, make_id
from threadline.lake.rows import open_row_builder
from threadline.lake.tables import NewFile, write_rows
from threadline.model.tables import import_library
from threadline.model.text import join_some
from threadline.parallel import relaxed_gc, spawn_map
from threadline.storage import Bucket

LOCAL, SAIL, SPARK = "local", "sail", "sc://"
"""The engines; the third is what the address of a Spark Connect server starts with."""
TASK_BYTES = 128 * 1024 * 1024
"""A task ends with the session that exceeds this."""
MIN_PARALLEL_BYTES = 16 * 1024 * 1024
"""Less than this is read in this process."""
_MAX_COLLECTED_BYTES = 16 * 1024 * 1024
"""Rows of so many bytes become Arrow tables at once."""
_DAY_NS = 24 * 3600 * 10**9


class Task(Struct, frozen=True):
    """Sessions that are built together. `commit` is the number of the commit that they will be added to."""

    sources: tuple[Source, ...]
    commit: int

    @property
    def id(self) -> str:
        """Identifies what it reads and how."""
        return make_id(__version__, str(self.commit), *(f"{source.digest} {source.batch}" for source in self.sources))

    @property
    def size(self) -> int:
        """How many bytes it reads."""
        return sum(source.size for source in self.sources)


RunTasks = Callable[[Bucket, Sequence[Task], Callable[[int], None]], Iterable[NewFile]]


def group_tasks(sources: Iterable[Source], commit: int) -> Iterator[Task]:
    """Tasks of sessions that ended on the same days, so that each writes few files; sorted by project and session."""
    by_day = sorted(sources, key=lambda source: (_last_day(source), *_place(source)))
    group: list[Source] = []
    size = 0
    for source in by_day:
        group.append(source)
        size += source.size
        if size >= TASK_BYTES:
            yield Task(tuple(sorted(group, key=_place)), commit)
            group, size = [], 0
    if group:
        yield Task(tuple(sorted(group, key=_place)), commit)


def _last_day(source: Source) -> int:
    """The day on which a session ended, by its transcripts: side files may be written, or copied, at other times."""
    times = [file.mtime_ns for file in source.files if file.path.endswith(TRANSCRIPT_SUFFIX)]
    return max(times, default=0) // _DAY_NS


def _place(source: Source) -> tuple[str, str, str]:
    return source.files[0].project, source.session, source.id


@relaxed_gc()
def run_task(bucket: Bucket, task: Task) -> list[NewFile]:
    """Build the sessions of a task; return the files that were written."""
    pa = import_library("pyarrow", "lake")
    reader = SegmentReader(bucket)
    tables: dict[str, list[Any]] = {}
    with open_row_builder() as builder:
        for source in task.sources:
            builder.add(source, reader.read(source))
            if builder.size > _MAX_COLLECTED_BYTES or source is task.sources[-1]:
                for name, table in builder.take_tables().items():
                    tables.setdefault(name, []).append(table)
    files = [
        file for name, parts in tables.items() for file in write_rows(bucket, name, task.id, pa.concat_tables(parts))
    ]
    forgotten = forgotten_sessions(bucket)
    sessions = sorted({source.session for source in task.sources if make_id(source.session) in forgotten})
    if sessions:
        bucket.delete([file.path for file in files])
        raise Unreadable(
            f"{join_some(sessions)} was forgotten while it was built. Wait for `lake forget`, or run it again, then"
            " build again."
        )
    return files


def select_engine(engine: str, jobs: int | None) -> RunTasks:
    """The function that runs tasks on an engine.

    Raises:
        BadQuery: there is no such engine.
        Missing: it is not installed.
    """
    if engine == LOCAL:
        return lambda bucket, tasks, progress: _run_locally(bucket, tasks, progress, jobs)
    from threadline.lake.spark import run_on_sail, run_on_spark  # noqa: PLC0415 - an optional engine

    if engine == SAIL:
        return run_on_sail
    if engine.startswith(SPARK):
        return lambda bucket, tasks, progress: run_on_spark(engine, bucket, tasks, progress)
    raise BadQuery(f"Unknown engine {engine!r}. Use local, sail or sc://HOST:PORT.")


def _run_locally(
    bucket: Bucket, tasks: Sequence[Task], progress: Callable[[int], None], jobs: int | None
) -> Iterator[NewFile]:
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    if workers <= 1 or sum(task.size for task in tasks) < MIN_PARALLEL_BYTES:
        for task in tasks:
            yield from run_task(bucket, task)
            progress(task.size)
        return
    # Not forked: the storage client has threads.
    for task, files in spawn_map(partial(run_task, bucket), tasks, workers):
        yield from files
        progress(task.size)
