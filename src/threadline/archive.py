"""The archive: all that can be read here, through one door.

Every answer is the one that reading all transcripts gives. Where there is an index and it can be brought up to date at
little cost, it is asked instead; where not, the transcripts are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime, tzinfo
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from threadline.errors import NotFound
from threadline.find.home_places import homes as all_homes
from threadline.model.found import Found, Home, Transcript, TranscriptKind
from threadline.model.kept import KEEP

if TYPE_CHECKING:
    import sqlite3

    from threadline.account.ledger import Ledger
    from threadline.account.rates import Rates
    from threadline.index.asking import Answer
    from threadline.index.fresh import Fresh
    from threadline.index.refresh import Refreshed
    from threadline.index.session_facts import SessionFacts
    from threadline.index.status import Status
    from threadline.load import Session
    from threadline.model.entries import Entry
    from threadline.model.hit import Hit, Hits
    from threadline.model.listed import ListedCall, ListedFile
    from threadline.search.ranking import Sort
    from threadline.survey import history, scan
    from threadline.survey.doctor import Examination
    from threadline.survey.failures import Failure
    from threadline.survey.follow import Follower
    from threadline.survey.overview import Overview
    from threadline.survey.sessions import Listing, Wanted
    from threadline.survey.today import Named, Recent

LITTLE = 64 * 1024 * 1024
"""How many bytes are read for an index without having been asked for it: what takes about a second."""

_APART = "without the keep"

Showing = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows how far long work has come: given what is done and how many bytes it is, it is told each part."""


def open(  # noqa: A001 - as `threadline.open`
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    index: bool | Path = True,
    jobs: int | None = None,
    showing: Showing | None = None,
    most: int = LITTLE,
    keep: bool | Path = True,
) -> Archive:
    """The archive of all homes that are found, or of those given.

    `index` says whether the index may be used, or where it lies. `jobs` is how many processes may read at once,
    `showing` shows how far long work has come, and `most` is how many bytes may be read to bring the index up to date.
    `keep` says whether sessions are read that only the keep still has, or where that lies; of homes that are given,
    only theirs.

    >>> import threadline
    >>> with threadline.open() as archive:  # doctest: +SKIP
    ...     for hit in archive.search("flaky login test").hits:
    ...         print(hit.session, hit.snippet)

    Raises:
        NotFound: a home that was given is not there.
    """
    given = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    named = [one for one in given if isinstance(one, Home)]
    others = [one for one in given if not isinstance(one, Home)]
    found = (*named, *(all_homes(*others) if others or not named else ()))
    folder, is_apart = _keep(keep)
    made = Archive(found, index=index, jobs=jobs, showing=showing, most=most, apart=is_apart)
    if folder is not None:
        made.read_keep(folder, only=bool(given))
    return made


class Archive:
    """All that can be read in some homes. Close it when done, or use it in a `with` statement.

    The index is brought up to date where that takes reading no more than `most` bytes; where it takes more, the
    transcripts are read. `search` and `sql` make it whatever it takes. What only a keep still has is read from homes
    that `kept_homes` made; `keep_problems` says what of it could not be. With `apart`, it is left out on purpose: then
    the index is another one.
    """

    def __init__(
        self,
        homes: Sequence[Home],
        *,
        index: bool | Path = True,
        jobs: int | None = None,
        showing: Showing | None = None,
        most: int = LITTLE,
        apart: bool = False,
    ) -> None:
        self.homes = tuple(homes)
        self.keep_problems: tuple[str, ...] = ()
        self.keep: Path | None = None
        self.is_apart = apart
        self._only = False
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
        from threadline.index.store import place

        if isinstance(self._index, Path):
            return self._index
        # Not by the kept homes: a session that was deleted is one that moved, and its entries stay.
        return place([*(home.path for home in self.homes if home.source != KEEP), *([_APART] if self.is_apart else [])])

    def read_keep(self, folder: Path, *, only: bool = False) -> None:
        """Read what only the keep in a folder still has, too; with `only`, of these homes alone."""
        from threadline.index.store import cache_folder
        from threadline.keep.kept_home import kept_homes

        living = [home for home in self.homes if home.source != KEEP]
        with _Bar(self._showing, "Unpacking") as bar:
            kept = kept_homes(folder, living, cache_folder(), only=only, planned=bar.begin, progress=bar.advance)
        self.keep, self._only = folder, only
        self.homes = (*living, *kept.homes)
        self.keep_problems = kept.problems

    @property
    def kept(self) -> frozenset[str]:
        """The sessions that only the keep still has."""
        if all(home.source != KEEP for home in self.homes):
            return frozenset()
        kept = (one for found in self.found if found.home.source == KEEP for one in found.transcripts)
        return frozenset(one.session for one in kept if one.kind is TranscriptKind.MAIN and one.session is not None)

    def look_into_keep(self) -> tuple[Home, ...]:
        """The homes by now: what a living one has lost since is in a kept one."""
        if self.keep is not None:
            self.read_keep(self.keep, only=self._only)
        return self.homes

    def refresh(self) -> Refreshed:
        """Bring the index up to date, or make it.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        from threadline.index.refresh import refresh

        self.close()
        with _Bar(self._showing, "Indexing") as bar:
            return refresh(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def rebuild(self) -> Refreshed:
        """Make another index from nothing, and then put it in the place of the one that is there, however that stands.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it may not be written.
        """
        from threadline.index.refresh import rebuild

        self.close()
        with _Bar(self._showing, "Indexing") as bar:
            return rebuild(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def status(self) -> Status:
        """How the index stands; it is left as it is.

        Raises:
            Unreadable: it is damaged.
        """
        from threadline.index.status import status

        return status(self.index, self.homes)

    def take_as_it_is(self) -> None:
        """Ask the index as it is from now on, and do not read what changed since.

        Raises:
            Unreadable: it is damaged, or there is none.
        """
        from threadline.index.fresh import Fresh
        from threadline.index.store import open_to_read

        self.close()
        self.__dict__["_fresh"] = Fresh(open_to_read(self.index))
        self.__dict__.pop("found", None)

    def overview(self) -> Overview:
        """All homes at a glance."""
        from threadline.find.looking import look, side_file_counts
        from threadline.survey.overview import overview

        known = self._fresh
        if known is not None and not known.problems:
            from threadline.index.found import found as known_found
            from threadline.index.lights import Lights

            counts = [side_file_counts(home) for home in self.homes]
            looked = known_found(known.connection, self.homes, [one.problems for one in counts])
            glances = Lights(known.connection).glances
            return overview(looked, glances=glances, side_files=[one.kinds for one in counts])
        found = [look(home) for home in self.homes]
        if known is not None:
            from threadline.index.lights import Lights

            return overview(found, glances=Lights(known.connection).glances)
        with self._showing("Reading", _size(found)) as advance:
            return overview(found, jobs=self._jobs, progress=advance)

    def sessions(self, wanted: Wanted | None = None) -> Listing:
        """The sessions that are wanted, newest first."""
        from threadline.survey.sessions import sessions

        known = self._fresh
        if known is not None:
            from threadline.index.lights import Lights

            return sessions(self.found, wanted, reader=Lights(known.connection))
        with self._showing("Reading", _size(self.found)) as advance:
            return sessions(self.found, wanted, jobs=self._jobs, progress=advance)

    def path(self, name: str) -> Path:
        """The transcript of a session or an agent, by the start of its id; `last` is the newest session's.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.survey.sessions import Wanted

        if name != "last":
            return self.transcript(name).path
        newest = self.sessions(Wanted(limit=1)).sessions
        if not newest:
            raise NotFound("There is no session yet; name a home with --home, or a transcript.")
        return newest[0].path

    def transcript(self, name: str) -> Transcript:
        """The transcript of a session or an agent, by the start of its id.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.find.at_path import by_id

        return by_id(name, self.found)

    def directory_of(self, transcript: Path, directories: Sequence[str]) -> str | None:
        """Of the directories that a session was in, the one it belongs to: its folder is named after that.

        It is the first where none fits, and None where there are none.
        """
        from threadline.find.folder_names import folder_matches

        folder = transcript.parent.name
        named = (one for one in directories if folder_matches(folder, one))
        return next(named, directories[0] if directories else None)

    def at(self, path: str | Path, *, session: bool = False) -> Found:
        """All that lies at a path, of these homes or not: a home, a folder with transcripts, or one of them.

        With `session`, the path is a transcript's, and what else belongs to its session is found with it.

        Raises:
            NotFound: there is nothing at that path.
            Unreadable: it cannot be looked at.
            BadQuery: it is a file of a home, and no transcript.
        """
        from threadline.find.at_path import at

        found = at(path)
        if not session:
            return found
        from threadline.find.session_files import with_session

        return with_session(found)

    def session(self, name: str) -> Session:
        """A session, read whole: by the start of its id, or `last`.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.load import read

        return read(self.path(name))

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
        from threadline.search.searching import search

        return search(
            self.connection, query, limit=limit, every=every, sort=sort, zone=zone, now=now, near=near, seconds=seconds
        )

    def why(self, query: str, *, zone: tzinfo | None = None, now: datetime | None = None) -> str:
        """Why a query found nothing, and what would have been found, in sentences for a person.

        Raises:
            BadQuery: the query cannot be understood.
            IndexBusy: another process is making the index.
        """
        from threadline.search.why import why

        return why(self.connection, query, zone=zone, now=now)

    def around(self, hit: Hit, count: int) -> tuple[list[Entry], list[Entry]]:
        """So many entries of the conversation before a hit, and after it."""
        from threadline.search.around import around

        return around(self.connection, hit, count)

    def typed(self, hit: Hit) -> str:
        """The whole prompt of a hit whose transcript is gone; empty where its history has it no more."""
        from threadline.search.typed import text_at

        return text_at(hit.place)

    def facts(self, session: str) -> SessionFacts:
        """When a session was last written to, and what was typed first in it."""
        from threadline.index.session_facts import session_facts

        return session_facts(self.connection, session)

    def ledger(self, prices: Rates | None = None, *, calls: bool = True) -> Ledger:
        """What was spent, every message counted once. Without `calls` it cannot be summed by tool.

        `prices` are the rates to take in place of those that come with threadline.
        """
        from threadline.account.rates import shipped

        known = self._fresh
        if known is not None and not known.problems:
            from threadline.index.ledger import IndexedLedger

            return IndexedLedger(known.connection, prices)
        from threadline.survey.ledger import ledger_of

        with self._showing("Reading", _size(self.found)) as advance:
            return ledger_of(self.found, prices or shipped(), jobs=self._jobs, progress=advance, calls=calls)

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
        from threadline.index.call_list import calls
        from threadline.index.wanted import Wanted

        return calls(self.connection, Wanted(session, project, since, until, limit), tools=tools, outcomes=outcomes)

    def never_called(self, tools: Iterable[str]) -> str | None:
        """A sentence about the first of some tools that no session called, and what may have been meant; else None."""
        from threadline.search.missed import never_called

        return never_called(self.connection, tools)

    def call_input(self, call: ListedCall) -> Any:
        """What a call was given, read from its place; None where it is not there any more."""
        from threadline.index.answer import input_at

        place = call.place
        return input_at(place.transcript, place.offset or 0, place.line, call.id)

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
        from threadline.index.file_list import files
        from threadline.index.wanted import Wanted

        return files(self.connection, Wanted(session, project, since, until, limit), path)

    def history(self, wanted: history.Wanted | None = None) -> history.History:
        """What was typed in all projects, newest first: its `prompts()`, and whether their sessions are gone."""
        from threadline.survey.history import History

        return History(self.found, wanted)

    def failures(self, since: datetime | None = None) -> list[Failure]:
        """What went wrong in all sessions, in order of time, each once.

        With `since`, only transcripts that were written to from then on are read.
        """
        from threadline.survey.failures import everywhere

        # What was last written before then holds nothing from after it.
        oldest = since.timestamp() * 1e9 if since is not None else 0
        written = [one for home in self.found for one in home.transcripts if one.size and one.mtime_ns >= oldest]
        with self._showing("Reading", sum(one.size for one in written)) as advance:
            return everywhere(written, jobs=self._jobs, progress=advance)

    def look(self) -> list[Found]:
        """All that lies in the homes, side files too."""
        from threadline.find.looking import look

        return [look(home) for home in self.homes]

    def examine(self, found: Sequence[Found] | None = None, *, check: bool = False) -> Examination:
        """Read everything, or what was `found` somewhere: what is wrong, what is new, how much was understood.

        With `check`, prove for each transcript that its entries give it back.
        """
        from threadline.survey.doctor import examine_found

        found = found if found is not None else self.look()
        with self._showing("Reading", _size(found)) as advance:
            return examine_found(found, check=check, jobs=self._jobs, progress=advance)

    def scan(self, wanted: scan.Wanted | None = None, found: Sequence[Found] | None = None) -> list[scan.Scanned]:
        """Which secrets stand in each file of the homes, or of what was `found` somewhere."""
        from threadline.survey.scan import files_of, scan

        files = files_of(found if found is not None else self.look())
        with self._showing("Scanning", sum(one.size for one in files)) as advance:
            return list(scan(files, wanted, jobs=self._jobs, progress=advance))

    def recent(self, named: Named, rates: Rates, *, since: datetime, seconds: float) -> Recent:
        """A session and what was spent since a moment, for a line that is written anew on every prompt.

        An index is asked where there is one; without, transcripts are read for no longer than so many seconds.
        """
        from threadline.account.shipped_prices import shipped_digest

        known = self._fresh if self.index.exists() and rates.digest == shipped_digest() else None
        if known is not None and not known.problems:
            from threadline.index.recent import recent

            return recent(known.connection, named, rates, since=since)
        from threadline.survey import today

        return today.recent(named, self.homes, rates, since=since, seconds=seconds)

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """What these sessions are called, as far as that is known."""
        known = self._fresh
        if known is not None:
            from threadline.index.titles import titles

            return titles(known.connection, sessions)
        from threadline.survey.session_titles import session_titles

        return session_titles(self.found, sessions)

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
    def asking(self, *, heap: int | None = None) -> Iterator[Callable[[str, float], Answer]]:
        """Any number of SELECTs on the index as it is at one moment: each with how many seconds it may take.

        `heap` is how many bytes SQLite may hold, for this and whatever else asks it in this process from now on.

        Raises:
            IndexBusy: another process is making the index.
            Unreadable: it is damaged.
        """
        from threadline.index.asking import Answer, reading

        _ = self.connection  # it is up to date from here on
        with reading(self.index, heap) as connection:
            yield partial(Answer, connection)

    def watch(self, session: str | Path | None = None, *, since: datetime | None = None) -> Follower:
        """Follows the transcripts as they grow: of all sessions, or of one and its agents.

        A session is named by the start of its id, or by a path, which may be in another home or in none.

        Raises:
            NotFound: there is no such session.
        """
        from threadline.survey.follow import Follower

        if session is None:
            return Follower(self.homes, since=since)
        if isinstance(session, Path):
            return _at(session, since)
        found = self.transcript(session)
        if found.session is None:
            return Follower(path=found.path, since=since)
        return Follower(self.homes, session=found.session, since=since)

    @cached_property
    def found(self) -> list[Found]:
        """What lies in the homes; of side files, only those that tell of projects."""
        from threadline.find.looking import look

        known = self._fresh
        if known is not None:
            from threadline.index.found import found, parted

            return found(known.connection, self.homes, parted(known.problems, self.homes))
        return [look(home, side_files=False) for home in self.homes]

    @property
    def connection(self) -> sqlite3.Connection:
        """The index, up to date and to be read only; it is made where it is not there.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        known = self.__dict__.get("_fresh")  # what it would take does not matter here, so it is not asked for
        if known is None:
            from threadline.index.fresh import fresh

            with _Bar(self._showing, "Indexing") as bar:
                known = fresh(
                    self.index, self.homes, most=None, jobs=self._jobs, planned=bar.begin, progress=bar.advance
                )
            if known is None:  # without a bound, there is one or an error
                raise NotFound(f"There is no index at {str(self.index)!r}; run `threadline index refresh`.")
            self.__dict__["_fresh"] = known
            self.__dict__.pop("found", None)
        connection: sqlite3.Connection = known.connection
        return connection

    @cached_property
    def _fresh(self) -> Fresh | None:
        """The index, where it is up to date or can be made so at little cost."""
        if self._index is False or not self.homes:
            return None
        from threadline.index.fresh import fresh

        with _Bar(self._showing, "Indexing") as bar:
            return fresh(
                self.index, self.homes, most=self._most, jobs=self._jobs, planned=bar.begin, progress=bar.advance
            )


class _Bar:
    """Shows how far work has come, once it is known how much there is."""

    def __init__(self, showing: Showing, label: str) -> None:
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


def _at(path: Path, since: datetime | None) -> Follower:
    """Who follows the session of a transcript: wherever it goes, where that lies in a home."""
    from threadline.find.session_files import transcript_at
    from threadline.survey.follow import Follower

    place = path.absolute()
    found = transcript_at(place)
    if place.parents[1].name != "projects" or found.session is None:
        return Follower(path=place, since=since)
    return Follower(all_homes(place.parents[2]), session=found.session, since=since)


def clear_kept(folder: Path) -> None:
    """Throw away what was put back from the keep in a folder, after something was forgotten: it is made again."""
    from threadline.index.store import cache_folder
    from threadline.keep.kept_home import clear

    clear(folder, cache_folder())


def leaves_keep(asked: bool) -> bool:
    """Whether there is a keep that is left out."""
    return _keep(asked)[1]


def _keep(asked: bool | Path) -> tuple[Path | None, bool]:
    """The folder of the keep to be read, if there is one; and whether there is one that is left out."""
    if isinstance(asked, Path):
        return asked, False
    from threadline.keep.folder import is_read, keep_folder

    folder = keep_folder()
    if folder is None:
        return None, False
    is_wanted = asked and is_read()
    return (Path(folder), False) if is_wanted else (None, True)


def _size(found: Iterable[Found]) -> int:
    return sum(one.size for home in found for one in home.transcripts)
