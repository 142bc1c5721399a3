"""What is wanted of all sessions, where no single one was named."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from msgspec import Struct

_SHOWN = 50


class Everywhere(Struct, frozen=True):
    """Of which projects and times, and how much of it."""

    project: str | None
    since: datetime | None
    until: datetime | None
    limit: int

    @staticmethod
    def of(project: str | None, since: str | None, until: str | None, limit: int | None) -> Everywhere:
        """As it was asked for on the command line."""
        from threadline.cli.when import moment

        return Everywhere(
            project,
            moment(since) if since is not None else None,
            moment(until, end=True) if until is not None else None,
            limit or _SHOWN,
        )

    def wanted(self) -> dict[str, Any]:
        """The same, for the archive."""
        return {"project": self.project, "since": self.since, "until": self.until, "limit": self.limit}


def refuse_for_one(project: str | None, since: str | None, until: str | None, limit: int | None) -> None:
    """Options that ask about all sessions do not go with one."""
    given = {"--project": project, "--since": since, "--until": until, "--limit": limit}
    named = [name for name, value in given.items() if value is not None]
    if named:
        asks = "asks" if len(named) == 1 else "ask"
        raise click.UsageError(f"{' and '.join(named)} {asks} about all sessions; leave SESSION out.")
