"""What else a page of hits tells of a session: when it was last written to, and what was typed first."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from msgspec import Struct

from threadline.model.time import parse_timestamp

_LAST = "SELECT MAX(last) FROM session_rows WHERE session = ?"
_TYPED_FIRST = """SELECT p.text FROM session_rows r JOIN prompt_rows p USING(transcript_id)
    WHERE r.session = ? AND p.kind NOT IN ('command', 'shell', 'interrupt') ORDER BY p.turn, p.line LIMIT 1"""


class SessionFacts(Struct, frozen=True):
    """When a session was last written to, and the first prompt; None where that is not known."""

    last: datetime | None
    typed: str | None


def session_facts(connection: sqlite3.Connection, session: str) -> SessionFacts:
    """What the index has of a session of that id."""
    (last,) = connection.execute(_LAST, (session,)).fetchone()
    typed = connection.execute(_TYPED_FIRST, (session,)).fetchone()
    return SessionFacts(parse_timestamp(last), typed[0] if typed is not None else None)
