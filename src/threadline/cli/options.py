"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

CommandFunction = Callable[..., Any]

NO_KEEP = "threadline.no-keep"
"""Where a command's context notes that the keep is left out."""
FORMATS = ("table", "json", "jsonl", "csv", "csv-exact")
_FORMAT_HELP = {
    "csv-exact": "The same, every cell as it is: for programs, not for spreadsheets.",
    "csv": "Print rows as CSV, with a heading. A cell that a spreadsheet would take for a formula gets a ' before it.",
    "jsonl": "Print one JSON object a row.",
    "json": "Print one JSON document.",
}


def output_options(function: CommandFunction) -> CommandFunction:
    """`--json`, `--jsonl`, `--csv`, `--csv-exact`, given on as `output`: `table` when there is none."""

    @wraps(function)
    def chosen(*arguments: Any, **given: Any) -> Any:
        wanted = [name for name in FORMATS if given.pop(format_parameter(name))]
        if len(wanted) > 1:
            raise click.UsageError(f"Give one of {' and '.join(f'--{name}' for name in wanted)}, not several.")
        return function(*arguments, output=wanted[0] if wanted else "table", **given)

    decorated: CommandFunction = chosen
    for name, text in _FORMAT_HELP.items():
        decorated = click.option(f"--{name}", format_parameter(name), is_flag=True, help=text)(decorated)
    return click.option("--table", format_parameter("table"), is_flag=True, hidden=True)(decorated)


def format_parameter(form: str) -> str:
    """The name of a format's option among a command's parameters."""
    return f"as_{form.replace('-', '_')}"


def home_option(function: CommandFunction) -> CommandFunction:
    """`--home`: which homes, instead of those that are found; and `--no-keep`."""
    function = click.option(
        "--no-keep",
        is_flag=True,
        expose_value=False,
        callback=_store_no_keep,
        help="Leave out sessions that only the keep still has; THREADLINE_KEEP=off says the same.",
    )(function)
    return click.option(
        "--home",
        "homes",
        multiple=True,
        metavar="DIR",
        help="A Claude home to read, instead of those found; may be given several times.",
    )(function)


def _store_no_keep(context: click.Context, _option: click.Parameter, given: bool) -> None:
    context.meta[NO_KEEP] = given or context.meta.get(NO_KEEP, False)


def jobs_option(function: CommandFunction) -> CommandFunction:
    """`--jobs`: how many workers."""
    return click.option(
        "--jobs", type=click.IntRange(min=1), metavar="N", help="How many workers to read with; by default, one a core."
    )(function)


def cross_session_options(function: CommandFunction) -> CommandFunction:
    """`--project`, `--since`, `--until`, `--limit`: of what sessions hold, what to list."""
    for option in (
        click.option(
            "--limit",
            type=click.IntRange(min=1),
            metavar="N",
            help="No more than the last N; of all sessions 50 by default, and all with --json, --jsonl and --csv.",
        ),
        click.option("--until", metavar="WHEN", help="Only up to then."),
        click.option("--since", metavar="WHEN", help="Only from then on: 2026-11-03, 7d, yesterday."),
        click.option("--project", metavar="TEXT", help="Of all sessions: only of projects whose path holds this."),
    ):
        function = option(function)
    return function


_CommandFunction = Callable[..., Any]


def timezone_option(function: _CommandFunction) -> _CommandFunction:
    """`--tz`: where days begin and end."""
    return click.option(
        "--tz",
        metavar="ZONE",
        help="Days and hours of this time zone: Europe/Berlin, UTC, local; by default this machine's.",
    )(function)
