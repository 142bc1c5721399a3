"""Searched: what only an index can tell in good time, and which is therefore made where it is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any

from threadline.archive.indexed import Indexed

if TYPE_CHECKING:
    from threadline.index.asking import Answer
    from threadline.index.session_facts import SessionFacts
    from threadline.model.entries import Entry
    from threadline.model.hit import Hit, Hits
    from threadline.model.listed import ListedCall, ListedFile
    from threadline.search.ranking import Sort


class Searched(Indexed):
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
