"""Read the documents that queries are matched against: entries, and prompts whose transcripts were deleted."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from threadline.errors import Error
from threadline.home_files import open_transcript
from threadline.index import NO_LABELS, EntryRow, Index, extract_fields, normalize_text, tokenize
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
    ToolResultEntry,
    UserEntry,
)
from threadline.model.hits import Hit
from threadline.model.homes import Home, SideFile, SideFileKind
from threadline.model.places import Place
from threadline.model.side_files import AgentMeta, HistoryPrompt
from threadline.model.times import parse_timestamp
from threadline.parse import (
    MAX_LINE_LENGTH,
    Chunk,
    TranscriptReader,
    decode_side_value,
    read_side_file,
)
from threadline.search.match import Document, TimeBudget, matches
from threadline.search.query import TEXT_FIELDS, And, Cost, Has, Is, Match, Or, Phrase, Query, Regex, expand, leaves
from threadline.search.regex import required_literals

_MAX_OPEN_FILES = 64
# A call is a few entries before its result. Calls made at the same time, and progress, come in between.
_MAX_LINES_BACK = 60
_FIELDS_TO_READ = frozenset({"tool", "branch", "model", "version", "error", "tier"})
_FIELDS_IN_BYTES = frozenset({"branch", "model", "version", "tier"})
_PLAIN_VALUE = re.compile("[0-9A-Za-z._-]+")
_PLAIN_WORD = re.compile("[0-9A-Za-z]{3,}")
# Characters that match a plain letter if case is ignored.
_FOLDING_LETTERS = tuple(letter.encode() for letter in "\u212a\u017f\u0130\u0131")
_CALL_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_RESULT_BLOCKS = (ToolResultBlock, McpToolResultBlock)


def needs_reading(query: Query) -> bool:
    """Whether entries have to be read to decide if they match, because the index is not sufficient."""
    return any(
        isinstance(leaf, Regex | Match)
        or (isinstance(leaf, Is | Has) and leaf.field in _FIELDS_TO_READ)
        or (isinstance(leaf, Is) and leaf.field == "agent")
        for leaf in leaves(query)
    )


class DocumentReader:
    """Turns rows into documents, with as many of their fields as a query needs. Keeps transcripts open: close it."""

    def __init__(self, index: Index, query: Query) -> None:
        self._entries = index.entries
        terms = list(leaves(query))
        fields = {getattr(term, "field", None) for term in terms}
        self._needs_reading = needs_reading(query)
        self._needles = list(_required_bytes(query))
        self._needs_tool = "tool" in fields
        self._needs_agent_type = "agent" in fields
        self._costs = index.session_costs() if any(isinstance(term, Cost) for term in terms) else {}
        self._labels = index.session_labels() if fields & {"slug", "platform"} else {}
        self._agent_types: dict[tuple[int, str], tuple[str, ...]] = {}
        self._files: dict[str, int] = {}
        self._last_read: tuple[str, int, int, bytes | None] = ("", 0, 0, None)  # usually asked for twice in a row

    def close(self) -> None:
        """Close the transcripts."""
        while self._files:
            os.close(self._files.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry(self, row: EntryRow) -> Entry | None:
        """The entry of a row; None if it is no longer in the transcript."""
        raw = self._bytes(row.transcript, row.offset, row.length)
        if raw is None:
            return None
        chunk = Chunk([raw], row.offset, is_piece=row.length > MAX_LINE_LENGTH)
        entries = list(TranscriptReader(row.transcript).decode_line_by_line(chunk, row.line))
        return entries[0] if len(entries) == 1 and entries[0].kind == row.kind else None

    def document(self, row: EntryRow) -> Document | None:
        """The document of a row, as far as the query needs it.

        None if its entry is no longer there, or cannot match.
        """
        if not self._needs_reading:
            return self.indexed_document(row)
        entry = self.entry(row) if self._may_match(row) else None
        return self.full_document(row, entry) if entry is not None else None

    def _may_match(self, row: EntryRow) -> bool:
        r"""Whether the bytes of an entry contain what every hit contains: far cheaper than decoding.

        A letter may also be written as `\u` and its number.
        """
        if not self._needles:
            return True
        raw = (self._bytes(row.transcript, row.offset, row.length) or b"").lower()
        if all(needle in raw for needle in self._needles) or b"\\u" in raw:
            return True
        return not raw.isascii() and any(letter in raw for letter in _FOLDING_LETTERS)

    def indexed_document(self, row: EntryRow) -> Document:
        """What the index knows about an entry, without reading it."""
        return Document(
            project=row.project,
            session=row.session,
            kind=row.kind,
            agent=(row.agent,) if row.agent else (),
            timestamp=parse_timestamp(row.timestamp),
            cost=self._costs.get(row.session),
            **self._row_fields(row),
        )

    def _row_fields(self, row: EntryRow) -> dict[str, Any]:
        """The fields that the index stores for an entry or its session, and that few queries have."""
        labels = self._labels.get(row.session, NO_LABELS)
        return {"stop": row.stop_reason, "request": row.request, "slug": labels.slug, "platform": labels.platforms}

    def full_document(self, row: EntryRow, entry: Entry) -> Document:
        """All fields of an entry. Tools and agent types are looked up only if the query has such a field."""
        chain = entry if isinstance(entry, ChainEntry) else None
        message = entry.message if isinstance(entry, AssistantEntry) else None
        text_fields: dict[str, Any] = extract_fields(entry)
        return Document(
            **text_fields,
            tool=tuple(self._tools(row, entry)) if self._needs_tool else (),
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
            tier=entry.service_tier if isinstance(entry, AssistantEntry) else None,
            **self._row_fields(row),
        )

    def _agents(self, row: EntryRow, entry: Entry) -> Iterator[str]:
        if not row.agent:
            return
        yield row.agent
        name = entry.attribution_agent if isinstance(entry, AssistantEntry) else None
        if name:
            yield name
        if self._needs_agent_type:
            yield from self._types_of_agent(row, row.agent)

    def _types_of_agent(self, row: EntryRow, agent: str) -> tuple[str, ...]:
        """The types of an agent: from the side file of its transcript, and from the index."""
        key = (row.transcript_id, agent)
        if key not in self._agent_types:
            side_file_type = _side_file_agent_type(row.transcript)
            types = [*([side_file_type] if side_file_type else []), *self._entries.agent_types(*key)]
            self._agent_types[key] = tuple(dict.fromkeys(types))
        return self._agent_types[key]

    def _tools(self, row: EntryRow, entry: Entry) -> Iterator[str]:
        """The tools that an entry calls, and those whose results it contains."""
        if isinstance(entry, ToolResultEntry):
            yield from self._entries.tools_answered_by(row, _MAX_LINES_BACK)
            return
        for block in _blocks(entry):
            if isinstance(block, _CALL_BLOCKS) and block.name:
                yield block.name
        call_ids = {
            str(block.tool_use_id)
            for block in _blocks(entry)
            if isinstance(block, _RESULT_BLOCKS) and block.tool_use_id
        }
        if call_ids:
            yield from self._tools_of_calls(row, call_ids)

    def _tools_of_calls(self, row: EntryRow, call_ids: set[str]) -> Iterator[str]:
        for reply in self._entries.replies_before(row, _MAX_LINES_BACK):
            entry = self.entry(reply)
            for block in _blocks(entry) if entry is not None else ():
                if isinstance(block, _CALL_BLOCKS) and block.id in call_ids:
                    call_ids.discard(block.id)
                    if block.name:
                        yield block.name
            if not call_ids:
                return

    def _bytes(self, path: str, offset: int, length: int) -> bytes | None:
        if self._last_read[:3] != (path, offset, length):
            self._last_read = (path, offset, length, self._read(path, offset, length))
        return self._last_read[3]

    def _read(self, path: str, offset: int, length: int) -> bytes | None:
        try:
            if path not in self._files:
                if len(self._files) >= _MAX_OPEN_FILES:
                    self.close()
                self._files[path] = open_transcript(path)
            descriptor = self._files[path]
            os.lseek(descriptor, offset, os.SEEK_SET)
            data = os.read(descriptor, length)
            while len(data) < length and (more := os.read(descriptor, length - len(data))):
                data += more
        except (OSError, Error):
            return None
        return data if len(data) == length else None


def entries_around(index: Index, hit: Hit, count: int) -> tuple[list[Entry], list[Entry]]:
    """Up to `count` entries of the conversation before a hit, and after it."""
    before, after = index.entries.conversation_around(hit.entry_id, hit.place.line, count)
    with DocumentReader(index, And(())) as documents:
        return (
            [entry for row in before if (entry := documents.entry(row)) is not None],
            [entry for row in after if (entry := documents.entry(row)) is not None],
        )


def _required_bytes(query: Query) -> Iterator[bytes]:
    """What the bytes of every hit contain, in lower case: literals of regular expressions, and values of fields."""
    for term in query.of if isinstance(query, And) else (query,):
        if isinstance(term, Is) and term.field in _FIELDS_IN_BYTES and term.value.isascii():
            yield from (word.lower().encode() for word in _PLAIN_VALUE.findall(term.value))
        if term == Has("error"):
            yield b"error"
        if isinstance(term, Regex) and (term.field is None or term.field in TEXT_FIELDS):
            yield from (
                word.lower().encode() for literal in required_literals(term) for word in _PLAIN_WORD.findall(literal)
            )


def _blocks(entry: Entry) -> Iterable[object]:
    message = entry.message if isinstance(entry, AssistantEntry | UserEntry) else None
    content = message.content if message is not None else None
    return content if isinstance(content, list) else ()


def _is_failure(entry: Entry) -> bool:
    """Whether an entry reports a failed call or a failed request."""
    if isinstance(entry, AssistantEntry) and (entry.is_api_error_message or entry.error or entry.api_error):
        return True
    if isinstance(entry, ResultEntry):
        return bool(entry.is_error)
    if isinstance(entry, SystemEntry):
        return entry.subtype == "api_error"
    if isinstance(entry, FailedEntry):
        return True
    return any(isinstance(block, _RESULT_BLOCKS) and block.is_error for block in _blocks(entry))


def _side_file_agent_type(transcript: str) -> str | None:
    path = Path(transcript)
    meta = path.with_name(f"{path.stem}.meta.json")
    with suppress(Error):
        content = read_side_file(SideFile(meta, Home(path.parent, "path"), SideFileKind.AGENT_META, 0)).content
        return content.agent_type if isinstance(content, AgentMeta) else None
    return None


# --- prompts of deleted sessions


MAX_HISTORY_BYTES = 16 * 1024 * 1024
"""How many bytes of a home's history are searched, from its end."""

_HISTORY = "history.jsonl"
_DECODER = msgspec.json.Decoder(HistoryPrompt)
_HISTORY_WORD = re.compile("[0-9A-Za-z]{2,}")
# The first bytes (UTF-8) of characters that may match plain letters: letters with accents, and other forms of letters.
# Dashes, arrows, emoji and Chinese are not among them.
_FOLDING_BYTES = re.compile(
    rb"[\xc2-\xcd]|\xe1[\xb4-\xbf]|\xe2[\x82-\x84\x91-\x93\xb1]|\xea|\xef[\xac\xbc\xbd]|\xf0\x9d|\xf0\x9f[\x84-\x87]"
)
_FIRST_WORDS = 8
_MAX_WITHOUT_SESSION = 10
_SESSION_KEY = b'"sessionId":"'


class DeletedPrompt(NamedTuple):
    """A prompt of the history, and its place there."""

    prompt: HistoryPrompt
    place: Place

    @property
    def document(self) -> Document:
        """The prompt as a document: an entry that the user wrote."""
        return Document(
            prompt=self.prompt.display or "",
            project=self.prompt.project,
            session=self.prompt.session_id,
            kind="user",
            timestamp=parse_timestamp(self.prompt.timestamp_ms),
        )


def find_deleted_prompts(index: Index, query: Query, *, bounded: bool = False) -> Iterator[DeletedPrompt]:
    """The prompts that match a query and whose sessions have no transcript any more, newest first.

    Old versions did not store a session id. Such a prompt counts as deleted if no prompt in the index begins with the
    same words. Since that check takes a while, only a few of them are checked if `bounded`.
    """
    required = list(_required_in_history(expand(query)))
    budget = TimeBudget()
    without_session = 0
    for home in index.home_paths():
        history = _load_history(index, Path(home) / _HISTORY)
        for deleted in history.candidates(required):
            session = (deleted.prompt.session_id or "").lower()
            if session in history.sessions or (not session and bounded and without_session >= _MAX_WITHOUT_SESSION):
                continue
            if matches(query, deleted.document, budget):
                without_session += not session
                if session or not _is_in_index(index, deleted.prompt.display or ""):
                    yield deleted


def _is_in_index(index: Index, text: str) -> bool:
    """Whether a prompt in the index begins with the same words. True if there are no words to compare."""
    words = " ".join(tokenize(normalize_text(text))[:_FIRST_WORDS])
    return not words or index.full_text.has(f'{{prompt}}:"{words}"')


def read_prompt(place: Place) -> str:
    """The full prompt at a place in a history; empty if it is no longer there."""
    with suppress(Error, OSError), os.fdopen(open_transcript(place.transcript), "rb") as file:
        file.seek(place.offset)
        prompt = _decode_row(file.read(place.length), place)
        return (prompt.display or "") if prompt is not None else ""
    return ""


class _HistoryRows:
    """The rows of a history whose sessions have no transcript, as far as their bytes tell, newest first.

    `sessions` are the ids of sessions that have a transcript, in lower case. All rows are searched at once, as one byte
    string: most queries ask for words that none of them contains.
    """

    def __init__(self, path: Path, rows: list[tuple[int, int, bytes]], sessions: set[str], *, is_whole: bool) -> None:
        self.sessions = sessions
        self._path = path
        self._rows = rows
        self._is_whole = is_whole
        lowered = [raw.lower() for _number, _offset, raw in rows]
        self._text = b"\n".join(lowered)
        self._starts = [0, *accumulate(len(raw) + 1 for raw in lowered)]
        # Rows with characters that may match other letters are always candidates.
        self._folding = [at for at, raw in enumerate(lowered) if _may_fold(raw)]

    def candidates(self, required: list[tuple[bytes, ...]]) -> Iterator[DeletedPrompt]:
        """The prompts whose bytes contain one string of each tuple."""
        for at in self._candidate_rows(required):
            number, offset, raw = self._rows[at]
            # If only the end of the file was read, line numbers are unknown.
            place = Place(str(self._path), number + 1 if self._is_whole else 0, offset, len(raw))
            prompt = _decode_row(raw, place)
            if prompt is not None and prompt.display:
                yield DeletedPrompt(prompt, place)

    def _candidate_rows(self, required: list[tuple[bytes, ...]]) -> Iterable[int]:
        if not required:
            return range(len(self._rows))
        rows = set.intersection(*({at for part in parts for at in self._rows_with(part)} for parts in required))
        return sorted(rows.union(self._folding))

    def _rows_with(self, part: bytes) -> Iterator[int]:
        at = self._text.find(part)
        while at >= 0:
            row = bisect_right(self._starts, at) - 1
            yield row
            at = self._text.find(part, self._starts[row + 1])


def _may_fold(lowered: bytes) -> bool:
    return b"\\u" in lowered or (not lowered.isascii() and _FOLDING_BYTES.search(lowered) is not None)


def _load_history(index: Index, path: Path) -> _HistoryRows:
    """The rows of a history, read once for several queries of an index: if nothing is found, others are tried."""
    with suppress(OSError, Error):
        status = path.lstat()
        read = partial(_read_history, path, status.st_size, index)
        return index.cached(("history", path), read, (status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return _HistoryRows(path, [], set(), is_whole=True)


def _read_history(path: Path, size: int, index: Index) -> _HistoryRows:
    sessions = {session.lower() for session in index.session_ids()}
    with os.fdopen(open_transcript(path, home=path.parent), "rb") as file:
        begin = file.seek(max(0, size - MAX_HISTORY_BYTES))
        data = file.read(MAX_HISTORY_BYTES)
    cut = data.find(b"\n") + 1 if begin else 0
    rows = []
    offset = begin + cut
    for number, raw in enumerate(data[cut:].split(b"\n")):
        if _session_of(raw) not in sessions:
            rows.append((number, offset, raw))
        offset += len(raw) + 1
    rows.reverse()
    return _HistoryRows(path, rows, sessions, is_whole=begin == 0)


def _session_of(line: bytes) -> str:
    at = line.rfind(_SESSION_KEY)
    if at < 0:
        return ""
    start = at + len(_SESSION_KEY)
    return line[start : line.find(b'"', start)].decode(errors="replace").lower()


def _decode_row(raw: bytes, place: Place) -> HistoryPrompt | None:
    with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _DECODER.decode(raw)
    content = decode_side_value(raw, HistoryPrompt, place).content
    return content if isinstance(content, HistoryPrompt) else None


def _required_in_history(query: Query) -> Iterator[tuple[bytes, ...]]:
    """For each term that must hold, byte strings of which a row must contain at least one."""
    for term in query.of if isinstance(query, And) else (query,):
        literals = [_longest_literal(option) for option in (term.of if isinstance(term, Or) else (term,))]
        if all(literals):
            yield tuple(literal.lower().encode() for literal in literals)


def _longest_literal(query: Query) -> str:
    """The longest run of plain letters and digits that a match must contain; empty if unknown."""
    words: list[str] = []
    if isinstance(query, Phrase):
        words = [token for token in query.tokens if token.isascii()]
    elif isinstance(query, Regex) and (query.field is None or query.field in TEXT_FIELDS):
        words = [word for literal in required_literals(query) for word in _HISTORY_WORD.findall(literal)]
    return max(words, key=len, default="")
