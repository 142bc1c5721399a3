"""Usage rows from lines that only the lenient reader can read.

Fields that fit are counted, others are left out. This is a module of its own because it loads all entry structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from threadline.json_values import DECODE_ERRORS
from threadline.model.entries import AssistantEntry, Entry, ProgressEntry
from threadline.model.places import NOWHERE
from threadline.parse.lines import Chunk
from threadline.parse.reader import TranscriptReader
from threadline.parse.usage import EntryRow

_decode_row = msgspec.json.Decoder(EntryRow).decode


def rows_from_lenient_entries(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """Yield the rows of a line as the lenient reader decodes them."""
    for entry in TranscriptReader(str(path)).decode_line_by_line(Chunk([line], offset), 0):
        row = _row_from_entry(entry)
        if row is not None:
            yield row


def _row_from_entry(entry: Entry) -> EntryRow | None:
    if not isinstance(entry, AssistantEntry | ProgressEntry):
        return None
    try:
        values = _replace_lone_surrogates(msgspec.to_builtins(replace(entry, line=NOWHERE)))
        for message in (values.get("message"), (values.get("data") or {}).get("message", {}).get("message")):
            if message and isinstance(message.get("content"), list):
                message["content"] = [block for block in message["content"] if _is_valid_block(block)]
        return _decode_row(msgspec.json.encode(values))
    except (*DECODE_ERRORS, TypeError, AttributeError):
        return None


def _is_valid_block(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name, ""), str) for name in ("type", "name", "id"))


def _replace_lone_surrogates(value: Any) -> Any:
    """Make a value encodable: the lenient reader keeps lone surrogates, which UTF-8 cannot encode."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replace_lone_surrogates(key): _replace_lone_surrogates(item) for key, item in value.items()}
    return [_replace_lone_surrogates(item) for item in value] if isinstance(value, list) else value
