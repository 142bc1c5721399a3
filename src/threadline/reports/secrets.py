"""Scan transcripts and side files for secrets; report kind and place, never the secret."""

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
from threadline.model.homes import Found, SideFile, SideFileKind, Transcript, TranscriptKind
from threadline.model.places import Place, Problem, ProblemKind, SessionId
from threadline.model.times import parse_timestamp
from threadline.parallel import map_transcripts
from threadline.parse import Chunk, read_chunks
from threadline.redact import find_in_value, find_spans_in_bytes, merge_overlapping
from threadline.shape import lenient_loads

# Pictures are no text; the others are never opened, or hold nothing that was said.
_SKIPPED_KINDS = frozenset((SideFileKind.SECRET, SideFileKind.SETTINGS, SideFileKind.CONFIG, SideFileKind.IMAGE))
# Two secrets are the same if their marks are; without this key, which lives as long as the run, a mark says nothing.
_MARK_KEY = os.urandom(32)


class Exposure(Struct, frozen=True):
    """Secrets of one kind at one place, and how many. `marks` tell one from another, and nothing else."""

    kind: str
    place: Place
    count: int
    session: SessionId | None = None
    timestamp: datetime | None = None
    marks: frozenset[bytes] = frozenset()


class SecretFilter(Struct, frozen=True):
    """What to look for: with `personal` also addresses, names and homes; only of `kinds`, only what is not older."""

    kinds: tuple[str, ...] = ()
    personal: bool = False
    since: datetime | None = None


class ScanResult(Struct, frozen=True):
    """What one file holds: exposures in the order of its lines, and what could not be read."""

    exposures: tuple[Exposure, ...] = ()
    problems: tuple[Problem, ...] = ()


def scannable_side_files(side_files: Iterable[SideFile]) -> list[Transcript]:
    """The side files that hold text, as what can be scanned."""
    return [
        Transcript(
            side_file.path, side_file.home, "", TranscriptKind.OTHER, side_file.size, 0, session=side_file.session
        )
        for side_file in side_files
        if side_file.kind not in _SKIPPED_KINDS and side_file.size
    ]


def files_to_scan(found: Iterable[Found]) -> list[Transcript]:
    """All that is scanned, each file once: two paths may lead to the same."""
    every = {
        os.path.realpath(transcript.path): transcript
        for some in found
        for transcript in (*some.transcripts, *scannable_side_files(some.side_files))
    }
    return [one for one in every.values() if one.size]


def scan_files(
    transcripts: Iterable[Transcript],
    wanted: SecretFilter | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ScanResult]:
    """What each file holds, as the files are done, on all cores where that pays."""
    for transcript, scanned in map_transcripts(
        partial(scan_file, wanted=wanted or SecretFilter()), transcripts, jobs=jobs
    ):
        if progress is not None:
            progress(transcript.size)
        yield scanned


def scan_file(transcript: Transcript, *, wanted: SecretFilter) -> ScanResult:
    """What one file holds. Refusals of the machine become a problem."""
    if wanted.since is not None and 0 < transcript.mtime_ns < wanted.since.timestamp() * 1e9:
        return ScanResult()
    path = str(transcript.path)
    found: list[Exposure] = []
    try:
        line = 1
        for chunk in read_chunks(transcript.path):
            found += _scan_chunk(chunk, Place(path, line), transcript.session, wanted)
            line += 0 if chunk.piece and not chunk.lines[-1].endswith(b"\n") else len(chunk.lines)
    except (Error, OSError) as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(path), str(error), recovered=False)
        return ScanResult(tuple(found), (problem,))
    return ScanResult(tuple(found))


def _scan_chunk(chunk: Chunk, first: Place, session: SessionId | None, wanted: SecretFilter) -> Iterator[Exposure]:
    """Looks at the bytes of all lines at once; only lines that hold something are decoded, to say in which field."""
    block = b"".join(chunk.lines) if len(chunk.lines) > 1 else chunk.lines[0]
    spans = merge_overlapping(find_spans_in_bytes(block, personal=wanted.personal))
    if not spans:
        return
    ends = list(accumulate(map(len, chunk.lines)))
    by_line: dict[int, list[tuple[str, str, bytes]]] = {}
    for start, end, span in spans:
        by_line.setdefault(bisect_right(ends, start), []).append(("", span.kind, block[start:end]))
    for at, raw in by_line.items():
        yield from _scan_line(chunk.lines[at], Place(first.transcript, first.line + at), raw, session, wanted)


def _scan_line(
    line: bytes, place: Place, raw: list[tuple[str, str, bytes]], session: SessionId | None, wanted: SecretFilter
) -> Iterator[Exposure]:
    value = _decode_line(line)
    timestamp = parse_timestamp(value.get("timestamp")) if isinstance(value, dict) else None
    if wanted.since is not None and timestamp is not None and timestamp < wanted.since:
        return
    named = value.get("sessionId") if isinstance(value, dict) else None
    counts: Counter[tuple[str, str]] = Counter()
    marks: dict[tuple[str, str], set[bytes]] = {}
    # Across the names and marks of a line's JSON, words stand together that have nothing to do with each other.
    found = raw if value is None else _secrets_in_value(value, personal=wanted.personal)
    for path, kind, secret in found:
        if not wanted.kinds or kind in wanted.kinds:
            counts[kind, path] += 1
            marks.setdefault((kind, path), set()).add(blake2b(secret, digest_size=8, key=_MARK_KEY).digest())
    for (kind, path), count in counts.items():
        where = place.within(path)
        owner = session or (SessionId(named) if isinstance(named, str) else None)
        yield Exposure(kind, where, count, owner, _utc(timestamp), frozenset(marks[kind, path]))


def _secrets_in_value(value: Any, *, personal: bool) -> list[tuple[str, str, bytes]]:
    return [(path, kind, text.encode(errors="replace")) for path, kind, text in find_in_value(value, personal=personal)]


def _decode_line(line: bytes) -> Any:
    """The line's value where it is an object or a list; a line of text is a text."""
    if line.lstrip()[:1] in {b"{", b"["}:
        try:
            return lenient_loads(line).value
        except (ValueError, RecursionError):
            return None
    return None


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment is not None else None
