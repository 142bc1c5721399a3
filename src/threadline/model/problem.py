"""What was not understood or not consistent: a value with a place, never an exception."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from threadline.model.place import Place


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
    CHANGED = "changed-while-read"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"


class Problem(Struct, frozen=True):
    """One thing that is wrong, and where.

    `lost` counts the bytes that no entry could be made of; `recovered` says whether everything the
    bytes held is still reachable as entries.
    """

    kind: ProblemKind
    place: Place
    message: str
    recovered: bool = True
    lost: int = 0

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.message}"
