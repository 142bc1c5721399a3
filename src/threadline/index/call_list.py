"""Calls of all sessions, newest first, as the index tells them."""

# ruff: noqa: S608 - statements are made of our own words

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from threadline.index.tables.calls import AGENT, ORIGINAL
from threadline.index.transcripts_of import transcripts_of
from threadline.index.wanted import Wanted
from threadline.model.call import Outcome
from threadline.model.ids import AgentId, CallId, SessionId
from threadline.model.listed import ListedCall
from threadline.model.place import Place
from threadline.model.time import parse_timestamp

_Row = tuple[Any, ...]
_COLUMNS = f"""c.moment, c.entry_id, c.position, c.call, k.tool, c.outcome, e.timestamp, r.timestamp, c.exit_code,
    COALESCE(e.session, t.session), {AGENT.format(row="c")}, c.started, COALESCE(p.path, p.folder), t.path, e.line,
    e.offset, e.length, r.line, r.offset, r.length"""
_JOINS = """CROSS JOIN tools k ON k.tool_id = c.tool_id
    CROSS JOIN projects p ON p.project_id = t.project_id
    LEFT JOIN entries r ON r.entry_id = c.result_entry_id"""
# From calls to their transcripts, where an index gives them in order of time; or from some transcripts to their calls.
_WALK = f"""SELECT {_COLUMNS} FROM call_rows c
    CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id {_JOINS}"""
_DIRECT = f"""SELECT {_COLUMNS} FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id {_JOINS}"""
_NEWEST = "ORDER BY c.moment DESC, c.entry_id DESC, c.position DESC"
_PENDING = str(Outcome.PENDING)


def calls(
    connection: sqlite3.Connection,
    wanted: Wanted,
    *,
    tools: Sequence[str] = (),
    outcomes: Sequence[str] = (),
) -> list[ListedCall]:
    """The calls that fit all of these, newest first, each once: `calls` of the schema tells which of its copies.

    With a session, all that its transcripts hold is shown, copies or not. A call without a time is older than all
    others, and is in no time that is asked for.
    """
    asked = _Asked(connection, wanted, tools, outcomes)
    some = transcripts_of(connection, wanted.session, wanted.project) if wanted.is_of_some else None
    if some is None:
        rows = asked.walk("")
    elif wanted.session is not None or some.is_few:
        rows = asked.direct(some.condition, copies=wanted.session is not None)
    else:
        rows = asked.walk(some.condition)
    return [_call(row) for row in islice(rows, wanted.limit)]


class _Asked:
    """What is asked for, as SQL."""

    def __init__(
        self, connection: sqlite3.Connection, wanted: Wanted, tools: Sequence[str], outcomes: Sequence[str]
    ) -> None:
        self._connection = connection
        self._outcomes = [None if one == _PENDING else one for one in outcomes]
        self._tools = [
            number
            for number, tool in connection.execute("SELECT tool_id, tool FROM tools")
            if not tools or tool in tools
        ]
        self._any_tool = not tools
        self._wanted = wanted

    def walk(self, condition: str) -> Iterator[_Row]:
        """All calls in order of time, one lane a tool or an outcome, as the indexes have them."""
        if self._outcomes and str(Outcome.OK) not in self._outcomes:
            among = [] if self._any_tool else [self._of_tools]
            lanes = [("c.outcome IS ? AND c.outcome IS NOT 'ok'", one, among) for one in self._outcomes]
        else:
            among = [self._of_outcomes] if self._outcomes else []
            lanes = [("c.tool_id = ?", one, among) for one in self._tools]
        rows = (
            self._rows(_WALK, [how, *more, *([condition] if condition else []), f"NOT EXISTS({ORIGINAL})"], (one,))
            for how, one, more in lanes
        )
        return merge(*rows, key=lambda row: (row[0] is None, -(row[0] or 0), -row[1], -row[2]))

    def direct(self, condition: str, *, copies: bool) -> Iterator[_Row]:
        """The calls of some transcripts."""
        more = [condition] if copies else [condition, f"NOT EXISTS({ORIGINAL})"]
        more += [] if self._any_tool else [self._of_tools]
        return self._rows(_DIRECT, more + ([self._of_outcomes] if self._outcomes else []), ())

    @property
    def _of_tools(self) -> str:
        return f"c.tool_id IN ({', '.join(map(str, self._tools))})"

    @property
    def _of_outcomes(self) -> str:
        return "(" + " OR ".join(f"c.outcome IS {_literal(one)}" for one in self._outcomes) + ")"

    def _rows(self, question: str, conditions: list[str], values: tuple[Any, ...]) -> Iterator[_Row]:
        times = self._wanted.seconds("c.moment")
        where = " AND ".join([*conditions, *times])
        for row in self._connection.execute(f"{question} WHERE {where} {_NEWEST}", values):
            # An index has whole seconds.
            if not times or self._wanted.holds(parse_timestamp(row[6])):
                yield row


def _literal(outcome: str | None) -> str:
    """An outcome as SQL writes it; one that there is not fits nothing."""
    return "NULL" if outcome is None else f"'{Outcome(outcome)}'"


def _call(row: _Row) -> ListedCall:
    _, _, _, call, tool, outcome, began, ended, code, session, agent, started, project, path, *places = row
    transcript = os.fsdecode(path)
    return ListedCall(
        id=CallId(call),
        tool=tool,
        outcome=Outcome(outcome) if outcome is not None else Outcome.PENDING,
        timestamp=parse_timestamp(began),
        ended=parse_timestamp(ended),
        exit_code=code,
        session=SessionId(session) if session is not None else None,
        agent=AgentId(agent) if agent is not None else None,
        started_agent=AgentId(started) if started is not None else None,
        project=os.fsdecode(project),
        place=Place(transcript, *places[:3]),
        result_place=Place(transcript, *places[3:]) if places[3] is not None else None,
    )
