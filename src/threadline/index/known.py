"""Known: what the index knows of transcripts, to be compared with what they are now."""

from __future__ import annotations

import os
import sqlite3

from msgspec import Struct

from threadline.model.change import Changes, Known

KNOWN = "path, device, inode, size, mtime_ns, read_to, head_hash, tail_hash, checksum, racy"
"""The columns of a transcript by which it is known again, in the order of `Known`."""


class Told(Struct, frozen=True):
    """What a look at the homes has told of an index, as it was then."""

    changes: Changes
    generation: str


def known(connection: sqlite3.Connection) -> list[Known]:
    """Every transcript as it was when it was last read."""
    asked = connection.execute(f"SELECT {KNOWN} FROM transcripts")  # noqa: S608 - our own names
    return [Known(os.fsdecode(path), *told_of) for path, *told_of in asked]


def generation(connection: sqlite3.Connection) -> str:
    """What tells one state of the index from another: each transaction of a refresh makes it anew."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    return str(found[0]) if found is not None else ""
