"""Compare the index with the transcripts on disk, and open it up to date if that is cheap.

Imports nothing that reads transcripts: loading that takes longer than to query a fresh index.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
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
from threadline.index.store import damaged_error, encode_path, open_read_only
from threadline.model.homes import Found, Home, Transcript, TranscriptChanges, TranscriptFingerprint, TranscriptKind
from threadline.model.places import AgentId, Problem, SessionId


class FreshIndex(Struct, frozen=True):
    """An index to ask, and what could not be looked at when it was compared with the homes."""

    connection: sqlite3.Connection
    problems: tuple[Problem, ...] = ()


def open_fresh(
    index: Path,
    homes: Sequence[Home],
    *,
    most: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> FreshIndex | None:
    """The index of these homes, up to date; None where that takes reading more than `most` bytes, or another is at it.

    Nothing is written where nothing changed. Without `most`, it is made whatever it takes.

    Raises:
        IndexBusy: another process is refreshing it, and there is no bound.
        Unreadable: it is damaged or may not be written, and there is no bound.
    """
    try:
        if index.exists():
            return _open_compared(index, homes, most, jobs, progress, planned)
        if most is None or sum(status.st_size for home in homes for _path, status in stat_transcripts(home)) <= most:
            _run_refresh(index, homes, jobs=jobs, progress=progress, planned=planned)
            return _open_compared(index, homes, most, jobs, progress, planned)
    except (IndexBusy, Unreadable):
        if most is None:
            raise
    return None


def _open_compared(  # noqa: PLR0917 - as they were given
    index: Path,
    homes: Sequence[Home],
    most: int | None,
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
) -> FreshIndex | None:
    connection = open_read_only(index)
    try:
        connection.execute("BEGIN")  # what is asked here is of one state, whoever writes meanwhile
        told = detect_changes(IndexedTranscripts(connection), homes)
        if _is_current(connection, told):
            connection.execute("COMMIT")
            return FreshIndex(connection, told.problems)
        if most is not None and _pending_bytes(told) > most:
            connection.close()
            return None
        now = PendingChanges(told, read_generation(connection))
    except sqlite3.Error as error:
        connection.close()
        raise damaged_error(index, error) from None
    except BaseException:
        connection.close()
        raise
    connection.close()
    _run_refresh(index, homes, jobs=jobs, progress=progress, planned=planned, told=now)
    return FreshIndex(open_read_only(index), told.problems)


def _run_refresh(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
    told: PendingChanges | None = None,
) -> None:
    # What reads transcripts takes longer to load than an index that is fresh to ask.
    from threadline.index.refresh import refresh_index  # noqa: PLC0415

    refresh_index(index, homes, jobs=jobs, progress=progress, planned=planned, told=told)


def _is_current(connection: sqlite3.Connection, told: TranscriptChanges) -> bool:
    """Whether nothing is left to be done, of this refresh or of one that was killed."""
    if told.changed or told.renewed:
        return False
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        return False
    noted = dict(connection.execute("SELECT name, value FROM meta"))
    is_finished = "unsettled" not in noted and noted.get("terms_to") == noted.get("next_entry", "")
    return is_finished and noted.get("prices") == shipped_digest()


def _pending_bytes(told: TranscriptChanges) -> int:
    return sum(one.looked.size - one.read_from for one in told.changed if one.looked is not None)


KNOWN_COLUMNS = "path, device, inode, size, mtime_ns, read_to, head_hash, tail_hash, checksum, racy"
"""The columns of a transcript by which it is known again, in the order of `Known`."""


class PendingChanges(Struct, frozen=True):
    """What a look at the homes has told of an index, as it was then."""

    changes: TranscriptChanges
    generation: str


class IndexedTranscripts:
    """Every transcript as it was when it was last read. What is asked is to be within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def statuses(self) -> dict[str, StatKey]:
        """By what each is as it was."""
        asked = self._connection.execute("SELECT path, mtime_ns, size, inode, device, racy FROM transcripts")
        return {row[0] if row[0].__class__ is str else os.fsdecode(row[0]): row[1:] for row in asked}

    def known(self, path: str) -> TranscriptFingerprint:
        """All that is known of one."""
        asked = f"SELECT {KNOWN_COLUMNS} FROM transcripts WHERE path = ?"  # noqa: S608 - our own names
        kept, *told_of = self._connection.execute(asked, (encode_path(path),)).fetchone()
        return TranscriptFingerprint(os.fsdecode(kept), *told_of)


def read_generation(connection: sqlite3.Connection) -> str:
    """What tells one state of the index from another: each transaction of a refresh makes it anew."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    return str(found[0]) if found is not None else ""


_FILE_SUFFIXES = ("", "-wal")
_COUNTED_TABLES = ("transcripts", "entries", "charges", "problems")


class IndexStatus(Struct, frozen=True):
    """How an index stands.

    `share` is its size as a part of that of the transcripts. `orphans` are entries that are gone but for their words;
    `changed` is how many transcripts are not as they were when they were read, `changes` how many by how they did.
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
    """How the index of these homes stands, if there is one.

    Raises:
        Unreadable: it is damaged.
    """
    sizes = {path: told.st_size for home in homes for path, told in stat_transcripts(home)}
    total = sum(sizes.values())
    if not index.exists():
        return IndexStatus(str(index), exists=False, transcripts_bytes=total, changed=len(sizes))
    size = sum(_file_size(f"{index}{beside}") for beside in _FILE_SUFFIXES)
    with closing(open_read_only(index)) as connection:
        figures = _count_rows(index, connection)
        changed = _count_changes(connection, homes)
    return IndexStatus(
        path=str(index),
        exists=True,
        bytes=size,
        transcripts_bytes=total,
        share=round(size / total, 4) if total else None,
        **figures,
        changed=sum(changed.values()),
        changes=dict(changed),
    )


def _file_size(path: str) -> int:
    try:
        return os.path.getsize(path)  # noqa: PTH202 - it may go at any moment
    except OSError:
        return 0


def _count_rows(index: Path, connection: sqlite3.Connection) -> dict[str, int]:
    """What the index holds. Words of entries that are gone stay in the full text: those are its orphans."""
    try:
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        told = {
            table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in _COUNTED_TABLES
        }
        return {"schema": int(meta["schema"]), **told, "orphans": int(meta["next_entry"]) - 1 - told["entries"]}
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise damaged_error(index, error) from None


def _count_changes(connection: sqlite3.Connection, homes: Sequence[Home]) -> Counter[str]:
    """How many transcripts changed since they were read, by how they did."""
    names = ", ".join(TranscriptFingerprint.__struct_fields__)
    rows = connection.execute(f"SELECT {names} FROM transcripts")  # noqa: S608 - our own names
    known = [TranscriptFingerprint(os.fsdecode(path), *rest) for path, *rest in rows]
    return Counter(str(one.kind) for one in detect_changes(known, homes).changed)


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
    """What `look` without side files gives of each home, of an index that is fresh.

    An agent's `meta` is where it would lie; whether it does is told when it is opened. `problems` are those of the
    look that found the index to be fresh, or of another, home by home.
    """
    by_home: dict[str, list[Transcript]] = {str(home.path): [] for home in homes}
    named = {str(home.path): home for home in homes}
    rows = connection.execute(_SELECT_TRANSCRIPTS).fetchall()
    for transcript in _transcripts(rows, named):
        by_home[str(transcript.home.path)].append(transcript)
    looked = [
        look_with_known_transcripts(home, sorted(by_home[str(home.path)], key=lambda one: str(one.path)), told)
        for home, told in zip(homes, problems or [()] * len(homes), strict=True)
    ]
    return list(_without_shared_projects(looked)) if len(looked) > 1 else looked


def _without_shared_projects(looked: Sequence[Found]) -> Iterator[Found]:
    """Each home; of one that shares its projects with another through a link, only what the index calls its own."""
    met: set[str] = set()
    for one in looked:
        projects = os.path.realpath(one.home.path / "projects")
        own = {transcript.folder for transcript in one.transcripts}
        kept = tuple(project for project in one.projects if project.folder in own)
        yield replace(one, projects=kept) if projects in met else one
        met.add(projects)


def problems_by_home(problems: Sequence[Problem], homes: Sequence[Home]) -> list[list[Problem]]:
    """Problems home by home."""
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
        of_kind = _KIND_BY_NAME[str(kind)]
        yield Transcript(
            directories[directory] / name,
            home,
            _decode(folder),
            of_kind,
            int(size),  # type: ignore[call-overload]
            int(mtime_ns),  # type: ignore[call-overload]
            SessionId(str(session)) if session is not None else None,
            AgentId(str(agent)) if agent is not None else None,
            _workflow_run(text, home) if of_kind in _KINDS_WITH_RUN else None,
            directories[directory] / f"{name[: -len(TRANSCRIPT_SUFFIX)]}{_META_SUFFIX}" if agent is not None else None,
        )


def _decode(kept: Any) -> str:
    return kept if kept.__class__ is str else os.fsdecode(kept)


def _workflow_run(path: str, home: Home) -> str | None:
    parts = Path(path).parts
    below = parts[len(home.path.parts) + 2 :]  # projects/<folder>
    return parse_transcript_name(below).run if below else None
