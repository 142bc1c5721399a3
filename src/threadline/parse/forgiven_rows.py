"""Rows of lines that are not as they should be: what the forgiving reader makes of them is counted, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from threadline.model.entries import AssistantEntry, Entry, ProgressEntry
from threadline.model.line import NOWHERE
from threadline.parse.chunks import Chunk
from threadline.parse.reader import Reader
from threadline.parse.run import REFUSALS
from threadline.parse.usage_rows import Row

_decode = msgspec.json.Decoder(Row).decode


def forgiven_rows(path: Path, offset: int, line: bytes) -> Iterator[Row]:
    """The rows of a damaged line: what fits is counted, and what does not is left out."""
    for entry in Reader(str(path)).one_by_one(Chunk([line], offset), 0):
        row = _row(entry)
        if row is not None:
            yield row


def _row(entry: Entry) -> Row | None:
    if not isinstance(entry, AssistantEntry | ProgressEntry):
        return None
    bare = replace(entry, line=NOWHERE)
    if isinstance(bare, AssistantEntry) and bare.message is not None:
        bare = replace(bare, message=replace(bare.message, content=None))
    try:
        return _decode(msgspec.json.encode(bare))
    except (*REFUSALS, TypeError):
        return None
