"""The index of an archive, open for reading, and brought up to date with the transcripts if that is cheap.

`Index` is the only owner of the SQLite connection. Every question is a method; the SQL is in the modules of this
package. A method imports its module when it is called, so that a command loads only what it asks for. Nothing here
imports a module that reads transcripts: loading those takes longer than querying a fresh index.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from msgspec import Struct

from threadline.account import shipped_digest
from threadline.errors import IndexBusy, Unreadable
from threadline.find import (
    TRANSCRIPT_SUFFIX,
    StatKey,
    detect_changes,
    drop_shared_transcripts,
    look_with_known_transcripts,
    parse_transcript_name,
    stat_transcripts,
)
from threadline.index.store import (
    KNOWN_COLUMNS,
    damaged_error,
    decode_path,
    encode_path,
    open_read_only,
    read_generation,
    read_transaction,
)
from threadline.model.homes import (
    Found,
    Home,
    Homes,
    Transcript,
    TranscriptChanges,
    TranscriptFingerprint,
    TranscriptKind,
)
from threadline.model.places import AgentId, Problem, SessionId

if TYPE_CHECKING:
    from threadline.account import ChargeFilter, Ledger, Rates
    from threadline.index.activity import TranscriptActivity
    from threadline.index.insight.outcomes import OutcomeReader, TranscriptOutcomes
    from threadline.index.insight.queries import UnstoredTranscript
    from threadline.index.insight.stored_insights import (
        InsightSelection,
        NewInsight,
        OwnedCharges,
        StoredCauses,
        StoredSession,
    )
    from threadline.index.listings import AgentList, CallFilter, CallList, EditKey, FileTouch
    from threadline.index.queries import Activity, EntryTable, FullText, ProblemList, SessionFacts, SessionLabels
    from threadline.index.refresh import RefreshResult
    from threadline.index.sql import IsolatedResult, QueryResult
    from threadline.index.summaries import IndexedSummaries, SessionBrief, SessionDetails
    from threadline.index.vocabulary import Vocabulary
    from threadline.insight import OutcomeFacts, ResultCost, ToolCall
    from threadline.model.calls import FileList, ListedCall
    from threadline.model.insight.waste import Waste, WasteLimits
    from threadline.model.titles import KnownLinks
    from threadline.reports import RecentUsage, SessionRef

_Value = TypeVar("_Value")


class Index:
    """An index, open for reading. Close it when done, or use it in a `with` statement.

    It may be passed between threads, but only one may use it at a time. If the file turns out to be damaged, any
    method raises `DamagedIndex`; if it stays locked, `IndexBusy`. `problems` are paths that could not be read when the
    index was compared with the homes.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        homes: Sequence[Home] = (),
        problems: Sequence[Problem] = (),
    ) -> None:
        self.path = path
        self._homes = Homes(homes)
        self.problems = tuple(problems)
        self._connection = connection
        self._cache: dict[Hashable, tuple[object, object]] = {}

    @classmethod
    def open(cls, path: Path, homes: Sequence[Home] = ()) -> Self:
        """Open an index of these homes as it is, without comparing it with the transcripts.

        Raises:
            Unreadable: there is no index at that path, or it is damaged.
        """
        return cls(open_read_only(path), path, homes)

    @staticmethod
    def open_fresh(
        path: Path,
        homes: Sequence[Home],
        *,
        max_bytes: int | None = None,
        jobs: int | None = None,
        progress: Callable[[int], None] | None = None,
        planned: Callable[[int], None] | None = None,
    ) -> Index | None:
        """Open the index of these homes, refreshed or built if needed.

        Returns None if that takes reading more than `max_bytes`, or is not possible now. Without `max_bytes`, it takes
        as long as it takes. Nothing is written if nothing changed.

        Raises:
            IndexBusy: another process is refreshing it (only without `max_bytes`).
            Unreadable: it is damaged or not writable (only without `max_bytes`).
        """
        in_passing = max_bytes is not None
        refresh = partial(
            _run_refresh, path, homes, jobs=jobs, progress=progress, planned=planned, in_passing=in_passing
        )
        try:
            if path.exists():
                return _open_compared(path, homes, max_bytes, refresh)
            if max_bytes is None or _total_bytes(homes) <= max_bytes:
                refresh()
                return _open_compared(path, homes, max_bytes, refresh)
        except (IndexBusy, Unreadable):
            if max_bytes is None:
                raise
        return None

    @staticmethod
    def refresh(
        path: Path,
        homes: Sequence[Home],
        *,
        jobs: int | None = None,
        progress: Callable[[int], None] | None = None,
        planned: Callable[[int], None] | None = None,
    ) -> RefreshResult:
        """Index what changed since the last refresh, or everything if there is no index yet.

        Raises:
            IndexBusy: another process is refreshing it.
            Unreadable: it is damaged or not writable.
        """
        from threadline.index.refresh import refresh_index

        return refresh_index(path, homes, jobs=jobs, progress=progress, planned=planned)

    @staticmethod
    def rebuild(
        path: Path,
        homes: Sequence[Home],
        *,
        jobs: int | None = None,
        progress: Callable[[int], None] | None = None,
        planned: Callable[[int], None] | None = None,
    ) -> RefreshResult:
        """Build a new index, and then replace the old one with it, even if that is damaged.

        Raises:
            IndexBusy: another process is refreshing it.
            Unreadable: it is not writable.
        """
        from threadline.index.refresh import rebuild_index

        return rebuild_index(path, homes, jobs=jobs, progress=progress, planned=planned)

    @staticmethod
    def status(path: Path, homes: Sequence[Home]) -> IndexStatus:
        """How large the index is, and what changed since the last refresh. Nothing is written.

        Raises:
            Unreadable: it is damaged.
        """
        sizes = {transcript: status.st_size for home in homes for transcript, status in stat_transcripts(home)}
        total = sum(sizes.values())
        if not path.exists():
            return IndexStatus(str(path), exists=False, transcripts_bytes=total, changed=len(sizes))
        size = sum(_file_size(f"{path}{suffix}") for suffix in _FILE_SUFFIXES)
        with closing(open_read_only(path)) as connection:
            figures = _count_rows(path, connection)
            changed = detect_changes(IndexedTranscripts(connection), homes).changed
        changes = Counter(str(change.kind) for change in changed)
        return IndexStatus(
            path=str(path),
            exists=True,
            bytes=size,
            transcripts_bytes=total,
            share=round(size / total, 4) if total else None,
            **figures,
            changed=changes.total(),
            changes=dict(changes),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The read-only SQLite connection; `docs/index.md` documents the tables."""
        return self._connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Answer all questions inside the `with` block from one state, even if the index is refreshed meanwhile."""
        with read_transaction(self._connection):
            yield

    @property
    def generation(self) -> str:
        """Changes whenever the content of the index does."""
        return read_generation(self._connection)

    def cached(self, key: Hashable, compute: Callable[[], _Value], state: Hashable = ()) -> _Value:
        """The value computed for this key, computed again once the index or the given state has changed."""
        current = (self.generation, state)
        entry = self._cache.get(key)
        if entry is None or entry[0] != current:
            entry = self._cache[key] = (current, compute())
        return cast("_Value", entry[1])

    # --- homes, sessions and usage

    def homes(self, homes: Sequence[Home], problems: Sequence[Sequence[Problem]] | None = None) -> list[Found]:
        """What `look` without side files finds in each home. `problems` are those of each home, by default its own."""
        return indexed_homes(
            self._connection, homes, problems_by_home(self.problems, homes) if problems is None else problems
        )

    def is_kept(self, path: str) -> bool:
        """Whether a file is in a kept home: only the keep still has it."""
        return self._homes.is_kept(path)

    def home_paths(self) -> list[str]:
        """The paths of the homes that are indexed."""
        from threadline.index.queries import home_paths

        return home_paths(self._connection)

    def summaries(self) -> IndexedSummaries:
        """Session summaries and transcript statistics, for `list_sessions` and `build_overview`."""
        from threadline.index.summaries import IndexedSummaries

        return IndexedSummaries(self._connection)

    def ledger(self, rates: Rates | None = None) -> Ledger:
        """What was spent, at these rates or at those shipped with threadline."""
        from threadline.account import Ledger
        from threadline.index.ledger import IndexedCharges

        return Ledger.from_source(IndexedCharges(self._connection, self._homes, rates))

    def recent_usage(self, session: SessionRef, rates: Rates, *, since: datetime) -> RecentUsage:
        """A session, and what was spent since a time."""
        from threadline.index.charges import recent_usage

        return recent_usage(self._connection, self._homes, session, self.ledger(rates), since=since)

    def transcript_activity(
        self, transcripts: Collection[str], since: datetime, until: datetime
    ) -> dict[str, TranscriptActivity]:
        """What happened in transcripts in a period, by their paths."""
        from threadline.index.activity import transcript_activity

        return transcript_activity(self._connection, transcripts, since, until)

    def session_costs(self) -> dict[str | None, Decimal]:
        """The amount each session cost, for those whose prices are known."""
        return self.cached("session costs", self._session_costs)

    def _session_costs(self) -> dict[str | None, Decimal]:
        rows = self.ledger().by("session")
        return {row.keys["session"]: row.amount for row in rows if row.amount is not None}

    def session_labels(self) -> dict[str | None, SessionLabels]:
        """The nickname, platform and OS of each session that has any of them."""
        from threadline.index.queries import session_labels

        return self.cached("session labels", lambda: session_labels(self._connection))

    def has_request(self, prefix: str) -> bool:
        """Whether any entry belongs to a request whose id starts with a text."""
        from threadline.index.queries import has_request

        return has_request(self._connection, prefix)

    def paths_of_slug(self, slug: str) -> list[str]:
        """The main transcripts of sessions with this slug."""
        from threadline.index.queries import paths_of_slug

        return paths_of_slug(self._connection, slug)

    def messages_of_request(self, prefix: str) -> list[str]:
        """The messages of requests whose id starts with a text."""
        from threadline.index.queries import messages_of_request

        return messages_of_request(self._connection, prefix)

    def message_amounts(self, session: str) -> dict[str, Decimal]:
        """The amount of each message in a session's transcripts, for those whose price is known."""
        from threadline.index.queries import message_amounts

        return message_amounts(self._connection, session)

    def shared_tokens(self) -> list[tuple[str, str, int]]:
        """The paths of two transcripts, and the tokens of messages that both contain and the second one owns."""
        from threadline.index.ledger import shared_tokens

        return shared_tokens(self._connection)

    def transcripts_sharing(self, transcripts: Collection[str]) -> list[str]:
        """The paths of other transcripts that contain messages of these, or of those that do, and so on."""
        from threadline.index.queries import transcripts_sharing

        return transcripts_sharing(self._connection, transcripts)

    def sessions(self) -> tuple[SessionBrief, ...]:
        """All sessions, newest first."""
        from threadline.index.summaries import list_sessions

        return list_sessions(self._connection, self._homes)

    def shared_names(self) -> dict[str | None, list[tuple[str, str]]]:
        """The sessions that have the same id, by that id: the path and the name in URLs of each."""
        return self.cached("shared names", self._shared_names)

    def _shared_names(self) -> dict[str | None, list[tuple[str, str]]]:
        names: dict[str | None, list[tuple[str, str]]] = {}
        for brief in self.sessions():
            if brief.shares_name:
                names.setdefault(brief.id, []).append((brief.path, brief.name))
        return names

    def qualified_id(self, session: str, path: Path) -> str:
        """The id of a session; if others have the same id, with the folder of its transcript: `FOLDER/ID`."""
        return f"{path.parent.name}/{session}" if session in self.shared_names() else session

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """The titles of these sessions, without those that have none."""
        from threadline.index.queries import find_titles

        return find_titles(self._connection, sessions)

    def links(self) -> KnownLinks:
        """All summaries, and the sessions that contain the entries they name."""
        from threadline.index.queries import read_links

        return self.cached("links", lambda: read_links(self._connection))

    def session_facts(self, session: str) -> SessionFacts:
        """When a session was last written to, and its first prompt."""
        from threadline.index.queries import find_session_facts

        return find_session_facts(self._connection, session)

    def session_ids(self) -> set[str]:
        """The ids of all sessions that have a transcript."""
        from threadline.index.queries import session_ids

        return session_ids(self._connection)

    def transcript_owner(self, transcript: str) -> tuple[str | None, str | None] | None:
        """The session and the agent whose transcript this is; None if it is not indexed."""
        from threadline.index.queries import transcript_owner

        return transcript_owner(self._connection, transcript)

    def find_transcript_naming(self, session: str) -> Path | None:
        """The largest transcript whose rows name this session although its path does not."""
        from threadline.index.queries import find_transcript_naming

        return find_transcript_naming(self._connection, session)

    def total_size(self) -> int:
        """The size of all transcripts in bytes."""
        from threadline.index.queries import total_size

        return total_size(self._connection)

    # --- calls, files and problems

    def calls(
        self,
        selection: CallFilter,
        *,
        tools: Sequence[str] = (),
        exact_tools: bool = False,
        outcomes: Sequence[str] = (),
    ) -> CallList:
        """Calls, newest first, each once."""
        from threadline.index.listings import list_calls

        return list_calls(self._connection, selection, tools=tools, exact_tools=exact_tools, outcomes=outcomes)

    def files(self, selection: CallFilter, path: str | None = None) -> FileList:
        """Files by session, those touched last first. `path` is a file's path or the end of it."""
        from threadline.index.listings import list_files

        return list_files(self._connection, selection, path)

    def agents(self, selection: CallFilter, types: Sequence[str] = ()) -> AgentList:
        """Subagents, those that worked last first. Only of these types, if any are given."""
        from threadline.index.listings import list_agents

        return list_agents(self._connection, selection, types)

    def edits(self, selection: CallFilter, path: str) -> Iterator[EditKey]:
        """The edits of the files whose path is `path` or ends with it, newest first, each once. Ignores the limit."""
        from threadline.index.listings import list_edits

        return list_edits(self._connection, selection, path)

    def paths_named(self, name: str) -> list[str]:
        """The paths of touched files that have this name."""
        from threadline.index.listings import list_paths

        return list_paths(self._connection, name)

    def commands_between(self, is_near: Callable[[str], bool], since: float, until: float) -> Iterator[ListedCall]:
        """The shell commands and calls of MCP servers between two times, in any order.

        `is_near` says whether a project counts, by its path.
        """
        from threadline.index.listings import list_commands_between

        return list_commands_between(self._connection, is_near, since, until)

    def commands_naming(self, name: str) -> Iterator[ListedCall]:
        """The shell commands that contain a file name and may write, move or copy it, newest first, each once."""
        from threadline.index.listings import list_commands

        return list_commands(self._connection, name)

    def main_transcript(self, transcript: str) -> str | None:
        """The main transcript of the session that a transcript belongs to."""
        from threadline.index.listings import find_main_transcript

        return find_main_transcript(self._connection, transcript)

    def touches(self, path: str, limit: int) -> list[FileTouch]:
        """The last times a file was read or written, newest first."""
        from threadline.index.listings import list_touches

        return list_touches(self._connection, path, limit)

    def outcomes(self, selection: CallFilter) -> OutcomeFacts:
        """What the sessions of a filter produced, each commit, pull request and edit once. Ignores the time range."""
        from threadline.index.insight.queries import find_outcomes

        return find_outcomes(self._connection, selection)

    def unstored_outcomes(self, selection: CallFilter) -> list[UnstoredTranscript]:
        """The transcripts of a filter whose outcomes have to be extracted and stored first. Ignores the time range."""
        from threadline.index.insight.queries import list_unstored

        return list_unstored(self._connection, selection)

    @property
    def outcome_reader(self) -> OutcomeReader:
        """Extracts the outcomes of transcripts, also in forked processes."""
        from threadline.index.insight.outcomes import OutcomeReader

        return OutcomeReader(self.path)

    def store_outcomes(self, transcripts: Sequence[TranscriptOutcomes], generation: str) -> bool:
        """Store the outcomes of transcripts as they were in a generation of the index.

        Returns False if the index has changed since, or cannot be written now.
        """
        from threadline.index.insight.outcomes import store_outcomes

        return store_outcomes(self.path, generation, transcripts)

    def tool_calls(
        self,
        selection: CallFilter,
        by: str,
        zone: tzinfo,
        tools: Sequence[str] = (),
        *,
        unstored: Iterable[TranscriptOutcomes] = (),
    ) -> Iterator[ToolCall]:
        """Calls, each once, with the groups that they belong to by a key of `threadline.insight.TOOL_KEYS`.

        `unstored` are outcomes that could not be stored.
        """
        from threadline.index.insight.queries import read_tool_calls

        return read_tool_calls(self._connection, selection, by, zone, tools, unstored=unstored)

    def result_costs(self, sessions: Iterable[StoredSession]) -> dict[str, ResultCost]:
        """What the results of calls cost, in sessions whose costs are stored."""
        from threadline.index.insight.queries import read_result_costs

        return read_result_costs(self._connection, [session.number for session in sessions])

    def activity(self, since: datetime | None = None) -> Activity:
        """How many sessions, prompts, calls and agents there were, since a time or ever."""
        from threadline.index.queries import count_activity

        return count_activity(self._connection, since)

    def call_counts(self, sessions: Collection[str] | None = None) -> dict[str, int]:
        """The number of calls of each of these sessions, or of every session."""
        from threadline.index.queries import count_calls

        return count_calls(self._connection, sessions)

    def session_details(self, sessions: Collection[str]) -> dict[str, SessionDetails]:
        """What lists show about each of these sessions beside its summary, by id."""
        from threadline.index.summaries import read_session_details

        return read_session_details(self._connection, sessions)

    def started_agents(self, sessions: Collection[str]) -> dict[str, int]:
        """How many agents these sessions had, with or without a transcript, by the path of the session."""
        from threadline.index.summaries import started_agents

        return started_agents(self._connection, self._homes, sessions)

    def tool_counts(self) -> dict[str, int]:
        """The number of calls of each tool by its current name, largest first."""
        from threadline.index.queries import count_tools

        return count_tools(self._connection)

    def list_problems(self) -> ProblemList:
        """The problems found while indexing, by kind and place."""
        from threadline.index.queries import list_problems

        return list_problems(self._connection)

    def problem_counts(self) -> dict[str, int]:
        """The number of problems of each kind, largest first."""
        from threadline.index.queries import count_problems

        return count_problems(self._connection)

    # --- insight

    def select_insights(self, selection: ChargeFilter) -> InsightSelection:
        """The sessions with selected charges, and which of them are stored with the causes of their costs."""
        from threadline.index.insight.stored_insights import select_insights

        with self.snapshot():
            return select_insights(self._connection, self._homes, selection)

    def stored_causes(self, sessions: Iterable[StoredSession]) -> StoredCauses:
        """What the costs of stored sessions were caused by."""
        from threadline.index.insight.stored_insights import StoredCauses

        return StoredCauses(self._connection, sessions)

    def stored_waste(self, sessions: Iterable[StoredSession], limits: WasteLimits) -> list[Waste]:
        """Avoidable costs of stored sessions; what is below the limits may be missing."""
        from threadline.index.insight.stored_insights import read_waste

        with self.snapshot():
            return list(read_waste(self._connection, sessions, limits))

    def store_insights(self, insights: Sequence[NewInsight], generation: str) -> bool:
        """Store the insights into sessions as they were in a generation of the index.

        Returns False if the index has changed since, or cannot be written now.
        """
        from threadline.index.insight.stored_insights import store_insights

        return store_insights(self.path, self._homes, generation, insights)

    @property
    def owned_charges(self) -> OwnedCharges:
        """Reads the charges that transcripts own, also in forked processes."""
        from threadline.index.insight.stored_insights import OwnedCharges

        return OwnedCharges(self.path, self._homes)

    # --- search and SQL

    def field_values(self, field: str) -> list[str]:
        """All values of a field of the query language, most frequent or newest first. Agents are listed by type."""
        from threadline.index.queries import field_values

        return field_values(self._connection, field)

    def agent_ids(self) -> set[str]:
        """The ids of all agents."""
        from threadline.index.queries import agent_ids

        return agent_ids(self._connection)

    def project_names(self) -> dict[int, str]:
        """The path of each project by its number; the folder's name if the path is not known."""
        from threadline.index.queries import project_names

        return project_names(self._connection)

    def tool_names(self) -> dict[int, str]:
        """The name of each tool by its number."""
        from threadline.index.queries import tool_names

        return tool_names(self._connection)

    def time_range(self) -> tuple[datetime | None, datetime | None]:
        """The first and the last time in any session."""
        from threadline.index.queries import time_range

        return time_range(self._connection)

    @property
    def entries(self) -> EntryTable:
        """The rows of single entries, for search."""
        from threadline.index.queries import EntryTable

        return EntryTable(self._connection)

    @property
    def full_text(self) -> FullText:
        """The full-text table, for search."""
        from threadline.index.queries import FullText

        return FullText(self._connection)

    @property
    def vocabulary(self) -> Vocabulary:
        """Every word in the index."""
        from threadline.index.vocabulary import Vocabulary

        return self.cached("vocabulary", lambda: Vocabulary(self._connection, self.path))

    @contextmanager
    def sql(self, *, heap: int | None = None) -> Iterator[Callable[[str, float], QueryResult]]:
        """A function that runs a user's SELECT with a time limit.

        All statements inside the `with` block see the same state of the index. They run on a connection of their own,
        so that its limits do not apply elsewhere. `heap` limits the bytes SQLite may allocate in this process from now
        on.

        Raises:
            Unreadable: the index is damaged.
        """
        from threadline.index.sql import QueryResult, open_for_sql

        with open_for_sql(self.path, heap) as connection:
            yield partial(QueryResult, connection)

    def sql_in_process(self, question: str, seconds: float, max_bytes: int) -> IsolatedResult:
        """The first rows of a user's SELECT, which runs in another process: see `run_in_process`."""
        from threadline.index.sql import run_in_process

        return run_in_process(self.path, question, seconds, max_bytes)


def _total_bytes(homes: Sequence[Home]) -> int:
    return sum(status.st_size for home in homes for _path, status in stat_transcripts(home))


def _open_compared(
    path: Path, homes: Sequence[Home], max_bytes: int | None, refresh: Callable[..., None]
) -> Index | None:
    connection = open_read_only(path)
    try:
        with read_transaction(connection):
            changes = detect_changes(IndexedTranscripts(connection), homes)
            if _is_current(connection, changes, in_passing=max_bytes is not None):
                return Index(connection, path, homes, changes.problems)
            pending = PendingChanges(changes, read_generation(connection))
    except sqlite3.Error as error:
        connection.close()
        raise damaged_error(path, error) from None
    except BaseException:
        connection.close()
        raise
    connection.close()
    if max_bytes is not None and _pending_bytes(changes) > max_bytes:
        return None
    refresh(pending)
    return Index(open_read_only(path), path, homes, changes.problems)


def _run_refresh(
    path: Path,
    homes: Sequence[Home],
    pending: PendingChanges | None = None,
    *,
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
    in_passing: bool,
) -> None:
    # The modules that read transcripts take longer to load than a fresh index takes to answer.
    from threadline.index.refresh import refresh_index

    refresh_index(path, homes, jobs=jobs, progress=progress, planned=planned, pending=pending, in_passing=in_passing)


def _is_current(connection: sqlite3.Connection, changes: TranscriptChanges, *, in_passing: bool) -> bool:
    """Whether nothing is left to do, neither for these changes nor after a refresh that was killed."""
    if changes.changed or changes.touched:
        return False
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        return False
    meta = read_meta(connection)
    if "unpurged" in meta and _is_purge_due(connection, meta, in_passing=in_passing):
        return False
    is_resolved = meta.get("leaves_to") == meta.get("next_entry", "")
    return "unsettled" not in meta and is_resolved and meta.get("prices") == shipped_digest()


def _is_purge_due(connection: sqlite3.Connection, meta: dict[str, str], *, in_passing: bool) -> bool:
    from threadline.index.purge import is_purge_due  # after a deletion only

    return is_purge_due(connection, meta, in_passing=in_passing)


def _pending_bytes(changes: TranscriptChanges) -> int:
    return sum(change.stat.size - change.read_from for change in changes.changed if change.stat is not None)


class PendingChanges(Struct, frozen=True):
    """What changed in the homes since an index of that generation was written."""

    changes: TranscriptChanges
    generation: str


class IndexedTranscripts:
    """Every transcript as it was when it was last read. Use it within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def statuses(self) -> dict[str, StatKey]:
        """The file status of each transcript by path."""
        rows = self._connection.execute("SELECT path, mtime_ns, size, inode, device, ctime_ns, racy FROM transcripts")
        return {decode_path(row[0]): row[1:] for row in rows}

    def fingerprint(self, path: str) -> TranscriptFingerprint:
        """The fingerprint of a transcript."""
        select = f"SELECT {KNOWN_COLUMNS} FROM transcripts WHERE path = ?"  # noqa: S608 - our own names
        stored, *columns = self._connection.execute(select, (encode_path(path),)).fetchone()
        return TranscriptFingerprint(decode_path(stored), *columns)


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """What the index says about itself."""
    return dict(connection.execute("SELECT name, value FROM meta").fetchall())


_FILE_SUFFIXES = ("", "-wal")
_COUNT_ORPHANS = "SELECT COUNT(*) FROM text_docsize WHERE id NOT IN (SELECT entry_id FROM entries)"
_COUNTED_TABLES = ("transcripts", "entries", "charges", "problems")


class IndexStatus(Struct, frozen=True):
    """The size of an index, and how far it is behind the transcripts.

    `share` is its size relative to the transcripts. `orphans` counts deleted entries whose words are still in the
    full-text table. `changed` counts the transcripts that changed since the last refresh, `changes` the same by kind.
    """

    path: str
    exists: bool
    bytes: int = 0
    transcripts_bytes: int = 0
    share: float | None = None
    schema: int | None = None
    transcripts: int = 0
    entries: int = 0
    charges: int = 0
    problems: int = 0
    orphans: int = 0
    changed: int = 0
    changes: dict[str, int] = {}


def _file_size(path: str) -> int:
    try:
        return os.path.getsize(path)  # noqa: PTH202 - it may disappear at any moment
    except OSError:
        return 0


def _count_rows(index: Path, connection: sqlite3.Connection) -> dict[str, int]:
    try:
        meta = read_meta(connection)
        counts = {
            table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in _COUNTED_TABLES
        }
        orphans = connection.execute(_COUNT_ORPHANS).fetchone()[0] if "unpurged" in meta else 0
        return {"schema": int(meta["schema"]), **counts, "orphans": orphans}
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise damaged_error(index, error) from None


_SELECT_TRANSCRIPTS = """
SELECT h.path, p.folder, t.path, t.kind, t.session, t.agent, t.size, t.mtime_ns
FROM transcripts t JOIN projects p ON p.project_id = t.folder_id JOIN homes h ON h.home_id = t.home_id
"""
_KIND_BY_NAME = {str(kind): kind for kind in TranscriptKind}
_KINDS_WITH_RUN = frozenset({TranscriptKind.WORKFLOW_AGENT, TranscriptKind.JOURNAL})
_META_SUFFIX = ".meta.json"


def indexed_homes(
    connection: sqlite3.Connection, homes: Sequence[Home], problems: Sequence[Sequence[Problem]] | None = None
) -> list[Found]:
    """What `look` without side files finds in each home, according to a fresh index.

    An agent's `meta` is the path where its side file would be; the file may not exist. `problems` are those of each
    home.
    """
    transcripts: dict[str, list[Transcript]] = {str(home.path): [] for home in homes}
    by_path = {str(home.path): home for home in homes}
    rows = connection.execute(_SELECT_TRANSCRIPTS).fetchall()
    for transcript in _transcripts(rows, by_path):
        transcripts[str(transcript.home.path)].append(transcript)
    contents = [
        look_with_known_transcripts(
            home, sorted(transcripts[str(home.path)], key=lambda transcript: str(transcript.path)), own_problems
        )
        for home, own_problems in zip(homes, problems or [()] * len(homes), strict=True)
    ]
    return list(drop_shared_transcripts(contents))


def problems_by_home(problems: Sequence[Problem], homes: Sequence[Home]) -> list[list[Problem]]:
    """The problems of each home."""
    return [
        [problem for problem in problems if str(problem.place.transcript).startswith(f"{home.path}{os.sep}")]
        for home in homes
    ]


def _transcripts(rows: list[tuple[Any, ...]], homes: dict[str, Home]) -> Iterator[Transcript]:
    directories: dict[str, Path] = {}
    for top, folder, path, kind, session, agent, size, mtime_ns in rows:
        home = homes.get(decode_path(top))
        if home is None:
            continue
        text = decode_path(path)
        directory, _, name = text.rpartition(os.sep)
        if directory not in directories:
            directories[directory] = Path(directory + os.sep)
        transcript_kind = _KIND_BY_NAME[str(kind)]
        yield Transcript(
            directories[directory] / name,
            home,
            decode_path(folder),
            transcript_kind,
            size,
            mtime_ns,
            SessionId(str(session)) if session is not None else None,
            AgentId(str(agent)) if agent is not None else None,
            _workflow_run(text, home) if transcript_kind in _KINDS_WITH_RUN else None,
            directories[directory] / f"{name[: -len(TRANSCRIPT_SUFFIX)]}{_META_SUFFIX}" if agent is not None else None,
        )


def _workflow_run(path: str, home: Home) -> str | None:
    parts = Path(path).parts
    below = parts[len(home.path.parts) + 2 :]  # projects/<folder>
    return parse_transcript_name(below).run if below else None
