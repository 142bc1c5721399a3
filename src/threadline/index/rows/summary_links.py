"""Resolve summaries: find the entries that they name in all transcripts, and title the sessions that contain them.

A summary in one transcript may name an entry of any other, and either may be read first. So each refresh ends with
this step: it searches the new entries for those that any summary names, and all entries for those that a new summary
names. `leaves_to` in the table `meta` is how far entries were searched; a refresh that was killed continues there.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from threadline.errors import Error
from threadline.index.rows.state import decode_state
from threadline.index.store import decode_path, storable_text
from threadline.model.titles import TitleSource, shorten_title

_SELECT_NAMED = """SELECT e.uuid, e.transcript_id, e.entry_id, t.path, t.kind, e.offset
    FROM entries e JOIN transcripts t USING(transcript_id) WHERE {}"""
_NEW_ENTRIES = "e.entry_id >= ? AND e.uuid IN (SELECT leaf FROM summary_rows)"
_OLD_ENTRIES = "e.entry_id < ? AND e.uuid IN (SELECT leaf FROM summary_rows WHERE is_new)"
# The last row of each transcript is the summary that titles it: see `choose_summary`.
_SELECT_TITLES = """SELECT l.transcript_id, s.text
    FROM leaf_rows l
    JOIN transcripts lt ON lt.transcript_id = l.transcript_id AND lt.kind = 'main'
    JOIN entries e ON e.entry_id = l.entry_id
    JOIN summary_rows s ON s.leaf = l.leaf
    JOIN transcripts t ON t.transcript_id = s.transcript_id
    WHERE NOT l.is_agent
    ORDER BY e.line, s.transcript_id = l.transcript_id, t.path, s.line"""


def resolve_summaries(connection: sqlite3.Connection, next_entry: int) -> None:
    """Find the entries that summaries name, and title the sessions that contain them."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'leaves_to'").fetchone()
    covered = int(row[0]) if row is not None else 0
    if connection.execute("SELECT 1 FROM summary_rows LIMIT 1").fetchone() is not None:
        _find_named_entries(connection, _NEW_ENTRIES, covered)
        if connection.execute("SELECT 1 FROM summary_rows WHERE is_new LIMIT 1").fetchone() is not None:
            _find_named_entries(connection, _OLD_ENTRIES, covered)
            connection.execute("UPDATE summary_rows SET is_new = 0 WHERE is_new")
    connection.execute("DELETE FROM leaf_rows WHERE leaf NOT IN (SELECT leaf FROM summary_rows)")
    _update_titles(connection)
    if covered != next_entry:
        connection.execute("INSERT OR REPLACE INTO meta VALUES('leaves_to', ?)", (str(next_entry),))


def _find_named_entries(connection: sqlite3.Connection, condition: str, covered: int) -> None:
    named = connection.execute(_SELECT_NAMED.format(condition), (covered,)).fetchall()
    connection.executemany(
        "INSERT OR IGNORE INTO leaf_rows VALUES(?, ?, ?, ?)",
        [
            (leaf, transcript, entry, kind == "main" and _is_agent(decode_path(path), offset))
            for leaf, transcript, entry, path, kind, offset in named
        ],
    )


def _is_agent(path: str, offset: int) -> bool:
    """Whether an agent inside a main transcript wrote the entry at an offset."""
    from threadline.model.entries import ChainEntry  # noqa: PLC0415 - few homes have summaries
    from threadline.parse import entries  # noqa: PLC0415 - as above

    with suppress(Error, OSError):
        entry = next(entries(path, offset=offset), None)
        return isinstance(entry, ChainEntry) and bool(entry.is_agent)
    return False


def _update_titles(connection: sqlite3.Connection) -> None:
    """Title each session by the summary that names its latest entry, unless it has a better title."""
    before: dict[int, str] = dict(connection.execute("SELECT transcript_id, text FROM summary_titles").fetchall())
    titles: dict[int, str] = dict(connection.execute(_SELECT_TITLES).fetchall())
    for number in before.keys() | titles.keys():
        _update_title(connection, number, titles.get(number))
    if titles != before:
        connection.execute("DELETE FROM summary_titles")
        connection.executemany("INSERT INTO summary_titles VALUES(?, ?)", titles.items())


def _update_title(connection: sqlite3.Connection, number: int, summary: str | None) -> None:
    row = connection.execute(
        "SELECT title, title_source FROM session_rows WHERE transcript_id = ?", (number,)
    ).fetchone()
    is_current = summary is not None and row == (shorten_title(summary), TitleSource.SUMMARY.value)
    if row is None or is_current:
        return
    from threadline.summary import title_from_state  # noqa: PLC0415 - few homes have summaries

    (packed,) = connection.execute("SELECT state FROM transcripts WHERE transcript_id = ?", (number,)).fetchone()
    state = decode_state(packed).summary
    if state is not None:
        title = title_from_state(state, summary)
        connection.execute(
            "UPDATE session_rows SET (title, title_source) = (?, ?) WHERE transcript_id = ?",
            (storable_text(title.text), str(title.source), number),
        )
