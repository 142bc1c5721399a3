"""Extract sightings from the lines of a transcript while it is read, and write them.

A sighting is what a transcript reports about the usage of one message. The lines are those that `state` reads anyway,
so that a transcript is read once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, count
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from threadline.index.rows.agents import AgentFold, AgentsState
from threadline.index.sightings import encode_sighting
from threadline.index.store import encode_time, name_ids, storable_text
from threadline.model.blocks import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, ChainEntry, ProgressEntry
from threadline.model.homes import Transcript, side_agent_kind_by_id
from threadline.model.usage import (
    INLINE_AGENT,
    MAX_PLACEHOLDER_OUTPUT,
    MAX_PLACEHOLDER_TEXT,
    SYNTHETIC_MODEL,
    Origin,
    TranscriptSightings,
)
from threadline.parse import (
    USAGE_NEEDLE,
    ContentRow,
    EntryRow,
    EntryRun,
    MatchingLines,
    MessageRow,
    SightingCollector,
    decode_rows,
    entries,
    find_first_time,
    find_lines,
    read_first_lines,
)

MARK_STALE = "INSERT OR IGNORE INTO stale(message_id) SELECT message_id FROM sightings WHERE transcript_id = ?"
"""Marks the messages of a transcript as stale: they have to be charged again."""

# If no line has a time, the file's mtime is used, and the file has changed.
_MARK_TIMELESS_STALE = f"{MARK_STALE} AND EXISTS(SELECT 1 FROM origins WHERE transcript_id = ? AND began = '')"  # noqa: S608 - our own names

_HAS_OTHER_START = "SELECT 1 FROM origins WHERE transcript_id = ? AND began <> ?"
# The columns of an origin, as in `_ORIGIN_COLUMNS`.
_OriginKey = tuple[str | bool | None, ...]
_SightingRow = tuple[str, int, int, str | None, int | str, int, bytes]
_SELECT_NEXT_MESSAGE = "SELECT COALESCE(MAX(message_id), 0) + 1 FROM message_ids"
_SELECT_MESSAGE = "SELECT message_id FROM message_ids WHERE message = ?"
_ORIGIN_COLUMNS = "session, agent, version, git_branch, is_agent, forked, skill, agent_type, inline"
_INSERT_ORIGIN = f"INSERT INTO origins(transcript_id, {_ORIGIN_COLUMNS}, is_side, began) VALUES({', '.join('?' * 12)})"
_SELECT_ORIGINS = f"SELECT origin_id, began, {_ORIGIN_COLUMNS} FROM origins o WHERE transcript_id = ?1"  # noqa: S608 - our own names
_IS_FORKED, _NO_VALUE = Raw(b"{}"), Raw()
_LONG_VALUE = Raw(b"." * (MAX_PLACEHOLDER_TEXT + 1))
_FIRST_LINES_BYTES = 16 * 1024
_IS_ORIGIN_USED = "EXISTS(SELECT 1 FROM sightings s WHERE s.transcript_id = ?1 AND s.origin_id = o.origin_id)"


class PlainSightings(Struct, gc=False):
    """The sightings of a whole transcript as accounting reads them, and their origins as the index stores them.

    `origins` of the sightings and `keys` have the same positions.
    """

    read: TranscriptSightings
    keys: list[_OriginKey]


class SightingRows(Struct, gc=False):
    """The sightings of the lines that were read.

    `sightings` are key, offset, position of the origin, model, time, number of rows and the encoded sighting.
    `waiting` are calls for web searches without a result so far. `is_all` says that these are the sightings of the
    whole transcript, not of the lines from `offset` on. `first` is the first time in the first lines, if there is one:
    if those are damaged, `began` may be from later lines.
    """

    sightings: list[_SightingRow] = []
    origins: list[_OriginKey] = []
    began: str = ""
    waiting: list[str] = []
    is_all: bool = False
    offset: int = 0
    first: str = ""

    def write(
        self, connection: sqlite3.Connection, number: int, *, is_new: bool = False, marks_stale: bool = True
    ) -> None:
        """Write them for the transcript of that number, and mark its messages as stale.

        `is_new` says that the index has nothing of the transcript so far. In an index without any charges all messages
        are stale, and need no marks.
        """
        if not is_new:
            self._delete_old(connection, number)
        if self.sightings:
            execute = connection.executemany
            origins = self._origin_ids(connection, number, is_new=is_new)
            names = [model for _, _, _, model, *_ in self.sightings if model is not None]
            models = name_ids(connection, "models", "model", names)
            messages = _message_ids(connection, [key for key, *_ in self.sightings])
            if marks_stale:
                execute("INSERT OR IGNORE INTO stale(message_id) VALUES(?)", [(id_,) for id_ in messages.values()])
            execute(
                "INSERT INTO sightings VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        messages[key],
                        number,
                        offset,
                        origins[origin],
                        models[model] if model is not None else None,
                        time,
                        rows,
                        packed,
                    )
                    for key, offset, origin, model, time, rows, packed in self.sightings
                ],
            )
        if self.waiting:
            connection.executemany("INSERT INTO waiting VALUES(?, ?)", [(number, call) for call in self.waiting])

    def _delete_old(self, connection: sqlite3.Connection, number: int) -> None:
        """Delete what these rows replace, and mark the messages that are affected as stale."""
        execute = connection.execute
        if self.is_all:
            execute(MARK_STALE, (number,))
            execute("DELETE FROM sightings WHERE transcript_id = ?", (number,))
            execute("DELETE FROM owned WHERE transcript_id = ?", (number,))
        else:
            execute(f"{MARK_STALE} AND offset >= ?", (number, self.offset))
            execute("DELETE FROM sightings WHERE transcript_id = ? AND offset >= ?", (number, self.offset))
        execute(_MARK_TIMELESS_STALE, (number, number))
        if self.first and execute(_HAS_OTHER_START, (number, self.first)).fetchone() is not None:
            execute(MARK_STALE, (number,))
            execute("DELETE FROM owned WHERE transcript_id = ?", (number,))
            execute("UPDATE origins SET began = ? WHERE transcript_id = ?", (self.first, number))
        execute("DELETE FROM waiting WHERE transcript_id = ?", (number,))

    def _origin_ids(self, connection: sqlite3.Connection, number: int, *, is_new: bool) -> list[int]:
        """The ids of the origins. Origins that the transcript has already keep theirs."""
        began = self.began
        ids: dict[tuple[object, ...], int] = {}
        if not is_new:
            # An unused origin waits to be deleted: it has the start of lines that are no longer there.
            query = f"{_SELECT_ORIGINS} AND {_IS_ORIGIN_USED}"
            if self.is_all:
                query = _SELECT_ORIGINS
                # Only if needed: an update that may be rolled back in part makes full-text search write all its words.
                if connection.execute(_HAS_OTHER_START, (number, began)).fetchone() is not None:
                    connection.execute("UPDATE origins SET began = ? WHERE transcript_id = ?", (began, number))
            for origin_id, origin_began, *key in connection.execute(query, (number,)):
                ids[tuple(key)] = origin_id
                began = origin_began
        for key in self.origins:
            if key not in ids:
                ids[key] = insert_origin(connection, number, key, began)
        return [ids[key] for key in self.origins]


def insert_origin(connection: sqlite3.Connection, number: int, key: _OriginKey, began: str) -> int:
    """Insert an origin of the transcript of that number; return its id."""
    agent = key[1]
    is_side = isinstance(agent, str) and side_agent_kind_by_id(agent) is not None
    return connection.execute(_INSERT_ORIGIN, (number, *key, is_side, began)).lastrowid or 0


def _message_ids(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, int]:
    """The ids of messages. Messages that are new are inserted."""
    distinct = list(dict.fromkeys(keys))
    (first,) = connection.execute(_SELECT_NEXT_MESSAGE).fetchone()
    inserted = connection.executemany("INSERT OR IGNORE INTO message_ids(message) VALUES(?)", zip(distinct))
    if inserted.rowcount == len(distinct):  # all are new, as usual: SQLite has counted on
        return dict(zip(distinct, count(first), strict=False))
    return {key: connection.execute(_SELECT_MESSAGE, (key,)).fetchone()[0] for key in distinct}


class SightingReader:
    """Collects the sightings of a transcript while its lines are read, all of them or those from `offset` on.

    `waiting` are calls for web searches in earlier lines, whose results may come now. With `is_plain`, sightings are
    not encoded, and have the results of agents: the index finds those in `start_rows`.
    """

    def __init__(
        self, transcript: Transcript, offset: int = 0, waiting: Sequence[str] = (), *, is_plain: bool = False
    ) -> None:
        self._transcript = transcript
        self._is_plain = is_plain
        self._offset = offset
        self._waiting = list(waiting)
        self._waiting_bytes = [call.encode() for call in waiting]
        self._has_waiting_result = False
        self._collector = SightingCollector(transcript)
        self._first_lines: list[bytes] | None = None

    def add(self, run: EntryRun) -> None:
        """Add the lines of a run."""
        if self._first_lines is None:
            self._first_lines = _first_lines(run) if not run.offset else []
        if run.is_piece:
            return
        if run.is_exact and not self._waiting_bytes:
            self._add_entries(run)
        else:
            self._add_lines(run)

    def _add_entries(self, run: EntryRun) -> None:
        """Add the usage of entries that were decoded without problems: for most of them, no byte is looked at again."""
        offsets: list[int] = []
        rows: list[EntryRow] = []
        for entry in run.entries:
            kind = type(entry)
            if kind is AssistantEntry:
                message = entry.message
                if message is None or message.usage is None or message.model == SYNTHETIC_MODEL:
                    continue
                row = _usage_row(entry)
                if row is not None:
                    offsets.append(entry.line.offset)
                    rows.append(row)
                    continue
            elif kind is not ProgressEntry or USAGE_NEEDLE not in entry.line.raw:
                continue
            line = entry.line
            for _, decoded in decode_rows(self._transcript.path, MatchingLines(b"", [line.offset], [line.raw])):
                offsets += [line.offset] * len(decoded)
                rows += decoded
        collector = self._collector
        collector.add_rows(offsets, rows)
        if collector.waiting or (self._is_plain and collector.has_waiting_agents):
            collector.add_results(MatchingLines(b"".join(run.lines), [], [], run.offset))

    def _add_lines(self, run: EntryRun) -> None:
        """Add the lines that contain usage, by their bytes."""
        placed = zip(accumulate(map(len, run.lines), initial=run.offset), run.lines, strict=False)
        matching = [(offset, line) for offset, line in placed if USAGE_NEEDLE in line]
        block = b"".join(run.lines)
        self._collector.add(
            MatchingLines(block, [offset for offset, _ in matching], [line for _, line in matching], run.offset)
        )
        if not self._has_waiting_result:
            self._has_waiting_result = any(call in block for call in self._waiting_bytes)

    def finish(self, read_to: int, inline: Mapping[int, str]) -> SightingRows:
        """The rows of the sightings, when the transcript has been read to that offset.

        `inline` are the agents inside a main transcript that have no id, by the offsets of their replies.
        """
        collector, waiting, is_all = self._collector, self._waiting, not self._offset
        # A search result belongs to a message from before, and a row without a time has the time of the row before it:
        # both may be in lines that an earlier refresh read.
        if self._has_waiting_result or (self._offset and any(sighting.timeless for sighting in collector.sightings)):
            collector, waiting, is_all = _collect_again(self._transcript, read_to), [], True
            if any(origin.agent == INLINE_AGENT for origin in collector.origins):
                inline = _read_inline_agents(self._transcript)
        first_lines = self._find_first_lines()
        result = collector.result(first_lines)
        last = (
            _collect_last_line(self._transcript, read_to).result(first_lines)
            if read_to < _file_size(self._transcript)
            else TranscriptSightings()
        )
        sightings = [(sighting, sighting.origin_number) for sighting in result.sightings]
        sightings += ((sighting, sighting.origin_number + len(result.origins)) for sighting in last.sightings)
        origins = OriginKeys((*result.origins, *last.origins), inline)
        number, has_long_content = origins.number, collector.has_long_content
        return SightingRows(
            [
                (
                    storable_text(sighting.key) or "",
                    (offset := int(sighting.rows.partition(" ")[0])),
                    number(origin_number, offset),
                    storable_text(sighting.model),
                    encode_time(storable_text(sighting.time) or ""),
                    sighting.rows.count(" ") // 2 + 1,
                    encode_sighting(sighting, has_long_content=has_long_content(sighting)),
                )
                for sighting, origin_number in sightings
            ],
            origins.keys,
            storable_text(result.began or last.began) or "",
            waiting + [storable_text(call) or "" for call in collector.waiting],
            is_all,
            self._offset,
            storable_text(find_first_time(first_lines)) or "",
        )

    def finish_plain(self, read_to: int, inline: Mapping[int, str]) -> PlainSightings:
        """The sightings of a transcript that was read from its start, including an unfinished last line."""
        collector = self._collector
        if read_to < _file_size(self._transcript):
            for lines in find_lines(self._transcript.path, USAGE_NEEDLE, offset=read_to):
                collector.add(lines)
        result = collector.result(self._find_first_lines())
        keys = OriginKeys(result.origins, inline)
        for sighting in result.sightings:
            sighting.origin_number = keys.number(sighting.origin_number, int(sighting.rows.partition(" ")[0]))
        result.origins = [replace(result.origins[number]) for number in keys.numbers]
        return PlainSightings(result, keys.keys)

    def _find_first_lines(self) -> list[bytes]:
        """The first lines of the transcript, in which its start time is looked for."""
        first_lines = self._first_lines or []
        return first_lines if find_first_time(first_lines) else read_first_lines(self._transcript.path)


class OriginKeys:
    """The origins of sightings as they are stored: the agents inside a main transcript have one each."""

    def __init__(self, origins: Sequence[Origin], inline: Mapping[int, str]) -> None:
        self._origins = origins
        self._inline = inline
        self.keys: list[_OriginKey] = [_origin_key(origin) for origin in origins]
        self.numbers = list(range(len(origins)))
        """The position among the origins of each of `keys`."""
        self._numbers: dict[tuple[int, str], int] = {}

    def number(self, number: int, offset: int) -> int:
        """The position among `keys` of the origin of a sighting, whose first row is at that offset."""
        if self._origins[number].agent != INLINE_AGENT or (agent := self._inline.get(offset)) is None:
            return number
        if (number, agent) not in self._numbers:
            self._numbers[number, agent] = len(self.keys)
            self.keys.append((*self.keys[number][:-1], agent))
            self.numbers.append(number)
        return self._numbers[number, agent]


def _read_inline_agents(transcript: Transcript) -> Mapping[int, str]:
    """The agents inside a main transcript, when earlier lines are read again."""
    fold = AgentFold(AgentsState(), transcript)
    for entry in entries(transcript.path):
        if isinstance(entry, ChainEntry) and entry.is_agent:
            fold.inside(entry, None)  # only the names of the agents are needed
    return fold.inline_agents


def _first_lines(run: EntryRun) -> list[bytes]:
    """The lines of the first run that `read_first_lines` would give whole."""
    lines: list[bytes] = []
    size = 0
    for line in run.lines:
        size += len(line)
        if size > _FIRST_LINES_BYTES:
            break
        lines.append(line)
    return lines


def _usage_row(entry: AssistantEntry) -> EntryRow | None:
    """The usage of an entry as `decode_rows` gives it for its line; None if that depends on how the line is written."""
    message = entry.message
    usage = message.usage if message is not None else None
    if message is None or usage is None or entry.cost_usd is not None:
        return None  # a cost is kept with all its digits
    content: list[ContentRow] | str | None = []
    if (usage.output_tokens or 0) <= MAX_PLACEHOLDER_OUTPUT:
        if not (usage.input_tokens or usage.cache_read_input_tokens or usage.output_tokens):
            return None  # whether anything is counted depends on which counts are missing
        content = _measured_content(message.content)
        if content is None:
            return None
    elif type(message.content) is list:
        content = [
            ContentRow("tool_use", block.name, block.id) for block in message.content if type(block) is ToolUseBlock
        ]
    return EntryRow(
        "assistant",
        entry.is_agent,
        entry.author_agent_id,
        entry.session_id,
        entry.version,
        entry.git_branch,
        entry.request_id,
        entry.uuid,
        entry.timestamp_text,
        MessageRow(message.model, message.id, content, message.stop_reason, usage),  # type: ignore[arg-type] # the same fields
        None,
        _IS_FORKED if entry.forked_from is not None else _NO_VALUE,
        entry.attribution_skill,
        entry.attribution_agent,
        _NO_VALUE,
    )


def _measured_content(content: Any) -> list[ContentRow] | str | None:
    """The content of a row whose output may be a placeholder, each block long or empty; None if that is not certain.

    JSON text is at least as long as the value. So a long value proves that it is long, and a short one proves nothing.
    """
    if type(content) is not list:
        return content or []
    rows: list[ContentRow] = []
    is_long, is_certain = False, True
    for block in content:
        kind = type(block)
        if kind is ToolUseBlock:
            tool_input = block.input
            long = type(tool_input) is dict and any(
                type(value) is str and len(value) >= MAX_PLACEHOLDER_TEXT for value in tool_input.values()
            )
            rows.append(ContentRow("tool_use", block.name, block.id, input=_LONG_VALUE if long else _NO_VALUE))
        elif kind is TextBlock:
            long = len(block.text) >= MAX_PLACEHOLDER_TEXT
            rows.append(ContentRow("text", text=_LONG_VALUE if long else _NO_VALUE))
        elif kind is ThinkingBlock or kind is RedactedThinkingBlock:
            continue
        else:
            long = False
        is_long, is_certain = is_long or long, is_certain and long
    return rows if is_long or is_certain else None


def _file_size(transcript: Transcript) -> int:
    try:
        return os.stat(transcript.path).st_size  # noqa: PTH116 - for thousands
    except OSError:
        return 0


def _collect_last_line(transcript: Transcript, read_to: int) -> SightingCollector:
    """The sightings of a last line without a line end: it counts if it is whole, and is read again later."""
    collector = SightingCollector(transcript)
    for lines in find_lines(transcript.path, USAGE_NEEDLE, offset=read_to):
        collector.add(lines)
    return collector


def _collect_again(transcript: Transcript, read_to: int) -> SightingCollector:
    """The sightings of a whole transcript up to an offset."""
    collector = SightingCollector(transcript)
    for lines in find_lines(transcript.path, USAGE_NEEDLE):
        count = sum(offset < read_to for offset in lines.offsets)  # it may have grown since
        lines.offsets, lines.lines = lines.offsets[:count], lines.lines[:count]
        lines.block = lines.block[: max(0, read_to - lines.start)]
        collector.add(lines)
    return collector


def _origin_key(origin: Origin) -> _OriginKey:
    return (
        storable_text(origin.session),
        storable_text(origin.agent),
        storable_text(origin.version),
        storable_text(origin.git_branch),
        origin.is_agent,
        origin.forked,
        storable_text(origin.skill),
        storable_text(origin.agent_type),
        None,
    )
