"""What the actions of `threadline keep` share: which keep, its key, its machines, and a progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli.options import CommandFunction
from threadline.errors import NotFound

if TYPE_CHECKING:
    from threadline.keep import Catalogue, Machine, Store

_OFF_WORDS = frozenset({"0", "off", "no", "false"})


class FolderPath(click.Path):
    """A folder that was named; no name at all, as an empty variable gives, would be the one somebody is in."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder, as a path."""
        if value == "":
            self.fail("an empty name is no folder's.", param, ctx)
        return super().convert(value, param, ctx)


class KeepNotFound(NotFound):
    """There is no keep yet: nothing is found, and nothing is wrong."""


def keep_options(function: CommandFunction) -> CommandFunction:
    """`--keep` and `--key-file`: which keep, and what opens it where it is encrypted."""
    for option in (
        click.option(
            "--key-file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="The key of a keep that is encrypted; by default THREADLINE_KEEP_KEY_FILE, or its passphrase.",
        ),
        click.option(
            "--keep",
            "folder",
            type=FolderPath(),
            metavar="DIR",
            help="The keep; by default THREADLINE_KEEP, or the platform's folder for data.",
        ),
    ):
        function = option(function)
    return function


def kept_homes_option(function: CommandFunction) -> CommandFunction:
    """`--home`: which homes are kept, instead of those that are found."""
    return click.option(
        "--home",
        "homes",
        multiple=True,
        metavar="DIR",
        help="A Claude home, instead of those found; may be given several times.",
    )(function)


def machine_option(function: CommandFunction) -> CommandFunction:
    """`--machine`: of which machine, by its name."""
    return click.option("--machine", metavar="NAME", help="Only what this machine kept; `keep status` names them.")(
        function
    )


def keep_path(folder: Path | None) -> Path:
    """Where the keep is.

    Raises:
        BadQuery: THREADLINE_KEEP says that there is none.
        Missing: what keeps need is not installed.
    """
    from threadline.errors import BadQuery

    require_zstandard()
    from threadline.keep import default_folder

    if folder is not None:
        return Path(os.path.abspath(os.path.expanduser(folder)))  # noqa: PTH100, PTH111 - those of Path raise
    if os.environ.get("THREADLINE_KEEP", "").strip().lower() in _OFF_WORDS:
        raise BadQuery("THREADLINE_KEEP says that there is no keep; name one with --keep DIR, or take that away.")
    return default_folder()


def require_zstandard() -> None:
    """See that what compresses is installed.

    Raises:
        Missing: it is not.
    """
    from importlib.util import find_spec

    from threadline.errors import Missing

    if find_spec("zstandard") is None:
        raise Missing("A keep needs zstandard, which is not installed; run: pip install 'threadline[keep]'")


def open_keep(folder: Path | None, key_file: Path | None = None) -> Store:
    """The keep that is there, ready to be read.

    Raises:
        NoKeep: there is none.
        Unreadable: it is encrypted, and nothing opens it.
    """
    where = keep_path(folder)
    from threadline.errors import Unreadable
    from threadline.keep import Store, encryption, is_keep

    is_there = is_keep(where)
    if not is_there and where.is_dir() and any(where.iterdir()):
        raise NotFound(f"{str(where)!r} is no keep; `threadline keep path` says where yours is.")
    if not is_there:
        from threadline.keep import machine_folder, missing_keep_message

        gone = missing_keep_message(machine_folder(), where)
        if gone is not None:
            raise Unreadable(gone)
        raise KeepNotFound(f"There is no keep in {str(where)!r} yet; `threadline keep` begins one.")
    store = Store(where, encryption.key_from_file(key_file) if key_file is not None else None)
    if not store.is_key_missing:
        return store
    if (where / encryption.IDENTITY_FILE).exists() and sys.stdin is not None and sys.stdin.isatty():
        said = click.prompt("Passphrase of the keep", hide_input=True, err=True)
        return Store(where, encryption.key_from_passphrase(where, said))
    raise Unreadable(
        f"The keep {str(where)!r} is encrypted; name its key with --key-file or {encryption.KEY_FILE_VARIABLE},"
        f" or its passphrase with {encryption.PASSPHRASE_VARIABLE}."
    )


def open_catalogue(folder: Path | None, key_file: Path | None = None) -> tuple[Catalogue, Machine]:
    """What a keep holds, and which machine asks. What is damaged is told, and does not hide the rest.

    Raises:
        NotFound: there is no keep.
        Unreadable: it is encrypted, and nothing opens it.
    """
    store = open_keep(folder, key_file)
    from threadline.keep import Catalogue, open_machine_cache, this_machine

    machine = this_machine()
    catalogue = Catalogue(store, open_machine_cache(store, machine))
    catalogue.remember()
    print_problems(catalogue.problems)
    if catalogue.last_run(machine.id) is None and catalogue.manifests:
        from threadline.find import homes
        from threadline.keep import recognise_machine

        machine, said = recognise_machine(catalogue, machine, homes())
        print_problems([said] if said is not None else [])
    return catalogue, machine


def find_machine(catalogue: Catalogue, name: str | None, here: Machine) -> str:
    """The id of the machine of that name or id; else this one, or the only one there is.

    Raises:
        NotFound: there is none of that name.
        Ambiguous: several have it.
    """
    from threadline.errors import Ambiguous, NotFound

    known = {manifest.run.machine: manifest.run.label for manifest in catalogue.manifests}
    if name is None:
        return here.id if here.id in known or len(known) != 1 else next(iter(known))
    fit = [one for one, label in known.items() if name in (one, label)]
    if not fit:
        raise NotFound(f"No machine {name!r} has kept anything here; those that have: {', '.join(known) or 'none'}.")
    if len(fit) > 1:
        raise Ambiguous(f"Several machines are called {name!r}: {', '.join(fit)}; give one of these.")
    return fit[0]


def print_problems(told: list[str], most: int = 5) -> None:
    """Say on standard error what is wrong with a keep, the first few of it."""
    from threadline.cli import output as out

    for sentence in told[:most]:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if len(told) > most:
        click.echo(f"threadline: … and {len(told) - most:,} more; `threadline keep verify` tells all.", err=True)


def print_record(row: dict[str, Any], output: str) -> None:
    """A single answer for a program."""
    from threadline.cli import output as out

    if output == "json":
        out.print_json(row)
    else:
        out.print_rows([row], output)


@contextmanager
def deferred_progress_bar(label: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two functions: one that says how many bytes there are to be done, one that says how many more were."""
    from threadline.cli.screen import progress_bar

    with ExitStack() as shown:
        advance: list[Callable[[int], None]] = []

        def planned(total: int) -> None:
            if not advance:
                advance.append(shown.enter_context(progress_bar(label, total, rate=True)))

        def done(more: int) -> None:
            if advance:
                advance[0](more)

        yield planned, done
