"""Properties of the reader that hold for any bytes. Used by the property tests and by the fuzzer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import threadline
from threadline.model.entries import AssistantEntry, Entry
from threadline.model.usage import Head
from threadline.parse import load_entries


def entry_fields(entry: Entry) -> tuple[Any, ...]:
    """Return the fields of an entry that its head must have, too."""
    message = entry.message if isinstance(entry, AssistantEntry) else None
    usage = message.usage if message is not None else None
    return entry.kind, entry.line.number, entry.uuid, entry.session_id, entry.timestamp_text, usage


def head_fields(head: Head) -> tuple[Any, ...]:
    """Return the same fields of a head."""
    return head.kind, head.line, head.uuid, head.session_id, head.timestamp_text, head.usage


def check_reader(path: Path) -> list[Entry]:
    """Read a file and check the properties of the reader.

    The raw lines join to the file. Offsets and lengths tile it. Lines are numbered by its newlines. No more bytes are
    lost than the file has. Heads and loaded entries agree with entries. Every lazy field can be read.
    """
    data = path.read_bytes()
    entries = list(threadline.entries(path))
    assert b"".join(entry.raw for entry in entries) == data
    offset = 0
    for entry in entries:
        assert entry.raw
        assert entry.line.offset == offset
        assert entry.line.number == 1 + data.count(b"\n", 0, offset)
        offset += len(entry.raw)
        read_lazy_fields(entry)
    assert sum(problem.lost for entry in entries for problem in entry.problems) <= len(data)
    assert load_entries(path) == tuple(entries)
    assert [head_fields(head) for head in threadline.heads(path)] == [entry_fields(entry) for entry in entries]
    return entries


def read_lazy_fields(entry: Entry) -> None:
    """Read every field of an entry that is computed on first use."""
    _ = entry.timestamp, entry.data, entry.extra, repr(entry), str(entry.place)
    for name in ("text", "result", "call_id", "is_synthetic"):
        getattr(entry, name, None)
    for problem in entry.problems:
        str(problem)
