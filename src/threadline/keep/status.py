"""The status of a keep: what is kept, what is at risk, and what changed between runs.

Only the settings of a home are opened; everything else is told from names, sizes and times.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from threadline.errors import NotFound
from threadline.find import session_in_path
from threadline.keep.catalogue import Catalogue, FileKey, ForgottenFiles, Version
from threadline.keep.manifest import EndRow, FileRow, GoneRow, Manifest, path_from_json
from threadline.keep.paths import SourceFile, find_source_files
from threadline.keep.retention import RetentionPeriod, is_cleaned_up, read_retention_period
from threadline.keep.sessions import (
    FileOwners,
    KeptSession,
    is_kept_only,
    is_session_transcript,
    list_sessions,
    mtime_to_datetime,
    session_of_main_transcript,
    session_of_path,
)
from threadline.model.homes import Home
from threadline.model.places import Problem

RiskState = Literal["new", "grown", "changed"]
"""Why something is at risk: it is not kept, not since it grew, or not since it changed otherwise."""
_RISK_STATES: tuple[RiskState, ...] = ("new", "grown", "changed")


class AtRisk(Struct, frozen=True):
    """What a home has and the keep has not: files of a session, or a file that belongs to none (`session` is None).

    `deleted` is when the first of them will be, by the next start of Claude Code; None is never.
    """

    session: str | None
    home: str
    path: str
    state: RiskState
    files: int
    bytes: int
    modified: datetime
    deleted: datetime | None


class KeptMachine(Struct, frozen=True):
    """What a keep has of one machine.

    `last` is when a run of it last found something new, `ended` when one last ended, which is known of this one only.
    """

    id: str
    label: str
    here: bool
    sessions: int
    bytes: int
    runs: int
    last: str | None
    ended: str | None = None


class LivingHome(Struct, frozen=True):
    """A home that is there, and how long its files live."""

    path: str
    period: RetentionPeriod
    sessions: int
    files: int
    bytes: int


class Status(Struct, frozen=True):
    """How a keep stands.

    `only` are sessions that Claude Code has deleted, `bytes` what the kept files take, raw, `all_bytes` that of every
    version of them, and `stored` what the keep takes on disk.
    """

    sessions: int
    only: int
    files: int
    versions: int
    bytes: int
    all_bytes: int
    stored: int
    forgotten: int
    machines: tuple[KeptMachine, ...]
    homes: tuple[LivingHome, ...]
    at_risk: tuple[AtRisk, ...]
    problems: tuple[str, ...]
    unseen: tuple[Problem, ...] = ()


def read_status(
    catalogue: Catalogue,
    homes: Sequence[Home],
    machine: str,
    *,
    doubted: AbstractSet[str] = frozenset(),
    ended: str | None = None,
) -> Status:
    """How a keep stands beside the homes of a machine. No file of theirs is opened but the settings.

    `doubted` are packs, by name, that were found damaged; `ended` is when a run of this machine last did.
    """
    kept = list_sessions(catalogue)
    unseen: list[Problem] = []
    seen = [_HomeScan(home, catalogue, machine, unseen) for home in homes]
    newest = list(catalogue.newest())
    risks = [risk for one in seen for risk in one.at_risk()]
    return Status(
        sessions=len(kept),
        only=sum(is_kept_only(one, machine) for one in kept),
        files=len(newest),
        versions=sum(map(len, catalogue.versions.values())),
        bytes=sum(one.size for one in newest),
        all_bytes=sum(version.size for versions in catalogue.versions.values() for version in versions),
        stored=stored_size(catalogue.store.folder),
        forgotten=len(catalogue.forgotten.rows),
        machines=tuple(_summarise_machines(catalogue, kept, machine, ended)),
        homes=tuple(one.home() for one in seen),
        at_risk=tuple(sorted(risks, key=_urgency)),
        problems=(*catalogue.problems, *_damage_messages(catalogue, doubted)),
        unseen=tuple(unseen),
    )


def status_without_keep(homes: Sequence[Home]) -> Status:
    """How things stand before there is a keep: all that Claude Code deletes is at risk."""
    unseen: list[Problem] = []
    seen = [_HomeScan(home, _EmptyCatalogue(), "", unseen) for home in homes]
    risks = sorted((risk for one in seen for risk in one.at_risk()), key=_urgency)
    there = tuple(one.home() for one in seen)
    return Status(0, 0, 0, 0, 0, 0, 0, 0, (), there, tuple(risks), (), tuple(unseen))


def list_forgotten_in_homes(catalogue: Catalogue, homes: Sequence[Home]) -> set[str]:
    """The sessions that were forgotten and are still in a home, where nothing keeps them."""
    paths = (file.path for home in homes for file in find_source_files(home, []) if catalogue.forgotten.has(file.path))
    return {session for path in paths if (session := session_of_main_transcript(path)) is not None}


class _CatalogueLike(Protocol):
    """What a home is compared with."""

    @property
    def versions(self) -> Mapping[FileKey, Sequence[Version]]: ...

    @property
    def forgotten(self) -> ForgottenFiles: ...


class _EmptyCatalogue:
    """A keep that has nothing."""

    versions: Mapping[FileKey, Sequence[Version]] = {}
    forgotten = ForgottenFiles()


def _damage_messages(catalogue: Catalogue, doubted: AbstractSet[str]) -> Iterator[str]:
    """That packs are damaged, and whether what lies in them is kept elsewhere, too."""
    many = len(doubted & {path.name for path in catalogue.store.pack_files()})
    if not many:
        return
    lost = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces} - catalogue.pieces_outside(
        doubted
    )
    packs = f"{many:,} pack{'s' if many != 1 else ''}"
    if lost:
        yield (
            f"`threadline keep verify` found {packs} damaged. The next `threadline keep` keeps again what is still "
            "where Claude Code wrote it; `threadline keep merge COPY` has the rest from a copy."
        )
    else:
        yield (
            f"`threadline keep verify` found {packs} damaged. All that was in them was kept again; "
            "`threadline keep pack` takes them away."
        )


def stored_size(folder: Path) -> int:
    """How many bytes a keep's files have."""
    total = 0
    for above, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size  # noqa: PTH118 - text is enough
            except OSError:
                continue
    return total


class _HomeScan:
    """One home as it stands, beside what is kept of it."""

    def __init__(self, home: Home, catalogue: _CatalogueLike, machine: str, unseen: list[Problem]) -> None:
        self._home = home
        self._period = read_retention_period(home.path)
        self._catalogue = catalogue
        self._machine = machine
        found = [(file, told) for file in find_source_files(home, unseen) if (told := _stat_file(file)) is not None]
        self._found = [(one, told) for one, told in found if not catalogue.forgotten.has(one.path)]

    def home(self) -> LivingHome:
        """What is there."""
        found = {session_of_path(one.path) for one, _told in self._found if is_session_transcript(one.path)} - {None}
        size = sum(told.st_size for _one, told in self._found)
        return LivingHome(str(self._home.path), self._period, len(found), len(self._found), size)

    def at_risk(self) -> Iterator[AtRisk]:
        """What is not kept as it stands, by session; of files that belong to none, each by itself."""
        gathered: dict[str, list[tuple[SourceFile, os.stat_result, RiskState]]] = defaultdict(list)
        for one, told in self._found:
            state = self._state(one, told)
            if state is not None:
                gathered[session_in_path(one.path.split("/")) or one.path].append((one, told, state))
        for name, files in gathered.items():
            yield self._risk(name, files)

    def _risk(self, name: str, files: list[tuple[SourceFile, os.stat_result, RiskState]]) -> AtRisk:
        main = next(
            ((one, told, state) for one, told, state in files if session_of_main_transcript(one.path)), files[0]
        )
        ends = [
            ending
            for one, told, _state in files
            if is_cleaned_up(one.path) and (ending := self._period.ends(told.st_mtime_ns)) is not None
        ]
        is_session = session_in_path(main[0].path.split("/")) is not None
        # A session of which only a side file is new is not new itself.
        state = main[2] if session_of_main_transcript(main[0].path) or not is_session else "changed"
        return AtRisk(
            name if is_session else None,
            str(self._home.path),
            main[0].path,
            state,
            len(files),
            sum(self._missing(one, told) for one, told, _state in files),
            mtime_to_datetime(main[1].st_mtime_ns),
            min(ends, default=None),
        )

    def _before(self, source: SourceFile) -> Version | None:
        versions = self._catalogue.versions.get((self._machine, str(self._home.path), source.path))
        return versions[-1] if versions else None

    def _state(self, source: SourceFile, told: os.stat_result) -> RiskState | None:
        before = self._before(source)
        if before is None:
            return "new"
        if (before.size, before.mtime_ns) == (told.st_size, told.st_mtime_ns) and not before.torn:
            return None
        return "grown" if told.st_size > before.size else "changed"

    def _missing(self, source: SourceFile, told: os.stat_result) -> int:
        """How many of its bytes are not kept, as far as can be told without reading."""
        before = self._before(source)
        return told.st_size - before.size if before is not None and told.st_size > before.size else told.st_size


def _stat_file(source: SourceFile) -> os.stat_result | None:
    try:
        told = os.lstat(source.file)
    except OSError:
        return None
    return told if stat.S_ISREG(told.st_mode) else None


def _urgency(risk: AtRisk) -> tuple[bool, float, int, str]:
    """What is deleted first comes first; then what is not kept at all."""
    return (
        risk.deleted is None,
        risk.deleted.timestamp() if risk.deleted is not None else 0.0,
        _RISK_STATES.index(risk.state),
        risk.path,
    )


def _summarise_machines(
    catalogue: Catalogue, kept: Iterable[KeptSession], here: str, ended: str | None
) -> Iterator[KeptMachine]:
    by_machine: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in catalogue.manifests:
        by_machine[manifest.run.machine].append(manifest)
    sizes: dict[str, int] = defaultdict(int)
    for version in catalogue.newest():
        sizes[version.machine] += version.size
    counts: dict[str, int] = defaultdict(int)
    for session in kept:
        counts[session.machine] += 1
    for machine, manifests in by_machine.items():
        last = max(manifests, key=lambda one: one.run.number)
        found = next((row.ended for row in reversed(last.rows) if isinstance(row, EndRow)), None)
        yield KeptMachine(
            machine,
            last.run.label,
            machine == here,
            counts[machine],
            sizes[machine],
            len(manifests),
            found,
            ended if machine == here else None,
        )


Change = Literal["new", "grown", "changed", "gone"]
_CHANGE_ORDER: tuple[Change, ...] = ("new", "grown", "changed", "gone")


class RunSummary(Struct, frozen=True):
    """A run: its number, when it began and ended, and how many files and bytes it saw."""

    number: int
    machine: str
    label: str
    began: str
    ended: str
    files: int
    bytes: int


class Difference(Struct, frozen=True):
    """What became of a session, or of a file that belongs to none (`session` is None), and what that added in bytes."""

    change: Change
    session: str | None
    path: str
    machine: str
    home: str
    files: int
    bytes: int


def list_runs(catalogue: Catalogue, machine: str) -> list[RunSummary]:
    """The runs of a machine that found something, in order."""
    found = [manifest for manifest in catalogue.manifests if manifest.run.machine == machine]
    return [_summarise_run(one) for one in sorted(found, key=lambda one: one.run.number)]


def select_runs(catalogue: Catalogue, machine: str, named: Sequence[int]) -> tuple[int, int]:
    """After which run and up to which: of two that are named, from one to the other; of one, from it to the last.

    Where none is named, what the last one found. Run 0 is before the first.

    Raises:
        NotFound: there is no such run.
    """
    numbers = [run_summary.number for run_summary in list_runs(catalogue, machine)]
    if not numbers:
        raise NotFound("No run of this machine is in the keep; `threadline keep` does one, --machine names another.")
    for number in named:
        if number and number not in numbers:
            raise NotFound(f"There is no run {number}; the runs are {numbers[0]} to {numbers[-1]}.")
    if not named:
        return (numbers[-2] if len(numbers) > 1 else 0), numbers[-1]
    return min(named), numbers[-1] if len(named) == 1 else max(named)


def list_differences(catalogue: Catalogue, machine: str, after: int, until: int) -> list[Difference]:
    """What runs of a machine after one and up to another found, by session."""
    gathered: dict[tuple[str, str], list[tuple[Change, str, int]]] = defaultdict(list)
    belonging = FileOwners(catalogue)
    # What only a list of todos tells of is no session.
    listed = {(one.home, one.id) for one in list_sessions(catalogue, machine=machine)}
    for home, path, change, size in _changed_files(catalogue, machine, after, until):
        versions = catalogue.versions.get((machine, home, path))
        session = belonging.session(versions[-1]) if versions else None
        name = session if session is not None and (home, session) in listed else path
        gathered[home, name].append((change, path, size))
    made = [_make_difference(catalogue, machine, home, name, files) for (home, name), files in gathered.items()]
    return sorted(made, key=lambda one: (_CHANGE_ORDER.index(one.change), one.session is None, one.path))


def _make_difference(
    catalogue: Catalogue, machine: str, home: str, name: str, files: list[tuple[Change, str, int]]
) -> Difference:
    main = next(((change, path) for change, path, _size in files if session_of_main_transcript(path) == name), None)
    is_session = name not in {path for _change, path, _size in files}
    change: Change = main[0] if main is not None else files[0][0] if not is_session else _combine_changes(files)
    if is_session and main is None and _has_main_transcript(catalogue, machine, home, name):
        change = "changed"  # its transcript is as it was: only something beside it is new, or gone
    added = sum(size for _change, _path, size in files)
    path = main[1] if main is not None else files[0][1]
    return Difference(change, name if is_session else None, path, machine, home, len(files), added)


def _combine_changes(files: list[tuple[Change, str, int]]) -> Change:
    kinds = {change for change, _path, _size in files}
    return next(iter(kinds)) if len(kinds) == 1 else "changed"


def _has_main_transcript(catalogue: Catalogue, machine: str, home: str, session: str) -> bool:
    return any(
        (one, at) == (machine, home) and session_of_main_transcript(path) == session
        for one, at, path in catalogue.versions
    )


def _changed_files(
    catalogue: Catalogue, machine: str, after: int, until: int
) -> Iterator[tuple[str, str, Change, int]]:
    """Each file that runs found otherwise: its home and path, what became of it in all, and how much that added."""
    there: dict[tuple[str, str], bool] = {}
    wanted = (one for one in catalogue.manifests if one.run.machine == machine and after < one.run.number <= until)
    for manifest in sorted(wanted, key=lambda one: one.run.number):
        for row in manifest.rows:
            if isinstance(row, FileRow | GoneRow):
                there[path_from_json(row.home, row.raw_home), path_from_json(row.path, row.raw_path)] = isinstance(
                    row, FileRow
                )
    for (home, path), is_there in there.items():
        versions = catalogue.versions.get((machine, home, path), [])
        before = next((version for version in reversed(versions) if version.run <= after), None)
        now = next((version for version in reversed(versions) if after < version.run <= until), None)
        if not is_there:
            if before is not None or now is not None:
                yield home, path, "gone", 0
        elif now is not None:
            yield home, path, *_compare_versions(before, now)


def _compare_versions(before: Version | None, now: Version) -> tuple[Change, int]:
    if before is None:
        return "new", now.size
    if now.size > before.size and list(now.pieces)[: len(before.pieces)] == list(before.pieces):
        return "grown", now.size - before.size
    return "changed", now.size


def _summarise_run(manifest: Manifest) -> RunSummary:
    run = manifest.run
    end = next((row for row in reversed(manifest.rows) if isinstance(row, EndRow)), None)
    ended, files, size = (end.ended, end.files, end.bytes) if end is not None else (run.began, 0, 0)
    return RunSummary(run.number, run.machine, run.label, run.began, ended, files, size)
