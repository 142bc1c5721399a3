"""Build the tables of a lake from what machines have pushed since the last build.

The driver decides which sessions changed and groups them into tasks. A task reads the bytes of its sessions, writes
Parquet files under names that follow from its content, and returns their names; a task that runs twice writes the same
files. Then the driver changes all tables and publishes them in one commit. If anything dies before that, the tables
stay as they were, and the next build removes the files that it left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from time import time

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.lake.bronze import Source, group_sources, list_batches, read_batches, read_lake
from threadline.lake.iceberg import (
    Catalogue,
    Commit,
    commit_path,
    read_commit,
    referenced_files,
    reports_storage_errors,
)
from threadline.lake.tables import SILVER, TABLES, NewFile
from threadline.lake.tasks import LOCAL, RunTasks, Task, group_tasks, select_engine
from threadline.lake.updates import replace_sources
from threadline.storage import Bucket

_MAX_ATTEMPTS = 5
_CLEANED = "cleaned"
"""An object with the time when orphans were last removed."""
_ORPHAN_SECONDS = 24 * 3600
"""Orphans younger than this may belong to a build that is running."""


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

    The small files of days that changed are merged if there are many; with `compact`, those of all days. Once a day,
    orphaned files are removed. `planned` is called with the size of what has to be read, and `progress` with that of
    what was.

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
        changed = self._changed_sources()
        # A rebuild starts with empty tables, and replaces the commit that is there now.
        catalogue = Catalogue(self._bucket, self._commit)
        catalogue.check_version()
        if not changed and self._commit is not None:
            return self._result([], [], 0)
        number = self._previous.number + 1 if self._previous is not None else 1
        tasks = list(group_tasks(changed, number))
        planned(sum(task.size for task in tasks))
        files = list(run_tasks(self._bucket, tasks, progress))
        batches = {machine: numbers[-1] for machine, numbers in self._batches.items()}
        properties = {f"threadline.batch.{machine}": str(last) for machine, last in batches.items()}
        properties["threadline.commit"] = str(number)
        charges: list[NewFile] = []
        commit = None
        try:
            charges = replace_sources(catalogue, {source.id for source in changed}, files, properties)
            catalogue.limit_snapshots()
            commit = catalogue.publish(batches, number=number)
        except FileNotFoundError:
            if read_commit(self._bucket) == self._previous:  # else, `forget` deleted it
                raise
        if commit is None:
            # The other build may have written, and published, the same files.
            self._bucket.delete(sorted({file.path for file in files} - _referenced_now(self._bucket)))
            return None
        self._commit = commit
        self.days = frozenset(file.day for file in (*files, *charges))
        return self._result(tasks, files, sum(file.rows for file in charges))

    def _changed_sources(self) -> list[Source]:
        """The sources that were pushed since the tables were built."""
        changed: list[Source] = []
        for machine, numbers in self._batches.items():
            done = self._done.get(machine, 0)
            if numbers[-1] > done:
                sources = group_sources(read_batches(self._bucket, machine, numbers)).values()
                changed += [source for source in sources if source.batch > done]
        return changed

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
