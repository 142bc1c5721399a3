"""The summaries of an index, and the sessions that contain the entries they name."""

from __future__ import annotations

import sqlite3

from threadline.index.store import decode_path
from threadline.model.places import SessionId
from threadline.model.summaries import KnownLinks, SummaryRef

_SELECT_SUMMARIES = """SELECT s.leaf, s.text, t.path, s.line, t.session
    FROM summary_rows s JOIN transcripts t USING(transcript_id) ORDER BY t.path, s.line"""
_SELECT_OWNERS = """SELECT DISTINCT l.leaf, COALESCE(t.session, e.session)
    FROM leaf_rows l
    JOIN transcripts t ON t.transcript_id = l.transcript_id
    JOIN entries e ON e.entry_id = l.entry_id
    WHERE COALESCE(t.session, e.session) IS NOT NULL ORDER BY 1, 2"""


def read_links(connection: sqlite3.Connection) -> KnownLinks:
    """All summaries, and the sessions that contain the entries they name. The line is used in place of the offset."""
    summaries = tuple(
        SummaryRef(leaf, text, decode_path(path), line, SessionId(session) if session is not None else None)
        for leaf, text, path, line, session in connection.execute(_SELECT_SUMMARIES)
    )
    owners: dict[str, tuple[SessionId, ...]] = {}
    for leaf, session in connection.execute(_SELECT_OWNERS):
        owners[leaf] = (*owners.get(leaf, ()), SessionId(session))
    return KnownLinks(summaries, owners)
