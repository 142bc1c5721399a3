"""Rows of calls, as workers hand them on and as they are written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from threadline.index.answer import Answered, ending
from threadline.index.reread import entry_at
from threadline.index.texts import as_text
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.thread.calls import results_of

CallKey = tuple[int, int]
"""What a call has in the index: the number of the entry of its use, and the position of its block there."""

_TOOL = "(SELECT tool_id FROM tools WHERE tool = ?)"
_INSERT = f"INSERT INTO call_rows VALUES(?, ?, ?, {_TOOL}, ?, ?, ?, ?, ?, ?)"
_ANSWER = "UPDATE call_rows SET (result_entry_id, outcome, exit_code, started) = (?, ?, ?, ?)"
_USED = f"UPDATE call_rows SET (entry_id, position, tool_id, agent, moment) = (?, ?, {_TOOL}, ?, ?)"  # noqa: S608 - our own names
_FILES_USED = "UPDATE file_rows SET (entry_id, position) = (?, ?)"
_UNANSWERED = "UPDATE call_rows SET outcome = ?"
_THERE = " WHERE entry_id = ? AND position = ?"
_KNOWN = """SELECT c.entry_id, c.position, t.tool, c.result_entry_id, e.offset, e.line, c.agent
    FROM call_rows c JOIN entries e ON e.entry_id = c.entry_id JOIN tools t ON t.tool_id = c.tool_id"""
_REMEMBERED = f"{_KNOWN} WHERE c.entry_id = ? AND c.position = ? AND c.call = ?"
_SEARCHED = f"{_KNOWN} WHERE substr(c.call, -3) = substr(?, -3) AND c.call = ? AND e.transcript_id = ?"


class CallRow(Struct, array_like=True, gc=False):
    """A call as it is written. `at` and `result` are entries among those read; a negative one is a line read before.

    `at` is None where its use was not read. `known_line` is where a use before that stands, as far as is remembered.
    """

    call: str
    tool: str = ""
    at: int | None = None
    position: int = 0
    agent: str | None = None
    result: int | None = None
    outcome: str | None = None
    exit_code: int | None = None
    moment: int | None = None
    started: str | None = None
    known_line: int = 0
    known_position: int = 0


class Late(Struct, frozen=True):
    """A call that got a result which was not known to be its own when it was read."""

    key: CallKey
    agent: str | None
    answered: Answered


class CallRows(Struct, array_like=True, gc=False):
    """The rows of calls; `loose` are results (call, entry, offset, line) of calls that this reading did not meet."""

    path: bytes
    rows: list[CallRow]
    loose: list[tuple[str, int, int, int]]
    is_whole: bool = True

    def write(self, connection: sqlite3.Connection, number: int, ids: EntryIds) -> dict[str, CallKey]:
        """Write them down for the transcript of that number; gives where in the index each is."""
        tools = dict.fromkeys(row.tool for row in self.rows)
        connection.executemany(
            "INSERT INTO tools(tool) SELECT ? WHERE NOT EXISTS(SELECT 1 FROM tools WHERE tool = ?)",
            [(tool, tool) for tool in tools],
        )
        if self.is_whole:
            connection.executemany(_INSERT, [_inserted(row, ids) for row in self.rows])
            return {row.call: (ids.of(row.at), row.position) for row in self.rows}
        return {row.call: self._write(connection, row, number, ids) for row in self.rows}

    def _write(self, connection: sqlite3.Connection, row: CallRow, number: int, ids: EntryIds) -> CallKey:
        """A call that may be there already: it was remembered, or it is told again."""
        known = None
        if row.known_line:
            before = (ids.of(-row.known_line), row.known_position, row.call)
            known = connection.execute(_REMEMBERED, before).fetchone()
        known = known or connection.execute(_SEARCHED, (row.call, row.call, number)).fetchone()
        if known is None:
            connection.execute(_INSERT, _inserted(row, ids))
            return ids.of(row.at), row.position
        key: CallKey = known[:2]
        if row.at is not None:
            entry, there = ids.of(row.at), key
            key = (entry, row.position)
            connection.execute(_USED + _THERE, (*key, row.tool, row.agent, row.moment, *there))
            connection.execute(_FILES_USED + _THERE, (*key, *there))
        if row.result is not None:
            told = (ids.of(row.result), row.outcome, row.exit_code, row.started)
            connection.execute(_ANSWER + _THERE, (*told, *key))
        elif known[3] is None:
            connection.execute(_UNANSWERED + _THERE, (row.outcome, *key))
        return key

    def late(self, connection: sqlite3.Connection, number: int, ids: EntryIds) -> Iterator[Late]:
        """Write down results of calls from before that were not remembered any more, as a rule since they had one."""
        path = os.fsdecode(self.path)
        for call, at, offset, line in self.loose if not self.is_whole else ():
            known = connection.execute(_SEARCHED, (call, call, number)).fetchone()
            entry = entry_at(path, offset, line) if known is not None else None
            if known is None or not isinstance(entry, UserEntry | AssistantEntry):
                continue
            for block in (one for one in results_of(entry) if as_text(one.tool_use_id) == call):
                end = ending(known[2], entry, block)
                told = (ids.of(at), str(end.outcome), end.exit_code, as_text(end.started))
                connection.execute(_ANSWER + _THERE, (*told, *known[:2]))
                again = Answered(
                    call=call,
                    tool=known[2],
                    entry=entry,
                    block=block,
                    at=at,
                    ending=end,
                    path=path,
                    offset=known[4],
                    line=known[5],
                    is_again=True,
                )
                yield Late(known[:2], known[6], again)


def _inserted(row: CallRow, ids: EntryIds) -> tuple[Any, ...]:
    result = ids.of(row.result) if row.result is not None else None
    told = (result, row.outcome, row.exit_code, row.moment, row.started)
    return ids.of(row.at), row.position, row.call, row.tool, row.agent, *told


class EntryIds:
    """Numbers of entries in the index, by what workers know of them."""

    def __init__(self, connection: sqlite3.Connection, transcript: int, first: int) -> None:
        self._connection = connection
        self._transcript = transcript
        self._first = first

    def of(self, at: int | None) -> int:
        """An entry by its number among those that were just read, or by a line before them, which is negative."""
        if at is not None and at >= 0:
            return self._first + at
        asked = "SELECT entry_id FROM entries WHERE transcript_id = ? AND line = ?"
        found = self._connection.execute(asked, (self._transcript, -(at or 0))).fetchone()
        return int(found[0]) if found is not None else 0
