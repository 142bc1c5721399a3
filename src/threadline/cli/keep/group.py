"""`threadline keep`: the command group, and what its actions share. Actions are imported when they are used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.commands import LazyGroup, forward_options
from threadline.cli.options import CommandFunction, format_parameter, jobs_option, live_home_option, output_options
from threadline.cli.output import can_ask, print_message, report_nothing
from threadline.errors import Ambiguous, BadQuery, Missing, NotFound, Unreadable

if TYPE_CHECKING:
    from threadline.keep import Catalogue, Machine, Store

_MAX_PROBLEMS = 5
_MAX_SESSIONS = 8


def pending_message(sessions: Sequence[str]) -> str:
    """Say which sessions a merged keep has forgotten, and how to accept that."""
    from threadline.model.text import count, short_id
    from threadline.render import plain

    ids = ", ".join(plain(short_id(session)) or "-" for session in sessions[:_MAX_SESSIONS])
    more = ", …" if len(sessions) > _MAX_SESSIONS else ""
    return (
        f"A merged keep has forgotten {count(len(sessions), 'session')} ({ids}{more}). Nothing is forgotten here until"
        " you accept that: `threadline keep accept-forgotten`."
    )


class FolderPath(click.Path):
    """A folder. An empty name, as an unset variable gives, is an error rather than the current folder."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a name to a path."""
        if value == "":
            self.fail("the name of the folder is empty.", param, ctx)
        return super().convert(value, param, ctx)


class KeepNotFound(NotFound):
    """There is no keep yet, which is not an error."""


def keep_options(function: CommandFunction) -> CommandFunction:
    """`--keep` and `--key-file`: the folder of the keep, and its key."""
    for option in (
        click.option(
            "--key-file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="The key of an encrypted keep. Default: THREADLINE_KEEP_KEY_FILE, or the passphrase.",
        ),
        click.option(
            "--keep",
            "folder",
            type=FolderPath(),
            metavar="DIR",
            help="The folder of the keep. Default: THREADLINE_KEEP, or the platform's data folder.",
        ),
    ):
        function = option(function)
    return function


def machine_option(function: CommandFunction) -> CommandFunction:
    """`--machine`: only what one machine stored."""
    return click.option(
        "--machine", metavar="NAME", help="Only what this machine stored; `keep status` lists machines."
    )(function)


def keep_path(folder: Path | None) -> Path:
    """The folder of the keep.

    Raises:
        BadQuery: THREADLINE_KEEP turns the keep off.
        Missing: zstandard is not installed.
    """
    require_zstandard()
    from threadline.keep import default_folder, is_keep_enabled

    if folder is not None:
        return Path(os.path.abspath(os.path.expanduser(folder)))  # noqa: PTH100, PTH111 - those of Path raise
    if not is_keep_enabled():
        value = os.environ.get("THREADLINE_KEEP", "")
        raise BadQuery(f"THREADLINE_KEEP={value} turns the keep off. Name a folder with --keep DIR, or unset it.")
    return default_folder()


def require_zstandard() -> None:
    """Make sure that zstandard is installed.

    Raises:
        Missing: it is not.
    """
    from importlib.util import find_spec

    if find_spec("zstandard") is None:
        raise Missing("A keep needs zstandard, which is not installed. Run: pip install 'threadline[keep]'")


def open_keep(folder: Path | None, key_file: Path | None = None) -> Store:
    """Open the existing keep for reading; ask for its passphrase if necessary.

    Raises:
        KeepNotFound: there is none.
        Unreadable: it is encrypted and its key is not available.
    """
    where = keep_path(folder)
    from threadline.keep import (
        KEY_FILE_VARIABLE,
        PASSPHRASE_VARIABLE,
        Store,
        is_keep,
        machine_folder,
        missing_keep_message,
    )

    if not is_keep(where):
        if where.is_dir() and any(where.iterdir()):
            raise NotFound(f"{str(where)!r} is not a keep. `threadline keep path` prints where yours is.")
        missing = missing_keep_message(machine_folder(), where)
        if missing is not None:
            raise Unreadable(missing)
        raise KeepNotFound(f"There is no keep in {str(where)!r} yet. Run `threadline keep` to create one.")
    store = Store.unlock(where, key_file=key_file) if key_file is not None else Store(where)
    if not store.is_key_missing:
        return store
    if store.has_passphrase and can_ask():
        passphrase = click.prompt("Passphrase of the keep", hide_input=True, err=True)
        return Store.unlock(where, passphrase=passphrase)
    raise Unreadable(
        f"The keep {str(where)!r} is encrypted. Name its key file with --key-file or {KEY_FILE_VARIABLE}, or"
        f" set {PASSPHRASE_VARIABLE} to its passphrase."
    )


def open_catalogue(
    folder: Path | None, key_file: Path | None = None, *, trust_cache: bool = True
) -> tuple[Catalogue, Machine]:
    """Open the existing keep; return its catalogue and this machine. Damage is reported as warnings.

    Raises:
        NotFound: there is no keep.
        Unreadable: it is encrypted and its key is not available.
    """
    store = open_keep(folder, key_file)
    from threadline.find import homes
    from threadline.keep import Catalogue, recognise_machine, this_machine

    machine = this_machine()
    catalogue = Catalogue(store, machine.folder, trust_cache=trust_cache)
    catalogue.save_cache()
    print_problems(catalogue.problems)
    if catalogue.last_run(machine.id) is None and catalogue.manifests:
        machine, message = recognise_machine(catalogue, machine, homes())
        print_problems([message] if message is not None else [])
    return catalogue, machine


def find_machine(catalogue: Catalogue, name: str | None, here: Machine) -> str:
    """The id of the machine with this name or id; without a name, this machine, or the only one there is.

    Raises:
        NotFound: there is none with this name.
        Ambiguous: several have it.
    """
    labels = {manifest.run.machine: manifest.run.label for manifest in catalogue.manifests}
    if name is None:
        return here.id if here.id in labels or len(labels) != 1 else next(iter(labels))
    matches = [id_ for id_, label in labels.items() if name in (id_, label)]
    if not matches:
        raise NotFound(f"No machine {name!r} has stored anything here. Machines: {', '.join(labels) or 'none'}.")
    if len(matches) > 1:
        raise Ambiguous(f"Several machines are named {name!r}. Use an id instead: {', '.join(matches)}.")
    return matches[0]


def print_problems(problems: Sequence[str]) -> None:
    """Print the first few problems of a keep to standard error."""
    for problem in problems[:_MAX_PROBLEMS]:
        print_message(problem)
    if len(problems) > _MAX_PROBLEMS:
        print_message(f"… and {len(problems) - _MAX_PROBLEMS:,} more. `threadline keep verify` lists all.")


@contextmanager
def deferred_progress_bar(label: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A progress bar that appears once the total is known: yields functions for the total and for each advance."""
    from threadline.cli.output import progress_bar

    with ExitStack() as stack:
        bars: list[Callable[[int], None]] = []

        def planned(total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress_bar(label, total, rate=True)))

        def advance(done: int) -> None:
            if bars:
                bars[0](done)

        yield planned, advance


ACTIONS = {
    "status": ("keep.reports:status", "Show what the keep contains and what is at risk."),
    "list": ("keep.reports:list_sessions", "List the sessions in the keep, newest first."),
    "diff": ("keep.reports:diff", "Show what changed between runs."),
    "restore": ("keep.restore:restore", "Put sessions back into a Claude home."),
    "verify": ("keep.maintenance:verify", "Check every byte of the keep against its hash."),
    "forget": ("keep.maintenance:forget", "Delete a session from the keep permanently."),
    "merge": ("keep.maintenance:merge", "Import from other keeps."),
    "accept-forgotten": ("keep.maintenance:accept", "Forget what a merged keep has forgotten."),
    "pack": ("keep.maintenance:pack", "Combine small packs into large ones."),
    "install": ("keep.install:install", "Print how to run keep automatically."),
    "uninstall": ("keep.install:uninstall", "Print how to stop running it automatically."),
    "path": ("keep.reports:path", "Print the folder of the keep."),
}

_EPILOG = """
\b
Examples:
  threadline keep                        store everything that is new
  threadline keep status                 what it contains, and what is at risk
  threadline keep list --only            sessions that Claude Code has deleted
  threadline keep restore 55604662       put a session back
  threadline keep install                how to run it automatically
  threadline keep --keep /mnt/usb/keep   into another folder
  threadline keep --keep DIR --encrypt   a new, encrypted keep

\b
Exit codes: 0 success; 1 no Claude home; 2 an error, or a file was not stored.
"""


class KeepGroup(LazyGroup):
    """The actions of `threadline keep`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import an action, or say that zstandard is missing."""
        try:
            return super().get_command(ctx, cmd_name)
        except ModuleNotFoundError:
            require_zstandard()
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the action. A keep that does not exist yet is not an error."""
        try:
            return super().invoke(ctx)
        except KeepNotFound as error:
            return report_nothing(str(error))


@click.group(
    cls=KeepGroup,
    sections={"Actions": ACTIONS},
    invoke_without_command=True,
    subcommand_metavar="[ACTION] [ARGS]...",
    epilog=_EPILOG,
)
@click.option("--quiet", is_flag=True, help="Print nothing unless something is wrong; for hooks and timers.")
@click.option(
    "--encrypt",
    is_flag=True,
    help="Create an encrypted keep, with a passphrase (you are asked for it) or the key in --key-file. The index and"
    " files unpacked from the keep are in plain text in the cache folder (docs/keep.md says how to avoid that).",
)
@click.option("--begin", is_flag=True, help="Create a new keep although the previous one is missing.")
@keep_options
@live_home_option
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
    folder of its own. Only `keep forget` removes anything from it.
    """
    if ctx.invoked_subcommand is not None:
        shared = {"folder": folder, "key_file": key_file, "homes": homes, "jobs": jobs}
        own = {"quiet": quiet, "encrypt": encrypt, "begin": begin, format_parameter(output): output != "table"}
        forward_options(ctx, keep, {**shared, **own}, "threadline keep", {"homes": "home", "folder": "keep"})
        return EXIT_OK
    require_zstandard()
    from threadline.cli.keep.run import run  # not at the top: --help must work without zstandard

    return run(folder, key_file, homes, jobs, output, quiet=quiet, encrypt=encrypt, begin=begin)
