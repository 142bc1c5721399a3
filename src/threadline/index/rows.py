"""What one transcript, or the end that it has grown, gives to the index. Made by workers, written by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct

from threadline.errors import Error
from threadline.index.fields import fields
from threadline.index.schema import FIELDS
from threadline.index.sighted import Sighted, sighted
from threadline.index.state import Folded, Folding
from threadline.index.texts import as_text
from threadline.index.words import searchable
from threadline.model.entries import AssistantEntry, ChainEntry, Entry
from threadline.model.found import Transcript
from threadline.parse import entries

_LAST = 4096
EntryRow = tuple[int, int, int, str, str | None, str | None, str | None, str | None, str | None]
ProblemRow = tuple[int, str, str, bool]


class Reading(Struct, frozen=True, gc=False):
    """A transcript to be read, from where on, and the number of the line there.

    `state` is what the lines before it come to; `waiting` are calls for web searches among them, whose results may
    come now.
    """

    transcript: Transcript
    offset: int = 0
    line: int = 1
    state: bytes = b""
    waiting: tuple[str, ...] = ()


class Rows(Struct, gc=False):
    """The rows of a transcript, in its order. `texts` have the number of their entry among those read.

    `read_to` is where the last whole line ends, `lines` how many there are up to it, `last` its last bytes. `problem`
    says why the transcript could not be read.
    """

    entries: list[EntryRow]
    texts: list[tuple[int, list[str | None]]]
    problems: list[ProblemRow]
    sighted: Sighted
    folded: Folded
    read_to: int = 0
    lines: int = 0
    last: bytes = b""
    problem: str | None = None


def rows(reading: Reading) -> Rows:
    """Read on in a transcript. Refusals of the machine become a problem."""
    transcript = reading.transcript
    made = Rows([], [], [], Sighted(), Folded(reading.state), reading.offset, reading.line - 1)
    folding = Folding(reading.state, transcript)
    try:
        for entry in _finished(entries(transcript.path, offset=reading.offset, line=reading.line)):
            _add(made, entry, transcript, folding)
        made.folded = folding.folded(lambda: _up_to(transcript, made.read_to))
        made.sighted = sighted(transcript, reading.offset, made.read_to, reading.waiting)
    except Error as error:
        made.problem = str(error)
    return made


def _up_to(transcript: Transcript, read_to: int) -> Iterator[Entry]:
    """All entries of a transcript, as far as it has been read."""
    return takewhile(lambda entry: entry.line.offset < read_to, entries(transcript.path))


def _finished(some: Iterable[Entry]) -> Iterator[Entry]:
    """The entries of lines that have an end; a last line without one is left for the next time."""
    waiting: list[Entry] = []  # a line may hold several entries, of which only the last has the end
    for entry in some:
        if waiting and entry.line.number != waiting[0].line.number:
            return  # it was the last line, and has grown while it was read
        waiting.append(entry)
        if entry.line.raw.endswith(b"\n"):
            yield from waiting
            waiting.clear()


def _add(made: Rows, entry: Entry, transcript: Transcript, folding: Folding) -> None:
    """One more entry."""
    line = entry.line
    agent = entry.agent_id if isinstance(entry, ChainEntry) else None
    message = entry.message.id if isinstance(entry, AssistantEntry) and entry.message is not None else None
    written = entry.timestamp_text
    at = len(made.entries)
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
        made.texts.append((at, [searchable(said[name]) if name in said else None for name in FIELDS]))
    made.problems.extend(
        (line.number, str(one.kind), as_text(one.message) or "", one.recovered) for one in entry.problems
    )
    folding.add(at, entry)
    made.lines = line.number
    made.read_to = line.offset + len(line.raw)
    made.last = line.raw[-_LAST:]


def _moment(entry: Entry) -> str | None:
    moment = entry.timestamp
    return moment.isoformat() if moment is not None else None
