"""Find what truncated transcripts lost, and reassemble them from earlier versions.

Claude Code only appends to transcripts, so a version that is a prefix of an earlier one was cut off. Only lost ends
count: if an entry is missing and a later one is present, someone edited the transcript on purpose. An entry that is
present with other words is present.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, PieceList, Span, Version
from threadline.keep.sessions import KeptSession, is_session_transcript

_MAX_VERSIONS = 100
"""How many versions of one transcript are compared: a file that is rewritten at each run has very many."""
_MAX_BYTES = 1024 * 1024 * 1024
_MAX_LINES = 2_000_000
"""No transcript is larger."""


class LostPart(Struct, frozen=True):
    """Lines of an earlier version that a later one lacks; they belong at byte `offset` of the later one.

    `marks` are the ids of the first and the last line: if one is in the file again, they came back.
    """

    span: Span
    offset: int
    marks: tuple[str, str]


class _Line(Struct, frozen=True):
    """A complete line: its position, a mark that identifies it, and whether that is an id from Claude Code.

    A line that `is_foreign` is a JSON value that Claude Code does not write. (A crash leaves no JSON at all.)
    """

    start: int
    stop: int
    mark: str
    has_id: bool = False
    is_foreign: bool = False


class _LineId(Struct):
    uuid: Any = None
    type: Any = None


_decode = msgspec.json.Decoder(_LineId).decode


def find_lost_parts(catalogue: Catalogue, versions: Sequence[Version], current: Version) -> tuple[LostPart, ...]:
    """What a version of a transcript lacks because it was truncated, oldest part first; each line once."""
    earlier = list(_abandoned_versions(catalogue, versions, current)) if is_session_transcript(current.path) else []
    if not earlier:
        return ()
    try:
        lines = list(_read_lines(catalogue, current))
    except Unreadable:
        return ()
    if lines and all(line.is_foreign for line in lines):
        return ()  # somebody replaced the transcript with something else
    parts: list[LostPart] = []
    marks = {line.mark for line in lines}
    for version in reversed(earlier):
        try:
            part = _find_lost_end(version, list(_read_lines(catalogue, version)), marks, lines)
        except Unreadable:
            continue
        if part is not None:
            parts.append(part)
    return tuple(reversed(parts))


def join_lost_parts(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """A transcript with the parts it lost, each where it was, and with what was written after the truncation."""
    current = untruncated_version(catalogue, versions)
    spans: list[Span] = []
    at = 0
    for part in sorted(find_lost_parts(catalogue, versions, current), key=lambda part: part.offset):
        spans += (Span(current, at, part.offset), part.span)
        at = part.offset
    if not spans:
        return current
    spans = [span for span in (*spans, Span(current, at, current.size)) if span.start < span.stop]
    return replace(current, size=sum(span.stop - span.start for span in spans), spans=tuple(spans))


def complete_session(catalogue: Catalogue, session: KeptSession) -> KeptSession:
    """A session with its transcripts reassembled as far as possible."""
    files = tuple(join_lost_parts(catalogue, catalogue.versions[file.key]) for file in session.files)
    return replace(session, files=files)


def _abandoned_versions(catalogue: Catalogue, versions: Sequence[Version], current: Version) -> Iterator[Version]:
    """The versions that the next version does not continue, oldest first."""
    if len(versions) == 1:
        return
    abandoned = [
        version
        for version, after in pairwise(versions)
        if version.size and version.pieces != current.pieces and not _continues(catalogue, after, version)
    ]
    newest_first = abandoned[: -_MAX_VERSIONS - 1 : -1]
    sizes = accumulate(version.size for version in newest_first)
    selected = [version for version, size in zip(newest_first, sizes, strict=True) if size <= 2 * _MAX_BYTES]
    yield from reversed(selected)


def _continues(catalogue: Catalogue, long: Version, short: Version) -> bool:
    """Whether a version starts with another: as most record themselves, or by their pieces, or by their bytes."""
    pieces: PieceList | None = long.pieces
    while pieces is not None:
        if pieces == short.pieces:
            return True
        pieces = pieces.before
    if long.size < short.size:
        return False
    pairs = zip(short.pieces, long.pieces, strict=False)
    return all(hash_ == other for hash_, other in pairs) or starts_with(catalogue, long, short)


def _find_lost_end(version: Version, lines: list[_Line], marks: set[str], current: list[_Line]) -> LostPart | None:
    """The lost end of a version, if it has one. The marks of its lines are added to `marks`."""
    first = next((number for number, line in enumerate(lines) if line.has_id and line.mark not in marks), None)
    if first is None or any(line.has_id and line.mark in marks for line in lines[first:]):
        return None
    first, offset = _split_at_loss(lines[:first], marks, current)
    ids = [line.mark for line in lines[first:] if line.has_id]
    marks.update(line.mark for line in lines[first:])
    return LostPart(Span(version, lines[first].start, lines[-1].stop), offset, (ids[0], ids[-1]))


def _split_at_loss(before: list[_Line], marks: set[str], current: list[_Line]) -> tuple[int, int]:
    """Of the lines before the first lost entry: how many still exist, and the offset at which those end.

    Lines after the last existing entry (titles, files, modes) may belong to the lost part. They exist as far as the
    current version continues in the same way.
    """
    positions = {line.mark: number for number, line in enumerate(current) if line.has_id}
    last = max((number for number, line in enumerate(before) if line.has_id), default=-1)
    is_present = last < 0 or before[last].mark in positions  # or only in a later version, which was truncated, too
    at = max((positions[line.mark] + 1 for line in before if line.mark in positions), default=0)
    first = last + 1
    while first < len(before) and (
        (at < len(current) and current[at].mark == before[first].mark) if is_present else before[first].mark in marks
    ):
        first, at = first + 1, at + is_present
    return first, current[at - 1].stop if at else 0


def _read_lines(catalogue: Catalogue, version: Version) -> Iterator[_Line]:
    """The complete, non-empty lines of a version.

    Raises:
        Unreadable: it cannot be read, or is too large: a merged keep may contain anything.
    """
    if version.size > _MAX_BYTES:
        raise Unreadable(f"{version.path!r} is too large for a transcript.")
    parts: list[bytes] = []
    at = count = 0
    for data in catalogue.data(version):
        head, *rest = data.split(b"\n")
        parts.append(head)
        for part in rest:
            line = b"".join(parts)
            if line:
                yield _parse_line(line, at)
            at += len(line) + 1
            parts = [part]
        count += len(rest)
        if count > _MAX_LINES:
            raise Unreadable(f"{version.path!r} has too many lines for a transcript.")


def _parse_line(line: bytes, at: int) -> _Line:
    end = at + len(line) + 1
    try:
        entry = _decode(line)
    except msgspec.ValidationError:
        return _Line(at, end, blake2b(line).hexdigest(), is_foreign=True)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Line(at, end, blake2b(line).hexdigest())
    if isinstance(entry.uuid, str) and entry.uuid:
        return _Line(at, end, entry.uuid, has_id=True)
    return _Line(at, end, blake2b(line).hexdigest(), is_foreign=not isinstance(entry.type, str))


def untruncated_version(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """The newest version of a file, or a longer one that starts with it: then the newest was truncated."""
    newest = versions[-1]
    if not is_session_transcript(newest.path):
        return newest
    longer = sorted(
        (version for version in versions if version.size > newest.size),
        key=lambda version: (-version.size, -version.run),
    )
    version = next((version for version in longer if starts_with(catalogue, version, newest)), newest)
    return replace(version, gone=newest.gone)


def newest_version(catalogue: Catalogue, version: Version) -> Version:
    """The newest version of the same file."""
    return catalogue.versions[version.key][-1]


def longest_version(catalogue: Catalogue, version: Version) -> Version:
    """The longest version of the same file."""
    return max(catalogue.versions[version.key], key=lambda version: (version.size, version.run))


def starts_with(catalogue: Catalogue, long: Version, short: Version) -> bool:
    """Whether a version starts with all of another. An unreadable version does not."""
    try:
        stream = _ByteStream(catalogue.data(long))
        return all(stream.read(len(data)) == data for data in catalogue.data(short))
    except Unreadable:
        return False


class _ByteStream:
    """Reads pieces as one stream: two versions may be cut into pieces at different places."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = b""

    def read(self, size: int) -> bytes:
        """The next bytes, or those that are left."""
        while len(self._buffer) < size and (data := next(self._pieces, None)) is not None:
            self._buffer += data
        result, self._buffer = self._buffer[:size], self._buffer[size:]
        return result
