"""Plan a refresh: which transcripts to read, from which offset, and what to delete first."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from threadline.find import detect_changes, folder_matches, look, make_fingerprint
from threadline.index.index import KNOWN_COLUMNS, IndexedTranscripts, indexed_homes
from threadline.index.state import TranscriptRows, has_cwd
from threadline.index.store import encode_path, storable_text
from threadline.model.homes import (
    ChangeKind,
    Home,
    PathSource,
    Project,
    Transcript,
    TranscriptChange,
    TranscriptChanges,
    TranscriptFingerprint,
    TranscriptStat,
)

_SELECT_PROJECT_IDS = "SELECT transcript_id, project_id FROM transcripts"
_SELECT_PROJECTS = (
    "SELECT p.project_id, h.path, p.folder, p.path, p.path_source FROM projects p JOIN homes h USING(home_id)"
)
_UPDATE_PROJECT = "UPDATE projects SET path = ?, path_source = ? WHERE project_id = ?"


def transcripts_of_uncertain_projects(connection: sqlite3.Connection) -> set[int]:
    """The transcripts of projects whose true path may be another once they go on: none told one that fits so far."""
    projects = {
        number
        for number, _home, folder, path, source in connection.execute(_SELECT_PROJECTS)
        if source != str(PathSource.CWD) or not folder_matches(os.fsdecode(folder), os.fsdecode(path))
    }
    asked = connection.execute(_SELECT_PROJECT_IDS) if projects else ()
    return {number for number, project in asked if project in projects}


def mark_projects_stale(connection: sqlite3.Connection) -> None:
    """Note that the paths are to be renewed: by this refresh or, if it is killed, by the next."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES('unsettled', 'projects')")


def are_projects_stale(connection: sqlite3.Connection) -> bool:
    """Whether that was noted."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'unsettled'").fetchone() is not None


def update_project_paths(connection: sqlite3.Connection, homes: Sequence[Home]) -> None:
    """Write down the true paths as the transcripts tell them now, and forget projects and homes without any."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM projects WHERE project_id NOT IN (SELECT project_id FROM transcripts)")
    connection.execute("DELETE FROM homes WHERE home_id NOT IN (SELECT home_id FROM projects)")
    told = {
        (str(one.home.path), project.folder): project
        for one in indexed_homes(connection, homes)
        for project in one.projects
    }
    for number, home, folder, path, source in connection.execute(_SELECT_PROJECTS).fetchall():
        project = told.get((os.fsdecode(home), os.fsdecode(folder)))
        if project is not None and (project.path, str(project.path_source)) != (path, source):
            now = encode_path(project.path) if project.path is not None else None
            connection.execute(_UPDATE_PROJECT, (now, str(project.path_source), number))
    connection.execute("DELETE FROM meta WHERE name = 'unsettled'")
    connection.execute("COMMIT")


_REREAD_KINDS = frozenset({ChangeKind.TRUNCATED, ChangeKind.REWRITTEN, ChangeKind.REPLACED})
_UPDATE_FINGERPRINT = (
    f"UPDATE transcripts SET ({KNOWN_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE transcript_id = ?"  # noqa: S608 - our own names
)


class ReadStep(Struct, frozen=True, gc=False):
    """One transcript to be read: on from where it was read to (`before` says what was known of it), or all of it.

    `is_renamed` says that its name tells of another session or agent than before, `is_open` that the last line that
    was read has no end, `is_new` that the index has nothing of it.
    """

    transcript: Transcript
    looked: TranscriptStat
    transcript_id: int
    offset: int = 0
    line: int = 1
    before: TranscriptFingerprint | None = None
    has_new_name: bool = False
    waiting: tuple[str, ...] = ()
    state: bytes = b""
    is_open: bool = False
    is_new: bool = False

    @property
    def size(self) -> int:
        """How many bytes of it are to be read."""
        return max(0, self.looked.size - self.offset)

    def note(self, connection: sqlite3.Connection, made: TranscriptRows) -> None:
        """Write down how far it has been read; where it cannot be looked at any more, it is read again next time."""
        before = self.before if not made.was_reread else None
        try:
            known = make_fingerprint(
                self.looked,
                made.read_to,
                before=before,
                last=made.last,
                is_open=made.is_open,
                summed=made.checksum if before is None else None,
            )
        except OSError:
            known = TranscriptFingerprint(self.looked.path, 0, 0, 0, 0, 0, b"", b"", 0, racy=True)
        update_fingerprint(connection, self.transcript_id, known)
        told = (made.lines, made.is_open, self.transcript_id)
        connection.execute("UPDATE transcripts SET lines = ?, is_open = ? WHERE transcript_id = ?", told)


def update_fingerprint(connection: sqlite3.Connection, number: int, known: TranscriptFingerprint) -> None:
    """Write down what is known of a transcript."""
    path, *rest = astuple(known)
    connection.execute(_UPDATE_FINGERPRINT, (encode_path(path), *rest, number))


def stored_names(transcript: Transcript) -> tuple[str | None, str | None]:
    """The session and agent that a transcript's path names, as the index keeps them."""
    return storable_text(transcript.session), storable_text(transcript.agent)


class RefreshPlan(Struct, frozen=True):
    """All that a refresh has to do: what to read, what to forget, and which transcripts are known by another status."""

    steps: list[ReadStep]
    gone: list[int]
    renewed: list[tuple[int, TranscriptFingerprint]]
    moved: list[tuple[int, Transcript]]
    unsure: set[int] = set()

    @property
    def may_change_project_paths(self) -> bool:
        """Whether a project's true path may be another afterwards: transcripts tell it, mostly by their first lines."""
        new = any(
            step.before is None or step.transcript_id in self.unsure or not has_cwd(step.state) for step in self.steps
        )
        return new or bool(self.gone or self.moved)

    @property
    def size(self) -> int:
        """How many bytes are to be read."""
        return sum(step.size for step in self.steps)


def make_plan(
    connection: sqlite3.Connection, homes: Sequence[Home], told: TranscriptChanges | None = None
) -> RefreshPlan:
    """Compare the homes with what the index has of them; `told` is what such a comparison has given just now."""
    told = detect_changes(IndexedTranscripts(connection), homes) if told is None else told
    paths = [one.path for one in told.renewed] + [one.known.path for one in told.changed if one.known is not None]
    numbers = {path: _load_row(connection, path) for path in paths}
    places = PlaceIds(connection)
    renewed = [(numbers[one.path].number, one) for one in told.renewed]
    made = RefreshPlan([], [], renewed, [], transcripts_of_uncertain_projects(connection) if told.changed else set())
    for change in told.changed:
        _add_change(made, change, numbers, places)
    return made


def _load_row(connection: sqlite3.Connection, path: str) -> _TranscriptRow:
    asked = "SELECT transcript_id, lines, session, agent, state, is_open FROM transcripts WHERE path = ?"
    number, lines, session, agent, state, is_open = connection.execute(asked, (encode_path(path),)).fetchone()
    return _TranscriptRow(number, lines, (session, agent), state, bool(is_open))


class _TranscriptRow(NamedTuple):
    """A transcript's row: its number, how many lines of it were read, and the session and agent that its path names."""

    number: int
    lines: int
    named: tuple[str | None, str | None]
    state: bytes = b""
    is_open: bool = False


def _add_change(made: RefreshPlan, change: TranscriptChange, rows: dict[str, _TranscriptRow], places: PlaceIds) -> None:
    known, transcript, looked = change.known, change.transcript, change.looked
    row = rows[known.path] if known is not None else _TranscriptRow(0, 0, (None, None))
    if change.kind is ChangeKind.VANISHED:
        made.gone.append(row.number)
    elif transcript is None or looked is None:
        return  # the machine refuses for now: its rows stay as they were
    elif change.kind is ChangeKind.NEW:
        made.steps.append(ReadStep(transcript, looked, places.new(transcript, looked.path), is_new=True))
    elif change.kind is ChangeKind.MOVED and row.named != stored_names(transcript):
        # Rows leave out what their transcript's name says, and now it says something else.
        made.steps.append(ReadStep(transcript, looked, row.number, has_new_name=True))
    elif change.kind in _REREAD_KINDS:
        made.steps.append(ReadStep(transcript, looked, row.number))
    else:
        if change.kind is ChangeKind.MOVED:
            made.moved.append((row.number, transcript))
        calls = tuple(places.waiting.get(row.number, ()))
        made.steps.append(
            ReadStep(
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


class PlaceIds:
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
            (encode_path(path), home, project, str(transcript.kind), *stored_names(transcript)),
        )
        return made.lastrowid or 0

    def of(self, transcript: Transcript) -> tuple[int, int]:
        """The numbers of a transcript's home and project."""
        path = str(transcript.home.path)
        if path not in self._homes:
            self._homes[path] = self._insert("homes", (encode_path(path),))
        home = self._homes[path]
        if (home, transcript.folder) not in self._projects:
            found = self._project(transcript)
            told = (found.path, str(found.path_source)) if found is not None else (None, "unknown")
            self._projects[home, transcript.folder] = self._insert(
                "projects", (home, encode_path(transcript.folder), *told)
            )
        return home, self._projects[home, transcript.folder]

    def _insert(self, table: str, values: Iterable[object]) -> int:
        row = (None, *values)
        made = self._connection.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)
        return made.lastrowid or 0

    def _project(self, transcript: Transcript) -> Project | None:
        """The project of a folder that is new: its true path takes a closer look at the home."""
        home = transcript.home
        if home not in self._found:
            self._found[home] = {project.folder: project for project in look(home, side_files=False).projects}
        return self._found[home].get(transcript.folder)
