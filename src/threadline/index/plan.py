"""Plan: which transcripts a refresh has to read, from where on, and what is to be taken out before."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from threadline.find.changes import changes
from threadline.find.looking import look
from threadline.find.seen import seen
from threadline.index.known import KNOWN, Remembered
from threadline.index.projects import unsure
from threadline.index.rows import Rows
from threadline.index.state import tells_cwd
from threadline.index.texts import as_text, stored
from threadline.model.change import Change, ChangeKind, Changes, Known, Looked
from threadline.model.found import Home, Project, Transcript

_AGAIN = frozenset({ChangeKind.TRUNCATED, ChangeKind.REWRITTEN, ChangeKind.REPLACED})
_RENEW = f"UPDATE transcripts SET ({KNOWN}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE transcript_id = ?"  # noqa: S608 - our own names


class Step(Struct, frozen=True, gc=False):
    """One transcript to be read: on from where it was read to (`before` says what was known of it), or all of it.

    `is_renamed` says that its name tells of another session or agent than before, `is_open` that the last line that
    was read has no end, `is_new` that the index has nothing of it.
    """

    transcript: Transcript
    looked: Looked
    transcript_id: int
    offset: int = 0
    line: int = 1
    before: Known | None = None
    is_renamed: bool = False
    waiting: tuple[str, ...] = ()
    state: bytes = b""
    is_open: bool = False
    is_new: bool = False

    @property
    def size(self) -> int:
        """How many bytes of it are to be read."""
        return max(0, self.looked.size - self.offset)

    def note(self, connection: sqlite3.Connection, made: Rows) -> None:
        """Write down how far it has been read; where it cannot be looked at any more, it is read again next time."""
        before = self.before if not made.is_anew else None
        try:
            known = seen(
                self.looked,
                made.read_to,
                before=before,
                last=made.last,
                is_open=made.is_open,
                summed=made.checksum if before is None else None,
            )
        except OSError:
            known = Known(self.looked.path, 0, 0, 0, 0, 0, b"", b"", 0, racy=True)
        renew(connection, self.transcript_id, known)
        told = (made.lines, made.is_open, self.transcript_id)
        connection.execute("UPDATE transcripts SET lines = ?, is_open = ? WHERE transcript_id = ?", told)


def renew(connection: sqlite3.Connection, number: int, known: Known) -> None:
    """Write down what is known of a transcript."""
    path, *rest = astuple(known)
    connection.execute(_RENEW, (stored(path), *rest, number))


def named(transcript: Transcript) -> tuple[str | None, str | None]:
    """The session and agent that a transcript's path names, as the index keeps them."""
    return as_text(transcript.session), as_text(transcript.agent)


class Plan(Struct, frozen=True):
    """All that a refresh has to do: what to read, what to forget, and which transcripts are known by another status."""

    steps: list[Step]
    gone: list[int]
    renewed: list[tuple[int, Known]]
    moved: list[tuple[int, Transcript]]
    unsure: set[int] = set()

    @property
    def may_move_projects(self) -> bool:
        """Whether a project's true path may be another afterwards: transcripts tell it, mostly by their first lines."""
        new = any(
            step.before is None or step.transcript_id in self.unsure or not tells_cwd(step.state) for step in self.steps
        )
        return new or bool(self.gone or self.moved)

    @property
    def size(self) -> int:
        """How many bytes are to be read."""
        return sum(step.size for step in self.steps)


def plan(connection: sqlite3.Connection, homes: Sequence[Home], told: Changes | None = None) -> Plan:
    """Compare the homes with what the index has of them; `told` is what such a comparison has given just now."""
    told = changes(Remembered(connection), homes) if told is None else told
    paths = [one.path for one in told.renewed] + [one.known.path for one in told.changed if one.known is not None]
    numbers = {path: _row(connection, path) for path in paths}
    places = Places(connection)
    renewed = [(numbers[one.path].number, one) for one in told.renewed]
    made = Plan([], [], renewed, [], unsure(connection) if told.changed else set())
    for change in told.changed:
        _add(made, change, numbers, places)
    return made


def _row(connection: sqlite3.Connection, path: str) -> _Row:
    asked = "SELECT transcript_id, lines, session, agent, state, is_open FROM transcripts WHERE path = ?"
    number, lines, session, agent, state, is_open = connection.execute(asked, (stored(path),)).fetchone()
    return _Row(number, lines, (session, agent), state, bool(is_open))


class _Row(NamedTuple):
    """A transcript's row: its number, how many lines of it were read, and the session and agent that its path names."""

    number: int
    lines: int
    named: tuple[str | None, str | None]
    state: bytes = b""
    is_open: bool = False


def _add(made: Plan, change: Change, rows: dict[str, _Row], places: Places) -> None:
    known, transcript, looked = change.known, change.transcript, change.looked
    row = rows[known.path] if known is not None else _Row(0, 0, (None, None))
    if change.kind is ChangeKind.VANISHED:
        made.gone.append(row.number)
    elif transcript is None or looked is None:
        return  # the machine refuses for now: its rows stay as they were
    elif change.kind is ChangeKind.NEW:
        made.steps.append(Step(transcript, looked, places.new(transcript, looked.path), is_new=True))
    elif change.kind is ChangeKind.MOVED and row.named != named(transcript):
        # Rows leave out what their transcript's name says, and now it says something else.
        made.steps.append(Step(transcript, looked, row.number, is_renamed=True))
    elif change.kind in _AGAIN:
        made.steps.append(Step(transcript, looked, row.number))
    else:
        if change.kind is ChangeKind.MOVED:
            made.moved.append((row.number, transcript))
        calls = tuple(places.waiting.get(row.number, ()))
        made.steps.append(
            Step(
                transcript,
                looked,
                row.number,
                change.read_from,
                row.lines + 1,
                known,
                waiting=calls,
                state=row.state,
                is_open=row.is_open,
            )
        )


class Places:
    """Homes, projects and transcripts, each with its number in the index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._homes = {
            os.fsdecode(path): number for path, number in connection.execute("SELECT path, home_id FROM homes")
        }
        self._projects: dict[tuple[int, str], int] = {
            (home, os.fsdecode(folder)): number
            for home, folder, number in connection.execute("SELECT home_id, folder, project_id FROM projects")
        }
        self.waiting: dict[int, list[str]] = {}
        for number, call in connection.execute("SELECT transcript_id, call FROM waiting"):
            self.waiting.setdefault(number, []).append(call)
        self._found: dict[Home, dict[str, Project]] = {}

    def new(self, transcript: Transcript, path: str) -> int:
        """The number of a transcript that is new."""
        home, project = self.of(transcript)
        made = self._connection.execute(
            "INSERT INTO transcripts VALUES(NULL, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, x'', x'', 0, 1, x'')",
            (stored(path), home, project, str(transcript.kind), *named(transcript)),
        )
        return made.lastrowid or 0

    def of(self, transcript: Transcript) -> tuple[int, int]:
        """The numbers of a transcript's home and project."""
        path = str(transcript.home.path)
        if path not in self._homes:
            self._homes[path] = self._insert("homes", (stored(path),))
        home = self._homes[path]
        if (home, transcript.folder) not in self._projects:
            found = self._project(transcript)
            told = (found.path, str(found.path_source)) if found is not None else (None, "unknown")
            self._projects[home, transcript.folder] = self._insert("projects", (home, stored(transcript.folder), *told))
        return home, self._projects[home, transcript.folder]

    def _insert(self, table: str, values: Iterable[object]) -> int:
        row = (None, *values)
        made = self._connection.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)
        return made.lastrowid or 0

    def _project(self, transcript: Transcript) -> Project | None:
        """The project of a folder that is new: its true path takes a closer look at the home."""
        home = transcript.home
        if home not in self._found:
            self._found[home] = {one.folder: one for one in look(home, side_files=False).projects}
        return self._found[home].get(transcript.folder)
