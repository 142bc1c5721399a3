"""Store sessions in a SQLite file: the lines of transcripts, in the order in which they came.

The file can be copied like any other while nothing writes to it. `find` copies its transcripts into the cache folder,
so that every command reads it as a home.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

from threadline.errors import BadQuery, Unreadable
from threadline.files import make_private_folders, read_file
from threadline.locks import create_database_file
from threadline.store.keys import (
    METADATA,
    Entry,
    SessionKey,
    StoredSession,
    StoredSummary,
    check_name,
    encode_entry,
    load_fold,
    transcript_path,
)

_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})
_HEADER = b"SQLite format 3\0"
_TIMEOUT_SECONDS = 30.0
_APPLICATION_ID = 0x7472_646C
_SCHEMA = """
CREATE TABLE IF NOT EXISTS transcripts(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    subpath TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    metadata BLOB,
    summary BLOB,
    summarized INTEGER NOT NULL DEFAULT 0,
    UNIQUE(project, session, subpath)
);
CREATE TABLE IF NOT EXISTS lines(
    id INTEGER PRIMARY KEY,
    transcript INTEGER NOT NULL REFERENCES transcripts(id) ON DELETE CASCADE,
    uuid TEXT,
    line BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS lines_by_uuid ON lines(transcript, uuid) WHERE uuid IS NOT NULL;
CREATE INDEX IF NOT EXISTS lines_by_transcript ON lines(transcript, id);
"""
_SELECT_TRANSCRIPT = "SELECT id, metadata FROM transcripts WHERE project = ? AND session = ? AND subpath = ?"


class StoredTranscript(NamedTuple):
    """A transcript in a SQLite file: its path below `projects`, and its version, which ends with the time in ms."""

    path: str
    version: tuple[int, int, int]
    metadata: bytes | None
    read_lines: Callable[[], Iterator[bytes]]


def is_database(path: Path) -> bool:
    """Whether a path is that of a SQLite file, which may not exist yet."""
    return path.is_file() or (path.suffix.lower() in _SUFFIXES and not path.is_dir())


def has_sqlite_header(path: Path) -> bool:
    """Whether a file is a SQLite database of any program."""
    try:
        return read_file(path, follow_symlinks=True, limit=len(_HEADER)).startswith(_HEADER)
    except OSError:
        return False


class SessionDatabase:
    """The sessions in a SQLite file. Several processes may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, key: SessionKey, entries: list[Entry]) -> None:
        """Add entries to a transcript, except those that it contains."""
        values = _key_values(key)
        rows = [(_uuid(entry), encode_entry(entry)) for entry in entries if not _is_metadata(entry, key)]
        metadata = [
            encode_entry({name: value for name, value in entry.items() if name != "type"})
            for entry in entries
            if _is_metadata(entry, key)
        ]
        if not entries:
            return
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO transcripts(project, session, subpath, modified_ms) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET modified_ms = max(modified_ms + 1, excluded.modified_ms)",
                (*values, time_ns() // 1_000_000),
            )
            number, _metadata = connection.execute(_SELECT_TRANSCRIPT, values).fetchone()
            connection.executemany(
                "INSERT OR IGNORE INTO lines(transcript, uuid, line) VALUES (?, ?, ?)",
                ((number, uuid, line) for uuid, line in rows),
            )
            if metadata:  # the last one counts
                connection.execute("UPDATE transcripts SET metadata = ? WHERE id = ?", (metadata[-1], number))

    def load(self, key: SessionKey) -> list[Any] | None:
        """Return the entries of a transcript; None if there is none."""
        values = _key_values(key)
        with self._reading() as connection:
            row = connection.execute(_SELECT_TRANSCRIPT, values).fetchone()
            if row is None:
                return None
            number, metadata = row
            entries: list[Any] = [json.loads(line) for line in _read_lines(connection, number)]
        return [*entries, {**json.loads(metadata), "type": METADATA}] if metadata is not None else entries

    def list_sessions(self, project_key: str) -> list[StoredSession]:
        """List the sessions of a project."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT session, modified_ms FROM transcripts WHERE project = ? AND subpath = '' ORDER BY session",
                (check_name(project_key),),
            )
            return [{"session_id": session, "mtime": modified} for session, modified in rows]

    def list_session_summaries(self, project_key: str) -> list[StoredSummary]:
        """List what the SDK keeps about each session of a project. Only what is new since the last time is read."""
        if not self.list_sessions(project_key):
            return []
        fold = load_fold()
        summaries: list[StoredSummary] = []
        with self._writing() as connection:
            rows = connection.execute(
                "SELECT id, session, modified_ms, summary, summarized FROM transcripts"
                " WHERE project = ? AND subpath = '' ORDER BY session",
                (project_key,),
            ).fetchall()
            for number, session, modified, stored, summarized in rows:
                summary = json.loads(stored) if stored is not None else None
                new = connection.execute(
                    "SELECT id, line FROM lines WHERE transcript = ? AND id > ? ORDER BY id", (number, summarized)
                ).fetchall()
                if new or summary is None:
                    key = {"project_key": project_key, "session_id": session}
                    summary = fold(summary, key, [json.loads(line) for _id, line in new])
                    connection.execute(
                        "UPDATE transcripts SET summary = ?, summarized = ? WHERE id = ?",
                        (json.dumps(summary), new[-1][0] if new else summarized, number),
                    )
                summaries.append({"session_id": session, "mtime": modified, "data": summary["data"]})
        return summaries

    def list_subkeys(self, key: SessionKey) -> list[str]:
        """List the subpaths of a session's other transcripts."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT subpath FROM transcripts AS t WHERE project = ? AND session = ? AND subpath != ''"
                " AND EXISTS (SELECT 1 FROM lines WHERE transcript = t.id) ORDER BY subpath",
                _key_values(key)[:2],
            )
            return [subpath for (subpath,) in rows]

    def delete(self, key: SessionKey) -> None:
        """Delete a transcript; without a subpath, everything that belongs to the session."""
        values = _key_values(key)
        if not self.path.is_file():
            return
        with self._writing() as connection:
            if values[2]:
                connection.execute("DELETE FROM transcripts WHERE project = ? AND session = ? AND subpath = ?", values)
            else:
                connection.execute("DELETE FROM transcripts WHERE project = ? AND session = ?", values[:2])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection with a transaction, which ends with the block. Without an error, it is on disk then."""
        make_private_folders(self.path.absolute().parent)
        if self.path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self.path))
        create_database_file(self.path)
        with _translated_errors(self.path), closing(_connect(self.path, "rw")) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
            if connection.execute("PRAGMA application_id").fetchone() != (_APPLICATION_ID,):
                self._create_tables(connection)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,) and not _has_tables(connection):
            raise Unreadable(f"{str(self.path)!r} belongs to another program. Name another file.")
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID}; COMMIT;")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file, or an empty store if there is none."""
        with _translated_errors(self.path), closing(_connect_to_read(self.path)) as connection:
            connection.execute("BEGIN")
            yield connection


@contextmanager
def read_transcripts(path: Path) -> Iterator[list[StoredTranscript] | None]:
    """The transcripts in a SQLite file, readable until the block ends; None if it is not a session store.

    The file may come from somebody else: it is only read, names that lead out of a home are left out, and values may
    have any type.

    Raises:
        Unreadable: it is damaged.
    """
    with _translated_errors(path), closing(_connect(path, "ro")) as connection:
        connection.execute("BEGIN")
        if not _has_tables(connection):
            yield None
            return
        rows = connection.execute(
            "SELECT t.id, project, session, subpath, CAST(modified_ms AS INTEGER), CAST(metadata AS BLOB),"
            " coalesce(max(l.id), 0)"
            " FROM transcripts AS t LEFT JOIN lines AS l ON l.transcript = t.id GROUP BY t.id"
        ).fetchall()
        transcripts = []
        for number, project, session, subpath, modified, metadata, last in rows:
            with suppress(BadQuery, TypeError, AttributeError):
                name = transcript_path({"project_key": project, "session_id": session, "subpath": subpath})
                read = partial(_read_lines, connection, number)
                transcripts.append(StoredTranscript(name, (number, last, modified), metadata, read))
        yield transcripts


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_TIMEOUT_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection to a store; to an empty one in memory if the file does not exist, or is empty."""
    if path.is_file():
        connection = _connect(path, "ro")
        if _has_tables(connection):
            return connection
        connection.close()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_SCHEMA)
    return connection


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Unreadable(f"{str(path)!r} cannot be used: {error}.") from error


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Whether the file is a session store: its tables are tables, not views that compute something."""
    rows = connection.execute("SELECT type FROM sqlite_master WHERE name IN ('transcripts', 'lines')").fetchall()
    return rows == [("table",), ("table",)]


def _read_lines(connection: sqlite3.Connection, number: int) -> Iterator[bytes]:
    rows = connection.execute(
        "SELECT CAST(line AS BLOB) FROM lines WHERE transcript = ? AND line NOT NULL ORDER BY id", (number,)
    )
    return (line for (line,) in rows)


def _key_values(key: SessionKey) -> tuple[str, str, str]:
    transcript_path(key)  # raises if it is not safe
    return key["project_key"], key["session_id"], key.get("subpath") or ""


def _is_metadata(entry: Entry, key: SessionKey) -> bool:
    return entry.get("type") == METADATA and bool(key.get("subpath"))


def _uuid(entry: Entry) -> str | None:
    uuid = entry.get("uuid")
    return uuid if isinstance(uuid, str) else None
