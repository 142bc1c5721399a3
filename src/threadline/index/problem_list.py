"""Problems that reading for the index met, as a list and in numbers."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from threadline.index.texts import as_path

_ALL = """SELECT p.kind, p.message, p.recovered, t.path, p.line
    FROM problems p JOIN transcripts t USING(transcript_id) ORDER BY p.kind, t.path, p.line"""
_COUNTS = "SELECT kind, COUNT(*) FROM problems GROUP BY 1 ORDER BY 2 DESC"


class ListedProblem(Struct, frozen=True):
    """A problem that the index knows: its kind, a sentence, and where."""

    kind: str
    message: str
    recovered: bool
    transcript: str
    line: int


def problems(connection: sqlite3.Connection) -> list[ListedProblem]:
    """All of them, by kind and place."""
    return [
        ListedProblem(kind, message, bool(recovered), as_path(path), line)
        for kind, message, recovered, path, line in connection.execute(_ALL)
    ]


def problem_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """How many there are of each kind, most first."""
    return dict(connection.execute(_COUNTS).fetchall())
