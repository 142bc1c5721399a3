"""The scan: where secrets stand in transcripts and the files beside them, by kind and place, never the secrets."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from msgspec import Struct

from threadline.errors import Error
from threadline.model.found import Found, SideFile, SideFileKind, Transcript, TranscriptKind
from threadline.model.ids import SessionId
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.time import parse_timestamp
from threadline.parse.chunks import Chunk, chunks
from threadline.render.redaction.finder import disjoint, spans_of_bytes
from threadline.render.redaction.trees import found_in
from threadline.shape.loads import loads
from threadline.survey.each import each

# Pictures are no text; the others are never opened, or hold nothing that was said.
_NOT_READ = frozenset((SideFileKind.SECRET, SideFileKind.SETTINGS, SideFileKind.CONFIG, SideFileKind.IMAGE))
# Two secrets are the same if their marks are; without this key, which lives as long as the run, a mark says nothing.
_KEY = os.urandom(32)


class Exposure(Struct, frozen=True):
    """Secrets of one kind at one place, and how many. `marks` tell one from another, and nothing else."""

    kind: str
    place: Place
    count: int
    session: SessionId | None = None
    timestamp: datetime | None = None
    marks: frozenset[bytes] = frozenset()


class Wanted(Struct, frozen=True):
    """What to look for: with `personal` also addresses, names and homes; only of `kinds`, only what is not older."""

    kinds: tuple[str, ...] = ()
    personal: bool = False
    since: datetime | None = None


class Scanned(Struct, frozen=True):
    """What one file holds: exposures in the order of its lines, and what could not be read."""

    exposures: tuple[Exposure, ...] = ()
    problems: tuple[Problem, ...] = ()


def readable(side_files: Iterable[SideFile]) -> list[Transcript]:
    """The side files that hold text, as what can be scanned."""
    return [
        Transcript(one.path, one.home, "", TranscriptKind.OTHER, one.size, 0, session=one.session)
        for one in side_files
        if one.kind not in _NOT_READ and one.size
    ]


def files_of(found: Iterable[Found]) -> list[Transcript]:
    """All that is scanned, each file once: two paths may lead to the same."""
    every = {
        os.path.realpath(one.path): one for some in found for one in (*some.transcripts, *readable(some.side_files))
    }
    return [one for one in every.values() if one.size]


def scan(
    transcripts: Iterable[Transcript],
    wanted: Wanted | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Scanned]:
    """What each file holds, as the files are done, on all cores where that pays."""
    for transcript, scanned in each(partial(scan_one, wanted=wanted or Wanted()), transcripts, jobs=jobs):
        if progress is not None:
            progress(transcript.size)
        yield scanned


def scan_one(transcript: Transcript, *, wanted: Wanted) -> Scanned:
    """What one file holds. Refusals of the machine become a problem."""
    if wanted.since is not None and 0 < transcript.mtime_ns < wanted.since.timestamp() * 1e9:
        return Scanned()
    path = str(transcript.path)
    found: list[Exposure] = []
    try:
        line = 1
        for chunk in chunks(transcript.path):
            found += _in_chunk(chunk, Place(path, line), transcript.session, wanted)
            line += 0 if chunk.piece and not chunk.lines[-1].endswith(b"\n") else len(chunk.lines)
    except (Error, OSError) as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(path), str(error), recovered=False)
        return Scanned(tuple(found), (problem,))
    return Scanned(tuple(found))


def _in_chunk(chunk: Chunk, first: Place, session: SessionId | None, wanted: Wanted) -> Iterator[Exposure]:
    """Looks at the bytes of all lines at once; only lines that hold something are decoded, to say in which field."""
    block = b"".join(chunk.lines) if len(chunk.lines) > 1 else chunk.lines[0]
    spans = disjoint(spans_of_bytes(block, personal=wanted.personal))
    if not spans:
        return
    ends = list(accumulate(map(len, chunk.lines)))
    by_line: dict[int, list[tuple[str, str, bytes]]] = {}
    for start, end, span in spans:
        by_line.setdefault(bisect_right(ends, start), []).append(("", span.kind, block[start:end]))
    for at, raw in by_line.items():
        yield from _in_line(chunk.lines[at], Place(first.transcript, first.line + at), raw, session, wanted)


def _in_line(
    line: bytes, place: Place, raw: list[tuple[str, str, bytes]], session: SessionId | None, wanted: Wanted
) -> Iterator[Exposure]:
    value = _decoded(line)
    timestamp = parse_timestamp(value.get("timestamp")) if isinstance(value, dict) else None
    if wanted.since is not None and timestamp is not None and timestamp < wanted.since:
        return
    named = value.get("sessionId") if isinstance(value, dict) else None
    counts: Counter[tuple[str, str]] = Counter()
    marks: dict[tuple[str, str], set[bytes]] = {}
    # Across the names and marks of a line's JSON, words stand together that have nothing to do with each other.
    found = raw if value is None else _in_value(value, personal=wanted.personal)
    for path, kind, secret in found:
        if not wanted.kinds or kind in wanted.kinds:
            counts[kind, path] += 1
            marks.setdefault((kind, path), set()).add(blake2b(secret, digest_size=8, key=_KEY).digest())
    for (kind, path), count in counts.items():
        where = place.within(path)
        owner = session or (SessionId(named) if isinstance(named, str) else None)
        yield Exposure(kind, where, count, owner, _utc(timestamp), frozenset(marks[kind, path]))


def _in_value(value: Any, *, personal: bool) -> list[tuple[str, str, bytes]]:
    return [(path, kind, text.encode(errors="replace")) for path, kind, text in found_in(value, personal=personal)]


def _decoded(line: bytes) -> Any:
    """The line's value where it is an object or a list; a line of text is a text."""
    if line.lstrip()[:1] in {b"{", b"["}:
        try:
            return loads(line).value
        except (ValueError, RecursionError):
            return None
    return None


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment is not None else None
