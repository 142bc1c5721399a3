"""The archive: every question about some homes, answered from the index or from the transcripts.

Every answer is the one that reading all transcripts gives. If the index is up to date, or can be updated cheaply, it
answers instead. Questions that only an index can answer in reasonable time build it if it is missing.

`open` opens the archive of some or all homes, including sessions that exist only in the keep.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, tzinfo
from functools import wraps
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import BadQuery, Error, IndexBusy, NotFound, Unreadable, did_you_mean
from threadline.files import cache_folder
from threadline.find import PROJECTS
from threadline.find import homes as find_homes
from threadline.model.homes import Home, Homes, TranscriptKind
from threadline.model.places import ProblemKind, match_ids
from threadline.model.text import join_some
from threadline.model.times import Moment, TimeRange, Zone, resolve_zone

if TYPE_CHECKING:
    import sqlite3

    from threadline.account import Ledger, Rates
    from threadline.archive.entries import EntrySource, EntryStream
    from threadline.archive.insight import SessionFiles
    from threadline.archive.session_sums import SpendingBySession
    from threadline.index import (
        AgentList,
        CallFilter,
        CallList,
        Index,
        IndexStatus,
        IsolatedResult,
        ProblemList,
        QueryResult,
        RefreshResult,
        SessionFacts,
        StoredSession,
        TranscriptOutcomes,
    )
    from threadline.insight import CauseList, CauseSource, OutcomeReport, ResultCost, SessionInsight, WasteContext
    from threadline.load import Session
    from threadline.model.budgets import Budget, BudgetUse
    from threadline.model.calls import FileList, ListedCall, ToolGroups
    from threadline.model.entries import Entry
    from threadline.model.hits import Hit, Hits
    from threadline.model.homes import Found, Transcript
    from threadline.model.insight.attribution import Attribution
    from threadline.model.insight.blame import Blame
    from threadline.model.insight.digest import Digest
    from threadline.model.insight.outcomes import OutcomeGroups, OutcomeList
    from threadline.model.insight.waste import WasteLimits, WasteList
    from threadline.model.ledger import Sum
    from threadline.model.places import SessionId
    from threadline.model.state import FileLog
    from threadline.model.titles import SummaryLinks
    from threadline.reports import (
        Examination,
        FailureFilter,
        FailureList,
        PromptFilter,
        PromptHistory,
        PromptList,
        RecentUsage,
        ScanResult,
        SecretFilter,
        SessionRef,
        UnlistedCount,
    )
    from threadline.search import Sort
    from threadline.summary import AgentHead, Overview, SessionFilter, SessionList, SessionSummary
    from threadline.watch import Follower

P = ParamSpec("P")
Result = TypeVar("Result")
Filter = TypeVar("Filter", bound=Struct)
Names = str | Sequence[str]
"""One name, or several."""

AUTO_REFRESH_BYTES = 64 * 1024 * 1024
"""How many bytes may be read to update the index without being asked to: about a second's work."""

ProgressDisplay = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of long work: called with a label and the total bytes, it gives a function that adds bytes."""

_WITHOUT_KEEP = "without the keep"
_TABLE_START = r"""(?:\bfrom|\bjoin|,)\s*(?:main\.)?["`\[]?"""
_INSIGHT_TABLES = rf"{_TABLE_START}(?:causes|waste|cause_rows|cause_sums|waste_rows|insights)\b"
_OUTCOME_TABLES = (
    rf"{_TABLE_START}(?:commits|pull_requests|pushes|test_runs|edits|outcome_rows|line_rows|program_rows|programs)\b"
)


def named_keywords(method: Callable[P, Result]) -> Callable[P, Result]:
    """Make a method name its keywords in the TypeError for an unknown one."""
    keywords = tuple(method.__kwdefaults__ or ())

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Result:
        for name in kwargs:
            if name not in keywords and name not in method.__code__.co_varnames[: method.__code__.co_argcount]:
                match = did_you_mean(name, keywords)
                suggestion = f" Did you mean {match!r}?" if match is not None else ""
                raise TypeError(
                    f"{method.__name__}() has no keyword {name!r}.{suggestion} Keywords: {', '.join(keywords)}."
                )
        return method(*args, **kwargs)

    return checked


def check_texts(**values: str | None) -> None:
    """Check that each value is text or None.

    Raises:
        BadQuery: one is neither.
    """
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise BadQuery(f"{name}={value!r} is not text. Use a string.")


def check_limit(limit: Any) -> int | None:
    """Return a limit, which is None for all rows.

    Raises:
        BadQuery: it is not a whole number, or negative.
    """
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return limit
    raise BadQuery(f"limit={limit!r} is not a number of rows. Use a whole number, or None for all.")


def parse_names(name: str, value: Names, choices: Collection[str] = ()) -> tuple[str, ...]:
    """Return one or more names as a tuple.

    Raises:
        BadQuery: one is not text, or not among the choices.
    """
    names: tuple[Any, ...] = (value,) if isinstance(value, str) else tuple(value)
    for part in names:
        if not isinstance(part, str):
            raise BadQuery(f"{name}={value!r} is not a list of names. Use one string, or several.")
        if choices and part not in choices:
            raise BadQuery(f"Unknown value {part!r} for {name}. Choose from {join_some(choices, len(choices))}.")
    return names


class Archive:
    """Everything that can be read in some homes. Close it when done, or use it in a `with` statement.

    The index is updated first if that takes reading at most `max_refresh_bytes`; if it takes more, the transcripts are
    read instead. `search`, `calls`, `files` and `sql` always build it. With `stale_ok`, an index that cannot be updated
    now is used as it is, for example while another process is refreshing it.

    Sessions that exist only in the keep are read from homes that `read_keep` adds; `keep_problems` says what could not
    be read. With `without_keep` they are left out on purpose, and the index is a different one.

    The keywords of its questions are filters, and all that are given have to match:

    - `session` is the start of a session's id, or `last` for the newest session.
    - `project` is a part of the project's path, ignoring case.
    - `since` and `until` are datetimes, days, or text as on the command line: `2026-11-03`, `7d`, `yesterday`. Both are
      inclusive. Days, and times without an offset, are in `zone`: the user's own, unless it is set.
    - `limit` is the largest number of rows. Without it, all are returned.

    An unknown keyword is a TypeError that names the others, and a value that makes no sense is a BadQuery.
    """

    def __init__(
        self,
        homes: Sequence[Home],
        *,
        index: bool | Path = True,
        jobs: int | None = None,
        progress: ProgressDisplay | None = None,
        max_refresh_bytes: int = AUTO_REFRESH_BYTES,
        without_keep: bool = False,
        stale_ok: bool = False,
    ) -> None:
        self.homes = Homes(homes)
        self.keep_problems: tuple[str, ...] = ()
        self.missing_homes: tuple[str, ...] = ()
        """Homes that no longer exist, and are read from the keep."""
        self.keep: Path | None = None
        self.without_keep = without_keep
        self._keep_only_these = False
        self._awaits_keep = False
        self._missing: tuple[str, ...] = ()
        self._index_option = index
        self._jobs = jobs
        self._progress = progress or _no_progress
        self._max_refresh_bytes = max_refresh_bytes
        self._stale_ok = stale_ok
        self.zone: tzinfo = resolve_zone()
        """The time zone of days, and of times without an offset."""
        self._open_index: Index | None = None
        self._is_index_compared = False
        self._found: list[Found] | None = None
        self._spending: SpendingBySession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        homes = ", ".join(home.name for home in self.homes) or "no homes"
        return f"Archive({homes})"

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything except the open index and the progress display."""
        return {
            **self.__dict__,
            "_open_index": None,
            "_is_index_compared": False,
            "_found": None,
            "_spending": None,
            "_progress": _no_progress,
        }

    def close(self) -> None:
        """Close the index. The next question compares it with the transcripts again."""
        if self._open_index is not None:
            self._open_index.close()
        self._open_index, self._is_index_compared, self._found, self._spending = None, False, None, None

    # --- the index

    @property
    def index(self) -> Path:
        """The path of the index of these homes, whether it exists or not."""
        from threadline.index import index_path

        if isinstance(self._index_option, Path):
            return self._index_option
        # Kept homes do not count: a deleted session is one that moved to the keep, and its entries stay in the index.
        live = [home.path for home in self._live_homes()]
        return index_path([*live, *self._missing, *([_WITHOUT_KEEP] if self.without_keep else [])])

    def refresh(self) -> RefreshResult:
        """Update the index, or build it.

        Raises:
            IndexBusy: another process is refreshing it.
            Unreadable: it is damaged or not writable.
        """
        from threadline.index import Index

        self.close()
        with ProgressBar(self._progress, "Indexing") as bar:
            return Index.refresh(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def rebuild(self) -> RefreshResult:
        """Build a new index, and then replace the old one with it, even if that is damaged.

        Raises:
            IndexBusy: another process is refreshing it.
            Unreadable: it is not writable.
        """
        from threadline.index import Index

        self.close()
        with ProgressBar(self._progress, "Indexing") as bar:
            return Index.rebuild(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def status(self) -> IndexStatus:
        """How large the index is, and what changed since the last refresh. Nothing is written.

        Raises:
            Unreadable: it is damaged.
        """
        from threadline.index import Index

        return Index.status(self.index, self.homes)

    def use_stale_index(self) -> None:
        """From now on, use the index as it is, without comparing it with the transcripts.

        Raises:
            Unreadable: there is no index, or it is damaged.
        """
        from threadline.index import Index

        self.close()
        self._set_index(Index.open(self.index, self.homes))

    def open_index(self) -> Index:
        """The index, updated or built if needed, however long that takes. It is closed with the archive.

        Raises:
            IndexBusy: another process is refreshing it.
            Unreadable: it is damaged or not writable.
        """
        if self._open_index is None:
            index = self._refreshed_index(None)
            if index is None:  # without a limit, there is an index or an error
                raise NotFound(f"There is no index at {str(self.index)!r}; run `threadline index refresh`.")
            self._set_index(index)
            return index
        return self._open_index

    @property
    def connection(self) -> sqlite3.Connection:
        """A read-only SQLite connection to the index, updated or built if needed; `docs/index.md` has the tables.

        Raises:
            IndexBusy: another process is refreshing the index.
            Unreadable: it is damaged or not writable.
        """
        return self.open_index().connection

    @property
    def is_indexed(self) -> bool:
        """Whether there is an index that answers without much reading."""
        return self._available_index() is not None

    def _source(self) -> Index | None:
        """The index, if it gives the same answers as reading the transcripts; None if those have to be read.

        It does not if a path could not be read when the two were compared: the index remembers what was there, and
        reading reports a problem.
        """
        index = self._available_index()
        return index if index is not None and not index.problems else None

    def _built_index(self) -> Index | None:
        """The index, built if it is missing; None if it may not be used, or gives other answers than reading."""
        if self._index_option is False or not self.homes:
            return None
        try:
            self.open_index()
        except (IndexBusy, Unreadable):
            return None
        return self._source()

    def _available_index(self) -> Index | None:
        """The index, if it is up to date or can be updated cheaply. Compared once, until the archive is closed."""
        if self._open_index is None and not self._is_index_compared:
            self._is_index_compared = True
            if self._index_option is not False and self.homes:
                self._open_index = self._refreshed_index(self._max_refresh_bytes) or self._stale_index()
        return self._open_index

    def _refreshed_index(self, max_bytes: int | None) -> Index | None:
        from threadline.index import Index

        with ProgressBar(self._progress, "Indexing") as bar:
            return Index.open_fresh(
                self.index,
                self.homes,
                max_bytes=max_bytes,
                jobs=self._jobs,
                planned=bar.begin,
                progress=bar.advance,
            )

    def _stale_index(self) -> Index | None:
        if not self._stale_ok or not self.index.exists():
            return None
        from threadline.index import Index

        try:
            return Index.open(self.index, self.homes)
        except Error:
            return None

    def _set_index(self, index: Index) -> None:
        self._open_index, self._is_index_compared, self._found, self._spending = index, True, None, None

    # --- the keep

    def read_keep(self, folder: Path, *, only: bool = False, lost: Sequence[str] = ()) -> None:
        """Also read the sessions that exist only in this keep.

        With `only`, just those of these homes, and of the `lost` homes, which no longer exist.
        """
        from threadline.keep import kept_homes

        live = self._live_homes()
        with ProgressBar(self._progress, "Unpacking") as bar:
            kept = kept_homes(
                folder, live, cache_folder(), lost=lost, only=only, planned=bar.begin, progress=bar.advance
            )
        self.keep, self._keep_only_these, self._missing = folder, only, tuple(lost)
        homes = Homes((*live, *kept.homes))
        if homes != self.homes:
            self.close()  # the index was compared with other homes
            self.homes = homes
        self.keep_problems, self.missing_homes = kept.problems, kept.gone

    def enable_keep_later(self, *, only: bool) -> None:
        """Read the keep once there is one. If one was used before and is missing, `keep_problems` says so."""
        from threadline.keep import missing_keep_folder

        self._awaits_keep, self._keep_only_these = True, only
        folder = missing_keep_folder()
        if folder is not None:
            missing = f"The keep in {folder!r} is missing, so sessions that only it has are left out."
            self.keep_problems = (f"{missing} Is its disk mounted, or was it moved (THREADLINE_KEEP)?",)

    def has_kept(self, home: str) -> bool:
        """Whether a home that no longer exists is read from the keep."""
        return any(path == home or path.endswith(f":{home}") for path in self.missing_homes)

    @property
    def kept_sessions(self) -> frozenset[str]:
        """The ids of sessions that exist only in the keep."""
        if not any(home.is_kept for home in self.homes):
            return frozenset()
        return frozenset(
            transcript.session
            for found in self.found
            if found.home.is_kept
            for transcript in found.transcripts
            if transcript.kind is TranscriptKind.MAIN and transcript.session is not None
        )

    def reload_kept_homes(self) -> Homes:
        """The homes as they are now: sessions deleted meanwhile are in a kept home."""
        folder = self.keep
        if folder is None and self._awaits_keep:
            from threadline.keep import existing_keep_folder

            existing = existing_keep_folder()
            folder = Path(existing) if existing is not None else None
        if folder is not None:
            self.read_keep(folder, only=self._keep_only_these, lost=self._missing)
        return self.homes

    def _live_homes(self) -> list[Home]:
        return [home for home in self.homes if not home.is_kept]

    # --- files

    @property
    def found(self) -> list[Found]:
        """The projects and transcripts of each home, those that homes share once.

        Side files are included only if they name a project's path.
        """
        if self._found is None:
            index = self._source()
            if index is not None:
                self._found = index.homes(self.homes)
            else:
                from threadline.find import drop_shared_transcripts, look

                self._found = list(drop_shared_transcripts(look(home, side_files=False) for home in self.homes))
        return self._found

    def look(self) -> list[Found]:
        """The projects, transcripts and side files of each home."""
        from threadline.find import look

        return [look(home) for home in self.homes]

    def at(self, path: str | Path, *, session: bool = False) -> Found:
        """Everything at a path, in these homes or elsewhere: a home, a folder with transcripts, or a transcript.

        With `session`, the path is a transcript's, and everything that belongs to its session is included.

        Raises:
            NotFound: there is nothing at that path.
            Unreadable: it cannot be read.
            BadQuery: it is a file of a home, but not a transcript.
        """
        from threadline.find import look_at_path

        found = look_at_path(path)
        if not session:
            return found
        from threadline.load import agent_transcripts

        agents = agent_transcripts(found.transcripts[0].path, self.homes)
        return replace(found, transcripts=(*found.transcripts, *agents))

    def path(self, name: str) -> Path:
        """The path of a session's or agent's transcript, by a prefix of its id; `last` is the newest session's.

        Raises:
            NotFound: there is none.
            Ambiguous: there are several; the message lists them.
        """
        from threadline.summary import SessionFilter

        if name != "last":
            return self.transcript(name).path
        newest = self.sessions(SessionFilter(limit=1)).sessions
        if not newest:
            raise NotFound("There is no session yet. Choose a home with --home, or use the path of a transcript.")
        return newest[0].path

    def transcript(self, name: str) -> Transcript:
        """A session's or agent's transcript, by a prefix of its id, or by a session's slug.

        If there is none, the id may also be the one that the rows of exactly one session have.

        Raises:
            NotFound: there is none.
            Ambiguous: there are several; the message lists them.
        """
        from threadline.find import find_by_id, find_by_slug

        try:
            return find_by_id(name, self.found)
        except NotFound:
            matches = self._transcripts_naming(name)
            if len(matches) == 1:
                return matches[0]
            index = self._source()
            paths = index.paths_of_slug(name) if index is not None else None
            transcript = find_by_slug(name, self.found, paths)
            if transcript is None:
                raise
            return transcript

    def _transcripts_naming(self, session: str) -> list[Transcript]:
        """The main transcripts whose rows name this session, under another name."""
        from threadline.parse import named_session

        mains = (transcript for home in self.found for transcript in home.transcripts if transcript.is_main)
        return [main for main in mains if (named_session(main.path) or "").lower() == session.lower()]

    def messages_of_request(self, request: str) -> list[str]:
        """The ids of the messages that answer a request, by the start of the request's id (`req_…`).

        A message without an id has the request's. Without an index, all transcripts are searched.
        """
        from threadline.reports import find_messages_of_request

        index = self._source()
        if index is not None:
            return index.messages_of_request(request)
        return find_messages_of_request(self.found, request)

    @staticmethod
    def directory_of(transcript: Path, directories: Sequence[str]) -> str | None:
        """The project of a session that worked in these directories: the one its folder is named after, or the first.

        None if there are no directories.
        """
        from threadline.find import folder_matches

        folder = transcript.parent.name
        matches = (directory for directory in directories if folder_matches(folder, directory))
        return next(matches, directories[0] if directories else None)

    def running(self) -> Collection[SessionId]:
        """The sessions that a live process is working on."""
        from threadline.find import list_live_session_files
        from threadline.summary import find_running_sessions

        files = [file for home in self.homes for file in list_live_session_files(home)]
        return find_running_sessions(files) if files else ()

    # --- sessions and reports

    def overview(self) -> Overview:
        """A summary of all homes."""
        from threadline.find import count_side_files
        from threadline.summary import build_overview

        index = self._source()
        if index is not None:
            counts = [count_side_files(home) for home in self.homes]
            found = index.homes(self.homes, [count.problems for count in counts])
            return build_overview(found, source=index.summaries(), side_files=counts)
        found = self.look()
        with self._progress("Reading", total_size(found)) as advance:
            return build_overview(found, jobs=self._jobs, progress=advance)

    @named_keywords
    def sessions(
        self,
        selection: SessionFilter | None = None,
        *,
        project: str | None = None,
        title: str | None = None,
        agent_type: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        machine: str | None = None,
        limit: int | None = None,
    ) -> SessionList:
        """The sessions that match a filter, newest first.

        `title` is a part of the title, `agent_type` the type of an agent that a session started, and `machine` the
        machine that it comes from. A `selection` may be given as well; keywords replace its fields.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.summary import SessionFilter, list_sessions

        check_texts(title=title, agent_type=agent_type, machine=machine)
        own = {"title": title, "agent_type": agent_type, "machine": machine}
        sessions = self._narrow(selection or SessionFilter(), project, since, until, limit, **own)
        index = self._source()
        if index is not None:
            return list_sessions(self.found, sessions, source=index.summaries())
        with self._progress("Reading", total_size(self.found)) as advance:
            return list_sessions(self.found, sessions, jobs=self._jobs, progress=advance)

    def _narrow(
        self,
        selection: Filter,
        project: str | None,
        since: Moment | None,
        until: Moment | None,
        limit: int | None,
        **keywords: Any,
    ) -> Filter:
        """A filter with the fields that keywords set. Those that are None change nothing."""
        check_texts(project=project)
        time = TimeRange.parse(since, until, tz=self.zone)
        fields = {"project": project, "since": time.since, "until": time.until, "limit": check_limit(limit), **keywords}
        return replace(selection, **{name: value for name, value in fields.items() if value is not None})

    def session_costs(self, sessions: Iterable[SessionSummary]) -> dict[Path, Sum]:
        """What sessions and their agents spent, by the path of the main transcript. Empty without an index.

        Without one, every transcript has to be read: `spending` does that.
        """
        if self._source() is None:
            return {}
        spending = self.spending()
        return {session.path: spending.of(session.path) for session in sessions}

    def spending(self, mains: Collection[Path] | None = None) -> SpendingBySession:
        """What each session spent, by its main transcript, and what was spent in transcripts without a session.

        Every charge is in exactly one of them, so that they add up to the total of `ledger`. What a session shares with
        another one, as a copy or a fork does, is counted for one of them, and `shared` says how much it is.

        With `mains`, only the sessions of these main transcripts are needed: an index sums a few faster than all.
        """
        from threadline.archive.session_sums import SharedTokens, build_spending, shared_tokens
        from threadline.summary import read_agent_head

        index = self._source()
        if index is not None:

            def build() -> SpendingBySession:
                shared = (SharedTokens(*row) for row in index.shared_tokens())
                named = _session_in_head(index.summaries().agent_head)
                return build_spending(index.ledger(), self.found, named, shared, mains)

            return build() if mains is not None else index.cached("session sums", build)
        if self._spending is None:
            ledger = self._whole_ledger(None, calls=False)
            self._spending = build_spending(
                ledger, self.found, _session_in_head(read_agent_head), shared_tokens(ledger)
            )
        return self._spending

    def session(self, name: str) -> Session:
        """Read a session, by a prefix of its id, or `last`.

        Raises:
            NotFound: there is none.
            Ambiguous: there are several; the message lists them.
        """
        return self.session_at(self.path(name))

    def session_at(self, path: str | Path) -> Session:
        """Read the session of a main transcript, by its path.

        Raises:
            NotFound: there is no such file.
            Unreadable: it cannot be read.
        """
        from threadline.load import read

        return self.with_copies(read(path, homes=self.homes, links=self.links()))

    def with_copies(self, session: Session) -> Session:
        """The session, knowing which other transcripts contain messages of it: then its ledger need not search them."""
        sharing = self.transcripts_sharing({entry.line.transcript for entry in session})
        return replace(session, sharing=sharing) if sharing is not None else session

    def transcripts_sharing(self, transcripts: Collection[str]) -> tuple[str, ...] | None:
        """The paths of all transcripts that share messages with some, directly or not; None without an index."""
        index = self._source()
        return tuple(index.transcripts_sharing(transcripts)) if index is not None else None

    def has_path(self, path: Path) -> bool:
        """Whether a transcript is in one of the homes."""
        return any(path.absolute().is_relative_to(home.path / PROJECTS) for home in self.homes)

    def attribution(self, name: str | Session, *, prices: Rates | None = None) -> Attribution:
        """What caused the cost of a session.

        `name` is a prefix of its id, `last`, or the session itself. `prices` are used instead of the rates
        shipped with threadline.

        Raises:
            NotFound: there is no such session.
            Ambiguous: there are several; the message lists them.
        """
        return self.waste_context(name, prices=prices).attribution

    @named_keywords
    def session_waste(
        self,
        name: str | Session,
        *,
        detectors: Names = (),
        limits: WasteLimits | None = None,
        prices: Rates | None = None,
    ) -> WasteList:
        """Avoidable costs in a session, most expensive first.

        `name` is a prefix of its id, `last`, or the session itself. The keywords are those of `waste`.

        Raises:
            NotFound: there is no such session.
            Ambiguous: there are several; the message lists them.
            BadQuery: a value makes no sense.
        """
        from threadline.insight import find_waste
        from threadline.model.insight.waste import DETECTOR_NAMES, WasteList

        names = parse_names("detectors", detectors, DETECTOR_NAMES)
        context = self.waste_context(name, prices=prices)
        return WasteList(find_waste(context, limits, names), context.attribution.amount)

    def waste_context(self, name: str | Session, *, prices: Rates | None = None) -> WasteContext:
        """The charges of a session and what they were caused by, for several questions about them.

        The keywords are those of `attribution`.

        Raises:
            NotFound: there is no such session.
            Ambiguous: there are several; the message lists them.
        """
        from threadline.find import transcript_at
        from threadline.insight import WasteContext
        from threadline.load import session_ledger

        session = self.session(name) if isinstance(name, str) else name
        project = next(iter(session.cwds), None)
        path = session.path
        if path is not None and self.has_path(path):
            session = self.with_copies(session) if session.sharing is None else session
            main = transcript_at(path, homes=Homes(self.homes))
            known = (home.project_of(main) for home in self.found if home.home == main.home)
            project = next((match.name for match in known if match is not None), project)
        return WasteContext(session, session_ledger(session, prices), project)

    @named_keywords
    def causes(
        self,
        *,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        prices: Rates | None = None,
    ) -> CauseList:
        """What caused the costs of all sessions, in a period or ever. Its rows sum to the ledger's exactly.

        A period counts what was paid in it: every request by its own time, also for what earlier requests sent first.
        `prices` are used instead of the rates shipped with threadline.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.insight import AttributedSessions, CauseList

        index, stored, insights = self._insights(project, since, until, prices)
        sources: list[CauseSource] = [AttributedSessions(insight.attribution for insight in insights)]
        return CauseList([*sources, index.stored_causes(stored)] if index is not None else sources)

    @named_keywords
    def waste(
        self,
        *,
        detectors: Names = (),
        limits: WasteLimits | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        prices: Rates | None = None,
    ) -> WasteList:
        """Avoidable costs in all sessions, in a period or ever, most expensive first.

        `detectors` are names of `threadline.insight.DETECTORS`, by default all. `limits` are the thresholds for
        reporting. The other keywords are those of `causes`.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.model.insight.waste import DETECTOR_NAMES, WasteLimits, WasteList, filter_waste
        from threadline.model.ledger import sum_amounts

        names = parse_names("detectors", detectors, DETECTOR_NAMES)
        limits = limits or WasteLimits()
        index, stored, insights = self._insights(project, since, until, prices, limits)
        findings = [finding for insight in insights for finding in insight.waste]
        amounts = [insight.attribution.amount for insight in insights]
        if index is not None:
            findings += index.stored_waste(stored, limits)
            amounts.append(index.stored_causes(stored).totals().amount)
        return WasteList(filter_waste(findings, limits, names), sum_amounts(amounts))

    def _insights(
        self,
        project: str | None,
        since: Moment | None,
        until: Moment | None,
        prices: Rates | None,
        limits: WasteLimits | None = None,
    ) -> tuple[Index | None, Sequence[StoredSession], Sequence[SessionInsight]]:
        """The insights into the selected sessions: those in the index, and those in memory."""
        from threadline.account import shipped_digest
        from threadline.archive.insight import (
            STORED_LIMITS,
            CostFilter,
            StoredInsights,
            charges_in_memory,
            read_insights,
            select_sessions,
        )

        check_texts(project=project)
        time = TimeRange.parse(since, until, tz=self.zone)
        selection = CostFilter(time.since, time.until, project)
        index = self._built_index()
        limits = limits or STORED_LIMITS
        has_prices = prices is None or prices.digest == shipped_digest()
        if index is not None and has_prices and limits.large_output >= STORED_LIMITS.large_output:
            selected = StoredInsights(
                index,
                selection,
                find_sessions=self._session_files,
                display=lambda size: self._progress("Attributing costs", size),
                jobs=self._jobs,
                homes=self.homes,
            )
            return index, selected.stored, selected.computed
        ledger = self._whole_ledger(prices, calls=False)
        sessions = list(select_sessions(self._session_files(), ledger, selection))
        with self._progress("Attributing costs", sum(session.main.size for session in sessions)) as advance:
            insights = read_insights(
                sessions,
                charges_in_memory(ledger),
                ledger.rates,
                selection=selection,
                limits=limits,
                homes=self.homes,
                jobs=self._jobs,
                progress=advance,
            )
            return None, (), [insight for _, insight in insights]

    def _session_files(self) -> Iterator[SessionFiles]:
        """The transcripts of each session."""
        from threadline.archive.insight import group_by_session
        from threadline.summary import read_agent_head

        index = self._source()
        read_head = index.summaries().agent_head if index is not None else read_agent_head
        return group_by_session(self.found, _session_in_head(read_head))

    def store_insights(self) -> None:
        """Store in the index what causes costs, what was wasted and what was produced, for sessions that changed.

        `causes`, `waste` and `outcomes` do so for the sessions they are about.
        """
        self._insights(None, None, None, None)
        self._store_all_outcomes()

    def _store_all_outcomes(self) -> None:
        index = self._built_index()
        if index is not None:
            self._store_outcomes(index, self._call_filter(None, None, None, None, None, None))

    def unstored_insights(self) -> int:
        """The size of the transcripts that `store_insights` would read; 0 without an index."""
        from threadline.archive.insight import NO_FILTER

        index = self._built_index()
        if index is None:
            return 0
        everything = self._call_filter(None, None, None, None, None, None)
        unknown = index.select_insights(NO_FILTER.charge_filter).unknown.union(
            str(transcript.path) for transcript in index.unstored_outcomes(everything)
        )
        return sum(part.size for home in self.found for part in home.transcripts if str(part.path) in unknown)

    def fill_tables(self, question: str) -> None:
        """Fill the tables that a SELECT names and that a refresh does not fill: `causes`, `commits` and so on."""
        if re.search(_INSIGHT_TABLES, question, re.IGNORECASE):
            self._insights(None, None, None, None)
        if re.search(_OUTCOME_TABLES, question, re.IGNORECASE):
            self._store_all_outcomes()

    def links(self) -> SummaryLinks:
        """All summaries, and the sessions that contain the entries they name, for `threadline.read`.

        Without an index, transcripts are searched when these are used: each byte once, or twice if there are summaries.
        """
        index = self._source()
        if index is not None:
            return index.links()
        from threadline.parse import TranscriptLinks

        return TranscriptLinks((transcript for home in self.found for transcript in home.transcripts), jobs=self._jobs)

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """The titles of these sessions, without those that have none."""
        index = self._source()
        if index is not None:
            return index.titles(sessions)
        from threadline.summary import read_session_titles

        return read_session_titles(self.found, sessions)

    @named_keywords
    def ledger(
        self,
        prices: Rates | None = None,
        *,
        calls: bool = True,
        session: str | None = None,
        project: str | None = None,
        model: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> Ledger:
        """What was spent, every message counted once. Without `calls` it cannot be summed by tool.

        `prices` are used instead of the rates shipped with threadline. `model` is a part of a model's name. The other
        keywords are those of `Ledger.where`.

        Raises:
            BadQuery: a value makes no sense.
        """
        check_texts(session=session, project=project, model=model)
        time = TimeRange.parse(since, until, tz=self.zone)
        ledger = self._whole_ledger(prices, calls=calls)
        ledger.zone = self.zone
        return ledger.where(
            since=time.since, until=time.until, project=project, model=model, session=self._session_start(session)
        )

    def _whole_ledger(self, prices: Rates | None, *, calls: bool) -> Ledger:
        index = self._source()
        if index is not None:
            return index.ledger(prices)
        from threadline.account import shipped_rates
        from threadline.reports import build_ledger

        with self._progress("Reading", total_size(self.found)) as advance:
            return build_ledger(self.found, prices or shipped_rates(), jobs=self._jobs, progress=advance, calls=calls)

    def _session_start(self, session: str | None) -> str | None:
        """The start of a session's id: `last` is the newest session."""
        check_texts(session=session)
        if session != "last":
            return session
        newest = self.sessions(limit=1)
        return newest[0].id if newest else session

    def _match_sessions(self, prefix: str, others: Iterable[str | None] = ()) -> frozenset[str]:
        """The ids of the sessions that a prefix names: those of transcripts, and others."""
        own = (transcript.session for home in self.found for transcript in home.transcripts)
        return frozenset(match_ids(prefix, chain(own, others)))

    def recent_usage(self, named: SessionRef, rates: Rates, *, since: datetime, seconds: float) -> RecentUsage:
        """A session and what was spent since a time, for a status line that is updated on every prompt.

        Without an index, transcripts are read for at most `seconds`.
        """
        from threadline.account import shipped_digest

        index = self._source() if self.index.exists() and rates.digest == shipped_digest() else None
        if index is not None:
            return index.recent_usage(named, rates, since=since)
        from threadline.reports import read_recent_usage

        return read_recent_usage(named, self.homes, rates, since=since, seconds=seconds)

    @named_keywords
    def budgets(
        self,
        chosen: Iterable[Budget | str] | None = None,
        *,
        prices: Rates | None = None,
        now: datetime | None = None,
        seconds: float | None = None,
    ) -> list[BudgetUse]:
        """What has been spent of budgets, and what is left. By default, of those that `threadline budget set` stored.

        A budget may be text, such as `50/day`. Days, weeks and months are those of `zone`. With `seconds`, transcripts
        are read for at most that long if there is no index, and what could not be read is unknown.

        Raises:
            BadQuery: a budget makes no sense, or the file of budgets has a line that does not.
        """
        from threadline.account import budget_start, measure_budgets, read_budgets
        from threadline.model.budgets import Budget

        budgets = (
            read_budgets() if chosen is None else [Budget.parse_line(b) if isinstance(b, str) else b for b in chosen]
        )
        present = now or datetime.now(UTC)
        if not budgets:
            return []
        if seconds is None or self._source() is not None:
            ledger = self._whole_ledger(prices, calls=False)
            return measure_budgets(budgets, ledger, now=present, zone=self.zone, is_whole=not ledger.problems)
        from threadline.account import shipped_rates
        from threadline.reports import SessionRef, read_recent_usage

        start = budget_start(budgets, now=present, zone=self.zone)
        recent = read_recent_usage(SessionRef(), self.homes, prices or shipped_rates(), since=start, seconds=seconds)
        return measure_budgets(
            budgets, recent.ledger, now=present, zone=self.zone, complete_since=start, is_whole=recent.is_whole
        )

    @named_keywords
    def digest(
        self,
        unit: str | None = None,
        value: str = "",
        *,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        prices: Rates | None = None,
        now: datetime | None = None,
        tz: Zone | None = None,
    ) -> Digest:
        """What was done in a period by project and session, what it cost, why, and what to change.

        `unit` is `day`, `week` (the default) or `month`, and `value` says which: empty for the current one, `last`, a
        date in it, or its name, such as `2026-W45`. With `since` instead, the period is from then to `until` or now.
        Days are those of the time zone `tz`, by default the archive's. Builds the index if needed.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        from threadline.archive.digest import build_digest
        from threadline.model.insight.digest import DigestPeriod, PeriodUnit

        check_texts(project=project)
        present = now or datetime.now(UTC)
        zone = resolve_zone(tz) if tz is not None else self.zone
        if since is not None:
            period = DigestPeriod.between(since, until, now=present, zone=zone)
        else:
            units = {str(choice): choice for choice in PeriodUnit if choice is not PeriodUnit.RANGE}
            (name,) = parse_names("unit", unit or "week", list(units))
            period = DigestPeriod.parse(units[name], value, now=present, zone=zone)
        self.open_index()
        return build_digest(self, period, now=present, zone=zone, project=project, prices=prices)

    @named_keywords
    def history(
        self,
        selection: PromptFilter | None = None,
        *,
        text: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        gone: bool | None = None,
        limit: int | None = None,
    ) -> PromptHistory:
        """What was typed in all projects, newest first, also in sessions that were deleted. Iterating reads it.

        `text` is a part of the prompt, ignoring case. With `gone`, only prompts whose session was deleted. A
        `selection` may be given as well; keywords replace its fields. `prompts` has the prompts of transcripts.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.reports import PromptFilter, PromptHistory

        check_texts(text=text)
        prompts = self._narrow(selection or PromptFilter(), project, since, until, limit, text=text, gone=gone)
        return PromptHistory(self.found, prompts)

    @named_keywords
    def prompts(
        self,
        *,
        session: str | None = None,
        project: str | None = None,
        kinds: Names = (),
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> PromptList:
        """What people typed in sessions, newest first, with the full text. Reads the transcripts.

        `kinds` are kinds of acts, such as `prompt`, `command` or `steering`; by default, all that were typed: not
        `interrupt` and `plan`.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.model.session import UNTYPED_ACTS, ActKind
        from threadline.reports import PromptList, find_prompts

        names = parse_names("kinds", kinds, [str(kind) for kind in ActKind])
        names = names or tuple(str(kind) for kind in ActKind if kind not in UNTYPED_ACTS)
        time = TimeRange.parse(since, until, tz=self.zone)
        sources = [
            (source.transcript, source.project)
            for source in self._sources(self._session_start(session), project, time.since)
            if source.transcript.kind is TranscriptKind.MAIN
        ]
        with self._progress("Reading", sum(transcript.size for transcript, _ in sources)) as advance:
            prompts = find_prompts(sources, jobs=self._jobs, progress=advance)
        matches = [prompt for prompt in prompts if prompt.kind in names and prompt.timestamp in time]
        shown = matches[: check_limit(limit)]
        return PromptList(shown, len(matches) - len(shown))

    @named_keywords
    def entries(
        self,
        *,
        session: str | None = None,
        project: str | None = None,
        kinds: Names = (),
        agent: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> EntryStream:
        """The entries of all transcripts, each transcript in file order. Iterating reads them; none is kept in memory.

        `kinds` are kinds of entries, such as `user` and `assistant`. `agent` is the start of an agent's id, `main` or
        `sub`.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.archive.entries import EntryStream
        from threadline.model.entry_filter import EntryFilter

        check_texts(agent=agent)
        time = TimeRange.parse(since, until, tz=self.zone)
        prefix = self._session_start(session)
        selection = EntryFilter(prefix, parse_names("kinds", kinds), agent, time, check_limit(limit))
        return EntryStream(list(self._sources(prefix, project, time.since)), selection)

    def _sources(self, session: str | None, project: str | None, since: datetime | None) -> Iterator[EntrySource]:
        """The transcripts that may contain entries of a session, a project and a period."""
        from threadline.archive.entries import EntrySource
        from threadline.find import TranscriptProjects
        from threadline.parse import named_session

        check_texts(project=project)
        part = (project or "").casefold()
        sessions = self._match_sessions(session) if session is not None else None
        # A file last modified before then contains nothing from after it.
        oldest = since.timestamp() * 1e9 if since is not None else 0
        projects = TranscriptProjects(self.found, lambda agent: named_session(agent.path))
        for home in self.found:
            for transcript in home.transcripts:
                name = projects.name_of(transcript)
                own_session = transcript.session
                is_in_session = sessions is None or own_session is None or own_session in sessions
                if is_in_session and part in name.casefold() and transcript.mtime_ns >= oldest:
                    yield EntrySource(transcript, own_session, name)

    @named_keywords
    def errors(
        self,
        since: Moment | None = None,
        selection: FailureFilter | None = None,
        *,
        session: str | None = None,
        project: str | None = None,
        tools: Names = (),
        exact_tools: bool = False,
        outcomes: Names = (),
        until: Moment | None = None,
        limit: int | None = None,
    ) -> FailureList:
        """Failed calls and requests of all sessions, oldest first, each once. Reads the transcripts.

        With `session`, everything that its transcripts contain is listed, also what a fork copied, as in `calls`.
        `tools` are names of tools, old or new: `Read` includes `View`, unless `exact_tools`. `outcomes` are `error`,
        `denied`, `interrupted`, `lost` or `api-error`. With a limit, the newest are returned. A `selection` may be
        given as well; keywords replace its fields.

        Raises:
            BadQuery: a value makes no sense.
        """
        from threadline.model.call_summary import summarize_input
        from threadline.reports import FAILURES, FailureFilter, find_failures

        own = {
            "session": self._session_start(session),
            "tools": parse_names("tools", tools) or None,
            "exact_tools": exact_tools or None,
            "outcomes": parse_names("outcomes", outcomes, FAILURES) or None,
        }
        failing = self._narrow(selection or FailureFilter(), project, since, until, limit, **own)
        # The original of a copied session may be in another project, so a project does not limit what is read.
        sources = [source for source in self._sources(failing.session, None, failing.since) if source.transcript.size]
        transcripts = [source.transcript for source in sources]
        with self._progress("Reading", sum(transcript.size for transcript in transcripts)) as advance:
            failures = find_failures(transcripts, summarize_input, jobs=self._jobs, progress=advance)
        return failing.apply(failures, {str(source.transcript.path): source.project for source in sources})

    failures = errors

    def examine(self, found: Sequence[Found] | None = None, *, check: bool = False) -> Examination:
        """Read everything, or what was `found` elsewhere: what is wrong, what is new, how much was understood.

        With `check`, verify for each transcript that its entries reproduce it byte for byte.
        """
        from threadline.reports import examine_homes

        files = found if found is not None else self.look()
        with self._progress("Reading", total_size(files)) as advance:
            examination = examine_homes(files, check=check, jobs=self._jobs, progress=advance)
        is_whole = all(home.home in self.homes for home in files)
        return replace(examination, unlisted=self._count_unlisted(files)) if is_whole else examination

    def _count_unlisted(self, found: Sequence[Found]) -> dict[str, UnlistedCount]:
        from threadline.find import SessionOwners, drop_shared_transcripts
        from threadline.reports import count_unlisted
        from threadline.summary import list_sessions, read_agent_head

        homes = list(drop_shared_transcripts(found))
        transcripts = (transcript for home in homes for transcript in home.transcripts)
        owners = SessionOwners(transcripts, _session_in_head(read_agent_head))
        listed = {session.path for session in list_sessions(homes, jobs=self._jobs)}

        def owner(transcript: Transcript) -> Path | None:
            main = owners.main_of(transcript)
            return main.path if main is not None else None

        return count_unlisted(homes, listed, owner)

    def scan(self, selection: SecretFilter | None = None, found: Sequence[Found] | None = None) -> list[ScanResult]:
        """The secrets in each file of the homes, or of what was `found` elsewhere."""
        from threadline.reports import files_to_scan, scan_files

        files = files_to_scan(found if found is not None else self.look())
        with self._progress("Scanning", sum(file.size for file in files)) as advance:
            return list(scan_files(files, selection, jobs=self._jobs, progress=advance))

    @named_keywords
    def watch(self, session: str | Path | None = None, *, since: Moment | None = None) -> Follower:
        """Follow the transcripts as they grow: of all sessions, or of one and its agents.

        `session` is a prefix of an id, `last`, or a path, which may be in another home or in none. With `since`,
        entries from then on come first.

        Raises:
            NotFound: there is no such session.
            BadQuery: `since` is not a time.
        """
        from threadline.watch import Follower

        start = TimeRange.parse(since, tz=self.zone).since
        if session is None:
            return Follower(self.homes, since=start)
        if isinstance(session, Path):
            return _follow_path(session, start)
        transcript = self.transcript(self._session_start(session) or session)
        if transcript.session is None:
            return Follower(path=transcript.path, since=start)
        return Follower(self.homes, session=transcript.session, since=start)

    # --- search

    @named_keywords
    def search(
        self,
        query: str = "",
        *,
        session: str | None = None,
        project: str | None = None,
        tool: str | None = None,
        model: str | None = None,
        kind: str | None = None,
        agent: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
        every: bool = False,
        sort: Sort = "rank",
        zone: tzinfo | None = None,
        now: datetime | None = None,
        near: bool = True,
        seconds: float | None = None,
    ) -> Hits:
        """The hits of a query, best first; `docs/search.md` describes the language. Builds the index if needed.

        `session`, `project`, `tool`, `model`, `kind`, `agent`, `since` and `until` are the fields of the language.
        There is one hit per session, or with `every` one per entry. Without a limit, all that match are listed. With
        one, sessions that contain the words in several entries are listed among them, as on the command line.

        Without `near`, only exact matches: no other spelling, and no session with the words in separate entries.
        `seconds` limits how long entries are read if the index alone cannot answer; `cut_short` says that the limit was
        reached and there may be more hits.

        Raises:
            BadQuery: the query is invalid, or nothing was found in that time.
            IndexBusy: another process is building the index.
        """
        from threadline.search import search, value_filters

        values = {"project": project, "tool": tool, "model": model, "kind": kind, "agent": agent}
        check_texts(query=query, **values)
        time = TimeRange.parse(since, until, now=now, tz=zone or self.zone)
        return search(
            self.open_index(),
            query,
            limit=check_limit(limit),
            every=every,
            sort=sort,
            zone=zone or self.zone,
            now=now,
            near=near,
            seconds=seconds,
            filters=value_filters({**values, "session": self._session_start(session)}, time),
        )

    def explain_no_hits(self, query: str, *, zone: tzinfo | None = None, now: datetime | None = None) -> str:
        """Why a query found nothing, and which similar query finds something, as sentences.

        Raises:
            BadQuery: the query is invalid.
            IndexBusy: another process is building the index.
        """
        from threadline.search import explain_no_hits

        return explain_no_hits(self.open_index(), query, zone=zone, now=now)

    def entries_around(self, hit: Hit, count: int) -> tuple[list[Entry], list[Entry]]:
        """Up to `count` entries of the conversation before a hit, and after it."""
        from threadline.search import entries_around

        return entries_around(self.open_index(), hit, count)

    @staticmethod
    def deleted_prompt(hit: Hit) -> str:
        """The full prompt of a hit whose transcript was deleted; empty if the history no longer has it."""
        from threadline.search import read_prompt

        return read_prompt(hit.place)

    def session_facts(self, session: str) -> SessionFacts:
        """When a session was last written to, and its first prompt."""
        return self.open_index().session_facts(session)

    def explain_unused_tools(self, tools: Iterable[str], *, exact_tools: bool = False) -> str | None:
        """A sentence about the first of these tools that no session called, with a suggestion; None if all were."""
        from threadline.search import explain_unused_tool

        return explain_unused_tool(self.open_index(), tools, exact_tools=exact_tools)

    # --- calls, files and SQL

    @named_keywords
    def calls(
        self,
        selection: CallFilter | None = None,
        *,
        tools: Names = (),
        exact_tools: bool = False,
        outcomes: Names = (),
        session: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> CallList:
        """Calls of all sessions, newest first, each once. Builds the index if needed.

        `tools` are names of tools, old or new: `Read` includes calls of `View`, unless `exact_tools`. A `selection` may
        be given as well; keywords replace its fields.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        selection = self._call_filter(selection, session, project, since, until, limit)
        names = parse_names("outcomes", outcomes)
        return self.open_index().calls(
            selection, tools=parse_names("tools", tools), exact_tools=exact_tools, outcomes=names
        )

    def _call_filter(  # noqa: PLR0917 - the keywords that calls, files and agents share
        self,
        selection: CallFilter | None,
        session: str | None,
        project: str | None,
        since: Moment | None,
        until: Moment | None,
        limit: int | None,
    ) -> CallFilter:
        from threadline.index import CallFilter

        own = self._session_start(session)
        return self._narrow(selection or CallFilter(), project, since, until, limit, session=own)

    @named_keywords
    def agents(
        self,
        selection: CallFilter | None = None,
        *,
        types: Names = (),
        session: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> AgentList:
        """Subagents of all sessions that have a transcript, those that worked last first. Builds the index if needed.

        `since` and `until` apply to the last entry of an agent. A `selection` may be given as well; keywords replace
        its fields.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        selection = self._call_filter(selection, session, project, since, until, limit)
        return self.open_index().agents(selection, parse_names("types", types))

    @named_keywords
    def problems(
        self,
        *,
        session: str | None = None,
        project: str | None = None,
        kinds: Names = (),
        limit: int | None = None,
    ) -> ProblemList:
        """What is wrong in the transcripts, by kind and place. Builds the index if needed; `examine` reads everything.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        check_texts(project=project)
        names = parse_names("kinds", kinds, [str(kind) for kind in ProblemKind])
        prefix = self._session_start(session)
        problems = self.open_index().list_problems()
        sessions = (
            self._match_sessions(prefix, (problem.session for problem in problems)) if prefix is not None else None
        )
        matches = [
            problem
            for problem in problems
            if (not names or problem.kind in names)
            and (sessions is None or problem.session in sessions)
            and (project or "").casefold() in problem.project.casefold()
        ]
        shown = matches[: check_limit(limit)]
        return type(problems)(shown, len(matches) - len(shown))

    @staticmethod
    def call_input(call: ListedCall) -> Any:
        """The input of a call, read from its transcript; None if it is no longer there."""
        from threadline.index import read_call_input

        place = call.place
        return read_call_input(place.transcript, place.offset, place.line, call.id, place.length)

    @named_keywords
    def tools(
        self,
        by: str = "tool",
        *,
        tools: Names = (),
        costs: bool = True,
        sort: str | None = None,
        session: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> ToolGroups:
        """How often calls were made and failed, how long they took, and what their results cost, most frequent first.

        `by` is `tool`, `server`, `command` (a program of a shell command), `model`, `version`, `day`, `week` or
        `project`. `tools` are names of tools, old or new. Costs come from the attribution of every session, which
        takes time if it has not been stored yet; `costs=False` leaves them out. `sort` is `calls`, `failed` (a share),
        `errors`, `exit`, `denied`, `stopped`, `median`, `p95`, `output` or `amount`, largest first; without it, days
        and weeks are in order of time, and `limit` chooses the newest. Builds the index if needed.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        from threadline.insight import COST_SORTS, TOOL_KEYS, TOOL_SORTS, add_up_calls, select_tool_groups
        from threadline.model.calls import ToolGroups
        from threadline.parallel import relaxed_gc

        (key,) = parse_names("by", by, TOOL_KEYS)
        order = parse_names("sort", sort, TOOL_SORTS)[0] if sort is not None else None
        if order in COST_SORTS and not costs:
            raise BadQuery(f"Sorting by {order} needs costs. Ask for them, or sort by something else.")
        names = parse_names("tools", tools)
        selection = self._call_filter(None, session, project, since, until, None)
        with relaxed_gc():
            result_costs = self._result_costs(project) if costs else None
            index = self.open_index()
            unstored = self._store_outcomes(index, selection) if key == "command" else ()
            calls = index.tool_calls(selection, key, self.zone, names, unstored=unstored)
            groups = add_up_calls(calls, result_costs, key)
        shown = select_tool_groups(groups, key, order, check_limit(limit))
        return ToolGroups(shown, len(groups) - len(shown))

    def _result_costs(self, project: str | None) -> dict[str, ResultCost]:
        """What the result of each call cost, by the call's id."""
        from threadline.insight import ResultCost, add_costs
        from threadline.model.insight.attribution import CauseKind

        self.open_index()
        index, stored, computed = self._insights(project, None, None, None)
        costs = index.result_costs(stored) if index is not None else {}
        for cause in (cause for insight in computed for cause in insight.attribution.rows):
            if cause.kind is CauseKind.RESULT and cause.call is not None:
                cost = ResultCost(cause.tokens, float(cause.amount), cause.estimated)
                costs[cause.call] = add_costs(costs[cause.call], cost) if cause.call in costs else cost
        return costs

    @named_keywords
    def outcomes(
        self,
        session: str | None = None,
        *,
        kinds: Names = (),
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        repo: str | Path | None = None,
        limit: int | None = None,
    ) -> OutcomeList:
        """What sessions produced: commits, pushes, pull requests, test runs and changed files, oldest first.

        Each is counted once, also if a fork or a resumed session repeats it. `kinds` are kinds of outcomes. With
        `repo`, commits and lines are compared with that git repository. With a limit, the newest are returned. Without
        a `session`, builds the index if needed.

        Raises:
            BadQuery: a value makes no sense.
            NotFound: there is no such repository.
        """
        from threadline.archive.outcomes import list_outcomes
        from threadline.model.insight.outcomes import OutcomeKind

        names = parse_names("kinds", kinds, [str(kind) for kind in OutcomeKind])
        report = self._outcome_report(session, project, since, until, repo)
        return list_outcomes(report, names, check_limit(limit))

    @named_keywords
    def outcome_groups(
        self,
        by: str = "session",
        *,
        session: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        repo: str | Path | None = None,
        limit: int | None = None,
    ) -> OutcomeGroups:
        """What was produced and what it cost, by session, project, day or model. `total` adds up all of it.

        The keywords are those of `outcomes`.

        Raises:
            BadQuery: a value makes no sense.
            NotFound: there is no such repository.
        """
        from threadline.archive.outcomes import group_outcomes
        from threadline.insight import OUTCOME_KEYS
        from threadline.parallel import relaxed_gc

        (key,) = parse_names("by", by, OUTCOME_KEYS)
        with relaxed_gc():
            report = self._outcome_report(session, project, since, until, repo)
            ledger = self.ledger(calls=False, session=session, project=project, since=since, until=until)
            return group_outcomes(report, ledger, key, self.zone, check_limit(limit))

    def _outcome_report(
        self,
        session: str | None,
        project: str | None,
        since: Moment | None,
        until: Moment | None,
        repo: str | Path | None,
    ) -> OutcomeReport:
        from threadline.archive.insight import group_by_session
        from threadline.archive.outcomes import OutcomePeriod, drop_copies, make_report, read_outcomes

        check_texts(project=project)
        selection = self._call_filter(None, session, project, since, until, None)
        index = self._built_index() if session is None else self._source()
        if index is not None and not self._store_outcomes(index, selection):
            facts = index.outcomes(selection)
        else:
            from threadline.summary import read_agent_head

            sessions = self._match_sessions(selection.session) if selection.session is not None else None
            files = [
                files
                for files in group_by_session(self.found, _session_in_head(read_agent_head))
                if (sessions is None or files.main.session in sessions)
                and (project or "").casefold() in files.project.casefold()
            ]
            with self._progress("Reading", sum(part.main.size for part in files)) as advance:
                facts = read_outcomes(files, self.homes, jobs=self._jobs, advance=advance)
            facts = drop_copies(facts, self._whole_ledger(None, calls=False))
        period = OutcomePeriod(selection.since, selection.until, repo)
        return make_report(facts, period, is_scoped=session is not None or project is not None)

    def _store_outcomes(self, index: Index, selection: CallFilter) -> Sequence[TranscriptOutcomes]:
        """Store the outcomes of selected transcripts that have changed. Returns what cannot be stored now."""
        unstored = index.unstored_outcomes(selection)
        if not unstored:
            return ()
        from threadline.archive.outcomes import store_outcomes

        with self._progress("Reading outcomes", sum(transcript.size for transcript in unstored)) as advance:
            return store_outcomes(index, unstored, jobs=self._jobs, advance=advance)

    @named_keywords
    def files(
        self,
        path: str | None = None,
        selection: CallFilter | None = None,
        *,
        session: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> FileList:
        """Files that sessions touched, those touched last first. Builds the index if needed.

        `path` is a file's path or the end of it; the other parameters are those of `calls`.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        check_texts(path=path)
        selection = self._call_filter(selection, session, project, since, until, limit)
        return self.open_index().files(selection, path)

    @named_keywords
    def file_log(
        self,
        path: str,
        selection: CallFilter | None = None,
        *,
        session: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> FileLog:
        """Every edit of a file by any session, as diffs, newest first. Builds the index if needed.

        `path` is a file's path or the end of it; the other parameters are those of `calls`. Only sessions that edited
        the file are read. An edit that a fork or a resumed session copied is listed once, unless `session` is set.

        Raises:
            BadQuery: a value makes no sense.
            IndexBusy: another process is building the index.
        """
        from threadline.archive.file_log import read_edits
        from threadline.model.state import FileLog

        check_texts(path=path)
        selection = self._call_filter(selection, session, project, since, until, limit)
        keys = self.open_index().edits(selection, path)
        first = list(islice(keys, selection.limit))
        return FileLog(read_edits(first, path, self.homes), None if any(True for _ in keys) else 0)

    def blame(self, path: str | Path, *, first: int | None = None, last: int | None = None, git: bool = True) -> Blame:
        """Who wrote each line of a file, or of its lines from `first` to `last`. Builds the index if needed.

        Only sessions that wrote the file are read, and the history of the file in git, unless `git` is False.

        Raises:
            NotFound: there is no such file or line.
            Ambiguous: there is no such file, and sessions wrote several of that name; the message lists them.
            BadQuery: it is a folder or not a text, or the line numbers make no sense.
            Unreadable: it cannot be read.
            IndexBusy: another process is building the index.
        """
        from threadline.archive.blame import blame_file, select_lines

        return select_lines(blame_file(self.open_index(), self.homes, path, use_git=git), first, last)

    def sql(self, question: str, *, seconds: float = 60) -> list[dict[str, Any]]:
        """The rows of a SELECT on the index; `docs/index.md` describes the tables. Builds the index if needed.

        Raises:
            BadQuery: it is invalid, not a SELECT, or takes longer than `seconds`.
            IndexBusy: another process is building the index.
        """
        self.fill_tables(question)
        with self.sql_runner() as run:
            result = run(question, seconds)
            return [dict(zip(result.columns, row, strict=True)) for row in result]

    @contextmanager
    def sql_runner(self, *, heap: int | None = None) -> Iterator[Callable[[str, float], QueryResult]]:
        """A function that runs a SELECT with a time limit; all of them see the same state of the index.

        `heap` limits the bytes SQLite may allocate in this process from now on.

        Raises:
            IndexBusy: another process is building the index.
            Unreadable: it is damaged.
        """
        with self.open_index().sql(heap=heap) as run:
            yield run

    def sql_in_process(self, query: str, seconds: float, max_bytes: int) -> IsolatedResult:
        """The first rows of a SELECT. It runs in another process, which ends after `seconds`, whatever the SELECT is.

        Raises:
            BadQuery: the statement is wrong, or took too long.
            IndexBusy: another process is building the index.
            Unreadable: it is damaged.
        """
        return self.open_index().sql_in_process(query, seconds, max_bytes)


def _follow_path(path: Path, since: datetime | None) -> Follower:
    """Follow the session of a transcript; if it is in a home, into every transcript of the session."""
    from threadline.find import home_of_transcript, homes, transcript_at
    from threadline.watch import Follower

    absolute = path.absolute()
    transcript = transcript_at(absolute)
    home = home_of_transcript(absolute)
    if home is None or transcript.session is None:
        return Follower(path=absolute, since=since)
    return Follower(homes(home), session=transcript.session, since=since)


def total_size(found: Iterable[Found]) -> int:
    """The size of all transcripts in bytes."""
    return sum(transcript.size for home in found for transcript in home.transcripts)


class ProgressBar:
    """Shows the progress of work whose size becomes known only after it has begun."""

    def __init__(self, display: ProgressDisplay, label: str) -> None:
        self._display = display
        self._label = label
        self._advance: Callable[[int], None] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def begin(self, total: int) -> None:
        """Show the bar for this many bytes."""
        self._advance = self._stack.enter_context(self._display(self._label, total))

    def advance(self, count: int) -> None:
        """Add bytes that have been read."""
        if self._advance is not None:
            self._advance(count)


def _no_progress(_label: str, _total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda _count: None)


def open(  # noqa: A001 - as `threadline.open`
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    index: bool | str | Path = True,
    jobs: int | None = None,
    progress: ProgressDisplay | None = None,
    max_refresh_bytes: int = AUTO_REFRESH_BYTES,
    keep: bool | str | Path = True,
    tz: Zone | None = None,
) -> Archive:
    """Open the archive of these homes, or of all homes on this machine.

    A home may be in a zip or tar archive, or in an S3 bucket (`s3://bucket/prefix`). `index` says whether to use the
    index, or where it is. `jobs` limits the number of processes that read at once, `progress` shows the progress of
    long work, and `max_refresh_bytes` limits how much is read to update the index without being asked to. `keep` says
    whether to read sessions that exist only in the keep, or where the keep is. If homes are given, only their sessions
    are read from it. A given home that no longer exists is read from the keep, if that has it; `missing_homes` lists
    those. `tz` is the time zone of days, and of times without an offset; by default it is the user's own.

    >>> import threadline
    >>> with threadline.open() as archive:  # doctest: +SKIP
    ...     for hit in archive.search("flaky login test", since="30d"):
    ...         print(hit.session, hit.snippet)

    Raises:
        NotFound: one of `homes` neither exists nor is in the keep.
        Unreadable: one of `homes` is a damaged archive, or in a bucket that cannot be read.
    """
    requested = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    ready = [home for home in requested if isinstance(home, Home)]
    paths = [path for path in requested if not isinstance(path, Home)]
    folder, without_keep = _select_keep(keep)
    missing: dict[str, NotFound] = {}
    label = "Fetching" if any(str(path).startswith("s3:") for path in paths) else "Unpacking"
    with ProgressBar(progress or _no_progress, label) as bar:
        try:
            existing = find_homes(*paths, planned=bar.begin, progress=bar.advance) if paths or not ready else []
        except NotFound:
            if folder is None:
                raise
            existing, missing = _split_missing_homes(paths)
    archive = Archive(
        (*ready, *existing),
        index=Path(index) if isinstance(index, str) else index,
        jobs=jobs,
        progress=progress,
        max_refresh_bytes=max_refresh_bytes,
        without_keep=without_keep,
    )
    archive.zone = resolve_zone(tz)
    if folder is not None:
        archive.read_keep(folder, only=bool(requested), lost=tuple(missing))
    elif keep is True and not without_keep:
        archive.enable_keep_later(only=bool(requested))
    for path, error in missing.items():
        if not archive.has_kept(path):
            raise error
    return archive


def _split_missing_homes(paths: Sequence[str | Path]) -> tuple[list[Home], dict[str, NotFound]]:
    """The homes that exist, and the errors of those that do not, by the path they were kept by."""
    existing: dict[Path, Home] = {}
    missing: dict[str, NotFound] = {}
    for path in paths:
        try:
            homes = find_homes(path)
        except NotFound as error:
            missing[_kept_home_path(path)] = error
        else:
            existing.update((home.path, home) for home in homes)
    return list(existing.values()), missing


def _kept_home_path(path: str | Path) -> str:
    """The path that a home was kept by, as far as that can be known once it is gone."""
    resolved = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for unknown users
    parent, name = os.path.split(resolved)
    return parent if name == PROJECTS else resolved


def purge_caches(keep: Path) -> list[str]:
    """Remove what a keep has forgotten from the caches of this machine, at once. Return what could not be done.

    Unpacked sessions are deleted and unpacked again. The index of this machine's homes is refreshed; other indexes that
    contain sessions which are gone are deleted, and built again when they are needed.
    """
    from threadline.index import list_indexes, remove_stale_indexes
    from threadline.keep import clear_kept_homes

    clear_kept_homes(keep, cache_folder())
    if not list_indexes(cache_folder()):
        return []
    problems: list[str] = []
    refreshed: Path | None = None
    try:
        with open(keep=keep) as archive:
            if archive.index.exists():
                archive.refresh()
                refreshed = archive.index
    except NotFound:
        pass  # there is no home, so all that an index can contain is gone
    except Error as error:
        problems.append(f"{error} Its words of forgotten sessions are removed by the next `threadline index refresh`.")
    remove_stale_indexes(cache_folder(), refreshed)
    return problems


def is_keep_ignored(option: bool) -> bool:
    """Whether there is a keep, but it is not read."""
    return _select_keep(option)[1]


def _select_keep(option: bool | str | Path) -> tuple[Path | None, bool]:
    """The folder of the keep to read, if there is one; and whether there is one that is ignored."""
    if isinstance(option, str | Path):
        return Path(option), False
    from threadline.keep import existing_keep_folder, is_keep_enabled

    folder = existing_keep_folder()
    if folder is None:
        return None, False
    return (Path(folder), False) if option and is_keep_enabled() else (None, True)


class HomePresence:
    """Remembers which homes exist, to tell later which are missing."""

    def __init__(self, homes: Sequence[Home]) -> None:
        live = [home.path for home in homes if not home.is_kept]
        # The mount point of a missing disk may still exist, empty: so `projects` has to exist if it did before.
        self._folders = {path: projects if (projects := path / PROJECTS).is_dir() else path for path in live}

    def missing(self) -> tuple[Path, ...]:
        """The homes that do not exist now."""
        return tuple(home for home, folder in self._folders.items() if not folder.is_dir())

    def are_all(self, homes: Sequence[Path]) -> bool:
        """Whether these are all of the homes."""
        return len(homes) == len(self._folders)


def _session_in_head(read_head: Callable[[Transcript], AgentHead]) -> Callable[[Transcript], SessionId | None]:
    return lambda transcript: read_head(transcript).session
