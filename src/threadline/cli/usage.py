"""`threadline usage`: sum tokens and cost by day, model, project or any other key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct
from msgspec.structs import replace

from threadline.account import Ledger, Rates, load_rates
from threadline.archive import Archive
from threadline.cli import EXIT_NOTHING, EXIT_OK, keep_alive, screen
from threadline.cli import output as out
from threadline.cli.filters import ChargeFilter
from threadline.cli.options import home_option, jobs_option, output_options, timezone_option
from threadline.cli.resolve import open_archive
from threadline.cli.screen import pager_option, progress_bar, report_no_home
from threadline.model.charges import Charge
from threadline.model.homes import Found
from threadline.model.reconciliation import ReportedDay
from threadline.reports import UsageReport, build_usage_report, price_digests, row_as_json, usage_document

if TYPE_CHECKING:
    from datetime import datetime

_TIME_KEYS = frozenset({"day", "week", "month", "hour"})
_DEFAULT_LIMIT = 40
_CCUSAGE_REPORTS: dict[str, Literal["daily", "weekly", "monthly", "session"]] = {
    "day": "daily",
    "week": "weekly",
    "month": "monthly",
    "session": "session",
}
_EPILOG = """
\b
Examples:
  threadline usage                                by day
  threadline usage --since 'this month' --by model
  threadline usage --by project,model             with a subtotal a project
  threadline usage --by session --project app     what each session cost
  threadline usage --by tool --since 30d          shared out by tool calls
  threadline usage --by month --breakdown         each month by model
  threadline usage --by day --tz America/New_York
  threadline usage --mode both                    against what was reported
  threadline usage --json                         exact, for a program
  threadline usage --by month --shape ccusage     as `ccusage monthly --json`

\b
Keys for --by: day, week, month, hour, session, project, model, agent,
agent-type, tool, skill, branch, version, home, machine, part, thread.
Several nest.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--by", "by", multiple=True, metavar="KEY[,KEY…]", help="What to sum by; several nest. By default the day."
)
@click.option("--since", metavar="WHEN", help="Only from then on: 2026-11-03, 7d, yesterday, 'this week'.")
@click.option("--until", metavar="WHEN", help="Only up to then; a day is meant whole.")
@click.option("--project", metavar="TEXT", help="Only of projects whose path holds this.")
@click.option("--model", metavar="TEXT", help="Only of models whose id holds this.")
@click.option("--session", metavar="ID", help="Only of the session whose id starts so, its agents included; or `last`.")
@timezone_option
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@click.option("--breakdown", is_flag=True, help="Below each row, the same by model.")
@click.option("--apart", is_flag=True, help="Below each row, main thread, left branches, agents and side agents apart.")
@click.option(
    "--order", type=click.Choice(("time", "amount")), help="By default, times by time and all else by amount."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="No more values of the first key: the newest, or the greatest. "
    f"By default {_DEFAULT_LIMIT} in a table not by time.",
)
@click.option(
    "--mode",
    type=click.Choice(("computed", "reported", "both")),
    default="computed",
    help="Amounts from tokens and prices; what Claude Code itself reports; or both, and by what they differ.",
)
@click.option(
    "--shape",
    type=click.Choice(("ccusage",)),
    help="JSON in the shape of another program's, by day, week, month or session.",
)
@click.option("--exact", is_flag=True, help="Every digit in the table: no 12.3 M, no cents.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@jobs_option
@output_options
def usage(
    *,
    by: tuple[str, ...],
    since: str | None,
    until: str | None,
    project: str | None,
    model: str | None,
    session: str | None,
    tz: str | None,
    files: tuple[str, ...],
    breakdown: bool,
    apart: bool,
    order: str | None,
    limit: int | None,
    mode: str,
    shape: str | None,
    exact: bool,
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Sum what was spent: tokens and USD, every message counted once over all transcripts of all homes.

    Agents belong to their session. A model without a known price has tokens and no amount, and a line says so.
    """
    from threadline.cli.filters import ChargeFilter
    from threadline.model.times import parse_zone

    # Another program's rows have the models in them in any case.
    nested = breakdown and shape is None
    names = parse_keys(by or ("session" if mode == "reported" else "day",), apart=apart, breakdown=nested)
    _check_combination(names, shape, mode, output, limit)
    here = parse_zone(tz)
    wanted = ChargeFilter(
        project,
        model,
        session,
        _parse_moment(since, here) if since is not None else None,
        _parse_moment(until, here, end=True) if until is not None else None,
    )
    asked = UsageOptions(
        names=tuple(names),
        wanted=wanted,
        zone=here,
        prices=files,
        homes=homes,
        jobs=jobs,
        mode=mode,
        shape=_CCUSAGE_REPORTS[names[0]] if shape is not None else None,
        order=order,
        limit=limit or (_DEFAULT_LIMIT if output == "table" and names[0] not in _TIME_KEYS else None),
        output=output,
        exact=exact,
        colour=not no_color,
        pager=pager,
    )
    return run_usage(asked)


def _parse_moment(text: str, here: tzinfo, *, end: bool = False) -> datetime:
    from threadline.model.times import parse_moment

    return parse_moment(text, end=end, zone=here)


def _check_combination(names: Sequence[str], shape: str | None, mode: str, output: str, limit: int | None) -> None:
    if shape is not None:
        if names[1:] or names[0] not in _CCUSAGE_REPORTS:
            raise click.UsageError(
                f"--shape {shape} goes --by one of {', '.join(_CCUSAGE_REPORTS)}, and by that alone."
            )
        if output not in {"table", "json"} or mode != "computed" or limit is not None:
            raise click.UsageError(f"--shape {shape} is one JSON document of computed figures, with all of its rows.")
    if mode == "reported" and (shape is not None or names != ["session"]):
        raise click.UsageError("Claude Code reports an amount for a session: --mode reported goes --by session alone.")


def parse_keys(by: Sequence[str], *, apart: bool = False, breakdown: bool = False) -> list[str]:
    """The keys that were asked for, each once.

    Raises:
        BadQuery: there is no such key; the sentence says which was near.
    """
    from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS
    from threadline.errors import BadQuery

    known = (*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS)
    given = [word.strip().lower() for some in by for word in some.split(",") if word.strip()]
    for name in given:
        if name not in known:
            raise BadQuery(f"There is no key {name!r}; {_suggest_key(name, known)}")
    given = given or ["day"]
    given += ["thread"] if apart else []
    given += ["model"] if breakdown else []
    return list(dict.fromkeys(given))


def _suggest_key(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    spellings = {"daily": "day", "weekly": "week", "monthly": "month", "hourly": "hour", "type": "agent-type"}
    near = get_close_matches(name.replace("_", "-").rstrip("s"), known, n=1)
    meant = spellings.get(name) or (near[0] if near else None)
    return f"did you mean --by {meant}?" if meant else f"sum by {', '.join(known)}."


_MIN_WIDTH = 40
_DAY_KEYS = ("day", "week", "month")
_OUTPUTS_WITH_NOTES = ("table", "json")
_STATISTICS_FILE = "stats-cache.json"


class UsageOptions(Struct, frozen=True):
    """What was asked on the command line."""

    names: tuple[str, ...]
    wanted: ChargeFilter
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


def run_usage(asked: UsageOptions) -> int:
    """Print the answer; give the exit code."""
    table = load_rates(*asked.prices)
    with open_archive(asked.homes, asked.jobs) as archive:
        return _report_usage(asked, archive, table)


def _report_usage(asked: UsageOptions, archive: Archive, table: Rates) -> int:
    if not archive.homes:
        report_no_home()
    whole = keep_alive(archive.ledger(table, calls="tool" in asked.names or asked.mode != "computed"))
    chosen = asked.wanted.of(whole, archive)
    if asked.mode == "reported":
        return _print_reported(asked, archive, whole, chosen)
    if asked.shape is not None:
        from threadline.reports import ccusage_report as shaped

        out.print_json(shaped(chosen, asked.shape, zone=asked.zone))
        return EXIT_OK  # as ccusage does: a script that reads an empty list has been answered
    _print_report(_build_report(asked, archive, whole, chosen), asked, archive)
    if len(chosen) or not archive.homes:
        return EXIT_OK if len(chosen) else EXIT_NOTHING
    return screen.report_nothing(asked.wanted.why(whole, archive, asked.zone))


def _total_bytes(found: Sequence[Found]) -> int:
    return sum(transcript.size for home in found for transcript in home.transcripts)


def _build_report(asked: UsageOptions, archive: Archive, whole: Ledger, chosen: Ledger) -> UsageReport:
    made = build_usage_report(
        chosen,
        asked.names,
        asked.zone,
        extra=_extra_keys(asked, archive, chosen),
        order=asked.order,
        limit=asked.limit,
        since=asked.wanted.since,
        until=asked.wanted.until,
    )
    if asked.mode == "both":
        from threadline.cli.usage_reported import filter_reported

        told = filter_reported(archive.found, whole, chosen, asked.wanted, zone=asked.zone, jobs=asked.jobs)
        return replace(made, reported=told, is_part=asked.wanted != ChargeFilter())
    return replace(made, swept=_deleted_days(asked, archive, whole)) if asked.output in _OUTPUTS_WITH_NOTES else made


def _extra_keys(asked: UsageOptions, archive: Archive, chosen: Ledger) -> Mapping[str, Callable[[Charge], str]]:
    """What only reading more tells, where it is asked for."""
    if "agent-type" in asked.names:
        from threadline.reports import fill_agent_types

        fill_agent_types(archive.found, chosen)
    if "thread" not in asked.names:
        return {}
    from threadline.reports import thread_key

    with progress_bar("Threading", _total_bytes(archive.found)) as advance:
        return {"thread": thread_key(archive.found, chosen, jobs=asked.jobs, progress=advance)}


def _deleted_days(asked: UsageOptions, archive: Archive, whole: Ledger) -> tuple[ReportedDay, ...]:
    """The days of which only Claude Code's statistics tell; asked only where a report is of days."""
    named = (asked.wanted.project, asked.wanted.model, asked.wanted.session)
    is_of_days = asked.names[0] in _DAY_KEYS and all(value is None for value in named)
    if not is_of_days or not any((home.path / _STATISTICS_FILE).is_file() for home in archive.homes):
        return ()
    from threadline.reports import find_deleted_days, is_day_within

    since, until = asked.wanted.since, asked.wanted.until
    alone = [Found(home, (), (), (), ()) for home in archive.homes]
    days = find_deleted_days(archive.found if len(alone) > 1 else alone, whole, [], zone=asked.zone)
    return tuple(day for day in days if is_day_within(day, since, until, asked.zone))


def _print_report(made: UsageReport, asked: UsageOptions, archive: Archive) -> None:
    if asked.output == "json":
        out.print_json(usage_document(made))
    elif asked.output != "table":
        out.print_rows(map(row_as_json, made.rows), asked.output)
    elif made.total.charges:
        from threadline.cli.usage_table import usage_page
        from threadline.render import can_show_blocks

        coloured = screen.use_colour(wanted=asked.colour)
        lines = usage_page(
            made,
            width=max(_MIN_WIDTH, out.terminal_width()),
            coloured=coloured,
            titles=_session_titles(archive, {row.keys["session"] for row in made.rows}) if "session" in made.by else {},
            exact=asked.exact,
            bars=sys.stdout.isatty(),
            ascii_only=not can_show_blocks(os.environ, sys.stdout.encoding),
        )
        screen.print_lines(lines, coloured=coloured, pager=asked.pager)


def _session_titles(archive: Archive, sessions: Collection[str]) -> dict[str, str]:
    """What sessions are called, with a mark for those that only the keep still has."""
    kept = archive.kept_sessions
    titles = archive.titles(sessions)
    return {session: f"{'kept · ' if session in kept else ''}{titles.get(session, '')}" for session in sessions}


def _print_reported(asked: UsageOptions, archive: Archive, whole: Ledger, chosen: Ledger) -> int:
    """What Claude Code reports, by itself."""
    from threadline.cli import usage_reported

    told = usage_reported.filter_reported(archive.found, whole, chosen, asked.wanted, zone=asked.zone, jobs=asked.jobs)
    if asked.output == "json":
        from threadline.render import reconciliation_record

        rows = list(usage_reported.reported_rows(told))
        total = usage_reported.reported_total(told)
        out.print_json(
            {"total": total, "rows": rows, "prices": price_digests(whole), "reported": reconciliation_record(told)}
        )
    elif asked.output != "table":
        out.print_rows(usage_reported.reported_rows(told), asked.output)
    elif told.sessions or told.swept:
        coloured = screen.use_colour(wanted=asked.colour)
        titles = _session_titles(archive, {session.session for session in told.sessions[: asked.limit]})
        width = max(_MIN_WIDTH, out.terminal_width())
        lines = usage_reported.reported_page(told, width=width, coloured=coloured, titles=titles, limit=asked.limit)
        screen.print_lines(lines, coloured=coloured, pager=asked.pager)
    if told.sessions or told.swept or not archive.homes:
        return EXIT_OK if told.sessions or told.swept else EXIT_NOTHING
    many = f"{told.silent:,} {'session' if told.silent == 1 else 'sessions'}"
    return screen.report_nothing(f"No session of {many} reports an amount; see --mode computed.")
