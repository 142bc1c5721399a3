"""Every regular file and every link below a directory; what is neither is a problem, and never opened."""

from __future__ import annotations

import os
import stat
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from threadline.find.transcripts import is_transcript
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_name = attrgetter("name")
_SPECIAL: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


_HAS_JUNCTIONS: Final = hasattr(os.DirEntry, "is_junction")


class Seen(NamedTuple):
    """A regular file or a link: its directory entry, and the parts of its path below the home."""

    entry: os.DirEntry[str]
    parts: tuple[str, ...]
    is_link: bool


class Walk:
    """A walk that follows no link and gathers what it could not look at.

    Paths are text here, and turned into `Path` only when kept: a home can hold 100,000 of them.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def below(self, top: str, parts: tuple[str, ...], enter: Callable[[str, tuple[str, ...]], bool]) -> Iterator[Seen]:
        """Give what lies below `top`, whose own path below the home is `parts`; `enter` says where to go."""
        waiting = [(top, parts)]
        while waiting:
            directory, above = waiting.pop()
            for entry in self._entries(directory):
                below = (*above, entry.name)
                try:
                    if entry.is_file(follow_symlinks=False):  # most are; a link is none
                        yield Seen(entry, below, is_link=False)
                    elif entry.is_symlink() or is_junction(entry):
                        yield Seen(entry, below, is_link=True)
                    elif not entry.is_dir(follow_symlinks=False):
                        self.special(entry)
                    elif is_transcript(entry.name):
                        self.skip(entry.path, "a directory with the name of a transcript")
                    elif enter(entry.path, below):
                        waiting.append((entry.path, below))
                except OSError as error:
                    self.unreadable(entry.path, error)

    def skip(self, path: str, what: str) -> None:
        """Note that something was passed over on purpose."""
        self.problems.append(Problem(ProblemKind.SKIPPED, Place(path), what))

    def unreadable(self, path: str, error: OSError) -> None:
        """Note that the machine refused; a thing that vanished since it was listed is nothing to tell."""
        if not isinstance(error, FileNotFoundError):
            message = f"could not be looked at: {error.strerror or error}"
            self.problems.append(Problem(ProblemKind.UNREADABLE, Place(path), message))

    def _entries(self, directory: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as entries:
                return sorted(entries, key=_name)
        except OSError as error:
            self.unreadable(directory, error)
            return []

    def special(self, entry: os.DirEntry[str]) -> None:
        """Note a pipe, a socket or a device, which is never opened."""
        mode = entry.stat(follow_symlinks=False).st_mode
        self.skip(entry.path, next((what for test, what in _SPECIAL if test(mode)), "not a regular file"))


def is_junction(entry: os.DirEntry[str]) -> bool:
    """Whether it is a Windows link that does not call itself one; Python can ask from 3.12 on."""
    return _HAS_JUNCTIONS and entry.is_junction()  # type: ignore[attr-defined, no-any-return, unused-ignore]
