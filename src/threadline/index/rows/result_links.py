"""Link calls to results that another transcript of their session contains, as agents and copies do."""

from __future__ import annotations

import sqlite3
from typing import Any

from threadline.index.rows.calls import (
    FORGET_OUTCOMES,
    GIVE_BACK,
    WHERE_KEY,
    AnsweredCall,
    CallKey,
    EntryIds,
    TouchFold,
    find_call,
    judge_result,
    read_entry_at,
    write_result,
    write_touches,
)
from threadline.index.schema import SESSION_SQL
from threadline.index.store import decode_path, storable_text
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.thread import result_blocks

# ruff: noqa: S608 - statements are made of our own words

_SELECT_OPEN_CALLS = """SELECT o.call, o.transcript_id FROM transcripts t JOIN open_calls o USING(transcript_id)
    WHERE t.session = ?1
    UNION ALL SELECT o.call, o.transcript_id FROM agent_rows a JOIN transcripts t USING(transcript_id)
    JOIN open_calls o USING(transcript_id) WHERE a.session = ?1 AND t.session IS NULL AND a.agent = t.agent"""
_SELECT_ALL_OPEN_CALLS = f"""SELECT o.call, t.transcript_id, {SESSION_SQL}
    FROM open_calls o JOIN transcripts t ON t.transcript_id = o.transcript_id"""
# Of several results the main transcript's counts, as for `threadline.read`.
_SELECT_RESULT_ELSEWHERE = f"""SELECT s.entry_id, t.transcript_id, t.path, r.offset, r.line, t.kind = 'main' AS is_main
    FROM stray_results s JOIN transcripts t USING(transcript_id) JOIN entries r ON r.entry_id = s.entry_id
    WHERE s.call = ?1 AND t.transcript_id <> ?2 AND {SESSION_SQL} = ?3
    UNION ALL SELECT r.entry_id, t.transcript_id, t.path, r.offset, r.line, t.kind = 'main'
    FROM call_rows c JOIN entries r ON r.entry_id = c.result_entry_id
    JOIN transcripts t ON t.transcript_id = r.transcript_id
    WHERE substr(c.call, -3) = substr(?1, -3) AND c.call = ?1 AND t.transcript_id <> ?2 AND {SESSION_SQL} = ?3
    ORDER BY is_main DESC, 3 DESC LIMIT 1"""


def link_results_elsewhere(connection: sqlite3.Connection, number: int) -> None:
    """Give calls without a result the one that another transcript of their session has.

    The transcript of that number was just written. It may contain results for calls of the others, or calls that they
    answer.
    """
    (session,) = connection.execute(f"SELECT {SESSION_SQL} FROM transcripts t WHERE transcript_id = ?", (number,))
    if session[0] is None:
        return
    for call, transcript in connection.execute(_SELECT_OPEN_CALLS, session).fetchall():
        _link_result(connection, call, transcript, *session)


def mark_unlinked(connection: sqlite3.Connection) -> None:
    """Note that transcripts are gone or belong to other sessions: all links have to be made again."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES('unlinked', '1')")


def has_unlinked(connection: sqlite3.Connection) -> bool:
    """Whether `mark_unlinked` was called since results were linked last."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'unlinked'").fetchone() is not None


def relink_results(connection: sqlite3.Connection) -> None:
    """Link all results again that are in another transcript of their call's session."""
    connection.execute(GIVE_BACK)
    for call, transcript, session in connection.execute(_SELECT_ALL_OPEN_CALLS).fetchall():
        if session is not None:
            _link_result(connection, call, transcript, session)
    connection.execute("DELETE FROM meta WHERE name = 'unlinked'")


def _link_result(connection: sqlite3.Connection, call: str, transcript: int, session: str) -> None:
    result = connection.execute(_SELECT_RESULT_ELSEWHERE, (call, transcript, session)).fetchone()
    if result is not None:
        _borrow_result(connection, call, transcript, result)


def _borrow_result(connection: sqlite3.Connection, call: str, transcript: int, result: tuple[Any, ...]) -> None:
    result_entry, result_transcript, result_path, offset, line, _ = result
    stored = find_call(connection, call, transcript)
    if stored is None or stored.result_entry_id == result_entry:
        return
    entry = read_entry_at(decode_path(result_path), offset, line)
    blocks = result_blocks(entry) if isinstance(entry, UserEntry | AssistantEntry) else ()
    block = next((block for block in blocks if storable_text(block.tool_use_id) == call), None)
    if block is None or not isinstance(entry, UserEntry | AssistantEntry):
        return
    key = stored.key
    connection.execute(GIVE_BACK + WHERE_KEY, key)
    connection.execute(
        "INSERT INTO borrowed_results SELECT entry_id, position, ?, ?, outcome FROM call_rows" + WHERE_KEY,
        (result_transcript, result_entry, *key),
    )
    ending = judge_result(stored.tool, entry, block)
    write_result(connection, key, result_entry, ending)
    (path,) = connection.execute("SELECT path FROM transcripts WHERE transcript_id = ?", (transcript,)).fetchone()
    use = AnsweredCall(
        call, stored.tool, entry, block, 0, ending, decode_path(path), offset=stored.offset, line=stored.line
    )
    write_touch(connection, use, key, EntryIds(connection, transcript, 0))
    connection.execute(FORGET_OUTCOMES, (transcript,))


def write_touch(connection: sqlite3.Connection, answered_call: AnsweredCall, key: CallKey, ids: EntryIds) -> None:
    """Write the file that a stored call touched."""
    files = TouchFold(None)
    files.answered(answered_call)
    write_touches(connection, files.rows, {answered_call.call: key}, ids)
