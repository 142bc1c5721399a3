"""Session summaries and transcript statistics from the index, as if the transcripts had just been read.

Imports nothing that knows entries at the top: an unfinished last line is read from the transcript only where there is
one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw, Struct

from threadline.errors import Error
from threadline.index.schema import SIDE_SQL, WORKING_AGENT_SQL
from threadline.index.store import decode_path
from threadline.model.homes import Transcript, is_kept
from threadline.model.side_agents import SideAgentKind
from threadline.model.times import parse_timestamp
from threadline.summary import (
    AgentHead,
    StatsFold,
    SummaryState,
    TranscriptStats,
    TranscriptSummary,
    read_agent_head,
    read_last_timestamp,
    read_stats,
    summary_from_state,
)

if TYPE_CHECKING:
    from threadline.model.entries import Entry

# ruff: noqa: S608 - statements are made of our own words

_SELECT_AGENT_HEADS = f"""SELECT t.path, COALESCE(t.session, a.session), {SIDE_SQL}
FROM agent_rows a JOIN transcripts t USING(transcript_id) WHERE t.kind <> 'main' AND a.agent = t.agent"""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_TIMESTAMP_MARKS = (b"timestamp", b"\\u")


class _TranscriptRow(NamedTuple):
    state: bytes
    read_to: int
    size: int
    lines: int


class _SummaryPrefix(Struct, array_like=True):
    """As much of `threadline.index.state.State` as is asked here: the rest takes long to load, and to unpack."""

    glance: StatsFold
    light: SummaryState | None = None


class _SpanPrefix(Struct, array_like=True):
    """As much of a glance as tells when a transcript ends."""

    kinds: Raw = Raw()
    versions: Raw = Raw()
    sessions: Raw = Raw()
    first: str | None = None
    last: str | None = None


class _DatedPrefix(Struct, array_like=True):
    glance: _SpanPrefix


_decode_summary = msgspec.msgpack.Decoder(_SummaryPrefix).decode
_decode_span = msgspec.msgpack.Decoder(_DatedPrefix).decode


class IndexedSummaries:
    """Answers from the index; of a last line that was not finished when it was read, from the transcript."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last_time(self, transcript: Transcript) -> datetime:
        """The last time that a transcript tells; when it was written where it tells none."""
        row = self._row(transcript)
        if row is None or not row.state or _may_have_later_time(transcript, row):
            return read_last_timestamp(transcript)
        told = parse_timestamp(_decode_span(row.state).glance.last)
        return told if told is not None else read_last_timestamp(transcript)

    def summaries(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Transcript, TranscriptSummary]]:
        """Summarize main transcripts."""
        for transcript in transcripts:
            yield transcript, self._summary(transcript)

    def agent_head(self, transcript: Transcript) -> AgentHead:
        """Return what the beginning of an agent's transcript says; whether a call started it is known here."""
        head = self._agent_heads.get(str(transcript.path))
        return head if head is not None else read_agent_head(transcript)

    def stats(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Transcript, TranscriptStats]]:
        """Count what is in transcripts."""
        for transcript in transcripts:
            row = self._row(transcript)
            yield transcript, read_stats(transcript) if row is None else _resume_stats(transcript, row)

    def _summary(self, transcript: Transcript) -> TranscriptSummary:
        row = self._row(transcript)
        state = _decode_summary(row.state).light if row is not None and row.state else None
        if row is not None and state is not None and row.read_to >= row.size:
            return summary_from_state(state)
        return _resume_summary(transcript, row, state)

    def _row(self, transcript: Transcript) -> _TranscriptRow | None:
        """What the index has of a transcript; None where it has nothing that could be relied on."""
        told = self._rows.get(str(transcript.path))
        row = _TranscriptRow(*told) if told is not None else None
        # One that has bytes and no line was never read: the machine refused, or its first line has no end.
        return None if row is None or (row.size and not row.lines) else row

    @cached_property
    def _rows(self) -> dict[str, tuple[bytes, int, int, int]]:
        asked = self._connection.execute("SELECT path, state, read_to, size, lines FROM transcripts")
        return {row[0] if row[0].__class__ is str else os.fsdecode(row[0]): row[1:] for row in asked}

    @cached_property
    def _agent_heads(self) -> dict[str, AgentHead]:
        """By path. Where half of a surrogate pair was replaced in the session's id, the file is asked."""
        return {
            os.fsdecode(path): AgentHead(session, SideAgentKind(side) if side is not None else None)
            for path, session, side in self._connection.execute(_SELECT_AGENT_HEADS)
            if session is not None and _REPLACED not in session
        }


def _may_have_later_time(transcript: Transcript, row: _TranscriptRow) -> bool:
    """Whether a last line that was not finished may tell one that the index does not know."""
    if row.read_to >= row.size:
        return False
    try:
        left = _read_bytes(transcript, row.read_to, row.size - row.read_to)
    except OSError:
        return True
    return any(mark in left for mark in _TIMESTAMP_MARKS)


def _read_bytes(transcript: Transcript, offset: int, length: int) -> bytes:
    with transcript.path.open("rb", buffering=0) as file:
        file.seek(offset)
        return file.read(length)


def _resume_summary(
    transcript: Transcript, row: _TranscriptRow | None, state: SummaryState | None
) -> TranscriptSummary:
    """What the index knows, and a last line that was not finished; or all of the transcript."""
    from threadline.summary import SummaryFold, summarize_transcript

    if row is None or state is None:
        return summarize_transcript(transcript)
    lighting = SummaryFold(state)
    try:
        for entry in _unread_entries(transcript, row):
            lighting.add(entry)
    except Error as error:
        return TranscriptSummary(problem=str(error), spoken=1)
    return lighting.summary() if lighting.is_reliable else summarize_transcript(transcript)


def _resume_stats(transcript: Transcript, row: _TranscriptRow) -> TranscriptStats:
    told = _decode_summary(row.state).glance if row.state else StatsFold()
    if row.read_to < row.size:
        from threadline.parse import head_of

        try:
            for entry in _unread_entries(transcript, row):
                told.add([head_of(entry)], [entry.kind], [entry.line.number])
        except Error:
            return read_stats(transcript)  # which says what the machine refuses
    return told.stats(transcript.kind)


def _unread_entries(transcript: Transcript, row: _TranscriptRow) -> Iterator[Entry]:
    """What stands in a last line that was not finished."""
    from threadline.parse import entries

    left = entries(transcript.path, offset=row.read_to, line=row.lines + 1)
    return takewhile(lambda entry: entry.line.offset < row.size, left)


_SELECT_SESSIONS = """SELECT
    s.session, s.title, COALESCE(s.cwd, p.path, p.folder), s.first, s.last, s.turns, s.model,
        s.entries + (t.read_to < t.size), t.size, t.path, t.mtime_ns
    FROM session_rows s JOIN transcripts t USING(transcript_id) JOIN projects p USING(project_id)"""
# Of agents beside the sessions, as older versions kept them, only their entries tell whose they are.
_COUNT_AGENTS = f"""SELECT COALESCE(t.session, a.session), COUNT(DISTINCT a.agent)
    FROM agent_rows a JOIN transcripts t USING(transcript_id)
    WHERE {WORKING_AGENT_SQL.format(transcript="t")} GROUP BY 1"""
_NEVER = datetime.min.replace(tzinfo=UTC)


class SessionBrief(Struct, frozen=True):
    """A session in a line. `name` is what addresses call it: its id, or else its file's name.

    One that is `kept` is only in the keep.
    """

    id: str | None
    title: str
    project: str
    first: datetime | None
    last: datetime | None
    turns: int
    agents: int
    model: str | None
    entries: int
    size: int
    path: str
    kept: bool = False

    @property
    def name(self) -> str:
        """Its id, or where no path tells one the name of its file."""
        return self.id or self.path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")


def list_sessions(connection: sqlite3.Connection) -> tuple[SessionBrief, ...]:
    """Every session, the newest first: those that `sessions` of the archive lists, in the same order."""
    agents: dict[str | None, int] = dict(connection.execute(_COUNT_AGENTS).fetchall())
    found = [
        SessionBrief(
            id=session,
            title=title,
            project=decode_path(project),
            first=parse_timestamp(first),
            last=parse_timestamp(last) or _mtime(mtime),
            turns=turns,
            agents=agents.get(session, 0) if session is not None else 0,
            model=model,
            entries=entries,
            size=size,
            path=decode_path(path),
            kept=is_kept(decode_path(path)),
        )
        for session, title, project, first, last, turns, model, entries, size, path, mtime in connection.execute(
            _SELECT_SESSIONS
        )
    ]
    return tuple(sorted(found, key=lambda one: (one.last or _NEVER, one.path), reverse=True))


def _mtime(mtime_ns: int) -> datetime | None:
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    return None
