"""Put finished files in place: atomically, under safe names, never over existing files or inside a Claude home."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from threadline.errors import BadQuery, Error
from threadline.find import homes as found_homes

_HOME_VARIABLES = frozenset(("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"))


def protected_folders(mains: Iterable[Path], read: Iterable[Path]) -> set[Path]:
    """All that nothing is written to: the homes that are read, those of this machine, and those of the transcripts."""
    usual = {name: value for name, value in os.environ.items() if name not in _HOME_VARIABLES}
    every = {*read, *(home.path for home in (*found_homes(), *found_homes(environ=usual)))}
    # Those that the environment names, though they are not there yet: Claude Code will make them.
    named = [path for name in _HOME_VARIABLES for path in _split_paths(os.environ.get(name, ""))]
    every |= {Path(os.path.expanduser(path)) for path in (*named, "~/.claude")}  # noqa: PTH111 - Path's raises for an unknown user
    return every | {home for main in mains for home in _homes_containing(main)}


def _split_paths(value: str) -> Iterator[str]:
    """The folders that a variable may mean: as one, or parted by what parts them."""
    yield from (one.strip() for one in {value, *value.replace(",", os.pathsep).split(os.pathsep)} if one.strip())


def _homes_containing(main: Path) -> Iterator[Path]:
    """The home that a transcript lies in, by the folder of its projects; a folder of that name may be anybody's."""
    for folder in Path(os.path.realpath(main)).parents:
        if folder.parent.name == "projects" and folder.name.startswith("-"):
            yield folder.parent
            if (folder.parent.parent / "history.jsonl").exists() or folder.parent.parent.name.startswith(".claude"):
                yield folder.parent.parent


def check_destinations(places: Iterable[Path], homes: Iterable[Path], *, force: bool) -> None:
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
        _reject_special_file(place)
        if place.is_dir() and any(place.iterdir()) and not force:
            raise BadQuery(f"The folder {str(place)!r} is not empty; name another one, or write into it with --force.")
        if os.path.lexists(place) and not place.is_dir() and not force:
            raise BadQuery(
                f"{str(place)!r} is there already; name another place with --out, or replace it with --force."
            )


def _reject_special_file(place: Path) -> None:
    """Refuse a device, a pipe or a socket, which would be replaced by a file.

    Raises:
        BadQuery: it is one.
    """
    if place.exists() and not place.is_file() and not place.is_dir():
        raise BadQuery(f"{str(place)!r} is a device or a pipe, and no file; `--out -` writes to standard output.")


def put_in_place(staged: Path, place: Path) -> None:
    """Let a finished file stand at its place, in one step.

    Raises:
        BadQuery: there is a folder, a device or a pipe of that name.
        Error: the machine refuses it.
    """
    _reject_special_file(place)
    if place.is_dir():
        raise BadQuery(f"{str(place)!r} is a folder; name a file.")
    try:
        _copy_and_replace(staged, place)
    except OSError as error:
        # Named by its place: that is what is full or may not be written to, not the file that stands in for it.
        raise Error(f"{str(place)!r} cannot be written: {error.strerror or error}.") from None


def _copy_and_replace(staged: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name[:200]}.{os.getpid()}.tmp")
    try:
        # Not its mode: a file to share has the one that new files have.
        shutil.copyfile(staged, beside)
        beside.replace(place)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


_UNSAFE_CHARACTERS = re.compile(r"[^0-9A-Za-z._-]+")
_MAX_LENGTH = 80
# What Windows does not let a file be called, whatever its ending.
_WINDOWS_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")


def safe_name(name: str, otherwise: str = "session") -> str:
    """A name for a file, without its ending.

    >>> safe("../../etc/passwd"), safe("-rf"), safe("CON"), safe(""), safe("Café\u202e au lait")
    ('etc-passwd', 'rf', 'session-CON', 'session', 'Cafe-au-lait')
    """
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    made = _UNSAFE_CHARACTERS.sub("-", letters).strip("-._")[:_MAX_LENGTH].rstrip("-._")
    made = re.sub(r"-{2,}|\.{2,}", "-", made)
    if not made:
        return otherwise
    return f"{otherwise}-{made}" if _WINDOWS_RESERVED.match(made) else made


def make_unique(names: Iterable[str]) -> list[str]:
    """The names, those that differ only in case told apart by a number."""
    taken: set[str] = set()
    given = []
    for name in names:
        made, number = name, 1
        while made.lower() in taken:
            number += 1
            made = f"{name}-{number}"
        taken.add(made.lower())
        given.append(made)
    return given
