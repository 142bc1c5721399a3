"""Known: what the index knows of transcripts, to be compared with what they are now."""

from __future__ import annotations

import os
import sqlite3

from msgspec import Struct

from threadline.find.changes import Status
from threadline.index.texts import stored
from threadline.model.change import Changes, Known

KNOWN = "path, device, inode, size, mtime_ns, read_to, head_hash, tail_hash, checksum, racy"
"""The columns of a transcript by which it is known again, in the order of `Known`."""


class Told(Struct, frozen=True):
    """What a look at the homes has told of an index, as it was then."""

    changes: Changes
    generation: str


class Remembered:
    """Every transcript as it was when it was last read. What is asked is to be within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def statuses(self) -> dict[str, Status]:
        """By what each is as it was."""
        asked = self._connection.execute("SELECT path, mtime_ns, size, inode, device, racy FROM transcripts")
        return {row[0] if row[0].__class__ is str else os.fsdecode(row[0]): row[1:] for row in asked}

    def known(self, path: str) -> Known:
        """All that is known of one."""
        asked = f"SELECT {KNOWN} FROM transcripts WHERE path = ?"  # noqa: S608 - our own names
        kept, *told_of = self._connection.execute(asked, (stored(path),)).fetchone()
        return Known(os.fsdecode(kept), *told_of)


def generation(connection: sqlite3.Connection) -> str:
    """What tells one state of the index from another: each transaction of a refresh makes it anew."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    return str(found[0]) if found is not None else ""
