"""The archive: every question that can be asked of some homes, answered from the index or from the transcripts.

Every answer is the one that reading all transcripts gives. If the index is up to date, or can be updated cheaply, it
is asked instead. Questions that only an index can answer in reasonable time build it if it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from threadline.errors import Error, NotFound
from threadline.model.homes import KEEP_SOURCE, TranscriptKind

if TYPE_CHECKING:
    import sqlite3

    from threadline.account import Ledger, Rates
    from threadline.index import (
        Activity,
        FileTouch,
        FreshIndex,
        IndexStatus,
        ListedProblem,
        QueryResult,
        RefreshResult,
        SessionBrief,
        SessionFacts,
    )
    from threadline.load import Session
    from threadline.model.calls import ListedCall, ListedFile
    from threadline.model.entries import Entry
    from threadline.model.hits import Hit, Hits
    from threadline.model.homes import Found, Home, Transcript
    from threadline.model.places import SessionId
    from threadline.reports import (
        Examination,
        Failure,
        PromptFilter,
        PromptHistory,
        RecentUsage,
        ScanResult,
        SecretFilter,
        SessionRef,
    )
    from threadline.search import Sort
    from threadline.summary import Overview, SessionFilter, SessionList
    from threadline.watch import Follower

AUTO_REFRESH_BYTES = 64 * 1024 * 1024
"""How many bytes are read for an index without having been asked for it: what takes about a second."""

_WITHOUT_KEEP = "without the keep"


class IndexedHomes:
    """Homes, what lies in them, and the index of them; what is asked of both is in the classes above."""

    def __init__(
        self,
        homes: Sequence[Home],
        *,
        index: bool | Path = True,
        jobs: int | None = None,
        showing: ProgressDisplay | None = None,
        most: int = AUTO_REFRESH_BYTES,
        apart: bool = False,
    ) -> None:
        self.homes = tuple(homes)
        self.keep_problems: tuple[str, ...] = ()
        self.gone: tuple[str, ...] = ()
        """The homes that are not there any more, and are read from the keep."""
        self.keep: Path | None = None
        self.is_apart = apart
        self._only = False
        self._awaits_keep = False
        self._lost: tuple[str, ...] = ()
        self._most = most
        self._index = index
        self._jobs = jobs
        self._showing = showing or (lambda _label, _total: nullcontext(lambda _done: None))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index."""
        known = self.__dict__.pop("_fresh", None)
        if known is not None:
            known.connection.close()

    @property
    def index(self) -> Path:
        """Where the index of these homes lies, or would."""
        from threadline.index import index_path

        if isinstance(self._index, Path):
            return self._index
        # Not by the kept homes: a session that was deleted is one that moved, and its entries stay.
        living = [home.path for home in self.homes if home.source != KEEP_SOURCE]
        return index_path([*living, *self._lost, *([_WITHOUT_KEEP] if self.is_apart else [])])

    def read_keep(self, folder: Path, *, only: bool = False, lost: Sequence[str] = ()) -> None:
        """Read what only the keep in a folder still has, too; with `only`, of these homes alone, and of `lost` ones."""
        from threadline.index import cache_folder
        from threadline.keep import kept_homes

        living = [home for home in self.homes if home.source != KEEP_SOURCE]
        with ProgressBar(self._showing, "Unpacking") as bar:
            kept = kept_homes(
                folder, living, cache_folder(), lost=lost, only=only, planned=bar.begin, progress=bar.advance
            )
        self.keep, self._only, self._lost = folder, only, tuple(lost)
        self.homes = (*living, *kept.homes)
        self.keep_problems, self.gone = kept.problems, kept.gone

    def enable_keep_later(self, *, only: bool) -> None:
        """Read the keep once there is one; where one was that is not there, `keep_problems` says it."""
        from threadline.keep import missing_keep_folder

        self._awaits_keep, self._only = True, only
        lost = missing_keep_folder()
        if lost is not None:
            told = f"The keep that was in {lost!r} is not there, so what only it had is left out."
            self.keep_problems = (f"{told} Is its disk mounted, or was it moved (THREADLINE_KEEP)?",)

    def has_kept(self, home: str) -> bool:
        """Whether anything is read from the keep that a home had which is gone."""
        return any(one == home or one.endswith(f":{home}") for one in self.gone)

    @property
    def kept(self) -> frozenset[str]:
        """The sessions that only the keep still has."""
        if all(home.source != KEEP_SOURCE for home in self.homes):
            return frozenset()
        kept = (
            transcript for found in self.found if found.home.source == KEEP_SOURCE for transcript in found.transcripts
        )
        return frozenset(one.session for one in kept if one.kind is TranscriptKind.MAIN and one.session is not None)

    def reload_kept_homes(self) -> tuple[Home, ...]:
        """The homes by now: what a living one has lost since is in a kept one."""
        folder = self.keep
        if folder is None and self._awaits_keep:
            from threadline.keep import existing_keep_folder

            begun = existing_keep_folder()
            folder = Path(begun) if begun is not None else None
        if folder is not None:
            self.read_keep(folder, only=self._only, lost=self._lost)
        return self.homes

    def refresh(self) -> RefreshResult:
        """Bring the index up to date, or make it.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        from threadline.index import refresh_index

        self.close()
        with ProgressBar(self._showing, "Indexing") as bar:
            return refresh_index(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def rebuild(self) -> RefreshResult:
        """Make another index from nothing, and then put it in the place of the one that is there, however that stands.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it may not be written.
        """
        from threadline.index import rebuild_index

        self.close()
        with ProgressBar(self._showing, "Indexing") as bar:
            return rebuild_index(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def status(self) -> IndexStatus:
        """How the index stands; it is left as it is.

        Raises:
            Unreadable: it is damaged.
        """
        from threadline.index import index_status

        return index_status(self.index, self.homes)

    def use_stale_index(self) -> None:
        """Ask the index as it is from now on, and do not read what changed since.

        Raises:
            Unreadable: it is damaged, or there is none.
        """
        from threadline.index import FreshIndex, open_read_only

        self.close()
        self.__dict__["_fresh"] = FreshIndex(open_read_only(self.index))
        self.__dict__.pop("found", None)

    @cached_property
    def found(self) -> list[Found]:
        """What lies in the homes; of side files, only those that tell of projects."""
        from threadline.find import look

        known = self._fresh
        if known is not None:
            from threadline.index import indexed_homes, problems_by_home

            return indexed_homes(known.connection, self.homes, problems_by_home(known.problems, self.homes))
        return [look(home, side_files=False) for home in self.homes]

    def prepare(self) -> None:
        """Have an index that is up to date, whatever it takes to make it.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        _ = self.connection

    @property
    def connection(self) -> sqlite3.Connection:
        """The index, up to date and to be read only; it is made where it is not there.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        known = self.__dict__.get("_fresh")  # what it would take does not matter here, so it is not asked for
        if known is None:
            from threadline.index import open_fresh

            with ProgressBar(self._showing, "Indexing") as bar:
                known = open_fresh(
                    self.index, self.homes, most=None, jobs=self._jobs, planned=bar.begin, progress=bar.advance
                )
            if known is None:  # without a bound, there is one or an error
                raise NotFound(f"There is no index at {str(self.index)!r}; run `threadline index refresh`.")
            self.__dict__["_fresh"] = known
            self.__dict__.pop("found", None)
        connection: sqlite3.Connection = known.connection
        return connection

    @cached_property
    def _fresh(self) -> FreshIndex | None:
        """The index, where it is up to date or can be made so at little cost."""
        if self._index is False or not self.homes:
            return None
        from threadline.index import open_fresh

        with ProgressBar(self._showing, "Indexing") as bar:
            return open_fresh(
                self.index, self.homes, most=self._most, jobs=self._jobs, planned=bar.begin, progress=bar.advance
            )


ProgressDisplay = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows how far long work has come: given what is done and how many bytes it is, it is told each part."""


class ProgressBar:
    """Shows how far work has come, once it is known how much there is."""

    def __init__(self, showing: ProgressDisplay, label: str) -> None:
        self._showing = showing
        self._label = label
        self._advance: Callable[[int], None] | None = None
        self._shown = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def begin(self, total: int) -> None:
        """So many bytes are to be read."""
        self._advance = self._shown.enter_context(self._showing(self._label, total))

    def advance(self, done: int) -> None:
        """So many more have been."""
        if self._advance is not None:
            self._advance(done)


def total_size(found: Iterable[Found]) -> int:
    """How many bytes the transcripts have that were found."""
    return sum(transcript.size for home in found for transcript in home.transcripts)


class TranscriptQueries(IndexedHomes):
    """Sessions, ledger, failures, secrets: each answer is the one that reading everything gives."""

    def overview(self) -> Overview:
        """All homes at a glance."""
        from threadline.find import count_side_files, look
        from threadline.summary import build_overview

        known = self._fresh
        if known is not None and not known.problems:
            from threadline.index import IndexedSummaries
            from threadline.index import indexed_homes as known_found

            counts = [count_side_files(home) for home in self.homes]
            looked = known_found(known.connection, self.homes, [count.problems for count in counts])
            source = IndexedSummaries(known.connection)
            return build_overview(looked, source=source, side_files=[count.kinds for count in counts])
        found = [look(home) for home in self.homes]
        if known is not None:
            from threadline.index import IndexedSummaries

            return build_overview(found, source=IndexedSummaries(known.connection))
        with self._showing("Reading", total_size(found)) as advance:
            return build_overview(found, jobs=self._jobs, progress=advance)

    def sessions(self, wanted: SessionFilter | None = None) -> SessionList:
        """The sessions that are wanted, newest first."""
        from threadline.summary import list_sessions

        known = self._fresh
        if known is not None:
            from threadline.index import IndexedSummaries

            return list_sessions(self.found, wanted, source=IndexedSummaries(known.connection))
        with self._showing("Reading", total_size(self.found)) as advance:
            return list_sessions(self.found, wanted, jobs=self._jobs, progress=advance)

    def path(self, name: str) -> Path:
        """The transcript of a session or an agent, by the start of its id; `last` is the newest session's.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.summary import SessionFilter

        if name != "last":
            return self.transcript(name).path
        newest = self.sessions(SessionFilter(limit=1)).sessions
        if not newest:
            raise NotFound("There is no session yet; name a home with --home, or a transcript.")
        return newest[0].path

    def transcript(self, name: str) -> Transcript:
        """The transcript of a session or an agent, by the start of its id.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.find import find_by_id

        return find_by_id(name, self.found)

    def directory_of(self, transcript: Path, directories: Sequence[str]) -> str | None:
        """Of the directories that a session was in, the one it belongs to: its folder is named after that.

        It is the first where none fits, and None where there are none.
        """
        from threadline.find import folder_matches

        folder = transcript.parent.name
        named = (directory for directory in directories if folder_matches(folder, directory))
        return next(named, directories[0] if directories else None)

    def at(self, path: str | Path, *, session: bool = False) -> Found:
        """All that lies at a path, of these homes or not: a home, a folder with transcripts, or one of them.

        With `session`, the path is a transcript's, and what else belongs to its session is found with it.

        Raises:
            NotFound: there is nothing at that path.
            Unreadable: it cannot be looked at.
            BadQuery: it is a file of a home, and no transcript.
        """
        from threadline.find import look_at_path

        found = look_at_path(path)
        if not session:
            return found
        from threadline.find import add_session_transcripts

        return add_session_transcripts(found)

    def session(self, name: str) -> Session:
        """A session, read whole: by the start of its id, or `last`.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.load import read

        return read(self.path(name))

    def ledger(self, prices: Rates | None = None, *, calls: bool = True) -> Ledger:
        """What was spent, every message counted once. Without `calls` it cannot be summed by tool.

        `prices` are the rates to take in place of those that come with threadline.
        """
        from threadline.account import shipped_rates

        known = self._fresh
        if known is not None and not known.problems:
            from threadline.index import IndexedLedger

            return IndexedLedger(known.connection, prices)
        from threadline.reports import build_ledger

        with self._showing("Reading", total_size(self.found)) as advance:
            return build_ledger(self.found, prices or shipped_rates(), jobs=self._jobs, progress=advance, calls=calls)

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """What these sessions are called, as far as that is known."""
        known = self._fresh
        if known is not None:
            from threadline.index import find_titles

            return find_titles(known.connection, sessions)
        from threadline.summary import read_session_titles

        return read_session_titles(self.found, sessions)

    def history(self, wanted: PromptFilter | None = None) -> PromptHistory:
        """What was typed in all projects, newest first: its `prompts()`, and whether their sessions are gone."""
        from threadline.reports import PromptHistory

        return PromptHistory(self.found, wanted)

    def failures(self, since: datetime | None = None) -> list[Failure]:
        """What went wrong in all sessions, in order of time, each once.

        With `since`, only transcripts that were written to from then on are read.
        """
        from threadline.reports import find_failures

        # What was last written before then holds nothing from after it.
        oldest = since.timestamp() * 1e9 if since is not None else 0
        written = [
            transcript
            for home in self.found
            for transcript in home.transcripts
            if transcript.size and transcript.mtime_ns >= oldest
        ]
        with self._showing("Reading", sum(one.size for one in written)) as advance:
            return find_failures(written, jobs=self._jobs, progress=advance)

    def look(self) -> list[Found]:
        """All that lies in the homes, side files too."""
        from threadline.find import look

        return [look(home) for home in self.homes]

    def examine(self, found: Sequence[Found] | None = None, *, check: bool = False) -> Examination:
        """Read everything, or what was `found` somewhere: what is wrong, what is new, how much was understood.

        With `check`, prove for each transcript that its entries give it back.
        """
        from threadline.reports import examine_homes

        found = found if found is not None else self.look()
        with self._showing("Reading", total_size(found)) as advance:
            return examine_homes(found, check=check, jobs=self._jobs, progress=advance)

    def scan(self, wanted: SecretFilter | None = None, found: Sequence[Found] | None = None) -> list[ScanResult]:
        """Which secrets stand in each file of the homes, or of what was `found` somewhere."""
        from threadline.reports import files_to_scan, scan_files

        files = files_to_scan(found if found is not None else self.look())
        with self._showing("Scanning", sum(file.size for file in files)) as advance:
            return list(scan_files(files, wanted, jobs=self._jobs, progress=advance))

    def recent(self, named: SessionRef, rates: Rates, *, since: datetime, seconds: float) -> RecentUsage:
        """A session and what was spent since a moment, for a line that is written anew on every prompt.

        An index is asked where there is one; without, transcripts are read for no longer than so many seconds.
        """
        from threadline.account import shipped_digest

        known = self._fresh if self.index.exists() and rates.digest == shipped_digest() else None
        if known is not None and not known.problems:
            from threadline.index import recent_usage

            return recent_usage(known.connection, named, rates, since=since)
        from threadline.reports import statusline

        return statusline.read_recent_usage(named, self.homes, rates, since=since, seconds=seconds)

    def watch(self, session: str | Path | None = None, *, since: datetime | None = None) -> Follower:
        """Follows the transcripts as they grow: of all sessions, or of one and its agents.

        A session is named by the start of its id, or by a path, which may be in another home or in none.

        Raises:
            NotFound: there is no such session.
        """
        from threadline.watch import Follower

        if session is None:
            return Follower(self.homes, since=since)
        if isinstance(session, Path):
            return _follow_path(session, since)
        found = self.transcript(session)
        if found.session is None:
            return Follower(path=found.path, since=since)
        return Follower(self.homes, session=found.session, since=since)


def _follow_path(path: Path, since: datetime | None) -> Follower:
    """Who follows the session of a transcript: wherever it goes, where that lies in a home."""
    from threadline.find import homes, transcript_at
    from threadline.watch import Follower

    place = path.absolute()
    found = transcript_at(place)
    if place.parents[1].name != "projects" or found.session is None:
        return Follower(path=place, since=since)
    return Follower(homes(place.parents[2]), session=found.session, since=since)


class SearchQueries(IndexedHomes):
    """Search, lists of calls and files, and questions in SQL."""

    def search(
        self,
        query: str,
        *,
        limit: int | None = 20,
        every: bool = False,
        sort: Sort = "rank",
        zone: tzinfo | None = None,
        now: datetime | None = None,
        near: bool = True,
        seconds: float | None = None,
    ) -> Hits:
        """What a query finds, best first; `docs/search.md` has the language. The index is made if it is not there.

        Without `near`, only what matches exactly: no other spelling, and no session that has the words apart.
        `seconds` is how long entries may be read where the index alone has no answer: then `cut_short` says that others
        may match as well.

        Raises:
            BadQuery: the query cannot be understood, or nothing was found in that time.
            IndexBusy: another process is making the index.
        """
        from threadline.search import search

        return search(
            self.connection, query, limit=limit, every=every, sort=sort, zone=zone, now=now, near=near, seconds=seconds
        )

    def why(self, query: str, *, zone: tzinfo | None = None, now: datetime | None = None) -> str:
        """Why a query found nothing, and what would have been found, in sentences for a person.

        Raises:
            BadQuery: the query cannot be understood.
            IndexBusy: another process is making the index.
        """
        from threadline.search import explain_no_hits

        return explain_no_hits(self.connection, query, zone=zone, now=now)

    def around(self, hit: Hit, count: int) -> tuple[list[Entry], list[Entry]]:
        """So many entries of the conversation before a hit, and after it."""
        from threadline.search import entries_around

        return entries_around(self.connection, hit, count)

    def typed(self, hit: Hit) -> str:
        """The whole prompt of a hit whose transcript is gone; empty where its history has it no more."""
        from threadline.search import read_prompt

        return read_prompt(hit.place)

    def facts(self, session: str) -> SessionFacts:
        """When a session was last written to, and what was typed first in it."""
        from threadline.index import find_session_facts

        return find_session_facts(self.connection, session)

    def calls(
        self,
        *,
        tools: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        session: str | None = None,
        project: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 50,
    ) -> list[ListedCall]:
        """Calls of all sessions, newest first, each once. The index is made if it is not there.

        `session` is the start of an id, `project` a text that the project's path holds.

        Raises:
            IndexBusy: another process is making the index.
        """
        from threadline.index import CallFilter, list_calls

        return list_calls(
            self.connection, CallFilter(session, project, since, until, limit), tools=tools, outcomes=outcomes
        )

    def never_called(self, tools: Iterable[str]) -> str | None:
        """A sentence about the first of some tools that no session called, and what may have been meant; else None."""
        from threadline.search import explain_unused_tool

        return explain_unused_tool(self.connection, tools)

    def call_input(self, call: ListedCall) -> Any:
        """What a call was given, read from its place; None where it is not there any more."""
        from threadline.index import read_call_input

        place = call.place
        return read_call_input(place.transcript, place.offset or 0, place.line, call.id)

    def files(
        self,
        path: str | None = None,
        *,
        session: str | None = None,
        project: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 50,
    ) -> list[ListedFile]:
        """Files that sessions touched, those touched last first. The index is made if it is not there.

        `path` is a file's path or the end of it; the others are those of `calls`.

        Raises:
            IndexBusy: another process is making the index.
        """
        from threadline.index import CallFilter, list_files

        return list_files(self.connection, CallFilter(session, project, since, until, limit), path)

    def sql(self, question: str, *, seconds: float = 60) -> list[dict[str, Any]]:
        """The rows that a SELECT on the index gives; `docs/index.md` has its tables. The index is made if need be.

        Raises:
            BadQuery: it cannot be understood, wants more than to read, or takes longer than that.
            IndexBusy: another process is making the index.
        """
        with self.asking() as ask:
            answer = ask(question, seconds)
            return [dict(zip(answer.columns, row, strict=True)) for row in answer]

    @contextmanager
    def asking(self, *, heap: int | None = None) -> Iterator[Callable[[str, float], QueryResult]]:
        """Any number of SELECTs on the index as it is at one moment: each with how many seconds it may take.

        `heap` is how many bytes SQLite may hold, for this and whatever else asks it in this process from now on.

        Raises:
            IndexBusy: another process is making the index.
            Unreadable: it is damaged.
        """
        from threadline.index import QueryResult, open_for_sql

        _ = self.connection  # it is up to date from here on
        with open_for_sql(self.index, heap) as connection:
            yield partial(QueryResult, connection)


class IndexQueries(IndexedHomes):
    """What the index has counted already. It is made where it is not there."""

    @property
    def generation(self) -> str:
        """What changes whenever the index tells something else."""
        from threadline.index import read_generation

        return read_generation(self.connection)

    def briefs(self) -> tuple[SessionBrief, ...]:
        """All sessions in few words, newest first."""
        from threadline.index import list_sessions

        return list_sessions(self.connection)

    def activity(self, since: datetime | None = None) -> Activity:
        """How much was done since a moment, or ever."""
        from threadline.index import count_activity

        return count_activity(self.connection, since)

    def call_counts(self, sessions: Collection[str] | None = None) -> dict[str, int]:
        """How many calls each of some sessions made, or each of all."""
        from threadline.index import count_calls

        return count_calls(self.connection, sessions)

    def tool_counts(self) -> dict[str, int]:
        """How often each tool was called, most often first."""
        from threadline.index import count_tools

        return count_tools(self.connection)

    def touches(self, path: str, limit: int) -> list[FileTouch]:
        """Each time that a file was touched, the last first."""
        from threadline.index import list_touches

        return list_touches(self.connection, path, limit)

    def problems(self) -> list[ListedProblem]:
        """What reading for the index found wrong, by kind and place."""
        from threadline.index import list_problems

        return list_problems(self.connection)

    def problem_counts(self) -> dict[str, int]:
        """How many problems of each kind there are, most first."""
        from threadline.index import count_problems

        return count_problems(self.connection)

    def size(self) -> int:
        """How many bytes all transcripts have."""
        from threadline.index import total_size

        return total_size(self.connection)

    def owner_of(self, transcript: str) -> tuple[str | None, str | None] | None:
        """The session and the agent whose transcript this is; None where the index does not know it."""
        from threadline.index import transcript_owner

        return transcript_owner(self.connection, transcript)

    def named_inside(self, session: str) -> Path | None:
        """The largest transcript whose rows name that session though its path does not."""
        from threadline.index import find_transcript_naming

        return find_transcript_naming(self.connection, session)

    def amounts(self, session: str) -> dict[str, Decimal]:
        """What each message in a session's transcripts cost, as far as a price is known."""
        from threadline.index import message_amounts

        return message_amounts(self.connection, session)

    def running(self) -> Collection[SessionId]:
        """The sessions that have a living process, which no transcript tells."""
        from threadline.find import list_live_session_files
        from threadline.summary import find_running_sessions

        registered = [side for home in self.homes for side in list_live_session_files(home)]
        return find_running_sessions(registered) if registered else ()

    @staticmethod
    def transcripts_of(main: Path) -> tuple[Sequence[Transcript], Sequence[Transcript]]:
        """The transcripts that belong to a session besides its main one: those below it, and those beside it."""
        from threadline.find import session_transcripts

        return session_transcripts(main)


class Archive(TranscriptQueries, SearchQueries, IndexQueries):
    """All that can be read in some homes. Close it when done, or use it in a `with` statement.

    The index is brought up to date where that takes reading no more than `most` bytes; where it takes more, the
    transcripts are read. `search` and `sql` make it whatever it takes. What only a keep still has is read from homes
    that `kept_homes` made; `keep_problems` says what of it could not be. With `apart`, it is left out on purpose: then
    the index is another one.
    """


class StaleTolerantArchive(Archive):
    """An archive that asks its index as it is where another process is writing it: to read everything takes long."""

    @cached_property
    def _fresh(self) -> FreshIndex | None:
        known = super()._fresh
        if known is not None or self._index is False or not self.index.exists():
            return known
        from threadline.index import FreshIndex, open_read_only

        try:
            return FreshIndex(open_read_only(self.index))
        except Error:
            return None

    @property
    def is_indexed(self) -> bool:
        """Whether there is an index to ask."""
        return self._fresh is not None
