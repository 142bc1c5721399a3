"""Kept homes: folders that hold what was kept of a home after Claude Code deleted it there.

Which folder is one is told once, by who made it, and holds for the whole process: it is a fact about the machine.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator

from msgspec import Struct

KEEP = "keep"
"""How a kept home was found, as `Home.source` says it."""


class KeptHome(Struct, frozen=True):
    """A kept home: where it lies, the home its files come from, and the machine that was on, if not this one.

    `projects` is where the projects of that home really lie, if that is elsewhere.
    """

    path: str
    home: str
    machine: str | None = None
    projects: str | None = None

    @property
    def name(self) -> str:
        """The home that it stands for, as people know it."""
        return f"{self.machine}:{self.home}" if self.machine is not None else self.home

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Folders that hold the same, kept and living, and the other way round; the narrower ones first."""
        if self.projects is not None:
            own = self.path + os.sep + "projects"
            yield from ((own, self.projects), (self.projects, own))
        yield from ((self.path, self.home), (self.home, self.path))


_known: dict[str, KeptHome] = {}


def remember(kept: KeptHome) -> None:
    """Tell that a folder is a kept home."""
    _known[kept.path] = kept


def home_name(home: str | os.PathLike[str]) -> str:
    """What a home is called: its path; for a kept one, that of the home its files come from."""
    found = _known.get(os.fspath(home)) if _known else None
    return found.name if found is not None else os.fspath(home)


def machine_name(home: str | os.PathLike[str]) -> str:
    """The machine that a home is on, or was on, as people call it: this one, unless it was kept by another."""
    found = _known.get(os.fspath(home)) if _known else None
    return found.machine if found is not None and found.machine is not None else platform.node() or "machine"


def is_kept(path: str | os.PathLike[str]) -> bool:
    """Whether a file lies in a kept home."""
    return _home_of(os.fspath(path)) is not None if _known else False


def twins(path: str | os.PathLike[str]) -> Iterator[str]:
    """The same place in the homes that hold the rest of what one home held: living, and kept."""
    if not _known:
        return
    text = os.fspath(path)
    for one in _known.values():
        if one.machine is not None:
            continue
        for here, there in one.pairs():
            if text.startswith(here + os.sep):
                yield there + text[len(here) :]
                break


def ranks(homes: Iterable[str]) -> dict[str, int]:
    """The place of each home among those that were named; a kept one has that of the home it stands for."""
    named: dict[str, int] = {}
    return {home: named.setdefault(home_name(home), number) for number, home in enumerate(homes)}


def _home_of(path: str) -> KeptHome | None:
    return next((one for one in _known.values() if path.startswith(one.path + os.sep)), None)
