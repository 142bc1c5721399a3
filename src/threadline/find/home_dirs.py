"""Find the Claude Code home directories on this machine, or check the ones the user named."""

from __future__ import annotations

import os
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.errors import NotFound, Unreadable
from threadline.find.layout import HOME_MARKERS, PROJECTS
from threadline.model.homes import Home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def homes(*explicit: Path | str, environ: Mapping[str, str] | None = None) -> list[Home]:
    """Give the homes that were named, or else those that the environment and the platform point to.

    Named ones must exist; of the others, those that are missing are left out. A home is given once,
    however many ways lead to it; a directory called `projects` stands for the home it lies in.

    Raises:
        NotFound: one that was named is not there, or holds nothing that Claude Code writes.
        Unreadable: one that was named may not be listed.
    """
    # Not the parameter's default: help() would print everybody's environment.
    environ = os.environ if environ is None else environ
    if explicit:
        return _unique_homes(
            (_check_named_home(Path(_expand(os.fspath(path), environ))), "option") for path in explicit
        )
    variables = [name for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS") if environ.get(name)]
    if variables:
        return _unique_homes(
            (_home_for(path), name) for name in variables for path in _split_directories(environ[name], environ)
        )
    return _unique_homes(_default_candidates(environ))


def _unique_homes(candidates: Iterable[tuple[Path, str]]) -> list[Home]:
    """Give each directory once, by its real path."""
    found: dict[Path, Home] = {}
    for path, source in candidates:
        real = Path(os.path.realpath(path))
        found.setdefault(real, Home(real, source))
    return list(found.values())


def _check_named_home(path: Path) -> Path:
    if path.is_file():
        raise NotFound(f"{str(path)!r} is a file, not a home; for one transcript: threadline entries {path}")
    if not _is_directory(path):
        raise NotFound(f"There is no directory {str(path)!r}; name one that Claude Code writes to, such as ~/.claude.")
    home = _home_for(path)
    try:
        if _is_home(home):
            return home
    except OSError as error:
        raise Unreadable(
            f"The directory {str(home)!r} may not be listed ({error.strerror}); change its permissions first."
        ) from error
    raise NotFound(
        f"The directory {str(path)!r} holds nothing that Claude Code writes; "
        f"name the one that has {PROJECTS!r} in it, such as ~/.claude."
    )


def _home_for(path: Path) -> Path:
    """Give the home for a directory that may be its `projects`, unless it has `projects` of its own."""
    own = _is_directory(path / PROJECTS)
    return path.absolute().parent if path.name == PROJECTS and not own else path


def _is_home(path: Path) -> bool:
    with os.scandir(path) as entries:
        return any(entry.name in HOME_MARKERS for entry in entries)


def _default_candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Give the homes of the command, of its months under XDG, and of the desktop app, where they exist."""
    config = Path(_expand(environ.get("XDG_CONFIG_HOME") or "~/.config", environ))
    default = Path(_expand("~/.claude", environ))
    if _is_directory(default):
        yield default, "default"
    xdg = config / "claude"
    with suppress(OSError, ValueError):  # not there, not readable, no name for a file
        if _is_home(xdg):  # the name is not Claude Code's alone
            yield xdg, "xdg"
    for folder in _app_folders(config, environ):
        for home in _desktop_app_homes(folder):
            yield home, "desktop"


def _app_folders(config: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Give the folders the desktop app may use; on another platform they are simply not there."""
    yield Path(_expand("~/Library/Application Support/Claude", environ))
    if roaming := environ.get("APPDATA"):
        yield Path(roaming) / "Claude"
    if local := environ.get("LOCALAPPDATA"):
        # Installed from the store, the app sees a copy of %APPDATA% of its own.
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
    """Give the directories in a directory, links left out; none where it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return [directory / name for name in sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))]
    except (OSError, ValueError):
        return []


def _split_directories(value: str, environ: Mapping[str, str], separators: str = f",{os.pathsep}") -> Iterator[Path]:
    """Take a variable apart into the directories it lists.

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
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered


def _expand(text: str, environ: Mapping[str, str]) -> str:
    """Put the user's directory for `~`, and compose characters as Claude Code does, where that exists."""
    if text == "~" or text.startswith(("~/", "~\\")):
        names = ("USERPROFILE", "HOME") if os.name == "nt" else ("HOME",)
        own = next((value for name in names if (value := environ.get(name))), None)
        text = (own or os.path.expanduser("~")) + text[1:]  # noqa: PTH111 - Path.expanduser raises when at a loss
    elif text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111 - the same
    composed = unicodedata.normalize("NFC", text)
    return composed if _is_directory(composed) or not _is_directory(text) else text
