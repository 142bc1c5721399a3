"""The end of a transcript: what it tells of messages since a moment, without reading what came before.

Lines are in the order of time, nearly: copies keep old times, and agents that work side by side write as they come. So
the reading goes back until a whole block of lines names no time after the moment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from threadline.errors import Error, Unreadable
from threadline.model.found import Transcript
from threadline.model.sighting import Seen
from threadline.parse.chunks import open_transcript
from threadline.parse.gathering import Gathering
from threadline.parse.lines_with import Lines, first_lines, lines_with
from threadline.parse.sightings import NEEDLE, sightings

_BLOCK = 256 * 1024
_TIME = re.compile(rb'"timestamp"\s*:\s*"([^"]{1,40})"')
_COMPACTED = re.compile(rb'"subtype"\s*:\s*"compact_boundary"')
# Up to this size, reading everything takes no longer than looking for where to begin.
_SMALL = 1024 * 1024


def sightings_since(transcript: Transcript, since: str) -> Seen:
    """What a transcript tells of messages since a time (`2026-11-15T00:00:00`), and perhaps of some before."""
    if transcript.size <= _SMALL:
        return sightings(transcript)
    gathering = Gathering(transcript)
    try:
        for found in _lines_since(transcript.path, since):
            gathering.add(found)
        return gathering.seen(first_lines(transcript.path))
    except Error as error:
        return Seen("", gathering.origins, list(gathering.found.values()), str(error))


def ends_compacted(path: Path) -> bool:
    """Whether a compaction came after the last request: the window is then smaller than that request's prompt."""
    try:
        descriptor = open_transcript(path)
    except Error:
        return False
    try:
        size = os.fstat(descriptor).st_size
        end = _read(descriptor, max(0, size - _BLOCK), size)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    *_, last = 0, *(match.end() for match in _COMPACTED.finditer(end))
    return last > 0 and end.find(NEEDLE, last) < 0


def _lines_since(path: Path, since: str) -> Iterator[Lines]:
    descriptor = open_transcript(path)
    try:
        start = _where_to_begin(descriptor, since)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)
    yield from lines_with(path, NEEDLE, offset=start)


def _where_to_begin(descriptor: int, since: str) -> int:
    """Where a line begins before which nothing is wanted: blocks are looked at from the last one backwards."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        block = _read(descriptor, start, end)
        first = block.find(b"\n") + 1
        if start and first and _is_before(block, since):
            return start + first
        end = start
    return 0


def _is_before(block: bytes, since: str) -> bool:
    """Whether a block names times, and all of them lie before; one that is not written as usual may lie anywhere."""
    times = {match[1] for match in _TIME.finditer(block)}
    wanted = since.encode()
    return bool(times) and all(time.endswith(b"Z") and time < wanted for time in times)


def _read(descriptor: int, start: int, end: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    parts = []
    while start < end and (part := os.read(descriptor, end - start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
