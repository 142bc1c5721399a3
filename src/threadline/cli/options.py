"""Options that several commands share.

Imports click only: `threadline --help` loads this module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isfinite
from typing import Any

import click

CommandFunction = Callable[..., Any]
Decorator = Callable[[CommandFunction], CommandFunction]

NO_KEEP = "threadline.no-keep"
"""The key in a click context's `meta` that `--no-keep` sets."""
NO_LIMIT = 1_000_000_000
"""What `--limit 0` stands for: more than there ever is, so that it is a limit like any other."""
FORMATS = ("table", "json", "jsonl", "csv")
_FORMAT_HELP = {
    "csv": "Print rows, if any, as CSV with a header. Formulas get a leading apostrophe.",
    "jsonl": "Print one JSON object per line.",
    "json": "Print one JSON document.",
}


class WholeNumber(click.ParamType):  # type: ignore[type-arg] # It is generic in newer versions of click only.
    """A whole number from `least` to `most`. `click.IntRange` would add `[x>=0]` to the help of its option."""

    name = "whole number"

    def __init__(self, least: float = 0, most: float | None = None) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert text to a number."""
        try:
            number = self._parse(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        if number < self._least:
            self.fail(f"{value} is less than {self._least:,}.", param, ctx)
        if self._most is not None and number > self._most:
            self.fail(f"{value} is more than {self._most:,}.", param, ctx)
        return number

    def _parse(self, value: Any) -> float:
        return int(value)


class Number(WholeNumber):
    """A number from `least` to `most`. `nan` and `inf`, which Python reads as numbers, are not."""

    name = "number"

    def _parse(self, value: Any) -> float:
        number = float(value)
        if not isfinite(number):
            raise ValueError(value)
        return number


class Seconds(Number):
    """A time of more than 0 seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert text to a number."""
        return super().convert(value, param, ctx) or self.fail("The time must be longer than 0 seconds.", param, ctx)


def complete_with(kind: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Complete a parameter in the shell with values of this kind; see `threadline.cli.completion`."""

    def items(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
        from threadline.cli.completion import complete  # noqa: PLC0415 - only a shell's completion needs it

        return complete(kind, context, incomplete)

    return items


def output_options(function: CommandFunction) -> CommandFunction:
    """Add `--json`, `--jsonl` and `--csv`, passed as `output`; without them it is `table`."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        formats = [name for name in _FORMAT_HELP if options.pop(format_parameter(name))]
        if len(formats) > 1:
            raise click.UsageError(f"Use only one of {', '.join(f'--{name}' for name in reversed(formats))}.")
        return function(*arguments, output=formats[0] if formats else "table", **options)

    decorated: CommandFunction = run
    for name, text in _FORMAT_HELP.items():
        decorated = click.option(f"--{name}", format_parameter(name), is_flag=True, help=text)(decorated)
    return decorated


def format_parameter(output_format: str) -> str:
    """The parameter name of a format's option."""
    return f"as_{output_format}"


def home_option(function: CommandFunction) -> CommandFunction:
    """Add `--home`, passed as `homes`, and `--no-keep`, which `resolve.uses_keep` reads."""
    function = click.option(
        "--no-keep",
        is_flag=True,
        expose_value=False,
        callback=_store_no_keep,
        help="Ignore sessions that exist only in the keep (same as THREADLINE_KEEP=off).",
    )(function)
    return live_home_option(function)


def live_home_option(function: CommandFunction) -> CommandFunction:
    """Add `--home`, passed as `homes`, to a command that reads only what Claude Code still has."""
    return click.option(
        "--home",
        "homes",
        multiple=True,
        metavar="PATH",
        help="Read this home (folder, zip, tar or s3:// URI) instead of the default ones. Repeatable.",
    )(function)


def _store_no_keep(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[NO_KEEP] = value or context.meta.get(NO_KEEP, False)


def jobs_option(function: CommandFunction) -> CommandFunction:
    """Add `--jobs`."""
    return click.option(
        "--jobs", type=WholeNumber(1), metavar="N", help="Worker processes. Default: one per CPU core."
    )(function)


def since_option(text: str = "Only from WHEN on: 2026-11-03, 7d, yesterday.") -> Decorator:
    """Add `--since` with this help text."""
    return click.option("--since", metavar="WHEN", help=text)


def until_option(text: str = "Only up to and including WHEN.") -> Decorator:
    """Add `--until` with this help text."""
    return click.option("--until", metavar="WHEN", help=text)


def limit_option(text: str, default: int | None = None) -> Decorator:
    """Add `--limit` with this help text and default. 0 means no limit: it is passed as `NO_LIMIT`."""
    return click.option(
        "--limit",
        type=WholeNumber(),
        default=default,
        callback=lambda _context, _option, value: NO_LIMIT if value == 0 else value,
        metavar="N",
        help=f"{text} 0 means no limit.",
    )


def project_option(text: str = "Only projects whose path contains TEXT.") -> Decorator:
    """Add `--project` with this help text."""
    return click.option("--project", metavar="TEXT", shell_complete=complete_with("projects"), help=text)


def cross_session_options(function: CommandFunction) -> CommandFunction:
    """Add `--project`, `--since`, `--until`, `--tz` and `--limit` for commands that list one session or all of them."""
    limit = (
        "Show at most the newest N. Default: 50 across all sessions; no limit for one session, --json, --jsonl, --csv."
    )
    for decorator in (
        limit_option(limit),
        timezone_option,
        until_option(),
        since_option(),
        project_option("Across all sessions: only projects whose path contains TEXT."),
    ):
        function = decorator(function)
    return function


def kinds_option(function: CommandFunction) -> CommandFunction:
    """Add `--kind`, for commands that filter entries."""
    return click.option(
        "--kind",
        "kinds",
        multiple=True,
        metavar="KIND",
        shell_complete=complete_with("kinds"),
        help="Only entries of this kind. Repeatable.",
    )(function)


def tools_option(text: str = "Only calls of this tool, by old or new name. Repeatable.") -> Decorator:
    """Add `--tool`."""
    return click.option(
        "--tool", "tools", multiple=True, metavar="TOOL", shell_complete=complete_with("tools"), help=text
    )


def exact_tools_option(function: CommandFunction) -> CommandFunction:
    """Add `--exact-tools`, for commands that filter or group by tool."""
    return click.option(
        "--exact-tools",
        is_flag=True,
        help="Do not merge the old and new names of a tool. Default: Read includes View, Agent includes Task.",
    )(function)


TIMEZONE_HELP = "Time zone of times and days: Europe/Berlin, UTC, local. Default: local."
"""The help text of `--tz`."""


def timezone_option(function: CommandFunction) -> CommandFunction:
    """Add `--tz`, passed as `zone`: a time zone, by default the user's own."""
    return click.option(
        "--tz", "zone", type=click.UNPROCESSED, metavar="ZONE", callback=_resolve_zone, help=TIMEZONE_HELP
    )(function)


def _resolve_zone(context: click.Context, _option: click.Parameter, value: str | None) -> Any:
    from threadline.model.times import parse_zone  # noqa: PLC0415 - `threadline --help` loads this module

    return parse_zone(value) if not context.resilient_parsing else None


def prices_option(function: CommandFunction) -> CommandFunction:
    """Add `--prices`, passed as `price_files`."""
    return click.option(
        "--prices",
        "price_files",
        multiple=True,
        metavar="FILE",
        help="Price file, threadline's or LiteLLM's: its models add to or replace the built-in ones. Repeatable.",
    )(function)


def colour_option(function: CommandFunction) -> CommandFunction:
    """Add `--no-color`, passed as `colour`."""
    return click.option(
        "--no-color",
        "colour",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not use colours (same as NO_COLOR in the environment).",
    )(function)


def pager_option(function: CommandFunction) -> CommandFunction:
    """Add `--no-pager`, passed as `pager`."""
    return click.option(
        "--no-pager",
        "pager",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not use a pager. On a terminal, the default is $PAGER, less or more.",
    )(function)
