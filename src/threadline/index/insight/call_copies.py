"""Drop the calls that a fork or a resumed session repeats, so that each call counts once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from threadline.index.schema import PREFERRED_COPY_SQL

_IS_COPY = f"""SELECT 1 FROM call_rows c JOIN entries e ON e.entry_id = c.entry_id
    JOIN transcripts t ON t.transcript_id = e.transcript_id
    WHERE c.entry_id = ? AND c.position = ? AND EXISTS({PREFERRED_COPY_SQL})"""  # noqa: S608 - our own words
_SELECT_REPEATED = "SELECT call FROM call_rows WHERE call IS NOT NULL GROUP BY call HAVING COUNT(*) > 1"
_Row = tuple[Any, ...]


def drop_copied_calls(connection: sqlite3.Connection, rows: Sequence[_Row], *, has_scope: bool) -> list[_Row]:
    """Return the rows of calls without copies. A row starts with the call's id, its entry and its position there.

    The id is None for what was not a call. Only calls that occur twice are compared, which is faster. With
    `has_scope`, the rows are not those of all transcripts: the copy that counts may be outside of them.
    """
    if has_scope:
        repeated = {call for (call,) in connection.execute(_SELECT_REPEATED).fetchall()}
    else:
        repeated = _repeated_calls(rows)
    return [row for row in rows if row[0] not in repeated or connection.execute(_IS_COPY, row[1:3]).fetchone() is None]


def _repeated_calls(rows: Sequence[_Row]) -> set[str]:
    """The calls that occur in several places."""
    counts = Counter(row[0] for row in rows)
    places: dict[str, set[_Row]] = {}
    for row in rows:
        if counts[row[0]] > 1 and row[0] is not None:
            places.setdefault(row[0], set()).add(row[1:3])
    return {call for call, same in places.items() if len(same) > 1}
