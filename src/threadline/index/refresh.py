"""Refresh: what changed in the transcripts is read and written to the index, and nothing else.

Each transcript's rows and how far it was read are written in one transaction, so that a refresh may be killed at any
point: the next one goes on where the last transaction ended. Charges depend on all transcripts; their keys are noted
as stale in that same transaction, and made anew at the end, or by the next refresh.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from time import monotonic

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.index.charging import charge_stale
from threadline.index.known import Told, generation
from threadline.index.order import last_told
from threadline.index.plan import Places, Plan, Step, named, plan, renew
from threadline.index.projects import are_unsettled, renew_projects, unsettle
from threadline.index.rows import Reading, Rows, rows
from threadline.index.schema import FIELDS, OF_ENTRIES, OF_TRANSCRIPT
from threadline.index.sighted import STALE_OF
from threadline.index.store import NEW, alone, open_alone, open_to_make, remove, remove_older
from threadline.index.vocabulary import Noting
from threadline.model.found import Home, Transcript
from threadline.survey.crew import can_fork, crew
from threadline.survey.each import cores

_WORTH_WORKERS = 4 * 1024 * 1024
_COMMIT_EVERY = 2.0  # seconds: how much a killed refresh may lose
_TEXT = f"INSERT INTO text(rowid, {', '.join(FIELDS)}) VALUES({', '.join('?' * (len(FIELDS) + 1))})"
_CLOSED = "UPDATE entries SET length = length + 1 WHERE transcript_id = ? AND line = ?"
_ENTRY = "INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Refreshed(Struct, frozen=True):
    """What a refresh did: how many transcripts it read, how many bytes and entries of them, and how many were gone."""

    transcripts: int = 0
    bytes: int = 0
    entries: int = 0
    gone: int = 0
    charges: int = 0


def refresh(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
    told: Told | None = None,
) -> Refreshed:
    """Bring the index up to date with the homes. `planned` is told how many bytes are to be read, `progress` each part.

    `told` is what a look at the homes has given just now: they are not looked through again.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: it is damaged, or may not be written.
    """
    with alone(index):
        if not index.exists():  # not asked before: another may just have made it
            return _made(index, homes, jobs, progress, planned)
        with open_alone(index) as connection:
            return _refreshed(_Writing(connection), homes, jobs, progress, planned, told)


def rebuild(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> Refreshed:
    """Make the index anew, beside the old one, which answers until this one is whole; damaged or not, it then goes.

    The arguments are those of `refresh`.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: its folder may not be written.
    """
    with alone(index):
        return _made(index, homes, jobs, progress, planned)


def _made(
    index: Path,
    homes: Sequence[Home],
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
) -> Refreshed:
    """Make the index beside the old one, and put it in its place."""
    new = index.with_name(f"{index.name}{NEW}")
    with open_to_make(new) as connection:
        done = _refreshed(_Writing(connection, beside=new), homes, jobs, progress, planned)
    try:
        # The old file goes first: a log that outlives its index is thrown away, but one that finds another in its
        # place would be played back into it.
        remove(index)
        new.replace(index)
        remove_older(index)
    except OSError as error:
        raise Unreadable(f"The index {str(index)!r} cannot be written: {error}.") from None
    return done


def _refreshed(  # noqa: PLR0917 - as they were given
    writing: _Writing,
    homes: Sequence[Home],
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
    told: Told | None = None,
) -> Refreshed:
    connection = writing.connection
    connection.execute("BEGIN IMMEDIATE")
    is_so = told is not None and told.generation == generation(connection)  # nobody has written since
    work = plan(connection, homes, told.changes if told is not None and is_so else None)
    if planned is not None:
        planned(work.size)
    writing.forget(work)
    for step, made in _read(work.steps, jobs):
        writing.add(step, made)
        if progress is not None:
            progress(step.size)
    with writing.finishing():
        if are_unsettled(connection):
            renew_projects(connection, homes)
        charged = charge_stale(connection, homes)
    return Refreshed(len(work.steps), work.size, writing.entries, len(work.gone), charged)


def _read(steps: Sequence[Step], jobs: int | None) -> Iterator[tuple[Step, Rows]]:
    """The rows of every transcript that is to be read; on all cores where that pays."""
    workers = (jobs or cores()) - 1
    if workers < 1 or sum(step.size for step in steps) < _WORTH_WORKERS or not can_fork():
        for step in steps:
            yield step, _rows(step)
        return
    for some, made in crew(_all, list(_batches(steps)), workers):
        yield from zip(some, made, strict=True)


def _rows(step: Step) -> Rows:
    return rows(Reading(step.transcript, step.offset, step.line, step.state, step.waiting, step.is_open))


def _all(steps: list[Step]) -> list[Rows]:
    return [_rows(step) for step in steps]


_BATCH_BYTES = 1024 * 1024
_BATCH_FILES = 50


def _age(step: Step) -> str:
    return last_told(step.looked.path, step.looked.size, step.looked.mtime_ns)


def _batches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Some transcripts at a time, the oldest first: of words that many entries have, those with high numbers count."""
    batch: list[Step] = []
    size = 0
    for step in sorted(steps, key=_age):
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


class _Writing:
    """The one that writes, transcript by transcript, committing every now and then.

    One that is made `beside`, and that nobody sees before it is whole, is written all at once.
    """

    def __init__(self, connection: sqlite3.Connection, *, beside: Path | None = None) -> None:
        self.connection = connection
        self._beside = beside
        self._next = _next_entry(connection)
        self._begun = 0.0
        self._vocabulary = Noting(connection)
        self.entries = 0

    def forget(self, work: Plan) -> None:
        """Take out what transcripts that are gone, or that are to be read anew, have given."""
        self._begin()
        for number in work.gone:
            self._forget(number)
            self.connection.execute("DELETE FROM transcripts WHERE transcript_id = ?", (number,))
        for number, known in work.renewed:
            renew(self.connection, number, known)
        for number, transcript in work.moved:
            self._move(number, transcript)
        if work.may_move_projects:
            unsettle(self.connection)
        self.commit()

    def _move(self, number: int, transcript: Transcript) -> None:
        """The same lines lie elsewhere: what they cost may be another project's."""
        home, project = Places(self.connection).of(transcript)
        self.connection.execute(
            "UPDATE transcripts SET (home_id, project_id, kind, session, agent) = (?, ?, ?, ?, ?)"
            " WHERE transcript_id = ?",
            (home, project, str(transcript.kind), *named(transcript), number),
        )
        self.connection.execute(STALE_OF, (number,))

    def add(self, step: Step, made: Rows) -> None:
        """The rows of one transcript, and how far it has been read."""
        self._begin()
        if (step.before is None and not step.is_new) or made.is_anew:
            self._forget(step.transcript_id)
        elif made.is_closed:
            self.connection.execute(_CLOSED, (step.transcript_id, step.line - 1))
        if step.is_renamed:  # not before: until its rows are made anew, they go by the old name
            self._move(step.transcript_id, step.transcript)
        first = self._next
        number = step.transcript_id
        execute = self.connection.executemany
        execute(_ENTRY, [(first + at, number, *row) for at, row in enumerate(made.entries)])
        execute(_TEXT, [(first + at, *said) for at, said in made.texts])
        execute(
            "INSERT INTO problems(transcript_id, line, kind, message, recovered) VALUES(?, ?, ?, ?, ?)",
            [(number, *row) for row in made.problems],
        )
        made.sighted.write(self.connection, number)
        made.folded.write(self.connection, number, first)
        self._vocabulary.add(said for _at, said in made.texts)
        self._next += len(made.entries)
        self.entries += len(made.entries)
        step.note(self.connection, made)
        if self._beside is None and monotonic() - self._begun > _COMMIT_EVERY:
            self.commit()

    def _forget(self, number: int) -> None:
        execute = self.connection.execute
        execute(STALE_OF, (number,))
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
        self.commit()
        with self._vocabulary.finishing(self._beside):
            yield
