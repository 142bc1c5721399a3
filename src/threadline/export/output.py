"""Put finished files in place: atomically, under safe names, never over existing files or inside a Claude home."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from threadline import files
from threadline.errors import BadQuery, Error
from threadline.find import homes as find_homes


class StagedFile(Struct, frozen=True):
    """A finished file that is not in place yet: its path, its final name, and its session."""

    path: Path
    name: str
    session: str | None = None


_HOME_VARIABLES = frozenset(("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"))


def protected_folders(mains: Iterable[Path], read: Iterable[Path]) -> set[Path]:
    """The folders that are never written to: the homes that are read, this machine's, and those of the transcripts."""
    default = {name: value for name, value in os.environ.items() if name not in _HOME_VARIABLES}
    homes = {*read, *(home.path for home in (*find_homes(), *find_homes(environ=default)))}
    # Also the configured homes that do not exist yet, because Claude Code will create them.
    configured = [path for name in _HOME_VARIABLES for path in _split_paths(os.environ.get(name, ""))]
    homes |= {Path(os.path.expanduser(path)) for path in (*configured, "~/.claude")}  # noqa: PTH111 - Path's raises for an unknown user
    return homes | {home for main in mains for home in _homes_containing(main)}


def _split_paths(value: str) -> Iterator[str]:
    """The folders in the value of a variable: the value as one path, or several separated paths."""
    parts = {value, *value.replace(",", os.pathsep).split(os.pathsep)}
    yield from (part.strip() for part in parts if part.strip())


def _homes_containing(main: Path) -> Iterator[Path]:
    """Folders that may be the home of a transcript, by the names of its parent folders."""
    for folder in Path(os.path.realpath(main)).parents:
        if folder.parent.name == "projects" and folder.name.startswith("-"):
            yield folder.parent
            if (folder.parent.parent / "history.jsonl").exists() or folder.parent.parent.name.startswith(".claude"):
                yield folder.parent.parent


def check_destinations(places: Iterable[Path], homes: Iterable[Path], *, force: bool) -> None:
    """Refuse destinations that may not be written to, before any work is done.

    Raises:
        BadQuery: a destination is in a Claude home, already exists, is not a file, or occurs twice.
    """
    places = list(places)
    if len({os.path.realpath(place) for place in places}) < len(places):
        raise BadQuery("--out and --report name the same file. Choose two names.")
    roots = [Path(os.path.realpath(home)) for home in homes]
    for place in places:
        real = Path(os.path.realpath(place))
        if any(real == root or root in real.parents for root in roots):
            raise BadQuery(
                f"{str(place)!r} is inside a Claude home, which threadline never writes to. Choose another folder."
            )
        _reject_special_file(place)
        if place.is_dir() and any(place.iterdir()) and not force:
            raise BadQuery(f"The folder {str(place)!r} is not empty. Choose another one, or use --force.")
        if os.path.lexists(place) and not place.is_dir() and not force:
            raise BadQuery(f"{str(place)!r} already exists. Choose another name with --out, or use --force.")


def _reject_special_file(place: Path) -> None:
    """Refuse a device, a pipe or a socket, which would be replaced by a file.

    Raises:
        BadQuery: it is a special file.
    """
    if place.exists() and not place.is_file() and not place.is_dir():
        raise BadQuery(f"{str(place)!r} is a device or a pipe. Use `--out -` to write to standard output.")


def put_in_place(staged: Path, target: Path) -> None:
    """Copy a finished file to its target atomically, with the permissions of a new file: it is meant to be shared.

    Raises:
        BadQuery: the target is a folder, a device or a pipe.
        Error: it cannot be written.
    """
    with _writing(target):
        files.copy_file(staged, target, overwrite=True)


def write_output(target: Path, data: bytes) -> None:
    """Write a small file to its target atomically.

    Raises:
        BadQuery: the target is a folder, a device or a pipe.
        Error: it cannot be written.
    """
    with _writing(target):
        files.write_output(target, data)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Check a target, create its folder, and report errors by its name, not that of the temporary file."""
    _reject_special_file(target)
    if target.is_dir():
        raise BadQuery(f"{str(target)!r} is a folder. Name a file.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise Error(f"{str(target)!r} cannot be written: {error.strerror or error}.") from None


_UNSAFE_CHARACTERS = re.compile(r"[^0-9A-Za-z._-]+")
_MAX_LENGTH = 80
# Names that Windows reserves, with any extension.
_WINDOWS_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")


def safe_name(name: str, fallback: str = "session") -> str:
    """A safe file name, without an extension.

    >>> [safe_name(name) for name in ("../../etc/passwd", "-rf", "CON", "", "Caf\u00e9\u202e au lait")]
    ['etc-passwd', 'rf', 'session-CON', 'session', 'Cafe-au-lait']
    """
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    safe = _UNSAFE_CHARACTERS.sub("-", letters).strip("-._")[:_MAX_LENGTH].rstrip("-._")
    safe = re.sub(r"[-.]*(?:--|\.\.)[-.]*", "-", safe)
    if not safe:
        return fallback
    return f"{fallback}-{safe}" if _WINDOWS_RESERVED.match(safe) else safe


def make_unique(names: Iterable[str]) -> list[str]:
    """Make names unique, also on file systems that ignore case, by adding a number."""
    used: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 1
        while candidate.lower() in used:
            number += 1
            candidate = f"{name}-{number}"
        used.add(candidate.lower())
        unique.append(candidate)
    return unique
