"""Read a transcript, or what was appended to it, into index rows and a state that later lines can be added to.

Worker processes make the rows; the one process that holds the write lock writes them. The state of a transcript is
stored with it (msgpack, `array_like`), so that one appended line costs one line.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error
from threadline.index.agents import (
    AgentFold,
    AgentRows,
    AgentsState,
    CompactionFold,
    CompactionRow,
    CompactionState,
    TodoFold,
    TodoRows,
    TodoState,
    write_compactions,
    write_late_todos,
    write_todos,
)
from threadline.index.calls import (
    LIST_TOOLS,
    AnsweredCall,
    CallFold,
    CallRows,
    CallState,
    EntryIds,
    TouchFold,
    TouchRow,
    delete_touches,
    link_results_elsewhere,
    write_touches,
)
from threadline.index.schema import FIELDS
from threadline.index.sightings import SightingRows, read_sightings
from threadline.index.store import storable_text
from threadline.index.text import extract_fields
from threadline.index.vocabulary import normalize_text
from threadline.model.attachments import TaskReminder, TodoReminder
from threadline.model.entries import (
    AgentMetadataEntry,
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    ProgressEntry,
    SystemEntry,
    UserEntry,
)
from threadline.model.homes import Transcript, TranscriptKind
from threadline.model.places import Line
from threadline.model.times import format_sortable
from threadline.parse import entries, head_of, open_transcript
from threadline.summary import StatsFold, SummaryFold, SummaryState, TranscriptSummary, fold_entries

MAX_PROMPT_CHARS = 2000
"""How many characters of a prompt the index keeps; the transcript has them all."""

_INSERT_SESSION = "INSERT INTO session_rows VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_PROMPT = "INSERT INTO prompt_rows VALUES(?, ?, ?, ?, ?)"


class SessionRows(Struct, gc=False):
    """The row of a main transcript, and its new prompts, or all of them. Nobody spoke in it: no row."""

    row: tuple[object, ...] | None
    prompts: list[tuple[int, int, str, str]]
    is_whole: bool

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write them down for the transcript of that number."""
        if self.is_whole:
            connection.execute("DELETE FROM prompt_rows WHERE transcript_id = ?", (number,))
        if self.row is not None:
            # Not as one statement: one that may have to be taken back in part makes full text write out all it holds.
            connection.execute("DELETE FROM session_rows WHERE transcript_id = ?", (number,))
            connection.execute(_INSERT_SESSION, (number, *self.row))
        if self.prompts:
            connection.executemany(_INSERT_PROMPT, [(number, *row) for row in self.prompts])


def make_session_rows(
    seen: TranscriptSummary, lighting: SummaryFold, transcript: Transcript, *, is_whole: bool
) -> SessionRows:
    """The rows of what a pass over a main transcript tells."""
    state = lighting.state
    row = (
        storable_text(transcript.session),
        storable_text(seen.title),
        seen.title_source,
        storable_text(seen.cwd),
        format_sortable(state.first),
        format_sortable(state.last),
        seen.turns,
        storable_text(seen.model),
        seen.entries,
    )
    prompts = [
        (prompt.line, prompt.turn, prompt.kind, storable_text(prompt.text[:MAX_PROMPT_CHARS]) or "")
        for prompt in lighting.prompts
    ]
    return SessionRows(row if seen.spoken else None, prompts, is_whole)


_REMINDERS = (TodoReminder, TaskReminder)


class WorkState(Struct, array_like=True):
    """What is remembered of the work in a transcript between refreshes: little, however long it is."""

    calls: CallState
    compactions: CompactionState
    agents: AgentsState
    lists: TodoState
    cwd: str | None = None


def empty_work_state() -> WorkState:
    """The state before the first line."""
    return WorkState(CallState(), CompactionState(), AgentsState(), TodoState())


class WorkFold:
    """What agents did, while entries are added."""

    def __init__(self, state: WorkState, transcript: Transcript, *, is_whole: bool) -> None:
        self.state = state
        self._has_main = False
        self._calls = CallFold(state.calls, str(transcript.path), self._answered, is_whole=is_whole)
        self._compactions = CompactionFold(state.compactions)
        self._agents = AgentFold(state.agents, transcript)
        self._files = TouchFold(state.cwd)
        self._lists = TodoFold(state.lists)

    def add(self, at: int, entry: Entry) -> None:
        """One more entry, the one of that number among those that are read now."""
        if self._agents.counts:
            self._agents.own(entry)
        if isinstance(entry, ChainEntry):
            self._chain(at, entry)
        elif isinstance(entry, AgentMetadataEntry):
            self._agents.metadata(entry)

    def _chain(self, at: int, entry: ChainEntry) -> None:
        agent = None
        if entry.is_agent:
            agent = self._agents.inside(entry)
        elif not self._has_main:
            self._has_main = True
            self._agents.main()
        if entry.cwd:
            self._files.cwd = entry.cwd
        if isinstance(entry, AssistantEntry):
            self._calls.reply(at, entry, agent)
        elif isinstance(entry, UserEntry):
            self._user(at, entry, agent)
        elif isinstance(entry, AttachmentEntry):
            self._attachment(at, entry, agent)
        elif isinstance(entry, SystemEntry):
            self._compactions.system(at, entry, agent)
        elif isinstance(entry, ProgressEntry):
            self._agents.progress(entry)

    def _user(self, at: int, entry: UserEntry, agent: str | None) -> None:
        self._calls.user(at, entry, agent)
        if entry.is_compact_summary:
            self._compactions.summary(at, entry, agent)
        if entry.todos:
            self._lists.told(entry, agent)

    def _attachment(self, at: int, entry: AttachmentEntry, agent: str | None) -> None:
        self._files.attached(at, entry)
        if isinstance(entry.attachment, _REMINDERS):
            self._lists.told(entry, agent)

    def _answered(self, answered_call: AnsweredCall, agent: str | None) -> None:
        self._files.answered(answered_call)
        if answered_call.ending.started is not None:
            self._agents.answered(answered_call)
        if answered_call.tool in LIST_TOOLS:
            self._lists.answered(answered_call, agent)

    def done(self) -> bytes:
        """The rows, when all entries have been added; packed, since there are many, and they go to another process."""
        lists = self._lists.done()
        self.state.cwd = storable_text(self._files.cwd)
        return msgspec.msgpack.encode(
            WorkRows(self._calls.done(), self._files.rows, lists, self._compactions.done(), self._agents.done())
        )


class WorkRows(Struct, array_like=True, gc=False):
    """What some entries tell of the work, as workers hand it on."""

    calls: CallRows
    files: list[TouchRow]
    lists: TodoRows | None
    compactions: list[CompactionRow]
    agents: AgentRows

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write it down for the transcript of that number; its new entries begin at `first`."""
        ids = EntryIds(connection, number, first)
        keys = self.calls.write(connection, number, ids)
        write_touches(connection, self.files, keys, ids)
        if self.lists is not None:
            write_todos(connection, self.lists, number, ids)
        for late in self.calls.late(connection, number, ids):
            write_late_todos(connection, late, number, ids)
            delete_touches(connection, late.key)
            files = TouchFold(None)
            files.answered(late.answered)
            write_touches(connection, files.rows, {late.answered.call: late.key}, ids)
        write_compactions(connection, self.compactions, number, ids, is_whole=self.calls.is_whole)
        self.agents.write(connection, number)
        if self.calls.write_open(connection, number, ids):
            link_results_elsewhere(connection, number)


_decode_work = msgspec.msgpack.Decoder(WorkRows).decode


def write_work(connection: sqlite3.Connection, packed: bytes, number: int, first: int) -> None:
    """Write down rows for the transcript of that number; its new entries begin at `first`."""
    _decode_work(packed).write(connection, number, first)


class TranscriptState(Struct, array_like=True):
    """What is known of a transcript's lines so far, as the index keeps it, packed. `light` is of main ones only."""

    glance: StatsFold
    light: SummaryState | None = None
    work: WorkState | None = None


_decode_state = msgspec.msgpack.Decoder(TranscriptState).decode


def decode_state(packed: bytes) -> TranscriptState:
    """A state as the index keeps it; that of no lines where there is none."""
    return _decode_state(packed) if packed else TranscriptState(StatsFold())


def has_cwd(packed: bytes) -> bool:
    """Whether a line so far has said in which directory it was written."""
    work = decode_state(packed).work
    return work is not None and work.cwd is not None


class FoldResult(Struct, gc=False):
    """What came of some entries: the state after them, packed, and their rows."""

    state: bytes = b""
    session: SessionRows | None = None
    work: bytes = b""

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write it down for the transcript of that number; its new entries begin at `first`."""
        connection.execute("UPDATE transcripts SET state = ? WHERE transcript_id = ?", (self.state, number))
        if self.session is not None:
            self.session.write(connection, number)
        if self.work:
            write_work(connection, self.work, number, first)


class TranscriptFold:
    """The state, while entries are added to it: from nothing, or from a state that was packed."""

    def __init__(self, packed: bytes, transcript: Transcript) -> None:
        self._is_main = transcript.kind is TranscriptKind.MAIN
        self._is_new = not packed
        self._transcript = transcript
        self._state = decode_state(packed)
        self._lighting = SummaryFold(self._state.light) if self._is_main else None
        self._work = WorkFold(self._state.work or empty_work_state(), transcript, is_whole=self._is_new)

    def add(self, at: int, entry: Entry) -> None:
        """One more entry, the one of that number among those that are read now."""
        self._work.add(at, entry)
        told = entry if isinstance(entry, ChainEntry) and not entry.line.problems else head_of(entry)
        self._state.glance.add(told, entry.line.number)
        if self._lighting is not None:
            self._lighting.add(entry)

    def folded(self, read: Callable[[], Iterable[Entry]]) -> FoldResult:
        """What came of it. `read` gives all entries, for what only the whole transcript tells."""
        lighting = self._lighting
        made = None
        if lighting is not None:
            is_whole = self._is_new
            if not lighting.is_reliable:
                lighting, is_whole = fold_entries(read()), True
            seen = lighting.summary()
            self._state.light = lighting.state
            made = make_session_rows(seen, lighting, self._transcript, is_whole=is_whole)
        work = self._work.done()
        self._state.work = self._work.state
        return FoldResult(encode_state(self._state), made, work)


def encode_state(state: TranscriptState) -> bytes:
    """A state as the index keeps it. Half of a character, which JSON may hold, is kept as one that is none."""
    try:
        return msgspec.msgpack.encode(state)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(_replace_surrogates(msgspec.to_builtins(state, builtin_types=(bytes,))))


def _replace_surrogates(value: object) -> object:
    """The same value, with text in it that can be written."""
    if isinstance(value, list | tuple):
        return [_replace_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(one) for name, one in value.items()}
    return storable_text(value) if isinstance(value, str) else value


_TAIL_BYTES = 4096
EntryRow = tuple[int, int, int, str, str | None, str | None, str | None, str | None, str | None]
ProblemRow = tuple[int, str, str, bool]


class ReadRequest(Struct, frozen=True, gc=False):
    """A transcript to be read, from where on, and the number of the line there.

    `state` is what the lines before it come to; `waiting` are calls for web searches among them, whose results may
    come now. `is_open` says that the last of them has no end.
    """

    transcript: Transcript
    offset: int = 0
    line: int = 1
    state: bytes = b""
    waiting: tuple[str, ...] = ()
    is_open: bool = False


class TranscriptRows(Struct, gc=False):
    """The rows of a transcript, in its order. `texts` have the number of their entry among those read.

    `read_to` is where the last whole line ends, `lines` how many there are up to it, `last` its last bytes, `checksum`
    that of all bytes that were read. `problem` says why the transcript could not be read. `is_open` says that the last
    line is whole and has no end yet, `is_closed` that the one before these has got its end now; `is_anew` that all of
    the transcript was read, since that line went on in another way.
    """

    entries: list[EntryRow]
    texts: list[tuple[int, list[str | None]]]
    problems: list[ProblemRow]
    sighted: SightingRows
    folded: FoldResult
    read_to: int = 0
    lines: int = 0
    last: bytes = b""
    checksum: int = 0
    problem: str | None = None
    is_open: bool = False
    is_closed: bool = False
    was_reread: bool = False


def read_rows(reading: ReadRequest) -> TranscriptRows:
    """Read on in a transcript. Refusals of the machine become a problem."""
    try:
        if reading.is_open and not _has_line_end(reading):
            anew = _read_from(ReadRequest(reading.transcript))
            anew.was_reread = True
            return anew
        if reading.is_open:
            closed = _read_from(replace(reading, offset=reading.offset + 1))
            closed.is_closed = True
            closed.last = closed.last or b"\n"
            return closed
    except (OSError, Error) as error:
        return TranscriptRows(
            [], [], [], SightingRows(), FoldResult(reading.state), reading.offset, reading.line - 1, problem=str(error)
        )
    return _read_from(reading)


def _has_line_end(reading: ReadRequest) -> bool:
    """Whether the line that had no end has one now."""
    with os.fdopen(open_transcript(reading.transcript.path), "rb") as file:
        file.seek(reading.offset)
        return file.read(1) == b"\n"


def _read_from(reading: ReadRequest) -> TranscriptRows:
    transcript = reading.transcript
    made = TranscriptRows([], [], [], SightingRows(), FoldResult(reading.state), reading.offset, reading.line - 1)
    folding = TranscriptFold(reading.state, transcript)
    line: Line | None = None
    checksum = 0
    try:
        try:
            for entry in _complete_lines(entries(transcript.path, offset=reading.offset, line=reading.line)):
                line = entry.line
                checksum = crc32(line.raw, checksum)
                _add_entry(made, entry, line, transcript, folding)
        finally:
            made.checksum = checksum
            if line is not None:
                made.lines, made.read_to = line.number, line.offset + len(line.raw)
                made.last = line.raw[-_TAIL_BYTES:]
        made.is_open = line is not None and not made.last.endswith(b"\n")
        made.folded = folding.folded(lambda: _entries_up_to(transcript, made.read_to))
        made.sighted = read_sightings(transcript, reading.offset, made.read_to, reading.waiting)
    except Error as error:
        made.problem = str(error)
    return made


def _entries_up_to(transcript: Transcript, read_to: int) -> Iterator[Entry]:
    """All entries of a transcript, as far as it has been read."""
    return takewhile(lambda entry: entry.line.offset < read_to, entries(transcript.path))


def _complete_lines(some: Iterable[Entry]) -> Iterator[Entry]:
    """The entries of lines that have an end; a last line without one is left for the next time, unless it is whole."""
    waiting: list[Entry] = []  # a line may hold several entries, of which only the last has the end
    for entry in some:
        if not waiting and entry.line.raw.endswith(b"\n"):
            yield entry
            continue
        if waiting and entry.line.number != waiting[0].line.number:
            return  # it was the last line, and has grown while it was read
        waiting.append(entry)
        if entry.line.raw.endswith(b"\n"):
            yield from waiting
            waiting.clear()
    if len(waiting) == 1 and not waiting[0].problems and waiting[0].line.raw.rstrip().endswith(b"}"):
        yield waiting[0]


def _add_entry(made: TranscriptRows, entry: Entry, line: Line, transcript: Transcript, folding: TranscriptFold) -> None:
    """One more entry."""
    agent = entry.agent_id if isinstance(entry, ChainEntry) else None
    message = entry.message.id if isinstance(entry, AssistantEntry) and entry.message is not None else None
    written, uuid, kind = entry.timestamp_text, entry.uuid, entry.kind
    at = len(made.entries)
    made.entries.append(
        (
            line.number,
            line.offset,
            len(line.raw),
            kind if kind.isascii() else storable_text(kind) or "",
            uuid if uuid is None or uuid.isascii() else storable_text(uuid),
            storable_text(entry.session_id) if entry.session_id != transcript.session else None,
            storable_text(agent) if agent != transcript.agent else None,
            storable_text(written) if isinstance(written, str) else _iso_timestamp(entry),
            storable_text(message),
        )
    )
    said = extract_fields(entry)
    if said:
        made.texts.append((at, [normalize_text(said[name]) if name in said else None for name in FIELDS]))
    if line.problems:
        made.problems.extend(
            (line.number, str(problem.kind), storable_text(problem.message) or "", problem.recovered)
            for problem in line.problems
        )
    folding.add(at, entry)


def _iso_timestamp(entry: Entry) -> str | None:
    moment = entry.timestamp
    return moment.isoformat() if moment is not None else None
