"""Where things are in a transcript: places, lines, ids and the problems found there.

A problem is a value with a place, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from threadline.errors import BadQuery

# File names and JSON paths may contain colons and dollar signs. The line is the first number that ends the text or is
# followed by a path.
_PLACE_TEXT = re.compile(r"(?P<transcript>.+?):(?P<line>[0-9]{1,18})(?P<json_path>\$(?:[.\[].*)?)?", re.DOTALL)
_WITHOUT_LINE = re.compile(r"\.jsonl:[^/\\]*\Z")


class Place(Struct, frozen=True, order=True):
    """A transcript, a line in it, and optionally a JSON path within that line.

    Line 0 means the whole file. Every command prints and accepts the text form, `file.jsonl:12` or
    `file.jsonl:12$.message.usage`.

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
        """Parse the text form; the offset is not part of it."""
        match = _PLACE_TEXT.fullmatch(text)
        if match is not None:
            return cls(match["transcript"], int(match["line"]), json_path=match["json_path"] or "")
        if _WITHOUT_LINE.search(text):
            raise BadQuery(f"{text!r} is not a place; write FILE:LINE, for example session.jsonl:12.")
        return cls(text)

    def within(self, json_path: str) -> Place:
        """Return the place of a value inside the line."""
        return Place(self.transcript, self.line, self.offset, self.length, json_path)

    def __str__(self) -> str:
        return f"{self.transcript}:{self.line}{self.json_path}" if self.line else self.transcript


class ProblemKind(StrEnum):
    """Every kind of problem; `docs/problems.md` has a heading for each."""

    TORN_TAIL = "torn-tail"
    TORN_LINE = "torn-line"
    GLUED = "glued"
    SPLICED = "spliced"
    NUL_RUN = "nul-run"
    FOREIGN = "foreign-bytes"
    NOT_AN_OBJECT = "not-an-object"
    NO_TYPE = "no-type"
    WRONG_TYPE = "wrong-type"
    BAD_UTF8 = "invalid-utf8"
    LONE_SURROGATE = "lone-surrogate"
    BAD_NUMBER = "bad-number"
    CONTROL_CHARACTER = "control-character"
    TOO_DEEP = "too-deep"
    TOO_LONG = "too-long"
    BOM = "byte-order-mark"
    BAD_TIMESTAMP = "bad-timestamp"
    MISSING_FIELD = "missing-field"
    CHANGED = "changed-while-read"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"


class Problem(Struct, frozen=True):
    """Something wrong in a transcript, and where.

    `lost` counts the bytes that are in no entry. `recovered` says whether the content of the bytes is still available
    as entries.
    """

    kind: ProblemKind
    place: Place
    message: str
    recovered: bool = True
    lost: int = 0

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.message}"


class Line(Struct, frozen=True, gc=False):
    """The bytes of an entry, and their position.

    `raw` includes the newline, if the line has one, so the raw bytes of a transcript's entries, joined, are the file.
    If damage put two entries on one physical line, each has its part of the bytes and both have the same `number`.
    """

    transcript: str
    number: int
    offset: int
    raw: bytes
    problems: tuple[Problem, ...] = ()

    @property
    def place(self) -> Place:
        """The place of the line."""
        return Place(self.transcript, self.number, self.offset, len(self.raw))


NOWHERE = Line("", 0, 0, b"")
"""The line of an entry that was not read from a file."""


_UUID_PATTERN = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def is_uuid(name: str) -> bool:
    """Whether this is a UUID of any version, as Claude Code names its sessions."""
    return _UUID_PATTERN.fullmatch(name) is not None


def starts_id(start: str, id_: str | None) -> bool:
    """Whether an id begins with a text. Ignores case.

    >>> starts_id("5E55", "5e550000"), starts_id("e55", "5e550000"), starts_id("5e", None)
    (True, False, False)
    """
    return id_ is not None and id_.lower().startswith(start.lower())


def match_ids(start: str, ids: Iterable[str | None]) -> list[str]:
    """Return the ids that a text names: the id itself, or else all that start with it, each once. Ignores case.

    Other ids may begin with a whole id, such as those of copies. Of ids that differ in case only, the one as written
    counts.

    >>> match_ids("5E55", ["5e55", "5e55-copy"]), match_ids("5E", ["5e55", "5e66", "ab"]), match_ids("x", ["5e55"])
    (['5e55'], ['5e55', '5e66'], [])
    """
    matches = [id_ for id_ in dict.fromkeys(ids) if id_ is not None and starts_id(start, id_)]
    exact = [id_ for id_ in matches if id_.lower() == start.lower()]
    return [start] if start in exact else exact or matches


SessionId = NewType("SessionId", str)
EntryId = NewType("EntryId", str)
MessageId = NewType("MessageId", str)
RequestId = NewType("RequestId", str)
CallId = NewType("CallId", str)
AgentId = NewType("AgentId", str)


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PADDING = b"\0 \t\r\n"


def strip_line(raw: bytes) -> bytes:
    """Remove white space, NUL bytes and a byte order mark from around a line's content."""
    return raw.strip(_PADDING).removeprefix(BYTE_ORDER_MARK).lstrip(_PADDING)
