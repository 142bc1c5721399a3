"""What one transcript, or the end that it has grown, gives to the index. Made by workers, written by one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error
from threadline.index.fields import fields
from threadline.index.schema import FIELDS
from threadline.index.sighted import Sighted, sighted
from threadline.index.state import Folded, Folding
from threadline.index.texts import as_text
from threadline.index.words import searchable
from threadline.model.entries import AssistantEntry, ChainEntry, Entry
from threadline.model.found import Transcript
from threadline.model.line import Line
from threadline.parse import entries
from threadline.parse.chunks import open_transcript

_LAST = 4096
EntryRow = tuple[int, int, int, str, str | None, str | None, str | None, str | None, str | None]
ProblemRow = tuple[int, str, str, bool]


class Reading(Struct, frozen=True, gc=False):
    """A transcript to be read, from where on, and the number of the line there.

    `state` is what the lines before it come to; `waiting` are calls for web searches among them, whose results may
    come now. `is_open` says that the last of them has no end.
    """

    transcript: Transcript
    offset: int = 0
    line: int = 1
    state: bytes = b""
    waiting: tuple[str, ...] = ()
    is_open: bool = False


class Rows(Struct, gc=False):
    """The rows of a transcript, in its order. `texts` have the number of their entry among those read.

    `read_to` is where the last whole line ends, `lines` how many there are up to it, `last` its last bytes, `checksum`
    that of all bytes that were read. `problem` says why the transcript could not be read. `is_open` says that the last
    line is whole and has no end yet, `is_closed` that the one before these has got its end now; `is_anew` that all of
    the transcript was read, since that line went on in another way.
    """

    entries: list[EntryRow]
    texts: list[tuple[int, list[str | None]]]
    problems: list[ProblemRow]
    sighted: Sighted
    folded: Folded
    read_to: int = 0
    lines: int = 0
    last: bytes = b""
    checksum: int = 0
    problem: str | None = None
    is_open: bool = False
    is_closed: bool = False
    is_anew: bool = False


def rows(reading: Reading) -> Rows:
    """Read on in a transcript. Refusals of the machine become a problem."""
    try:
        if reading.is_open and not _is_ended(reading):
            anew = _read(Reading(reading.transcript))
            anew.is_anew = True
            return anew
        if reading.is_open:
            closed = _read(replace(reading, offset=reading.offset + 1))
            closed.is_closed = True
            closed.last = closed.last or b"\n"
            return closed
    except (OSError, Error) as error:
        return Rows([], [], [], Sighted(), Folded(reading.state), reading.offset, reading.line - 1, problem=str(error))
    return _read(reading)


def _is_ended(reading: Reading) -> bool:
    """Whether the line that had no end has one now."""
    with os.fdopen(open_transcript(reading.transcript.path), "rb") as file:
        file.seek(reading.offset)
        return file.read(1) == b"\n"


def _read(reading: Reading) -> Rows:
    transcript = reading.transcript
    made = Rows([], [], [], Sighted(), Folded(reading.state), reading.offset, reading.line - 1)
    folding = Folding(reading.state, transcript)
    line: Line | None = None
    checksum = 0
    try:
        try:
            for entry in _finished(entries(transcript.path, offset=reading.offset, line=reading.line)):
                line = entry.line
                checksum = crc32(line.raw, checksum)
                _add(made, entry, line, transcript, folding)
        finally:
            made.checksum = checksum
            if line is not None:
                made.lines, made.read_to = line.number, line.offset + len(line.raw)
                made.last = line.raw[-_LAST:]
        made.is_open = line is not None and not made.last.endswith(b"\n")
        made.folded = folding.folded(lambda: _up_to(transcript, made.read_to))
        made.sighted = sighted(transcript, reading.offset, made.read_to, reading.waiting)
    except Error as error:
        made.problem = str(error)
    return made


def _up_to(transcript: Transcript, read_to: int) -> Iterator[Entry]:
    """All entries of a transcript, as far as it has been read."""
    return takewhile(lambda entry: entry.line.offset < read_to, entries(transcript.path))


def _finished(some: Iterable[Entry]) -> Iterator[Entry]:
    """The entries of lines that have an end; a last line without one is left for the next time, unless it is whole."""
    waiting: list[Entry] = []  # a line may hold several entries, of which only the last has the end
    for entry in some:
        if not waiting and entry.line.raw.endswith(b"\n"):
            yield entry
            continue
        if waiting and entry.line.number != waiting[0].line.number:
            return  # it was the last line, and has grown while it was read
        waiting.append(entry)
        if entry.line.raw.endswith(b"\n"):
            yield from waiting
            waiting.clear()
    if len(waiting) == 1 and not waiting[0].problems and waiting[0].line.raw.rstrip().endswith(b"}"):
        yield waiting[0]


def _add(made: Rows, entry: Entry, line: Line, transcript: Transcript, folding: Folding) -> None:
    """One more entry."""
    agent = entry.agent_id if isinstance(entry, ChainEntry) else None
    message = entry.message.id if isinstance(entry, AssistantEntry) and entry.message is not None else None
    written, uuid, kind = entry.timestamp_text, entry.uuid, entry.kind
    at = len(made.entries)
    made.entries.append(
        (
            line.number,
            line.offset,
            len(line.raw),
            kind if kind.isascii() else as_text(kind) or "",
            uuid if uuid is None or uuid.isascii() else as_text(uuid),
            as_text(entry.session_id) if entry.session_id != transcript.session else None,
            as_text(agent) if agent != transcript.agent else None,
            as_text(written) if isinstance(written, str) else _moment(entry),
            as_text(message),
        )
    )
    said = fields(entry)
    if said:
        made.texts.append((at, [searchable(said[name]) if name in said else None for name in FIELDS]))
    if line.problems:
        made.problems.extend(
            (line.number, str(one.kind), as_text(one.message) or "", one.recovered) for one in line.problems
        )
    folding.add(at, entry)


def _moment(entry: Entry) -> str | None:
    moment = entry.timestamp
    return moment.isoformat() if moment is not None else None
