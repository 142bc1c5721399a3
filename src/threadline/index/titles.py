"""Titles: what sessions are called, as the index knows it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

_AT_ONCE = 500
_ASKED = """
SELECT r.session, r.title FROM session_rows r JOIN transcripts t USING(transcript_id)
WHERE r.title <> '' AND r.session IN ({0}) ORDER BY t.path
"""


def titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, those that have one; of a session that several transcripts hold, the first's."""
    wanted = list(sessions)
    found: dict[str, str] = {}
    for at in range(0, len(wanted), _AT_ONCE):
        some = wanted[at : at + _AT_ONCE]
        for session, title in connection.execute(_ASKED.format(", ".join("?" * len(some))), some):
            found.setdefault(session, title)
    return found
