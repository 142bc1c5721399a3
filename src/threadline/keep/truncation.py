"""Find what truncated transcripts lost, and put them together again from earlier versions.

Claude Code only appends to transcripts, so a version that is a prefix of an earlier one was cut off. Only lost ends
count: if an entry is missing and a later one is present, someone edited the transcript on purpose.
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
from threadline.keep.catalogue import Catalogue, FileKey, PieceList, Span, Version
from threadline.keep.sessions import KeptSession, is_session_transcript

_MAX_VERSIONS = 100
"""How many versions of one transcript are looked at for what is lost: one that is rewritten at each run has no end."""


_MAX_BYTES = 1024 * 1024 * 1024
_MAX_LINES = 2_000_000
"""More bytes and lines than this no transcript has."""


class LostPart(Struct, frozen=True):
    """Lines of an earlier version that the one which is there lacks; in that one they belong behind so many bytes.

    `marks` are the ids of the first and the last of them: where one is found again, they came back.
    """

    span: Span
    behind: int
    marks: tuple[str, str]


class _Line(Struct, frozen=True):
    """A whole line: where it lies, what tells it from others, and whether that is an id that Claude Code gave it.

    One that `is_strange` is a value that Claude Code does not write; a crash leaves no values at all.
    """

    start: int
    stop: int
    mark: str
    is_named: bool = False
    is_strange: bool = False


class _LineId(Struct):
    uuid: Any = None
    type: Any = None


_decode = msgspec.json.Decoder(_LineId).decode


def find_lost_parts(catalogue: Catalogue, versions: Sequence[Version], there: Version) -> tuple[LostPart, ...]:
    """What one version of a transcript lacks of earlier ones because it was cut off, oldest first; each line once.

    Only ends count: where an entry is missing and one behind it is there, somebody edited the transcript, which was
    their will. An entry that is there with other words is there.
    """
    earlier = list(_abandoned_versions(catalogue, versions, there)) if is_session_transcript(there.path) else []
    if not earlier:
        return ()
    try:
        lines = list(_read_lines(catalogue, there))
    except Unreadable:
        return ()
    if lines and all(line.is_strange for line in lines):
        return ()  # it is no transcript any more: somebody rewrote it
    found: list[LostPart] = []
    known = {line.mark for line in lines}
    for version in reversed(earlier):
        try:
            one = _find_lost_end(version, list(_read_lines(catalogue, version)), known, lines)
        except Unreadable:
            continue
        if one is not None:
            found.append(one)
    return tuple(reversed(found))


def join_lost_parts(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """A transcript with what it lost, where that stood, and what it was gone on with behind it."""
    there = untruncated_version(catalogue, versions)
    spans: list[Span] = []
    at = 0
    for lost_part in sorted(find_lost_parts(catalogue, versions, there), key=lambda lost_part: lost_part.behind):
        spans += (Span(there, at, lost_part.behind), lost_part.span)
        at = lost_part.behind
    if not spans:
        return there
    spans = [span for span in (*spans, Span(there, at, there.size)) if span.start < span.stop]
    return replace(there, size=sum(span.stop - span.start for span in spans), spans=tuple(spans))


def complete_session(catalogue: Catalogue, session: KeptSession) -> KeptSession:
    """A session whose transcripts are whole, as far as the keep has them so."""
    files = tuple(join_lost_parts(catalogue, catalogue.versions[file_key(file)]) for file in session.files)
    return replace(session, files=files)


def _abandoned_versions(catalogue: Catalogue, versions: Sequence[Version], there: Version) -> Iterator[Version]:
    """The versions that the one after them does not go on from, oldest first."""
    if len(versions) == 1:
        return
    left = [
        one
        for one, after in pairwise(versions)
        if one.size and one.pieces != there.pieces and not _continues(catalogue, after, one)
    ]
    sizes = accumulate(one.size for one in reversed(left))
    few = [one for one, read in zip(reversed(left[-_MAX_VERSIONS:]), sizes, strict=False) if read <= 2 * _MAX_BYTES]
    yield from reversed(few)


def _continues(catalogue: Catalogue, long: Version, short: Version) -> bool:
    """Whether a version begins with another: most say so, others are made of the same pieces, or are compared."""
    before: PieceList | None = long.pieces
    while before is not None:
        if before == short.pieces:
            return True
        before = before.before
    if long.size < short.size:
        return False
    alike = zip(short.pieces, long.pieces, strict=False)
    return all(one == other for one, other in alike) or starts_with(catalogue, long, short)


def _find_lost_end(version: Version, lines: list[_Line], known: set[str], there: list[_Line]) -> LostPart | None:
    """The end of a version that is lost; its lines are known from then on."""
    first = next((number for number, line in enumerate(lines) if line.is_named and line.mark not in known), None)
    if first is None or any(line.is_named and line.mark in known for line in lines[first:]):
        return None
    first, behind = _split_at_loss(lines[:first], known, there)
    marks = [line.mark for line in lines[first:] if line.is_named]
    known.update(line.mark for line in lines[first:])
    return LostPart(Span(version, lines[first].start, lines[-1].stop), behind, (marks[0], marks[-1]))


def _split_at_loss(before: list[_Line], known: set[str], there: list[_Line]) -> tuple[int, int]:
    """Of lines up to the first entry that is lost: how many are there still, and where those end.

    What stands behind the last entry that is there may belong to what is lost: titles, files, modes. It is there as
    far as the same follows.
    """
    places = {line.mark: number for number, line in enumerate(there) if line.is_named}
    last = max((number for number, line in enumerate(before) if line.is_named), default=-1)
    is_there = last < 0 or before[last].mark in places  # or only in a later version, which lost it, too
    at = max((places[line.mark] + 1 for line in before if line.mark in places), default=0)
    first = last + 1
    while first < len(before) and (
        (at < len(there) and there[at].mark == before[first].mark) if is_there else before[first].mark in known
    ):
        first, at = first + 1, at + is_there
    return first, there[at - 1].stop if at else 0


def _read_lines(catalogue: Catalogue, version: Version) -> Iterator[_Line]:
    """The whole lines of a version, but for empty ones.

    Raises:
        Unreadable: it cannot be read, or is none that Claude Code wrote: a merged keep may tell of anything.
    """
    if version.size > _MAX_BYTES:
        raise Unreadable(f"What was kept of {version.path!r} is too large to be looked through.")
    held: list[bytes] = []
    at = many = 0
    for data in catalogue.data(version):
        head, *rest = data.split(b"\n")
        held.append(head)
        for part in rest:
            line = b"".join(held)
            if line:
                yield _parse_line(line, at)
            at += len(line) + 1
            held = [part]
        many += len(rest)
        if many > _MAX_LINES:
            raise Unreadable(f"What was kept of {version.path!r} has too many lines to be looked through.")


def _parse_line(line: bytes, at: int) -> _Line:
    end = at + len(line) + 1
    try:
        told = _decode(line)
    except msgspec.ValidationError:
        return _Line(at, end, blake2b(line).hexdigest(), is_strange=True)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Line(at, end, blake2b(line).hexdigest())
    if isinstance(told.uuid, str) and told.uuid:
        return _Line(at, end, told.uuid, is_named=True)
    return _Line(at, end, blake2b(line).hexdigest(), is_strange=not isinstance(told.type, str))


def untruncated_version(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """The version of a file that is given back: the newest, unless that is only how a longer one of them begins."""
    newest = versions[-1]
    if not is_session_transcript(newest.path):
        return newest
    longer = sorted(
        (version for version in versions if version.size > newest.size),
        key=lambda version: (-version.size, -version.run),
    )
    found = next((version for version in longer if starts_with(catalogue, version, newest)), newest)
    return replace(found, gone=newest.gone)


def newest_version(catalogue: Catalogue, version: Version) -> Version:
    """The newest version of the same file."""
    return catalogue.versions[file_key(version)][-1]


def longest_version(catalogue: Catalogue, version: Version) -> Version:
    """The longest version of the same file."""
    return max(catalogue.versions[file_key(version)], key=lambda one: (one.size, one.run))


def file_key(version: Version) -> FileKey:
    """Which file it is a version of."""
    return version.machine, version.home, version.path


def starts_with(catalogue: Catalogue, long: Version, short: Version) -> bool:
    """Whether a version begins with all of another; what cannot be read does not."""
    try:
        rest = _ByteStream(catalogue.data(long))
        return all(rest.next(len(data)) == data for data in catalogue.data(short))
    except Unreadable:
        return False


class _ByteStream:
    """Pieces as one row of bytes: two versions may be cut at other places."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def next(self, many: int) -> bytes:
        """The next so many bytes, or those that are left."""
        while len(self._held) < many and (more := next(self._pieces, None)) is not None:
            self._held += more
        taken, self._held = self._held[:many], self._held[many:]
        return taken
