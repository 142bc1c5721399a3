"""What one transcript, or the end that it has grown, gives to the index. Made by workers, written by one."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from threadline.errors import Error
from threadline.index.fields import fields
from threadline.index.words import searchable
from threadline.model.entries import AssistantEntry, ChainEntry, Entry
from threadline.model.found import Transcript
from threadline.model.sighting import Origin, Seen, Sighting
from threadline.parse import entries
from threadline.parse.gathering import Gathering
from threadline.parse.lines_with import first_lines, lines_with
from threadline.parse.sightings import NEEDLE

_LAST = 4096
EntryRow = tuple[int, int, int, str, str | None, str | None, str | None, str | None, str | None]
ProblemRow = tuple[int, str, str, bool]


class Reading(Struct, frozen=True, gc=False):
    """A transcript to be read, from where on, and the number of the line there.

    `waiting` are calls for web searches before it, whose results may come now.
    """

    transcript: Transcript
    offset: int = 0
    line: int = 1
    waiting: tuple[str, ...] = ()


class Rows(Struct, gc=False):
    """The rows of a transcript, in its order. `texts` have the number of their entry among those read.

    `read_to` is where the last whole line ends, `lines` how many there are up to it, `last` its last bytes. `problem`
    says why the transcript could not be read. `waiting` are calls for web searches without a result so far;
    `is_all_sighted` says that `sightings` are of the whole transcript, since a result of one before it has come.
    """

    entries: list[EntryRow]
    texts: list[tuple[int, dict[str, str]]]
    problems: list[ProblemRow]
    sightings: list[tuple[str, bytes]]
    read_to: int = 0
    lines: int = 0
    last: bytes = b""
    problem: str | None = None
    waiting: list[str] = []
    is_all_sighted: bool = False


def rows(reading: Reading) -> Rows:
    """Read on in a transcript. Refusals of the machine become a problem."""
    made = Rows([], [], [], [], reading.offset, reading.line - 1)
    try:
        for entry in entries(reading.transcript.path, offset=reading.offset, line=reading.line):
            if not _add(made, entry, reading.transcript):
                break
        _sight(made, reading)
    except Error as error:
        made.problem = str(error)
    return made


def _add(made: Rows, entry: Entry, transcript: Transcript) -> bool:
    """One more entry; False for a last line that is not finished, which is left for the next time."""
    line = entry.line
    if not line.raw.endswith(b"\n"):
        return False
    agent = entry.agent_id if isinstance(entry, ChainEntry) else None
    message = entry.message.id if isinstance(entry, AssistantEntry) and entry.message is not None else None
    written = entry.timestamp_text
    made.entries.append(
        (
            line.number,
            line.offset,
            len(line.raw),
            as_text(entry.kind) or "",
            as_text(entry.uuid),
            as_text(entry.session_id) if entry.session_id != transcript.session else None,
            as_text(agent) if agent != transcript.agent else None,
            as_text(written) if isinstance(written, str) else _moment(entry),
            as_text(message),
        )
    )
    said = fields(entry)
    if said:
        made.texts.append((len(made.entries) - 1, {name: searchable(text) for name, text in said.items()}))
    made.problems.extend(
        (line.number, str(one.kind), as_text(one.message) or "", one.recovered) for one in entry.problems
    )
    made.lines = line.number
    made.read_to = line.offset + len(line.raw)
    made.last = line.raw[-_LAST:]
    return True


def _sight(made: Rows, reading: Reading) -> None:
    """What the lines that were read tell of messages, each packed with its origin."""
    made.waiting = list(reading.waiting)
    gathering = Gathering(reading.transcript)
    if _gather(gathering, reading, made):  # the call tells what its result adds to, and that was read before
        gathering = Gathering(reading.transcript)
        _gather(gathering, Reading(reading.transcript), made)
        made.waiting, made.is_all_sighted = [], True
    seen = gathering.seen(first_lines(reading.transcript.path))
    made.sightings = [(as_text(one.key) or "", _packed(one, seen)) for one in seen.sightings]
    made.waiting += [as_text(call) or "" for call in gathering.waiting]


def _gather(gathering: Gathering, reading: Reading, made: Rows) -> bool:
    """Go through the lines; whether they name a call that was waiting for its result."""
    waiting = [call.encode() for call in reading.waiting]
    is_named = False
    for found in lines_with(reading.transcript.path, NEEDLE, offset=reading.offset):
        kept = sum(offset < made.read_to for offset in found.offsets)  # it may have grown since
        found.offsets, found.lines = found.offsets[:kept], found.lines[:kept]
        found.block = found.block[: max(0, made.read_to - found.begins)]
        gathering.add(found)
        is_named = is_named or any(call in found.block for call in waiting)
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


def _moment(entry: Entry) -> str | None:
    moment = entry.timestamp
    return moment.isoformat() if moment is not None else None


def as_text(value: Any) -> str | None:
    """Text that a database takes: half of a character, which JSON may hold, is not."""
    if not isinstance(value, str) or value.isascii():
        return value if isinstance(value, str) else None
    return value.encode("utf-8", "replace").decode()
