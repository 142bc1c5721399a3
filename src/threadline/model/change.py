"""What is known of a transcript since it was last read, and what happened to it since."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from threadline.model.found import Transcript
from threadline.model.problem import Problem


class Known(Struct, frozen=True, array_like=True, gc=False):
    """A transcript as it was when it was last read.

    `read_to` is the offset up to which lines were read: 0, just after a newline, or the end of a whole line that has
    none. `size` and `mtime_ns` are from before the reading, so that nothing written meanwhile is taken for read.
    `head_hash` and `tail_hash` are of the first and the last bytes before `read_to`, `checksum` (CRC-32, which an
    appended line extends) is of them all.

    `racy` says that it was written to so shortly before it was looked at that a later write may bear the same time:
    then equal times prove nothing, and its ends are compared.
    """

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    read_to: int
    head_hash: bytes
    tail_hash: bytes
    checksum: int
    racy: bool = False


class ChangeKind(StrEnum):
    """What happened to a transcript.

    ==========  ============================================================  =====================
    kind        what happened                                                 its lines
    ==========  ============================================================  =====================
    vanished    it is gone, and its content is nowhere else                   drop
    moved       the same content lies at another path                         keep, then read on
    grown       more bytes follow what was read                               keep, then read on
    truncated   the same file is shorter than what was read                   drop, then read from 0
    rewritten   the same file holds other bytes                               drop, then read from 0
    replaced    another file with other bytes lies at its path                drop, then read from 0
    new         nothing is known of it                                        read from 0
    unreadable  the machine refuses to show it                                as they were
    ==========  ============================================================  =====================
    """

    VANISHED = "vanished"
    MOVED = "moved"
    GROWN = "grown"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    REPLACED = "replaced"
    NEW = "new"
    UNREADABLE = "unreadable"


class Change(Struct, frozen=True):
    """One transcript that is not as it was.

    `known` is what was known of it (of a moved one: at its old path), None for a new one; `transcript` and `looked` are
    what it is now, None if it is gone or unreadable. Lines before `read_from` are kept, and reading goes on there.
    """

    kind: ChangeKind
    known: Known | None = None
    transcript: Transcript | None = None
    looked: Looked | None = None
    read_from: int = 0


class Looked(Struct, frozen=True, gc=False):
    """What a directory says of a transcript, before it is opened: all that `Known` has from there."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    racy: bool


class Changes(Struct, frozen=True):
    """All that happened since last time, in the order in which it can be applied: what vanished comes first.

    `renewed` hold the same lines as before, but are to be stored again: another time or inode, or no longer racy.
    `unchanged` counts those of which nothing need be stored.
    """

    changed: tuple[Change, ...]
    renewed: tuple[Known, ...]
    unchanged: int
    problems: tuple[Problem, ...]
