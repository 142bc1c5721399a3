"""One line of a transcript, read once more: what it says is not kept, only where it stands."""

from __future__ import annotations

from threadline.errors import Error
from threadline.model.entries import Entry
from threadline.parse import entries


def entry_at(path: str, offset: int, line: int) -> Entry | None:
    """The entry that begins at an offset; None where it cannot be read any more."""
    try:
        return next(iter(entries(path, offset=offset, line=line)), None)
    except Error:
        return None
