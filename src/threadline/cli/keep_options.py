"""What the actions of `threadline keep` share: which keep, its key, and a bar whose length is known late."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli.options import Decorated
from threadline.errors import NotFound

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue
    from threadline.keep.machine import Machine
    from threadline.keep.store import Store

_OFF = frozenset({"0", "off", "no", "false"})


class Folder(click.Path):
    """A folder that was named; no name at all, as an empty variable gives, would be the one somebody is in."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder, as a path."""
        if value == "":
            self.fail("an empty name is no folder's.", param, ctx)
        return super().convert(value, param, ctx)


class NoKeep(NotFound):
    """There is no keep yet: nothing is found, and nothing is wrong."""


def keep_options(function: Decorated) -> Decorated:
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
            type=Folder(),
            metavar="DIR",
            help="The keep; by default THREADLINE_KEEP, or the platform's folder for data.",
        ),
    ):
        function = option(function)
    return function


def living_option(function: Decorated) -> Decorated:
    """`--home`: which homes are kept, instead of those that are found."""
    return click.option(
        "--home",
        "homes",
        multiple=True,
        metavar="DIR",
        help="A Claude home, instead of those found; may be given several times.",
    )(function)


def machine_option(function: Decorated) -> Decorated:
    """`--machine`: of which machine, by its name."""
    return click.option("--machine", metavar="NAME", help="Only what this machine kept; `keep status` names them.")(
        function
    )


def place(folder: Path | None) -> Path:
    """Where the keep is.

    Raises:
        BadQuery: THREADLINE_KEEP says that there is none.
        Missing: what keeps need is not installed.
    """
    from threadline.errors import BadQuery

    need_zstandard()
    from threadline.keep.store import default_folder

    if folder is not None:
        return Path(os.path.abspath(os.path.expanduser(folder)))  # noqa: PTH100, PTH111 - those of Path raise
    if os.environ.get("THREADLINE_KEEP", "").strip().lower() in _OFF:
        raise BadQuery("THREADLINE_KEEP says that there is no keep; name one with --keep DIR, or take that away.")
    return default_folder()


def need_zstandard() -> None:
    """See that what compresses is installed.

    Raises:
        Missing: it is not.
    """
    from importlib.util import find_spec

    from threadline.errors import Missing

    if find_spec("zstandard") is None:
        raise Missing("A keep needs zstandard, which is not installed; run: pip install 'threadline[keep]'")


def opened(folder: Path | None, key_file: Path | None = None) -> Store:
    """The keep that is there, ready to be read.

    Raises:
        NoKeep: there is none.
        Unreadable: it is encrypted, and nothing opens it.
    """
    where = place(folder)
    from threadline.errors import Unreadable
    from threadline.keep import sealing
    from threadline.keep.store import Store, is_keep

    is_there = is_keep(where)
    if not is_there and where.is_dir() and any(where.iterdir()):
        raise NotFound(f"{str(where)!r} is no keep; `threadline keep path` says where yours is.")
    if not is_there:
        from threadline.keep.lately import away
        from threadline.keep.machine import machine_folder

        gone = away(machine_folder(), where)
        if gone is not None:
            raise Unreadable(gone)
        raise NoKeep(f"There is no keep in {str(where)!r} yet; `threadline keep` begins one.")
    store = Store(where, sealing.key_from_file(key_file) if key_file is not None else None)
    if not store.is_locked:
        return store
    if (where / sealing.IDENTITY).exists() and sys.stdin is not None and sys.stdin.isatty():
        said = click.prompt("Passphrase of the keep", hide_input=True, err=True)
        return Store(where, sealing.key_from_passphrase(where, said))
    raise Unreadable(
        f"The keep {str(where)!r} is encrypted; name its key with --key-file or {sealing.KEY_FILE},"
        f" or its passphrase with {sealing.PASSPHRASE}."
    )


def catalogue_of(folder: Path | None, key_file: Path | None = None) -> tuple[Catalogue, Machine]:
    """What a keep holds, and which machine asks. What is damaged is told, and does not hide the rest.

    Raises:
        NotFound: there is no keep.
        Unreadable: it is encrypted, and nothing opens it.
    """
    store = opened(folder, key_file)
    from threadline.keep.catalogue import Catalogue
    from threadline.keep.keeping import memory_of
    from threadline.keep.machine import this_machine

    machine = this_machine()
    catalogue = Catalogue(store, memory_of(store, machine))
    catalogue.remember()
    say_problems(catalogue.problems)
    if catalogue.last_run(machine.id) is None and catalogue.manifests:
        from threadline.keep.living import living
        from threadline.keep.recognising import recognised

        machine, said = recognised(catalogue, machine, living())
        say_problems([said] if said is not None else [])
    return catalogue, machine


def machine_named(catalogue: Catalogue, name: str | None, here: Machine) -> str:
    """The id of the machine of that name or id; else this one, or the only one there is.

    Raises:
        NotFound: there is none of that name.
        Ambiguous: several have it.
    """
    from threadline.errors import Ambiguous, NotFound

    known = {one.run.machine: one.run.label for one in catalogue.manifests}
    if name is None:
        return here.id if here.id in known or len(known) != 1 else next(iter(known))
    fit = [one for one, label in known.items() if name in (one, label)]
    if not fit:
        raise NotFound(f"No machine {name!r} has kept anything here; those that have: {', '.join(known) or 'none'}.")
    if len(fit) > 1:
        raise Ambiguous(f"Several machines are called {name!r}: {', '.join(fit)}; give one of these.")
    return fit[0]


def say_problems(told: list[str], most: int = 5) -> None:
    """Say on standard error what is wrong with a keep, the first few of it."""
    from threadline.cli import output as out

    for sentence in told[:most]:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if len(told) > most:
        click.echo(f"threadline: … and {len(told) - most:,} more; `threadline keep verify` tells all.", err=True)


def print_one(row: dict[str, Any], output: str) -> None:
    """A single answer for a program."""
    from threadline.cli import output as out

    if output == "json":
        out.print_json(row)
    else:
        out.print_rows([row], output)


@contextmanager
def bar(label: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two functions: one that says how many bytes there are to be done, one that says how many more were."""
    from threadline.cli.reading import progress

    with ExitStack() as shown:
        advance: list[Callable[[int], None]] = []

        def planned(total: int) -> None:
            if not advance:
                advance.append(shown.enter_context(progress(label, total, rate=True)))

        def done(more: int) -> None:
            if advance:
                advance[0](more)

        yield planned, done
