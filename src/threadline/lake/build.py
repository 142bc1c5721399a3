"""Build the tables of a lake from what machines have pushed since the last build.

The driver decides which sessions changed and groups them into tasks. A task reads the bytes of its sessions, writes
Parquet files under names that follow from its content, and returns their names; a task that runs twice writes the same
files. Then the driver changes all tables and publishes them in one commit. Whatever dies before that leaves the tables
as they were, and orphaned files that the next build removes.

Engines differ only in where tasks run: `local` uses processes, `sc://HOST:PORT` a Spark Connect server whose workers
have threadline installed, and `sail` such a server inside this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from io import BytesIO
from multiprocessing import get_context
from time import time
from typing import Any

import msgspec
from msgspec import Struct

from threadline import __version__
from threadline.account import shipped_rates
from threadline.errors import BadQuery, IndexBusy, Unreadable
from threadline.lake.accounting import KEY_COLUMNS, SIGHTING_COLUMNS, affected_transcripts, charge_rows
from threadline.lake.bronze import (
    Batch,
    SegmentReader,
    Source,
    group_sources,
    list_batches,
    make_id,
    read_batch,
    read_lake,
)
from threadline.lake.catalogue import (
    SILVER,
    Catalogue,
    Commit,
    commit_path,
    read_commit,
    referenced_files,
    split_by_day,
)
from threadline.lake.rows import session_tables
from threadline.lake.storage import Bucket
from threadline.lake.tables import CHARGES, SIGHTINGS, TABLES
from threadline.model.tables import import_library

LOCAL, SAIL = "local", "sail"
TASK_BYTES = 128 * 1024 * 1024
"""A task ends with the session that exceeds this."""
_INLINE_BYTES = 16 * 1024 * 1024
_MAX_ATTEMPTS = 5
_ORPHAN_SECONDS = 24 * 3600
"""Orphans younger than this may belong to a build that is running."""


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


class NewFile(Struct, frozen=True):
    """A file that a task wrote: its table, its path in the lake, and how many rows it has."""

    table: str
    path: str
    rows: int


class BuildResult(Struct, frozen=True):
    """What a build did. `commit` is the number of the commit that the tables have now; None if there is none."""

    commit: int | None
    sessions: int
    bytes: int
    tasks: int
    files: int
    rows: int
    charges: int
    orphans: int
    parser_versions: tuple[str, ...] = ()


RunTasks = Callable[[Bucket, Sequence[Task], Callable[[int], None]], Iterable[NewFile]]


def build_lake(
    bucket: Bucket,
    *,
    engine: str = LOCAL,
    jobs: int | None = None,
    rebuild: bool = False,
    progress: Callable[[int], None] = lambda _done: None,
) -> BuildResult:
    """Build what was pushed since the last build; with `rebuild`, everything.

    `progress` is called with the size of what was read.

    Raises:
        NotFound: there is no lake.
        IndexBusy: other builds kept publishing first.
        Missing: the engine is not installed.
        Unreadable: the storage refuses, or something in it is damaged.
    """
    read_lake(bucket)
    run = select_engine(engine, jobs)
    for _attempt in range(_MAX_ATTEMPTS):
        build = _Build(bucket, None if rebuild else read_commit(bucket), rebuild=rebuild)
        result = build.run(run, progress)
        if result is not None:
            return result
        progress = _no_progress
    raise IndexBusy(f"Other builds of {bucket.uri!r} were faster {_MAX_ATTEMPTS} times. Run one build at a time.")


def _no_progress(_done: int) -> None:
    """Show nothing: the work is done again."""


class _Build:
    """One attempt to build."""

    def __init__(self, bucket: Bucket, commit: Commit | None, *, rebuild: bool) -> None:
        self._bucket = bucket
        self._previous = read_commit(bucket) if rebuild else commit
        self._commit = commit
        self._batches = list_batches(bucket)
        self._done = dict(commit.batches) if commit is not None else {}

    def run(self, run_tasks: RunTasks, progress: Callable[[int], None]) -> BuildResult | None:
        """Build; return None if another build has published meanwhile."""
        changed, known = self._plan()
        if not changed and self._commit is not None:
            return self._result([], [], 0, remove_orphans(self._bucket))
        number = self._previous.number if self._previous is not None else 0
        tasks = list(_group_tasks(changed, number))
        files = list(run_tasks(self._bucket, tasks, progress))
        # A rebuild starts with empty tables, and replaces the commit that is there now.
        catalogue = Catalogue(self._bucket, self._commit)
        charges = self._replace(catalogue, files, [source.id for source in changed], known)
        batches = {machine: numbers[-1] for machine, numbers in self._batches.items()}
        commit = catalogue.publish(batches, number=number + 1)
        if commit is None:
            # The other build may have written, and published, the same files.
            self._bucket.delete(sorted({file.path for file in files} - _referenced_now(self._bucket)))
            return None
        self._commit = commit
        return self._result(tasks, files, charges, remove_orphans(self._bucket))

    def _plan(self) -> tuple[list[Source], set[str]]:
        """The sources that have to be built, and those of them that the tables have already."""
        changed: list[Source] = []
        known: set[str] = set()
        for machine, numbers in self._batches.items():
            done = self._done.get(machine, 0)
            if numbers[-1] <= done:
                continue
            batches = [read_batch(self._bucket, machine, number) for number in numbers]
            changed += [source for source in group_sources(batches).values() if source.batch > done]
            known |= set(_sources_until(batches, done))
        changed.sort(key=lambda source: (source.files[0].project, source.session, source.id))
        return changed, known & {source.id for source in changed}

    def _replace(self, catalogue: Catalogue, files: Sequence[NewFile], changed: Sequence[str], known: set[str]) -> int:
        """Replace the rows of changed sources in all tables; return the number of new charges."""
        properties = {f"threadline.{name}": str(number) for name, number in self._last_batches()}
        before = catalogue.scan(SIGHTINGS, KEY_COLUMNS).to_pylist() if known else []
        for table in TABLES:
            if table != CHARGES:
                paths = [file.path for file in files if file.table == table]
                catalogue.replace_rows(table, "source", sorted(known), paths, properties)
        return update_charges(self._bucket, catalogue, before, set(changed), properties)

    def _last_batches(self) -> Iterator[tuple[str, int]]:
        yield from ((f"batch.{machine}", numbers[-1]) for machine, numbers in self._batches.items())

    def _result(self, tasks: Sequence[Task], files: Sequence[NewFile], charges: int, orphans: int) -> BuildResult:
        commit = self._commit
        return BuildResult(
            commit.number if commit is not None else None,
            sum(len(task.sources) for task in tasks),
            sum(task.size for task in tasks),
            len(tasks),
            len(files),
            sum(file.rows for file in files),
            charges,
            orphans,
            (commit.parser_version,) if commit is not None else (),
        )


def update_charges(
    bucket: Bucket, catalogue: Catalogue, before: list[dict[str, Any]], changed: set[str], properties: dict[str, str]
) -> int:
    """Compute the charges of changed sources, and of transcripts that share messages with them, again.

    `before` are the keys of `sightings` before the change. Returns how many charges are new.
    """
    expressions = import_library("pyiceberg.expressions", "lake")
    after = catalogue.scan(SIGHTINGS, KEY_COLUMNS).to_pylist()
    affected = affected_transcripts([*before, *after], changed)
    is_everything = len(affected) >= len({row["transcript_id"] for row in after})
    row_filter = None if is_everything else expressions.In("transcript_id", sorted(affected))
    rows = catalogue.scan(SIGHTINGS, SIGHTING_COLUMNS, row_filter).to_pylist() if affected else []
    charges = charge_rows((row for row in rows if row["transcript_id"] in affected), shipped_rates())
    name = make_id(__version__, *sorted(changed), *properties.values())
    files = [file.path for file in _write_table(bucket, CHARGES, name, charges)]
    catalogue.replace_rows(CHARGES, "transcript_id", sorted(affected), files, properties)
    return int(charges.num_rows)


def _sources_until(batches: Sequence[Batch], number: int) -> Iterator[str]:
    return (file.source for batch in batches if batch.number <= number for file in batch.files)


def _group_tasks(sources: Sequence[Source], commit: int) -> Iterator[Task]:
    group: list[Source] = []
    for source in sources:
        group.append(source)
        if sum(member.size for member in group) >= TASK_BYTES:
            yield Task(tuple(group), commit)
            group = []
    if group:
        yield Task(tuple(group), commit)


def run_task(bucket: Bucket, task: Task) -> list[NewFile]:
    """Build the sessions of a task; return the files that were written."""
    pa = import_library("pyarrow", "lake")
    reader = SegmentReader(bucket)
    tables: dict[str, list[Any]] = {}
    for source in task.sources:
        for name, table in session_tables(source, reader.read(source)).items():
            tables.setdefault(name, []).append(table)
    return [
        file for name, parts in tables.items() for file in _write_table(bucket, name, task.id, pa.concat_tables(parts))
    ]


def _write_table(bucket: Bucket, name: str, id_: str, table: Any) -> Iterator[NewFile]:
    """Write the rows of each day to a file."""
    parquet = import_library("pyarrow.parquet", "lake")
    for day, rows in split_by_day(table):
        buffer = BytesIO()
        parquet.write_table(rows, buffer, compression="zstd")
        path = f"{SILVER}/{name}/data/day={day}/{id_}.parquet"
        bucket.put(path, buffer.getvalue())
        yield NewFile(name, path, rows.num_rows)


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
    if engine.startswith("sc://"):
        return lambda bucket, tasks, progress: run_on_spark(engine, bucket, tasks, progress)
    raise BadQuery(f"Unknown engine {engine!r}. Use local, sail or sc://HOST:PORT.")


def _run_locally(
    bucket: Bucket, tasks: Sequence[Task], progress: Callable[[int], None], jobs: int | None
) -> Iterator[NewFile]:
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    if workers <= 1 or sum(task.size for task in tasks) < _INLINE_BYTES:
        for task in tasks:
            yield from run_task(bucket, task)
            progress(task.size)
        return
    waiting = {task.id: task for task in tasks}
    for _attempt in range(_MAX_ATTEMPTS):
        # A killed worker breaks the pool, and the tasks of the others are lost, too.
        with suppress(BrokenProcessPool):
            yield from _run_in_pool(bucket, waiting, workers, progress)
        if not waiting:
            return
    raise Unreadable("Worker processes were killed again and again, perhaps for want of memory. Use fewer: --jobs 1.")


def _run_in_pool(
    bucket: Bucket, waiting: dict[str, Task], workers: int, progress: Callable[[int], None]
) -> Iterator[NewFile]:
    """Run tasks in worker processes, and remove each from `waiting` when it is done."""
    # Not forked: the storage client has threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run_task, bucket, task): task for task in waiting.values()}
        for future in as_completed(futures):
            yield from future.result()
            progress(futures[future].size)
            del waiting[futures[future].id]


def _referenced_now(bucket: Bucket) -> set[str]:
    """The files that the latest commit needs."""
    commit = read_commit(bucket)
    return referenced_files(Catalogue(bucket, commit)) if commit is not None else set()


def remove_orphans(bucket: Bucket, *, older_than: float = _ORPHAN_SECONDS) -> int:
    """Delete files of tables that no commit needs: of builds that died, and of earlier commits; return how many."""
    stored = [entry for entry in bucket.list(SILVER) if entry.modified < time() - older_than]
    commit = read_commit(bucket)
    if commit is None or not stored:
        return 0
    needed = {*referenced_files(Catalogue(bucket, commit)), commit_path(commit.number)}
    orphans = [entry.path for entry in stored if entry.path not in needed]
    bucket.delete(orphans)
    return len(orphans)


def encode_task(task: Task) -> str:
    """A task as JSON, for an engine."""
    return msgspec.json.encode(task).decode()


def decode_task(text: str) -> Task:
    """A task from JSON."""
    return msgspec.json.decode(text, type=Task)
