"""`threadline keep`: the command group. Actions are imported when they are used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.commands import forward_options
from threadline.cli.keep.options import KeepNotFound, keep_options, kept_homes_option, require_zstandard
from threadline.cli.options import format_parameter, jobs_option, output_options
from threadline.cli.screen import report_nothing
from threadline.errors import did_you_mean

ACTIONS = {
    "status": ("reports:status", "Show what is kept and what is at risk."),
    "list": ("reports:list_sessions", "List kept sessions, newest first."),
    "diff": ("reports:diff", "Show what changed between runs."),
    "restore": ("restore:restore", "Put sessions back into a Claude home."),
    "verify": ("maintenance:verify", "Check every kept byte against its hash."),
    "forget": ("maintenance:forget", "Delete a session from the keep permanently."),
    "merge": ("maintenance:merge", "Import from other keeps."),
    "pack": ("maintenance:pack", "Combine small packs into large ones."),
    "install": ("install:install", "Print how to run keep automatically."),
    "uninstall": ("install:uninstall", "Print how to stop running it automatically."),
    "path": ("reports:path", "Print the folder of the keep."),
}
"""Every action in the order of the help: `module:command` in `threadline.cli.keep`, and its one-line help."""

_EPILOG = """
\b
Examples:
  threadline keep                    store everything that is new
  threadline keep status             what is kept, and what is at risk
  threadline keep list --only        sessions that Claude Code has deleted
  threadline keep restore 55604662   put a session back
  threadline keep install            how to run it automatically
  threadline keep --keep /mnt/usb/keep     into another folder
  threadline keep --keep DIR --encrypt     a new, encrypted keep

\b
Exit codes: 0 success; 1 no Claude home; 2 an error, or a file was not kept.
"""


class ActionGroup(click.Group):
    """A group that imports an action when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The actions, in the order of the help."""
        del ctx
        return [*ACTIONS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import an action."""
        del ctx
        if cmd_name not in ACTIONS:
            return None
        module, _, name = ACTIONS[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(import_module(f"threadline.cli.keep.{module}"), name)
        except ModuleNotFoundError:
            require_zstandard()
            raise
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the actions from the table, without importing their modules."""
        del ctx
        with formatter.section("Actions"):
            formatter.write_dl([(name, text) for name, (_, text) in ACTIONS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The action that the first word names, or an error with a suggestion."""
        if args[0] not in ACTIONS and not args[0].startswith("-") and not ctx.resilient_parsing:
            match = did_you_mean(args[0], ACTIONS)
            hint = f"Did you mean `threadline keep {match}`?" if match else f"Actions: {', '.join(ACTIONS)}."
            raise click.UsageError(f"Unknown action {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the action. That there is no keep yet is not an error."""
        try:
            return super().invoke(ctx)
        except KeepNotFound as error:
            return report_nothing(str(error))


@click.group(cls=ActionGroup, invoke_without_command=True, subcommand_metavar="[ACTION] [ARGS]...", epilog=_EPILOG)
@click.option("--quiet", is_flag=True, help="Print nothing unless something is wrong; for hooks and timers.")
@click.option(
    "--encrypt",
    is_flag=True,
    help="Create an encrypted keep, with a passphrase (you are asked for it) or the key in --key-file.",
)
@click.option("--begin", is_flag=True, help="Create a new keep although the previous one is missing.")
@keep_options
@kept_homes_option
@jobs_option
@output_options
@click.pass_context
def keep(
    ctx: click.Context,
    *,
    quiet: bool,
    encrypt: bool,
    begin: bool,
    folder: Path | None,
    key_file: Path | None,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Store sessions permanently, before Claude Code deletes them.

    Stores transcripts and everything that belongs to them, byte for byte. Claude Code deletes files that it has not
    written to for 30 days. Without an action, this stores what is new or has grown since the last run, compressed, in a
    folder of its own. Nothing leaves it again except by `keep forget`.
    """
    if ctx.invoked_subcommand is not None:
        shared = {"folder": folder, "key_file": key_file, "homes": homes, "jobs": jobs}
        own = {"quiet": quiet, "encrypt": encrypt, "begin": begin, format_parameter(output): output != "table"}
        forward_options(ctx, keep, {**shared, **own}, "threadline keep", {"homes": "home", "folder": "keep"})
        return EXIT_OK
    require_zstandard()
    from threadline.cli.keep.run import run  # not at the top: --help must work without zstandard

    return run(folder, key_file, homes, jobs, output, quiet=quiet, encrypt=encrypt, begin=begin)
