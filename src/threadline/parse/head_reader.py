"""A transcript as heads: what most questions need, without decoding the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count, repeat
from operator import attrgetter
from pathlib import Path

import msgspec
from msgspec.structs import force_setattr

from threadline.model.entries import ChainEntry, Entry
from threadline.model.head import Head, MessageHead
from threadline.model.message import Message
from threadline.parse.chunks import chunks
from threadline.parse.reader import Reader
from threadline.parse.run import REFUSALS, lines_decoder
from threadline.shape import bare, fit

_decode = lines_decoder(Head)
_decode_one = msgspec.json.Decoder(Head).decode
_KIND = attrgetter("kind")


def heads(path: str | Path) -> Iterator[Head]:
    """The head of every entry of a transcript, in file order.

    As lossless as `entries` in what it counts: a damaged line gives a head of kind `damaged`.

    Raises:
        NotFound: there is no such file.
        Unreadable: the machine refuses to let it be read.
    """
    number = 1
    reader = Reader(str(path))
    for chunk in chunks(path):
        found = None if chunk.piece else _decode(chunk.lines)
        if found is None or not all(map(_KIND, found)):
            yield from map(_head, reader.one_by_one(chunk, number))
            number += sum(line.endswith(b"\n") for line in chunk.lines)
        else:
            deque(map(force_setattr, found, repeat("line"), count(number)), maxlen=0)
            yield from found
            number += len(found)


def head_of(entry: Entry) -> Head:
    """The head of an entry that was read whole: the one that `heads` gives."""
    if not isinstance(entry, ChainEntry) or entry.problems:
        return _head(entry)
    message = getattr(entry, "message", None)
    return Head(
        kind=entry.kind,
        parent_uuid=entry.parent_uuid,
        logical_parent_uuid=entry.logical_parent_uuid,
        is_agent=entry.is_agent,
        session_id=entry.session_id,
        version=entry.version,
        agent_id=entry.agent_id,
        subtype=getattr(entry, "subtype", None),
        message=MessageHead(message.model, message.id, message.stop_reason, message.usage)
        if isinstance(message, Message)
        else None,
        uuid=entry.uuid,
        timestamp_text=entry.timestamp_text,
        is_compact_summary=getattr(entry, "is_compact_summary", None),
        line=entry.line.number,
    )


def _head(entry: Entry) -> Head:
    """The head of an entry whose line needs a closer look."""
    head = Head() if _is_lost(entry) else _brief(entry)
    force_setattr(head, "kind", entry.kind)
    force_setattr(head, "line", entry.line.number)
    return head


def _is_lost(entry: Entry) -> bool:
    """Whether nothing could be made of the line, so that looking again would cost much and give nothing."""
    return any(not problem.recovered for problem in entry.problems)


def _brief(entry: Entry) -> Head:
    try:
        return _decode_one(bare(entry.raw))
    except REFUSALS:
        data = entry.data
        made: Head = fit(data, Head)[0] if isinstance(data, dict) else Head()
        return made
