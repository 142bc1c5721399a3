"""Bring the index up to date: read what changed in the transcripts and write it, nothing else.

The rows of a transcript and how far it was read are written in one transaction, so a refresh may be killed at any
point and the next one continues. Charges depend on all transcripts: their messages are marked stale in the same
transaction and charged at the end, or by the next refresh.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count, repeat
from pathlib import Path
from secrets import token_hex
from time import monotonic

from msgspec import Struct
from msgspec.structs import astuple

from threadline.errors import Error, Unreadable
from threadline.index.calls import has_unlinked, mark_unlinked, relink_results
from threadline.index.charges import charge_stale
from threadline.index.freshness import PendingChanges, read_generation
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
from threadline.index.schema import FIELDS, OF_ENTRIES, OF_TRANSCRIPT
from threadline.index.sighting_rows import MARK_STALE
from threadline.index.state import ReadRequest, TranscriptRows, read_rows
from threadline.index.store import NEW_SUFFIX, open_locked, open_new, remove_index, remove_older_versions, write_lock
from threadline.index.vocabulary import VocabularyWriter
from threadline.model.homes import Home, Transcript
from threadline.parallel import can_fork, cpu_count, fork_map, relaxed_gc
from threadline.parse import open_transcript

_MIN_PARALLEL_BYTES = 4 * 1024 * 1024
_COMMIT_SECONDS = 2.0  # seconds: how much a killed refresh may lose
_INSERT_TEXT = f"INSERT INTO text(rowid, {', '.join(FIELDS)}) VALUES({', '.join('?' * (len(FIELDS) + 1))})"
_EXTEND_LINE = "UPDATE entries SET length = length + 1 WHERE transcript_id = ? AND line = ?"
_INSERT_ENTRY = "INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class RefreshResult(Struct, frozen=True):
    """What a refresh did: how many transcripts it read, how many bytes and entries of them, and how many were gone."""

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
    told: PendingChanges | None = None,
) -> RefreshResult:
    """Bring the index up to date with the homes. `planned` is told how many bytes are to be read, `progress` each part.

    `told` is what a look at the homes has given just now: they are not looked through again.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: it is damaged, or may not be written.
    """
    with write_lock(index):
        if not index.exists():  # not asked before: another may just have made it
            return _build(index, homes, jobs, progress, planned)
        with open_locked(index) as connection:
            return _run(_Writer(connection), homes, jobs, progress, planned, told)


def rebuild_index(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> RefreshResult:
    """Make the index anew, beside the old one, which answers until this one is whole; damaged or not, it then goes.

    The arguments are those of `refresh`.

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
    """Make the index beside the old one, and put it in its place."""
    new = index.with_name(f"{index.name}{NEW_SUFFIX}")
    with open_new(new) as connection:
        done = _run(_Writer(connection, beside=new), homes, jobs, progress, planned)
    try:
        # The old file goes first: a log that outlives its index is thrown away, but one that finds another in its
        # place would be played back into it.
        remove_index(index)
        new.replace(index)
        remove_older_versions(index)
    except OSError as error:
        raise Unreadable(f"The index {str(index)!r} cannot be written: {error}.") from None
    return done


def _run(  # noqa: PLR0917 - as they were given
    writing: _Writer,
    homes: Sequence[Home],
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
    told: PendingChanges | None = None,
) -> RefreshResult:
    connection = writing.connection
    connection.execute("BEGIN IMMEDIATE")
    is_so = told is not None and told.generation == read_generation(connection)  # nobody has written since
    work = make_plan(connection, homes, told.changes if told is not None and is_so else None)
    if planned is not None:
        planned(work.size)
    writing.forget(work)
    with relaxed_gc():
        for step, made in _read_steps(work.steps, jobs):
            writing.add(step, made)
            if progress is not None:
                progress(step.size)
    with writing.finishing():
        if are_projects_stale(connection):
            update_project_paths(connection, homes)
        charged = charge_stale(connection, homes)
    return RefreshResult(len(work.steps), work.size, writing.entries, len(work.gone), charged)


def _read_steps(steps: Sequence[ReadStep], jobs: int | None) -> Iterator[tuple[ReadStep, TranscriptRows]]:
    """The rows of every transcript that is to be read; on all cores where that pays."""
    workers = (jobs or cpu_count()) - 1
    if workers < 1 or sum(step.size for step in steps) < _MIN_PARALLEL_BYTES or not can_fork():
        for step in steps:
            yield step, _read_step(step)
        return
    for some, made in fork_map(_read_batch, list(_batches(steps)), workers):
        yield from zip(some, made, strict=True)


def _read_step(step: ReadStep) -> TranscriptRows:
    return read_rows(ReadRequest(step.transcript, step.offset, step.line, step.state, step.waiting, step.is_open))


def _read_batch(steps: list[ReadStep]) -> list[TranscriptRows]:
    return [_read_step(step) for step in steps]


_BATCH_BYTES = 1024 * 1024
_BATCH_FILES = 50


def _sort_key(step: ReadStep) -> str:
    return last_timestamp(step.looked.path, step.looked.size, step.looked.mtime_ns)


def _batches(steps: Sequence[ReadStep]) -> Iterator[list[ReadStep]]:
    """Some transcripts at a time, the oldest first: of words that many entries have, those with high numbers count."""
    batch: list[ReadStep] = []
    size = 0
    for step in sorted(steps, key=_sort_key):
        batch.append(step)
        size += step.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _next_entry(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()
    if found is None or not str(found[0]).isdecimal():
        raise sqlite3.DatabaseError("it does not tell which number the next entry has")
    return int(found[0])


class _Writer:
    """The one that writes, transcript by transcript, committing every now and then.

    One that is made `beside`, and that nobody sees before it is whole, is written all at once.
    """

    def __init__(self, connection: sqlite3.Connection, *, beside: Path | None = None) -> None:
        self.connection = connection
        self._beside = beside
        self._next = _next_entry(connection)
        self._begun = 0.0
        self._vocabulary = VocabularyWriter(connection)
        self.entries = 0

    def forget(self, work: RefreshPlan) -> None:
        """Take out what transcripts that are gone, or that are to be read anew, have given."""
        self._begin()
        for number in work.gone:
            self._forget(number)
            self.connection.execute("DELETE FROM transcripts WHERE transcript_id = ?", (number,))
        for number, known in work.renewed:
            update_fingerprint(self.connection, number, known)
        for number, transcript in work.moved:
            self._move(number, transcript)
        if work.may_change_project_paths:
            mark_projects_stale(self.connection)
        self.commit()

    def _move(self, number: int, transcript: Transcript) -> None:
        """The same lines lie elsewhere: what they cost may be another project's."""
        home, project = PlaceIds(self.connection).of(transcript)
        self.connection.execute(
            "UPDATE transcripts SET (home_id, project_id, kind, session, agent) = (?, ?, ?, ?, ?)"
            " WHERE transcript_id = ?",
            (home, project, str(transcript.kind), *stored_names(transcript), number),
        )
        self.connection.execute(MARK_STALE, (number,))
        mark_unlinked(self.connection)

    def add(self, step: ReadStep, made: TranscriptRows) -> None:
        """The rows of one transcript, and how far it has been read."""
        self._begin()
        if (step.before is None and not step.is_new) or made.was_reread:
            self._forget(step.transcript_id)
        elif made.is_closed:
            self.connection.execute(_EXTEND_LINE, (step.transcript_id, step.line - 1))
        if step.has_new_name:  # not before: until its rows are made anew, they go by the old name
            self._move(step.transcript_id, step.transcript)
        first = self._next
        number = step.transcript_id
        execute = self.connection.executemany
        columns = astuple(made.entries)
        execute(_INSERT_ENTRY, zip(count(first), repeat(number), *columns))
        execute(_INSERT_TEXT, [(first + at, *said) for at, said in made.texts])
        execute(
            "INSERT INTO problems(transcript_id, line, kind, message, recovered) VALUES(?, ?, ?, ?, ?)",
            [(number, *row) for row in made.problems],
        )
        made.sightings.write(self.connection, number, is_new=step.is_new, marks_stale=self._beside is None)
        made.fold.write(self.connection, number, first)
        self._vocabulary.add(said for _at, said in made.texts)
        self._next += len(made.entries)
        self.entries += len(made.entries)
        step.note(self.connection, made)
        if self._beside is None and monotonic() - self._begun > _COMMIT_SECONDS:
            self.commit()

    def _forget(self, number: int) -> None:
        execute = self.connection.execute
        execute(MARK_STALE, (number,))
        mark_unlinked(self.connection)
        for table in OF_ENTRIES:
            of_its = "entry_id IN (SELECT entry_id FROM entries WHERE transcript_id = ?)"
            execute(f"DELETE FROM {table} WHERE {of_its}", (number,))  # noqa: S608 - our own names
        for table in OF_TRANSCRIPT:
            execute(f"DELETE FROM {table} WHERE transcript_id = ?", (number,))  # noqa: S608 - our own names

    def _begin(self) -> None:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")
            self._begun = monotonic()

    def commit(self) -> None:
        """Make what was written so far stay."""
        if self.connection.in_transaction:
            self._vocabulary.commit(self._next)
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'next_entry'", (str(self._next),))
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'generation'", (token_hex(8),))
            self.connection.execute("COMMIT")

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Make all of it stay, and the vocabulary whole."""
        if has_unlinked(self.connection):
            self._begin()
            relink_results(self.connection)
        self.commit()
        with self._vocabulary.finishing(self._beside):
            yield


_TAIL_BYTES = 8 * 1024
_TIMESTAMP_KEY = b'"timestamp":"2'
_TIMESTAMP_LENGTH = 23  # 2026-11-15T12:00:00.000


def last_timestamp(path: str, size: int, mtime_ns: int) -> str:
    """The last time that the end of a transcript names, as text that sorts; when it was written where it names none.

    A copy of a home has lost the times of its files, and they may all be the same.
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
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC).isoformat()[:_TIMESTAMP_LENGTH]
    except (OverflowError, ValueError, OSError):
        return ""
