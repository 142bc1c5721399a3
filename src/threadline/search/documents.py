"""Read entries of the index from their transcripts, as documents that queries are matched against."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Self

from threadline.errors import Error
from threadline.index import IndexedLedger, extract_fields
from threadline.model.blocks import (
    McpToolResultBlock,
    McpToolUseBlock,
    ServerToolUseBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.entries import (
    AssistantEntry,
    ChainEntry,
    Entry,
    FailedEntry,
    ResultEntry,
    SystemEntry,
    ToolUseEntry,
    UserEntry,
)
from threadline.model.hits import Hit
from threadline.model.homes import Home, SideFile, SideFileKind
from threadline.model.side_files import AgentMeta
from threadline.model.times import parse_timestamp
from threadline.parse import MAX_LINE_LENGTH, Chunk, TranscriptReader, open_transcript, read_side_file
from threadline.search.match import Document
from threadline.search.query import TEXT_FIELDS, And, Cost, Has, Is, Match, Query, Regex, leaves
from threadline.search.regex import required_literals

_OPEN_FILES = 64
# A call stands a few entries before its result; in between stand calls made at the same time, and what went on.
_MAX_LINES_BACK = 60
_FIELDS_TO_READ = frozenset({"tool", "branch", "model", "version", "error"})
_PLAIN_WORD = re.compile("[0-9A-Za-z]{3,}")
# What is taken for a plain letter when case does not count.
_FOLDING_LETTERS = tuple(one.encode() for one in "\u212a\u017f\u0130\u0131")
_CALL_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_RESULT_BLOCKS = (ToolResultBlock, McpToolResultBlock)


class EntryRow(NamedTuple):
    """What the index has of an entry; `is_own` where the entry names the session of its own transcript."""

    entry_id: int
    score: float
    transcript_id: int
    transcript: str
    line: int
    offset: int
    length: int
    kind: str
    uuid: str | None
    timestamp: str | None
    session: str | None
    agent: str | None
    project: str
    is_own: bool


ENTRY_COLUMNS = (
    "e.transcript_id, t.path, e.line, e.offset, e.length, e.kind, e.uuid, e.timestamp,"
    " COALESCE(e.session, t.session), COALESCE(e.agent, t.agent), COALESCE(p.path, p.folder), e.session IS NULL"
)
ENTRY_JOINS = "JOIN transcripts t ON t.transcript_id = e.transcript_id JOIN projects p ON p.project_id = t.project_id"
"""What a `Row` is made of, after the entry's number and its score."""


def needs_reading(query: Query) -> bool:
    """Whether the index alone cannot say if an entry is what the query asks for."""
    return any(
        isinstance(leaf, Regex | Match)
        or (isinstance(leaf, Is | Has) and leaf.field in _FIELDS_TO_READ)
        or _filters_agent(leaf)
        for leaf in leaves(query)
    )


def _filters_agent(query: Query) -> bool:
    return isinstance(query, Is) and query.field == "agent"


class DocumentReader:
    """Makes documents of rows; what takes a closer look is looked at where the query asks for it."""

    def __init__(self, connection: sqlite3.Connection, query: Query) -> None:
        self._connection = connection
        asked = list(leaves(query))
        self._is_read = needs_reading(query)
        self._needles = list(_required_bytes(query))
        self._asks_tool = any(getattr(one, "field", None) == "tool" for one in asked)
        self._asks_agent = any(getattr(one, "field", None) == "agent" for one in asked)
        self._costs = session_costs(connection) if any(isinstance(one, Cost) for one in asked) else {}
        self._agent_types: dict[tuple[int, str], tuple[str, ...]] = {}
        self._files: dict[str, int] = {}
        self._last: tuple[str, int, int, bytes | None] = ("", 0, 0, None)  # it is asked for twice in a row

    def close(self) -> None:
        """Close the transcripts."""
        while self._files:
            os.close(self._files.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry(self, row: EntryRow) -> Entry | None:
        """The entry of a row; None where its bytes are not there any more."""
        raw = self._bytes(row.transcript, row.offset, row.length)
        if raw is None:
            return None
        chunk = Chunk([raw], row.offset, piece=row.length > MAX_LINE_LENGTH)
        found = list(TranscriptReader(row.transcript).decode_line_by_line(chunk, row.line))
        return found[0] if len(found) == 1 and found[0].kind == row.kind else None

    def document(self, row: EntryRow) -> Document | None:
        """The document of a row, as far as the query needs it; None where its entry is gone."""
        if not self._is_read:
            return self.known(row)
        entry = self.entry(row) if self._may_match(row) else None
        return self.whole(row, entry) if entry is not None else None

    def _may_match(self, row: EntryRow) -> bool:
        """Whether its bytes have what a regular expression spells out: far cheaper than to decode them.

        A letter may be written by its number.
        """
        if not self._needles:
            return True
        raw = (self._bytes(row.transcript, row.offset, row.length) or b"").lower()
        if all(needle in raw for needle in self._needles) or b"\\u" in raw:
            return True
        return not raw.isascii() and any(one in raw for one in _FOLDING_LETTERS)

    def known(self, row: EntryRow) -> Document:
        """What the index knows of an entry without reading it."""
        return Document(
            project=row.project,
            session=row.session,
            kind=row.kind,
            agent=(row.agent,) if row.agent else (),
            timestamp=parse_timestamp(row.timestamp),
            cost=self._costs.get(row.session),
        )

    def whole(self, row: EntryRow, entry: Entry) -> Document:
        """All that can be known of an entry."""
        chain = entry if isinstance(entry, ChainEntry) else None
        message = entry.message if isinstance(entry, AssistantEntry) else None
        return Document(
            **extract_fields(entry),
            tool=tuple(self._tools(row, entry)) if self._asks_tool else (),
            project=row.project,
            branch=chain.git_branch if chain is not None else None,
            model=message.model if message is not None else None,
            agent=tuple(self._agents(row, entry)),
            session=row.session,
            kind=row.kind,
            version=chain.version if chain is not None else None,
            timestamp=parse_timestamp(row.timestamp),
            failed=_is_failure(entry),
            cost=self._costs.get(row.session),
        )

    def _agents(self, row: EntryRow, entry: Entry) -> Iterator[str]:
        if not row.agent:
            return
        yield row.agent
        named = entry.attribution_agent if isinstance(entry, AssistantEntry) else None
        if named:
            yield named
        if self._asks_agent:
            yield from self._types(row, row.agent)

    def _types(self, row: EntryRow, agent: str) -> tuple[str, ...]:
        """The types of an agent: the one that lies beside its transcript, and the one that the index knows."""
        key = (row.transcript_id, agent)
        if key not in self._agent_types:
            asked = "SELECT type FROM agents WHERE transcript_id = ? AND agent = ? AND type IS NOT NULL"
            known = [kind for (kind,) in self._connection.execute(asked, key)]
            beside = _agent_type_beside(row.transcript)
            self._agent_types[key] = tuple(dict.fromkeys([*([beside] if beside else []), *known]))
        return self._agent_types[key]

    def _tools(self, row: EntryRow, entry: Entry) -> Iterator[str]:
        """The tools that an entry calls, and those whose results it has."""
        if isinstance(entry, ToolUseEntry):
            if entry.tool is not None and entry.tool.name:
                yield entry.tool.name
            return
        for block in _blocks(entry):
            if isinstance(block, _CALL_BLOCKS) and block.name:
                yield block.name
        wanted = {
            str(block.tool_use_id)
            for block in _blocks(entry)
            if isinstance(block, _RESULT_BLOCKS) and block.tool_use_id
        }
        if wanted:
            yield from self._called(row, wanted)

    def _called(self, row: EntryRow, wanted: set[str]) -> Iterator[str]:
        before = self._connection.execute(
            f"SELECT e.entry_id, 0.0, {ENTRY_COLUMNS} FROM entries e {ENTRY_JOINS}"  # noqa: S608 - our own names
            " WHERE e.transcript_id = ? AND e.line < ? AND e.line >= ? AND e.kind = 'assistant' ORDER BY e.line DESC",
            (row.transcript_id, row.line, row.line - _MAX_LINES_BACK),
        )
        for one in map(EntryRow._make, before):
            entry = self.entry(one)
            for block in _blocks(entry) if entry is not None else ():
                if isinstance(block, _CALL_BLOCKS) and block.id in wanted:
                    wanted.discard(block.id)
                    if block.name:
                        yield block.name
            if not wanted:
                return

    def _bytes(self, path: str, offset: int, length: int) -> bytes | None:
        if self._last[:3] != (path, offset, length):
            self._last = (path, offset, length, self._read(path, offset, length))
        return self._last[3]

    def _read(self, path: str, offset: int, length: int) -> bytes | None:
        try:
            if path not in self._files:
                if len(self._files) >= _OPEN_FILES:
                    self.close()
                self._files[path] = open_transcript(path)
            descriptor = self._files[path]
            os.lseek(descriptor, offset, os.SEEK_SET)
            found = os.read(descriptor, length)
            while len(found) < length and (more := os.read(descriptor, length - len(found))):
                found += more
        except (OSError, Error):
            return None
        return found if len(found) == length else None


def _required_bytes(query: Query) -> Iterator[bytes]:
    """What the bytes of every hit have: letters and digits that regular expressions spell out."""
    for one in query.of if isinstance(query, And) else (query,):
        if isinstance(one, Regex) and (one.field is None or one.field in TEXT_FIELDS):
            yield from (part.lower().encode() for run in required_literals(one) for part in _PLAIN_WORD.findall(run))


def _blocks(entry: Entry) -> Iterable[object]:
    message = entry.message if isinstance(entry, AssistantEntry | UserEntry) else None
    content = message.content if message is not None else None
    return content if isinstance(content, list) else ()


def _is_failure(entry: Entry) -> bool:
    """Whether it tells of a call or a request that failed."""
    if isinstance(entry, AssistantEntry) and (entry.is_api_error_message or entry.error or entry.api_error):
        return True
    if isinstance(entry, ResultEntry):
        return bool(entry.is_error)
    if isinstance(entry, SystemEntry):
        return entry.subtype == "api_error"
    if isinstance(entry, FailedEntry):
        return True
    return any(isinstance(block, _RESULT_BLOCKS) and block.is_error for block in _blocks(entry))


def _agent_type_beside(transcript: str) -> str | None:
    path = Path(transcript)
    meta = path.with_name(f"{path.stem}.meta.json")
    with suppress(Error):
        content = read_side_file(SideFile(meta, Home(path.parent, "path"), SideFileKind.AGENT_META, 0)).content
        return content.agent_type if isinstance(content, AgentMeta) else None
    return None


def session_costs(connection: sqlite3.Connection) -> dict[str | None, Decimal]:
    """What each session cost, those of which that is known."""
    rows = IndexedLedger(connection).by("session")
    return {row.keys["session"]: row.amount for row in rows if row.amount is not None}


_CONVERSATION_KINDS = ("user", "assistant")


def entries_around(connection: sqlite3.Connection, hit: Hit, count: int) -> tuple[list[Entry], list[Entry]]:
    """So many entries of the conversation before a hit, and after it."""
    transcript = "e.transcript_id = (SELECT transcript_id FROM entries WHERE entry_id = ?)"
    spoken = f"e.kind IN ({', '.join('?' * len(_CONVERSATION_KINDS))})"
    sides = []
    with DocumentReader(connection, And(())) as documents:
        for compared, order in (("<", "DESC"), (">", "ASC")):
            asked = (
                f"SELECT e.entry_id, 0.0, {ENTRY_COLUMNS} FROM entries e {ENTRY_JOINS} WHERE {transcript} AND {spoken}"  # noqa: S608 - our own names
                f" AND e.line {compared} ? ORDER BY e.line {order} LIMIT ?"
            )
            rows = connection.execute(asked, (hit.entry_id, *_CONVERSATION_KINDS, hit.place.line, count)).fetchall()
            sides.append([entry for row in rows if (entry := documents.entry(EntryRow._make(row))) is not None])
    before, after = sides
    return before[::-1], after
