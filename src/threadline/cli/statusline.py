"""`threadline statusline`: one line for Claude Code to show below the prompt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND
from threadline.cli.options import home_option

if TYPE_CHECKING:
    from datetime import datetime

    from threadline.cli.statusline_figures import Figures

_EPILOG = """
\b
Examples:
  threadline statusline --install         what to write into settings.json
  threadline statusline --cost both       Claude Code's own figure beside ours
  threadline statusline --format '{model} {session} {share}'
  threadline statusline --json < saved.json
\b
In ~/.claude/settings.json:
  {"statusLine": {"type": "command", "command": "threadline statusline"}}
\b
What --format may hold: {model}, {session}, {reported}, {today}, {block},
{left}, {burn}, {context}, {share}; what is not known is a -.
"""
_SNIPPET = """{
  "statusLine": {
    "type": "command",
    "command": "threadline statusline"
  }
}"""
_PART = re.compile(r"\{(\w*)\}")
_MILLISECONDS = 300


@click.command(epilog=_EPILOG)
@click.option(
    "--cost",
    type=click.Choice(["computed", "reported", "both"]),
    default="computed",
    help="The session's cost from its transcripts (the default), as Claude Code reports it, or both.",
)
@click.option("--format", "template", metavar="TEXT", help="The line as a template; the parts are named below.")
@click.option("--tz", metavar="ZONE", help="Where today begins: Europe/Berlin, UTC; by default where this machine is.")
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@click.option(
    "--time",
    "milliseconds",
    type=click.IntRange(min=0),
    default=_MILLISECONDS,
    metavar="MS",
    help=f"Milliseconds for other sessions' transcripts; by default {_MILLISECONDS}. What there is no time for is left"
    " out, and a + says so.",
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@click.option("--install", is_flag=True, help="Only print what to write into settings.json; nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON document.")
@home_option
def statusline(
    *,
    cost: str,
    template: str | None,
    tz: str | None,
    files: tuple[str, ...],
    milliseconds: int,
    no_color: bool,
    install: bool,
    as_json: bool,
    homes: tuple[str, ...],
) -> int:
    """Answer Claude Code's statusline with one line: model, session, today, the five hours' window, context.

    Reads the JSON that Claude Code gives on standard input, this session's transcripts, and of the others only those
    that changed within a day: however much a home holds, that takes no longer. A + stands behind an amount that is
    only the least it can be, a ~ before a window whose begin is not certain.
    """
    if install:
        click.echo(_SNIPPET)
        return FOUND
    _check(template)
    from threadline.cli.statusline_figures import figures, only_told
    from threadline.cli.statusline_input import read_input
    from threadline.errors import Error

    told = read_input()
    try:
        found = figures(told, homes, files, tz=tz, seconds=milliseconds / 1000, now=_now())
    except Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, a prompt must not break: what was told is shown
        click.echo(f"threadline: The transcripts could not be read ({type(error).__name__}).", err=True)
        found = only_told(told, _now())
    if as_json:
        from threadline.cli import output as out

        out.print_json(found.record())
    else:
        click.echo(_line(found, cost, template, coloured=not no_color), color=True)
    return FOUND


def _now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def _check(template: str | None) -> None:
    from threadline.cli.statusline_line import PARTS
    from threadline.errors import BadQuery

    wrong = [name for name in _PART.findall(template or "") if name not in PARTS]
    if wrong:
        named = ", ".join(f"{{{name}}}" for name in PARTS)
        raise BadQuery(f"The template names {{{wrong[0]}}}, which is no part; the parts are {named}.")


def _line(found: Figures, cost: str, template: str | None, *, coloured: bool) -> str:
    import os

    from threadline.cli.statusline_line import line, parts
    from threadline.render.style import colour_wanted

    # Claude Code reads the line through a pipe and shows its colours, so that a pipe is no reason to leave them out.
    in_colour = coloured and colour_wanted(os.environ, terminal=True)
    if template is None:
        return line(found, cost, coloured=in_colour)
    shown = parts(found, cost)
    return _PART.sub(lambda part: shown[part[1]] or "-", template)
