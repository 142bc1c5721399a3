"""`threadline usage`: tokens and costs by day, session, model, project or any other key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct
from msgspec.structs import replace

from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS, TIME_KEYS, Ledger
from threadline.archive import Archive
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.cost.usage_table import usage_page
from threadline.cli.options import (
    colour_option,
    complete_with,
    exact_tools_option,
    home_option,
    jobs_option,
    limit_option,
    output_options,
    pager_option,
    prices_option,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive, read_rates
from threadline.errors import Ambiguous, BadQuery, Error, did_you_mean
from threadline.files import BUDGETS, settings_file
from threadline.model.homes import Found
from threadline.model.ledger import NONE, Charge
from threadline.model.places import match_ids
from threadline.model.reported_costs import ReportedDay
from threadline.model.text import count, join_some, short_id
from threadline.model.times import TimeRange, in_zone
from threadline.render import can_show_blocks
from threadline.reports import (
    UsageReport,
    add_session_key,
    build_usage_report,
    price_digests,
    row_as_json,
    usage_document,
)

if TYPE_CHECKING:
    from threadline.account import Rates
    from threadline.model.budgets import BudgetUse

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
  threadline usage --by project,model             with a subtotal per project
  threadline usage --by session --project app     cost of each session
  threadline usage --by tool --since 30d          divided among tool calls
  threadline usage --by month --breakdown         each month by model
  threadline usage --by day --tz America/New_York
  threadline usage --by turn --session last       the most expensive prompts
  threadline usage --mode both                    compare with reported costs
  threadline usage --json                         exact, for a program
  threadline usage --by month --shape ccusage     as ccusage monthly --json

\b
Keys for --by: day, week, month, hour, session, transcript, project,
model, agent, agent-type, tool, skill, branch, version, home, machine,
part, service-tier, turn, thread.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--by",
    multiple=True,
    metavar="KEY[,KEY…]",
    shell_complete=complete_with("keys"),
    help="Group by these keys, nested. Default: day.",
)
@since_option("Only from WHEN on: 2026-11-03, 7d, yesterday, 'this week'.")
@until_option()
@project_option()
@click.option(
    "--model", metavar="TEXT", shell_complete=complete_with("models"), help="Only models whose id contains TEXT."
)
@click.option(
    "--session",
    metavar="ID",
    shell_complete=complete_with("sessions"),
    help="Only this session and its agents. ID may be a prefix, or `last`.",
)
@timezone_option
@prices_option
@exact_tools_option
@click.option("--breakdown", is_flag=True, help="Split each row by model.")
@click.option("--apart", is_flag=True, help="Split each row into main thread, abandoned branches, agents, side agents.")
@click.option(
    "--sort",
    type=click.Choice(("time", "amount")),
    help="Order of groups. Default: time for dates, amount otherwise.",
)
@click.option("--order", type=click.Choice(("time", "amount")), hidden=True)
@limit_option(
    f"Show at most N groups of the first key. Default: {_DEFAULT_LIMIT} in a table, or all when grouping by date."
)
@click.option(
    "--mode",
    type=click.Choice(("computed", "reported", "both")),
    default="computed",
    help="Amounts computed from tokens and prices, those Claude Code reports, or both compared. Default: computed.",
)
@click.option("--shape", type=click.Choice(("ccusage",)), help="Print ccusage's JSON, by day, week, month or session.")
@click.option("--exact", is_flag=True, help="Show every digit in the table: no 12.3M, no rounded cents.")
@colour_option
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
    zone: tzinfo,
    price_files: tuple[str, ...],
    exact_tools: bool,
    breakdown: bool,
    apart: bool,
    sort: str | None,
    order: str | None,
    limit: int | None,
    mode: str,
    shape: str | None,
    exact: bool,
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Report tokens and cost by day, project, model, session and more.

    Every message is counted once across all transcripts of all homes. Agents count towards their session. A model
    without a known price has tokens but no amount, and a note says so.
    """
    # ccusage's rows include the models anyway.
    keys = parse_keys(
        by or ("session" if mode == "reported" else "day",), apart=apart, breakdown=breakdown and shape is None
    )
    keys = add_session_key(keys, is_one_session=session is not None)
    _check_combination(keys, shape, mode, output, limit)
    options = UsageOptions(
        keys=tuple(keys),
        criteria=ChargeFilter(project, model, session, TimeRange.parse(since, until, tz=zone)),
        zone=zone,
        price_files=price_files,
        exact_tools=exact_tools,
        homes=homes,
        jobs=jobs,
        mode=mode,
        shape=_CCUSAGE_REPORTS[keys[0]] if shape is not None else None,
        sort=sort or order,
        limit=limit or (_DEFAULT_LIMIT if output == "table" and keys[0] not in TIME_KEYS else None),
        output=output,
        exact=exact,
        colour=colour,
        pager=pager,
    )
    rates = read_rates(options.price_files)
    with open_archive(options.homes, options.jobs) as archive:
        return _report_usage(options, archive, rates)


def _check_combination(keys: Sequence[str], shape: str | None, mode: str, output: str, limit: int | None) -> None:
    if shape is not None:
        if keys[1:] or keys[0] not in _CCUSAGE_REPORTS:
            raise click.UsageError(f"--shape {shape} requires a single --by key: {', '.join(_CCUSAGE_REPORTS)}.")
        if output not in {"table", "json"} or mode != "computed" or limit is not None:
            raise click.UsageError(
                f"--shape {shape} cannot be combined with --jsonl, --csv, --limit, or another --mode than computed."
            )
    if mode == "reported" and (shape is not None or keys != ["session"]):
        raise click.UsageError("--mode reported requires --by session: Claude Code reports costs per session.")
    if mode == "both" and output in {"jsonl", "csv"}:
        raise click.UsageError(
            f"--mode both cannot be combined with --{output}. Use --json; or --mode reported, whose rows have both."
        )


def parse_keys(by: Sequence[str], *, apart: bool = False, breakdown: bool = False) -> list[str]:
    """The keys to group by, each once.

    Raises:
        BadQuery: a key is unknown; the message suggests one.
    """
    choices = (*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS)
    keys = split_keys(by)
    for key in keys:
        if key not in choices:
            raise BadQuery(f"Unknown key {key!r}. {_suggest_key(key, choices)}")
    keys = keys or ["day"]
    keys += ["thread"] if apart else []
    keys += ["model"] if breakdown else []
    return list(dict.fromkeys(keys))


def split_keys(by: Sequence[str]) -> list[str]:
    """The keys of `--by`, which may be repeated and may have several, each once.

    >>> split_keys(["Project,model", "agent_type", "model"])
    ['project', 'model', 'agent-type']
    """
    keys = (word.strip().lower().replace("_", "-") for words in by for word in words.split(","))
    return list(dict.fromkeys(filter(None, keys)))


def _suggest_key(word: str, choices: Sequence[str]) -> str:
    spellings = {"daily": "day", "weekly": "week", "monthly": "month", "hourly": "hour"}
    spellings |= {"type": "agent-type", "tier": "service-tier"}
    match = spellings.get(word) or did_you_mean(word.rstrip("s"), choices)
    return f"Did you mean --by {match}?" if match else f"Keys: {', '.join(choices)}."


class ChargeFilter(Struct, frozen=True):
    """Which charges to sum: those that match every criterion. `session` is the start of an id, or `last`."""

    project: str | None = None
    model: str | None = None
    session: str | None = None
    time: TimeRange = TimeRange()

    def apply(self, ledger: Ledger, archive: Archive) -> Ledger:
        """The ledger of the charges that match."""
        matches = self._filter_session(self._filter_model(self._filter_project(ledger)), ledger, archive)
        return matches.where(since=self.time.since, until=self.time.until) if self.time else matches

    def explain_nothing(self, ledger: Ledger, archive: Archive | None, zone: tzinfo) -> str:
        """Why no charge matches, and what would. Without an archive, the ledger is that of a lake."""
        if not ledger.charges:
            where = join_some(str(home.path) for home in archive.homes) if archive is not None else "the lake"
            return f"No usage: no model replied in {where}."
        options = {
            "project": self.project,
            "model": self.model,
            "session": self.session,
            "since": self.time.since,
            "until": self.time.until,
        }
        hint = self._suggest_filter(ledger, archive, zone)
        return out.no_match_message("charge", ledger.total.charges, options, hint)

    def _suggest_filter(self, ledger: Ledger, archive: Archive | None, zone: tzinfo) -> str:
        """The values that exist, of the first criterion that matches nothing."""
        project = self._filter_project(ledger)
        if not project.charges:
            return f"Projects: {join_some(_key_values(ledger, 'project'))}."
        model = self._filter_model(project)
        if not model.charges:
            return f"Models: {join_some(_key_values(project, 'model'))}."
        session = self._filter_session(model, ledger, archive)
        if not session.charges:
            return f"Sessions: {join_some(short_id(value) for value in _key_values(model, 'session'))}."
        days = [in_zone(charge.timestamp, zone).date() for charge in session if charge.timestamp is not None]
        return f"Charges run from {min(days)} to {max(days)}." if days else ""

    def _filter_project(self, ledger: Ledger) -> Ledger:
        return ledger if self.project is None else ledger.where(project=self.project)

    def _filter_model(self, ledger: Ledger) -> Ledger:
        return ledger if self.model is None else ledger.where(model=self.model)

    def _filter_session(self, ledger: Ledger, all_charges: Ledger, archive: Archive | None) -> Ledger:
        if self.session is None or archive is None:
            return ledger
        return ledger.where(session=_resolve_session_id(self.session, all_charges, archive))


def _key_values(ledger: Ledger, name: str) -> list[str]:
    return [row.keys[name] for row in ledger.by(name)]


def _resolve_session_id(prefix: str, ledger: Ledger, archive: Archive) -> str:
    """The id of a session; the prefix itself if no id starts with it, so that nothing matches.

    Raises:
        Ambiguous: several ids start with it.
    """
    if prefix == "last":
        from threadline.summary import SessionFilter  # noqa: PLC0415 - seldom needed

        newest = archive.sessions(SessionFilter(limit=1)).sessions
        return str(newest[0].id) if newest else prefix
    matches = sorted(match_ids(prefix, (value for value in _key_values(ledger, "session") if value != NONE)))
    if len(matches) > 1:
        raise Ambiguous(f"{len(matches)} session ids start with {prefix!r}. Use more characters: {join_some(matches)}.")
    return (matches or [_id_by_rows(prefix, archive)])[0]


def _id_by_rows(name: str, archive: Archive) -> str:
    """The id of the session whose rows have another id than its file; the name itself if there is none."""
    try:
        return str(archive.transcript(name).session or name)
    except Error:
        return name


_MIN_WIDTH = 40
_DAY_KEYS = ("day", "week", "month")
_OUTPUTS_WITH_NOTES = ("table", "json")
_STATISTICS_FILE = "stats-cache.json"


class UsageOptions(Struct, frozen=True):
    """The options of a usage report."""

    keys: tuple[str, ...]
    criteria: ChargeFilter
    zone: tzinfo
    price_files: tuple[str, ...] = ()
    exact_tools: bool = False
    homes: tuple[str, ...] = ()
    jobs: int | None = None
    mode: str = "computed"
    shape: Literal["daily", "weekly", "monthly", "session"] | None = None
    sort: str | None = None
    limit: int | None = None
    output: str = "table"
    exact: bool = False
    colour: bool = True
    pager: bool = True


def _report_usage(options: UsageOptions, archive: Archive, rates: Rates | None) -> int:
    if not archive.homes:
        out.report_no_home()
    ledger = out.keep_alive(archive.ledger(rates, calls="tool" in options.keys or options.mode != "computed"))
    selected = options.criteria.apply(ledger, archive)
    if options.mode == "reported":
        return _print_reported(options, archive, ledger, selected)
    if options.shape is not None:
        from threadline.reports import ccusage_report  # noqa: PLC0415 - rarely used

        out.print_json(ccusage_report(selected, options.shape, zone=options.zone))
        return EXIT_OK  # like ccusage: an empty list is a result
    _print_report(_build_report(options, archive, ledger, selected), options, archive)
    if len(selected) or not archive.homes:
        return EXIT_OK if len(selected) else EXIT_NOTHING
    return out.report_nothing(options.criteria.explain_nothing(ledger, archive, options.zone))


def _build_report(options: UsageOptions, archive: Archive, ledger: Ledger, selected: Ledger) -> UsageReport:
    criteria = options.criteria
    report = build_usage_report(
        selected,
        options.keys,
        options.zone,
        extra=_extra_keys(options, archive, selected),
        order=options.sort,
        limit=options.limit,
        since=criteria.time.since,
        until=criteria.time.until,
        exact_tools=options.exact_tools,
        found=archive.found if "session" in options.keys and options.output in _OUTPUTS_WITH_NOTES else (),
    )
    if options.mode == "both":
        from threadline.cli.cost.usage_reported import filter_reported  # noqa: PLC0415 - only --mode needs it

        reported = filter_reported(archive.found, ledger, selected, criteria, zone=options.zone, jobs=options.jobs)
        return replace(report, reported=reported, is_part=criteria != ChargeFilter())
    if options.output in _OUTPUTS_WITH_NOTES:
        return replace(report, swept=_deleted_days(options, archive, ledger), budgets=_measure_budgets(options, ledger))
    return report


def _measure_budgets(options: UsageOptions, ledger: Ledger) -> tuple[BudgetUse, ...]:
    """The user's budgets, unless the report is about one session or model."""
    criteria = options.criteria
    if criteria.session is not None or criteria.model is not None or not settings_file(BUDGETS).exists():
        return ()
    from threadline.account import measure_budgets, read_budgets  # noqa: PLC0415 - only if there are budgets

    try:
        budgets = read_budgets()
    except Error as error:  # a wrong line must not hide what was spent
        out.print_message(str(error))
        return ()
    return tuple(measure_budgets(budgets, ledger, now=_now(), zone=options.zone, is_whole=not ledger.problems))


def _now() -> datetime:
    """The current time; tests replace it."""
    return datetime.now(UTC)


def _extra_keys(options: UsageOptions, archive: Archive, selected: Ledger) -> Mapping[str, Callable[[Charge], str]]:
    """Keys that need more than the ledger, if the report uses them."""
    extra: dict[str, Callable[[Charge], str]] = {}
    if not {"thread", "turn"} & set(options.keys):
        return extra
    total = sum(transcript.size for home in archive.found for transcript in home.transcripts)
    if "thread" in options.keys:
        from threadline.reports import thread_key  # noqa: PLC0415 - reads transcripts, which most reports do not

        with out.progress_bar("Threading", total) as advance:
            extra["thread"] = thread_key(archive.found, selected, jobs=options.jobs, progress=advance)
    if "turn" in options.keys:
        from threadline.reports import turn_key  # noqa: PLC0415 - likewise

        with out.progress_bar("Threading", total) as advance:
            extra["turn"] = turn_key(archive.found, selected, jobs=options.jobs, progress=advance)
    return extra


def _deleted_days(options: UsageOptions, archive: Archive, ledger: Ledger) -> tuple[ReportedDay, ...]:
    """Days that only Claude Code's statistics still know; looked up only for reports by date."""
    criteria = options.criteria
    is_by_date = options.keys[0] in _DAY_KEYS and criteria.project is criteria.model is criteria.session is None
    if not is_by_date or not any((home.path / _STATISTICS_FILE).is_file() for home in archive.homes):
        return ()
    from threadline.reports import find_deleted_days, is_day_within  # noqa: PLC0415 - only if there are statistics

    statistics = [Found(home, (), (), (), ()) for home in archive.homes]
    days = find_deleted_days(archive.found if len(statistics) > 1 else statistics, ledger, [], zone=options.zone)
    return tuple(day for day in days if is_day_within(day, criteria.time.since, criteria.time.until, options.zone))


def _print_report(report: UsageReport, options: UsageOptions, archive: Archive) -> None:
    if options.output == "json":
        out.print_json(usage_document(report))
    elif options.output != "table":
        out.print_rows((row_as_json(row, report.prompts) for row in report.rows), options.output)
    elif report.total.charges:
        colour = out.use_colour(enabled=options.colour)
        sessions = {row.keys["session"] for row in report.rows} if "session" in report.by else set()
        lines = usage_page(
            report,
            width=max(_MIN_WIDTH, out.terminal_width()),
            colour=colour,
            titles=_session_titles(archive, sessions) if sessions else {},
            exact=options.exact,
            bars=sys.stdout.isatty(),
            ascii_only=not can_show_blocks(os.environ, sys.stdout.encoding),
        )
        out.print_lines(lines, colour=colour, pager=options.pager)


def _session_titles(archive: Archive, sessions: Collection[str]) -> dict[str, str]:
    """The titles of sessions, with a mark for those that exist only in the keep."""
    kept = archive.kept_sessions
    titles = archive.titles(sessions)
    return {session: f"{'kept · ' if session in kept else ''}{titles.get(session, '')}" for session in sessions}


def _print_reported(options: UsageOptions, archive: Archive, ledger: Ledger, selected: Ledger) -> int:
    """Print the costs that Claude Code reports."""
    from threadline.cli.cost import usage_reported  # noqa: PLC0415 - it imports this module

    reported = usage_reported.filter_reported(
        archive.found, ledger, selected, options.criteria, zone=options.zone, jobs=options.jobs
    )
    has_rows = bool(reported.sessions or reported.swept)
    if options.output == "json":
        from threadline.reports import reconciliation_record  # noqa: PLC0415 - only here

        out.print_json(
            {
                "total": usage_reported.reported_total(reported),
                "rows": list(usage_reported.reported_rows(reported, options.limit)),
                "prices": price_digests(ledger),
                "reported": reconciliation_record(reported),
            }
        )
    elif options.output != "table":
        out.print_rows(usage_reported.reported_rows(reported, options.limit), options.output)
    elif has_rows:
        colour = out.use_colour(enabled=options.colour)
        titles = _session_titles(archive, {session.session for session in reported.sessions[: options.limit]})
        width = max(_MIN_WIDTH, out.terminal_width())
        lines = usage_reported.reported_page(reported, width=width, colour=colour, titles=titles, limit=options.limit)
        out.print_lines(lines, colour=colour, pager=options.pager)
    if has_rows or not archive.homes:
        return EXIT_OK if has_rows else EXIT_NOTHING
    return out.report_nothing(f"None of {count(reported.silent, 'session')} reports a cost. See --mode computed.")
