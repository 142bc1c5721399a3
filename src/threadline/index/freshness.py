"""Compare the index with the transcripts on disk, and open it up to date if that is cheap.

Imports no module that reads transcripts: loading those takes longer than querying a fresh index.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import shipped_digest
from threadline.errors import IndexBusy, Unreadable
from threadline.find import (
    TRANSCRIPT_SUFFIX,
    StatKey,
    detect_changes,
    look_with_known_transcripts,
    parse_transcript_name,
    stat_transcripts,
)
from threadline.index.index import Index
from threadline.index.store import damaged_error, encode_path, open_read_only, read_transaction
from threadline.model.homes import Found, Home, Transcript, TranscriptChanges, TranscriptFingerprint, TranscriptKind
from threadline.model.places import AgentId, Problem, SessionId


def open_fresh(
    path: Path,
    homes: Sequence[Home],
    *,
    max_bytes: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> Index | None:
    """Open the index of these homes, refreshed or built if needed: see `Index.open_fresh`."""
    refresh = partial(_run_refresh, path, homes, jobs=jobs, progress=progress, planned=planned)
    try:
        if path.exists():
            return _open_compared(path, homes, max_bytes, refresh)
        if max_bytes is None or _total_bytes(homes) <= max_bytes:
            refresh()
            return _open_compared(path, homes, max_bytes, refresh)
    except (IndexBusy, Unreadable):
        if max_bytes is None:
            raise
    return None


def _total_bytes(homes: Sequence[Home]) -> int:
    return sum(status.st_size for home in homes for _path, status in stat_transcripts(home))


def _open_compared(
    path: Path, homes: Sequence[Home], max_bytes: int | None, refresh: Callable[..., None]
) -> Index | None:
    connection = open_read_only(path)
    try:
        with read_transaction(connection):
            changes = detect_changes(IndexedTranscripts(connection), homes)
            if _is_current(connection, changes):
                return Index(connection, path, homes, changes.problems)
            pending = PendingChanges(changes, read_generation(connection))
    except sqlite3.Error as error:
        connection.close()
        raise damaged_error(path, error) from None
    except BaseException:
        connection.close()
        raise
    connection.close()
    if max_bytes is not None and _pending_bytes(changes) > max_bytes:
        return None
    refresh(pending)
    return Index(open_read_only(path), path, homes, changes.problems)


def _run_refresh(
    path: Path,
    homes: Sequence[Home],
    pending: PendingChanges | None = None,
    *,
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
) -> None:
    # The modules that read transcripts take longer to load than a fresh index takes to answer.
    from threadline.index.refresh import refresh_index  # noqa: PLC0415

    refresh_index(path, homes, jobs=jobs, progress=progress, planned=planned, pending=pending)


def _is_current(connection: sqlite3.Connection, changes: TranscriptChanges) -> bool:
    """Whether nothing is left to do, neither for these changes nor after a refresh that was killed."""
    if changes.changed or changes.renewed:
        return False
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        return False
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    is_finished = "unsettled" not in meta and meta.get("terms_to") == meta.get("next_entry", "")
    return is_finished and meta.get("prices") == shipped_digest()


def _pending_bytes(changes: TranscriptChanges) -> int:
    return sum(change.looked.size - change.read_from for change in changes.changed if change.looked is not None)


KNOWN_COLUMNS = "path, device, inode, size, mtime_ns, read_to, head_hash, tail_hash, checksum, racy"
"""The columns of a transcript's fingerprint, in the order of `TranscriptFingerprint`."""


class PendingChanges(Struct, frozen=True):
    """What changed in the homes since an index of that generation was written."""

    changes: TranscriptChanges
    generation: str


class IndexedTranscripts:
    """Every transcript as it was when it was last read. Use it within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def statuses(self) -> dict[str, StatKey]:
        """The file status of each transcript by path."""
        rows = self._connection.execute("SELECT path, mtime_ns, size, inode, device, racy FROM transcripts")
        return {_decode(row[0]): row[1:] for row in rows}

    def known(self, path: str) -> TranscriptFingerprint:
        """The fingerprint of a transcript."""
        select = f"SELECT {KNOWN_COLUMNS} FROM transcripts WHERE path = ?"  # noqa: S608 - our own names
        stored, *columns = self._connection.execute(select, (encode_path(path),)).fetchone()
        return TranscriptFingerprint(os.fsdecode(stored), *columns)


def read_generation(connection: sqlite3.Connection) -> str:
    """A token that identifies the state of the index. Each transaction of a refresh sets a new one."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    return str(row[0]) if row is not None else ""


_FILE_SUFFIXES = ("", "-wal")
_COUNTED_TABLES = ("transcripts", "entries", "charges", "problems")


class IndexStatus(Struct, frozen=True):
    """The size of an index, and how far it is behind the transcripts.

    `share` is its size relative to the transcripts. `orphans` counts deleted entries whose words are still in the
    full-text table. `changed` counts the transcripts that changed since the last refresh, `changes` the same by kind.
    """

    path: str
    exists: bool
    bytes: int = 0
    transcripts_bytes: int = 0
    share: float | None = None
    schema: int | None = None
    transcripts: int = 0
    entries: int = 0
    charges: int = 0
    problems: int = 0
    orphans: int = 0
    changed: int = 0
    changes: dict[str, int] = {}


def index_status(index: Path, homes: Sequence[Home]) -> IndexStatus:
    """The status of the index of these homes, if there is one: see `Index.status`."""
    sizes = {path: status.st_size for home in homes for path, status in stat_transcripts(home)}
    total = sum(sizes.values())
    if not index.exists():
        return IndexStatus(str(index), exists=False, transcripts_bytes=total, changed=len(sizes))
    size = sum(_file_size(f"{index}{suffix}") for suffix in _FILE_SUFFIXES)
    with closing(open_read_only(index)) as connection:
        figures = _count_rows(index, connection)
        changes = Counter(str(change.kind) for change in detect_changes(IndexedTranscripts(connection), homes).changed)
    return IndexStatus(
        path=str(index),
        exists=True,
        bytes=size,
        transcripts_bytes=total,
        share=round(size / total, 4) if total else None,
        **figures,
        changed=changes.total(),
        changes=dict(changes),
    )


def _file_size(path: str) -> int:
    try:
        return os.path.getsize(path)  # noqa: PTH202 - it may disappear at any moment
    except OSError:
        return 0


def _count_rows(index: Path, connection: sqlite3.Connection) -> dict[str, int]:
    try:
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        counts = {
            table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in _COUNTED_TABLES
        }
        return {"schema": int(meta["schema"]), **counts, "orphans": int(meta["next_entry"]) - 1 - counts["entries"]}
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise damaged_error(index, error) from None


_SELECT_TRANSCRIPTS = """
SELECT h.path, p.folder, t.path, t.kind, t.session, t.agent, t.size, t.mtime_ns
FROM transcripts t JOIN projects p USING(project_id) JOIN homes h ON h.home_id = t.home_id
"""
_KIND_BY_NAME = {str(kind): kind for kind in TranscriptKind}
_KINDS_WITH_RUN = frozenset({TranscriptKind.WORKFLOW_AGENT, TranscriptKind.JOURNAL})
_META_SUFFIX = ".meta.json"


def indexed_homes(
    connection: sqlite3.Connection, homes: Sequence[Home], problems: Sequence[Sequence[Problem]] | None = None
) -> list[Found]:
    """What `look` without side files finds in each home, according to a fresh index.

    An agent's `meta` is the path where its side file would be; the file may not exist. `problems` are those of each
    home.
    """
    transcripts: dict[str, list[Transcript]] = {str(home.path): [] for home in homes}
    by_path = {str(home.path): home for home in homes}
    rows = connection.execute(_SELECT_TRANSCRIPTS).fetchall()
    for transcript in _transcripts(rows, by_path):
        transcripts[str(transcript.home.path)].append(transcript)
    contents = [
        look_with_known_transcripts(
            home, sorted(transcripts[str(home.path)], key=lambda transcript: str(transcript.path)), own_problems
        )
        for home, own_problems in zip(homes, problems or [()] * len(homes), strict=True)
    ]
    return list(_without_shared_projects(contents)) if len(contents) > 1 else contents


def _without_shared_projects(contents: Sequence[Found]) -> Iterator[Found]:
    """The content of each home. Homes that share their projects through a symlink list each project only once."""
    visited: set[str] = set()
    for content in contents:
        folder = os.path.realpath(content.home.path / "projects")
        own = {transcript.folder for transcript in content.transcripts}
        projects = tuple(project for project in content.projects if project.folder in own)
        yield replace(content, projects=projects) if folder in visited else content
        visited.add(folder)


def problems_by_home(problems: Sequence[Problem], homes: Sequence[Home]) -> list[list[Problem]]:
    """The problems of each home."""
    return [
        [problem for problem in problems if str(problem.place.transcript).startswith(str(home.path))] for home in homes
    ]


def _transcripts(rows: list[tuple[object, ...]], homes: dict[str, Home]) -> Iterator[Transcript]:
    directories: dict[str, Path] = {}
    for top, folder, path, kind, session, agent, size, mtime_ns in rows:
        home = homes.get(_decode(top))
        if home is None:
            continue
        text = _decode(path)
        directory, _, name = text.rpartition(os.sep)
        if directory not in directories:
            directories[directory] = Path(directory + os.sep)
        transcript_kind = _KIND_BY_NAME[str(kind)]
        yield Transcript(
            directories[directory] / name,
            home,
            _decode(folder),
            transcript_kind,
            int(size),  # type: ignore[call-overload]
            int(mtime_ns),  # type: ignore[call-overload]
            SessionId(str(session)) if session is not None else None,
            AgentId(str(agent)) if agent is not None else None,
            _workflow_run(text, home) if transcript_kind in _KINDS_WITH_RUN else None,
            directories[directory] / f"{name[: -len(TRANSCRIPT_SUFFIX)]}{_META_SUFFIX}" if agent is not None else None,
        )


def _decode(stored: Any) -> str:
    return stored if stored.__class__ is str else os.fsdecode(stored)


def _workflow_run(path: str, home: Home) -> str | None:
    parts = Path(path).parts
    below = parts[len(home.path.parts) + 2 :]  # projects/<folder>
    return parse_transcript_name(below).run if below else None
