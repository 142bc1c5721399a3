"""Wanted: of which sessions, projects and times something is listed, and how much of it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Wanted(Struct, frozen=True):
    """All that fits every one of these; no limit means all of it.

    `session` is the start of an id, `project` a text that the project's path holds, whatever its case.
    """

    session: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = 50

    @property
    def is_of_some(self) -> bool:
        """Whether it is asked of some transcripts, not of all."""
        return self.session is not None or self.project is not None

    def seconds(self, column: str) -> list[str]:
        """The time as conditions of SQL, on a column of whole seconds."""
        times = ((">=", self.since), ("<=", self.until))
        return [f"{column} {sign} {int(when.timestamp())}" for sign, when in times if when is not None]

    def holds(self, when: datetime | None) -> bool:
        """Whether a moment is in the time that is asked for; what has none is in no time."""
        if self.since is None and self.until is None:
            return True
        if when is None:
            return False
        return (self.since is None or when >= self.since) and (self.until is None or when <= self.until)
