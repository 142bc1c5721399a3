"""Whereabouts: whose a transcript is, where a session lies that only rows name, and how much there is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from threadline.index.texts import as_path, as_text, stored

_OWNER = """SELECT COALESCE(t.session, (SELECT a.session FROM agent_rows a WHERE a.transcript_id = t.transcript_id)),
    t.agent FROM transcripts t WHERE t.path = ?"""
_INSIDE = """SELECT t.path FROM origins o JOIN transcripts t USING(transcript_id)
WHERE o.session = ? AND t.session IS NULL ORDER BY t.size DESC LIMIT 1"""
_SIZE = "SELECT COALESCE(SUM(size), 0) FROM transcripts"


def owner(connection: sqlite3.Connection, transcript: str) -> tuple[str | None, str | None] | None:
    """The session and the agent whose transcript this is; None where it is not known."""
    found: tuple[str | None, str | None] | None = connection.execute(_OWNER, (stored(transcript),)).fetchone()
    return found


def named_inside(connection: sqlite3.Connection, session: str) -> Path | None:
    """The largest transcript whose rows name that session though its path does not."""
    row = connection.execute(_INSIDE, (as_text(session),)).fetchone()
    return Path(as_path(row[0])) if row is not None else None


def size(connection: sqlite3.Connection) -> int:
    """How many bytes all transcripts have."""
    return int(connection.execute(_SIZE).fetchone()[0])
