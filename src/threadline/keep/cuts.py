"""Cuts: what a transcript lost when it was cut off and then gone on with, and all of it put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, Span, Version
from threadline.keep.sessions import KeptSession, is_session_transcript
from threadline.keep.shortened import begins, key_of, whole
from threadline.keep.versions import Pieces

_MOST = 100
"""How many versions of one transcript are looked at for what is lost: one that is rewritten at each run has no end."""


_LARGEST = 1024 * 1024 * 1024
_LINES = 2_000_000
"""More bytes and lines than this no transcript has."""


class Lost(Struct, frozen=True):
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


class _Named(Struct):
    uuid: Any = None
    type: Any = None


_decode = msgspec.json.Decoder(_Named).decode


def lost(catalogue: Catalogue, versions: Sequence[Version], there: Version) -> tuple[Lost, ...]:
    """What one version of a transcript lacks of earlier ones because it was cut off, oldest first; each line once.

    Only ends count: where an entry is missing and one behind it is there, somebody edited the transcript, which was
    their will. An entry that is there with other words is there.
    """
    earlier = list(_left(catalogue, versions, there)) if is_session_transcript(there.path) else []
    if not earlier:
        return ()
    try:
        lines = list(_lines(catalogue, there))
    except Unreadable:
        return ()
    if lines and all(line.is_strange for line in lines):
        return ()  # it is no transcript any more: somebody rewrote it
    found: list[Lost] = []
    known = {line.mark for line in lines}
    for version in reversed(earlier):
        try:
            one = _end(version, list(_lines(catalogue, version)), known, lines)
        except Unreadable:
            continue
        if one is not None:
            found.append(one)
    return tuple(reversed(found))


def joined(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """A transcript with what it lost, where that stood, and what it was gone on with behind it."""
    there = whole(catalogue, versions)
    spans: list[Span] = []
    at = 0
    for one in sorted(lost(catalogue, versions, there), key=lambda one: one.behind):
        spans += (Span(there, at, one.behind), one.span)
        at = one.behind
    if not spans:
        return there
    spans = [one for one in (*spans, Span(there, at, there.size)) if one.start < one.stop]
    return replace(there, size=sum(one.stop - one.start for one in spans), spans=tuple(spans))


def mended(catalogue: Catalogue, session: KeptSession) -> KeptSession:
    """A session whose transcripts are whole, as far as the keep has them so."""
    files = tuple(joined(catalogue, catalogue.versions[key_of(one)]) for one in session.files)
    return replace(session, files=files)


def _left(catalogue: Catalogue, versions: Sequence[Version], there: Version) -> Iterator[Version]:
    """The versions that the one after them does not go on from, oldest first."""
    if len(versions) == 1:
        return
    left = [
        one
        for one, after in pairwise(versions)
        if one.size and one.pieces != there.pieces and not _goes_on(catalogue, after, one)
    ]
    sizes = accumulate(one.size for one in reversed(left))
    few = [one for one, read in zip(reversed(left[-_MOST:]), sizes, strict=False) if read <= 2 * _LARGEST]
    yield from reversed(few)


def _goes_on(catalogue: Catalogue, long: Version, short: Version) -> bool:
    """Whether a version begins with another: most say so, others are made of the same pieces, or are compared."""
    before: Pieces | None = long.pieces
    while before is not None:
        if before == short.pieces:
            return True
        before = before.before
    if long.size < short.size:
        return False
    alike = zip(short.pieces, long.pieces, strict=False)
    return all(one == other for one, other in alike) or begins(catalogue, long, short)


def _end(version: Version, lines: list[_Line], known: set[str], there: list[_Line]) -> Lost | None:
    """The end of a version that is lost; its lines are known from then on."""
    first = next((number for number, line in enumerate(lines) if line.is_named and line.mark not in known), None)
    if first is None or any(line.is_named and line.mark in known for line in lines[first:]):
        return None
    first, behind = _divide(lines[:first], known, there)
    marks = [line.mark for line in lines[first:] if line.is_named]
    known.update(line.mark for line in lines[first:])
    return Lost(Span(version, lines[first].start, lines[-1].stop), behind, (marks[0], marks[-1]))


def _divide(before: list[_Line], known: set[str], there: list[_Line]) -> tuple[int, int]:
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


def _lines(catalogue: Catalogue, version: Version) -> Iterator[_Line]:
    """The whole lines of a version, but for empty ones.

    Raises:
        Unreadable: it cannot be read, or is none that Claude Code wrote: a merged keep may tell of anything.
    """
    if version.size > _LARGEST:
        raise Unreadable(f"What was kept of {version.path!r} is too large to be looked through.")
    held: list[bytes] = []
    at = many = 0
    for data in catalogue.data(version):
        head, *rest = data.split(b"\n")
        held.append(head)
        for part in rest:
            line = b"".join(held)
            if line:
                yield _line(line, at)
            at += len(line) + 1
            held = [part]
        many += len(rest)
        if many > _LINES:
            raise Unreadable(f"What was kept of {version.path!r} has too many lines to be looked through.")


def _line(line: bytes, at: int) -> _Line:
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
