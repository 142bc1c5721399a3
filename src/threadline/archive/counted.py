"""Counted: figures, names and places out of the index, for lists and pages that show many at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.archive.indexed import Indexed

if TYPE_CHECKING:
    from threadline.index.activity import Activity
    from threadline.index.briefs import Brief
    from threadline.index.problem_list import ListedProblem
    from threadline.index.touches import Touch
    from threadline.model.found import Transcript
    from threadline.model.ids import SessionId


class Counted(Indexed):
    """What the index has counted already. It is made where it is not there."""

    @property
    def generation(self) -> str:
        """What changes whenever the index tells something else."""
        from threadline.index.known import generation

        return generation(self.connection)

    def briefs(self) -> tuple[Brief, ...]:
        """All sessions in few words, newest first."""
        from threadline.index.briefs import briefs

        return briefs(self.connection)

    def activity(self, since: datetime | None = None) -> Activity:
        """How much was done since a moment, or ever."""
        from threadline.index.activity import activity

        return activity(self.connection, since)

    def call_counts(self, sessions: Collection[str] | None = None) -> dict[str, int]:
        """How many calls each of some sessions made, or each of all."""
        from threadline.index.activity import call_counts

        return call_counts(self.connection, sessions)

    def tool_counts(self) -> dict[str, int]:
        """How often each tool was called, most often first."""
        from threadline.index.activity import tool_counts

        return tool_counts(self.connection)

    def touches(self, path: str, limit: int) -> list[Touch]:
        """Each time that a file was touched, the last first."""
        from threadline.index.touches import touches

        return touches(self.connection, path, limit)

    def problems(self) -> list[ListedProblem]:
        """What reading for the index found wrong, by kind and place."""
        from threadline.index.problem_list import problems

        return problems(self.connection)

    def problem_counts(self) -> dict[str, int]:
        """How many problems of each kind there are, most first."""
        from threadline.index.problem_list import problem_counts

        return problem_counts(self.connection)

    def size(self) -> int:
        """How many bytes all transcripts have."""
        from threadline.index.whereabouts import size

        return size(self.connection)

    def owner_of(self, transcript: str) -> tuple[str | None, str | None] | None:
        """The session and the agent whose transcript this is; None where the index does not know it."""
        from threadline.index.whereabouts import owner

        return owner(self.connection, transcript)

    def named_inside(self, session: str) -> Path | None:
        """The largest transcript whose rows name that session though its path does not."""
        from threadline.index.whereabouts import named_inside

        return named_inside(self.connection, session)

    def amounts(self, session: str) -> dict[str, Decimal]:
        """What each message in a session's transcripts cost, as far as a price is known."""
        from threadline.index.amounts import amounts

        return amounts(self.connection, session)

    def running(self) -> Collection[SessionId]:
        """The sessions that have a living process, which no transcript tells."""
        from threadline.find.live_sessions import live_sessions
        from threadline.survey.running import running

        registered = [side for home in self.homes for side in live_sessions(home)]
        return running(registered) if registered else ()

    @staticmethod
    def transcripts_of(main: Path) -> tuple[Sequence[Transcript], Sequence[Transcript]]:
        """The transcripts that belong to a session besides its main one: those below it, and those beside it."""
        from threadline.find import session_transcripts

        return session_transcripts(main)
