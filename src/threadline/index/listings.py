"""List tool calls and touched files across sessions, newest first."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import Struct

from threadline.index.schema import AGENT_SQL, PREFERRED_COPY_SQL, SESSION_SQL
from threadline.model.calls import ListedCall, ListedFile, Outcome
from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.times import parse_timestamp

# ruff: noqa: S608 - statements are made of our own words


_CallRow = tuple[Any, ...]
_CALL_COLUMNS = f"""c.moment, c.entry_id, c.position, c.call, k.tool, c.outcome, e.timestamp, r.timestamp, c.exit_code,
    COALESCE(e.session, t.session), {AGENT_SQL.format(row="c")}, c.started, COALESCE(p.path, p.folder), t.path, e.line,
    e.offset, e.length, r.line, r.offset, r.length,
    CASE WHEN r.transcript_id <> t.transcript_id
        THEN (SELECT o.path FROM transcripts o WHERE o.transcript_id = r.transcript_id) END"""
_CALL_JOINS = """CROSS JOIN tools k ON k.tool_id = c.tool_id
    CROSS JOIN projects p ON p.project_id = t.project_id
    LEFT JOIN entries r ON r.entry_id = c.result_entry_id"""
# From calls to their transcripts, where an index gives them in order of time; or from some transcripts to their calls.
_CALLS_BY_TIME = f"""SELECT {_CALL_COLUMNS} FROM call_rows c
    CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id {_CALL_JOINS}"""
_CALLS_BY_TRANSCRIPT = f"""SELECT {_CALL_COLUMNS} FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id {_CALL_JOINS}"""
_NEWEST_CALLS = "ORDER BY c.moment DESC, c.entry_id DESC, c.position DESC"
_PENDING = str(Outcome.PENDING)


def list_calls(
    connection: sqlite3.Connection,
    wanted: CallFilter,
    *,
    tools: Sequence[str] = (),
    outcomes: Sequence[str] = (),
) -> list[ListedCall]:
    """The calls that fit all of these, newest first, each once: `calls` of the schema tells which of its copies.

    With a session, all that its transcripts hold is shown, copies or not. A call without a time is older than all
    others, and is in no time that is asked for.
    """
    asked = _CallQuery(connection, wanted, tools, outcomes)
    some = select_transcripts(connection, wanted.session, wanted.project) if wanted.has_scope else None
    if some is None:
        rows = asked.walk("")
    elif wanted.session is not None or some.is_few:
        rows = asked.direct(some.condition, copies=wanted.session is not None)
    else:
        rows = asked.walk(some.condition)
    return [_listed_call(row) for row in islice(rows, wanted.limit)]


class _CallQuery:
    """What is asked for, as SQL."""

    def __init__(
        self, connection: sqlite3.Connection, wanted: CallFilter, tools: Sequence[str], outcomes: Sequence[str]
    ) -> None:
        self._connection = connection
        self._outcomes = [None if outcome == _PENDING else outcome for outcome in outcomes]
        self._tools = [
            number
            for number, tool in connection.execute("SELECT tool_id, tool FROM tools")
            if not tools or tool in tools
        ]
        self._any_tool = not tools
        self._wanted = wanted

    def walk(self, condition: str) -> Iterator[_CallRow]:
        """All calls in order of time, one lane a tool or an outcome, as the indexes have them."""
        if self._outcomes and str(Outcome.OK) not in self._outcomes:
            among = [] if self._any_tool else [self._of_tools]
            lanes = [("c.outcome IS ? AND c.outcome IS NOT 'ok'", outcome, among) for outcome in self._outcomes]
        else:
            among = [self._of_outcomes] if self._outcomes else []
            lanes = [("c.tool_id = ?", tool, among) for tool in self._tools]
        rows = (
            self._rows(
                _CALLS_BY_TIME,
                [how, *more, *([condition] if condition else []), f"NOT EXISTS({PREFERRED_COPY_SQL})"],
                (one,),
            )
            for how, one, more in lanes
        )
        return merge(*rows, key=lambda row: (row[0] is None, -(row[0] or 0), -row[1], -row[2]))

    def direct(self, condition: str, *, copies: bool) -> Iterator[_CallRow]:
        """The calls of some transcripts."""
        more = [condition] if copies else [condition, f"NOT EXISTS({PREFERRED_COPY_SQL})"]
        more += [] if self._any_tool else [self._of_tools]
        return self._rows(_CALLS_BY_TRANSCRIPT, more + ([self._of_outcomes] if self._outcomes else []), ())

    @property
    def _of_tools(self) -> str:
        return f"c.tool_id IN ({', '.join(map(str, self._tools))})"

    @property
    def _of_outcomes(self) -> str:
        return "(" + " OR ".join(f"c.outcome IS {_outcome_literal(outcome)}" for outcome in self._outcomes) + ")"

    def _rows(self, question: str, conditions: list[str], values: tuple[Any, ...]) -> Iterator[_CallRow]:
        times = self._wanted.seconds("c.moment")
        where = " AND ".join([*conditions, *times])
        for row in self._connection.execute(f"{question} WHERE {where} {_NEWEST_CALLS}", values):
            # An index has whole seconds.
            if not times or self._wanted.holds(parse_timestamp(row[6])):
                yield row


def _outcome_literal(outcome: str | None) -> str:
    """An outcome as SQL writes it; one that there is not fits nothing."""
    return "NULL" if outcome is None else f"'{Outcome(outcome)}'"


def _listed_call(row: _CallRow) -> ListedCall:
    _, _, _, call, tool, outcome, began, ended, code, session, agent, started, project, path, *places, result_path = row
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
        result_place=Place(os.fsdecode(result_path or path), *places[3:]) if places[3] is not None else None,
    )


# ruff: noqa: S608 - statements are made of our own words


_FileKey = tuple[int, str | None]
_FILE_JOINS = """CROSS JOIN entries e ON e.entry_id = f.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id"""
_FILES_BY_TIME = f"SELECT f.path_id, {SESSION_SQL} FROM file_rows f {_FILE_JOINS}"
_FILES_BY_TRANSCRIPT = f"""SELECT f.path_id, {SESSION_SQL} FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN file_rows f ON f.entry_id = e.entry_id"""
_BATCH = 5_000
_NEWEST_FILES = "ORDER BY f.moment DESC, f.entry_id DESC, f.position DESC"
_SELECT_FILES = f"""SELECT f.path_id, {SESSION_SQL}, p.path, MIN(COALESCE(o.path, o.folder)),
        SUM(f.how IN ('read', 'attached')), SUM(f.how IN ('write', 'edit', 'user-modified')),
        MIN(w.timestamp), MAX(w.timestamp)
    FROM file_rows f {_FILE_JOINS}
    CROSS JOIN paths p ON p.path_id = f.path_id
    CROSS JOIN projects o ON o.project_id = t.project_id
    LEFT JOIN call_rows c ON c.entry_id = f.entry_id AND c.position = f.position
    CROSS JOIN entries w ON w.entry_id = COALESCE(c.result_entry_id, f.entry_id)"""


def list_files(
    connection: sqlite3.Connection,
    wanted: CallFilter,
    path: str | None = None,
) -> list[ListedFile]:
    """The files that fit all of these, one for each session that touched it; those touched last come first.

    `path` is a file's path or the end of it. With a time, only what was done in it counts.
    """
    conditions = wanted.seconds("f.moment")
    if path is not None:
        conditions.append(f"f.path_id IN ({', '.join(map(str, _matching_paths(connection, path)))})")
    question = _FILES_BY_TIME
    if wanted.has_scope:
        some = select_transcripts(connection, wanted.session, wanted.project)
        conditions.append(some.condition)
        question = (
            _FILES_BY_TRANSCRIPT if path is None and (wanted.session is not None or some.is_few) else _FILES_BY_TIME
        )
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    keys = _first_keys(connection.execute(f"{question} {where} {_NEWEST_FILES}"), wanted.limit)
    return _load_files(connection, keys, conditions)


def _matching_paths(connection: sqlite3.Connection, path: str) -> Iterator[int]:
    """The files of that path, or whose path ends with it: whole names, whatever the signs between them."""
    wanted = "/" + path.replace("\\", "/").lstrip("/")
    for number, one in connection.execute("SELECT path_id, path FROM paths"):
        if one == path or one.replace("\\", "/").endswith(wanted):
            yield number


def _first_keys(rows: Iterator[_FileKey], limit: int | None) -> list[_FileKey]:
    """The first files, each once a session."""
    found: dict[_FileKey, None] = {}
    for key in rows:
        if limit is not None and len(found) >= limit:
            break
        found[key] = None
    return list(found)


def _load_files(connection: sqlite3.Connection, keys: list[_FileKey], conditions: list[str]) -> list[ListedFile]:
    """What is told of files, in the order given."""
    numbers = list(dict.fromkeys(number for number, _ in keys))
    told: dict[_FileKey, ListedFile] = {}
    for at in range(0, len(numbers), _BATCH):
        named = f"f.path_id IN ({', '.join(map(str, numbers[at : at + _BATCH]))})"
        where = " AND ".join([named, *conditions])
        for row in connection.execute(f"{_SELECT_FILES} WHERE {where} GROUP BY 1, 2"):
            number, session, path, project, reads, writes, first, last = row
            told[number, session] = ListedFile(
                path=path,
                session=SessionId(session) if session is not None else None,
                project=os.fsdecode(project),
                reads=reads,
                writes=writes,
                first=parse_timestamp(first),
                last=parse_timestamp(last),
            )
    return [told[key] for key in keys]


_SELECT_TOUCHES = """SELECT how, timestamp, call, session, agent, project, transcript, line FROM touched WHERE path = ?
    ORDER BY timestamp DESC, transcript, line DESC LIMIT ?"""


class FileTouch(Struct, frozen=True):
    """A file was touched: how, when, by which call of whom, and where that is told."""

    how: str
    timestamp: datetime | None
    call: CallId | None
    session: SessionId | None
    agent: AgentId | None
    project: str
    place: Place


def list_touches(connection: sqlite3.Connection, path: str, limit: int) -> list[FileTouch]:
    """Each time that a file was touched, the last first; no more than so many."""
    return [
        FileTouch(
            how, parse_timestamp(when), call, session, agent, os.fsdecode(project), Place(os.fsdecode(told), line)
        )
        for how, when, call, session, agent, project, told, line in connection.execute(_SELECT_TOUCHES, (path, limit))
    ]


class CallFilter(Struct, frozen=True):
    """All that fits every one of these; no limit means all of it.

    `session` is the start of an id, `project` a text that the project's path holds, whatever its case.
    """

    session: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = 50

    @property
    def has_scope(self) -> bool:
        """Whether it is asked of some transcripts, not of all."""
        return self.session is not None or self.project is not None

    def seconds(self, column: str) -> list[str]:
        """The time as conditions of SQL, on a column of whole seconds."""
        times = ((">=", self.since), ("<=", self.until))
        return [f"{column} {sign} {int(when.timestamp())}" for sign, when in times if when is not None]

    def holds(self, when: datetime | None) -> bool:
        """Whether a moment is in the time that is asked for; what has none is in no time."""
        if self.since is None and self.until is None:
            return True
        if when is None:
            return False
        return (self.since is None or when >= self.since) and (self.until is None or when <= self.until)


# Up to so many lines, it is quicker to go through all of them than to look for them in order of time.
_FEW_LINES = 50_000


class TranscriptSelection(Struct, frozen=True):
    """Some transcripts: a condition on a transcript `t`, and whether they hold few lines."""

    condition: str
    is_few: bool


def select_transcripts(connection: sqlite3.Connection, session: str | None, project: str | None) -> TranscriptSelection:
    """The transcripts of sessions whose id begins so, in projects whose path holds a text, whatever its case."""
    rows = connection.execute(
        """SELECT t.transcript_id, t.lines, t.project_id,
            COALESCE(t.session, (SELECT a.session FROM agent_rows a WHERE a.transcript_id = t.transcript_id))
        FROM transcripts t"""
    )
    fitting = _matching_projects(connection, project) if project is not None else None
    found = [
        (number, lines)
        for number, lines, of_project, of_session in rows
        if (session is None or (of_session or "").startswith(session)) and (fitting is None or of_project in fitting)
    ]
    is_few = sum(lines for _, lines in found) <= _FEW_LINES
    if session is None and fitting is not None and not is_few:
        return TranscriptSelection(f"t.project_id IN ({', '.join(map(str, sorted(fitting)))})", is_few)
    return TranscriptSelection(f"t.transcript_id IN ({', '.join(str(number) for number, _ in found)})", is_few)


def _matching_projects(connection: sqlite3.Connection, text: str) -> set[int]:
    names = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
    return {number for number, name in names if text.casefold() in os.fsdecode(name).casefold()}
