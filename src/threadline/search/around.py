"""What was said around a hit: the entries of the conversation before and after it."""

from __future__ import annotations

import sqlite3

from threadline.model.entries import Entry
from threadline.model.hit import Hit
from threadline.search.documents import COLUMNS, JOINED, Documents, Row
from threadline.search.query import And

_SPOKEN = ("user", "assistant")


def around(connection: sqlite3.Connection, hit: Hit, count: int) -> tuple[list[Entry], list[Entry]]:
    """So many entries of the conversation before a hit, and after it."""
    transcript = "e.transcript_id = (SELECT transcript_id FROM entries WHERE entry_id = ?)"
    spoken = f"e.kind IN ({', '.join('?' * len(_SPOKEN))})"
    sides = []
    with Documents(connection, And(())) as documents:
        for compared, order in (("<", "DESC"), (">", "ASC")):
            asked = (
                f"SELECT e.entry_id, 0.0, {COLUMNS} FROM entries e {JOINED} WHERE {transcript} AND {spoken}"  # noqa: S608 - our own names
                f" AND e.line {compared} ? ORDER BY e.line {order} LIMIT ?"
            )
            rows = connection.execute(asked, (hit.entry_id, *_SPOKEN, hit.place.line, count)).fetchall()
            sides.append([entry for row in rows if (entry := documents.entry(Row._make(row))) is not None])
    before, after = sides
    return before[::-1], after
