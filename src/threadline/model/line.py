"""One physical line."""

from __future__ import annotations

from msgspec import Struct

from threadline.model.place import Place
from threadline.model.problem import Problem


class Line(Struct, frozen=True, gc=False):
    """The bytes an entry was made of, and where they stand.

    `raw` ends with the line's own ending (none on a last line that has none), so that the raw bytes
    of a transcript's entries, joined, are the file. Where damage put two entries on one physical line,
    each has its share of the bytes and both have the same `number`.
    """

    transcript: str
    number: int
    offset: int
    raw: bytes
    problems: tuple[Problem, ...] = ()

    @property
    def place(self) -> Place:
        """Where to find it again."""
        return Place(self.transcript, self.number, self.offset, len(self.raw))


NOWHERE = Line("", 0, 0, b"")
"""The line of an entry that was made by hand rather than read."""
