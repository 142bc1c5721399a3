"""A transcript as entries: every byte in exactly one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import accumulate, count, repeat
from pathlib import Path

from msgspec.structs import force_setattr

from threadline.model.entries import Entry, OtherEntry
from threadline.model.line import Line
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.parse.chunks import Chunk, chunks
from threadline.parse.decode import decode_lines, decode_object
from threadline.parse.recover import Span, spans
from threadline.parse.run import DecodeLines
from threadline.shape import BOM, bare


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
    """Reads one transcript; `decode` may be another way of decoding a run of lines, as the doctor's is."""

    def __init__(self, transcript: str, decode: DecodeLines = decode_lines) -> None:
        self._transcript = transcript
        self._decode = decode

    def entries(self, path: str | Path, *, offset: int = 0, number: int = 1) -> Iterator[Entry]:
        """Every entry from `offset` on."""
        transcript, decode = self._transcript, self._decode
        for chunk in chunks(path, offset=offset):
            found = None if chunk.piece else decode(chunk.lines)
            if found is None:
                yield from self.one_by_one(chunk, number)
                number += sum(line.endswith(b"\n") for line in chunk.lines)
                continue
            # Each entry gets its line, without a step of the interpreter's own for each.
            offsets = accumulate(map(len, chunk.lines), initial=chunk.offset)
            placed = map(Line, repeat(transcript), count(number), offsets, chunk.lines)
            deque(map(force_setattr, found, repeat("line"), placed), maxlen=0)
            yield from found
            number += len(found)

    def one_by_one(self, chunk: Chunk, number: int) -> Iterator[Entry]:
        """The entries of a chunk in which some line needs a closer look."""
        if chunk.piece:
            yield self._endless(chunk, number)
            return
        offset = chunk.offset
        for raw in chunk.lines:
            yield from self._line(raw, number, offset)
            number += 1
            offset += len(raw)

    def _line(self, raw: bytes, number: int, offset: int) -> Iterator[Entry]:
        """The entries of one line: one, unless it is damaged."""
        place = Place(self._transcript, number, offset, len(raw))
        data = bare(raw)
        start = raw.find(data[:64])
        before, after = raw[:start], raw[start + len(data) :]
        problems: list[Problem] = []
        if BOM in before or (not data and BOM in after):
            problems.append(Problem(ProblemKind.BOM, place, "a byte order mark in front of the row"))
        nuls = before.count(0) + after.count(0)
        if not data and not nuls:
            yield self._placed(OtherEntry(tag="blank"), raw, number, offset, problems)
            return
        if data and nuls:
            problems.append(Problem(ProblemKind.NUL_RUN, place, f"{nuls} NUL bytes around the row"))
        try:
            entry, more = decode_object(data, place)
        except RecursionError:
            yield self._placed(OtherEntry(tag="damaged"), raw, number, offset, [*problems, _too_deep(place)])
        except ValueError:
            yield from self._recovered(raw, number, offset, problems)
        else:
            yield self._placed(entry, raw, number, offset, [*problems, *more])

    def _recovered(self, raw: bytes, number: int, offset: int, problems: list[Problem]) -> Iterator[Entry]:
        found = spans(raw)
        tail = not raw.endswith(b"\n")
        glued = False
        for span in found:
            part = raw[span.start : span.end]
            place = Place(self._transcript, number, offset + span.start, len(part))
            if span.lost is not None:
                pending = tail and span is found[-1] and bare(part).startswith(b"{")
                entry, more = _lost(span, place, len(part), pending=pending)
            else:
                entry, more = _decoded(part, place)
                if glued:
                    more.append(Problem(ProblemKind.GLUED, place, "on one line with the object before it"))
                glued = True
            yield self._placed(entry, part, number, offset + span.start, [*problems, *more])
            problems = []

    def _endless(self, chunk: Chunk, number: int) -> Entry:
        """A piece of a line too long to be decoded; the first says what is wrong with the whole of it."""
        raw = chunk.lines[0]
        problems = []
        if chunk.whole:
            nul = not raw.strip(b"\0\n")
            kind = ProblemKind.NUL_RUN if nul else ProblemKind.TOO_LONG
            why = "NUL bytes: what was written here is gone" if nul else "a line too long to be decoded"
            place = Place(self._transcript, number, chunk.offset, chunk.whole)
            problems = [Problem(kind, place, why, recovered=False, lost=chunk.whole)]
        return self._placed(OtherEntry(tag="damaged"), raw, number, chunk.offset, problems)

    def _placed(self, entry: Entry, raw: bytes, number: int, offset: int, problems: list[Problem]) -> Entry:
        force_setattr(entry, "line", Line(self._transcript, number, offset, raw, tuple(problems)))
        return entry


def _decoded(part: bytes, place: Place) -> tuple[Entry, list[Problem]]:
    try:
        return decode_object(bare(part), place)
    except RecursionError:  # the search for it stood a few frames higher
        return OtherEntry(tag="damaged"), [_too_deep(place)]


def _too_deep(place: Place) -> Problem:
    why = "nested too deeply to be read"
    return Problem(ProblemKind.TOO_DEEP, place, why, recovered=False, lost=place.length)


def _lost(span: Span, place: Place, size: int, *, pending: bool) -> tuple[Entry, list[Problem]]:
    if pending:
        why = "the last line is not finished: normal while the session runs, else the end of a crash"
        return OtherEntry(tag="pending"), [Problem(ProblemKind.TORN_TAIL, place, why, recovered=False)]
    kind = span.lost or ProblemKind.FOREIGN
    return OtherEntry(tag="damaged"), [Problem(kind, place, span.why, recovered=False, lost=size)]
