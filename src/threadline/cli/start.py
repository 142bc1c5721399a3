"""The command group, and how its commands are found."""

from __future__ import annotations

import io
import os
from importlib import import_module
from typing import Any

import click

from threadline.cli import FAILED, FOUND

# Each is a module of this package that holds a command of the same name, in the order of the help.
COMMANDS = (
    "list",
    "search",
    "usage",
    "blocks",
    "explain",
    "watch",
    "serve",
    "show",
    "tree",
    "export",
    "calls",
    "errors",
    "files",
    "todos",
    "request",
    "context",
    "prices",
    "statusline",
    "doctor",
    "scan",
    "entries",
    "history",
    "sql",
    "index",
    "keep",
    "demo",
)
# What ccusage calls its reports.
_ELSEWHERE = {"daily": "day", "weekly": "week", "monthly": "month", "session": "session"}
_COMPLETION = "_THREADLINE_COMPLETE"


class Commands(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

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
            raise click.UsageError(_meant(args[0]), ctx)
        return super().resolve_command(ctx, args)


def _meant(word: str) -> str:
    """What to write instead of a word that is no command."""
    from difflib import get_close_matches
    from os.path import isdir, isfile
    from shlex import quote

    path = os.path.expanduser(word)  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if isdir(path):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        return f"{word!r} is no command; did you mean `threadline --home {quote(word)}`?"
    if isfile(path):  # noqa: PTH113 - the same
        return f"{word!r} is no command; did you mean `threadline entries {quote(word)}`?"
    if word in _ELSEWHERE:
        return f"There is no command {word!r}; `threadline usage --by {_ELSEWHERE[word]}` has that."
    near = get_close_matches(word.lower(), COMMANDS, n=1)
    if near:
        return f"There is no command {word!r}; did you mean `threadline {near[0]}`?"
    return f"There is no command {word!r}; the commands are {', '.join(COMMANDS)}."


def start(arguments: list[str]) -> int:
    """Run the command line; give the exit code. Raises what `threadline.cli.run` turns into sentences."""
    from threadline.cli.overview import threadline

    if _COMPLETION in os.environ:
        threadline.main(arguments, prog_name="threadline")  # answers the shell, and leaves
    # Not `main`: it takes a closed pipe for a failure and an interrupt for an answer.
    try:
        with threadline.make_context("threadline", list(arguments)) as context:
            answer: Any = threadline.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _show(error)
    return answer if isinstance(answer, int) else FOUND


def _show(error: click.ClickException) -> int:
    from threadline.cli.output import plain

    said = io.StringIO()
    error.show(said)
    click.echo("\n".join(map(plain, said.getvalue().splitlines())), err=True)
    return FAILED
