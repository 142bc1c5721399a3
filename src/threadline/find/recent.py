"""List transcripts modified since a given time, newest folders first, within a time limit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from threadline.find.layout import (
    PROJECTS,
    TRANSCRIPT_SUFFIX,
    is_non_transcript_path,
    is_transcript_name,
    make_transcript,
    parse_agent_id,
    parse_session_id,
)
from threadline.find.walk import Walk
from threadline.model.homes import Home, Transcript

# How many entries are looked at between two looks at the clock.
_CLOCK_INTERVAL = 256


class OutOfTime(Exception):
    """The time is up, and not everything was looked at."""


def recent_transcripts(home: Home, since_ns: int, *, too_late: Callable[[], bool]) -> Iterator[Transcript]:
    """The transcripts of a home that were written to since then; folders that changed last come first.

    A session's own directory is entered only if its main transcript changed, too, or is gone, or the directory itself
    did: an agent that works makes its session's main transcript grow.

    Raises:
        TooLate: `too_late` said so.
    """
    projects = os.path.join(home.path, PROJECTS)  # noqa: PTH118 - paths are text here, for there may be 100,000
    folders: list[tuple[float, str, str]] = []
    for entry in _scan_directory(projects, too_late):
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                folders.append((-entry.stat(follow_symlinks=False).st_mtime, entry.path, entry.name))
            elif found := _stat_if_recent(entry, since_ns):
                yield make_transcript(Path(entry.path), home, "", found, (entry.name,))
    for _, path, name in sorted(folders):
        yield from _recent_in_folder(home, path, name, since_ns, too_late)


def session_transcripts_since(main: Path, home: Home, began_ns: int) -> Iterator[Transcript]:
    """The main transcript of a session and those of its agents, wherever versions put them.

    Those beside it may be other sessions' (which they are is told inside); older ones than the session are not given.
    """
    folder = main.parent.name
    with suppress(OSError):
        yield make_transcript(main, home, folder, main.stat(), (main.name,))
    for directory, name in _possible_folders(main):
        own = os.path.join(directory, main.stem)  # noqa: PTH118 - as above
        if os.path.isdir(own):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
            yield from _recent_below(home, own, name, 0)
    for entry in _scan_directory(os.fspath(main.parent), lambda: False):
        if parse_agent_id(entry.name) is not None:
            with suppress(OSError):
                if found := _stat_if_recent(entry, began_ns):
                    yield make_transcript(Path(entry.path), home, folder, found, (entry.name,))


def other_sessions_since(main: Path, home: Home, since_ns: int) -> Iterator[Transcript]:
    """Other sessions' main transcripts in the same folder that were written to since then."""
    for entry in _scan_directory(os.fspath(main.parent), lambda: False):
        if entry.name != main.name and parse_session_id(entry.name) is not None:
            with suppress(OSError):
                if found := _stat_if_recent(entry, since_ns):
                    yield make_transcript(Path(entry.path), home, main.parent.name, found, (entry.name,))


def find_main_transcript(session: str, home: Home) -> Path | None:
    """The main transcript of a session, by its name in any project of the home."""
    name = session + TRANSCRIPT_SUFFIX
    projects = os.path.join(home.path, PROJECTS)  # noqa: PTH118 - as above
    for entry in _scan_directory(projects, lambda: False):
        path = os.path.join(entry.path, name)  # noqa: PTH118 - as above
        if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a parent may not be entered
            return Path(path)
    return None


def _recent_in_folder(
    home: Home, path: str, folder: str, since_ns: int, too_late: Callable[[], bool]
) -> Iterator[Transcript]:
    directories: list[os.DirEntry[str]] = []
    names: set[str] = set()
    fresh: set[str] = set()
    for entry in _scan_directory(path, too_late):
        with suppress(OSError):
            if is_transcript_name(entry.name):
                names.add(entry.name)
                if found := _stat_if_recent(entry, since_ns):
                    fresh.add(entry.name)
                    yield make_transcript(Path(entry.path), home, folder, found, (entry.name,))
            elif entry.is_dir(follow_symlinks=False):
                directories.append(entry)
    for entry in directories:
        main = entry.name + TRANSCRIPT_SUFFIX
        with suppress(OSError):
            if main in fresh or main not in names or entry.stat(follow_symlinks=False).st_mtime_ns >= since_ns:
                yield from _recent_below(home, entry.path, folder, since_ns)
        if too_late():
            raise OutOfTime


def _recent_below(home: Home, directory: str, folder: str, since_ns: int) -> Iterator[Transcript]:
    name = os.path.basename(directory)  # noqa: PTH119 - a path is text here
    for seen in Walk().below(directory, (name,), lambda _path, parts: not is_non_transcript_path((*parts, ""))):
        if seen.is_link or not is_transcript_name(seen.parts[-1]):
            continue
        with suppress(OSError):
            if found := _stat_if_recent(seen.entry, since_ns):
                yield make_transcript(Path(seen.entry.path), home, folder, found, seen.parts)


def _possible_folders(main: Path) -> Iterator[tuple[str, str]]:
    """The folders in which agents of a session may lie: its own, and those of other directories it went to."""
    yield os.fspath(main.parent), main.parent.name
    if main.parents[1].name == PROJECTS:
        for entry in _scan_directory(os.fspath(main.parents[1]), lambda: False):
            if entry.name != main.parent.name and not entry.is_symlink():
                yield entry.path, entry.name


def _stat_if_recent(entry: os.DirEntry[str], since_ns: int) -> os.stat_result | None:
    """The status of a regular file named as a transcript is, if it was written to since; links are not followed."""
    if not is_transcript_name(entry.name) or not entry.is_file(follow_symlinks=False):
        return None
    found = entry.stat(follow_symlinks=False)
    return found if found.st_mtime_ns >= since_ns else None


def _scan_directory(directory: str, too_late: Callable[[], bool]) -> Iterator[os.DirEntry[str]]:
    """The entries of a directory as they come; none where it cannot be listed."""
    with suppress(OSError, ValueError), os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number % _CLOCK_INTERVAL == 0 and too_late():
                raise OutOfTime
            yield entry
