"""Bring the index up to date: read what changed in the transcripts, once, and write it.

Worker processes read (`state`), and this process writes. The rows of a transcript and how far it was read are written
in one transaction, so a refresh may be killed at any point and the next one continues. Charges depend on all
transcripts: their messages are marked stale in the same transaction and charged at the end, or by the next refresh.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import count, repeat
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import asdict

from threadline.errors import Error, Unreadable
from threadline.home_files import open_transcript
from threadline.index.charges import charge_stale
from threadline.index.index import PendingChanges, read_meta
from threadline.index.plan import (
    PlaceIds,
    ReadStep,
    RefreshPlan,
    are_projects_stale,
    make_plan,
    mark_projects_stale,
    stored_names,
    update_fingerprint,
    update_project_paths,
)
from threadline.index.purge import is_purge_due, mark_unpurged, purge, remove_stale_indexes
from threadline.index.rows.result_links import has_unlinked, mark_unlinked, relink_results
from threadline.index.rows.sighting_rows import MARK_STALE
from threadline.index.rows.state import EntryColumns, ReadRequest, TextRow, TranscriptRows, read_rows
from threadline.index.rows.summary_links import resolve_summaries
from threadline.index.schema import OF_ENTRIES, OF_TRANSCRIPT
from threadline.index.store import (
    NEW_SUFFIX,
    change_generation,
    create_late_indexes,
    open_locked,
    open_new,
    prepare_to_index,
    read_generation,
    remove_index,
    remove_older_versions,
    write_lock,
)
from threadline.index.vocabulary import VocabularyWriter
from threadline.model.homes import Home, Homes, Transcript
from threadline.model.times import moment_from_mtime
from threadline.parallel import can_fork, cpu_count, fork_map, relaxed_gc

_MIN_PARALLEL_BYTES = 4 * 1024 * 1024
_COMMIT_SECONDS = 2.0  # seconds: how much a killed refresh may lose
_NULLABLE_COLUMNS = frozenset({"uuid", "session", "agent", "timestamp", "message", "request", "stop_reason"})
_EXTEND_LINE = "UPDATE entries SET length = length + 1 WHERE transcript_id = ? AND line = ?"


class RefreshResult(Struct, frozen=True):
    """What a refresh did: the transcripts, bytes and entries it read, the transcripts that were gone, and charges."""

    transcripts: int = 0
    bytes: int = 0
    entries: int = 0
    gone: int = 0
    charges: int = 0


def refresh_index(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
    pending: PendingChanges | None = None,
    in_passing: bool = False,
) -> RefreshResult:
    """Bring the index up to date with the homes, or build it if there is none.

    Nothing is left in it of entries that are gone (see `purge`).

    Args:
        index: the path of the index.
        homes: the homes that it is for.
        jobs: how many processes may work; by default one per processor.
        progress: called with the size of each transcript when it is written.
        planned: called once, with the number of bytes to read.
        pending: changes that were just detected, so that the homes are not searched again.
        in_passing: somebody waits for an answer: traces of deleted entries are removed later if that takes long.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: it is damaged, or may not be written.
    """
    with write_lock(index):
        if not index.exists():  # not before the lock: another process may just have built it
            return _build(index, homes, jobs, progress, planned)
        with open_locked(index) as connection:
            result = _run(IndexWriter(connection), homes, jobs, progress, planned, pending)
            has_deleted = is_purge_due(connection, read_meta(connection), in_passing=in_passing)
            is_clean = purge(connection, in_passing=in_passing)
        if not is_clean:
            _build(index, homes, jobs, None, None)
    if has_deleted and not any(home.is_kept for home in homes):  # else, the keep has what is gone
        remove_stale_indexes(index.parent, index)
    return result


def rebuild_index(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> RefreshResult:
    """Build a new index in a file beside the old one, which is used until the new one replaces it.

    The arguments are those of `refresh_index`. The old index may be damaged.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: its folder may not be written.
    """
    with write_lock(index):
        return _build(index, homes, jobs, progress, planned)


def _build(
    index: Path,
    homes: Sequence[Home],
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
) -> RefreshResult:
    """Build an index beside the old one, and put it in its place."""
    new = index.with_name(f"{index.name}{NEW_SUFFIX}")
    with open_new(new) as connection:
        result = _run(IndexWriter(connection, is_new=True), homes, jobs, progress, planned)
    try:
        # The old file is removed first. SQLite discards a write-ahead log without a database, but would replay one
        # that finds another database in its place.
        remove_index(index)
        new.replace(index)
        remove_older_versions(index)
    except OSError as error:
        raise Unreadable(f"The index {str(index)!r} cannot be written: {error}.") from None
    return result


@relaxed_gc()
def _run(  # noqa: PLR0917 - the arguments of `refresh_index`
    writer: IndexWriter,
    homes: Sequence[Home],
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
    pending: PendingChanges | None = None,
) -> RefreshResult:
    connection = writer.connection
    connection.execute("BEGIN IMMEDIATE")
    is_current = pending is not None and pending.generation == read_generation(connection)  # nobody has written since
    plan = make_plan(connection, homes, pending.changes if pending is not None and is_current else None)
    if planned is not None:
        planned(plan.size)
    writer.prepare(plan)
    for step, rows in _read_steps(plan.steps, jobs):
        writer.add(step, rows)
        if progress is not None:
            progress(step.size)
    writer.finish()
    if are_projects_stale(connection):
        update_project_paths(connection, homes)
    charges = charge_stale(connection, Homes(homes))
    return RefreshResult(len(plan.steps), plan.size, writer.entries, len(plan.gone), charges)


def _read_steps(steps: Sequence[ReadStep], jobs: int | None) -> Iterator[tuple[ReadStep, TranscriptRows]]:
    """The rows of every transcript to read; with worker processes if there is enough to read."""
    workers = (jobs or cpu_count()) - 1
    steps = sorted(steps, key=reading_order)  # the oldest first: search prefers entries with high numbers
    if workers < 1 or sum(step.size for step in steps) < _MIN_PARALLEL_BYTES or not can_fork():
        for step in steps:
            yield step, _read_step(step)
        return
    for batch, results in fork_map(_read_batch, list(_batches(steps)), workers):
        yield from zip(batch, results, strict=True)


def _read_step(step: ReadStep) -> TranscriptRows:
    return read_rows(ReadRequest(step.transcript, step.offset, step.line, step.state, step.waiting, step.is_open))


def _read_batch(steps: list[ReadStep]) -> list[TranscriptRows]:
    return [_read_step(step) for step in steps]


_BATCH_BYTES = 1024 * 1024
_BATCH_FILES = 50


def reading_order(step: ReadStep) -> str:
    """What transcripts are sorted by before they are read."""
    return last_timestamp(step.stat.path, step.stat.size, step.stat.mtime_ns)


def _batches(steps: Sequence[ReadStep]) -> Iterator[list[ReadStep]]:
    """The steps in batches, in their order."""
    batch: list[ReadStep] = []
    size = 0
    for step in steps:
        batch.append(step)
        size += step.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _next_entry(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()
    if row is None or not str(row[0]).isdecimal():
        raise sqlite3.DatabaseError("the number of the next entry is missing")
    return int(row[0])


@cache
def _insert_text(fields: tuple[str, ...]) -> str:
    """The statement that inserts the text of an entry. Passing NULL for the fields that it lacks would take longer."""
    return f"INSERT INTO text(rowid, {', '.join(fields)}) VALUES(?{', CAST(? AS TEXT)' * len(fields)})"


def _entry_rows(first: int, number: int, entries: EntryColumns) -> tuple[str, Iterable[tuple[object, ...]]]:
    """The statement that inserts entries, and its rows. A column without any value takes time, and is left out."""
    columns = {
        name: values
        for name, values in asdict(entries).items()
        if name not in _NULLABLE_COLUMNS or values.count(None) < len(values)
    }
    names = ("entry_id", "transcript_id", *columns)
    statement = f"INSERT INTO entries({', '.join(names)}) VALUES({', '.join('?' * len(names))})"
    return statement, zip(count(first), repeat(number), *columns.values())


class IndexWriter:
    """Writes the rows of transcripts, and commits every few seconds.

    A new file, which nobody else sees until it is complete, is written in one transaction.
    """

    def __init__(self, connection: sqlite3.Connection, *, is_new: bool = False) -> None:
        self.connection = connection
        self._is_new = is_new
        self._next = _next_entry(connection)
        self._transaction_start = 0.0
        self._vocabulary = VocabularyWriter(connection)
        self.entries = 0

    def prepare(self, plan: RefreshPlan) -> None:
        """Delete the rows of transcripts that are gone, and update those that need not be read."""
        self._begin()
        if self._is_new:
            prepare_to_index(self.connection, plan.size)
            mark_unlinked(self.connection)  # all results are linked at the end, when the indexes for it exist
        for number in plan.gone:
            self._delete_rows(number)
            self.connection.execute("DELETE FROM transcripts WHERE transcript_id = ?", (number,))
        for number, fingerprint in plan.touched:
            update_fingerprint(self.connection, number, fingerprint)
        for number, transcript in plan.moved:
            self._move(number, transcript)
        if plan.may_change_project_paths:
            mark_projects_stale(self.connection)
        self.commit()

    def _move(self, number: int, transcript: Transcript) -> None:
        """Write the new path of a transcript. Its charges may now belong to another project."""
        home, project = PlaceIds(self.connection).of(transcript)
        self.connection.execute(
            "UPDATE transcripts SET (home_id, project_id, folder_id, kind, session, agent) = (?, ?, ?, ?, ?, ?)"
            " WHERE transcript_id = ?",
            (home, project, project, str(transcript.kind), *stored_names(transcript), number),
        )
        self.connection.execute(MARK_STALE, (number,))
        mark_unlinked(self.connection)

    def add(self, step: ReadStep, rows: TranscriptRows) -> None:
        """Write the rows of a transcript, and how far it has been read."""
        self._begin()
        if (step.before is None and not step.is_new) or rows.was_reread:
            self._delete_rows(step.transcript_id)
        elif rows.is_closed:
            self.connection.execute(_EXTEND_LINE, (step.transcript_id, step.line - 1))
        if step.has_new_name:  # not before: until its rows are replaced, the old name is theirs
            self._move(step.transcript_id, step.transcript)
        first = self._next
        number = step.transcript_id
        execute = self.connection.executemany
        execute(*_entry_rows(first, number, rows.entries))
        self._add_texts(first, rows.texts)
        execute(
            "INSERT INTO problems(transcript_id, line, kind, message, recovered) VALUES(?, ?, ?, ?, ?)",
            [(number, *row) for row in rows.problems],
        )
        rows.sightings.write(self.connection, number, is_new=step.is_new, marks_stale=not self._is_new)
        rows.fold.write(self.connection, number, first)
        self._next += len(rows.entries)
        self.entries += len(rows.entries)
        self._store_progress(step, rows)
        if not self._is_new and monotonic() - self._transaction_start > _COMMIT_SECONDS:
            self.commit()

    def _store_progress(self, step: ReadStep, rows: TranscriptRows) -> None:
        """Store how far the transcript has been read."""
        step.store_fingerprint(self.connection, rows)

    def _add_texts(self, first: int, texts: Sequence[TextRow]) -> None:
        """Write the text of entries; `first` is the id of the first new entry."""
        execute = self.connection.cursor().execute
        for at, fields in texts:
            execute(_insert_text(tuple(fields)), (first + at, *fields.values()))
        self._vocabulary.add(fields.values() for _, fields in texts)

    def _delete_rows(self, number: int) -> None:
        """Delete the rows of a transcript, before it is read from the start or because it is gone."""
        execute = self.connection.execute
        execute(MARK_STALE, (number,))
        mark_unlinked(self.connection)
        mark_unpurged(self.connection)
        for table in OF_ENTRIES:
            condition = "entry_id IN (SELECT entry_id FROM entries WHERE transcript_id = ?)"
            execute(f"DELETE FROM {table} WHERE {condition}", (number,))  # noqa: S608 - our own names
        for table in OF_TRANSCRIPT:
            execute(f"DELETE FROM {table} WHERE transcript_id = ?", (number,))  # noqa: S608 - our own names

    def _begin(self) -> None:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")
            self._transaction_start = monotonic()

    def commit(self) -> None:
        """Commit what was written so far."""
        if self.connection.in_transaction:
            self._vocabulary.commit(self._next)
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'next_entry'", (str(self._next),))
            change_generation(self.connection)
            self.connection.execute("COMMIT")

    def link_rows(self) -> None:
        """Link calls to results in other transcripts, and summaries to the sessions that they title."""
        if has_unlinked(self.connection):
            relink_results(self.connection)
        resolve_summaries(self.connection, self._next)

    def finish(self) -> None:
        """Link and commit all rows."""
        self._begin()
        if self._is_new:
            create_late_indexes(self.connection)
        self.link_rows()
        self.commit()


_TAIL_BYTES = 8 * 1024
_TIMESTAMP_KEY = b'"timestamp":"2'
_TIMESTAMP_LENGTH = 23  # 2026-11-15T12:00:00.000


def last_timestamp(path: str, size: int, mtime_ns: int) -> str:
    """The last timestamp near the end of a transcript, as text that sorts; without one, the file's mtime.

    The mtime alone is not enough: the files of a copied home may all have the same.
    """
    try:
        file = open_transcript(path)
        try:
            os.lseek(file, max(0, size - _TAIL_BYTES), os.SEEK_SET)
            end = os.read(file, _TAIL_BYTES)
        finally:
            os.close(file)
    except (Error, OSError):
        end = b""
    at = end.rfind(_TIMESTAMP_KEY)
    if at >= 0:
        start = at + len(_TIMESTAMP_KEY) - 1
        return end[start : start + _TIMESTAMP_LENGTH].decode(errors="replace")
    moment = moment_from_mtime(mtime_ns)
    return moment.isoformat()[:_TIMESTAMP_LENGTH] if moment is not None else ""
