"""Find the Claude Code home directories on this machine, or check the ones the user named."""

from __future__ import annotations

import os
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.errors import NotFound, Unreadable
from threadline.find.layout import HOME_MARKERS, PROJECTS
from threadline.model.homes import ARCHIVE_SOURCE, HOME_VARIABLES, Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_BUCKET_PREFIX = "s3:/"
"""How the name of a home in a bucket starts, also after it was a `Path`."""

_ARCHIVE_SUFFIXES = frozenset({".zip", ".tar", ".gz", ".tgz", ".zst", ".tzst"})
"""Suffixes of archives; only messages about missing ones need them."""


def homes(
    *explicit: Path | str,
    environ: Mapping[str, str] | None = None,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Home]:
    """Return the named homes, or else those that the environment and the platform point to.

    Named homes must exist; others are left out if they are missing. A home is returned once, however many paths lead
    to it. A directory called `projects` means the home that contains it. A zip or tar archive means the homes in it:
    they are unpacked into the cache folder, once. The SQLite file of a session store means a copy of it as a home.
    An `s3://` URI means the homes in a bucket: what changed since the last time is fetched. `planned` is called with
    the number of bytes to read for that, and `progress` with those that were read.

    Raises:
        NotFound: a named home does not exist, or contains nothing that Claude Code writes.
        Unreadable: a named home may not be listed, or is in a damaged archive or in a bucket that cannot be read.
        Missing: a named home is in an archive or a bucket that needs a package which is not installed.
    """
    # Not the parameter's default, because help() would print the environment.
    environ = os.environ if environ is None else environ
    if explicit:
        paths = [_expand(os.fspath(path), environ) for path in explicit]
        return _unique_homes(home for path in paths for home in _named_homes(path, planned, progress))
    variables = [name for name in HOME_VARIABLES if environ.get(name)]
    if variables:
        return _unique_homes(
            (_home_for(path), name) for name in variables for path in _split_directories(environ[name], environ)
        )
    return _unique_homes(_default_candidates(environ))


def _unique_homes(candidates: Iterable[tuple[Path, str]]) -> list[Home]:
    """Return each directory once, by its real path."""
    by_path: dict[Path, Home] = {}
    for path, source in candidates:
        real = Path(os.path.realpath(path))
        by_path.setdefault(real, Home(real, source))
    return list(by_path.values())


def _named_homes(
    name: str, planned: Callable[[int], None] | None, progress: Callable[[int], None] | None
) -> list[tuple[Path, str]]:
    if name.startswith(_BUCKET_PREFIX):
        from threadline.find.bucket_homes import bucket_uri, fetch_homes  # noqa: PLC0415 - only buckets need it

        if (uri := bucket_uri(name)) is not None:
            return [(home, ARCHIVE_SOURCE) for home in fetch_homes(uri, planned, progress)]
    path = Path(name)
    if not path.is_file():
        return [(_check_named_home(path), "option")]
    from threadline.find.packed_homes import is_packed, unpack_homes  # noqa: PLC0415 - only archives need it

    if is_packed(path):
        return [(home, ARCHIVE_SOURCE) for home in unpack_homes(path, planned, progress)]
    from threadline.find.database_homes import copy_store  # noqa: PLC0415 - only session stores need it
    from threadline.store import has_sqlite_header  # noqa: PLC0415 - likewise

    if has_sqlite_header(path):
        return [(copy_store(path), ARCHIVE_SOURCE)]
    raise NotFound(f"{str(path)!r} is a file, not a home. To read one transcript, run `threadline entries {path}`.")


def _check_named_home(path: Path) -> Path:
    if not _is_directory(path):
        if path.suffix.lower() in _ARCHIVE_SUFFIXES:
            raise NotFound(f"There is no archive {str(path)!r}. Check the path.")
        raise NotFound(f"There is no directory {str(path)!r}. Name one that Claude Code writes to, such as ~/.claude.")
    home = _home_for(path)
    try:
        if _is_home(home):
            return home
    except OSError as error:
        raise Unreadable(
            f"The directory {str(home)!r} may not be listed ({error.strerror}). Change its permissions first."
        ) from error
    raise NotFound(
        f"The directory {str(path)!r} contains nothing that Claude Code writes. "
        f"Name the one that contains {PROJECTS!r}, such as ~/.claude."
    )


def _home_for(path: Path) -> Path:
    """Return the home of a directory, which may be its `projects`, unless that has `projects` of its own."""
    has_projects = _is_directory(path / PROJECTS)
    return path.absolute().parent if path.name == PROJECTS and not has_projects else path


def _is_home(path: Path) -> bool:
    with os.scandir(path) as entries:
        return any(entry.name in HOME_MARKERS for entry in entries)


def _default_candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield the existing homes of the command line, of its versions that used XDG, and of the desktop app."""
    config = Path(_expand(environ.get("XDG_CONFIG_HOME") or "~/.config", environ))
    default = Path(_expand("~/.claude", environ))
    if _is_directory(default):
        yield default, "default"
    xdg = config / "claude"
    with suppress(OSError, ValueError):  # missing, unreadable, or not a valid file name
        if _is_home(xdg):  # other programs use this name, too
            yield xdg, "xdg"
    for folder in _app_folders(config, environ):
        for home in _desktop_app_homes(folder):
            yield home, "desktop"


def _app_folders(config: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that the desktop app may use; those of other platforms do not exist."""
    yield Path(_expand("~/Library/Application Support/Claude", environ))
    if roaming := environ.get("APPDATA"):
        yield Path(roaming) / "Claude"
    if local := environ.get("LOCALAPPDATA"):
        # An app installed from the store has its own copy of %APPDATA%.
        for package in _subdirectories(Path(local) / "Packages"):
            if "Claude" in package.name:
                yield package / "LocalCache" / "Roaming" / "Claude"
    yield config / "Claude"


def _desktop_app_homes(folder: Path) -> Iterator[Path]:
    for app in _subdirectories(folder / "local-agent-mode-sessions"):
        for workspace in _subdirectories(app):
            for session in _subdirectories(workspace):
                if session.name.startswith("local_"):
                    yield from (child for child in _subdirectories(session) if child.name == ".claude")


def _subdirectories(directory: Path) -> list[Path]:
    """Return the directories in a directory, without links; empty if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return [directory / name for name in sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))]
    except (OSError, ValueError):
        return []


def _split_directories(value: str, environ: Mapping[str, str], separators: str = f",{os.pathsep}") -> Iterator[Path]:
    """Split a variable into the directories it lists.

    A comma or colon may separate directories or be part of a name: the longest stretch that exists wins.
    """
    path = Path(_expand(value.strip(), environ))
    if value.strip() and _is_directory(path):
        yield path
        return
    if not separators:
        return
    separator, others = separators[0], separators[1:]
    pieces = value.split(separator)
    while pieces:
        for end in range(len(pieces), 0, -1):
            stretch = separator.join(pieces[:end])
            if stretch.strip() and _is_directory(_expand(stretch.strip(), environ)):
                yield Path(_expand(stretch.strip(), environ))
                del pieces[:end]
                break
        else:
            yield from _split_directories(pieces.pop(0), environ, others)


def _is_directory(path: Path | str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises if a parent may not be entered


def _expand(text: str, environ: Mapping[str, str]) -> str:
    """Expand `~`, and normalize characters as Claude Code does if that path exists."""
    if text == "~" or text.startswith(("~/", "~\\")):
        names = ("USERPROFILE", "HOME") if os.name == "nt" else ("HOME",)
        user_dir = next((value for name in names if (value := environ.get(name))), None)
        text = (user_dir or os.path.expanduser("~")) + text[1:]  # noqa: PTH111 - Path.expanduser raises if it fails
    elif text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111 - the same
    normalized = unicodedata.normalize("NFC", text)
    return normalized if _is_directory(normalized) or not _is_directory(text) else text
