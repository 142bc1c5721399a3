"""Session summaries and transcript statistics from the index, as if the transcripts had just been read.

`read_session_details` reads what lists show beside a summary: last prompt, git branch, changed files, failures.

Imports no module that defines entries at the top: an unfinished last line is read from the transcript only if there is
one.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from threadline.errors import Error
from threadline.files import escape_path, read_at
from threadline.find import transcript_stem
from threadline.home_files import opened_in_home
from threadline.index.store import SESSION_TRANSCRIPTS_SQL, SIDE_SQL, WORKING_AGENT_SQL, decode_path
from threadline.model.homes import Homes, SideAgentKind, Transcript
from threadline.model.places import is_uuid
from threadline.model.times import FIRST_MOMENT, moment_from_mtime, parse_timestamp, sortable_time
from threadline.summary import (
    AgentHead,
    StatsFold,
    SummaryState,
    TranscriptStats,
    TranscriptSummary,
    count_started_agents,
    read_agent_head,
    read_last_timestamp,
    read_stats,
    summary_from_state,
)

if TYPE_CHECKING:
    from threadline.model.entries import Entry

# ruff: noqa: S608 - statements are built from our own names

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
    """The first fields of `threadline.index.rows.state.TranscriptState`: the rest takes long to load and to unpack."""

    stats: StatsFold
    summary: SummaryState | None = None


class _SpanPrefix(Struct, array_like=True):
    """The first fields of `StatsFold`, up to the last time of a transcript."""

    kinds: Raw = Raw()
    versions: Raw = Raw()
    sessions: Raw = Raw()
    first: str | None = None
    last: str | None = None


class _StatsPrefix(Struct, array_like=True):
    stats: _SpanPrefix


_decode_summary = msgspec.msgpack.Decoder(_SummaryPrefix).decode
_decode_span = msgspec.msgpack.Decoder(_StatsPrefix).decode


class IndexedSummaries:
    """Summaries and statistics from the index. An unfinished last line is read from the transcript."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last_time(self, transcript: Transcript) -> datetime:
        """The last time in a transcript; when the file was modified if it has none."""
        row = self._row(transcript)
        if row is None or not row.state or _may_have_later_time(transcript, row):
            return read_last_timestamp(transcript)
        last = parse_timestamp(_decode_span(row.state).stats.last)
        return last if last is not None else read_last_timestamp(transcript)

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
        state = _decode_summary(row.state).summary if row is not None and row.state else None
        title = self._titles.get(str(transcript.path))
        if row is not None and state is not None and row.read_to >= row.size:
            return summary_from_state(state, title)
        return _resume_summary(transcript, row, state, title)

    def _row(self, transcript: Transcript) -> _TranscriptRow | None:
        """The row of a transcript; None if it is unknown, or was never read."""
        columns = self._rows.get(str(transcript.path))
        row = _TranscriptRow(*columns) if columns is not None else None
        # With bytes but without lines, it could not be read, or its first line is unfinished.
        return None if row is None or (row.size and not row.lines) else row

    @cached_property
    def _rows(self) -> dict[str, tuple[bytes, int, int, int]]:
        rows = self._connection.execute("SELECT path, state, read_to, size, lines FROM transcripts")
        return {decode_path(row[0]): row[1:] for row in rows}

    @cached_property
    def _titles(self) -> dict[str, str]:
        """The summaries that title main transcripts, by path."""
        select = "SELECT t.path, s.text FROM summary_titles s JOIN transcripts t USING(transcript_id)"
        return {decode_path(path): text for path, text in self._connection.execute(select)}

    @cached_property
    def _agent_heads(self) -> dict[str, AgentHead]:
        """By path. A head with a replaced half surrogate in its session id is left out, so the file is read."""
        return {
            decode_path(path): AgentHead(session, SideAgentKind(side) if side is not None else None)
            for path, session, side in self._connection.execute(_SELECT_AGENT_HEADS)
            if session is not None and _REPLACED not in session
        }


def _may_have_later_time(transcript: Transcript, row: _TranscriptRow) -> bool:
    """Whether an unfinished last line may contain a time that the index does not know."""
    if row.read_to >= row.size:
        return False
    try:
        unread = _read_bytes(transcript, row.read_to, row.size - row.read_to)
    except OSError:
        return True
    return any(mark in unread for mark in _TIMESTAMP_MARKS)


def _read_bytes(transcript: Transcript, offset: int, length: int) -> bytes:
    with opened_in_home(transcript.path) as file:
        return read_at(file, offset, offset + length)


def _resume_summary(
    transcript: Transcript, row: _TranscriptRow | None, state: SummaryState | None, title: str | None
) -> TranscriptSummary:
    """The indexed summary with an unfinished last line added; or the summary of the whole transcript.

    `title` is the summary that titles it.
    """
    from threadline.summary import SummaryFold, summarize_transcript

    if row is None or state is None:
        return summarize_transcript(transcript, title)
    fold = SummaryFold(state)
    try:
        for entry in _unread_entries(transcript, row):
            fold.add(entry)
    except Error as error:
        return TranscriptSummary(problem=str(error), spoken=1)
    return fold.summary(title) if fold.is_reliable else summarize_transcript(transcript, title)


def _resume_stats(transcript: Transcript, row: _TranscriptRow) -> TranscriptStats:
    fold = _decode_summary(row.state).stats if row.state else StatsFold()
    if row.read_to < row.size:
        from threadline.parse import head_of

        try:
            for entry in _unread_entries(transcript, row):
                head = head_of(entry)
                fold.add([head], [entry.kind], [entry.line.number], [sortable_time(head.timestamp_text)])
        except Error:
            return read_stats(transcript)  # which reports why it cannot be read
    return fold.stats(transcript.kind)


def _unread_entries(transcript: Transcript, row: _TranscriptRow) -> Iterator[Entry]:
    """The entries of an unfinished last line."""
    from threadline.parse import entries

    unread = entries(transcript.path, offset=row.read_to, line=row.lines + 1)
    return takewhile(lambda entry: entry.line.offset < row.size, unread)


_SELECT_SESSIONS = """SELECT
    s.session, s.title, COALESCE(s.cwd, p.path, p.folder), s.first, s.last, s.turns, s.model,
        s.entries + (t.read_to < t.size), t.size, t.path, t.mtime_ns, h.path, p.folder
    FROM session_rows s JOIN transcripts t USING(transcript_id) JOIN projects p USING(project_id)
    JOIN homes h ON h.home_id = t.home_id"""
_SELECT_STATES = """SELECT t.path, h.path, p.folder, t.session, t.state
    FROM transcripts t JOIN projects p USING(project_id)
    JOIN homes h ON h.home_id = t.home_id
    WHERE t.kind = 'main' AND t.session IN (SELECT value FROM json_each(?)) AND t.state <> x''"""
# Older versions stored agents beside the sessions; only their entries name the session.
_SELECT_AGENTS = f"""SELECT a.agent, COALESCE(t.session, a.session), h.path, p.folder, t.kind
    FROM agent_rows a JOIN transcripts t USING(transcript_id) JOIN projects p ON p.project_id = t.folder_id
    JOIN homes h ON h.home_id = t.home_id
    WHERE {WORKING_AGENT_SQL.format(transcript="t")}"""
_SELECT_NAMES = """SELECT t.session, p.folder FROM transcripts t JOIN projects p USING(project_id)
    WHERE t.kind = 'main' AND t.size > 0"""


class SessionBrief(Struct, frozen=True):
    """A session as one query of the index lists it. `kept`: it exists only in the keep.

    `summary.SessionSummary` has more fields: agent types, agents whose transcripts are missing, whether the session is
    running. Computing those takes a listing of the homes and a lookup per session. Web pages list all sessions on
    every request and do not show them, so this is a separate, cheaper type. `tests/interfaces/test_agree.py` checks
    that both agree on the fields they share.
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
    shares_name: bool = False
    ended: datetime | None = None
    """The last time of the main conversation. `last` is when the file was modified if there is none."""
    name: str = ""
    """Its name in URLs: its id. If other sessions have the same, `FOLDER/ID`, or the path if that is not unique."""


_SessionKey = tuple[str, str, str | None]


def list_sessions(connection: sqlite3.Connection, homes: Homes) -> tuple[SessionBrief, ...]:
    """All sessions, newest first: the same as `Archive.sessions` lists, in the same order."""
    rows = sorted(connection.execute(_SELECT_SESSIONS), key=lambda row: decode_path(row[9]))
    keys: list[_SessionKey] = [(homes.name_of(decode_path(row[11])), decode_path(row[12]), row[0]) for row in rows]
    agents = _working_agents(connection, homes, keys)
    # A transcript that is not listed, because nobody spoke in it, has a name as well.
    mains = [(decode_path(folder), session) for session, folder in connection.execute(_SELECT_NAMES)]
    ids = Counter(session for _, session in mains)
    names = Counter(mains)
    sessions: list[SessionBrief] = []
    for key, row in zip(keys, rows, strict=True):
        session, title, project, first, last, turns, model, entries, size, stored_path, mtime, *_ = row
        path = decode_path(stored_path)
        folder = key[1]
        id_ = session or transcript_stem(os.path.basename(path))  # noqa: PTH119 - text
        shares_name = ids[session] > 1
        sessions.append(
            SessionBrief(
                id=session,
                title=title,
                project=decode_path(project),
                first=parse_timestamp(first),
                last=parse_timestamp(last) or moment_from_mtime(mtime),
                ended=parse_timestamp(last),
                turns=turns,
                agents=len(agents.get(key, ())) if session is not None else 0,
                model=model,
                entries=entries,
                size=size,
                path=path,
                kept=homes.is_kept(path),
                shares_name=shares_name,
                name=id_
                if not shares_name
                else f"{escape_path(folder)}/{id_}"
                if names[folder, session] == 1
                else escape_path(path),
            )
        )
    return tuple(sorted(sessions, key=lambda brief: (brief.last or FIRST_MOMENT, brief.path), reverse=True))


def started_agents(connection: sqlite3.Connection, homes: Homes, sessions: Iterable[str]) -> dict[str, int]:
    """How many agents sessions had, with or without a transcript, by path; as `SessionSummary.agents_started`."""
    states = [
        (decode_path(path), (homes.name_of(decode_path(home)), decode_path(folder), session), _decode_summary(state))
        for path, home, folder, session, state in connection.execute(_SELECT_STATES, (json.dumps(sorted(sessions)),))
    ]
    agents = _working_agents(connection, homes, [key for _path, key, _state in states])
    return {
        path: count_started_agents(agents.get(key, ()), state.summary.started, len(state.summary.pending_agents))
        for path, key, state in states
        if state.summary is not None
    }


def _working_agents(
    connection: sqlite3.Connection, homes: Homes, sessions: Iterable[_SessionKey]
) -> dict[_SessionKey, set[str]]:
    """The working agents of each session, by the rule of `find.SessionOwners`."""
    in_folder = set(sessions)
    in_home: dict[tuple[str, str | None], _SessionKey] = {}
    for key in sorted(in_folder, key=lambda key: (key[0], key[1] + os.sep)):  # as paths are sorted
        in_home.setdefault((key[0], key[2]), key)
    agents: dict[_SessionKey, set[str]] = {}
    for agent, session, home, folder, kind in connection.execute(_SELECT_AGENTS):
        name = homes.name_of(decode_path(home))
        key = name, decode_path(folder), session
        if key not in in_folder and kind != "main" and session is not None and is_uuid(session):
            key = in_home.get((name, session), key)
        agents.setdefault(key, set()).add(agent)
    return agents


class SessionDetails(Struct, frozen=True):
    """Facts about a session, its agents included.

    `last_prompt` is the last text that somebody typed, and `branch` the last git branch. `files` counts changed files,
    and `failed_calls` failed calls.
    """

    last_prompt: str = ""
    branch: str = ""
    files: int = 0
    failed_calls: int = 0
    compactions: int = 0


_NO_DETAILS = SessionDetails()
_SELECT_LAST_PROMPTS = """SELECT t.session, p.text, MAX(p.transcript_id * 1000000000 + p.line) FROM transcripts t
    CROSS JOIN prompt_rows p ON p.transcript_id = t.transcript_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND t.kind = 'main'
        AND p.kind IN ('prompt', 'programmatic', 'steering', 'command')
    GROUP BY 1"""
# A session may return to a branch, so the last message decides and not the last origin.
_SELECT_BRANCHES = """SELECT t.session, o.git_branch, MAX(t.transcript_id * 1000000000000 + s.offset) FROM transcripts t
    CROSS JOIN sightings s ON s.transcript_id = t.transcript_id
    CROSS JOIN origins o ON o.origin_id = s.origin_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND t.kind = 'main' AND o.git_branch <> '' GROUP BY 1"""
_COUNT_FILES = f"""SELECT t.session, COUNT(DISTINCT f.path_id) FROM {SESSION_TRANSCRIPTS_SQL} t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN file_rows f ON f.entry_id = e.entry_id
    WHERE f.how IN ('edit', 'write', 'user-modified') GROUP BY 1"""
_COUNT_FAILED = f"""SELECT t.session, COUNT(*) FROM {SESSION_TRANSCRIPTS_SQL} t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id
    WHERE c.outcome = 'error' GROUP BY 1"""
_COUNT_COMPACTIONS = """SELECT t.session, COUNT(*) FROM transcripts t
    CROSS JOIN compaction_rows c ON c.transcript_id = t.transcript_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND t.kind = 'main' GROUP BY 1"""
_STATEMENTS = {
    "last_prompt": _SELECT_LAST_PROMPTS,
    "branch": _SELECT_BRANCHES,
    "files": _COUNT_FILES,
    "failed_calls": _COUNT_FAILED,
    "compactions": _COUNT_COMPACTIONS,
}


def read_session_details(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, SessionDetails]:
    """Facts about each of these sessions, by id."""
    id_list = json.dumps(sorted(sessions))
    details: dict[str, SessionDetails] = dict.fromkeys(sessions, _NO_DETAILS)
    for name, statement in _STATEMENTS.items():
        for session, value, *_ in connection.execute(statement, (id_list,)):
            details[session] = replace(details[session], **{name: value})
    return details
