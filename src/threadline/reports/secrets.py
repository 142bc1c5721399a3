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

# Images are not text. The others are never opened, or contain no conversation.
_SKIPPED_KINDS = frozenset((SideFileKind.SECRET, SideFileKind.SETTINGS, SideFileKind.CONFIG, SideFileKind.IMAGE))
# Equal marks mean equal secrets. Without this key, which exists only during the run, a mark reveals nothing.
_MARK_KEY = os.urandom(32)


class Exposure(Struct, frozen=True):
    """How many secrets of one kind are at one place. `marks` distinguish secrets, and reveal nothing else."""

    kind: str
    place: Place
    count: int
    session: SessionId | None = None
    timestamp: datetime | None = None
    marks: frozenset[bytes] = frozenset()


class SecretFilter(Struct, frozen=True):
    """What to search for: only `kinds`, only since a time; with `personal`, also addresses, names and homes."""

    kinds: tuple[str, ...] = ()
    personal: bool = False
    since: datetime | None = None


class ScanResult(Struct, frozen=True):
    """The exposures in one file, in the order of its lines, and what could not be read."""

    exposures: tuple[Exposure, ...] = ()
    problems: tuple[Problem, ...] = ()


def scannable_side_files(side_files: Iterable[SideFile]) -> list[Transcript]:
    """Return the side files that contain text, as files to scan."""
    return [
        Transcript(
            side_file.path, side_file.home, "", TranscriptKind.OTHER, side_file.size, 0, session=side_file.session
        )
        for side_file in side_files
        if side_file.kind not in _SKIPPED_KINDS and side_file.size
    ]


def files_to_scan(found: Iterable[Found]) -> list[Transcript]:
    """Return all files to scan, each once: two paths may lead to the same."""
    by_path = {
        os.path.realpath(transcript.path): transcript
        for home in found
        for transcript in (*home.transcripts, *scannable_side_files(home.side_files))
    }
    return [file for file in by_path.values() if file.size]


def scan_files(
    transcripts: Iterable[Transcript],
    filter_: SecretFilter | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ScanResult]:
    """Yield the result for each file as it is done. Uses all cores if that pays."""
    for transcript, scanned in map_transcripts(
        partial(scan_file, filter_=filter_ or SecretFilter()), transcripts, jobs=jobs
    ):
        if progress is not None:
            progress(transcript.size)
        yield scanned


def scan_file(transcript: Transcript, *, filter_: SecretFilter) -> ScanResult:
    """Scan one file. If it cannot be read, the result has a problem."""
    if filter_.since is not None and 0 < transcript.mtime_ns < filter_.since.timestamp() * 1e9:
        return ScanResult()
    path = str(transcript.path)
    exposures: list[Exposure] = []
    try:
        line = 1
        for chunk in read_chunks(transcript.path):
            exposures += _scan_chunk(chunk, Place(path, line), transcript.session, filter_)
            line += 0 if chunk.is_piece and not chunk.lines[-1].endswith(b"\n") else len(chunk.lines)
    except (Error, OSError) as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(path), str(error), recovered=False)
        return ScanResult(tuple(exposures), (problem,))
    return ScanResult(tuple(exposures))


def _scan_chunk(chunk: Chunk, first: Place, session: SessionId | None, filter_: SecretFilter) -> Iterator[Exposure]:
    """Search the bytes of all lines at once. Only lines with a match are decoded, to name the field."""
    block = b"".join(chunk.lines) if len(chunk.lines) > 1 else chunk.lines[0]
    spans = merge_overlapping(find_spans_in_bytes(block, personal=filter_.personal))
    if not spans:
        return
    ends = list(accumulate(map(len, chunk.lines)))
    by_line: dict[int, list[tuple[str, str, bytes]]] = {}
    for start, end, span in spans:
        by_line.setdefault(bisect_right(ends, start), []).append(("", span.kind, block[start:end]))
    for index, matches in by_line.items():
        yield from _scan_line(
            chunk.lines[index], Place(first.transcript, first.line + index), matches, session, filter_
        )


def _scan_line(
    line: bytes, place: Place, raw: list[tuple[str, str, bytes]], session: SessionId | None, filter_: SecretFilter
) -> Iterator[Exposure]:
    value = _decode_line(line)
    timestamp = parse_timestamp(value.get("timestamp")) if isinstance(value, dict) else None
    if filter_.since is not None and timestamp is not None and timestamp < filter_.since:
        return
    session_id = value.get("sessionId") if isinstance(value, dict) else None
    counts: Counter[tuple[str, str]] = Counter()
    marks: dict[tuple[str, str], set[bytes]] = {}
    # In the raw JSON of a line, unrelated values are next to each other: only its decoded values count.
    matches = raw if value is None else _secrets_in_value(value, personal=filter_.personal)
    for path, kind, secret in matches:
        if not filter_.kinds or kind in filter_.kinds:
            counts[kind, path] += 1
            marks.setdefault((kind, path), set()).add(blake2b(secret, digest_size=8, key=_MARK_KEY).digest())
    for (kind, path), count in counts.items():
        where = place.within(path)
        owner = session or (SessionId(session_id) if isinstance(session_id, str) else None)
        yield Exposure(kind, where, count, owner, _utc(timestamp), frozenset(marks[kind, path]))


def _secrets_in_value(value: Any, *, personal: bool) -> list[tuple[str, str, bytes]]:
    return [(path, kind, text.encode(errors="replace")) for path, kind, text in find_in_value(value, personal=personal)]


def _decode_line(line: bytes) -> Any:
    """Return the line's value if it is an object or a list; None for a line of text."""
    if line.lstrip()[:1] in {b"{", b"["}:
        try:
            return lenient_loads(line).value
        except (ValueError, RecursionError):
            return None
    return None


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment is not None else None
