"""What the sessions of hits are called."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

_AT_ONCE = 500


def titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of sessions, those that have one."""
    wanted = list(sessions)
    found: dict[str, str] = {}
    for at in range(0, len(wanted), _AT_ONCE):
        some = wanted[at : at + _AT_ONCE]
        asked = (
            f"SELECT session, title FROM session_rows WHERE title != '' AND session IN ({', '.join('?' * len(some))})"  # noqa: S608 - marks
        )
        for session, title in connection.execute(asked, some):
            found.setdefault(session, title)
    return found
