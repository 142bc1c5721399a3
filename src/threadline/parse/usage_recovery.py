"""Usage rows from lines that only the lenient reader can read.

What fits is counted, what does not is left out. Imported lazily: it loads all entry structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from threadline.model.entries import AssistantEntry, Entry, ProgressEntry
from threadline.model.places import NOWHERE
from threadline.parse.lines import DECODE_ERRORS, Chunk
from threadline.parse.reader import TranscriptReader
from threadline.parse.usage_rows import EntryRow

_decode_row = msgspec.json.Decoder(EntryRow).decode


def rows_from_lenient_entries(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """The rows of a line as the forgiving reader makes them."""
    for entry in TranscriptReader(str(path)).decode_line_by_line(Chunk([line], offset), 0):
        row = _row_from_entry(entry)
        if row is not None:
            yield row


def _row_from_entry(entry: Entry) -> EntryRow | None:
    if not isinstance(entry, AssistantEntry | ProgressEntry):
        return None
    try:
        told = _replace_lone_surrogates(msgspec.to_builtins(replace(entry, line=NOWHERE)))
        for message in (told.get("message"), (told.get("data") or {}).get("message", {}).get("message")):
            if message and isinstance(message.get("content"), list):
                message["content"] = [block for block in message["content"] if _is_valid_block(block)]
        return _decode_row(msgspec.json.encode(told))
    except (*DECODE_ERRORS, TypeError, AttributeError):
        return None


def _is_valid_block(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name, ""), str) for name in ("type", "name", "id"))


def _replace_lone_surrogates(value: Any) -> Any:
    """A value that can be written again: half of a character, which the forgiving reader keeps, cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replace_lone_surrogates(key): _replace_lone_surrogates(one) for key, one in value.items()}
    return [_replace_lone_surrogates(one) for one in value] if isinstance(value, list) else value
