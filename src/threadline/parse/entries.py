"""A transcript as entries: every byte in exactly one of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import force_setattr

from threadline.model.block import ToolUseBlock
from threadline.model.entries import AssistantEntry, Entry, OtherEntry, UserEntry
from threadline.model.line import Line
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.parse.chunks import Chunk, chunks
from threadline.parse.decode import REFUSALS, decode_entries, decode_object
from threadline.parse.recover import Span, spans

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
# Calls whose results have not come yet are remembered up to this many; a call that old was interrupted.
_MOST_CALLS = 10_000


def entries(path: str | Path, *, offset: int = 0, line: int = 1) -> Iterator[Entry]:
    """Every entry of a transcript, in file order, in memory that does not grow with the file.

    No line is refused and nothing is skipped: `b"".join(entry.raw for entry in entries(path))` is the file.
    What could not be understood comes as an `OtherEntry`, and what was wrong with an entry is in its
    `problems`.

    Args:
        path: the transcript.
        offset: where to start, in bytes; it must be the start of a line.
        line: the number of that line.

    Raises:
        NotFound: there is no such file.
        Unreadable: the machine refuses to let it be read.
    """
    return Reader(str(path)).entries(path, offset=offset, number=line)


class Reader:
    """Reads chunks of one transcript; remembers which tool each call was to, so that results can be typed."""

    def __init__(self, transcript: str, decode: Callable[[bytes], list[Any]] = decode_entries) -> None:
        self._transcript = transcript
        self._decode = decode
        self._tools: dict[str, str] = {}

    def entries(self, path: str | Path, *, offset: int = 0, number: int = 1) -> Iterator[Entry]:
        """Every entry from `offset` on."""
        for chunk in chunks(path, offset=offset, number=number):
            yield from self.read(chunk)

    def read(self, chunk: Chunk) -> Iterator[Entry]:
        """The entries of one chunk."""
        if chunk.piece:
            yield self._endless(chunk)
            return
        data = chunk.data
        try:
            found = self._decode(data)
        except REFUSALS:
            found = []
        if not _aligned(data, len(found)):
            yield from self._one_by_one(chunk)
            return
        transcript, number, offset = self._transcript, chunk.number, chunk.offset
        for entry, raw in zip(found, io.BytesIO(data), strict=True):
            force_setattr(entry, "line", Line(transcript, number, offset, raw))
            number += 1
            offset += len(raw)
            if isinstance(entry, UserEntry | AssistantEntry):
                self._name_tools(entry)
            yield entry

    def _one_by_one(self, chunk: Chunk) -> Iterator[Entry]:
        number, offset = chunk.number, chunk.offset
        for raw in io.BytesIO(chunk.data):
            for entry in self._line(raw, number, offset):
                if isinstance(entry, UserEntry | AssistantEntry):
                    self._name_tools(entry)
                yield entry
            number += 1
            offset += len(raw)

    def _line(self, raw: bytes, number: int, offset: int) -> Iterator[Entry]:
        """The entries of one line: one, unless it is damaged."""
        place = Place(self._transcript, number, offset, len(raw))
        data = raw.strip(_SPACE)
        problems: list[Problem] = []
        if offset == 0 and data.startswith(_BOM):
            data = data[len(_BOM) :]
            problems.append(Problem(ProblemKind.BOM, place, "the file starts with a byte order mark"))
        if not data:
            yield self._placed(OtherEntry(tag="blank"), raw, number, offset, problems)
            return
        bare = data.strip(b"\0 \t\r\n")
        if bare and len(bare) != len(data):
            problems.append(Problem(ProblemKind.NUL_RUN, place, f"{len(data) - len(bare)} NUL bytes around the row"))
        try:
            entry, more = decode_object(bare, place)
        except RecursionError:
            problems.append(
                Problem(ProblemKind.TOO_DEEP, place, "nested too deeply to be read", recovered=False, lost=len(raw))
            )
            yield self._placed(OtherEntry(tag="damaged"), raw, number, offset, problems)
        except ValueError:
            yield from self._recovered(raw, number, offset, problems)
        else:
            yield self._placed(entry, raw, number, offset, [*problems, *more])

    def _recovered(self, raw: bytes, number: int, offset: int, problems: list[Problem]) -> Iterator[Entry]:
        found = spans(raw)
        tail = not raw.endswith(b"\n")
        whole = sum(span.lost is None for span in found)
        for span in found:
            part = raw[span.start : span.end]
            place = Place(self._transcript, number, offset + span.start, len(part))
            if span.lost is not None:
                pending = tail and span is found[-1] and part.strip(b"\0 \t\r\n").startswith(b"{")
                entry, more = _lost(span, place, len(part), pending=pending)
            else:
                entry, more = decode_object(part.strip(b"\0 \t\r\n").removeprefix(_BOM), place)
                if whole > 1:
                    more.append(Problem(ProblemKind.GLUED, place, f"{whole} objects on one line"))
            yield self._placed(entry, part, number, offset + span.start, [*problems, *more])
            problems = []

    def _endless(self, chunk: Chunk) -> Entry:
        place = Place(self._transcript, chunk.number, chunk.offset, len(chunk.data))
        nul = not chunk.data.strip(b"\0\n")
        kind = ProblemKind.NUL_RUN if nul else ProblemKind.TOO_LONG
        why = "nothing but NUL bytes: what was written here is gone" if nul else "a line too long to be decoded"
        problem = Problem(kind, place, why, recovered=False, lost=len(chunk.data))
        return self._placed(OtherEntry(tag="damaged"), chunk.data, chunk.number, chunk.offset, [problem])

    def _placed(self, entry: Entry, raw: bytes, number: int, offset: int, problems: list[Problem]) -> Entry:
        force_setattr(entry, "line", Line(self._transcript, number, offset, raw, tuple(problems)))
        return entry

    def _name_tools(self, entry: UserEntry | AssistantEntry) -> None:
        """Remember the tool of each call, and tell a result which tool it is of."""
        message = entry.message
        if message is None or not isinstance(message.content, list):
            return
        if isinstance(entry, AssistantEntry):
            for block in message.content:
                if isinstance(block, ToolUseBlock) and block.id is not None:
                    if len(self._tools) >= _MOST_CALLS:
                        del self._tools[next(iter(self._tools))]
                    self._tools[block.id] = block.name
        else:
            call = entry.call_id
            if call is not None:
                force_setattr(entry, "tool", self._tools.get(call))


def _lost(span: Span, place: Place, size: int, *, pending: bool) -> tuple[Entry, list[Problem]]:
    if pending:
        why = "the last line is not finished: normal while the session runs, else the end of a crash"
        return OtherEntry(tag="pending"), [Problem(ProblemKind.TORN_TAIL, place, why, recovered=False)]
    kind = span.lost or ProblemKind.FOREIGN
    return OtherEntry(tag="damaged"), [Problem(kind, place, span.why, recovered=False, lost=size)]


def _aligned(data: bytes, count: int) -> bool:
    """Whether `count` objects decoded from `data` are surely its lines, one each.

    The decoder takes any white space between objects. When every line begins with `{` and ends with `}`, an
    object that spans lines is impossible (after a nested object's `}` comes `,`, `]` or `}`), and so is a
    blank line; then equal counts mean that no line holds two.
    """
    lines = data.count(b"\n")
    if not data.endswith(b"\n"):
        return count == 1 and lines == 0 and data[:1] == b"{" and data[-1:] == b"}"
    return (
        count == lines and data[:1] == b"{" and data.count(b"\n{") == lines - 1 and data.count(b"}\n") == lines
    )
