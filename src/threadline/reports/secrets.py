"""Scan transcripts and side files for secrets; report kind and place, never the secret."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from threadline.errors import Error
from threadline.model.homes import Found, SideFile, SideFileKind, Transcript, TranscriptKind
from threadline.model.places import Place, Problem, ProblemKind, SessionId
from threadline.model.times import parse_timestamp
from threadline.parallel import map_transcripts
from threadline.parse import read_chunks
from threadline.redact import (
    PERSONAL_KINDS,
    Leaf,
    Level,
    Match,
    RecordScanner,
    RecordTexts,
    Span,
    format_vocabulary,
    merge_overlapping,
)
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
    """What to search for: only `kinds`, only since a time; with `personal`, also addresses, names and homes.

    With the level `strict`, also what only that level removes.
    """

    kinds: tuple[str, ...] = ()
    personal: bool = False
    since: datetime | None = None
    level: Level = Level.STANDARD


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
    """The result for each file as it is done. Uses all cores if that pays."""
    scan = partial(scan_file, filter_=filter_ or SecretFilter())
    return (result for _, result in map_transcripts(scan, transcripts, jobs=jobs, progress=progress))


def scan_file(transcript: Transcript, *, filter_: SecretFilter) -> ScanResult:
    """Scan one file. If it cannot be read, the result has a problem."""
    if filter_.since is not None and 0 < transcript.mtime_ns < filter_.since.timestamp() * 1e9:
        return ScanResult()
    path = str(transcript.path)
    exposures: list[Exposure] = []
    try:
        line = 1
        scanner = _FileScanner(path, transcript.session, filter_)
        for chunk in read_chunks(transcript.path):
            exposures += scanner.scan_lines(chunk.lines, line)
            line += 0 if chunk.is_piece and not chunk.lines[-1].endswith(b"\n") else len(chunk.lines)
    except (Error, OSError) as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(path), str(error), recovered=False)
        return ScanResult(tuple(exposures), (problem,))
    return ScanResult(tuple(exposures))


def _ignore_clean(_texts: RecordTexts) -> None:
    """A scan does not need to know what is clean."""


class _FileScanner:
    """Scans the lines of one file in order, since a line may reveal what a later line is."""

    def __init__(self, path: str, session: SessionId | None, filter_: SecretFilter) -> None:
        self._path = path
        self._session = session
        self._filter = filter_
        self._is_strict = filter_.level is Level.STRICT
        self._scanner = RecordScanner(
            format_vocabulary(), personal=filter_.personal or self._is_strict, strict=self._is_strict
        )

    def scan_lines(self, lines: Sequence[bytes], first_line: int) -> Iterator[Exposure]:
        """Scan lines that follow each other. Lines that are not JSON are scanned together, as one text."""
        text_lines: list[tuple[int, str]] = []
        records: list[tuple[int, Any]] = []
        for number, line in enumerate(lines, first_line):
            value = _decode_line(line)
            if value is None:
                text_lines.append((number, line.decode(errors="replace")))
            else:
                records.append((number, value))
        for (number, value), matches in self._scanner.find_all(records, itemgetter(1), _ignore_clean):
            if matches:
                yield from self._report_record(value, number, matches)
        for _block, group in groupby(enumerate(text_lines), lambda item: item[1][0] - item[0]):
            yield from self._scan_text([line for _at, line in group])

    def _report_record(self, value: Any, number: int, matches: list[Match]) -> Iterator[Exposure]:
        timestamp = parse_timestamp(value.get("timestamp")) if isinstance(value, dict) else None
        if self._filter.since is not None and timestamp is not None and timestamp < self._filter.since:
            return
        session_id = value.get("sessionId") if isinstance(value, dict) else None
        owner = self._session or (SessionId(session_id) if isinstance(session_id, str) else None)
        by_text: dict[Leaf, list[Span]] = {}
        for match in matches:
            by_text.setdefault(match.leaf, []).append(match.span)
        findings = [
            (leaf.json_path, span.kind, span.value or leaf.text[start:end])
            for leaf, spans in by_text.items()
            for start, end, span in merge_overlapping(spans)
        ]
        yield from self._count(findings, Place(self._path, number), owner, timestamp)

    def _scan_text(self, lines: list[tuple[int, str]]) -> Iterator[Exposure]:
        if not lines:
            return
        text = "".join(line for _number, line in lines)
        ends = list(accumulate(len(line) for _number, line in lines))
        by_line: dict[int, list[tuple[str, str, str]]] = {}
        spans = [match.span for match in self._scanner.find_in_text(text)]
        for start, end, span in merge_overlapping(spans):
            number = lines[bisect_right(ends, start)][0]
            by_line.setdefault(number, []).append(("", span.kind, span.value or text[start:end]))
        for number, findings in by_line.items():
            yield from self._count(findings, Place(self._path, number), self._session, None)

    def _count(
        self, findings: list[tuple[str, str, str]], place: Place, owner: SessionId | None, timestamp: datetime | None
    ) -> Iterator[Exposure]:
        counts: Counter[tuple[str, str]] = Counter()
        marks: dict[tuple[str, str], set[bytes]] = {}
        for path, kind, secret in findings:
            is_listed = kind in self._filter.kinds if self._filter.kinds else self._is_wanted_kind(kind)
            if is_listed:
                counts[kind, path] += 1
                digest = blake2b(secret.encode(errors="replace"), digest_size=8, key=_MARK_KEY).digest()
                marks.setdefault((kind, path), set()).add(digest)
        for (kind, path), count in counts.items():
            yield Exposure(kind, place.within(path), count, owner, _utc(timestamp), frozenset(marks[kind, path]))

    def _is_wanted_kind(self, kind: str) -> bool:
        return self._filter.personal or self._is_strict or kind not in PERSONAL_KINDS


def _decode_line(line: bytes) -> Any:
    """Return the line's value if it is an object or a list; None for a line of text."""
    if line.lstrip()[:1] in {b"{", b"["}:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(line)
        try:
            return lenient_loads(line).value
        except (ValueError, RecursionError):
            return None
    return None


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment is not None else None
