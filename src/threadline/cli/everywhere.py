"""What is wanted of all sessions, or of one: times, projects, and how much of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

SHOWN = 50
"""How many are shown of all sessions, unless another number is asked for."""


class Everywhere(Struct, frozen=True):
    """Of which projects and times, and how much of it; no limit means all."""

    project: str | None
    since: datetime | None
    until: datetime | None
    limit: int | None

    @staticmethod
    def of(project: str | None, since: str | None, until: str | None, limit: int | None) -> Everywhere:
        """As it was asked for on the command line.

        Raises:
            BadQuery: a time is none, or nothing can lie between them.
        """
        from threadline.cli.when import moment
        from threadline.errors import BadQuery

        begin = moment(since) if since is not None else None
        end = moment(until, end=True) if until is not None else None
        if begin is not None and end is not None and begin > end:
            raise BadQuery(f"--since {since} is after --until {until}: nothing can lie between them.")
        return Everywhere(project, begin, end, limit)

    def wanted(self) -> dict[str, Any]:
        """The same, for the archive."""
        return {"project": self.project, "since": self.since, "until": self.until, "limit": self.limit}

    def of_one(self) -> Everywhere:
        """The same, where a session was named: a project is not asked for then."""
        if self.project is not None:
            raise click.UsageError("--project asks about all sessions; leave SESSION out.")
        return self

    def for_page(self, output: str) -> Everywhere:
        """The same for all sessions: a page has an end, a program gets all unless it asks for less."""
        return replace(self, limit=self.limit or (SHOWN if output == "table" else None))

    def holds(self, when: datetime | None) -> bool:
        """Whether a moment is in the time that is asked for; what has none is in no time."""
        if self.since is None and self.until is None:
            return True
        if when is None:
            return False
        return (self.since is None or when >= self.since) and (self.until is None or when <= self.until)
