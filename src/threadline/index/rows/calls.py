"""Extract tool calls, their outcomes and the files they touched from a transcript, entry by entry, and write them.

Gives the outcomes of `threadline.thread.calls` and the file operations of `threadline.thread.state`, without holding
a whole session in memory. Calls without a result are remembered between refreshes.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from msgspec import Struct

from threadline.errors import Error
from threadline.files import read_at
from threadline.home_files import open_transcript
from threadline.index.store import encode_time, name_ids, storable_int, storable_text
from threadline.model.attachments import EditedTextFile, FileAttachment
from threadline.model.blocks import (
    McpToolResultBlock,
    McpToolUseBlock,
    ServerResultBlock,
    ServerToolUseBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.calls import Outcome, ResultBlock
from threadline.model.entries import (
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    ToolResultEntry,
    ToolUseEntry,
    UserEntry,
)
from threadline.model.places import AgentId, CallId, Place
from threadline.model.results import (
    TOOL_RESULTS,
    EditResult,
    MultiEditResult,
    NotebookEditResult,
    ReadResult,
    WriteResult,
    result_type,
    typed_result,
)
from threadline.model.state import EvidenceKind
from threadline.model.text import extract_text
from threadline.parse import decode_object, entries
from threadline.thread import (
    AGENT_STARTING_TOOLS,
    BACKGROUND_OUTPUT_TOOLS,
    Answer,
    agent_id_in_result,
    agent_id_in_text,
    full_path,
    is_same_call,
    judge_outcome,
    parse_exit_code,
    parse_numbered_lines,
    result_blocks,
    verdict_without_result,
)

LIST_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskGet", "TaskUpdate", "TaskList"})
"""The tools that maintain todo and task lists."""

_PLAIN_TOOLS = frozenset(TOOL_RESULTS) - BACKGROUND_OUTPUT_TOOLS
_EXIT_CODE_STARTS = frozenset({"", "E"})  # of texts that may name an exit code
_USE_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)


class CallEnding(Struct, frozen=True, gc=False):
    """How a call ended, its exit code if recorded, and the agent that it started."""

    outcome: Outcome
    exit_code: int | None = None
    started: AgentId | None = None


_PLAIN_SUCCESS = CallEnding(Outcome.OK)


def judge_result(tool: str, entry: UserEntry | AssistantEntry, block: ResultBlock) -> CallEnding:
    """How a call of a tool ended, according to its result. The same rules as in `threadline.thread.calls`."""
    raw = entry.tool_use_result if type(entry) is UserEntry else None
    is_plain = _is_plain_success(tool, entry, block, raw)
    if is_plain and tool not in AGENT_STARTING_TOOLS and not _may_name_agent_or_exit_code(entry, raw, block.content):
        return _PLAIN_SUCCESS
    text = extract_text(block.content)
    value = typed_result(raw, tool) if not is_plain else None
    outcome = Outcome.OK if is_plain else judge_outcome(Answer(tool, entry, block, value, text))[0]
    started = agent_id_in_result(entry) or (agent_id_in_text(text) if tool in AGENT_STARTING_TOOLS else None)
    return CallEnding(outcome, storable_int(parse_exit_code(tool, value, text)), started)


def _may_name_agent_or_exit_code(entry: UserEntry | AssistantEntry, raw: Any, content: Any) -> bool:
    """Whether a result may name an agent or, at the start of its text, an exit code."""
    if entry.agent_transcript_path is not None or (raw is not None and ("agentId" in raw or "agent_id" in raw)):
        return True
    if type(content) is list and content:
        content = content[0].text if type(content[0]) is TextBlock else " "
    return type(content) is str and (content[:1] in _EXIT_CODE_STARTS or content[:1].isspace())


def _is_plain_success(tool: str, entry: UserEntry | AssistantEntry, block: ResultBlock, raw: Any) -> bool:
    """Whether nothing in a result can mean that its call failed."""
    if (
        type(entry) is not UserEntry
        or type(block) is not ToolResultBlock
        or block.is_error
        or entry.tool_denial_kind
        or entry.permission_decision is not None
    ):
        return False
    if raw is None:
        return block.is_error is False
    return (
        type(raw) is dict
        and (tool in _PLAIN_TOOLS or tool.startswith("mcp__"))
        and raw.get("success") is not False
        and not raw.get("interrupted")
        and not raw.get("wasInterrupted")
        and not raw.get("timedOutAfterMs")
    )


class AnsweredCall(Struct, frozen=True, gc=False):
    """A call with its result, from which other tables are derived.

    `use` is the block of the call if it was just read; otherwise it is at `offset`. `is_again` says that the call had a
    result before.
    """

    call: str
    tool: str
    entry: UserEntry | AssistantEntry
    block: ResultBlock
    at: int
    ending: CallEnding
    path: str
    use: Any = None
    offset: int = 0
    line: int = 0
    is_again: bool = False

    @property
    def input(self) -> Any:
        """The input of the tool; read again if necessary."""
        if self.use is None and self.line:
            return read_call_input(self.path, self.offset, self.line, self.call)
        return self.use.input if self.use is not None else None


def read_call_input(path: str, offset: int, line: int, call: str, length: int = 0) -> Any:
    """The input of a call in the line at that offset; None if the call is not there any more.

    With the length of the line, only its bytes are read and decoded, which is 15 times as fast.
    """
    value = call_input(_read_line(path, offset, length), call) if length else None
    return value if value is not None else call_input(read_entry_at(path, offset, line), call)


def call_input(entry: Entry | None, call: str) -> Any:
    """The input of a call of an entry; None if the entry does not contain it."""
    content = entry.message.content if isinstance(entry, AssistantEntry) and entry.message is not None else None
    for index, block in enumerate(content or ()):
        if isinstance(block, _USE_BLOCKS) and call_id(block, entry, index) == call:
            return block.input
    return None


def _read_line(path: str, offset: int, length: int) -> Entry | None:
    """The entry in these bytes; None if they are not a line that decodes by itself."""
    try:
        descriptor = open_transcript(path)
        try:
            return decode_object(read_at(descriptor, offset, offset + length), Place(path))[0]
        finally:
            os.close(descriptor)
    except (Error, OSError, ValueError, RecursionError):
        return None


def call_id(block: Any, entry: Any, index: int) -> str:
    """The id of a call. A call without one is named after its entry."""
    return storable_text(block.id) or storable_text(f"{entry.uuid or entry.line.number}#{index}") or ""


_BY_SHAPE: dict[type, tuple[EvidenceKind, tuple[str, ...]]] = {
    WriteResult: (EvidenceKind.WRITE, ("content",)),
    EditResult: (EvidenceKind.EDIT, ("oldString", "newString")),
    MultiEditResult: (EvidenceKind.EDIT, ("edits",)),
}
NO_CALL_POSITION = -1
"""The position of a file touch that no call made."""

_FILE_RESULTS = frozenset({*_BY_SHAPE, ReadResult, NotebookEditResult})
_BY_INPUT: dict[str, tuple[EvidenceKind, tuple[str, ...]]] = {
    "Write": (EvidenceKind.WRITE, ("content",)),
    "Edit": (EvidenceKind.EDIT, ("old_string", "new_string")),
    "MultiEdit": (EvidenceKind.EDIT, ()),
    "NotebookEdit": (EvidenceKind.EDIT, ()),
    "Read": (EvidenceKind.READ, ()),
}
# Parts of a path that can be simplified.
_DETOURS = re.compile(r"/(?:/|\.\.?(?:/|$)|$)")
# The first line shows whether lines are numbered.
_NUMBERED_PREFIX = 100


class TouchRow(Struct, array_like=True, gc=False):
    """A path, what was done to it, and the entry or call that reports it."""

    path: str
    how: str
    at: int
    moment: int | None = None
    call: str | None = None


class TouchFold:
    """Collects file touches while entries are added. `cwd` is the last working directory, for relative paths."""

    def __init__(self, cwd: str | None) -> None:
        self.cwd = cwd
        self._by_call: dict[str, TouchRow] = {}
        self._without_call: list[TouchRow] = []

    @property
    def rows(self) -> list[TouchRow]:
        """The touches so far. A call touches one file at most: that of its last result."""
        return [*self._by_call.values(), *self._without_call]

    def answered(self, answered_call: AnsweredCall) -> None:
        """Add the file that an answered call touched, if it touched one."""
        if answered_call.is_again:
            self._by_call.pop(answered_call.call, None)
        if (touch := _touch_of(answered_call)) is not None:
            call = answered_call.call
            self._by_call[call] = self._make_row(answered_call.entry, *touch, at=answered_call.at, call=call)

    def attached(self, at: int, entry: AttachmentEntry) -> None:
        """Add a file that was attached, or that changed outside of the session."""
        match entry.attachment:
            case EditedTextFile(filename=str(path)):
                self._without_call.append(self._make_row(entry, path, EvidenceKind.OUTSIDE, at=at))
            case FileAttachment(content=dict(content)):
                if (read := _read_path(content)) is not None:
                    self._without_call.append(self._make_row(entry, read, EvidenceKind.ATTACHED, at=at))

    def _make_row(
        self, entry: ChainEntry, path: str, how: EvidenceKind, *, at: int, call: str | None = None
    ) -> TouchRow:
        cwd = entry.cwd or self.cwd
        is_absolute = path[:1] == "/" == (cwd or "/")[0] and not _DETOURS.search(path)
        absolute = path if is_absolute else full_path(path, cwd)
        return TouchRow(storable_text(absolute) or "", how.value, at, epoch_seconds(entry), call)


def write_touches(
    connection: sqlite3.Connection, rows: list[TouchRow], calls: Mapping[str, CallKey], ids: EntryIds
) -> None:
    """Write which files were touched. `calls` are the keys of the calls that did it."""
    paths = {path: _path_id(connection, path) for path in dict.fromkeys(row.path for row in rows)}
    connection.executemany(
        "INSERT OR IGNORE INTO file_rows VALUES(?, ?, ?, ?, ?)",
        [(*_touch_key(row, calls, ids), paths[row.path], row.how, row.moment) for row in rows],
    )


def _path_id(connection: sqlite3.Connection, path: str) -> int:
    """The id of a path, which is added if it is new."""
    key = (_checksum(path), path)
    row = connection.execute("SELECT path_id FROM paths WHERE checksum = ? AND path = ?", key).fetchone()
    if row is None:
        return connection.execute("INSERT INTO paths(checksum, path) VALUES(?, ?)", key).lastrowid or 0
    return int(row[0])


def delete_touches(connection: sqlite3.Connection, key: CallKey) -> None:
    """Delete the file touches of a call, because another of its results counts now."""
    connection.execute("DELETE FROM file_rows WHERE entry_id = ? AND position = ?", key)


def _touch_key(touch_row: TouchRow, calls: Mapping[str, CallKey], ids: EntryIds) -> CallKey:
    return calls[touch_row.call] if touch_row.call is not None else (ids.of(touch_row.at), NO_CALL_POSITION)


def _checksum(path: str) -> int:
    """The checksum by which a path is looked up. An index over paths would be as large as all of them."""
    return crc32(path.encode())


def _touch_of(answered_call: AnsweredCall) -> tuple[str, EvidenceKind] | None:
    """The path that a call touched, and how. The same rules as in `threadline.thread.state.files`."""
    raw = answered_call.entry.tool_use_result if isinstance(answered_call.entry, UserEntry) else None
    if type(raw) is dict:
        shape = TOOL_RESULTS.get(answered_call.tool) or result_type(raw, answered_call.tool)
        return _by_result(shape, raw, answered_call) if shape in _FILE_RESULTS else None
    if raw is None and answered_call.tool in _BY_INPUT and answered_call.ending.outcome is Outcome.OK:
        return _by_input(answered_call)
    return None


def _by_result(shape: type | None, raw: dict[str, Any], answered_call: AnsweredCall) -> tuple[str, EvidenceKind] | None:
    if shape is ReadResult:
        path = _read_path(raw)
        return (path, EvidenceKind.READ) if path is not None else None
    if shape is NotebookEditResult:
        return _by_notebook(raw, answered_call)
    how, needed = _BY_SHAPE[shape]  # type: ignore[index]
    path = raw.get("filePath")
    if type(path) is not str or not all(isinstance(raw.get(name), str | list) for name in needed):
        return None
    return path, EvidenceKind.USER_MODIFIED if raw.get("userModified") is True else how


def _by_notebook(raw: dict[str, Any], answered_call: AnsweredCall) -> tuple[str, EvidenceKind] | None:
    path = raw.get("notebook_path")
    if type(path) is not str or not path:
        tool_input = answered_call.input
        path = tool_input.get("notebook_path") if isinstance(tool_input, dict) else None
    return (path, EvidenceKind.EDIT) if isinstance(path, str) and path and not raw.get("error") else None


def _by_input(answered_call: AnsweredCall) -> tuple[str, EvidenceKind] | None:
    """The touch of a call without a structured result, as agents often write them."""
    tool_input = answered_call.input
    how, needed = _BY_INPUT[answered_call.tool]
    name = "notebook_path" if answered_call.tool == "NotebookEdit" else "file_path"
    path = tool_input.get(name) if isinstance(tool_input, dict) else None
    if not isinstance(path, str) or not path or not all(isinstance(tool_input.get(name), str) for name in needed):
        return None
    if how is EvidenceKind.READ and not parse_numbered_lines(
        extract_text(answered_call.block.content)[:_NUMBERED_PREFIX]
    ):
        return None
    return path, how


def _read_path(content: dict[str, Any]) -> str | None:
    file = content.get("file")
    path = file.get("filePath") if type(file) is dict else None
    return path if type(path) is str else None


def read_entry_at(path: str, offset: int, line: int) -> Entry | None:
    """The entry at an offset; None if it cannot be read any more."""
    try:
        return next(iter(entries(path, offset=offset, line=line)), None)
    except Error:
        return None


CallSource = tuple[str | None, str | None]
"""The model that made a call, and the version of Claude Code."""

CallKey = tuple[int, int]
"""The key of a call in the index: the number of its entry, and the position of its block there."""

_INSERT_CALL = f"INSERT INTO call_rows VALUES({', '.join('?' * 12)})"
_UPDATE_RESULT = "UPDATE call_rows SET (result_entry_id, outcome, exit_code, started, duration) = (?, ?, ?, ?, ?)"
_UPDATE_USE = "UPDATE call_rows SET (entry_id, position, tool_id, agent, moment, source_id) = (?, ?, ?, ?, ?, ?)"
_MOVE_FILE = "UPDATE OR REPLACE file_rows SET (entry_id, position) = (?, ?)"
FORGET_OUTCOMES = "DELETE FROM outcome_transcripts WHERE transcript_id = ?"
"""Notes that calls of a transcript have changed: the next question about their outcomes extracts them again."""
GIVE_BACK = "DELETE FROM borrowed_results"  # a trigger restores the outcome of the call
_UPDATE_OUTCOME = "UPDATE call_rows SET outcome = ?"
WHERE_KEY = " WHERE entry_id = ? AND position = ?"
_SET_DURATION = """UPDATE call_rows SET duration = (SELECT MAX(CAST(ROUND(86400000 *
        (julianday(r.timestamp) - julianday(e.timestamp))) AS INTEGER), 0) FROM entries e, entries r
        WHERE e.entry_id = call_rows.entry_id AND r.entry_id = call_rows.result_entry_id
        AND julianday(r.timestamp) >= julianday(e.timestamp))"""
_SELECT_SOURCE = "SELECT source_id FROM call_sources WHERE model IS ? AND version IS ?"
_INSERT_SOURCE = "INSERT INTO call_sources(model, version) VALUES(?, ?)"
_SELECT_CALL = """SELECT c.entry_id, c.position, t.tool, c.result_entry_id, e.offset, e.line, c.agent
    FROM call_rows c JOIN entries e ON e.entry_id = c.entry_id JOIN tools t ON t.tool_id = c.tool_id"""
_SELECT_BY_KEY = f"{_SELECT_CALL} WHERE c.entry_id = ? AND c.position = ? AND c.call = ?"
_SELECT_BY_CALL = f"{_SELECT_CALL} WHERE substr(c.call, -3) = substr(?, -3) AND c.call = ? AND e.transcript_id = ?"


class StoredCall(NamedTuple):
    """A call that the index has, and the place of its entry."""

    entry_id: int
    position: int
    tool: str
    result_entry_id: int | None
    offset: int
    line: int
    agent: str | None

    @property
    def key(self) -> CallKey:
        """Its key in the index."""
        return self.entry_id, self.position


def find_call(connection: sqlite3.Connection, call: str, transcript: int) -> StoredCall | None:
    """The call of that id in the transcript of that number; None if it has none."""
    row = connection.execute(_SELECT_BY_CALL, (call, call, transcript)).fetchone()
    return StoredCall(*row) if row is not None else None


def _find_call_at(connection: sqlite3.Connection, key: CallKey, call: str) -> StoredCall | None:
    """The call of that id, if it still has that key."""
    row = connection.execute(_SELECT_BY_KEY, (*key, call)).fetchone()
    return StoredCall(*row) if row is not None else None


class CallRow(Struct, array_like=True, gc=False):
    """The row of a call.

    `at` and `result` are positions among the entries that were read; a negative number is a line that was read before.
    `at` is None if only the result was read. `known_line` is the line of the call in an earlier read, if remembered.
    `duration` is in milliseconds, and `source` a position in `CallRows.sources`.
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
    duration: int | None = None
    source: int = 0


class LateResult(Struct, frozen=True):
    """A call whose result was not recognised as such when it was read."""

    key: CallKey
    agent: str | None
    answered: AnsweredCall


class CallRows(Struct, array_like=True, gc=False):
    """The rows of calls. `loose` are results (call, entry, offset, line) whose calls were not read this time.

    `sources` are the models and versions of Claude Code that made the calls.
    """

    path: bytes
    rows: list[CallRow]
    loose: list[tuple[str, int, int, int]]
    is_whole: bool = True
    sources: list[CallSource] = []

    def write(self, connection: sqlite3.Connection, number: int, ids: EntryIds) -> dict[str, CallKey]:
        """Write them for the transcript of that number, and return the key of each."""
        tools = name_ids(connection, "tools", "tool", [row.tool for row in self.rows])
        sources = _source_ids(connection, self.sources)
        if self.is_whole:
            connection.executemany(_INSERT_CALL, [_call_values(row, tools, sources, ids) for row in self.rows])
            return {row.call: (ids.of(row.at), row.position) for row in self.rows}
        return {row.call: self._write(connection, row, number, tools, sources, ids) for row in self.rows}

    def _write(  # noqa: PLR0917 - what a row refers to
        self,
        connection: sqlite3.Connection,
        row: CallRow,
        number: int,
        tools: Mapping[str, int],
        sources: Sequence[int],
        ids: EntryIds,
    ) -> CallKey:
        """Write a call that the index may have already: it was remembered, or a transcript repeats it."""
        stored = None
        if row.known_line:
            stored = _find_call_at(connection, (ids.of(-row.known_line), row.known_position), row.call)
        stored = stored or find_call(connection, row.call, number)
        if stored is None:
            connection.execute(_INSERT_CALL, _call_values(row, tools, sources, ids))
            return ids.of(row.at), row.position
        key = stored.key
        if connection.execute(GIVE_BACK + WHERE_KEY, key).rowcount:
            stored = _find_call_at(connection, key, row.call) or stored
        if row.at is not None:
            stored_key, key = key, (ids.of(row.at), row.position)
            use = (*key, tools[row.tool], row.agent, row.moment, sources[row.source])
            connection.execute(_UPDATE_USE + WHERE_KEY, (*use, *stored_key))
            if row.result is None:
                connection.execute(_MOVE_FILE + WHERE_KEY, (*key, *stored_key))
            else:  # the new result counts, and `write_touches` writes its file
                delete_touches(connection, stored_key)
        if row.result is not None:
            result = (ids.of(row.result), row.outcome, row.exit_code, row.started, row.duration)
            connection.execute(_UPDATE_RESULT + WHERE_KEY, (*result, *key))
        elif stored.result_entry_id is None:
            connection.execute(_UPDATE_OUTCOME + WHERE_KEY, (row.outcome, *key))
        return key

    def write_open(self, connection: sqlite3.Connection, number: int, ids: EntryIds) -> bool:
        """Write calls without a result, and results without a call. Return whether results may have to be linked."""
        open_calls = [row.call for row in self.rows if row.result is None]
        if not self.is_whole:  # a call may be repeated that an earlier refresh has the result of
            open_calls = [call for call in open_calls if _is_open(connection, call, number)]
        connection.executemany("INSERT OR IGNORE INTO open_calls VALUES(?, ?)", [(number, call) for call in open_calls])
        stray = {call: ids.of(at) for call, at, _, _ in self.loose}
        if not self.is_whole:
            late = {call for call in stray if find_call(connection, call, number) is not None}
            answered = [(number, call) for call in (*late, *(row.call for row in self.rows if row.result is not None))]
            connection.executemany("DELETE FROM open_calls WHERE transcript_id = ? AND call = ?", answered)
            uses = [(number, row.call) for row in self.rows]
            connection.executemany("DELETE FROM stray_results WHERE transcript_id = ? AND call = ?", uses)
            stray = {call: entry for call, entry in stray.items() if call not in late}
        connection.executemany(
            "INSERT OR REPLACE INTO stray_results VALUES(?, ?, ?)",
            [(call, number, entry) for call, entry in stray.items()],
        )
        return bool(self.rows or stray)

    def late(self, connection: sqlite3.Connection, number: int, ids: EntryIds) -> Iterator[LateResult]:
        """Write results of earlier calls that were not remembered any more, usually because they had a result."""
        path = os.fsdecode(self.path)
        for call, at, offset, line in self.loose if not self.is_whole else ():
            stored = find_call(connection, call, number)
            entry = read_entry_at(path, offset, line) if stored is not None else None
            if stored is None or not isinstance(entry, UserEntry | AssistantEntry):
                continue
            for block in (block for block in result_blocks(entry) if storable_text(block.tool_use_id) == call):
                ending = judge_result(stored.tool, entry, block)
                connection.execute(GIVE_BACK + WHERE_KEY, stored.key)
                write_result(connection, stored.key, ids.of(at), ending)
                answered_call = AnsweredCall(
                    call=call,
                    tool=stored.tool,
                    entry=entry,
                    block=block,
                    at=at,
                    ending=ending,
                    path=path,
                    offset=stored.offset,
                    line=stored.line,
                    is_again=True,
                )
                yield LateResult(stored.key, stored.agent, answered_call)


def write_result(connection: sqlite3.Connection, key: CallKey, entry_id: int, ending: CallEnding) -> None:
    """Write the result of a call that is already stored: its entry, and how the call ended."""
    values = (entry_id, str(ending.outcome), ending.exit_code, storable_text(ending.started), None)
    connection.execute(_UPDATE_RESULT + WHERE_KEY, (*values, *key))
    connection.execute(_SET_DURATION + WHERE_KEY, key)


def _source_ids(connection: sqlite3.Connection, sources: Sequence[CallSource]) -> list[int]:
    """The numbers of models and versions; those that are new are added."""
    numbers: list[int] = []
    for source in sources:
        row = connection.execute(_SELECT_SOURCE, source).fetchone()
        if row is None:
            numbers.append(connection.execute(_INSERT_SOURCE, source).lastrowid or 0)
        else:
            numbers.append(row[0])
    return numbers


def _is_open(connection: sqlite3.Connection, call: str, number: int) -> bool:
    """Whether a call of a transcript has no result of its own there."""
    stored = find_call(connection, call, number)
    return stored is not None and stored.result_entry_id is None


def _call_values(row: CallRow, tools: Mapping[str, int], sources: Sequence[int], ids: EntryIds) -> tuple[Any, ...]:
    result = ids.of(row.result) if row.result is not None else None
    ending = (result, row.outcome, row.exit_code, row.moment, row.started, row.duration, sources[row.source])
    return ids.of(row.at), row.position, row.call, tools[row.tool], row.agent, *ending


class EntryIds:
    """The numbers of entries in the index, by their positions among the entries that a worker read."""

    def __init__(self, connection: sqlite3.Connection, transcript: int, first: int) -> None:
        self._connection = connection
        self._transcript = transcript
        self._first = first

    def of(self, at: int | None) -> int:
        """The number of an entry, by its position; a negative position is a line that was read before."""
        if at is not None and at >= 0:
            return self._first + at
        query = "SELECT entry_id FROM entries WHERE transcript_id = ? AND line = ?"
        row = self._connection.execute(query, (self._transcript, -(at or 0))).fetchone()
        return int(row[0]) if row is not None else 0


_USE_TYPES = frozenset({ToolUseBlock, ServerToolUseBlock, McpToolUseBlock})
_RESULT_TYPES = frozenset({ToolResultBlock, McpToolResultBlock, *ServerResultBlock.__subclasses__()})
# How many calls without a result, and results without a call, are remembered. Others are looked up in the index.
_MAX_REMEMBERED = 200
# The tools whose input is often needed.
_TOOLS_NEEDING_INPUT = frozenset(
    {"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", *AGENT_STARTING_TOOLS, *LIST_TOOLS}
)
# The tools whose results never name a file or a list.
_TOOLS_WITHOUT_EFFECTS = (
    frozenset(tool for tool, result in TOOL_RESULTS.items() if result not in _FILE_RESULTS) - _TOOLS_NEEDING_INPUT
)


class PendingCall(Struct, array_like=True, gc=False):
    """A call without a result so far: its line, and the position of its block there.

    `message` is the message that contains it. `agent` is the agent that made it, unless that is the transcript's own.
    `followed` says that the conversation continued without a result, `has_row` that there is a row for it alone.
    `started` is when it was made, in milliseconds since 1970.
    """

    tool: str
    offset: int
    line: int
    position: int
    message: str | None = None
    agent: str | None = None
    followed: bool = False
    has_row: bool = False
    started: int | None = None


class CallState(Struct, array_like=True):
    """What a refresh remembers about the calls of a transcript: those without a result, and loose results.

    A loose result answers a call that was not read yet. Its offset and line are stored. `aliases` are the ids of rows
    that repeat a call, with the id of the call.
    """

    waiting: dict[str, PendingCall] = {}
    loose: dict[str, tuple[int, int]] = {}
    aliases: dict[str, str] = {}


class _KnownCall(Struct, gc=False):
    """A call that was read or is remembered: its row, its line, and its block if the input is needed.

    It does not refer to its entry: reading is faster if the memory of entries can be reused at once.
    """

    row: CallRow
    offset: int
    line: int
    message: str | None
    agent: str | None
    use: Any = None
    followed: bool = False
    has_row: bool = False
    started: int | None = None


AgentUse = tuple[str, Any, AssistantEntry]
"""A call that starts an agent: its id, its input, and its entry."""


class CallFold:
    """Collects calls while entries are added. `answered` is called with each call that gets a result, and its agent."""

    def __init__(
        self, state: CallState, path: str, answered: Callable[[AnsweredCall, str | None], None], *, is_whole: bool
    ) -> None:
        self.state = state
        self._path = path
        self._is_whole = is_whole
        self._answered = answered
        self._calls = {id_: _restore_pending(id_, pending) for id_, pending in state.waiting.items()}
        self._unfollowed = {id_: call for id_, call in self._calls.items() if not call.followed}
        self._loose: dict[str, tuple[int, int, int]] = {}
        self._sources: dict[CallSource, int] = {(None, None): 0}
        self.agent_uses: list[AgentUse] = []

    def reply(self, at: int, entry: AssistantEntry, agent: str | None) -> None:
        """Add an entry of a model."""
        if self._unfollowed:
            self._follow(entry, agent)
        content = entry.message.content if entry.message is not None else None
        if type(content) is list:
            for index, block in enumerate(content):
                kind = type(block)
                if kind in _USE_TYPES:
                    self._use(at, entry, block, index, agent)
                elif kind in _RESULT_TYPES:
                    self._result(at, entry, block, agent)  # type: ignore[arg-type]

    def user(self, at: int, entry: UserEntry, agent: str | None) -> None:
        """Add a user entry, which usually contains results."""
        content = entry.message.content if entry.message is not None else None
        answers = False
        if type(content) is list:
            for block in content:
                if type(block) in _RESULT_TYPES:
                    answers = True
                    self._result(at, entry, block, agent)  # type: ignore[arg-type]
        if self._unfollowed and not answers:
            self._follow(entry, agent)

    def call_row(self, at: int, entry: ToolUseEntry, agent: str | None) -> None:
        """Add a call that is a row of its own, unless it repeats a call of the message before."""
        blocks = entry.message.blocks if entry.message is not None else ()
        for index, block in enumerate(blocks):
            if not isinstance(block, ToolUseBlock | ServerToolUseBlock | McpToolUseBlock):
                continue
            waiting = (known for known in self._unfollowed.values() if known.agent == agent and not known.has_row)
            repeated = next((known for known in waiting if self._is_same_call(known, block, entry)), None)
            if repeated is None:
                repeated = self._use(at, entry, block, index, agent)
            elif (alias := storable_text(block.id)) and alias not in self._calls:
                self.state.aliases[alias] = repeated.row.call
                if alias in self.state.loose:
                    self._link_loose_result(alias, agent)
            repeated.has_row = True

    def _is_same_call(self, known: _KnownCall, row: Any, entry: ToolUseEntry) -> bool:
        if known.row.tool != storable_text(row.name) or entry.own_call_id is not None:
            return known.row.call == storable_text(row.id)
        tool_input = (
            known.use.input
            if known.use is not None
            else read_call_input(self._path, known.offset, known.line, known.row.call)
        )
        return is_same_call(ToolUseBlock(CallId(known.row.call), row.name, tool_input), row, entry)

    def result_row(self, at: int, entry: ToolResultEntry, agent: str | None) -> None:
        """Add a result that is a row of its own: it answers the call that it names, or the first that waits for one."""
        block = next(result_blocks(entry), None)
        if block is not None and block.tool_use_id:
            self._result(at, entry, block, agent)
            return
        call = next((id_ for id_, known in self._unfollowed.items() if known.agent == agent), None)
        if call is not None and block is not None:
            self._answer(call, at, entry, block, agent)

    def _use(self, at: int, entry: AssistantEntry, block: Any, index: int, agent: str | None) -> _KnownCall:
        call, tool = block.id, block.name
        if not call or not call.isascii() or not tool.isascii():
            call, tool = call_id(block, entry, index), storable_text(tool) or ""
        before = self._calls.get(call)
        started = epoch_milliseconds(entry)
        moment = started // 1000 if started is not None else None
        row = CallRow(call, tool, at, index, agent, None, None, None, moment)
        message = entry.message
        source = (message.model if message is not None else None, entry.version)
        row.source = self._sources.setdefault(source, len(self._sources))
        if before is not None:
            row.known_line, row.known_position = before.row.known_line, before.row.known_position
            if before.row.result is not None:  # the call is repeated; its result stays
                row.result, row.outcome = before.row.result, before.row.outcome
                row.exit_code, row.started, row.duration = before.row.exit_code, before.row.started, before.row.duration
        line = entry.line
        use = block if tool in _TOOLS_NEEDING_INPUT else None
        if tool in AGENT_STARTING_TOOLS:
            self.agent_uses.append((call, block.input, entry))
        message_id = message.id if message is not None else None
        known = self._calls[call] = _KnownCall(row, line.offset, line.number, message_id, agent, use, started=started)
        if row.result is not None:
            return known
        if entry.is_aborted_mid_stream:
            row.outcome = Outcome.INTERRUPTED.value
            known.followed = True
            self._unfollowed.pop(call, None)
        else:
            self._unfollowed[call] = known
        if self.state.loose and call in self.state.loose:
            self._link_loose_result(call, agent)
        return known

    def _link_loose_result(self, call: str, agent: str | None) -> None:
        """Link a loose result, which came before its call, to the call."""
        loose, (offset, line) = self._loose.pop(call, None), self.state.loose.pop(call)
        entry = read_entry_at(self._path, offset, line)
        if isinstance(entry, UserEntry | AssistantEntry):
            for block in result_blocks(entry):
                if storable_text(block.tool_use_id) == call:
                    self._result(loose[0] if loose is not None else -line, entry, block, agent)

    def _result(self, at: int, entry: UserEntry | AssistantEntry, block: ResultBlock, agent: str | None) -> None:
        call_id_ = block.tool_use_id
        if not call_id_:
            for call in self._calls_of_parent(entry):
                self._answer(call, at, entry, block, agent)
        else:
            self._answer(call_id_ if call_id_.isascii() else storable_text(call_id_) or "", at, entry, block, agent)

    def _answer(
        self, call: str, at: int, entry: UserEntry | AssistantEntry, block: ResultBlock, agent: str | None
    ) -> None:
        known = self._calls.get(call)
        if known is None and call in self.state.aliases:
            call = self.state.aliases[call]
            known = self._calls.get(call)
        if known is None:
            self._loose[call] = (at, entry.line.offset, entry.line.number)
            self.state.loose[call] = (entry.line.offset, entry.line.number)
            return
        self._unfollowed.pop(call, None)
        row = known.row
        is_again = row.result is not None
        ending = judge_result(row.tool, entry, block)
        row.result, row.outcome, row.exit_code = at, ending.outcome.value, ending.exit_code
        ended = epoch_milliseconds(entry)
        if ended is not None and known.started is not None:
            row.duration = ended - known.started if ended >= known.started else None
        if row.tool in _TOOLS_WITHOUT_EFFECTS and ending.started is None and not is_again:
            return
        row.started = storable_text(ending.started)
        place = known.offset, known.line
        answered = AnsweredCall(call, row.tool, entry, block, at, ending, self._path, known.use, *place, is_again)
        self._answered(answered, agent)
        known.use = None  # another result is unlikely, and the input can be large

    def _calls_of_parent(self, entry: UserEntry | AssistantEntry) -> list[str]:
        """The calls of a result that names none: those without an id in its parent entry."""
        parent = (entry.source_tool_assistant_uuid or entry.parent_uuid) if isinstance(entry, UserEntry) else None
        return [call for call in self._calls if parent and call.startswith(f"{storable_text(parent)}#")]

    def _follow(self, entry: UserEntry | AssistantEntry, agent: str | None) -> None:
        """The conversation continues: earlier calls usually get no result any more."""
        message = entry.message.id if type(entry) is AssistantEntry and entry.message is not None else None
        for call, known in list(self._unfollowed.items()):
            if known.agent == agent and (message is None or message != known.message):
                del self._unfollowed[call]
                known.followed = True
                known.row.outcome = verdict_without_result(entry)[0].value

    def done(self) -> CallRows:
        """The rows, when all entries have been added."""
        state = self.state
        state.waiting = {id_: _to_pending(call) for id_, call in self._calls.items() if call.row.result is None}
        for remembered in (state.waiting, state.loose, state.aliases):
            for id_ in list(remembered)[:-_MAX_REMEMBERED]:
                del remembered[id_]
        rows = [call.row for call in self._calls.values() if _has_changed(call.row)]
        loose = [(call, *place) for call, place in self._loose.items()]
        sources = [(storable_text(model), storable_text(version)) for model, version in self._sources]
        return CallRows(os.fsencode(self._path), rows, loose, self._is_whole, sources)


def _restore_pending(call: str, pending_call: PendingCall) -> _KnownCall:
    row = CallRow(call, pending_call.tool, known_line=pending_call.line, known_position=pending_call.position)
    return _KnownCall(
        row,
        pending_call.offset,
        pending_call.line,
        pending_call.message,
        pending_call.agent,
        followed=pending_call.followed,
        has_row=pending_call.has_row,
        started=pending_call.started,
    )


def _to_pending(call: _KnownCall) -> PendingCall:
    row = call.row
    position = row.position if row.at is not None else row.known_position
    message = storable_text(call.message)
    place = (row.tool, call.offset, call.line, position)
    return PendingCall(*place, message, call.agent, call.followed, call.has_row, call.started)


def _has_changed(row: CallRow) -> bool:
    return row.at is not None or row.result is not None or row.outcome is not None


def epoch_milliseconds(entry: Entry) -> int | None:
    """The time of an entry, in milliseconds since 1970; None if it has none."""
    text = entry.timestamp_text
    milliseconds = encode_time(text) if type(text) is str else None
    if type(milliseconds) is int:
        return milliseconds
    moment = entry.timestamp
    return int(moment.timestamp() * 1000) if moment is not None else None


def epoch_seconds(entry: Entry) -> int | None:
    """The time of an entry, in seconds since 1970; None if it has none."""
    milliseconds = epoch_milliseconds(entry)
    return milliseconds // 1000 if milliseconds is not None else None
