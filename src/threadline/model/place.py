"""Where a thing can be found again."""

from __future__ import annotations

import re

from msgspec import Struct

from threadline.errors import BadQuery

# A file's name may hold colons and dollars, and so may a JSON path: the line is the first number that ends the
# text or that a path follows.
_WRITTEN = re.compile(r"(?P<transcript>.+?):(?P<line>[0-9]{1,18})(?P<json_path>\$(?:[.\[].*)?)?", re.DOTALL)
_NO_LINE = re.compile(r"\.jsonl:[^/\\]*\Z")


class Place(Struct, frozen=True, order=True):
    """A transcript, a line in it, and where needed a JSON path within that line.

    A line of 0 means the file as a whole. The text form, `file.jsonl:12` or `file.jsonl:12$.message.usage`,
    is what every command prints and takes.

    >>> str(Place("a.jsonl", 12, json_path="$.message.usage"))
    'a.jsonl:12$.message.usage'
    >>> Place.parse("a.jsonl:12$.message.usage").line
    12
    """

    transcript: str
    line: int = 0
    offset: int = 0
    length: int = 0
    json_path: str = ""

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read the text form back; the offset is not part of it."""
        written = _WRITTEN.fullmatch(text)
        if written is not None:
            return cls(written["transcript"], int(written["line"]), json_path=written["json_path"] or "")
        if _NO_LINE.search(text):
            raise BadQuery(f"{text!r} is not a place; write FILE:LINE, for example session.jsonl:12.")
        return cls(text)

    def within(self, json_path: str) -> Place:
        """The same line, pointing at one value inside it."""
        return Place(self.transcript, self.line, self.offset, self.length, json_path)

    def __str__(self) -> str:
        return f"{self.transcript}:{self.line}{self.json_path}" if self.line else self.transcript
