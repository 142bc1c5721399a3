"""What the sessions of hits are called, by the entries that the index knows to name them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator

from threadline.model.entries import AttachmentEntry, ChainEntry, Entry, UserEntry
from threadline.model.session import TitleSource
from threadline.search.documents import COLUMNS, JOINED, Documents, Row
from threadline.search.query import And
from threadline.thread.acts import acts
from threadline.thread.titles import title

# What a person said first stands among the first entries.
_FIRST_FEW = 200
_LAST_FEW = 5
_NAMING = ("custom-title", "ai-title", "last-prompt", "summary")
_NAMELESS = ("assistant", "progress", "system", "file-history-snapshot", "file-history-delta")
_ASKED = f"SELECT e.entry_id, 0.0, {COLUMNS} FROM entries e {JOINED} WHERE e.transcript_id = ?"  # noqa: S608 - our own names


def titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of sessions, those that have one."""
    marks = ", ".join("?" * len(sessions))
    asked = f"SELECT session, transcript_id FROM transcripts WHERE kind = 'main' AND session IN ({marks})"  # noqa: S608 - marks
    found: dict[str, str] = {}
    with Documents(connection, And(())) as documents:
        for session, number in connection.execute(asked, tuple(sessions)).fetchall():
            named = _title(connection, number, documents)
            if named:
                found.setdefault(session, named)
    return found


def _title(connection: sqlite3.Connection, transcript: int, documents: Documents) -> str:
    given = list(_entries(_last(connection, transcript), documents))
    named = title(given, ())
    if named.source is not TitleSource.NONE:
        return named.text
    marks = ", ".join("?" * len(_NAMELESS))
    first = f"{_ASKED} AND e.line <= ? AND e.kind NOT IN ({marks}) ORDER BY e.line"
    rows = map(Row._make, connection.execute(first, (transcript, _FIRST_FEW, *_NAMELESS)))
    said = [one for one in _entries(list(rows), documents) if _may_name(one)]
    return title([*said, *given], acts(said)).text


def _last(connection: sqlite3.Connection, transcript: int) -> list[Row]:
    """The last few entries of each kind that names a session."""
    marks = ", ".join("?" * len(_NAMING))
    rows = connection.execute(f"{_ASKED} AND e.kind IN ({marks}) ORDER BY e.line", (transcript, *_NAMING))
    by_kind: dict[str, list[Row]] = {}
    for row in map(Row._make, rows):
        by_kind.setdefault(row.kind, []).append(row)
    return [row for some in by_kind.values() for row in some[-_LAST_FEW:]]


def _entries(rows: list[Row], documents: Documents) -> Iterator[Entry]:
    yield from (entry for row in rows if (entry := documents.entry(row)) is not None)


def _may_name(entry: Entry) -> bool:
    if not isinstance(entry, ChainEntry):
        return True
    said = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (said or isinstance(entry, AttachmentEntry))
