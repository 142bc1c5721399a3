"""The archive: all that can be read here, through one door.

Every answer is the one that reading all transcripts gives. Where there is an index and it can be brought up to date at
little cost, it is asked instead; where not, the transcripts are read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import datetime, tzinfo
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from threadline.errors import NotFound
from threadline.find.home_places import homes as all_homes
from threadline.model.found import Found, Home

if TYPE_CHECKING:
    from threadline.account.ledger import Ledger
    from threadline.account.rates import Rates
    from threadline.index.fresh import Fresh
    from threadline.index.refresh import Refreshed
    from threadline.load import Session
    from threadline.model.hit import Hits
    from threadline.model.listed import ListedCall, ListedFile
    from threadline.search.ranking import Sort
    from threadline.survey.follow import Follower
    from threadline.survey.overview import Overview
    from threadline.survey.sessions import Listing, Wanted
    from threadline.survey.today import Named, Recent

LITTLE = 64 * 1024 * 1024
"""How many bytes are read for an index without having been asked for it: what takes about a second."""

Showing = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows how far long work has come: given what is done and how many bytes it is, it is told each part."""


def open(  # noqa: A001 - as `threadline.open`
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    index: bool | Path = True,
    jobs: int | None = None,
) -> Archive:
    """The archive of all homes that are found, or of those given.

    `index` says whether the index may be used, or where it lies. `jobs` is how many processes may read at once.

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
    return Archive(found, index=index, jobs=jobs)


class Archive:
    """All that can be read in some homes. Close it when done, or use it in a `with` statement.

    The index is brought up to date where that takes reading no more than `most` bytes; where it takes more, the
    transcripts are read. `search` and `sql` make it whatever it takes.
    """

    def __init__(
        self,
        homes: Sequence[Home],
        *,
        index: bool | Path = True,
        jobs: int | None = None,
        showing: Showing | None = None,
        most: int = LITTLE,
    ) -> None:
        self.homes = tuple(homes)
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

        return self._index if isinstance(self._index, Path) else place(home.path for home in self.homes)

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
        from threadline.find.at_path import by_id
        from threadline.survey.sessions import Wanted

        if name != "last":
            return by_id(name, self.found).path
        newest = self.sessions(Wanted(limit=1)).sessions
        if not newest:
            raise NotFound("There is no session yet; name a home with --home, or a transcript.")
        return newest[0].path

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
    ) -> Hits:
        """What a query finds, best first; `docs/search.md` has the language. The index is made if it is not there.

        Without `near`, only what matches exactly: no other spelling, and no session that has the words apart.

        Raises:
            BadQuery: the query cannot be understood.
            IndexBusy: another process is making the index.
        """
        from threadline.search.searching import search

        return search(self.connection, query, limit=limit, every=every, sort=sort, zone=zone, now=now, near=near)

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

        return calls(
            self.connection,
            tools=tools,
            outcomes=outcomes,
            session=session,
            project=project,
            since=since,
            until=until,
            limit=limit,
        )

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

        return files(self.connection, path, session=session, project=project, since=since, until=until, limit=limit)

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
        from threadline.index.asking import Answer, reading

        _ = self.connection  # it is up to date from here on
        with reading(self.index) as connection:
            answer = Answer(connection, question, seconds)
            return [dict(zip(answer.columns, row, strict=True)) for row in answer]

    def watch(self, session: str | None = None, *, since: datetime | None = None) -> Follower:
        """Follows the transcripts as they grow: of all sessions, or of one and its agents.

        Raises:
            NotFound: there is no such session.
        """
        from threadline.find.at_path import by_id
        from threadline.survey.follow import Follower

        if session is None:
            return Follower(self.homes, since=since)
        found = by_id(session, self.found)
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
        known = self._fresh
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
        return known.connection

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


def _size(found: Iterable[Found]) -> int:
    return sum(one.size for home in found for one in home.transcripts)
