"""The command group: finds and imports commands, forwards options, and runs bare `threadline`.

Not called `main`: `threadline.cli.main` is the entry point (a function), and a submodule of that name would replace
it.
"""

from __future__ import annotations

import io
import os
from importlib import import_module
from typing import Any

import click

from threadline import __version__
from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli.options import format_parameter, home_option, jobs_option, output_options

COMMANDS = {
    "list": "List sessions, newest first.",
    "search": "Search all sessions.",
    "usage": "Report tokens and cost by day, project, model, session, ...",
    "blocks": "List the five-hour windows that usage limits apply to.",
    "explain": "Show how an amount was computed, line by line.",
    "watch": "Follow all sessions live.",
    "serve": "Browse all sessions in a local web page.",
    "show": "Print a session as a conversation.",
    "tree": "Show a session's turns, branches, compactions and agents.",
    "export": "Write sessions to files, with secrets redacted.",
    "calls": "List tool calls with input, outcome and duration.",
    "errors": "List failed, refused, interrupted or lost calls.",
    "files": "Show the files a session touched, at any point in time.",
    "todos": "Show todo and task lists, at any point in time.",
    "request": "Show what the model was sent.",
    "context": "Show how full the context window was, and why.",
    "prices": "List model prices and their sources.",
    "statusline": "Print one line for Claude Code's status line.",
    "doctor": "Check every transcript for damage and unknown fields.",
    "scan": "Report secrets found in transcripts.",
    "entries": "Print the entries of a transcript.",
    "history": "List the prompts you typed, newest first.",
    "sql": "Query the index with SQL.",
    "index": "Show, refresh or rebuild the index.",
    "keep": "Store sessions permanently, before Claude Code deletes them.",
    "demo": "Write a small example Claude home to try things on.",
}
"""Every command with its one-line help, in help order. A module of this package with the same name defines it."""
# What ccusage calls its reports.
_CCUSAGE_REPORTS = {"daily": "day", "weekly": "week", "monthly": "month", "session": "session"}
_COMPLETION_VARIABLE = "_THREADLINE_COMPLETE"


class CommandGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing their modules."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"threadline.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, or an error that says what may have been meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(_suggest_command(args[0]), ctx)
        return super().resolve_command(ctx, args)


def _suggest_command(word: str) -> str:
    """What to write instead of a word that is no command."""
    from difflib import get_close_matches
    from os.path import isdir, isfile
    from shlex import quote

    path = os.path.expanduser(word)  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if isdir(path):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        return f"{word!r} is no command; did you mean `threadline --home {quote(word)}`?"
    if isfile(path):  # noqa: PTH113 - the same
        return f"{word!r} is no command; did you mean `threadline entries {quote(word)}`?"
    if word in _CCUSAGE_REPORTS:
        return f"There is no command {word!r}; `threadline usage --by {_CCUSAGE_REPORTS[word]}` has that."
    near = get_close_matches(word.lower(), COMMANDS, n=1)
    if near:
        return f"There is no command {word!r}; did you mean `threadline {near[0]}`?"
    return f"There is no command {word!r}; the commands are {', '.join(COMMANDS)}."


def run_command_line(arguments: list[str]) -> int:
    """Run the command line; give the exit code. Raises what `threadline.cli.run` turns into sentences."""
    if _COMPLETION_VARIABLE in os.environ:
        threadline.main(arguments, prog_name="threadline")  # answers the shell, and leaves
    # Not `main`: it takes a closed pipe for a failure and an interrupt for an answer.
    try:
        with threadline.make_context("threadline", list(arguments)) as context:
            answer: Any = threadline.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _print_click_error(error)
    return answer if isinstance(answer, int) else EXIT_OK


def _print_click_error(error: click.ClickException) -> int:
    from threadline.render import plain

    said = io.StringIO()
    error.show(said)
    click.echo("\n".join(map(plain, said.getvalue().splitlines())), err=True)
    return EXIT_FAILED


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
    cls=CommandGroup,
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
        return print_overview(homes, jobs, output)
    _forward_options(ctx, {"homes": homes, "jobs": jobs, format_parameter(output): output != "table"})
    return EXIT_OK


def _forward_options(ctx: click.Context, given: dict[str, Any]) -> None:
    """Give the options that stand before a command on to it, where it has them."""
    name = ctx.invoked_subcommand or ""
    command = threadline.get_command(ctx, name)
    taken = {param.name for param in command.params} if command is not None else set()
    passed = {option: value for option, value in given.items() if value}
    for option in (option for option in passed if option not in taken):
        said = {"homes": "home"}.get(option, option.removeprefix("as_").replace("_", "-"))
        raise click.UsageError(f"`threadline {name}` has no option --{said}.")
    ctx.default_map = {name: passed}


def print_overview(named: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Print the overview; give the exit code."""
    from threadline.cli import output as out
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    with open_archive(named, jobs) as archive:
        seen = archive.overview()
    if not seen.homes:
        report_no_home()
        if output == "json":
            out.print_json(seen)
        return EXIT_NOTHING
    if output == "json":
        out.print_json(seen)
    elif output == "table":
        from threadline.cli.overview import format_overview

        click.echo(format_overview(seen, named))
    else:
        out.print_rows((out.to_json_value(project) for project in seen.projects), output)
    return EXIT_OK if seen.transcripts else EXIT_NOTHING
