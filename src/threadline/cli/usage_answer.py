"""What `threadline usage` answers: homes to a ledger, the ledger to a report, the report to whoever asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import tzinfo
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from threadline.account.ledger import Ledger
from threadline.account.rates import Rates, rates
from threadline.archive import Archive
from threadline.cli import FOUND, NOTHING, held, screen
from threadline.cli import output as out
from threadline.cli.opening import archive_of
from threadline.cli.reading import progress, say_no_home
from threadline.cli.usage_wanted import Wanted
from threadline.model.charge import Charge
from threadline.model.found import Found
from threadline.model.reported import ReportedDay
from threadline.survey.usage_report import Report, document, plain_row, prices, report

_NARROWEST = 40
_DAYS = ("day", "week", "month")
_WITH_NOTES = ("table", "json")
_STATISTICS = "stats-cache.json"


class Asked(Struct, frozen=True):
    """What was asked on the command line."""

    names: tuple[str, ...]
    wanted: Wanted
    zone: tzinfo
    prices: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    jobs: int | None = None
    mode: str = "computed"
    shape: Literal["daily", "weekly", "monthly", "session"] | None = None
    order: str | None = None
    limit: int | None = None
    output: str = "table"
    exact: bool = False
    colour: bool = True
    pager: bool = True


def answer(asked: Asked) -> int:
    """Print the answer; give the exit code."""
    table = rates(*asked.prices)
    with archive_of(asked.homes, asked.jobs) as archive:
        return _answered(asked, archive, table)


def _answered(asked: Asked, archive: Archive, table: Rates) -> int:
    if not archive.homes:
        say_no_home()
    whole = held(archive.ledger(table, calls="tool" in asked.names or asked.mode != "computed"))
    chosen = asked.wanted.of(whole, archive)
    if asked.mode == "reported":
        return _reported(asked, archive, whole, chosen)
    if asked.shape is not None:
        from threadline.account.ccusage import document as shaped

        out.print_json(shaped(chosen, asked.shape, zone=asked.zone))
        return FOUND  # as ccusage does: a script that reads an empty list has been answered
    _print(_report(asked, archive, whole, chosen), asked, archive)
    if len(chosen) or not archive.homes:
        return FOUND if len(chosen) else NOTHING
    return screen.nothing(asked.wanted.why(whole, archive, asked.zone))


def _size(found: Sequence[Found]) -> int:
    return sum(one.size for home in found for one in home.transcripts)


def _report(asked: Asked, archive: Archive, whole: Ledger, chosen: Ledger) -> Report:
    made = report(
        chosen,
        asked.names,
        asked.zone,
        extra=_read(asked, archive, chosen),
        order=asked.order,
        limit=asked.limit,
        since=asked.wanted.since,
        until=asked.wanted.until,
    )
    if asked.mode == "both":
        from threadline.cli.usage_reported import reported_for

        told = reported_for(archive.found, whole, chosen, asked.wanted, zone=asked.zone, jobs=asked.jobs)
        return replace(made, reported=told, is_part=asked.wanted != Wanted())
    return replace(made, swept=_swept(asked, archive, whole)) if asked.output in _WITH_NOTES else made


def _read(asked: Asked, archive: Archive, chosen: Ledger) -> Mapping[str, Callable[[Charge], str]]:
    """What only reading more tells, where it is asked for."""
    if "agent-type" in asked.names:
        from threadline.survey.agent_types import fill_agent_types

        fill_agent_types(archive.found, chosen)
    if "thread" not in asked.names:
        return {}
    from threadline.survey.threads import threads

    with progress("Threading", _size(archive.found)) as advance:
        return {"thread": threads(archive.found, chosen, jobs=asked.jobs, progress=advance)}


def _swept(asked: Asked, archive: Archive, whole: Ledger) -> tuple[ReportedDay, ...]:
    """The days of which only Claude Code's statistics tell; asked only where a report is of days."""
    named = (asked.wanted.project, asked.wanted.model, asked.wanted.session)
    is_of_days = asked.names[0] in _DAYS and all(value is None for value in named)
    if not is_of_days or not any((home.path / _STATISTICS).is_file() for home in archive.homes):
        return ()
    from threadline.survey.swept import swept
    from threadline.survey.usage_swept import is_within

    since, until = asked.wanted.since, asked.wanted.until
    alone = [Found(home, (), (), (), ()) for home in archive.homes]
    days = swept(archive.found if len(alone) > 1 else alone, whole, [], zone=asked.zone)
    return tuple(one for one in days if is_within(one, since, until, asked.zone))


def _print(made: Report, asked: Asked, archive: Archive) -> None:
    if asked.output == "json":
        out.print_json(document(made))
    elif asked.output != "table":
        out.print_rows(map(plain_row, made.rows), asked.output)
    elif made.total.charges:
        from threadline.cli.usage_page import page
        from threadline.render.bars import blocks_fit

        coloured = screen.colour(wanted=asked.colour)
        lines = page(
            made,
            width=max(_NARROWEST, out.terminal_width()),
            coloured=coloured,
            titles=_titles(archive, {row.keys["session"] for row in made.rows}) if "session" in made.by else {},
            exact=asked.exact,
            bars=sys.stdout.isatty(),
            ascii_only=not blocks_fit(os.environ, sys.stdout.encoding),
        )
        screen.show_lines(lines, coloured=coloured, pager=asked.pager)


def _titles(archive: Archive, sessions: Collection[str]) -> dict[str, str]:
    """What sessions are called, with a mark for those that only the keep still has."""
    kept = archive.kept
    titles = archive.titles(sessions)
    return {one: f"{'kept · ' if one in kept else ''}{titles.get(one, '')}" for one in sessions}


def _reported(asked: Asked, archive: Archive, whole: Ledger, chosen: Ledger) -> int:
    """What Claude Code reports, by itself."""
    from threadline.cli import usage_reported

    told = usage_reported.reported_for(archive.found, whole, chosen, asked.wanted, zone=asked.zone, jobs=asked.jobs)
    if asked.output == "json":
        from threadline.render.reconciliation import record

        rows = list(usage_reported.rows(told))
        total = usage_reported.figures(told)
        out.print_json({"total": total, "rows": rows, "prices": prices(whole), "reported": record(told)})
    elif asked.output != "table":
        out.print_rows(usage_reported.rows(told), asked.output)
    elif told.sessions or told.swept:
        coloured = screen.colour(wanted=asked.colour)
        titles = _titles(archive, {one.session for one in told.sessions[: asked.limit]})
        width = max(_NARROWEST, out.terminal_width())
        lines = usage_reported.page(told, width=width, coloured=coloured, titles=titles, limit=asked.limit)
        screen.show_lines(lines, coloured=coloured, pager=asked.pager)
    if told.sessions or told.swept or not archive.homes:
        return FOUND if told.sessions or told.swept else NOTHING
    many = f"{told.silent:,} {'session' if told.silent == 1 else 'sessions'}"
    return screen.nothing(f"No session of {many} reports an amount; see --mode computed.")
