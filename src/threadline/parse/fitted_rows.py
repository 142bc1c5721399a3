"""Rows of entries that had to be fitted: what fits is counted, and what does not is left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from threadline.model.entries import AssistantEntry, Entry, ProgressEntry
from threadline.model.line import NOWHERE
from threadline.parse.chunks import Chunk
from threadline.parse.reader import Reader
from threadline.parse.run import REFUSALS
from threadline.parse.usage_rows import Row

_decode = msgspec.json.Decoder(Row).decode


def fitted_rows(path: Path, offset: int, line: bytes) -> Iterator[Row]:
    """The rows of a line as the forgiving reader makes them."""
    for entry in Reader(str(path)).one_by_one(Chunk([line], offset), 0):
        row = _row(entry)
        if row is not None:
            yield row


def _row(entry: Entry) -> Row | None:
    if not isinstance(entry, AssistantEntry | ProgressEntry):
        return None
    try:
        told = _whole(msgspec.to_builtins(replace(entry, line=NOWHERE)))
        for message in (told.get("message"), (told.get("data") or {}).get("message", {}).get("message")):
            if message and isinstance(message.get("content"), list):
                message["content"] = [block for block in message["content"] if _is_block(block)]
        return _decode(msgspec.json.encode(told))
    except (*REFUSALS, TypeError, AttributeError):
        return None


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name, ""), str) for name in ("type", "name", "id"))


def _whole(value: Any) -> Any:
    """A value that can be written again: half of a character, which the forgiving reader keeps, cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value
