"""Status: how the index stands beside the transcripts that it was made from; nothing is written."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from threadline.find.changes import changes
from threadline.find.listing import stats
from threadline.index.store import damaged, open_to_read
from threadline.model.change import Known
from threadline.model.found import Home

_BESIDE = ("", "-wal")
_COUNTED = ("transcripts", "entries", "charges", "problems")


class Status(Struct, frozen=True):
    """How an index stands.

    `share` is its size as a part of that of the transcripts. `orphans` are entries that are gone but for their words;
    `changed` is how many transcripts are not as they were when they were read, `changes` how many by how they did.
    """

    path: str
    exists: bool
    bytes: int = 0
    transcripts_bytes: int = 0
    share: float | None = None
    schema: int | None = None
    transcripts: int = 0
    entries: int = 0
    charges: int = 0
    problems: int = 0
    orphans: int = 0
    changed: int = 0
    changes: dict[str, int] = {}


def status(index: Path, homes: Sequence[Home]) -> Status:
    """How the index of these homes stands, if there is one.

    Raises:
        Unreadable: it is damaged.
    """
    sizes = {path: told.st_size for home in homes for path, told in stats(home)}
    total = sum(sizes.values())
    if not index.exists():
        return Status(str(index), exists=False, transcripts_bytes=total, changed=len(sizes))
    size = sum(_size(f"{index}{beside}") for beside in _BESIDE)
    with closing(open_to_read(index)) as connection:
        figures = _figures(index, connection)
        changed = _changes(connection, homes)
    return Status(
        path=str(index),
        exists=True,
        bytes=size,
        transcripts_bytes=total,
        share=round(size / total, 4) if total else None,
        **figures,
        changed=sum(changed.values()),
        changes=dict(changed),
    )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)  # noqa: PTH202 - it may go at any moment
    except OSError:
        return 0


def _figures(index: Path, connection: sqlite3.Connection) -> dict[str, int]:
    """What the index holds. Words of entries that are gone stay in the full text: those are its orphans."""
    try:
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        told = {
            table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in _COUNTED
        }
        return {"schema": int(meta["schema"]), **told, "orphans": int(meta["next_entry"]) - 1 - told["entries"]}
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise damaged(index, error) from None


def _changes(connection: sqlite3.Connection, homes: Sequence[Home]) -> Counter[str]:
    """How many transcripts changed since they were read, by how they did."""
    names = ", ".join(Known.__struct_fields__)
    rows = connection.execute(f"SELECT {names} FROM transcripts")  # noqa: S608 - our own names
    known = [Known(os.fsdecode(path), *rest) for path, *rest in rows]
    return Counter(str(one.kind) for one in changes(known, homes).changed)
