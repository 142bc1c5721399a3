"""What is true of reading any bytes at all: used by the tests of the laws and by the fuzzer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import threadline
from threadline.model.entries import AssistantEntry, Entry
from threadline.model.usage import Head


def of_entry(entry: Entry) -> tuple[Any, ...]:
    """What an entry says that its head must say, too."""
    message = entry.message if isinstance(entry, AssistantEntry) else None
    usage = message.usage if message is not None else None
    return entry.kind, entry.line.number, entry.uuid, entry.session_id, entry.timestamp_text, usage


def of_head(head: Head) -> tuple[Any, ...]:
    """The same of a head."""
    return head.kind, head.line, head.uuid, head.session_id, head.timestamp_text, head.usage


def check(path: Path) -> list[Entry]:
    """Read a file and hold the reader to its laws.

    The raw lines join to the file, offsets and lengths tile it, lines are numbered by its newlines, what is lost is
    never more than there is, heads agree with entries, and everything lazy can be asked for.
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
        ask(entry)
    assert sum(problem.lost for entry in entries for problem in entry.problems) <= len(data)
    assert [of_head(head) for head in threadline.heads(path)] == [of_entry(entry) for entry in entries]
    return entries


def ask(entry: Entry) -> None:
    """Ask an entry for all that it works out only when asked."""
    _ = entry.timestamp, entry.data, entry.extra, repr(entry), str(entry.place)
    for name in ("text", "result", "call_id", "is_synthetic"):
        getattr(entry, name, None)
    for problem in entry.problems:
        str(problem)
