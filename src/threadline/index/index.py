"""The index of an archive, open for reading: the only owner of the SQLite connection.

Every question is a method here; the SQL is in the modules of this package. A method imports its module when it is
called, so that a command loads only what it asks for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from threadline.index.store import open_read_only, read_transaction
from threadline.model.homes import Homes

if TYPE_CHECKING:
    from threadline.account import Ledger, Rates
    from threadline.index.freshness import IndexStatus
    from threadline.index.listings import CallFilter, FileTouch
    from threadline.index.queries import Activity, EntryTable, FullText, ListedProblem, SessionFacts
    from threadline.index.refresh import RefreshResult
    from threadline.index.sql import QueryResult
    from threadline.index.summaries import IndexedSummaries, SessionBrief
    from threadline.index.vocabulary import Vocabulary
    from threadline.model.calls import ListedCall, ListedFile
    from threadline.model.homes import Found, Home
    from threadline.model.places import Problem
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

    @classmethod
    def open_fresh(
        cls,
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
        from threadline.index.freshness import open_fresh

        return open_fresh(path, homes, max_bytes=max_bytes, jobs=jobs, progress=progress, planned=planned)

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
        from threadline.index.freshness import index_status

        return index_status(path, homes)

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
        """The read-only SQLite connection, for a look around; `docs/index.md` documents the tables."""
        return self._connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Answer all questions inside the `with` block from one state, even if the index is refreshed meanwhile."""
        with read_transaction(self._connection):
            yield

    @property
    def generation(self) -> str:
        """Changes whenever the content of the index does."""
        from threadline.index.freshness import read_generation

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
        from threadline.index.freshness import indexed_homes, problems_by_home

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

        return recent_usage(self._connection, self._homes, session, rates, since=since)

    def session_costs(self) -> dict[str | None, Decimal]:
        """The amount each session cost, for those whose prices are known."""
        return self.cached("session costs", self._session_costs)

    def _session_costs(self) -> dict[str | None, Decimal]:
        rows = self.ledger().by("session")
        return {row.keys["session"]: row.amount for row in rows if row.amount is not None}

    def message_amounts(self, session: str) -> dict[str, Decimal]:
        """The amount of each message in a session's transcripts, for those whose price is known."""
        from threadline.index.queries import message_amounts

        return message_amounts(self._connection, session)

    def sessions(self) -> tuple[SessionBrief, ...]:
        """All sessions, newest first."""
        from threadline.index.summaries import list_sessions

        return list_sessions(self._connection, self._homes)

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """The titles of these sessions, without those that have none."""
        from threadline.index.queries import find_titles

        return find_titles(self._connection, sessions)

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
        self, selection: CallFilter, *, tools: Sequence[str] = (), outcomes: Sequence[str] = ()
    ) -> list[ListedCall]:
        """Calls, newest first, each once."""
        from threadline.index.listings import list_calls

        return list_calls(self._connection, selection, tools=tools, outcomes=outcomes)

    def files(self, selection: CallFilter, path: str | None = None) -> list[ListedFile]:
        """Files by session, those touched last first. `path` is a file's path or the end of it."""
        from threadline.index.listings import list_files

        return list_files(self._connection, selection, path)

    def touches(self, path: str, limit: int) -> list[FileTouch]:
        """The last times a file was read or written, newest first."""
        from threadline.index.listings import list_touches

        return list_touches(self._connection, path, limit)

    def activity(self, since: datetime | None = None) -> Activity:
        """How many sessions, prompts, calls and agents there were, since a time or ever."""
        from threadline.index.queries import count_activity

        return count_activity(self._connection, since)

    def call_counts(self, sessions: Collection[str] | None = None) -> dict[str, int]:
        """The number of calls of each of these sessions, or of every session."""
        from threadline.index.queries import count_calls

        return count_calls(self._connection, sessions)

    def tool_counts(self) -> dict[str, int]:
        """The number of calls of each tool, largest first."""
        from threadline.index.queries import count_tools

        return count_tools(self._connection)

    def list_problems(self) -> list[ListedProblem]:
        """The problems found while indexing, by kind and place."""
        from threadline.index.queries import list_problems

        return list_problems(self._connection)

    def problem_counts(self) -> dict[str, int]:
        """The number of problems of each kind, largest first."""
        from threadline.index.queries import count_problems

        return count_problems(self._connection)

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

        return self.cached("vocabulary", lambda: Vocabulary(self._connection))

    @contextmanager
    def sql(self, *, heap: int | None = None) -> Iterator[Callable[[str, float], QueryResult]]:
        """A function that runs a user's SELECT for at most so many seconds.

        All statements inside the `with` block see the same state of the index. They run on a connection of their own,
        so that its limits do not apply elsewhere. `heap` limits the bytes SQLite may allocate in this process from now
        on.

        Raises:
            Unreadable: the index is damaged.
        """
        from threadline.index.sql import QueryResult, open_for_sql

        with open_for_sql(self.path, heap) as connection:
            yield partial(QueryResult, connection)
