"""`threadline budget`: set budgets, show what is left of them, and check them in a hook of Claude Code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from shlex import quote
from typing import Any

import click
import msgspec

from threadline import files
from threadline.account import read_budgets, remove_budgets, save_budget
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.commands import LazyGroup, forward_options
from threadline.cli.options import (
    format_parameter,
    home_option,
    output_options,
    prices_option,
    project_option,
    timezone_option,
)
from threadline.cli.resolve import open_archive, read_rates
from threadline.errors import BadQuery, Error
from threadline.model.budgets import NEARLY_USED, Budget, BudgetPeriod, BudgetUse, format_quantity, parse_period
from threadline.model.text import format_duration, format_percent, format_time
from threadline.model.times import parse_zone

_DEFAULT_MILLISECONDS = 2_000
_DEFAULT_WARNING = f"{NEARLY_USED:.0%}"
_MAX_HOOK_INPUT = 4 * 1024 * 1024
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%?", re.ASCII)
_EPILOG = """
\b
Examples:
  threadline budget set 50/day                  50 USD a day
  threadline budget set 50/day 800/month        two budgets
  threadline budget set 200/week --project app  for one project
  threadline budget set '2M tokens/5h'          for five-hour windows
  threadline budget                             what is left
  threadline budget check                       exit code 1 if one is used up
  threadline budget remove day

\b
Exit codes: 0 success; 1 no budget, or for check: one is used up; 2 an error.
"""


ACTIONS = {
    "list": ("cost.budget:list_action", "List the budgets, and what is left of each."),
    "set": ("cost.budget:set_action", "Set a budget, or change the one for the same period."),
    "remove": ("cost.budget:remove_action", "Remove budgets, by their period or as `threadline budget` lists them."),
    "check": ("cost.budget:check_action", "Check whether a budget is used up: the exit code says so."),
}


class BudgetGroup(LazyGroup):
    """The actions of `threadline budget`."""

    def suggest(self, word: str) -> str | None:
        """What to write instead of an unknown action: an amount is probably to be set."""
        return f"budget set {word}" if word[:1].isdigit() or word[:1] == "$" else super().suggest(word)


@click.group(
    cls=BudgetGroup,
    sections={"Actions": ACTIONS},
    invoke_without_command=True,
    subcommand_metavar="[ACTION] [ARGS]...",
    epilog=_EPILOG,
)
@click.option("--tz", "zone", metavar="ZONE", help="Time zone of days, weeks and months. Default: local.")
@prices_option
@home_option
@output_options
@click.pass_context
def budget(
    ctx: click.Context, *, zone: str | None, price_files: tuple[str, ...], homes: tuple[str, ...], output: str
) -> int:
    """Set budgets, and show what is left of them.

    A budget is an amount in USD, or a number of tokens, for a day, a week (from Monday), a month, or a five-hour window
    as in `threadline blocks`. What was spent is computed as in `threadline usage`. `threadline statusline` and
    `threadline usage` show what is left, too. Without an action, lists the budgets.
    """
    if ctx.invoked_subcommand is not None:
        shared = {"zone": zone, "price_files": price_files, "homes": homes, format_parameter(output): output != "table"}
        forward_options(
            ctx, budget, shared, "threadline budget", {"zone": "tz", "price_files": "prices", "homes": "home"}
        )
        return EXIT_OK
    return _list_budgets(parse_zone(zone), price_files, homes, output)


@click.command(
    "list",
    epilog="""
\b
Examples:
  threadline budget list                         what is left of each budget
  threadline budget list --tz Europe/Berlin      for the days of Berlin
  threadline budget list --json                  for a program
""",
)
@timezone_option
@prices_option
@home_option
@output_options
def list_action(*, zone: tzinfo, price_files: tuple[str, ...], homes: tuple[str, ...], output: str) -> int:
    """List the budgets, and what is left of each."""
    return _list_budgets(zone, price_files, homes, output)


def _list_budgets(zone: tzinfo, price_files: tuple[str, ...], homes: tuple[str, ...], output: str) -> int:
    now = _now()
    uses = _measure(read_budgets(), zone, price_files, homes, now)
    return out.print_listing(
        uses,
        output,
        row=lambda use: out.json_record(use.record()),
        table=lambda rows: _table(rows, now, zone),
        nothing=lambda: "No budget is set. Set one: threadline budget set 50/day",
    )


@click.command(
    "set",
    epilog="""
\b
Examples:
  threadline budget set 50/day                   50 USD a day
  threadline budget set 200/week --project app   for one project
  threadline budget set '2M tokens/5h'           for five-hour windows
""",
)
@click.argument("limit", nargs=-1, required=True, metavar="LIMIT/PERIOD")
@project_option("Only what projects whose path contains TEXT spend.")
@output_options
def set_action(limit: tuple[str, ...], *, project: str | None, output: str) -> int:
    """Set a budget, or change the one for the same period.

    LIMIT is an amount in USD, or a number of tokens such as `2M tokens`. PERIOD is day, week, month or 5h. There may be
    a budget for each period, each project, and both units.
    """
    # `50/day 200/week` are two budgets, `50 per day` is one.
    texts = limit if len(limit) > 1 and all("/" in text.strip("/") for text in limit) else (" ".join(limit),)
    path = str(files.settings_file(files.BUDGETS))
    budgets = [Budget.parse(text, project=project) for text in texts]
    replaced = [save_budget(new) for new in budgets]
    if output != "table":
        rows = (
            {"budget": str(new), "replaced": str(old) if old is not None else None, "path": path}
            for new, old in zip(budgets, replaced, strict=True)
        )
        out.print_rows(rows, output)
        return EXIT_OK
    for new, old in zip(budgets, replaced, strict=True):
        click.echo(f"Budget changed from {old} to {new}." if old is not None and old != new else f"Budget set: {new}.")
    click.echo("See what is left: threadline budget")
    return EXIT_OK


@click.command(
    "remove",
    epilog="""
\b
Examples:
  threadline budget remove day                  the budget for a day
  threadline budget remove week --project app   that of one project
  threadline budget remove --all                all budgets
""",
)
@click.argument("period", nargs=-1, metavar="[PERIOD]")
@project_option("Only the budget with this --project.")
@click.option("--all", "everything", is_flag=True, help="Remove all budgets.")
@output_options
def remove_action(period: tuple[str, ...], *, project: str | None, everything: bool, output: str) -> int:
    """Remove budgets, by their period or as `threadline budget` lists them.

    `remove day` removes the budgets for a day that have no project; with --project, those of this project.
    """
    if everything == bool(period):
        raise click.UsageError("Name the period of the budget to remove (day, week, month or 5h), or use --all.")
    removed = remove_budgets(_matcher(" ".join(period), project) if period else lambda _budget: True)
    if output != "table":
        out.print_rows(({"budget": str(budget)} for budget in removed), output)
    elif removed:
        click.echo(f"Removed {', '.join(map(str, removed))}.")
    if removed:
        return EXIT_OK
    budgets = ", ".join(map(str, read_budgets()))
    return out.report_nothing(f"No such budget. Budgets: {budgets}." if budgets else "No budget is set.")


def _matcher(text: str, project: str | None) -> Callable[[Budget], bool]:
    """A function that says whether a budget is meant by `day`, `50/day` or `tokens/5h`, with or without a project."""
    limit, _slash, word = text.strip().rpartition("/")
    period = parse_period(word)
    units = {True, False} if not limit else {"tok" in limit.lower()}
    name = " ".join(project.split()) if project is not None else None
    return lambda budget: budget.period is period and budget.is_tokens in units and budget.project == name


@click.command(
    "check",
    epilog="""
\b
Examples:
  threadline budget check || echo "budget used up"
  threadline budget check --project app --warn-at 90%
  threadline budget check --hook     as a hook of Claude Code: docs/budget.md

\b
Exit codes: 0 within all budgets, or there is none; 1 one is used up; 2 error.
With --hook: 0, and the answer is JSON; 1 an error, which blocks nothing.
""",
)
@project_option("Check only budgets without a project, and those whose project is contained in TEXT.")
@click.option(
    "--warn-at",
    metavar="PERCENT",
    default=_DEFAULT_WARNING,
    help=f"Warn if this much of a budget is spent. The exit code stays 0. Default: {_DEFAULT_WARNING}.",
)
@click.option("--hook", is_flag=True, help="Read the input of a Claude Code hook, and answer with its JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing if everything is within budget.")
@click.option(
    "--time",
    "milliseconds",
    type=click.IntRange(min=0),
    default=_DEFAULT_MILLISECONDS,
    metavar="MS",
    help=f"Without an index, read transcripts for at most MS milliseconds. Default: {_DEFAULT_MILLISECONDS}.",
)
@timezone_option
@prices_option
@home_option
@output_options
def check_action(
    *,
    project: str | None,
    warn_at: str,
    hook: bool,
    quiet: bool,
    milliseconds: int,
    zone: tzinfo,
    price_files: tuple[str, ...],
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Check whether a budget is used up: the exit code says so.

    Reads what changed since the last time into the index, so it is quick enough to run on every prompt. Without an
    index that can be updated quickly, reads the newest transcripts within the time limit, and says if that was not
    enough.
    """
    share = _parse_share(warn_at)
    now = _now()
    if hook:
        return _answer_hook(share, milliseconds, zone, price_files, homes, now)
    budgets = [budget for budget in read_budgets() if budget.applies_to(project)]
    uses = _measure(budgets, zone, price_files, homes, now, milliseconds)
    if output != "table":
        out.print_rows((out.json_record(use.record()) for use in uses), output)
    else:
        _print_check(uses, share, now, quiet=quiet)
    return EXIT_NOTHING if any(use.is_over for use in uses) else EXIT_OK


def _print_check(uses: Sequence[BudgetUse], share: Decimal, now: datetime, *, quiet: bool) -> None:
    reached = [use for use in uses if use.is_over or use.is_near(share)]
    for use in reached:
        click.echo(_sentence(use, now))
    if not reached and not quiet:
        click.echo(f"Within budget: {'; '.join(use.describe() for use in uses)}." if uses else "No budget is set.")
    if any(use.spent is None or use.is_lower_bound for use in uses) and not quiet:
        out.print_message("More may have been spent: not everything was read. Run `threadline index refresh` once.")


def _answer_hook(  # noqa: PLR0917 - what a check depends on
    share: Decimal,
    milliseconds: int,
    zone: tzinfo,
    price_files: tuple[str, ...],
    homes: tuple[str, ...],
    now: datetime,
) -> int:
    """Answer a hook. An error must not block the user's work, so its exit code is one that Claude Code ignores."""
    try:
        event, directory = _read_hook_input()
        budgets = [budget for budget in read_budgets() if budget.applies_to(directory)]
        uses = _measure(budgets, zone, price_files, homes, now, milliseconds)
    except Exception as error:  # noqa: BLE001 - whatever fails here must not block the user's work
        out.print_message(str(error) if isinstance(error, Error) else f"Budgets could not be checked: {error!r}.")
        return EXIT_NOTHING
    answer = hook_answer(event, uses, share, now)
    if answer:
        click.echo(msgspec.json.encode(answer))
    return EXIT_OK


def _read_hook_input() -> tuple[str, str | None]:
    """The name of the event, and the directory that Claude Code works in, if standard input says so."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return "", None
    try:
        value = msgspec.json.decode(sys.stdin.buffer.read(_MAX_HOOK_INPUT))
    except (OSError, ValueError, RecursionError):
        return "", None
    fields = value if isinstance(value, dict) else {}
    event, directory = fields.get("hook_event_name"), fields.get("cwd")
    return event if isinstance(event, str) else "", directory if isinstance(directory, str) else None


def hook_answer(event: str, uses: Sequence[BudgetUse], share: Decimal, now: datetime) -> dict[str, Any]:
    """The answer to a hook of Claude Code, by its event; empty if there is nothing to say.

    If a budget is used up, a prompt is blocked, and the work on one is stopped before or after a tool call. Other
    events, such as the end of a turn, only show a message. Warnings are shown, but not on every tool call.
    """
    over = [use for use in uses if use.is_over]
    if over:
        reason = f"{' '.join(_sentence(use, now) for use in over)} {_advice(over[0])}"
        if event == "UserPromptSubmit":
            return {"decision": "block", "reason": reason}
        if event == "PreToolUse":
            refusal = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}
            return {"continue": False, "stopReason": reason, "hookSpecificOutput": refusal}
        return {"continue": False, "stopReason": reason} if event == "PostToolUse" else {"systemMessage": reason}
    near = [use for use in uses if use.is_near(share)]
    if near and event not in {"PreToolUse", "PostToolUse"}:
        return {"systemMessage": " ".join(_sentence(use, now) for use in near)}
    return {}


def _sentence(use: BudgetUse, now: datetime) -> str:
    spent = format_quantity(use.spent, is_tokens=use.budget.is_tokens)
    least = "at least " if use.is_lower_bound else ""
    state = "used up" if use.is_over else f"{format_percent(use.share)} used"
    reset = use.resets_in(now)
    until = f" It starts again in {format_duration(reset, seconds=False)}." if reset is not None else ""
    return f"Budget {use.budget} is {state}: {least}{spent} spent {use.budget.period.now}.{until}"


def _advice(use: BudgetUse) -> str:
    option = f" --project {quote(use.budget.project)}" if use.budget.project else ""
    return f"To go on, set a higher one, or: threadline budget remove {use.budget.period}{option}"


def _parse_share(text: str) -> Decimal:
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise BadQuery(f"{text!r} is not a percentage. Write it as 80%.")
    return Decimal(match[1]) / 100


def _now() -> datetime:
    """The current time; tests replace it."""
    return datetime.now(UTC)


def _measure(  # noqa: PLR0917 - what a measurement depends on
    budgets: Sequence[Budget],
    zone: tzinfo,
    price_files: tuple[str, ...],
    homes: tuple[str, ...],
    now: datetime,
    milliseconds: int | None = None,
) -> list[BudgetUse]:
    if not budgets:
        return []
    rates = read_rates(price_files)
    with open_archive(homes) as archive:
        archive.zone = zone
        seconds = milliseconds / 1000 if milliseconds is not None else None
        return archive.budgets(budgets, prices=rates, now=now, seconds=seconds)


def _table(uses: Sequence[BudgetUse], now: datetime, zone: tzinfo) -> str:
    cells = [
        (
            f"{format_quantity(use.budget.limit, is_tokens=use.budget.is_tokens)}/{use.budget.period}",
            _marked(use, use.spent),
            _marked(use, use.left, is_upper=True),
            format_percent(use.share),
            format_time(use.until, zone) and f"in {format_duration(use.resets_in(now), seconds=False)}",
            use.budget.project or "",
        )
        for use in uses
    ]
    headings = ("budget", "spent", "left", "used", "starts again", "project")
    shown = len(headings) if any(use.budget.project for use in uses) else -1
    table = out.format_table(headings[:shown], [row[:shown] for row in cells], right=(0, 1, 2, 3))
    notes = [out.wrap_text(note) for note in _notes(uses)]
    return "\n".join([table, *(["", *notes] if notes else [])])


def _marked(use: BudgetUse, number: Decimal | None, *, is_upper: bool = False) -> str:
    text = format_quantity(number, is_tokens=use.budget.is_tokens) or "-"
    mark = ("≤ " if is_upper else "≥ ") if use.is_lower_bound and number is not None else ""
    return f"{'' if use.is_certain else '~'}{mark}{text}"


def _notes(uses: Sequence[BudgetUse]) -> list[str]:
    notes = []
    if any(use.is_lower_bound for use in uses):
        notes.append("More may have been spent: a model has no known price, or a transcript could not be read.")
    if any(use.budget.period is BudgetPeriod.WINDOW and use.since is None for use in uses):
        notes.append("No five-hour window is running: the next one begins with the next request.")
    return notes
