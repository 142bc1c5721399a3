"""Plan a refresh: which transcripts to read, from which offset, and what to delete first."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from threadline.find import SessionOwners, detect_changes, folder_matches, look, make_fingerprint
from threadline.index.index import IndexedTranscripts, indexed_homes
from threadline.index.rows.state import TranscriptRows, has_cwd
from threadline.index.store import KNOWN_COLUMNS, decode_path, encode_path, storable_text
from threadline.model.homes import (
    ChangeKind,
    Found,
    Home,
    PathSource,
    Project,
    Transcript,
    TranscriptChange,
    TranscriptChanges,
    TranscriptFingerprint,
    TranscriptStat,
)

_SELECT_PROJECT_IDS = "SELECT transcript_id, folder_id FROM transcripts"
_SELECT_PROJECTS = (
    "SELECT p.project_id, h.path, p.folder, p.path, p.path_source FROM projects p JOIN homes h USING(home_id)"
)
_SELECT_NAMED_SESSIONS = """SELECT t.path, a.session FROM transcripts t JOIN agent_rows a USING(transcript_id)
    WHERE t.kind <> 'main' AND t.session IS NULL"""
_SELECT_TRANSCRIPT_PROJECTS = "SELECT path, project_id, folder_id FROM transcripts"
_UPDATE_PROJECT = "UPDATE projects SET path = ?, path_source = ? WHERE project_id = ?"


def transcripts_of_uncertain_projects(connection: sqlite3.Connection) -> set[int]:
    """The transcripts of projects whose real path may change as they grow: so far, none names a path that fits."""
    projects = {
        number
        for number, _home, folder, path, source in connection.execute(_SELECT_PROJECTS)
        if source != str(PathSource.CWD) or not folder_matches(decode_path(folder), decode_path(path))
    }
    rows = connection.execute(_SELECT_PROJECT_IDS) if projects else ()
    return {number for number, project in rows if project in projects}


def mark_projects_stale(connection: sqlite3.Connection) -> None:
    """Note that project paths must be updated: by this refresh or, if it is killed, by the next."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES('unsettled', 'projects')")


def are_projects_stale(connection: sqlite3.Connection) -> bool:
    """Whether project paths must be updated."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'unsettled'").fetchone() is not None


def update_project_paths(connection: sqlite3.Connection, homes: Sequence[Home]) -> None:
    """Store the real paths that the transcripts name now. Delete projects and homes without transcripts."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM projects WHERE project_id NOT IN (SELECT folder_id FROM transcripts)")
    connection.execute("DELETE FROM homes WHERE home_id NOT IN (SELECT home_id FROM projects)")
    content = indexed_homes(connection, homes)
    projects = {(str(found.home.path), project.folder): project for found in content for project in found.projects}
    for number, home, folder, path, source in connection.execute(_SELECT_PROJECTS).fetchall():
        project = projects.get((decode_path(home), decode_path(folder)))
        if project is not None and (project.path, str(project.path_source)) != (path, source):
            new_path = encode_path(project.path) if project.path is not None else None
            connection.execute(_UPDATE_PROJECT, (new_path, str(project.path_source), number))
    _assign_projects(connection, content)
    connection.execute("DELETE FROM meta WHERE name = 'unsettled'")
    connection.execute("COMMIT")


def _assign_projects(connection: sqlite3.Connection, content: Sequence[Found]) -> None:
    """Store the project of each agent's transcript: that of its session, by the rule of `find.SessionOwners`."""
    named = dict(connection.execute(_SELECT_NAMED_SESSIONS))
    owners = SessionOwners(
        (transcript for found in content for transcript in found.transcripts),
        lambda agent: named.get(encode_path(str(agent.path))),
    )
    transcripts = {
        encode_path(str(transcript.path)): transcript for found in content for transcript in found.transcripts
    }
    rows = connection.execute(_SELECT_TRANSCRIPT_PROJECTS).fetchall()
    folders = {path: folder for path, _project, folder in rows}
    for path, project, folder in rows:
        transcript = transcripts.get(path)
        main = owners.main_of(transcript) if transcript is not None else None
        own = folders.get(encode_path(str(main.path)), folder) if main is not None else folder
        if own != project:
            connection.execute("UPDATE transcripts SET project_id = ? WHERE path = ?", (own, path))


_REREAD_KINDS = frozenset({ChangeKind.TRUNCATED, ChangeKind.REWRITTEN, ChangeKind.REPLACED})
_UPDATE_FINGERPRINT = (
    f"UPDATE transcripts SET ({KNOWN_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE transcript_id = ?"  # noqa: S608 - our own names
)


class ReadStep(Struct, frozen=True, gc=False):
    """A transcript to read: from the end of the previous read, which `before` describes, or from its start.

    `has_new_name` says that its path names another session or agent than before. `is_open` says that the last line that
    was read has no newline. `is_new` says that the index has no row of it.
    """

    transcript: Transcript
    stat: TranscriptStat
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
        """How many bytes of it have to be read."""
        return max(0, self.stat.size - self.offset)

    def store_fingerprint(self, connection: sqlite3.Connection, rows: TranscriptRows) -> None:
        """Store how far it has been read. If it could not be read, or not be opened now, it is read again next time."""
        fingerprint = TranscriptFingerprint(self.stat.path, 0, 0, 0, 0, 0, b"", b"", 0, racy=True)
        before = self.before if not rows.was_reread else None
        if rows.problem is None:
            with suppress(OSError):
                fingerprint = make_fingerprint(
                    self.stat,
                    rows.read_to,
                    before=before,
                    last=rows.last,
                    is_open=rows.is_open,
                    summed=rows.checksum if before is None else None,
                )
        update_fingerprint(connection, self.transcript_id, fingerprint)
        values = (rows.lines, rows.is_open, self.transcript_id)
        connection.execute("UPDATE transcripts SET lines = ?, is_open = ? WHERE transcript_id = ?", values)


def update_fingerprint(connection: sqlite3.Connection, number: int, fingerprint: TranscriptFingerprint) -> None:
    """Store the fingerprint of a transcript."""
    path, *rest = astuple(fingerprint)
    connection.execute(_UPDATE_FINGERPRINT, (encode_path(path), *rest, number))


def stored_names(transcript: Transcript) -> tuple[str | None, str | None]:
    """Return the session and agent that a transcript's path names, as the index stores them."""
    return storable_text(transcript.session), storable_text(transcript.agent)


class RefreshPlan(Struct, frozen=True):
    """What a refresh has to do.

    `steps` are the transcripts to read, `gone` those whose rows are deleted, `touched` those with a new status but the
    same lines, and `moved` those with a new path. `uncertain` are those in projects whose real path is uncertain.
    """

    steps: list[ReadStep]
    gone: list[int]
    touched: list[tuple[int, TranscriptFingerprint]]
    moved: list[tuple[int, Transcript]]
    uncertain: set[int] = set()

    @property
    def may_change_project_paths(self) -> bool:
        """Whether a project's real path may change: it is taken from transcripts, mostly from their first lines."""
        new = any(
            step.before is None or step.transcript_id in self.uncertain or not has_cwd(step.state)
            for step in self.steps
        )
        return new or bool(self.gone or self.moved)

    @property
    def size(self) -> int:
        """How many bytes have to be read."""
        return sum(step.size for step in self.steps)


def make_plan(
    connection: sqlite3.Connection, homes: Sequence[Home], changes: TranscriptChanges | None = None
) -> RefreshPlan:
    """Plan what to read. `changes` is the result of comparing the homes with the index, if that was just done."""
    changes = detect_changes(IndexedTranscripts(connection), homes) if changes is None else changes
    paths = [fingerprint.path for fingerprint in changes.touched]
    paths += [change.before.path for change in changes.changed if change.before is not None]
    rows = {path: _load_row(connection, path) for path in paths}
    places = PlaceIds(connection)
    touched = [(rows[fingerprint.path].number, fingerprint) for fingerprint in changes.touched]
    uncertain = transcripts_of_uncertain_projects(connection) if changes.changed else set[int]()
    plan = RefreshPlan([], [], touched, [], uncertain)
    waiting = _waiting_calls(connection)
    for change in changes.changed:
        _add_change(plan, change, rows, places, waiting)
    return plan


def _waiting_calls(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """The calls for web searches whose results are not written yet, by the number of their transcript."""
    waiting: dict[int, tuple[str, ...]] = {}
    for number, call in connection.execute("SELECT transcript_id, call FROM waiting"):
        waiting[number] = (*waiting.get(number, ()), call)
    return waiting


def _load_row(connection: sqlite3.Connection, path: str) -> _TranscriptRow:
    select = "SELECT transcript_id, lines, session, agent, state, is_open FROM transcripts WHERE path = ?"
    number, lines, session, agent, state, is_open = connection.execute(select, (encode_path(path),)).fetchone()
    return _TranscriptRow(number, lines, (session, agent), state, bool(is_open))


class _TranscriptRow(NamedTuple):
    """A transcript's row: its number, the number of lines read, and the session and agent that its path names."""

    number: int
    lines: int
    names: tuple[str | None, str | None]
    state: bytes = b""
    is_open: bool = False


def _add_change(
    plan: RefreshPlan,
    change: TranscriptChange,
    rows: dict[str, _TranscriptRow],
    places: PlaceIds,
    waiting: dict[int, tuple[str, ...]],
) -> None:
    before, transcript, stat = change.before, change.transcript, change.stat
    row = rows[before.path] if before is not None else _TranscriptRow(0, 0, (None, None))
    if change.kind is ChangeKind.VANISHED:
        plan.gone.append(row.number)
    elif transcript is None or stat is None:
        return  # it cannot be read now; its rows stay as they are
    elif change.kind is ChangeKind.NEW:
        plan.steps.append(ReadStep(transcript, stat, places.new(transcript, stat.path), is_new=True))
    elif change.kind is ChangeKind.MOVED and row.names != stored_names(transcript):
        # Rows omit what the transcript's path says, and now it says something else.
        plan.steps.append(ReadStep(transcript, stat, row.number, has_new_name=True))
    elif change.kind in _REREAD_KINDS:
        plan.steps.append(ReadStep(transcript, stat, row.number))
    else:
        if change.kind is ChangeKind.MOVED:
            plan.moved.append((row.number, transcript))
        plan.steps.append(
            ReadStep(
                transcript,
                stat,
                row.number,
                change.read_from,
                row.lines + 1,
                before,
                waiting=waiting.get(row.number, ()),
                state=row.state,
                is_open=row.is_open,
            )
        )


class PlaceIds:
    """The numbers of homes, projects and transcripts. New ones are inserted.

    `found` are the homes that were listed already.
    """

    def __init__(self, connection: sqlite3.Connection, found: Iterable[Found] = ()) -> None:
        self._connection = connection
        self._homes = {
            decode_path(path): number for path, number in connection.execute("SELECT path, home_id FROM homes")
        }
        self._projects: dict[tuple[int, str], int] = {
            (home, decode_path(folder)): number
            for home, folder, number in connection.execute("SELECT home_id, folder, project_id FROM projects")
        }
        self._projects_by_folder = {home.home: _projects_by_folder(home) for home in found}

    def new(self, transcript: Transcript, path: str) -> int:
        """The number of a new transcript."""
        home, project = self.of(transcript)
        cursor = self._connection.execute(
            "INSERT INTO transcripts VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, x'', x'', 0, 1, x'')",
            (encode_path(path), home, project, project, str(transcript.kind), *stored_names(transcript)),
        )
        return cursor.lastrowid or 0

    def of(self, transcript: Transcript) -> tuple[int, int]:
        """The numbers of a transcript's home and project."""
        path = str(transcript.home.path)
        if path not in self._homes:
            self._homes[path] = self._insert("homes", (encode_path(path),))
        home = self._homes[path]
        if (home, transcript.folder) not in self._projects:
            project = self._project(transcript)
            path_and_source = (project.path, str(project.path_source)) if project is not None else (None, "unknown")
            self._projects[home, transcript.folder] = self._insert(
                "projects", (home, encode_path(transcript.folder), *path_and_source)
            )
        return home, self._projects[home, transcript.folder]

    def _insert(self, table: str, values: Iterable[object]) -> int:
        row = (None, *values)
        cursor = self._connection.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)
        return cursor.lastrowid or 0

    def _project(self, transcript: Transcript) -> Project | None:
        """The project of a new folder. To find its real path, the home is listed."""
        home = transcript.home
        if home not in self._projects_by_folder:
            self._projects_by_folder[home] = _projects_by_folder(look(home, side_files=False))
        return self._projects_by_folder[home].get(transcript.folder)


def _projects_by_folder(found: Found) -> dict[str, Project]:
    return {project.folder: project for project in found.projects}
