"""Titles: what sessions are called, as the index knows it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

_ASKED = "SELECT title FROM session_rows r JOIN transcripts t USING(transcript_id) WHERE r.session = ? ORDER BY t.path"


def titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of these sessions; of one that several transcripts hold, the first that has one."""
    found: dict[str, str] = {}
    for session in sessions:
        for (title,) in connection.execute(_ASKED, (session,)):
            if title:
                found.setdefault(session, title)
    return found
