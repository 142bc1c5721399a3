"""Sighted: what the lines of a transcript tell of messages, read by workers and written by one."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from threadline.index.texts import as_text
from threadline.model.found import Transcript
from threadline.model.sighting import Origin, Seen, Sighting
from threadline.parse.gathering import Gathering
from threadline.parse.lines_with import first_lines, lines_with
from threadline.parse.sightings import NEEDLE

STALE_OF = "INSERT OR IGNORE INTO stale SELECT message FROM sightings WHERE transcript_id = ?"
"""What a transcript told of is to be charged anew."""


class Sighted(Struct, gc=False):
    """What the lines that were read tell of messages.

    `waiting` are calls for web searches without a result so far; `is_all` says that `sightings` are of the whole
    transcript, since a result of a call before has come.
    """

    sightings: list[tuple[str, bytes]] = []
    waiting: list[str] = []
    is_all: bool = False

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write it down for the transcript of that number, and that its messages are to be charged anew."""
        if self.is_all:
            connection.execute(STALE_OF, (number,))
            connection.execute("DELETE FROM sightings WHERE transcript_id = ?", (number,))
        execute = connection.executemany
        execute("INSERT INTO sightings VALUES(?, ?, ?)", [(number, *row) for row in self.sightings])
        execute("INSERT OR IGNORE INTO stale VALUES(?)", [(key,) for key in {key for key, _told in self.sightings}])
        connection.execute("DELETE FROM waiting WHERE transcript_id = ?", (number,))
        execute("INSERT INTO waiting VALUES(?, ?)", [(number, call) for call in self.waiting])


def sighted(transcript: Transcript, offset: int, read_to: int, waiting: tuple[str, ...]) -> Sighted:
    """What the lines between two offsets tell of messages, each packed with its origin.

    `waiting` are calls for web searches before them, whose results may come now.
    """
    gathering = Gathering(transcript)
    before, is_all = list(waiting), False
    if _gather(gathering, offset, read_to, waiting):  # the call tells what its result adds to, and that was read before
        gathering = Gathering(transcript)
        _gather(gathering, 0, read_to, ())
        before, is_all = [], True
    seen = gathering.seen(first_lines(transcript.path))
    return Sighted(
        [(as_text(one.key) or "", _packed(one, seen)) for one in seen.sightings],
        before + [as_text(call) or "" for call in gathering.waiting],
        is_all,
    )


def _gather(gathering: Gathering, offset: int, read_to: int, waiting: tuple[str, ...]) -> bool:
    """Go through the lines; whether they name a call that was waiting for its result."""
    wanted = [call.encode() for call in waiting]
    is_named = False
    for found in lines_with(gathering.transcript.path, NEEDLE, offset=offset):
        kept = sum(one < read_to for one in found.offsets)  # it may have grown since
        found.offsets, found.lines = found.offsets[:kept], found.lines[:kept]
        found.block = found.block[: max(0, read_to - found.begins)]
        gathering.add(found)
        is_named = is_named or any(call in found.block for call in wanted)
    return is_named


def _packed(sighting: Sighting, seen: Seen) -> bytes:
    told = (seen.began, seen.origins[sighting.origin_number], sighting)
    try:
        return msgspec.msgpack.encode(told)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(_clean(msgspec.to_builtins(told, builtin_types=(bytes,))))


def _clean(value: Any) -> Any:
    """The same value, with text in it that can be written."""
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {name: _clean(one) for name, one in value.items()}
    return as_text(value) if isinstance(value, str) else value


_unpack = msgspec.msgpack.Decoder(tuple[str, Origin, Sighting]).decode


def unpacked(told: bytes) -> tuple[str, Origin, Sighting]:
    """A sighting as it was packed, with when its transcript began, and its origin."""
    return _unpack(told)
