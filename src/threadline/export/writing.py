"""Writing what is given out: whole or not at all, over nothing that is there, and never into a Claude home."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from threadline.errors import BadQuery, Error
from threadline.find import homes as found_homes

_VARIABLES = frozenset(("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"))


def protected(mains: Iterable[Path], read: Iterable[Path]) -> set[Path]:
    """All that nothing is written to: the homes that are read, those of this machine, and those of the transcripts."""
    usual = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    every = {*read, *(home.path for home in (*found_homes(), *found_homes(environ=usual)))}
    # Those that the environment names, though they are not there yet: Claude Code will make them.
    every |= {Path(os.path.expanduser(one)) for name in _VARIABLES for one in _listed(os.environ.get(name, ""))}  # noqa: PTH111 - the same
    every.add(Path(os.path.expanduser("~/.claude")))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    return every | {home for main in mains for home in _home_of(main)}


def _listed(value: str) -> Iterator[str]:
    """The folders that a variable may mean: as one, or parted by what parts them."""
    yield from (one.strip() for one in {value, *value.replace(",", os.pathsep).split(os.pathsep)} if one.strip())


def _home_of(main: Path) -> Iterator[Path]:
    """The home that a transcript lies in, by the folder of its projects; a folder of that name may be anybody's."""
    for folder in Path(os.path.realpath(main)).parents:
        if folder.parent.name == "projects" and folder.name.startswith("-"):
            yield folder.parent
            if (folder.parent.parent / "history.jsonl").exists() or folder.parent.parent.name.startswith(".claude"):
                yield folder.parent.parent


def refuse_places(places: Iterable[Path], homes: Iterable[Path], *, force: bool) -> None:
    """Refuse places that may not be written to, before any work is done.

    Raises:
        BadQuery: one lies in a Claude home, is there already, is no file, or is named twice.
    """
    places = list(places)
    if len({os.path.realpath(place) for place in places}) < len(places):
        raise BadQuery("--out and --report name the same place; name two.")
    roots = [Path(os.path.realpath(home)) for home in homes]
    for place in places:
        real = Path(os.path.realpath(place))
        if any(real == root or root in real.parents for root in roots):
            raise BadQuery(
                f"{str(place)!r} lies in a Claude home, which threadline never writes to; name another place."
            )
        _refuse_special(place)
        if place.is_dir() and any(place.iterdir()) and not force:
            raise BadQuery(f"The folder {str(place)!r} is not empty; name another one, or write into it with --force.")
        if os.path.lexists(place) and not place.is_dir() and not force:
            raise BadQuery(
                f"{str(place)!r} is there already; name another place with --out, or replace it with --force."
            )


def _refuse_special(place: Path) -> None:
    """Refuse a device, a pipe or a socket, which would be replaced by a file.

    Raises:
        BadQuery: it is one.
    """
    if place.exists() and not place.is_file() and not place.is_dir():
        raise BadQuery(f"{str(place)!r} is a device or a pipe, and no file; `--out -` writes to standard output.")


def write(staged: Path, place: Path) -> None:
    """Let a finished file stand at its place, in one step.

    Raises:
        BadQuery: there is a folder, a device or a pipe of that name.
        Error: the machine refuses it.
    """
    _refuse_special(place)
    if place.is_dir():
        raise BadQuery(f"{str(place)!r} is a folder; name a file.")
    try:
        _put(staged, place)
    except OSError as error:
        # Named by its place: that is what is full or may not be written to, not the file that stands in for it.
        raise Error(f"{str(place)!r} cannot be written: {error.strerror or error}.") from None


def _put(staged: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name[:200]}.{os.getpid()}.tmp")
    try:
        # Not its mode: a file to share has the one that new files have.
        shutil.copyfile(staged, beside)
        beside.replace(place)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
