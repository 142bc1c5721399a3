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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from time import time
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline import __version__
from threadline.account import shipped_rates
from threadline.errors import BadQuery, IndexBusy, NotFound, Unreadable
from threadline.lake.accounting import (
    COPY_COLUMNS,
    KEY_COLUMNS,
    SIGHTING_COLUMNS,
    affected_transcripts,
    charge_rows,
    filter_rows,
    find_copies,
)
from threadline.lake.bronze import (
    Batch,
    SegmentReader,
    Source,
    forgotten_sessions,
    group_sources,
    list_batches,
    make_id,
    read_batches,
    read_lake,
)
from threadline.lake.catalogue import (
    Catalogue,
    Commit,
    commit_path,
    read_commit,
    referenced_files,
    reports_storage_errors,
)
from threadline.lake.rows import open_row_builder
from threadline.lake.tables import (
    CALL_COPIES,
    CALLS,
    CHARGES,
    SIGHTINGS,
    SILVER,
    TABLES,
    NewFile,
    Removal,
    arrow_schema,
    column_names,
    write_rows,
)
from threadline.lake.titles import has_summaries, summarized_entries, update_titles
from threadline.model.tables import import_library
from threadline.model.text import join_some
from threadline.parallel import relaxed_gc, spawn_map
from threadline.storage import Bucket

LOCAL, SAIL = "local", "sail"
TASK_BYTES = 128 * 1024 * 1024
"""A task ends with the session that exceeds this."""
_MAX_COLLECTED_BYTES = 16 * 1024 * 1024
"""Rows of so many bytes become Arrow tables at once."""
_INLINE_BYTES = 16 * 1024 * 1024
_MAX_ATTEMPTS = 5
_CLEANED = "cleaned"
"""An object with the time when orphans were last removed."""
_DAY_NS = 24 * 3600 * 10**9
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


class BuildResult(Struct, frozen=True):
    """What a build did.

    `commit` is the number of the commit that it made, or that the tables have if nothing was new; None if there is
    none. `merged` is the number of files that compaction wrote.
    """

    commit: int | None
    sessions: int
    bytes: int
    tasks: int
    files: int
    rows: int
    charges: int
    merged: int = 0
    orphans: int = 0
    parser_versions: tuple[str, ...] = ()


RunTasks = Callable[[Bucket, Sequence[Task], Callable[[int], None]], Iterable[NewFile]]


@reports_storage_errors
def build_lake(
    bucket: Bucket,
    *,
    engine: str = LOCAL,
    jobs: int | None = None,
    rebuild: bool = False,
    compact: bool = False,
    planned: Callable[[int], None] = lambda _bytes: None,
    progress: Callable[[int], None] = lambda _done: None,
) -> BuildResult:
    """Build what was pushed since the last build; with `rebuild`, everything.

    Days that have many small files by now are compacted; with `compact`, all days are looked at. Once a day, orphaned
    files are removed. `planned` is called with the size of what has to be read, and `progress` with that of what was.

    Raises:
        NotFound: there is no lake.
        IndexBusy: other builds kept publishing first.
        Missing: the engine is not installed.
        Unreadable: the storage refuses, something in it is damaged, or another version has built the tables.
    """
    read_lake(bucket)
    run = select_engine(engine, jobs)
    for _attempt in range(_MAX_ATTEMPTS):
        build = _Build(bucket, read_commit(bucket), rebuild=rebuild)
        result = build.run(run, planned, progress)
        if result is not None:
            merged = compact_lake(bucket, None if compact else build.days) if compact or build.days else 0
            return replace(result, merged=merged, orphans=_remove_orphans_daily(bucket))
        planned = progress = _no_progress
    raise IndexBusy(f"Other builds of {bucket.name!r} were faster {_MAX_ATTEMPTS} times. Run one build at a time.")


def _no_progress(_done: int) -> None:
    """Show nothing: the work is done again."""


class _Build:
    """One attempt to build."""

    def __init__(self, bucket: Bucket, commit: Commit | None, *, rebuild: bool) -> None:
        self._bucket = bucket
        self._previous = commit
        self._commit = commit if not rebuild else None
        self._batches = list_batches(bucket)
        self._done = dict(self._commit.batches) if self._commit is not None else {}
        self.days: frozenset[date] = frozenset()
        """The days whose partitions have new files."""

    def run(
        self, run_tasks: RunTasks, planned: Callable[[int], None], progress: Callable[[int], None]
    ) -> BuildResult | None:
        """Build; return None if another build has published meanwhile."""
        changed, known = self._plan()
        # A rebuild starts with empty tables, and replaces the commit that is there now.
        catalogue = Catalogue(self._bucket, self._commit)
        catalogue.check_version()
        if not changed and self._commit is not None:
            return self._result([], [], 0)
        number = self._previous.number if self._previous is not None else 0
        tasks = list(group_tasks(changed, number))
        planned(sum(task.size for task in tasks))
        files = list(run_tasks(self._bucket, tasks, progress))
        charges = self._replace(catalogue, files, {source.id for source in changed}, known)
        catalogue.limit_snapshots()
        batches = {machine: numbers[-1] for machine, numbers in self._batches.items()}
        commit = catalogue.publish(batches, number=number + 1)
        if commit is None:
            # The other build may have written, and published, the same files.
            self._bucket.delete(sorted({file.path for file in files} - _referenced_now(self._bucket)))
            return None
        self._commit = commit
        self.days = frozenset(file.day for file in (*files, *charges))
        return self._result(tasks, files, sum(file.rows for file in charges))

    def _plan(self) -> tuple[list[Source], set[str]]:
        """The sources that have to be built, and those of them that the tables have already."""
        changed: list[Source] = []
        known: set[str] = set()
        for machine, numbers in self._batches.items():
            done = self._done.get(machine, 0)
            if numbers[-1] <= done:
                continue
            batches = read_batches(self._bucket, machine, numbers)
            changed += [source for source in group_sources(batches).values() if source.batch > done]
            known |= set(_sources_until(batches, done))
        return changed, known & {source.id for source in changed}

    def _replace(
        self, catalogue: Catalogue, files: Sequence[NewFile], changed: set[str], known: set[str]
    ) -> list[NewFile]:
        """Replace the rows of changed sources in all tables; return the new files of charges."""
        number = self._previous.number + 1 if self._previous is not None else 1
        properties = {f"threadline.{name}": str(number) for name, number in self._last_batches()}
        properties["threadline.commit"] = str(number)
        before = catalogue.scan(SIGHTINGS, KEY_COLUMNS)
        removal = Removal("source", sorted(known), days_of(before, known))
        for table in TABLES:
            if table != CHARGES:
                paths = [file.path for file in files if file.table == table]
                catalogue.replace_rows(table, paths, properties, removal)
        pa = import_library("pyarrow", "lake")
        new = [self._bucket.location(file.path) for file in files if file.table == SIGHTINGS]
        after = pa.concat_tables([without_sources(before, changed), catalogue.read_files(SIGHTINGS, new, KEY_COLUMNS)])
        affected = find_affected(before, after, changed)
        charges = update_charges(catalogue, affected, properties)
        update_copies(catalogue, affected, properties)
        if has_summaries(before) or has_summaries(after):
            update_titles(catalogue, changed, summarized_entries(before, changed), properties)
        return charges

    def _last_batches(self) -> Iterator[tuple[str, int]]:
        yield from ((f"batch.{machine}", numbers[-1]) for machine, numbers in self._batches.items())

    def _result(self, tasks: Sequence[Task], files: Sequence[NewFile], charges: int) -> BuildResult:
        commit = self._commit
        return BuildResult(
            commit.number if commit is not None else None,
            sum(len(task.sources) for task in tasks),
            sum(task.size for task in tasks),
            len(tasks),
            len(files),
            sum(file.rows for file in files),
            charges,
            parser_versions=(commit.parser_version,) if commit is not None else (),
        )


def days_of(keys: Any, sources: Collection[str]) -> list[date]:
    """The days on which sources have rows, by an Arrow table of `sightings`."""
    rows = keys.filter(_is_of(keys, sources))
    return sorted({day for days in rows.column("days").to_pylist() for day in days})


def without_sources(keys: Any, sources: Collection[str]) -> Any:
    """The rows of an Arrow table that are of other sources."""
    return keys.filter(import_library("pyarrow.compute", "lake").invert(_is_of(keys, sources)))


def _is_of(keys: Any, sources: Collection[str]) -> Any:
    pa = import_library("pyarrow", "lake")
    compute = import_library("pyarrow.compute", "lake")
    return compute.is_in(keys.column("source"), pa.array(sorted(sources), pa.string()))


class Affected(Struct, frozen=True):
    """Transcripts whose charges and calls may differ after a change.

    `old` are those that the tables had before, and `old_days` the days of their rows. `new_days` are the days of their
    rows now, and `sighting_days` those of their rows in `sightings`.
    """

    transcripts: frozenset[int]
    old: list[int]
    old_days: list[date]
    new_days: list[date]
    sighting_days: list[date]


def find_affected(before: Any, after: Any, changed: Collection[str]) -> Affected:
    """What a change of sources affects. `before` and `after` are the keys of `sightings` before and after it."""
    pa = import_library("pyarrow", "lake")
    compute = import_library("pyarrow.compute", "lake")
    affected = affected_transcripts(pa.concat_tables([before, after]), changed)
    old, new = (filter_rows(rows, "transcript_id", affected) for rows in (before, after))
    old_days, new_days = (
        sorted({day for days in rows.column("days").to_pylist() for day in days}) for rows in (old, new)
    )
    sighting_days = compute.unique(new.column("day")).to_pylist()
    return Affected(frozenset(affected), old.column("transcript_id").to_pylist(), old_days, new_days, sighting_days)


def update_charges(catalogue: Catalogue, affected: Affected, properties: dict[str, str]) -> list[NewFile]:
    """Compute the charges of affected transcripts again; return the new files."""
    rows = catalogue.scan(SIGHTINGS, SIGHTING_COLUMNS, affected.sighting_days)
    rows = filter_rows(rows, "transcript_id", affected.transcripts)
    charges = charge_rows(rows.to_pylist(), shipped_rates())
    name = make_id(__version__, *map(str, sorted(affected.transcripts)), *properties.values())
    files = list(write_rows(catalogue.bucket, CHARGES, name, charges))
    removal = Removal("transcript_id", affected.old, affected.old_days)
    catalogue.replace_rows(CHARGES, [file.path for file in files], properties, removal)
    return files


def update_copies(catalogue: Catalogue, affected: Affected, properties: dict[str, str]) -> None:
    """Move calls between `calls` and `call_copies`, so that `calls` has each call once.

    The charges have to be up to date: a call belongs to the transcript that its message is charged to. Transcripts that
    share calls are affected together.
    """
    pa = import_library("pyarrow", "lake")
    stored, charges = (
        {
            name: filter_rows(catalogue.scan(name, columns, affected.new_days), "transcript_id", affected.transcripts)
            for name in names
        }
        for names, columns in (((CALLS, CALL_COPIES), COPY_COLUMNS), ((CHARGES,), ("message", "transcript_id")))
    )
    copies = find_copies(pa.concat_tables(stored.values()), charges[CHARGES])
    stored[CALLS] = filter_rows(stored[CALLS], "entry_id", {entry for entry, _ in copies})
    moved = [
        row
        for name, rows in stored.items()
        for row in rows.select(["call", "entry_id", "day"]).to_pylist()
        if ((row["entry_id"], row["call"]) in copies) == (name == CALLS)
    ]
    if not moved:
        return
    days, entries = ({row[name] for row in moved} for name in ("day", "entry_id"))
    rows = [
        row
        for name in stored
        for row in filter_rows(catalogue.scan(name, column_names(name), days), "entry_id", entries).to_pylist()
    ]
    id_ = make_id(__version__, *properties.values(), *sorted(map(str, entries)))
    removal = Removal("entry_id", sorted(entries), sorted(days))
    for name in stored:
        kept = [row for row in rows if ((row["entry_id"], row["call"]) in copies) == (name == CALL_COPIES)]
        table = pa.Table.from_pylist(kept, schema=arrow_schema(name))
        files = [file.path for file in write_rows(catalogue.bucket, name, id_, table)]
        catalogue.replace_rows(name, files, properties, removal)


def _sources_until(batches: Sequence[Batch], number: int) -> Iterator[str]:
    return (file.source for batch in batches if batch.number <= number for file in batch.files)


def group_tasks(sources: Iterable[Source], commit: int) -> Iterator[Task]:
    """Tasks of sessions that ended on the same days, so that each writes few files; sorted by project and session."""
    by_day = sorted(
        sources, key=lambda source: (max(file.mtime_ns for file in source.files) // _DAY_NS, *_place(source))
    )
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
    # Not forked: the storage client has threads.
    for task, files in spawn_map(partial(run_task, bucket), tasks, workers):
        yield from files
        progress(task.size)


@reports_storage_errors
def compact_lake(bucket: Bucket, days: Collection[date] | None = None) -> int:
    """Merge small files, those of all days by default; return the number of new files.

    Of compactions and builds at the same time, one publishes. The others leave nothing behind.

    Raises:
        Unreadable: the storage refuses, or a file of the tables is missing.
    """
    commit = read_commit(bucket)
    if commit is None:
        return 0
    catalogue = Catalogue(bucket, commit)
    catalogue.check_version()
    merged: list[str] = []
    published = None
    try:
        for table in TABLES:
            merged += catalogue.compact(table, days)
        if not merged:
            return 0
        catalogue.limit_snapshots()
        published = catalogue.publish(commit.batches)
    except FileNotFoundError as error:
        latest = read_commit(bucket)
        if latest is not None and latest.number == commit.number:  # `forget` did not remove it
            raise Unreadable(
                f"A file of the tables is missing: {error}. Run: threadline lake build {bucket.name} --rebuild"
            ) from None
    if published is None:
        bucket.delete(sorted(set(merged) - _referenced_now(bucket)))
        return 0
    return len(merged)


def _referenced_now(bucket: Bucket) -> set[str]:
    """The files that the latest commit needs."""
    commit = read_commit(bucket)
    return referenced_files(Catalogue(bucket, commit)) if commit is not None else set()


@reports_storage_errors
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


def _remove_orphans_daily(bucket: Bucket) -> int:
    """Remove orphans unless that was done in the last day: it has to list the whole lake."""
    try:
        last = float(bucket.get(_CLEANED))
    except (NotFound, ValueError):
        last = 0.0
    if last > time() - _ORPHAN_SECONDS:
        return 0
    removed = remove_orphans(bucket)
    bucket.put(_CLEANED, str(int(time())).encode())
    return removed


def encode_task(task: Task) -> str:
    """A task as JSON, for an engine."""
    return msgspec.json.encode(task).decode()


def decode_task(text: str) -> Task:
    """A task from JSON."""
    return msgspec.json.decode(text, type=Task)
