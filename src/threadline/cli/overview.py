"""Bare `threadline`: everything there is, at a glance."""

from __future__ import annotations

from typing import Any

import click

from threadline import __version__
from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, jobs_option, output_options, parameter
from threadline.cli.start import Commands

_EPILOG = """
\b
Examples:
  threadline                        what there is, in all homes
  threadline --home ~/old/.claude   the same of another home
  threadline --json                 the same for a program
  threadline list                   the newest sessions
  threadline show last              the newest one, as the conversation it was
  threadline doctor --check         read everything, prove nothing is lost
  threadline demo demo-home         make a home to try things on
"""


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=_EPILOG,
)
@home_option
@jobs_option
@output_options
@click.version_option(__version__, "-V", "--version", prog_name="threadline")
@click.pass_context
def threadline(ctx: click.Context, homes: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Read everything Claude Code leaves on disk, without losing a byte.

    Without a command: what there is, in all homes. Exit codes: 0 found, 1 nothing, 2 an error.
    """
    if ctx.invoked_subcommand is None:
        return show(homes, jobs, output)
    _pass_on(ctx, {"homes": homes, "jobs": jobs, parameter(output): output != "table"})
    return FOUND


def _pass_on(ctx: click.Context, given: dict[str, Any]) -> None:
    """Give the options that stand before a command on to it, where it has them."""
    name = ctx.invoked_subcommand or ""
    command = threadline.get_command(ctx, name)
    taken = {one.name for one in command.params} if command is not None else set()
    passed = {option: value for option, value in given.items() if value}
    for option in (option for option in passed if option not in taken):
        said = {"homes": "home"}.get(option, option.removeprefix("as_").replace("_", "-"))
        raise click.UsageError(f"`threadline {name}` has no option --{said}.")
    ctx.default_map = {name: passed}


def show(named: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Print the overview; give the exit code."""
    from threadline.cli import output as out
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home

    with archive_of(named, jobs) as archive:
        seen = archive.overview()
    if not seen.homes:
        say_no_home()
        if output == "json":
            out.print_json(seen)
        return NOTHING
    if output == "json":
        out.print_json(seen)
    elif output == "table":
        from threadline.cli.overview_page import page

        click.echo(page(seen, named))
    else:
        out.print_rows((out.to_plain(project) for project in seen.projects), output)
    return FOUND if seen.transcripts else NOTHING
