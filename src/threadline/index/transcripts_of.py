"""Which transcripts belong to a session or a project, as conditions for the index."""

from __future__ import annotations

import os
import sqlite3

from msgspec import Struct

# Up to so many lines, it is quicker to go through all of them than to look for them in order of time.
_FEW = 50_000


class SomeTranscripts(Struct, frozen=True):
    """Some transcripts: a condition on a transcript `t`, and whether they hold few lines."""

    condition: str
    is_few: bool


def transcripts_of(connection: sqlite3.Connection, session: str | None, project: str | None) -> SomeTranscripts:
    """The transcripts of sessions whose id begins so, in projects whose path holds a text, whatever its case."""
    rows = connection.execute(
        """SELECT t.transcript_id, t.lines, t.project_id,
            COALESCE(t.session, (SELECT a.session FROM agent_rows a WHERE a.transcript_id = t.transcript_id))
        FROM transcripts t"""
    )
    fitting = _projects(connection, project) if project is not None else None
    found = [
        (number, lines)
        for number, lines, of_project, of_session in rows
        if (session is None or (of_session or "").startswith(session)) and (fitting is None or of_project in fitting)
    ]
    is_few = sum(lines for _, lines in found) <= _FEW
    if session is None and fitting is not None and not is_few:
        return SomeTranscripts(f"t.project_id IN ({', '.join(map(str, sorted(fitting)))})", is_few)
    return SomeTranscripts(f"t.transcript_id IN ({', '.join(str(number) for number, _ in found)})", is_few)


def _projects(connection: sqlite3.Connection, text: str) -> set[int]:
    names = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
    return {number for number, name in names if text.casefold() in os.fsdecode(name).casefold()}
