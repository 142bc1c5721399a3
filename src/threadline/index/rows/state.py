"""Read a transcript, or what was appended to it, into index rows and a state that later lines can be added to.

Worker processes make the rows; the one process that holds the write lock writes them. The state of a transcript is
stored with it (msgpack, `array_like`), so that one appended line costs one line.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat, takewhile
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error
from threadline.home_files import open_transcript
from threadline.index.rows.agents import (
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
from threadline.index.rows.calls import (
    FORGET_OUTCOMES,
    LIST_TOOLS,
    AnsweredCall,
    CallFold,
    CallRows,
    CallState,
    EntryIds,
    TouchFold,
    TouchRow,
    delete_touches,
    write_touches,
)
from threadline.index.rows.result_links import has_unlinked, link_results_elsewhere, write_touch
from threadline.index.rows.sighting_rows import PlainSightings, SightingReader, SightingRows
from threadline.index.sightings import replace_surrogates
from threadline.index.store import storable_text
from threadline.index.text import extract_fields, searchable_fields
from threadline.model.attachments import QueuedCommand, TaskReminder, TodoReminder
from threadline.model.entries import (
    CHAIN_TYPES,
    KINDS,
    AgentMetadataEntry,
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    ProgressEntry,
    QueueOperationEntry,
    SystemEntry,
    ToolResultEntry,
    ToolUseEntry,
    UserEntry,
    may_have_problems,
)
from threadline.model.homes import Transcript, TranscriptKind
from threadline.model.times import format_sortable, sortable_times
from threadline.parse import EntryRun, entries, entry_runs, head_of
from threadline.summary import StatsFold, SummaryFold, SummaryRow, SummaryState, TranscriptSummary, fold_entries

MAX_PROMPT_CHARS = 2000
"""How many characters of a prompt the index keeps; the transcript has them all."""

_INSERT_SESSION = f"INSERT INTO session_rows VALUES({', '.join('?' * 13)})"
_INSERT_PROMPT = "INSERT INTO prompt_rows VALUES(?, ?, ?, ?, ?, ?)"
_INSERT_SUMMARY = "INSERT INTO summary_rows(transcript_id, line, leaf, text, is_new) VALUES(?, ?, ?, ?, 1)"


class SessionRows(Struct, gc=False):
    """The row of a main transcript (None if it has no conversation), its prompts and summaries: all, or the new ones.

    Summaries are never read again, as prompts may be: they are always the new ones.
    """

    row: tuple[object, ...] | None
    prompts: list[tuple[int, int, int, str, str]]
    is_whole: bool
    summaries: list[tuple[int, str | None, str | None]] = []

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write them for the transcript of that number."""
        if self.is_whole:
            connection.execute("DELETE FROM prompt_rows WHERE transcript_id = ?", (number,))
        if self.row is not None:
            # Not INSERT OR REPLACE: a statement that may be rolled back in part makes full-text search flush its words.
            connection.execute("DELETE FROM session_rows WHERE transcript_id = ?", (number,))
            connection.execute(_INSERT_SESSION, (number, *self.row))
        if self.prompts:
            connection.executemany(_INSERT_PROMPT, [(number, *row) for row in self.prompts])
        if self.summaries:
            connection.executemany(_INSERT_SUMMARY, [(number, *row) for row in self.summaries])


def make_session_rows(
    summary: TranscriptSummary,
    fold: SummaryFold,
    transcript: Transcript,
    summaries: Iterable[SummaryRow],
    *,
    is_whole: bool,
) -> SessionRows:
    """The rows of a main transcript, from its summary and the fold that gave it. `summaries` are the new ones."""
    state = fold.state
    row = (
        storable_text(transcript.session),
        storable_text(summary.title),
        summary.title_source,
        storable_text(summary.cwd),
        format_sortable(state.first),
        format_sortable(state.last),
        summary.turns,
        storable_text(summary.model),
        summary.entries,
        storable_text(summary.slug),
        storable_text(summary.platform),
        storable_text(summary.os_version),
    )
    prompts = [
        (prompt.line, prompt.offset, prompt.turn, prompt.kind, storable_text(prompt.text[:MAX_PROMPT_CHARS]) or "")
        for prompt in fold.prompts
    ]
    summary_rows = [(ref.line, storable_text(ref.leaf), storable_text(ref.text)) for ref in summaries]
    return SessionRows(row if summary.spoken else None, prompts, is_whole, summary_rows)


_REMINDERS = (TodoReminder, TaskReminder)


class WorkState(Struct, array_like=True):
    """What a refresh remembers of calls, files, lists and agents for the next one. Its size is bounded."""

    calls: CallState
    compactions: CompactionState
    agents: AgentsState
    lists: TodoState
    cwd: str | None = None


def empty_work_state() -> WorkState:
    """The state before the first line."""
    return WorkState(CallState(), CompactionState(), AgentsState(), TodoState())


class WorkFold:
    """Extracts what agents did from the entries of a transcript: calls, file touches, lists, compactions, agents."""

    def __init__(self, state: WorkState, transcript: Transcript, *, is_whole: bool) -> None:
        self.state = state
        self._has_main = False
        self._calls = CallFold(state.calls, str(transcript.path), self._answered, is_whole=is_whole)
        self._compactions = CompactionFold(state.compactions)
        self._agents = AgentFold(state.agents, transcript)
        self._files = TouchFold(state.cwd)
        self._lists = TodoFold(state.lists)
        self._handlers: dict[type, Callable[[int, Any, str | None], None]] = {
            AssistantEntry: self._calls.reply,
            UserEntry: self._user,
            AttachmentEntry: self._attachment,
            SystemEntry: self._compactions.system,
            ProgressEntry: self._agents.progress,
            ToolUseEntry: self._calls.call_row,
            ToolResultEntry: self._calls.result_row,
        }

    def add(self, entries: Iterable[Any], times: Iterable[str | None], first: int) -> None:
        """Add entries with their `sortable_time`s.

        `first` is the position of the first one among those that are read now.
        """
        agents, files, handlers = self._agents, self._files, self._handlers
        for at, (entry, time) in enumerate(zip(entries, times, strict=True), first):
            if agents.counts:
                agents.own(entry, time)
            handler = handlers.get(type(entry))
            if handler is None:
                if type(entry) is AgentMetadataEntry:
                    agents.metadata(entry)
                elif type(entry) is QueueOperationEntry:
                    agents.notified(entry)
                continue
            agent = None
            if entry.is_agent:
                agent = agents.inside(entry, time)
            elif not self._has_main:
                self._has_main = True
                agents.main()
            if entry.cwd:
                files.cwd = entry.cwd
            handler(at, entry, agent)

    @property
    def inline_agents(self) -> Mapping[int, str]:
        """The agents inside a main transcript that have no id, by the offsets of their replies."""
        return self._agents.inline_agents

    def _user(self, at: int, entry: UserEntry, agent: str | None) -> None:
        self._calls.user(at, entry, agent)
        if entry.tool_use_result is None:
            self._agents.notified(entry)
        if entry.is_compact_summary:
            self._compactions.summary(at, entry, agent)
        if entry.todos:
            self._lists.repeated(entry, agent)

    def _attachment(self, at: int, entry: AttachmentEntry, agent: str | None) -> None:
        self._files.attached(at, entry)
        if isinstance(entry.attachment, QueuedCommand):
            self._agents.notified(entry)
        if isinstance(entry.attachment, _REMINDERS):
            self._lists.repeated(entry, agent)

    def _answered(self, answered_call: AnsweredCall, agent: str | None) -> None:
        self._files.answered(answered_call)
        if answered_call.ending.started is not None:
            self._agents.answered(answered_call)
        if answered_call.tool in LIST_TOOLS:
            self._lists.answered(answered_call, agent)

    def done(self) -> bytes:
        """The rows of all entries, encoded: there are many of them, and they are sent to another process."""
        lists = self._lists.done()
        self.state.cwd = storable_text(self._files.cwd)
        calls = self._calls.done()
        agents = self._agents.done(self._calls.agent_uses)
        compactions = self._compactions.done()
        return msgspec.msgpack.encode(WorkRows(calls, self._files.rows, lists, compactions, agents))


class WorkRows(Struct, array_like=True, gc=False):
    """The rows that `WorkFold` extracts, as workers send them to the writer."""

    calls: CallRows
    files: list[TouchRow]
    lists: TodoRows | None
    compactions: list[CompactionRow]
    agents: AgentRows

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write them for the transcript of that number; `first` is the id of its first new entry."""
        ids = EntryIds(connection, number, first)
        keys = self.calls.write(connection, number, ids)
        write_touches(connection, self.files, keys, ids)
        if self.lists is not None:
            write_todos(connection, self.lists, number, ids)
        for late in self.calls.late(connection, number, ids):
            write_late_todos(connection, late, number, ids)
            delete_touches(connection, late.key)
            write_touch(connection, late.answered, late.key, ids)
        write_compactions(connection, self.compactions, number, ids, is_whole=self.calls.is_whole)
        self.agents.write(connection, number)
        if self.calls.write_open(connection, number, ids) and not has_unlinked(connection):
            link_results_elsewhere(connection, number)


_decode_work = msgspec.msgpack.Decoder(WorkRows).decode


def write_work(connection: sqlite3.Connection, packed: bytes, number: int, first: int) -> None:
    """Write encoded rows for the transcript of that number; `first` is the id of its first new entry."""
    _decode_work(packed).write(connection, number, first)


class TranscriptState(Struct, array_like=True):
    """The state after the lines read so far, stored with the transcript. Only main transcripts have a summary.

    `summaries` decodes prefixes of it: do not reorder the fields.
    """

    stats: StatsFold
    summary: SummaryState | None = None
    work: WorkState | None = None


_KINDS: dict[type[Entry], str] = {kind: tag for tag, kind in KINDS.items()}
# The messages of rows for calls and results are not in the transcript, so heads do not have them.
_CHAIN_TYPES = CHAIN_TYPES - {ToolUseEntry, ToolResultEntry}
_REQUEST_TYPES = frozenset({AssistantEntry, SystemEntry})
_decode_state = msgspec.msgpack.Decoder(TranscriptState).decode


def decode_state(packed: bytes) -> TranscriptState:
    """The state in a transcript's row; an empty one if no line has been read."""
    return _decode_state(packed) if packed else TranscriptState(StatsFold())


def has_cwd(packed: bytes) -> bool:
    """Whether a line so far contains a working directory."""
    work = decode_state(packed).work
    return work is not None and work.cwd is not None


class FoldResult(Struct, gc=False):
    """The encoded state after some entries, and their rows."""

    state: bytes = b""
    session: SessionRows | None = None
    work: bytes = b""

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write them for the transcript of that number; `first` is the id of its first new entry."""
        connection.execute("UPDATE transcripts SET state = ? WHERE transcript_id = ?", (self.state, number))
        if self.session is not None:
            self.session.write(connection, number)
        connection.execute(FORGET_OUTCOMES, (number,))
        if self.work:
            write_work(connection, self.work, number, first)


class TranscriptFold:
    """Adds entries to the state of a transcript, an encoded one or an empty one."""

    def __init__(self, packed: bytes, transcript: Transcript) -> None:
        self._is_main = transcript.kind is TranscriptKind.MAIN
        self._is_new = not packed
        self._transcript = transcript
        self._state = decode_state(packed)
        self._summary = SummaryFold(self._state.summary) if self._is_main else None
        self._work = WorkFold(self._state.work or empty_work_state(), transcript, is_whole=self._is_new)

    def add(self, run: EntryRun, kinds: Sequence[str], times: Sequence[str | None], first: int) -> None:
        """Add a run, and the kinds and times of its entries.

        `first` is the position of its first entry among those read now.
        """
        entries = run.entries
        self._work.add(entries, times, first)
        if self._summary is not None:
            add = self._summary.add
            for entry, time in zip(entries, times, strict=True):
                add(entry, time)
        if run.is_exact:
            heads = [entry if type(entry) in _CHAIN_TYPES else head_of(entry) for entry in entries]
            self._state.stats.add(heads, kinds, range(run.number, run.number + len(entries)), times)
        else:
            heads = [
                entry if type(entry) in _CHAIN_TYPES and not entry.line.problems else head_of(entry)
                for entry in entries
            ]
            head_times = sortable_times([head.timestamp_text for head in heads])
            self._state.stats.add(heads, kinds, [entry.line.number for entry in entries], head_times)

    @property
    def inline_agents(self) -> Mapping[int, str]:
        """The agents inside a main transcript that have no id, by the offsets of their replies."""
        return self._work.inline_agents

    def finish(self, read: Callable[[], Iterable[Entry]]) -> FoldResult:
        """The state and the rows. `read` reads all entries again, for summaries that need all of them."""
        fold = self._summary
        session = None
        if fold is not None:
            is_whole, summaries = self._is_new, fold.summaries
            if not fold.is_reliable:
                fold, is_whole = fold_entries(read()), True
            summary = fold.summary()
            self._state.summary = fold.state
            session = make_session_rows(summary, fold, self._transcript, summaries, is_whole=is_whole)
        work = self._work.done()
        self._state.work = self._work.state
        return FoldResult(encode_state(self._state), session, work)


def encode_state(state: TranscriptState) -> bytes:
    """Encode a state. JSON may contain half of a surrogate pair, which is replaced: it cannot be encoded."""
    try:
        return msgspec.msgpack.encode(state)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(replace_surrogates(msgspec.to_builtins(state, builtin_types=(bytes,))))


_TAIL_BYTES = 4096
ProblemRow = tuple[int, str, str, bool]
TextRow = tuple[int, Mapping[str, str | bytes]]


class ReadRequest(Struct, frozen=True, gc=False):
    """A transcript to read, from which offset on, and the number of the line there.

    `state` is the state after the lines before it. `waiting` are calls for web searches in those lines, whose results
    may come now. `is_open` says that the last of those lines has no line end. `is_plain` asks for texts and sightings
    as they are, not as full-text search and the index take them.
    """

    transcript: Transcript
    offset: int = 0
    line: int = 1
    state: bytes = b""
    waiting: tuple[str, ...] = ()
    is_open: bool = False
    is_plain: bool = False


class EntryColumns(Struct, gc=False):
    """The rows of `entries`, by column, without the two numbers that only the writer knows.

    `session` and `agent` are as in the table: None if the transcript's own name says the same.
    """

    line: list[int] = []
    offset: list[int] = []
    length: list[int] = []
    kind: list[str] = []
    uuid: list[str | None] = []
    session: list[str | None] = []
    agent: list[str | None] = []
    timestamp: list[str | None] = []
    message: list[str | None] = []
    request: list[str | None] = []
    stop_reason: list[str | None] = []

    def __len__(self) -> int:
        return len(self.line)

    def add(self, run: EntryRun, kinds: Sequence[str], transcript: Transcript) -> None:
        """Add rows for the entries of a run, whose kinds are these."""
        entries = run.entries
        lengths = [len(entry.line.raw) for entry in entries]
        if run.is_exact:
            self.line += range(run.number, run.number + len(entries))
        else:
            self.line += [entry.line.number for entry in entries]
        self.offset += accumulate(lengths[:-1], initial=run.offset)
        self.length += lengths
        self.kind += [storable_text(kind) or "" for kind in kinds] if not "".join(kinds).isascii() else kinds
        self.uuid += _storable_texts([entry.uuid for entry in entries])
        self.session += _differing([entry.session_id for entry in entries], transcript.session)
        agents = [
            entry.agent_id or (entry.agent_id_again and entry.author_agent_id) if type(entry) in _CHAIN_TYPES else None
            for entry in entries
        ]
        self.agent += _differing(agents, transcript.agent)
        self.timestamp += [
            text if type(text := entry.timestamp_text) is str and text.isascii() else _timestamp(entry)
            for entry in entries
        ]
        messages = [entry.message if type(entry) is AssistantEntry else None for entry in entries]
        self.message += _storable_texts([message.id if message is not None else None for message in messages])
        self.request += _storable_texts(
            [entry.request_id if type(entry) in _REQUEST_TYPES else None for entry in entries]
        )
        self.stop_reason += _storable_texts(
            [message.stop_reason if message is not None else None for message in messages]
        )


def _storable_texts(texts: list[Any]) -> Iterable[str | None]:
    return texts if "".join(filter(None, texts)).isascii() else map(storable_text, texts)


def _differing(values: Sequence[str | None], usual: str | None) -> Iterable[str | None]:
    """The values as they are stored, None in place of the usual one."""
    distinct = set(values)
    if distinct == {usual}:
        return repeat(None, len(values))
    stored = {value: storable_text(value) if value != usual else None for value in distinct}
    return map(stored.__getitem__, values)


def _timestamp(entry: Entry) -> str | None:
    written = entry.timestamp_text
    if isinstance(written, str):
        return storable_text(written)
    moment = entry.timestamp
    return moment.isoformat() if moment is not None else None


class TranscriptRows(Struct, gc=False):
    """The rows of a transcript, in file order. `texts` start with the position of their entry among those read.

    `read_to` is where the last whole line ends, `lines` how many lines there are up to it, `last` its last bytes, and
    `checksum` that of all bytes that were read. `problem` says why the transcript could not be read; then there are no
    rows, and the next refresh reads the transcript from its start. `is_open` says
    that the last line is whole but has no line end, `is_closed` that the line before these rows has one now.
    `was_reread` says that the whole transcript was read, because that line went on in another way. If the request asks
    for plain values, `plain` has the sightings, `sightings` is empty, and `agent_lines` are those of agents inside a
    main transcript.
    """

    entries: EntryColumns
    texts: list[TextRow]
    problems: list[ProblemRow]
    sightings: SightingRows
    fold: FoldResult
    read_to: int = 0
    lines: int = 0
    last: bytes = b""
    checksum: int = 0
    problem: str | None = None
    is_open: bool = False
    is_closed: bool = False
    was_reread: bool = False
    plain: PlainSightings | None = None
    agent_lines: list[int] = []


def read_rows(request: ReadRequest) -> TranscriptRows:
    """Read a transcript from the request's offset on. If the system refuses, the rows have a `problem`."""
    try:
        if request.is_open and not _has_line_end(request):
            rows = _read_from(ReadRequest(request.transcript))
            rows.was_reread = True
            return rows
        if request.is_open:
            rows = _read_from(replace(request, offset=request.offset + 1))
            rows.is_closed = True
            rows.last = rows.last or b"\n"
            return rows
    except (OSError, Error) as error:
        rows = _empty_rows(request)
        rows.problem = str(error)
        return rows
    return _read_from(request)


def _empty_rows(request: ReadRequest) -> TranscriptRows:
    return TranscriptRows(
        EntryColumns(),
        [],
        [],
        SightingRows(offset=request.offset),
        FoldResult(request.state),
        request.offset,
        request.line - 1,
    )


def _has_line_end(request: ReadRequest) -> bool:
    """Whether the line that had no end has one now."""
    with os.fdopen(open_transcript(request.transcript.path), "rb") as file:
        file.seek(request.offset)
        return file.read(1) == b"\n"


def _read_from(request: ReadRequest) -> TranscriptRows:
    transcript = request.transcript
    rows = _empty_rows(request)
    fold = TranscriptFold(request.state, transcript)
    sightings = SightingReader(transcript, request.offset, request.waiting, is_plain=request.is_plain)
    try:
        for run in _complete_runs(entry_runs(transcript.path, offset=request.offset, line=request.line)):
            _add_run(rows, run, request, fold)
            sightings.add(run)
        rows.fold = fold.finish(lambda: _entries_up_to(transcript, rows.read_to))
        if request.is_plain:
            rows.plain = sightings.finish_plain(rows.read_to, fold.inline_agents)
        else:
            rows.sightings = sightings.finish(rows.read_to, fold.inline_agents)
    except Error as error:  # the rows so far would lack what is made of them at the end
        rows = _empty_rows(request)
        rows.problem = str(error)
    return rows


def _entries_up_to(transcript: Transcript, read_to: int) -> Iterator[Entry]:
    """All entries of a transcript, as far as it has been read."""
    return takewhile(lambda entry: entry.line.offset < read_to, entries(transcript.path))


def _complete_runs(runs: Iterable[EntryRun]) -> Iterator[EntryRun]:
    """The runs whose lines have an end. A last line without one waits for the next refresh, unless it is complete."""
    pending: list[EntryRun] = []  # pieces of one line
    for run in runs:
        if pending and run.number != pending[0].number:
            return  # it was the last line, and has grown while it was read
        pending.append(run)
        if run.lines[-1].endswith(b"\n"):
            yield from pending
            pending.clear()
    if len(pending) == 1 and _is_whole(pending[0]):
        yield pending[0]


def _is_whole(run: EntryRun) -> bool:
    return len(run.entries) == 1 and not run.entries[0].problems and run.lines[0].rstrip().endswith(b"}")


def _add_run(rows: TranscriptRows, run: EntryRun, request: ReadRequest, fold: TranscriptFold) -> None:
    """Add the rows of a run of lines."""
    first = len(rows.entries)
    kinds = [_KINDS.get(type(entry)) or entry.kind for entry in run.entries]
    rows.entries.add(run, kinds, request.transcript)
    fields_of: Callable[[Entry], Mapping[str, str | bytes]] = extract_fields if request.is_plain else searchable_fields
    rows.texts += ((at, fields) for at, fields in enumerate(map(fields_of, run.entries), first) if fields)
    times = sortable_times([entry.timestamp_text for entry in run.entries])
    fold.add(run, kinds, times, first)
    if request.is_plain and request.transcript.is_main:
        agents = (entry for entry in run.entries if isinstance(entry, ChainEntry) and entry.is_agent)
        rows.agent_lines += (entry.line.number for entry in agents)
    rows.problems += (
        (entry.line.number, str(problem.kind), storable_text(problem.message) or "", problem.recovered)
        for entry in (may_have_problems(run.entries, times) if run.is_exact else run.entries)
        for problem in entry.all_problems
    )
    for raw in run.lines:
        rows.checksum = crc32(raw, rows.checksum)
    rows.lines = rows.entries.line[-1]
    rows.read_to = rows.entries.offset[-1] + rows.entries.length[-1]
    rows.last = raw[-_TAIL_BYTES:]
    rows.is_open = not raw.endswith(b"\n")
