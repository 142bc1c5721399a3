"""One transcript to one session; no database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct

from threadline.model.entries import Entry
from threadline.model.ids import SessionId
from threadline.model.problem import Problem
from threadline.parse import entries


class Session(Struct, frozen=True):
    """What one transcript holds, in memory.

    `id` is the id that most entries name, which is the file's name for all but forks and old copies.
    """

    path: Path
    id: SessionId | None
    entries: tuple[Entry, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with its entries, in file order."""
        return tuple(chain.from_iterable(entry.problems for entry in self.entries))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Session({str(self.id)!r}, {len(self.entries)} entries, {len(self.problems)} problems)"


def read(path: str | Path) -> Session:
    """Read a whole transcript into memory.

    Raises:
        NotFound: there is no such file.
        Unreadable: the machine refuses to let it be read.
    """
    found = tuple(entries(path))
    named: dict[SessionId, int] = {}
    for entry in found:
        if entry.session_id is not None:
            named[entry.session_id] = named.get(entry.session_id, 0) + 1
    most = max(named, key=named.__getitem__, default=None)
    return Session(Path(path), most, found)
