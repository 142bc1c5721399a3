"""`threadline keep`: the command group, and the run that stores what is new."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli.keep.options import KeepNotFound, keep_options, kept_homes_option
from threadline.cli.options import format_parameter, jobs_option, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from threadline.keep import KeepResult, Machine, Store
    from threadline.model.homes import Home

# Each is a module of this package that holds the action, in the order of the help.
ACTIONS = {
    "status": ("reports:status", "Show what is kept and what is at risk."),
    "list": ("reports:list_sessions", "List kept sessions, newest first."),
    "diff": ("reports:diff", "Show what changed between runs."),
    "restore": ("restore:restore", "Put sessions back into a Claude home."),
    "verify": ("maintenance:verify", "Check every kept byte against its hash."),
    "forget": ("maintenance:forget", "Delete a session from the keep permanently."),
    "merge": ("maintenance:merge", "Import from other keeps."),
    "pack": ("maintenance:pack", "Combine small packs into large ones."),
    "install": ("install:install", "Run keep automatically."),
    "uninstall": ("install:uninstall", "Stop running keep automatically."),
    "path": ("reports:path", "Print the folder of the keep."),
}
"""Every action: `module:command` below `threadline.cli.keep`, and its one-line help."""

_EPILOG = """
\b
Examples:
  threadline keep                    keep all that is new
  threadline keep status             what is kept, and what is at risk
  threadline keep list --only        sessions that Claude Code has deleted
  threadline keep restore 55604662   put one back where it was
  threadline keep install            how to have it done by itself
  threadline keep --keep /mnt/usb/keep     into another folder
  threadline keep --keep DIR --encrypt     a new keep that is encrypted

\b
Exit codes: 0 kept; 1 there is no home; 2 an error, or a file that could not be kept.
"""


class ActionGroup(click.Group):
    """A group that imports an action when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The actions, in the order of the help."""
        del ctx
        return [*ACTIONS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The action of that name."""
        del ctx
        if cmd_name not in ACTIONS:
            return None
        module, _, name = ACTIONS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"threadline.cli.keep.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the actions from the table, without importing their modules."""
        del ctx
        with formatter.section("Actions"):
            formatter.write_dl([(name, text) for name, (_, text) in ACTIONS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The action that the first word names, or an error that says what may have been meant."""
        if args[0] not in ACTIONS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0].lower(), ACTIONS, n=1)
            told = f"did you mean `threadline keep {near[0]}`?" if near else f"the actions are {', '.join(ACTIONS)}."
            raise click.UsageError(f"`threadline keep` has no action {args[0]!r}; {told}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the action; that there is no keep yet is no error."""
        try:
            return super().invoke(ctx)
        except KeepNotFound as error:
            from threadline.cli.screen import report_nothing

            return report_nothing(str(error))


@click.group(cls=ActionGroup, invoke_without_command=True, subcommand_metavar="[ACTION] [ARGS]...", epilog=_EPILOG)
@click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong: for hooks and timers.")
@click.option(
    "--encrypt",
    is_flag=True,
    help="Begin a keep that is encrypted, with a passphrase that is asked for, or with the key in --key-file.",
)
@click.option("--begin", is_flag=True, help="Begin a new keep where there was one that is gone.")
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
    """Keep everything that Claude Code will delete: transcripts and what belongs to them, byte for byte.

    Claude Code deletes what it has not written to for 30 days. Without an action, this stores what is new or has grown
    since the last time, small, in a folder of its own; nothing of it is ever taken away again but by `keep forget`.
    """
    if ctx.invoked_subcommand is not None:
        given = {"folder": folder, "key_file": key_file, "homes": homes, "jobs": jobs}
        own = {"quiet": quiet, "encrypt": encrypt, "begin": begin, format_parameter(output): output != "table"}
        _forward_options(ctx, {**given, **own})
        return EXIT_OK
    return _run_keep(folder, key_file, homes, jobs, output, quiet=quiet, encrypt=encrypt, begin=begin)


def _forward_options(ctx: click.Context, given: dict[str, Any]) -> None:
    """Give the options that stand before an action on to it, where it has them."""
    name = ctx.invoked_subcommand or ""
    action = keep.get_command(ctx, name)
    taken = {param.name for param in action.params} if action is not None else set()
    passed = {option: value for option, value in given.items() if value}
    for option in (option for option in passed if option not in taken):
        said = {"homes": "home", "folder": "keep"}.get(option, option.removeprefix("as_").replace("_", "-"))
        raise click.UsageError(f"`threadline keep {name}` has no option --{said}.")
    ctx.default_map = {name: passed}


def _run_keep(
    folder: Path | None,
    key_file: Path | None,
    named: tuple[str, ...],
    jobs: int | None,
    output: str,
    *,
    quiet: bool,
    encrypt: bool,
    begin: bool,
) -> int:
    from threadline.cli.keep.options import deferred_progress_bar, require_zstandard
    from threadline.cli.screen import report_no_home

    require_zstandard()
    from threadline.find import homes as find_homes
    from threadline.keep import run_keep as kept_of
    from threadline.keep import this_machine

    homes = find_homes(*named)
    if not homes:
        report_no_home()
        return EXIT_NOTHING
    machine = this_machine()
    store = _open_or_create(folder, key_file, machine, encrypt=encrypt, begin=begin)
    machine = _recognise_machine(store, machine, homes)
    began = monotonic()
    with deferred_progress_bar("Keeping") as (planned, advance):
        done = kept_of(store, homes, machine, jobs=jobs or _worker_count(), planned=planned, progress=advance)
    return _print_result(store, done, machine, output, monotonic() - began, quiet=quiet)


def _recognise_machine(store: Store, machine: Machine, homes: Sequence[Home]) -> Machine:
    """This machine, under the id that it has in the keep: where that was lost, all would be kept as another's."""
    from threadline.cli import output as out
    from threadline.keep import Catalogue, has_completed_run, open_machine_cache, recognise_machine

    if machine.memory is None or has_completed_run(machine.memory):
        return machine
    if store.is_key_missing and store.run_files():
        path = str(machine.memory / "machine")
        click.echo(
            f"threadline: This machine keeps as {machine.id}. If it has kept here before, its id was lost: `threadline"
            f" keep status` with the key names it; write it into {out.plain(path)!r}.",
            err=True,
        )
        return machine
    found, said = recognise_machine(Catalogue(store, open_machine_cache(store, machine)), machine, homes)
    if said is not None:
        click.echo(f"threadline: {out.plain(said)}", err=True)
    return found


def _worker_count() -> int:
    import os

    return max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2)


def _open_or_create(
    folder: Path | None, key_file: Path | None, machine: Machine, *, encrypt: bool, begin: bool
) -> Store:
    """The keep, begun where there is none. What is encrypted can be added to without its secret."""
    from threadline.cli.keep.options import keep_path

    where = keep_path(folder)
    from threadline.errors import Unreadable
    from threadline.keep import Store, encryption, is_keep, missing_keep_message

    gone = missing_keep_message(machine.memory, where) if not begin and not is_keep(where) else None
    if gone is not None:
        raise Unreadable(f"{gone} If it is gone for good, --begin makes a new one.")
    if not encrypt:
        store = Store.make(where)
        return (
            Store(where, encryption.key_from_file(key_file)) if store.is_encrypted and key_file is not None else store
        )
    if key_file is not None:
        return Store.make(where, encryption.load_or_create_key_file(key_file))
    if (where / "keep.json").exists():
        from threadline.errors import BadQuery

        raise BadQuery(f"There is a keep in {str(where)!r} already; --encrypt begins a new one: name another folder.")
    return Store.make(where, encryption.create_passphrase_key(_ask_passphrase()))


def _ask_passphrase() -> str:
    import os
    import sys

    from threadline.errors import BadQuery
    from threadline.keep import PASSPHRASE_VARIABLE

    said = os.environ.get(PASSPHRASE_VARIABLE)
    if said:
        return said
    if sys.stdin is None or not sys.stdin.isatty():
        raise BadQuery(
            f"A passphrase is needed: run this on a terminal, set {PASSPHRASE_VARIABLE}, or name a --key-file."
        )
    told: str = click.prompt("Passphrase for the new keep", hide_input=True, confirmation_prompt=True, err=True)
    return told


def _print_result(store: Store, done: KeepResult, machine: Machine, output: str, seconds: float, *, quiet: bool) -> int:
    """What the run did, and what the keep has now."""
    from collections import Counter

    from threadline.cli import output as out
    from threadline.keep import (
        Catalogue,
        is_kept_only,
        list_differences,
        list_sessions,
        open_machine_cache,
        stored_size,
    )
    from threadline.model.places import ProblemKind

    catalogue = Catalogue(store, open_machine_cache(store, machine))
    found = list_differences(catalogue, machine.id, done.run - 1, done.run)
    counts = Counter(one.change for one in found if one.session is not None)
    for problem in done.problems[:10]:
        click.echo(f"threadline: {out.plain(f'{problem.place}: {problem.message}')}", err=True)
    if len(done.problems) > 10:  # noqa: PLR2004 - as above
        click.echo(f"threadline: … and {len(done.problems) - 10:,} more such files.", err=True)
    refused = any(one.kind is ProblemKind.UNREADABLE for one in done.problems)
    code = EXIT_FAILED if refused else EXIT_OK
    if quiet:
        return code
    kept = list_sessions(catalogue)
    row = {
        "keep": str(store.folder),
        "run": done.run,
        "new": counts["new"],
        "grown": counts["grown"],
        "changed": counts["changed"],
        "gone": counts["gone"],
        "files": done.files,
        "files_new": done.new,
        "files_grown": done.grown,
        "files_changed": done.changed,
        "files_gone": done.gone,
        "read": done.read,
        "written": done.stored,
        # What is encrypted and was never read here can be added to, and not told of.
        "sessions": len(kept) if not catalogue.unread else None,
        "kept": sum(is_kept_only(one, machine.id) for one in kept) if not catalogue.unread else None,
        "bytes": sum(one.size for one in catalogue.newest()) if not catalogue.unread else None,
        "stored": stored_size(store.folder),
        "problems": [{"place": str(one.place), "message": one.message} for one in done.problems],
        "seconds": round(seconds, 3),
    }
    if output == "table":
        for line in _result_lines(row):
            click.echo(line)
    else:
        from threadline.cli.keep.options import print_record

        print_record(row, output)
    return code


def _result_lines(row: dict[str, Any]) -> list[str]:
    from threadline.cli import output as out

    lines = [_changes_line(row)]
    if row["gone"]:
        were, them = ("was", "it") if row["gone"] == 1 else ("were", "them")
        lines.append(f"{out.counted(row['gone'], 'session')} {were} deleted since the last time; the keep has {them}.")
    if row["sessions"] is None:
        told = "it is encrypted, and its key is not at hand to say what it has"
        return [*lines, f"Kept in {out.plain(row['keep'])}, {out.format_size(row['stored'])}; {told}."]
    share = f", {row['stored'] / row['bytes']:.1%}" if row["bytes"] else ""
    stored = f"{out.format_size(row['bytes'])} in {out.format_size(row['stored'])}{share}"
    lines.append(f"Kept in {out.plain(row['keep'])}: {out.counted(row['sessions'], 'session')}, {stored}.")
    if row["kept"]:
        lines.append(f"{row['kept']:,} of them Claude Code has deleted: `threadline keep list --only`.")
    return lines


def _changes_line(row: dict[str, Any]) -> str:
    from threadline.cli import output as out

    counts = {
        "new": row["new"],
        "grown": row["grown"],
        "otherwise changed": row["changed"],
    }
    told = [f"{number:,} {word}" for word, number in counts.items() if number]
    files = row["files_new"] + row["files_grown"] + row["files_changed"]
    if not files:
        return f"Nothing is new: {out.counted(row['files'], 'file')} looked at in {row['seconds']:.2f} s."
    which = f"Sessions: {', '.join(told)}" if told else "No session is new"
    took = f"{out.format_size(row['read'])} read, {out.format_size(row['written'])} written, in {row['seconds']:.2f} s"
    return f"{which}. {out.counted(files, 'file')}, {took}."
