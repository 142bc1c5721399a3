"""Options and table cells that commands about costs share: one session, or all sessions in a period."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from threadline.cli import output as out
from threadline.cli.options import (
    NO_LIMIT,
    complete_with,
    home_option,
    jobs_option,
    limit_option,
    output_options,
    prices_option,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive, read_rates
from threadline.model.places import Place, SessionId
from threadline.model.text import format_percent, short_id
from threadline.model.times import TimeRange

if TYPE_CHECKING:
    from threadline.account import Rates
    from threadline.archive import Archive
    from threadline.model.session import Session

_DEFAULT_LIMIT = 20
"""How many rows a table has, unless `--limit` says otherwise."""


def insight_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the session, the period, prices, `--limit` and the output of a command about costs."""
    for decorator in (
        output_options,
        home_option,
        jobs_option,
        prices_option,
        limit_option(f"Show at most N rows. Default: {_DEFAULT_LIMIT} in a table, otherwise all."),
        timezone_option,
        project_option("Across all sessions: only projects whose path contains TEXT."),
        until_option("Across all sessions: only what was paid up to and including WHEN."),
        since_option("Across all sessions: only what was paid from WHEN on: 2026-11-03, 7d, yesterday."),
        click.argument("session", default=None, required=False, shell_complete=complete_with("sessions")),
    ):
        function = decorator(function)
    return function


def default_limit(limit: int | None, output: str) -> int | None:
    """The limit in effect: that of `--limit`, otherwise the default of a table, and none for programs."""
    if limit is None and output == "table":
        return _DEFAULT_LIMIT
    return limit if limit != NO_LIMIT else None


class Period(Struct, frozen=True):
    """The sessions that a command is about: all of a period, unless one is named."""

    time: TimeRange
    project: str | None
    homes: tuple[str, ...]
    jobs: int | None
    rates: Rates | None

    @classmethod
    def parse(  # noqa: PLR0917 - the options of `insight_options`
        cls,
        session: str | None,
        since: str | None,
        until: str | None,
        project: str | None,
        zone: tzinfo,
        price_files: tuple[str, ...],
        homes: tuple[str, ...],
        jobs: int | None,
    ) -> Period:
        """Parse the options.

        Raises:
            UsageError: a session is named, and also a period or a project.
            BadQuery: a time cannot be understood.
        """
        time = TimeRange.parse(since, until, tz=zone)
        if session is not None and (time or project is not None):
            raise click.UsageError("--since, --until and --project are about all sessions; omit SESSION to use them.")
        return cls(time, project, homes, jobs, read_rates(price_files))

    @property
    def is_across_sessions(self) -> bool:
        """Whether it is about all sessions."""
        return bool(self.time) or self.project is not None

    @contextmanager
    def open(self) -> Iterator[tuple[Archive, dict[str, Any]]]:
        """Open the archive; the second value are the arguments for its questions."""
        with open_archive(self.homes, self.jobs, require_home=True) as archive:
            yield (
                archive,
                {"since": self.time.since, "until": self.time.until, "project": self.project, "prices": self.rates},
            )


def print_agents_only(archive: Archive, sessions: Iterable[str]) -> None:
    """Explain below a table why it has sessions that the list does not count, if it has any."""
    from threadline.reports import agents_only_note, sessions_without_main  # noqa: PLC0415 - only tables need it

    note = agents_only_note(sessions_without_main(sessions, archive.found))
    if note:
        click.echo(f"\n{out.wrap_text(note)}")


def with_session_heading(session: Session | None, table: str) -> str:
    """A table under the id and title of its session; across sessions, the table alone."""
    return f"{out.session_heading(session)}\n\n{table}" if session is not None else table


def format_count(number: int) -> str:
    """A number; nothing for 0."""
    return f"{number:,}" if number else ""


def format_share(part: Decimal, total: Decimal) -> str:
    """A part of a total in per cent."""
    return format_percent(part / total) if total else ""


def place_headings(session: Session | None) -> tuple[str, ...]:
    """The headings of `turn_cell` and `format_where`. Across sessions, turns are left out."""
    return ("turn", "line") if session is not None else ("place",)


def turn_cell(session: Session | None, turn: int | None) -> tuple[str, ...]:
    """The number of a turn; nothing across sessions."""
    return (str(turn) if turn is not None else "",) if session is not None else ()


def format_where(session: Session | None, id_: SessionId | None, place: Place | None) -> str:
    """A place in a table: its line; across sessions, with the start of the id of the session or agent."""
    if session is not None:
        return out.format_place(session, place)
    return out.format_transcript_place(place) if place is not None and place.line else short_id(id_)
