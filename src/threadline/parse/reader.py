"""Read a transcript as entries, losing no byte.

Every byte of the file is in exactly one entry. Runs of well-formed lines are decoded at once. A run that fails is
decoded line by line, leniently, and damaged lines are split by `recover`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import accumulate, count, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any, Union

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from threadline.json_values import DECODE_ERRORS
from threadline.model.blocks import Message
from threadline.model.entries import KINDS, ChainEntry, Entry, OtherEntry, ToolResultEntry, ToolUseEntry
from threadline.model.places import BYTE_ORDER_MARK, Line, Place, Problem, ProblemKind, strip_line
from threadline.model.usage import Head, MessageHead
from threadline.parse.lines import Chunk, DecodeLines, make_lines_decoder, read_chunks
from threadline.parse.recover import Span, split_damaged_line
from threadline.shape import LenientValue, Misfit, fit, lenient_loads

_decode_head = msgspec.json.Decoder(Head).decode
_REPEATED_FIELDS = ("session_id", "cwd", "version", "git_branch", "slug")
_CALL_ROWS = (ToolUseEntry, ToolResultEntry)  # their lines have no message


def heads_line_by_line(transcript: str, chunk: Chunk, number: int) -> Iterator[Head]:
    """Yield the heads of a chunk in which the fast decoder rejected a line."""
    return map(_head_of_damaged, TranscriptReader(transcript).decode_line_by_line(chunk, number))


def head_of(entry: Entry) -> Head:
    """Return the head of a complete entry, equal to the one that `heads` yields."""
    if not isinstance(entry, ChainEntry) or isinstance(entry, _CALL_ROWS) or entry.problems:
        return _head_of_damaged(entry)
    message = getattr(entry, "message", None)
    return Head(
        kind=entry.kind,
        parent_uuid=entry.parent_uuid,
        logical_parent_uuid=entry.logical_parent_uuid,
        is_agent=entry.is_agent,
        session_id=entry.session_id,
        version=entry.version,
        agent_id=entry.agent_id,
        agent_id_again=entry.agent_id_again,
        subtype=getattr(entry, "subtype", None),
        message=MessageHead(message.model, message.id, message.stop_reason, message.usage)
        if isinstance(message, Message)
        else None,
        uuid=entry.uuid,
        timestamp_text=entry.timestamp_text,
        is_compact_summary=getattr(entry, "is_compact_summary", None),
        line=entry.line.number,
    )


def _head_of_damaged(entry: Entry) -> Head:
    """Return the head of an entry whose line the fast decoder rejected."""
    head = Head() if _is_unrecoverable(entry) else _reread_head(entry)
    force_setattr(head, "kind", entry.kind)
    force_setattr(head, "line", entry.line.number)
    return head


def _is_unrecoverable(entry: Entry) -> bool:
    """Whether nothing was recovered from the line. A piece of a line that is too long may look like a row by chance."""
    return entry.kind == _DAMAGED or any(not problem.recovered for problem in entry.problems)


def _reread_head(entry: Entry) -> Head:
    try:
        return _decode_head(strip_line(entry.raw))
    except DECODE_ERRORS:
        data = entry.data
        head: Head = fit(data, Head)[0] if isinstance(data, dict) else Head()
        return head


_DAMAGED = "damaged"
# Lenient decoding takes many times the line's size in memory, so longer lines are not decoded leniently.
_MAX_LENIENT_SIZE = 8 * 1024 * 1024
_KNOWN_ENTRY: Any = Union[tuple(KINDS.values())]  # noqa: UP007 - a union from a table, without `OtherEntry`
decode_entry = msgspec.json.Decoder[Any](_KNOWN_ENTRY).decode


decode_lines = make_lines_decoder(_KNOWN_ENTRY)


def decode_object(data: bytes, place: Place) -> tuple[Entry, list[Problem]]:
    """Decode one JSON object as an entry, with its problems.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    try:
        return decode_entry(data), []
    except DECODE_ERRORS:
        return _decode_leniently(data, place)


def _decode_leniently(data: bytes, place: Place) -> tuple[Entry, list[Problem]]:
    loaded = lenient_loads(data) if len(data) <= _MAX_LENIENT_SIZE else _load_huge_value(data)
    problems = [Problem(ProblemKind(kind), place, message) for kind, message in loaded.defects]
    value = loaded.value
    if not isinstance(value, dict):
        problems.append(
            Problem(
                ProblemKind.NOT_AN_OBJECT,
                place,
                f"a line must contain an object, but this contains {_describe_json_type(value)}",
                recovered=False,
                lost=place.length,
            )
        )
        return OtherEntry(tag=_DAMAGED), problems
    kind = value.get("type")
    if not isinstance(kind, str):
        problems.append(Problem(ProblemKind.NO_TYPE, place, "the object has no `type`"))
    entry, misfits = _fit_entry(value, kind)
    problems.extend(_misfit_problem(misfit, place) for misfit in misfits)
    return entry, problems


def _load_huge_value(data: bytes) -> LenientValue:
    """Decode a huge value strictly: the lenient decoder would hold it in memory three times."""
    try:
        _validate_object(data)  # creates no values, so failing is cheap
        return LenientValue(msgspec.json.decode(data), ())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


class _AnyObject(msgspec.Struct):
    """Any object; its fields are skipped."""


_validate_object = msgspec.json.Decoder(_AnyObject).decode


def _fit_entry(value: dict[str, Any], kind: Any) -> tuple[Entry, list[Misfit]]:
    if not isinstance(kind, str) or kind not in KINDS:
        # Entries of unknown kinds still get the fields that every entry has.
        common, misfits = fit({key: value[key] for key in _ENVELOPE_KEYS if key in value}, Entry)
        envelope = msgspec.structs.asdict(common)
        tag = kind if isinstance(kind, str) else "untyped"
        return OtherEntry(**envelope, tag=tag), misfits
    entry, misfits = fit(value, KINDS[kind])
    return entry, misfits


def _misfit_problem(misfit: Misfit, place: Place) -> Problem:
    return Problem(ProblemKind.WRONG_TYPE, place.within(misfit.json_path), misfit.message)


def _describe_json_type(value: Any) -> str:
    words = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "an array",
    }
    return words[type(value)]


_ENVELOPE_KEYS = ("uuid", "sessionId", "timestamp")


def entries(path: str | Path, *, offset: int = 0, line: int = 1) -> Iterator[Entry]:
    """Yield every entry of a transcript, in file order, with a bounded amount of memory.

    No line is rejected or skipped: `b"".join(entry.raw for entry in entries(path))` is the file. Lines that are not
    understood become an `OtherEntry`. An entry's `problems` say what is wrong with its line.

    Args:
        path: the transcript.
        offset: where to start, in bytes. It must be the start of a line.
        line: the number of that line.

    Raises:
        NotFound: the file does not exist.
        Unreadable: the file cannot be read.
    """
    return TranscriptReader(str(path)).entries(path, offset=offset, number=line)


class EntryRun(Struct, gc=False):
    """A run of lines, or a piece of a line that is too long to decode, with its entries.

    `is_exact` says that each line is one entry without problems. `offset` and `number` are those of the first line.
    """

    entries: list[Any]
    lines: list[bytes]
    offset: int
    number: int
    is_exact: bool
    is_piece: bool = False


def entry_runs(path: str | Path, *, offset: int = 0, line: int = 1) -> Iterator[EntryRun]:
    """Yield the same entries as `entries`, in runs of lines that were decoded together, with the lines' bytes."""
    return TranscriptReader(str(path)).runs(path, offset=offset, number=line)


def load_entries(path: str | Path) -> tuple[Entry, ...]:
    """Return the same entries as `entries`, for callers that keep all of them.

    Most lines repeat the session's id, directory, version and branch: equal values become one object, which saves about
    300 bytes per entry.
    """
    loaded: list[Entry] = []
    shared: dict[str | None, str | None] = {}
    for run in entry_runs(path):
        rows = [entry for entry in run.entries if isinstance(entry, ChainEntry)]
        for name in _REPEATED_FIELDS:
            values = list(map(attrgetter(name), rows))
            deque(map(force_setattr, rows, repeat(name), map(shared.setdefault, values, values)), maxlen=0)
        loaded += run.entries
    return tuple(loaded)


class TranscriptReader:
    """Reads one transcript. `decode` replaces the decoder for runs of lines, as `doctor` does."""

    def __init__(self, transcript: str, decode: DecodeLines = decode_lines) -> None:
        self._transcript = transcript
        self._decode = decode

    def entries(self, path: str | Path, *, offset: int = 0, number: int = 1) -> Iterator[Entry]:
        """Yield every entry from `offset` on."""
        for run in self.runs(path, offset=offset, number=number):
            yield from run.entries

    def runs(self, path: str | Path, *, offset: int = 0, number: int = 1) -> Iterator[EntryRun]:
        """Yield the same in runs of lines that were decoded together."""
        transcript, decode = self._transcript, self._decode
        for chunk in read_chunks(path, offset=offset):
            lines = chunk.lines
            entries = None if chunk.is_piece else decode(lines)
            is_exact = entries is not None
            if entries is None:
                entries = list(self.decode_line_by_line(chunk, number))
            else:
                # Give each entry its line, without a Python loop.
                offsets = accumulate(map(len, lines), initial=chunk.offset)
                placed = map(Line, repeat(transcript), count(number), offsets, lines)
                deque(map(force_setattr, entries, repeat("line"), placed), maxlen=0)
            yield EntryRun(entries, lines, chunk.offset, number, is_exact, chunk.is_piece)
            number += len(lines) if is_exact else sum(line.endswith(b"\n") for line in lines)

    def decode_line_by_line(self, chunk: Chunk, number: int) -> Iterator[Entry]:
        """Yield the entries of a chunk in which the fast decoder rejected a line."""
        if chunk.is_piece:
            yield self._make_oversized_entry(chunk, number)
            return
        offset = chunk.offset
        for raw in chunk.lines:
            yield from self._decode_line(raw, number, offset)
            number += 1
            offset += len(raw)

    def _decode_line(self, raw: bytes, number: int, offset: int) -> Iterator[Entry]:
        """Yield the entries of a line: exactly one, unless it is damaged."""
        place = Place(self._transcript, number, offset, len(raw))
        data = strip_line(raw)
        start = raw.find(data[:64])
        before, after = raw[:start], raw[start + len(data) :]
        problems: list[Problem] = []
        if BYTE_ORDER_MARK in before or (not data and BYTE_ORDER_MARK in after):
            problems.append(Problem(ProblemKind.BOM, place, "a byte order mark in front of the row"))
        nuls = before.count(0) + after.count(0)
        if not data and not nuls:
            yield self._set_line(OtherEntry(tag="blank"), raw, number, offset, problems)
            return
        if data and nuls:
            problems.append(Problem(ProblemKind.NUL_RUN, place, f"{nuls} NUL bytes around the row"))
        try:
            entry, more = decode_object(data, place)
        except RecursionError:
            yield self._set_line(OtherEntry(tag=_DAMAGED), raw, number, offset, [*problems, _too_deep_problem(place)])
        except ValueError:
            yield from self._recover_line(raw, number, offset, problems)
        else:
            yield self._set_line(entry, raw, number, offset, [*problems, *more])

    def _recover_line(self, raw: bytes, number: int, offset: int, problems: list[Problem]) -> Iterator[Entry]:
        spans = split_damaged_line(raw)
        is_unfinished = not raw.endswith(b"\n")
        is_glued = False
        for span in spans:
            part = raw[span.start : span.end]
            place = Place(self._transcript, number, offset + span.start, len(part))
            if span.lost is not None:
                is_pending = is_unfinished and span is spans[-1] and strip_line(part).startswith(b"{")
                entry, more = _make_lost_entry(span, place, len(part), pending=is_pending)
            else:
                entry, more = _decode_span(part, place)
                if is_glued:
                    more.append(Problem(ProblemKind.GLUED, place, "on one line with the object before it"))
                is_glued = True
            yield self._set_line(entry, part, number, offset + span.start, [*problems, *more])
            problems = []

    def _make_oversized_entry(self, chunk: Chunk, number: int) -> Entry:
        """Return a piece of a line too long to be decoded; the first piece has the problem of the line."""
        raw = chunk.lines[0]
        problems = []
        if chunk.line_length:
            nul = not raw.strip(b"\0\n")
            kind = ProblemKind.NUL_RUN if nul else ProblemKind.TOO_LONG
            why = "NUL bytes: the original content is lost" if nul else "a line too long to be decoded"
            place = Place(self._transcript, number, chunk.offset, chunk.line_length)
            problems = [Problem(kind, place, why, recovered=False, lost=chunk.line_length)]
        return self._set_line(OtherEntry(tag=_DAMAGED), raw, number, chunk.offset, problems)

    def _set_line(self, entry: Entry, raw: bytes, number: int, offset: int, problems: list[Problem]) -> Entry:
        force_setattr(entry, "line", Line(self._transcript, number, offset, raw, tuple(problems)))
        return entry


def _decode_span(part: bytes, place: Place) -> tuple[Entry, list[Problem]]:
    try:
        return decode_object(strip_line(part), place)
    except RecursionError:  # `split_damaged_line` decoded it with a few stack frames fewer
        return OtherEntry(tag=_DAMAGED), [_too_deep_problem(place)]


def _too_deep_problem(place: Place) -> Problem:
    why = "nested too deeply to be read"
    return Problem(ProblemKind.TOO_DEEP, place, why, recovered=False, lost=place.length)


def _make_lost_entry(span: Span, place: Place, size: int, *, pending: bool) -> tuple[Entry, list[Problem]]:
    if pending:
        why = "the last line is not finished: normal while the session runs, otherwise the result of a crash"
        return OtherEntry(tag="pending"), [Problem(ProblemKind.TORN_TAIL, place, why, recovered=False)]
    kind = span.lost or ProblemKind.FOREIGN
    return OtherEntry(tag=_DAMAGED), [Problem(kind, place, span.why, recovered=False, lost=size)]
