"""List tool calls and touched files across sessions, newest first."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.index.schema import AGENT_SQL, PREFERRED_COPY_SQL, SESSION_SQL
from threadline.index.store import UUID_PATTERN_SQL, decode_path, encode_path, read_transaction, storable_text
from threadline.index.vocabulary import normalize_text
from threadline.model.calls import FileList, ListedCall, ListedFile, Outcome
from threadline.model.names import names_tool
from threadline.model.places import AgentId, CallId, Place, SessionId, match_ids
from threadline.model.tables import Columns, Listing, Record
from threadline.model.text import is_path_or_end
from threadline.model.times import is_within, parse_timestamp

# ruff: noqa: S608 - statements are built from our own names and numbers


_CallRow = tuple[Any, ...]
_CALL_COLUMNS = f"""c.moment, c.entry_id, c.position, c.call, k.tool, c.outcome, e.timestamp, r.timestamp, c.exit_code,
    COALESCE(t.session, e.session), {AGENT_SQL.format(row="c")}, c.started, COALESCE(p.path, p.folder), t.path, e.line,
    e.offset, e.length, r.line, r.offset, r.length,
    CASE WHEN r.transcript_id <> t.transcript_id
        THEN (SELECT o.path FROM transcripts o WHERE o.transcript_id = r.transcript_id) END"""
_CALL_JOINS = """CROSS JOIN tools k ON k.tool_id = c.tool_id
    CROSS JOIN projects p ON p.project_id = t.project_id
    LEFT JOIN entries r ON r.entry_id = c.result_entry_id"""
# From calls in order of time, which a SQL index gives, to their transcripts; or from a few transcripts to their calls.
_CALLS_BY_TIME = f"""SELECT {_CALL_COLUMNS} FROM call_rows c
    CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id {_CALL_JOINS}"""
_CALLS_BY_TRANSCRIPT = f"""SELECT {_CALL_COLUMNS} FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id {_CALL_JOINS}"""
# `moment` is in whole seconds, which a SQL index gives in order; the timestamp decides within a second.
_NEWEST_CALLS = "ORDER BY c.moment DESC, e.timestamp DESC, c.entry_id DESC, c.position DESC"
_PENDING = str(Outcome.PENDING)
_OUTCOMES = tuple(map(str, Outcome))


class CallList(Listing[ListedCall]):
    """Calls, newest first. As a table, a call also has its `input`, as JSON, which is read from the transcript."""

    row_type = ListedCall
    noun = "call"
    renamed = {"id": "call"}  # noqa: RUF012 - annotated in the base class
    added = {"duration": timedelta}  # noqa: RUF012 - the same
    html_columns = ("timestamp", "session", "agent", "tool", "outcome", "duration", "input")

    @property
    def columns(self) -> Columns:
        """The names and types of the columns."""
        return {**super().columns, "input": str}

    def to_record(self, row: ListedCall) -> Record:
        """Return a call as a dictionary with a value for each column."""
        from threadline.index.rows.calls import read_call_input  # noqa: PLC0415 - loads the reader, which a list does without

        place = row.place
        value = read_call_input(place.transcript, place.offset, place.line, row.id, place.length)
        return {**super().to_record(row), "input": json.dumps(value, ensure_ascii=False)}


def list_calls(
    connection: sqlite3.Connection,
    selection: CallFilter,
    *,
    tools: Sequence[str] = (),
    exact_tools: bool = False,
    outcomes: Sequence[str] = (),
) -> CallList:
    """The matching calls, newest first, each once. The view `calls` in the schema defines which copy counts.

    With a session, all calls in its transcripts are listed, copies included. A call without a time sorts as the oldest,
    and is in no time range.
    """
    query = _CallQuery(connection, selection, tools, outcomes, exact_tools=exact_tools)
    scope = select_transcripts(connection, selection.session, selection.project) if selection.has_scope else None
    if scope is None:
        rows = query.by_time("")
    elif selection.session is not None or scope.is_few:
        rows = query.by_transcript(scope.condition, copies=selection.session is not None)
    else:
        rows = query.by_time(scope.condition)
    return CallList.take(map(_listed_call, rows), selection.limit)


class _CallQuery:
    """The SQL for a list of calls."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        selection: CallFilter,
        tools: Sequence[str],
        outcomes: Sequence[str],
        *,
        exact_tools: bool,
    ) -> None:
        self._connection = connection
        for outcome in outcomes:
            if outcome not in _OUTCOMES:
                raise BadQuery(f"Unknown value {outcome!r} for outcomes. Choose from {', '.join(_OUTCOMES)}.")
        self._outcomes = [None if outcome == _PENDING else outcome for outcome in dict.fromkeys(outcomes)]
        self._tools = [
            number
            for number, tool in connection.execute("SELECT tool_id, tool FROM tools")
            if not tools or names_tool(tools, tool, exact=exact_tools)
        ]
        self._any_tool = not tools
        self._selection = selection

    def by_time(self, condition: str) -> Iterator[_CallRow]:
        """All calls in order of time: merged from one query per tool or outcome, which SQL indexes keep in order."""
        if self._outcomes and str(Outcome.OK) not in self._outcomes:
            others = [] if self._any_tool else [self._of_tools]
            queries = [("c.outcome IS ? AND c.outcome IS NOT 'ok'", outcome, others) for outcome in self._outcomes]
        else:
            others = [self._of_outcomes] if self._outcomes else []
            queries = [("c.tool_id = ?", tool, others) for tool in self._tools]
        rows = (
            self._rows(
                _CALLS_BY_TIME,
                [key, *others, *([condition] if condition else []), f"NOT EXISTS({PREFERRED_COPY_SQL})"],
                (value,),
            )
            for key, value, others in queries
        )
        return merge(*rows, key=_time_key, reverse=True)

    def by_transcript(self, condition: str, *, copies: bool) -> Iterator[_CallRow]:
        """The calls of the transcripts that match a condition."""
        conditions = [condition] if copies else [condition, f"NOT EXISTS({PREFERRED_COPY_SQL})"]
        conditions += [] if self._any_tool else [self._of_tools]
        conditions += [self._of_outcomes] if self._outcomes else []
        return self._rows(_CALLS_BY_TRANSCRIPT, conditions, ())

    @property
    def _of_tools(self) -> str:
        return f"c.tool_id IN ({', '.join(map(str, self._tools))})"

    @property
    def _of_outcomes(self) -> str:
        return "(" + " OR ".join(f"c.outcome IS {_outcome_literal(outcome)}" for outcome in self._outcomes) + ")"

    def _rows(self, select: str, conditions: list[str], values: tuple[Any, ...]) -> Iterator[_CallRow]:
        times = self._selection.time_conditions("c.moment")
        where = " AND ".join([*conditions, *times])
        for row in self._connection.execute(f"{select} WHERE {where} {_NEWEST_CALLS}", values):
            # The index stores whole seconds.
            if not times or self._selection.has_time(parse_timestamp(row[6])):
                yield row


def _time_key(row: _CallRow) -> tuple[object, ...]:
    """What `_NEWEST_CALLS` sorts by; a call without a time is the oldest."""
    return row[0] is not None, row[0] or 0, row[6] or "", row[1], row[2]


def _outcome_literal(outcome: str | None) -> str:
    """An outcome as an SQL literal."""
    return "NULL" if outcome is None else f"'{Outcome(outcome)}'"


# Words of commands that write, move or copy files.
_WRITING_WORDS = "mv OR cp OR cat OR tee OR echo OR printf OR eof OR install OR rsync"


def list_commands(connection: sqlite3.Connection, name: str) -> Iterator[ListedCall]:
    """The shell commands that contain a file name and a word that writes or moves files, newest first, each once."""
    if not any(character.isalnum() for character in name):
        return
    phrase = '"' + normalize_text(name).replace('"', '""') + '"'
    conditions = [
        "c.entry_id IN (SELECT rowid FROM text WHERE text MATCH ?)",
        _tools_condition(connection, lambda tool: names_tool(("Bash", "PowerShell"), tool)),
        f"NOT EXISTS({PREFERRED_COPY_SQL})",
    ]
    query = f"{_CALLS_BY_TIME} WHERE {' AND '.join(conditions)} {_NEWEST_CALLS}"
    yield from map(_listed_call, connection.execute(query, (f"command : ({phrase} AND ({_WRITING_WORDS}))",)))


def list_commands_between(
    connection: sqlite3.Connection, is_near: Callable[[str], bool], since: float, until: float
) -> Iterator[ListedCall]:
    """The shell commands and calls of MCP servers in some projects between two times, in any order."""
    projects = [
        str(number)
        for number, path in connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
        if is_near(decode_path(path))
    ]
    among = f"t.project_id IN ({', '.join(projects)})"
    (first,) = connection.execute(
        f"SELECT MIN(s.first) FROM session_rows s JOIN transcripts t USING(transcript_id) WHERE {among}"
    ).fetchone()
    begin = parse_timestamp(first)
    if begin is None or begin.timestamp() > until:
        return
    tools = _tools_condition(
        connection, lambda tool: names_tool(("Bash", "PowerShell"), tool) or tool.startswith("mcp__")
    )
    query = f"{_CALLS_BY_TIME} WHERE {among} AND {tools} AND c.moment BETWEEN ? AND ?"
    times = int(max(since, begin.timestamp() - 1)), int(until)
    for call in map(_listed_call, connection.execute(query, times)):
        if call.timestamp is None or since < call.timestamp.timestamp() <= until:
            yield call


def _tools_condition(connection: sqlite3.Connection, is_selected: Callable[[str], bool]) -> str:
    tools = connection.execute("SELECT tool_id, tool FROM tools")
    return f"c.tool_id IN ({', '.join(str(number) for number, tool in tools if is_selected(tool))})"


def _listed_call(row: _CallRow) -> ListedCall:
    _, _, _, call, tool, outcome, began, ended, code, session, agent, started, project, path, *places, result_path = row
    transcript = decode_path(path)
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
        project=decode_path(project),
        place=Place(transcript, *places[:3]),
        result_place=Place(decode_path(result_path or path), *places[3:]) if places[3] is not None else None,
    )


_FileKey = tuple[int, str | None]
_FILE_JOINS = """CROSS JOIN entries e ON e.entry_id = f.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id"""
_FILES_BY_TIME = f"SELECT f.path_id, {SESSION_SQL} FROM file_rows f {_FILE_JOINS}"
_FILES_BY_TRANSCRIPT = f"""SELECT f.path_id, {SESSION_SQL} FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN file_rows f ON f.entry_id = e.entry_id"""
_BATCH = 5_000
_NEWEST_FILES = "ORDER BY f.moment DESC, e.timestamp DESC, f.entry_id DESC, f.position DESC"
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
    selection: CallFilter,
    path: str | None = None,
) -> FileList:
    """The matching files, once for each session that touched them, those touched last first.

    `path` is a file's path or the end of it. With a time range, only what was done in it counts.
    """
    conditions = selection.time_conditions("f.moment")
    if path is not None:
        conditions.append(f"f.path_id IN ({', '.join(map(str, _matching_paths(connection, path)))})")
    select = _FILES_BY_TIME
    if selection.has_scope:
        scope = select_transcripts(connection, selection.session, selection.project)
        conditions.append(scope.condition)
        if path is None and (selection.session is not None or scope.is_few):
            select = _FILES_BY_TRANSCRIPT
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    with read_transaction(connection):
        keys = _iter_keys(connection.execute(f"{select} {where} {_NEWEST_FILES}"))
        first = list(islice(keys, selection.limit))
        return FileList(_load_files(connection, first, conditions), None if any(True for _ in keys) else 0)


def list_paths(connection: sqlite3.Connection, name: str) -> list[str]:
    """The paths of touched files that have this name."""
    return [path for (path,) in connection.execute("SELECT path FROM paths") if is_path_or_end(path, name)]


def _matching_paths(connection: sqlite3.Connection, path: str) -> Iterator[int]:
    """The files of that path, or whose path ends with it: by whole names, with either kind of slash."""
    for number, full_path in connection.execute("SELECT path_id, path FROM paths"):
        if is_path_or_end(full_path, path):
            yield number


def _iter_keys(rows: Iterator[_FileKey]) -> Iterator[_FileKey]:
    """The files, each once per session."""
    seen: set[_FileKey] = set()
    for key in rows:
        if key not in seen:
            seen.add(key)
            yield key


def _load_files(connection: sqlite3.Connection, keys: list[_FileKey], conditions: list[str]) -> list[ListedFile]:
    """The files of these keys, in the same order."""
    numbers = list(dict.fromkeys(number for number, _ in keys))
    files: dict[_FileKey, ListedFile] = {}
    for at in range(0, len(numbers), _BATCH):
        batch = f"f.path_id IN ({', '.join(map(str, numbers[at : at + _BATCH]))})"
        where = " AND ".join([batch, *conditions])
        for row in connection.execute(f"{_SELECT_FILES} WHERE {where} GROUP BY 1, 2"):
            number, session, path, project, reads, writes, first, last = row
            files[number, session] = ListedFile(
                path=path,
                session=SessionId(session) if session is not None else None,
                project=decode_path(project),
                reads=reads,
                writes=writes,
                first=parse_timestamp(first),
                last=parse_timestamp(last),
            )
    return [files[key] for key in keys]


_SELECT_AGENTS = """SELECT a.agent, a.session, a.type, a.call, a.model, a.entries, a.first, a.last, a.project,
        a.transcript, a.side
    FROM agents a JOIN transcripts t ON t.transcript_id = a.transcript_id"""


class ListedAgent(Struct, frozen=True):
    """A subagent in a list: its type, the call that started it, its model, and when it worked.

    `side` says what Claude Code runs it for, if it does so itself: compaction, suggestions and so on.
    """

    agent: AgentId
    session: SessionId | None
    type: str | None
    call: CallId | None
    model: str | None
    entries: int
    first: datetime | None
    last: datetime | None
    project: str
    transcript: str
    side: str | None = None

    def __repr__(self) -> str:
        return f"ListedAgent({self.agent!r}, {self.type!r}, session {self.session!r}, {self.entries:,} entries)"


class AgentList(Listing[ListedAgent]):
    """Subagents, those that worked last first."""

    row_type = ListedAgent
    noun = "agent"


def list_agents(connection: sqlite3.Connection, selection: CallFilter, types: Sequence[str] = ()) -> AgentList:
    """The matching subagents, those that worked last first. One worked in a period if its last entry is in it."""
    scope = select_transcripts(connection, selection.session, selection.project) if selection.has_scope else None
    where = f" WHERE {scope.condition}" if scope is not None else ""
    rows = connection.execute(_SELECT_AGENTS + where + " ORDER BY a.last DESC, a.transcript, a.agent")
    agents = (_listed_agent(row) for row in rows)
    matches = (agent for agent in agents if (not types or agent.type in types) and selection.has_time(agent.last))
    return AgentList.take(matches, selection.limit)


def _listed_agent(row: tuple[Any, ...]) -> ListedAgent:
    agent, session, type_, call, model, entries, first, last, project, transcript, side = row
    times = (parse_timestamp(first), parse_timestamp(last))
    paths = (decode_path(project), decode_path(transcript))
    return ListedAgent(agent, session, type_, call, model, entries, *times, *paths, side)


_SELECT_EDITS = f"""SELECT p.path, c.call, k.tool, w.timestamp, {SESSION_SQL}, COALESCE(o.path, o.folder), wt.path,
        w.line, t.kind, t.path, t.home_id, t.project_id
    FROM file_rows f {_FILE_JOINS}
    CROSS JOIN paths p ON p.path_id = f.path_id
    CROSS JOIN projects o ON o.project_id = t.project_id
    CROSS JOIN call_rows c ON c.entry_id = f.entry_id AND c.position = f.position
    CROSS JOIN tools k ON k.tool_id = c.tool_id
    CROSS JOIN entries w ON w.entry_id = COALESCE(c.result_entry_id, f.entry_id)
    CROSS JOIN transcripts wt ON wt.transcript_id = w.transcript_id"""
_IS_EDIT = "f.how IN ('write', 'edit', 'user-modified')"


class EditKey(Struct, frozen=True):
    """An edit of a file: its call, the place of the result, and the transcript of the session to read."""

    path: str
    call: CallId
    tool: str
    timestamp: datetime | None
    session: SessionId | None
    project: str
    place: Place
    transcript: str


def list_edits(connection: sqlite3.Connection, selection: CallFilter, path: str) -> Iterator[EditKey]:
    """The edits of the files whose path is `path` or ends with it, newest first, each once. Ignores the limit.

    With a session, all edits in its transcripts are listed, copies included.
    """
    paths = ", ".join(map(str, _matching_paths(connection, path)))
    conditions = [f"f.path_id IN ({paths})", _IS_EDIT, *selection.time_conditions("f.moment")]
    if selection.has_scope:
        conditions.append(select_transcripts(connection, selection.session, selection.project).condition)
    if selection.session is None:
        conditions.append(f"NOT EXISTS({PREFERRED_COPY_SQL})")
    order = "ORDER BY w.timestamp DESC, f.entry_id DESC, f.position DESC"
    rows = connection.execute(f"{_SELECT_EDITS} WHERE {' AND '.join(conditions)} {order}")
    edits = (
        EditKey(
            path=full_path,
            call=CallId(call),
            tool=tool,
            timestamp=parse_timestamp(time),
            session=SessionId(session) if session is not None else None,
            project=decode_path(project),
            place=Place(decode_path(transcript), line),
            transcript=(None if kind == "main" else _main_transcript(connection, session, *ids)) or decode_path(own),
        )
        for full_path, call, tool, time, session, project, transcript, line, kind, own, *ids in rows
    )
    return (edit for edit in edits if selection.has_time(edit.timestamp))


def find_main_transcript(connection: sqlite3.Connection, transcript: str) -> str | None:
    """The path of the main transcript of the session that a transcript belongs to; None if there is none."""
    row = connection.execute(
        f"SELECT t.kind, {SESSION_SQL}, t.home_id, t.project_id FROM transcripts t WHERE t.path = ?",
        (encode_path(transcript),),
    ).fetchone()
    if row is None:
        return None
    kind, session, home, project = row
    return transcript if kind == "main" else _main_transcript(connection, session, home, project)


def _main_transcript(connection: sqlite3.Connection, session: str | None, home: int, project: int) -> str | None:
    """The path of a session's main transcript, if possible one in this home and project.

    A name that is not a UUID is that of another session in every project.
    """
    row = connection.execute(
        f"""SELECT path FROM transcripts WHERE kind = 'main' AND session = ?1
            AND (session LIKE {UUID_PATTERN_SQL} OR (home_id = ?2 AND project_id = ?3))
            ORDER BY home_id <> ?2, project_id <> ?3, path LIMIT 1""",
        (session, home, project),
    ).fetchone()
    return decode_path(row[0]) if row is not None else None


_SELECT_TOUCHES = """SELECT how, timestamp, call, session, agent, project, transcript, line FROM touched WHERE path = ?
    ORDER BY timestamp DESC, transcript, line DESC LIMIT ?"""


class FileTouch(Struct, frozen=True):
    """A read or a write of a file: how, when, by which call of which agent, and where that is recorded."""

    how: str
    timestamp: datetime | None
    call: CallId | None
    session: SessionId | None
    agent: AgentId | None
    project: str
    place: Place


def list_touches(connection: sqlite3.Connection, path: str, limit: int) -> list[FileTouch]:
    """The last times a file was read or written, newest first."""
    return [
        FileTouch(
            how, parse_timestamp(time), call, session, agent, decode_path(project), Place(decode_path(transcript), line)
        )
        for how, time, call, session, agent, project, transcript, line in connection.execute(
            _SELECT_TOUCHES, (storable_text(path), limit)
        )
    ]


class CallFilter(Struct, frozen=True):
    """Selects calls or files; every part that is given has to match. Without a limit, all are listed.

    `session` is a prefix of an id, `project` a part of the project's path, ignoring case.
    """

    session: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None

    @property
    def has_scope(self) -> bool:
        """Whether it limits the transcripts."""
        return self.session is not None or self.project is not None

    def time_conditions(self, column: str) -> list[str]:
        """The time range as SQL conditions on a column of whole seconds."""
        times = ((">=", self.since), ("<=", self.until))
        return [f"{column} {operator} {int(time.timestamp())}" for operator, time in times if time is not None]

    def has_time(self, time: datetime | None) -> bool:
        """Whether a time is in the range. None is in none, but passes if there is no range."""
        is_unlimited = self.since is None and self.until is None
        return is_unlimited or is_within(time, self.since, self.until)


# Up to so many lines, reading all calls of the transcripts is faster than searching all calls in order of time.
_FEW_LINES = 50_000


class TranscriptSelection(Struct, frozen=True):
    """A condition on a transcript `t`, and whether the matching transcripts have few lines."""

    condition: str
    is_few: bool


def select_transcripts(connection: sqlite3.Connection, session: str | None, project: str | None) -> TranscriptSelection:
    """The transcripts of a session, in projects whose path contains a text, ignoring case.

    A session is named by its id or a prefix; with `FOLDER/` before that, only the one in that project folder counts.
    """
    rows = connection.execute(
        f"""SELECT t.transcript_id, t.lines, t.project_id, p.folder, {SESSION_SQL}
        FROM transcripts t JOIN projects p ON p.project_id = t.project_id"""
    ).fetchall()
    projects = _matching_projects(connection, project) if project is not None else None
    if session is not None and "/" in session:
        folder, _, session = session.rpartition("/")
        rows = [row for row in rows if decode_path(row[3]) == folder]
    sessions = frozenset(match_ids(session, (row[-1] for row in rows))) if session is not None else None
    matches = [
        (number, lines)
        for number, lines, own_project, _folder, own_session in rows
        if (sessions is None or own_session in sessions) and (projects is None or own_project in projects)
    ]
    is_few = sum(lines for _, lines in matches) <= _FEW_LINES
    if session is None and projects is not None and not is_few:
        return TranscriptSelection(f"t.project_id IN ({', '.join(map(str, sorted(projects)))})", is_few)
    return TranscriptSelection(f"t.transcript_id IN ({', '.join(str(number) for number, _ in matches)})", is_few)


def _matching_projects(connection: sqlite3.Connection, text: str) -> set[int]:
    names = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
    return {number for number, name in names if text.casefold() in decode_path(name).casefold()}
