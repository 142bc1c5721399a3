"""Read everything and report problems, unknown data (drift) and how much was understood."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from threadline.errors import Error
from threadline.files import escape_path
from threadline.home_files import open_transcript
from threadline.json_values import DECODE_ERRORS
from threadline.model.blocks import ToolResultBlock, ToolUseBlock
from threadline.model.entries import (
    REQUIRED,
    SUBTYPES,
    AnyEntry,
    AssistantEntry,
    Entry,
    OtherEntry,
    SystemEntry,
    UserEntry,
)
from threadline.model.homes import Found, SideFile, Transcript, TranscriptKind
from threadline.model.names import version_key
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.results import SIGNATURES, TOOL_RESULTS, ToolResult, result_type
from threadline.parallel import map_transcripts
from threadline.parse import TranscriptReader, make_lines_decoder, read_side_file
from threadline.shape import UnknownPart, find_unknown, strict_type

_MAX_EXAMPLES = 5


class ProblemCount(Struct, frozen=True):
    """How often one kind of problem occurs, how many bytes it lost, and some places."""

    count: int
    recovered: int
    lost: int
    places: tuple[str, ...]


class MissingField(Struct, frozen=True):
    """A required field that entries of one kind lack: since which version it is required, how often, some places."""

    kind: str
    field: str
    since: str | None
    count: int
    places: tuple[str, ...]


class DriftItem(Struct, frozen=True):
    """Something the model does not know: how often it occurs, since which version, how many bytes, and one place."""

    what: str
    name: str
    within: str
    count: int
    bytes: int
    first_version: str | None
    place: str


class UnlistedCount(Struct, frozen=True):
    """How many transcripts are not part of a listed session for one reason, and some of their paths."""

    count: int
    places: tuple[str, ...]


class Examination(Struct, frozen=True):
    """The result of reading transcripts and side files.

    `unlisted` has the transcripts that are not part of a listed session, by reason, if a whole archive was examined.
    """

    transcripts: int = 0
    lines: int = 0
    bytes: int = 0
    entries: int = 0
    round_trip: bool | None = None
    understood_bytes: int = 0
    malformed_bytes: int = 0
    pending_bytes: int = 0
    kinds: dict[str, int] = {}
    versions: dict[str, int] = {}
    side_files: dict[str, int] = {}
    problems: dict[str, ProblemCount] = {}
    missing_fields: tuple[MissingField, ...] = ()
    drift: tuple[DriftItem, ...] = ()
    unlisted: dict[str, UnlistedCount] = {}

    @property
    def understood(self) -> float:
        """The share of bytes in entries, and parts of entries, that the model knows."""
        complete = self.bytes - self.pending_bytes
        return self.understood_bytes / complete if complete else 1.0


def count_unlisted(
    found: Iterable[Found], listed: Collection[Path], owner: Callable[[Transcript], Path | None]
) -> dict[str, UnlistedCount]:
    """Count the transcripts that are not part of a listed session. `owner` returns the main transcript of each."""
    paths: dict[str, list[str]] = {}
    for transcript in (transcript for home in found for transcript in home.transcripts):
        if transcript.path in listed or transcript.kind is TranscriptKind.JOURNAL:
            continue
        if transcript.is_main:
            reason = "the transcript has no conversation of its own" if transcript.size else "the file is empty"
        elif transcript.kind is TranscriptKind.OTHER:
            reason = "the file is not a session's or an agent's transcript"
        elif owner(transcript) not in listed:
            reason = "the transcript of its session is missing or not listed"
        else:
            continue
        paths.setdefault(reason, []).append(escape_path(transcript.path))
    return {
        reason: UnlistedCount(len(group), tuple(sorted(group)[:_MAX_EXAMPLES]))
        for reason, group in sorted(paths.items())
    }


def examine_homes(
    found: Sequence[Found],
    *,
    check: bool = False,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Examination:
    """Read all files of homes, each once: two paths may lead to the same."""
    transcripts = {os.path.realpath(transcript.path): transcript for home in found for transcript in home.transcripts}
    side_files = {os.path.realpath(file.path): file for home in found for file in home.side_files}
    problems = {problem for home in found for problem in home.problems}
    return examine_all(
        transcripts.values(), side_files.values(), check=check, jobs=jobs, progress=progress, problems=problems
    )


def examine_all(
    transcripts: Iterable[Transcript],
    side_files: Iterable[SideFile] = (),
    *,
    check: bool = False,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    problems: Iterable[Problem] = (),
) -> Examination:
    """Read all files. With `check`, compare the entries of every transcript with a second reading of its bytes."""
    findings = _Findings()
    for problem in problems:
        findings.add_problem(problem)
    parts = [findings.examination()]
    examine = partial(examine_transcript, check=check)
    parts += (part for _, part in map_transcripts(examine, transcripts, jobs=jobs, progress=progress))
    parts += [_examine_side_file(side) for side in side_files]
    return _merge_examinations(parts)


def examine_transcript(transcript: Transcript, *, check: bool = False) -> Examination:
    """Examine one transcript. If it cannot be read, the result has a problem."""
    findings = _Findings()
    path = transcript.path
    try:
        if check:
            with os.fdopen(open_transcript(path), "rb") as second:
                _read_entries(path, findings, second)
        else:
            _read_entries(path, findings, None)
    except (Error, OSError) as error:
        findings.add_problem(Problem(ProblemKind.UNREADABLE, Place(str(path)), str(error), recovered=False))
    return findings.examination(transcripts=1)


def _read_entries(path: Path, findings: _Findings, second: BinaryIO | None) -> None:
    finder = DriftFinder()
    is_same = True
    compared = 0
    size = os.fstat(second.fileno()).st_size if second is not None else 0
    for entry in TranscriptReader(str(path), decode_strictly).entries(path):
        findings.add_entry(entry, finder.unknown_items(entry))
        if second is not None and is_same:
            is_same = second.read(len(entry.raw)) == entry.raw
            compared += len(entry.raw)
    if second is not None:
        # A live file may have grown since. Everything that was there at the start must have been read.
        findings.round_trip = is_same and compared >= size
        if not findings.round_trip:
            why = "a second reading returned other bytes: the file changed meanwhile, or threadline has a bug"
            findings.add_problem(Problem(ProblemKind.CHANGED, Place(str(path)), why, recovered=False))


def _examine_side_file(side: SideFile) -> Examination:
    findings = _Findings()
    try:
        reading = read_side_file(side)
    except (Error, OSError) as error:
        findings.add_problem(Problem(ProblemKind.UNREADABLE, Place(str(side.path)), str(error), recovered=False))
    else:
        for problem in reading.problems:
            findings.add_problem(problem)
        for unknown in reading.unknown:
            place = Place(str(side.path), 1, json_path=unknown.json_path)
            findings.add_unknown(UnknownItem("field", unknown.name, unknown.shape, place, 0), None)
    return findings.examination(side_files={str(side.kind): 1})


class _Findings:
    """Collects what is found while reading one file."""

    def __init__(self) -> None:
        self.round_trip: bool | None = None
        self._lines = self._bytes = self._entries = 0
        self._understood = self._malformed = self._pending = 0
        self._kinds: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()
        self._problems: dict[str, ProblemCount] = {}
        self._missing: dict[tuple[str, str], MissingField] = {}
        self._drift: dict[tuple[str, str, str], DriftItem] = {}
        self._last_line = 0
        # Many kinds do not name the version that wrote them: usually the one of the entry before.
        self._last_version: str | None = None

    def add_entry(self, entry: Entry, unknown_items: Iterator[UnknownItem]) -> None:
        """Add an entry and what is unknown in it."""
        size = len(entry.raw)
        self._bytes += size
        self._lines += entry.line.number != self._last_line
        self._last_line = entry.line.number
        kind = entry.kind
        self._kinds[kind] += 1
        version = _entry_version(entry)
        if version is not None:
            self._versions[version] += 1
            self._last_version = version
        for problem in entry.all_problems:
            self.add_problem(problem)
            if problem.kind is ProblemKind.MISSING_FIELD:
                self._add_missing(kind, problem.place)
        if kind == "pending":
            self._pending += size
        elif kind == "damaged":
            self._malformed += size
        else:
            self._entries += kind != "blank"
            unknown_size = 0
            for item in unknown_items:
                self.add_unknown(item, self._last_version)
                unknown_size += item.size
            self._understood += max(0, size - unknown_size)

    def add_problem(self, problem: Problem) -> None:
        """Add a problem."""
        count = ProblemCount(1, int(problem.recovered), problem.lost, (str(problem.place),))
        before = self._problems.get(problem.kind)
        self._problems[str(problem.kind)] = count if before is None else _add_problems(before, count)

    def _add_missing(self, kind: str, place: Place) -> None:
        field = place.json_path.removeprefix("$.")
        item = MissingField(kind, field, _REQUIRED_SINCE.get((kind, field)), 1, (str(place),))
        before = self._missing.get((kind, field))
        self._missing[kind, field] = item if before is None else _add_missing_fields(before, item)

    def add_unknown(self, unknown: UnknownItem, version: str | None) -> None:
        """Add something that the model does not know."""
        key = (unknown.what, unknown.name, unknown.within)
        item = DriftItem(*key, 1, unknown.size, version, str(unknown.place))
        before = self._drift.get(key)
        self._drift[key] = item if before is None else _add_drift(before, item)

    def examination(self, *, transcripts: int = 0, side_files: dict[str, int] | None = None) -> Examination:
        """Return the findings as an examination."""
        return Examination(
            transcripts=transcripts,
            lines=self._lines,
            bytes=self._bytes,
            entries=self._entries,
            round_trip=self.round_trip,
            understood_bytes=self._understood,
            malformed_bytes=self._malformed,
            pending_bytes=self._pending,
            kinds=dict(self._kinds),
            versions=dict(self._versions),
            side_files=side_files or {},
            problems=self._problems,
            missing_fields=tuple(self._missing.values()),
            drift=tuple(self._drift.values()),
        )


def _entry_version(entry: Entry) -> str | None:
    """Return the version that an entry itself names."""
    if isinstance(entry, OtherEntry):
        version = entry.data.get("version") if isinstance(entry.data, dict) else None
    else:
        version = getattr(entry, "version", None)
    return version if isinstance(version, str) else None


def _add_problems(problem_count: ProblemCount, other: ProblemCount) -> ProblemCount:
    return ProblemCount(
        problem_count.count + other.count,
        problem_count.recovered + other.recovered,
        problem_count.lost + other.lost,
        tuple(sorted({*problem_count.places, *other.places})[:_MAX_EXAMPLES]),
    )


_REQUIRED_SINCE = {(rule.kind, rule.field): rule.since for rule in REQUIRED if rule.since}


def _add_missing_fields(item: MissingField, other: MissingField) -> MissingField:
    places = tuple(sorted({*item.places, *other.places})[:_MAX_EXAMPLES])
    return MissingField(item.kind, item.field, item.since, item.count + other.count, places)


def _add_drift(drift_item: DriftItem, other: DriftItem) -> DriftItem:
    versions = [version for version in (drift_item.first_version, other.first_version) if version is not None]
    first = min(versions, key=version_key, default=None)
    return DriftItem(
        drift_item.what,
        drift_item.name,
        drift_item.within,
        drift_item.count + other.count,
        drift_item.bytes + other.bytes,
        first,
        drift_item.place if first == drift_item.first_version else other.place,
    )


def _merge_examinations(parts: list[Examination]) -> Examination:
    """Merge examinations. The result does not depend on their order."""
    kinds: Counter[str] = Counter()
    versions: Counter[str] = Counter()
    side_files: Counter[str] = Counter()
    problems: dict[str, ProblemCount] = {}
    missing: dict[tuple[str, str], MissingField] = {}
    drift: dict[tuple[str, str, str], DriftItem] = {}
    for part in sorted(parts, key=lambda part: [item.place for item in part.drift]):
        kinds.update(part.kinds)
        versions.update(part.versions)
        side_files.update(part.side_files)
        for kind, count in part.problems.items():
            problems[kind] = _add_problems(problems[kind], count) if kind in problems else count
        for field in part.missing_fields:
            name = (field.kind, field.field)
            missing[name] = _add_missing_fields(missing[name], field) if name in missing else field
        for item in part.drift:
            key = (item.what, item.name, item.within)
            drift[key] = _add_drift(drift[key], item) if key in drift else item
    trips = [part.round_trip for part in parts if part.round_trip is not None]
    return Examination(
        transcripts=sum(part.transcripts for part in parts),
        lines=sum(part.lines for part in parts),
        bytes=sum(part.bytes for part in parts),
        entries=sum(part.entries for part in parts),
        round_trip=all(trips) if trips else None,
        understood_bytes=sum(part.understood_bytes for part in parts),
        malformed_bytes=sum(part.malformed_bytes for part in parts),
        pending_bytes=sum(part.pending_bytes for part in parts),
        kinds=dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
        versions=dict(sorted(versions.items(), key=lambda item: version_key(item[0]))),
        side_files=dict(sorted(side_files.items())),
        problems=dict(sorted(problems.items())),
        missing_fields=tuple(sorted(missing.values(), key=lambda item: (-item.count, item.kind, item.field))),
        drift=tuple(sorted(drift.values(), key=lambda item: (-item.count, item.what, item.name, item.within))),
    )


decode_strictly = make_lines_decoder(strict_type(AnyEntry))
"""Decodes lines in which the model knows every field. The entries have the model's own types."""

_decode_strict_entry = msgspec.json.Decoder[Any](strict_type(AnyEntry)).decode
# A key may contain half a surrogate pair, which has no UTF-8.
_CONVERSION_ERRORS = (msgspec.MsgspecError, UnicodeEncodeError, RecursionError)
_ITEM_KINDS = {
    "OtherEntry": "kind",
    "OtherBlock": "block",
    "OtherAttachment": "attachment",
    "OtherProgress": "progress",
}


class UnknownItem(Struct, frozen=True):
    """One thing in an entry that the model does not know.

    `what` is `kind`, `subtype`, `block`, `attachment`, `progress`, `tool-result` or `field`. `within` is the shape or
    tool it was found in.
    """

    what: str
    name: str
    within: str
    place: Place
    size: int


class DriftFinder:
    """Finds what the model does not know in the entries of one transcript. It remembers the tool of each call."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def unknown_items(self, entry: Entry) -> Iterator[UnknownItem]:
        """Yield everything that the model does not know in an entry."""
        if isinstance(entry, OtherEntry):
            if entry.data is not None:
                yield UnknownItem("kind", entry.kind, "", entry.place, len(entry.raw))
            return
        if not _is_fully_known(entry):
            for unknown in find_unknown(entry.data, AnyEntry):
                yield _unknown_item(unknown, entry.place)
        if isinstance(entry, SystemEntry) and entry.subtype is not None and entry.subtype not in SUBTYPES:
            yield UnknownItem("subtype", entry.subtype, "SystemEntry", entry.place.within("$.subtype"), len(entry.raw))
        if isinstance(entry, UserEntry | AssistantEntry):
            yield from self._results(entry)

    def _results(self, entry: UserEntry | AssistantEntry) -> Iterator[UnknownItem]:
        for block in entry.message.blocks if entry.message is not None else ():
            if isinstance(block, ToolUseBlock):
                self._tools[block.id or ""] = block.name
            elif isinstance(block, ToolResultBlock) and isinstance(entry, UserEntry):
                tool = self._tools.pop(block.tool_use_id or "", None)
                if isinstance(entry.tool_use_result, dict):
                    yield from _unknown_in_result(entry.tool_use_result, tool, entry.place)


def _is_fully_known(entry: Entry) -> bool:
    """Whether an entry was, or can be, decoded by the strict twin of its type, which rejects unknown fields."""
    if type(entry).__struct_config__.forbid_unknown_fields:
        return True
    try:
        _decode_strict_entry(entry.raw.strip(b"\0 \t\r\n"))
    except DECODE_ERRORS:
        return False
    return True


def _unknown_in_result(value: dict[str, Any], tool: str | None, place: Place) -> Iterator[UnknownItem]:
    shape = result_type(value, tool)
    if shape is None:
        name = tool if tool is not None else "{" + ", ".join(sorted(value)[:6]) + "}"
        yield UnknownItem("tool-result", name, "UserEntry", place.within("$.toolUseResult"), _json_size(value))
        return
    try:
        msgspec.convert(value, strict_type(shape))
    except _CONVERSION_ERRORS:
        parts = list(find_unknown(value, shape))
        merged = [part for part in parts if part.name in _RESULT_FIELDS and part.json_path == f"$.{part.name}"]
        if len(merged) >= _MIN_MERGED_FIELDS:
            name = " and ".join(dict.fromkeys(type_.__name__ for type_ in (shape, *_other_result_types(value, shape))))
            size = sum(_json_size(part.value) for part in merged)
            yield UnknownItem("tool-result", name, "UserEntry", place.within("$.toolUseResult"), size)
            parts = [part for part in parts if part not in merged]
        for part in parts:
            inner = place.within("$.toolUseResult" + part.json_path[1:])
            yield UnknownItem("field", part.name, part.shape, inner, _json_size(part.value))


# A result with this many fields of other tools' results is reported once. Fewer may be new fields of the tool.
_MIN_MERGED_FIELDS = 4
_RESULT_FIELDS = frozenset(name for shape in TOOL_RESULTS.values() for name in shape.__struct_encode_fields__)


def _other_result_types(value: dict[str, Any], shape: type[ToolResult]) -> list[type[ToolResult]]:
    """The types of other tools' results in the same object, by the keys that identify them.

    Claude Code writes no such object, but descriptions of the format do.
    """
    unknown = value.keys() - set(shape.__struct_encode_fields__)
    return [other for keys, other in SIGNATURES if keys <= unknown]


def _unknown_item(unknown: UnknownPart, place: Place) -> UnknownItem:
    what = _ITEM_KINDS[unknown.shape] if unknown.what == "tag" else "field"
    return UnknownItem(what, unknown.name, unknown.shape, place.within(unknown.json_path), _json_size(unknown.value))


def _json_size(value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, OverflowError):
        return len(repr(value))
