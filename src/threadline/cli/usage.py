"""`threadline usage`: tokens and costs by day, session, model, project or any other key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct
from msgspec.structs import replace

from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS, TIME_KEYS, Ledger
from threadline.archive import Archive
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
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
from threadline.cli.output import GAP, shorten_path, wrap_note
from threadline.cli.resolve import open_archive
from threadline.errors import Ambiguous, BadQuery, Error, did_you_mean
from threadline.files import BUDGETS, settings_file
from threadline.model.homes import Found
from threadline.model.ledger import NONE, Charge, ReportedDay, Row, Sum
from threadline.model.places import match_ids
from threadline.model.text import count, format_amount, format_tokens, join_some, short_model_name
from threadline.model.times import TimeRange, in_zone
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    bar,
    can_show_blocks,
    clip,
    clip_left,
    cut_line,
    display_width,
    one_line,
    plain,
    sparkline,
)
from threadline.reports import (
    UsageReport,
    add_session_key,
    build_usage_report,
    price_digests,
    row_as_json,
    usage_document,
    usage_notes,
)

if TYPE_CHECKING:
    from threadline.account import Rates
    from threadline.model.budgets import BudgetUse

_DEFAULT_LIMIT = 40
_ID_LENGTH = 8
_CCUSAGE_REPORTS: dict[str, Literal["daily", "weekly", "monthly", "session"]] = {
    "day": "daily",
    "week": "weekly",
    "month": "monthly",
    "session": "session",
}
# What tables show for a value of the key `thread`. Output for programs has the value itself.
_THREAD_LABELS = {"left branch": "abandoned branch"}
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
    "by",
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
    help='Only this session and its agents. ID may be a prefix, or "last".',
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
@limit_option(f"Show at most N groups. Default: {_DEFAULT_LIMIT} in a table, or all when grouping by date.")
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
    rates = None
    if options.price_files:
        from threadline.account import load_rates  # noqa: PLC0415 - the index has amounts at the built-in prices

        rates = load_rates(*options.price_files)
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


def parse_keys(by: Sequence[str], *, apart: bool = False, breakdown: bool = False) -> list[str]:
    """The keys to group by, each once.

    Raises:
        BadQuery: a key is unknown; the message suggests one.
    """
    choices = (*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS)
    keys = [word.strip().lower().replace("_", "-") for words in by for word in words.split(",") if word.strip()]
    for key in keys:
        if key not in choices:
            raise BadQuery(f"Unknown key {key!r}. {_suggest_key(key, choices)}")
    keys = keys or ["day"]
    keys += ["thread"] if apart else []
    keys += ["model"] if breakdown else []
    return list(dict.fromkeys(keys))


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

    def explain_nothing(self, ledger: Ledger, archive: Archive, zone: tzinfo) -> str:
        """Why no charge matches, and what would."""
        if not ledger.charges:
            return f"No usage: no model replied in {join_some(str(home.path) for home in archive.homes)}."
        options = {
            "project": self.project,
            "model": self.model,
            "session": self.session,
            "since": self.time.since,
            "until": self.time.until,
        }
        hint = self._suggest_filter(ledger, archive, zone)
        return out.no_match_message("charge", ledger.total.charges, options, hint)

    def _suggest_filter(self, ledger: Ledger, archive: Archive, zone: tzinfo) -> str:
        """The values that exist, of the first criterion that matches nothing."""
        project = self._filter_project(ledger)
        if not project.charges:
            return f"Projects: {join_some(_key_values(ledger, 'project'))}."
        model = self._filter_model(project)
        if not model.charges:
            return f"Models: {join_some(_key_values(project, 'model'))}."
        session = self._filter_session(model, ledger, archive)
        if not session.charges:
            return f"Sessions: {join_some(value[:_ID_LENGTH] for value in _key_values(model, 'session'))}."
        days = [in_zone(charge.timestamp, zone).date() for charge in session if charge.timestamp is not None]
        return f"Other charges are from {min(days)} to {max(days)}." if days else ""

    def _filter_project(self, ledger: Ledger) -> Ledger:
        return ledger if self.project is None else ledger.where(project=self.project)

    def _filter_model(self, ledger: Ledger) -> Ledger:
        return ledger if self.model is None else ledger.where(model=self.model)

    def _filter_session(self, ledger: Ledger, all_charges: Ledger, archive: Archive) -> Ledger:
        if self.session is None:
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
        from threadline.cli.usage_reported import filter_reported  # noqa: PLC0415 - loads worker processes

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
    from threadline.cli import usage_reported  # noqa: PLC0415 - loads worker processes

    reported = usage_reported.filter_reported(
        archive.found, ledger, selected, options.criteria, zone=options.zone, jobs=options.jobs
    )
    has_rows = bool(reported.sessions or reported.swept)
    if options.output == "json":
        from threadline.reports import reconciliation_record  # noqa: PLC0415 - only here

        out.print_json(
            {
                "total": usage_reported.reported_total(reported),
                "rows": list(usage_reported.reported_rows(reported)),
                "prices": price_digests(ledger),
                "reported": reconciliation_record(reported),
            }
        )
    elif options.output != "table":
        out.print_rows(usage_reported.reported_rows(reported), options.output)
    elif has_rows:
        colour = out.use_colour(enabled=options.colour)
        titles = _session_titles(archive, {session.session for session in reported.sessions[: options.limit]})
        width = max(_MIN_WIDTH, out.terminal_width())
        lines = usage_reported.reported_page(reported, width=width, colour=colour, titles=titles, limit=options.limit)
        out.print_lines(lines, colour=colour, pager=options.pager)
    if has_rows or not archive.homes:
        return EXIT_OK if has_rows else EXIT_NOTHING
    return out.report_nothing(f"None of {count(reported.silent, 'session')} reports a cost. See --mode computed.")


_MIN_LABEL = 28
_MIN_BAR, _MAX_BAR = 10, 30
_MIN_WIDTH_FOR_WEEKDAYS = 100
_MAX_LABEL = 400
_DIGEST_LENGTH = 12
_NEARLY_USED = Decimal("0.8")
_MAX_POINTS_WITHOUT_SPARKLINE = 2
_RESOLUTION = timedelta(microseconds=1)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC) - _RESOLUTION

# Columns in order. On a narrow page, the one with the highest number is dropped first.
_COLUMNS: tuple[tuple[str, int, Callable[[Sum], int]], ...] = (
    ("charges", 2, lambda total: total.charges),
    ("input", 5, lambda total: total.input),
    ("output", 3, lambda total: total.output),
    ("cache write", 4, lambda total: total.cache_write),
    ("cache read", 1, lambda total: total.cache_read),
)


class _TableLine(Struct, frozen=True):
    """A line of the table before layout.

    `ends`: cut the label at its start, as for paths. `rest`: the line sums what a limit leaves out.
    """

    label: str
    depth: int
    sum: Sum
    role: Role = Role.BODY
    ends: bool = False
    rest: bool = False


def usage_page(
    usage_report: UsageReport,
    *,
    width: int,
    colour: bool = False,
    titles: Mapping[str, str] | None = None,
    exact: bool = False,
    bars: bool = False,
    ascii_only: bool = False,
) -> Iterator[str]:
    """The lines of the report. `titles` are the sessions' titles; `bars` draws bars if there is room."""
    style = Style(colour=colour)
    lines = list(_table_lines(usage_report, width, titles or {}))
    table = _Table(usage_report, lines, width, exact=exact, bars=bars and len(lines) > 1, ascii_only=ascii_only)
    curve = _sparkline(usage_report, width, ascii_only=ascii_only) if bars and not table.has_bars else ()
    for line in (
        *_header(usage_report, width, ascii_only=ascii_only),
        *curve,
        (),
        *table.lines(),
        (),
        *_footer(usage_report, width, table.dropped),
    ):
        yield style.line(line)


def _table_lines(usage_report: UsageReport, width: int, titles: Mapping[str, str]) -> Iterator[_TableLine]:
    """The rows, each below the subtotals it belongs to, and one line for the rest."""
    labels = _LabelFormatter(usage_report, width, titles)
    last = len(usage_report.by) - 1
    sums = [{tuple(row.keys.values()): row for row in usage_report.rows.subtotals(depth + 1)} for depth in range(last)]
    before: tuple[str, ...] = ()
    for row in usage_report.rows:
        path = tuple(row.keys[name] for name in usage_report.by)
        same = next((at for at, value in enumerate(path) if before[at : at + 1] != (value,)), last)
        for depth in range(same, last):
            yield labels.line(sums[depth][path[: depth + 1]], depth, Role.TITLE if not depth else Role.BODY)
        yield labels.line(row, last, Role.BODY if not last else Role.FAINT)
        before = path
    if usage_report.left_out:
        yield _TableLine(f"{usage_report.left_out:,} more: see --limit", 0, usage_report.rest, Role.FAINT, rest=True)


class _LabelFormatter:
    """Formats the first column."""

    def __init__(self, usage_report: UsageReport, width: int, titles: Mapping[str, str]) -> None:
        self._by = usage_report.by
        self._titles = titles
        self._prompts = usage_report.prompts
        self._turn_width = max((len(row.keys.get("turn", "")) for row in usage_report.rows), default=0)
        self._weekdays = width >= _MIN_WIDTH_FOR_WEEKDAYS
        models = {row.keys["model"] for row in usage_report.rows} if "model" in usage_report.by else set()
        short_names = {name: short_model_name(name) for name in models}
        # Two ids with the same short name keep their dates.
        self._models = short_names if len(set(short_names.values())) == len(models) else {}

    def line(self, row: Row, depth: int, role: Role) -> _TableLine:
        name = self._by[depth]
        label = self._turn_label(row.keys) if name == "turn" else self._label(name, row.keys[name])
        return _TableLine(label, depth, row, role, ends=name in {"project", "home", "transcript"})

    def _turn_label(self, keys: Mapping[str, str]) -> str:
        if not keys["turn"].isdecimal():
            return keys["turn"]
        prompt = self._prompts.get((keys.get("session", ""), keys["turn"]), "(before the first prompt)")
        return f"{keys['turn']:>{self._turn_width}}{GAP}{one_line(prompt, _MAX_LABEL)}"

    def _label(self, name: str, value: str) -> str:
        if name == "session":
            title = self._titles.get(value, "")
            return f"{plain(value)[:_ID_LENGTH]}{GAP if title else ''}{one_line(title, _MAX_LABEL)}"
        if name in {"project", "home", "transcript"}:
            return shorten_path(value, _MAX_LABEL)
        if name == "day" and self._weekdays:
            return f"{value}{_weekday_suffix(value)}"
        if name == "thread":
            return _THREAD_LABELS.get(value, value)
        return one_line(self._models.get(value, value) if name == "model" else value, _MAX_LABEL)


def _weekday_suffix(day: str) -> str:
    try:
        return f" {date.fromisoformat(day):%a}"
    except ValueError:  # no time, or an invalid one
        return ""


class _Table:
    """Lays out lines in columns: columns are dropped, labels shrink, and bars take the remaining space."""

    def __init__(
        self,
        usage_report: UsageReport,
        lines: list[_TableLine],
        width: int,
        *,
        exact: bool,
        bars: bool,
        ascii_only: bool,
    ) -> None:
        self._lines = lines
        self._total = _TableLine("total", 0, usage_report.total, Role.TITLE)
        self._heading = " / ".join(usage_report.by)
        self._exact = exact
        self._ascii = ascii_only
        every = [*lines, self._total]
        labels = [display_width(self._heading), *(2 * line.depth + display_width(line.label) for line in every)]
        self._amounts = max(len("amount"), *(len(format_amount(line.sum.amount, exact=exact)) for line in every))
        self._columns = self._fit_columns(every, width, least=min(max(labels), _MIN_LABEL))
        room = width - self._fixed_width(self._columns)
        least = min(max(labels), _MIN_LABEL)
        self._label = max(1, min(max(labels), room))
        self._bar = 0
        if bars and room - least >= len(GAP) + _MIN_BAR:
            self._label = max(least, min(max(labels), room - len(GAP) - _MIN_BAR))
            self._bar = min(_MAX_BAR, room - self._label - len(GAP))
        self._most = max((line.sum.amount or Decimal(0) for line in lines if not line.rest), default=Decimal(0))

    @property
    def dropped(self) -> list[str]:
        """The columns for which there is no room."""
        return [name for name, _, _ in _COLUMNS if name not in self._columns]

    @property
    def has_bars(self) -> bool:
        """Whether there is room for bars, and any amount to show."""
        return self._bar > 0 and self._most > 0

    def _fit_columns(
        self, every: list[_TableLine], width: int, least: int
    ) -> dict[str, tuple[int, Callable[[Sum], int]]]:
        """The columns that fit, each with its width."""
        columns = {
            name: (max(len(name), *(len(self._number(name, get(line.sum))) for line in every)), get)
            for name, _, get in _COLUMNS
        }
        for name, _, _ in sorted(_COLUMNS, key=lambda column: -column[1]):
            if width - self._fixed_width(columns) >= least:
                break
            del columns[name]
        return columns

    def _fixed_width(self, columns: Mapping[str, tuple[int, object]]) -> int:
        return len(GAP) + sum(len(GAP) + wide for wide, _ in columns.values()) + len(GAP) + self._amounts

    def _number(self, name: str, number: int) -> str:
        return format_tokens(number, exact=self._exact or name == "charges")

    def lines(self) -> Iterator[Spans]:
        """The heading, one line per row, a rule, and the total."""
        headings = "".join(f"{GAP}{name:>{wide}}" for name, (wide, _) in self._columns.items())
        heading = clip(self._heading, self._label)
        yield (Span(f"{GAP}{heading:<{self._label}}{headings}{GAP}{'amount':>{self._amounts}}", Role.FAINT),)
        yield from map(self._row, self._lines)
        wide = self._label + self._fixed_width(self._columns) - len(GAP)
        yield (Span(f"{GAP}{('-' if self._ascii else '─') * wide}", Role.FAINT),)
        yield self._row(self._total)

    def _row(self, line: _TableLine) -> Spans:
        room = max(1, self._label - 2 * line.depth)
        label = (clip_left if line.ends else clip)(line.label, room)
        label = f"{GAP}{GAP * line.depth}{label}{' ' * (room - display_width(label))}"
        figures = "".join(
            f"{GAP}{self._number(name, get(line.sum)):>{wide}}" for name, (wide, get) in self._columns.items()
        )
        money = f"{GAP}{format_amount(line.sum.amount, exact=self._exact):>{self._amounts}}"
        draws = self.has_bars and line is not self._total and not line.rest
        drawn = bar(line.sum.amount, self._most, self._bar, ascii_only=self._ascii) if draws else ""
        figures_role = Role.TITLE if line is self._total else Role.FAINT if line.role is Role.FAINT else Role.BODY
        return (
            Span(label, line.role),
            Span(figures, figures_role),
            Span(money, figures_role),
            Span(f"{GAP}{drawn}" if drawn else "", Role.CODE),
        )


def _header(usage_report: UsageReport, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """The keys, time zone and time range of the report."""
    has_times = usage_report.since or usage_report.until or any(name in TIME_KEYS for name in usage_report.by)
    parts = [usage_report.zone if has_times else "", _time_span(usage_report)]
    details = (" - " if ascii_only else " · ").join(filter(None, parts))
    title = Span(f"{GAP}Usage by {', '.join(usage_report.by)}", Role.TITLE)
    yield cut_line((title, Span(f"{GAP}{details}", Role.FAINT)), width)


def _sparkline(usage_report: UsageReport, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """Amounts over time in one line, for a page too narrow for bars."""
    values = [row.amount for row in usage_report.rows.subtotals(1)]
    drawn = sparkline(values[-max(1, width - len(GAP)) :], ascii_only=ascii_only)
    if usage_report.by[0] in TIME_KEYS and len(values) > _MAX_POINTS_WITHOUT_SPARKLINE and drawn.strip():
        yield (Span(f"{GAP}{drawn}", Role.CODE),)


def _time_span(usage_report: UsageReport) -> str:
    """The time range, with minutes only if it does not start or end with a day."""
    parts = []
    if usage_report.since is not None:
        parts.append(f"from {_format_minute(in_zone(usage_report.since, usage_report.place))}")
    if usage_report.until is not None:
        local = in_zone(usage_report.until, usage_report.place)
        ends_a_day = usage_report.until > _LAST_MOMENT or not _has_time_of_day(
            in_zone(usage_report.until + _RESOLUTION, usage_report.place)
        )
        parts.append(f"to {local.date().isoformat() if ends_a_day else _format_minute(local)}")
    return " ".join(parts)


def _format_minute(local: datetime) -> str:
    return f"{local.date().isoformat()}{f' {local:%H:%M}' if _has_time_of_day(local) else ''}"


def _has_time_of_day(local: datetime) -> bool:
    return (local.hour, local.minute) != (0, 0)


def _footer(usage_report: UsageReport, width: int, dropped: Sequence[str]) -> Iterator[Spans]:
    """Notes on the figures and the columns that do not fit, and the prices used."""
    if dropped:
        yield from wrap_note(f"Not shown at this width: {', '.join(dropped)}. Use a wider terminal or --json.", width)
    for note in usage_notes(usage_report):
        yield from wrap_note(note, width, Role.NOTICE)
    for use in usage_report.budgets:
        role = Role.BAD if use.is_over else Role.NOTICE if use.is_near(_NEARLY_USED) else Role.FAINT
        yield from wrap_note(f"Budget {use.budget}: {use.describe()}.", width, role)
    files = usage_report.ledger.price_files
    more = f" with {', '.join(name for name, _ in files[1:])}" if len(files) > 1 else ""
    digest = usage_report.ledger.price_digest[:_DIGEST_LENGTH]
    yield from wrap_note(f"Prices {digest}{more}: see threadline prices.", width)
    if usage_report.reported is not None:
        from threadline.cli.usage_reported import reported_notes  # noqa: PLC0415 - loads worker processes

        yield ()
        yield from reported_notes(usage_report.reported, width)
