"""The status of a keep: what is kept, what is at risk, and what changed between runs.

Of a home, only the settings are read; everything else follows from names, sizes and times. If only the ctime of a file
is not the one that was kept, its content is compared.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from threadline.errors import NotFound
from threadline.find import change_time_ns, session_in_path
from threadline.home_files import open_in_home
from threadline.keep.catalogue import Catalogue, FileKey, ForgottenFiles, Version
from threadline.keep.manifest import EndRow, FileRow, ForgetRow, GoneRow, Manifest, path_from_json
from threadline.keep.retention import RetentionPeriod, is_cleaned_up, read_retention_period
from threadline.keep.sessions import (
    KeptSession,
    OmittedFile,
    SourceFile,
    file_owners,
    find_source_files,
    is_kept_only,
    is_session_transcript,
    list_left_out,
    list_sessions,
    mtime_to_datetime,
    session_of_main_transcript,
)
from threadline.model.homes import Home
from threadline.model.places import Problem

RiskState = Literal["new", "grown", "changed"]
"""Why something is at risk: it was never kept, or not since it grew, or not since it changed in another way."""
_RISK_STATES: tuple[RiskState, ...] = ("new", "grown", "changed")


class AtRisk(Struct, frozen=True):
    """Files of a session that are not kept, or a file that belongs to no session (`session` is None).

    `deleted` is when Claude Code will delete the first of them; None means never. `has_transcript` says whether the
    home has a transcript of the session, or only its side files.
    """

    session: str | None
    home: str
    path: str
    state: RiskState
    files: int
    bytes: int
    modified: datetime
    deleted: datetime | None
    has_transcript: bool = False


class KeptMachine(Struct, frozen=True):
    """What a keep has of one machine.

    `last` is when a run last found something new. `ended` is when a run last ended, which is known for this machine
    only.
    """

    id: str
    label: str
    here: bool
    sessions: int
    bytes: int
    runs: int
    last: str | None
    ended: str | None = None


class LiveHome(Struct, frozen=True):
    """An existing home, and its retention period."""

    path: str
    period: RetentionPeriod
    sessions: int
    files: int
    bytes: int
    agents_only: int = 0


class Status(Struct, frozen=True):
    """The status of a keep.

    `only` counts the sessions that Claude Code has deleted. `bytes` is the size of the kept files, `all_bytes` that of
    all their versions, and `stored` what the keep takes on disk. `unseen` lists what could not be read in the homes.
    `agents_only` counts the sessions without a transcript of their own. `left_out` lists the files in the homes that a
    run does not store. `pending` are sessions that a merged keep has forgotten, which applies here only if accepted.
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
    homes: tuple[LiveHome, ...]
    at_risk: tuple[AtRisk, ...]
    problems: tuple[str, ...]
    unseen: tuple[Problem, ...] = ()
    agents_only: int = 0
    left_out: tuple[OmittedFile, ...] = ()
    pending: tuple[ForgetRow, ...] = ()


def read_status(
    catalogue: Catalogue,
    homes: Sequence[Home],
    machine: str,
    *,
    damaged_packs: AbstractSet[str] = frozenset(),
    ended: str | None = None,
) -> Status:
    """The status of a keep compared with the homes of a machine.

    `damaged_packs` are the names of packs that `verify` found damaged; `ended` is when this machine's last run ended.
    """
    sessions = list_sessions(catalogue)
    unseen: list[Problem] = []
    scans = [_HomeScan(home, catalogue, machine, unseen) for home in homes]
    newest = list(catalogue.newest())
    risks = [risk for scan in scans for risk in scan.at_risk()]
    return Status(
        sessions=len(sessions),
        only=sum(is_kept_only(session, machine) for session in sessions),
        files=len(newest),
        versions=sum(map(len, catalogue.versions.values())),
        bytes=sum(version.size for version in newest),
        all_bytes=sum(version.size for version in catalogue.all_versions()),
        stored=stored_size(catalogue.store.folder),
        forgotten=len(catalogue.forgotten.rows),
        machines=tuple(_summarise_machines(catalogue, sessions, machine, ended)),
        homes=tuple(scan.home() for scan in scans),
        at_risk=tuple(sorted(risks, key=_urgency)),
        problems=(*catalogue.problems, *_damage_messages(catalogue, damaged_packs)),
        unseen=tuple(unseen),
        agents_only=sum(session.main is None for session in sessions),
        left_out=list_left_out(catalogue.forgotten, (source for scan in scans for source in scan.sources), unseen),
        pending=tuple(catalogue.pending),
    )


def status_without_keep(homes: Sequence[Home]) -> Status:
    """The status before there is a keep: everything is at risk."""
    unseen: list[Problem] = []
    scans = [_HomeScan(home, _EmptyCatalogue(), "", unseen) for home in homes]
    risks = sorted((risk for scan in scans for risk in scan.at_risk()), key=_urgency)
    live = tuple(scan.home() for scan in scans)
    left_out = list_left_out(ForgottenFiles(), (), unseen)
    return Status(0, 0, 0, 0, 0, 0, 0, 0, (), live, tuple(risks), (), tuple(unseen), left_out=left_out)


def list_forgotten_in_homes(catalogue: Catalogue, homes: Sequence[Home]) -> set[str]:
    """The forgotten sessions that are still in a home; they are not kept."""
    paths = (file.path for home in homes for file in find_source_files(home, []) if catalogue.forgotten.has(file.path))
    return {session for path in paths if (session := session_of_main_transcript(path)) is not None}


class _CatalogueLike(Protocol):
    """The part of a `Catalogue` that a home is compared with."""

    @property
    def versions(self) -> Mapping[FileKey, Sequence[Version]]: ...

    @property
    def forgotten(self) -> ForgottenFiles: ...

    def piece_length(self, hash_: str) -> int | None: ...


class _EmptyCatalogue:
    """An empty keep."""

    versions: Mapping[FileKey, Sequence[Version]] = {}
    forgotten = ForgottenFiles()

    def piece_length(self, hash_: str) -> int | None:
        del hash_
        return None


def _damage_messages(catalogue: Catalogue, damaged_packs: AbstractSet[str]) -> Iterator[str]:
    """Say which packs are damaged, and whether their contents are stored elsewhere, too."""
    count = len(damaged_packs & {path.name for path in catalogue.store.pack_files()})
    if not count:
        return
    packs = f"{count:,} damaged pack{'s' if count != 1 else ''}"
    if catalogue.live_pieces() - catalogue.pieces_outside(damaged_packs):
        yield (
            f"`threadline keep verify` found {packs}. The next `threadline keep` stores again what Claude Code still"
            " has; `threadline keep merge COPY` restores the rest from a copy of the keep."
        )
    else:
        yield (
            f"`threadline keep verify` found {packs}. Their contents were stored again;"
            " `threadline keep pack` removes them."
        )


def stored_size(folder: Path) -> int:
    """The total size of the files in a keep."""
    total = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - text is enough
            except OSError:
                continue
    return total


class _HomeScan:
    """Compares one home with what is kept of it."""

    def __init__(self, home: Home, catalogue: _CatalogueLike, machine: str, unseen: list[Problem]) -> None:
        self._home = home
        self._period = read_retention_period(home.path)
        self._catalogue = catalogue
        self._machine = machine
        self.sources = list(find_source_files(home, unseen))
        self._files = [
            (source, status)
            for source in self.sources
            if (status := _stat_file(source)) is not None and not catalogue.forgotten.has(source.path)
        ]
        paths = (source.path for source, _status in self._files)
        self._sessions = {session for path in paths if is_session_transcript(path) and (session := _session_in(path))}

    def home(self) -> LiveHome:
        """What the home contains."""
        paths = [source.path for source, _status in self._files]
        sessions = self._sessions
        mains = {session_of_main_transcript(path) for path in paths}
        size = sum(status.st_size for _source, status in self._files)
        home = str(self._home.path)
        return LiveHome(home, self._period, len(sessions), len(self._files), size, len(sessions - mains))

    def at_risk(self) -> Iterator[AtRisk]:
        """What is not kept in its current state, by session; files that belong to none one by one."""
        groups: dict[str, list[_UnkeptFile]] = defaultdict(list)
        for source, status in self._files:
            file = self._compare(source, status)
            if file is not None:
                groups[_session_in(source.path) or source.path].append(file)
        for name, files in groups.items():
            yield self._risk(name, files)

    def _risk(self, name: str, files: list[_UnkeptFile]) -> AtRisk:
        main = next((file for file in files if session_of_main_transcript(file.path)), files[0])
        ends = [
            end for file in files if is_cleaned_up(file.path) and (end := self._period.ends(file.mtime_ns)) is not None
        ]
        is_session = _session_in(main.path) is not None
        # If only a side file of a session is new, the session itself is not.
        state = main.state if session_of_main_transcript(main.path) or not is_session else "changed"
        return AtRisk(
            name if is_session else None,
            str(self._home.path),
            main.path,
            state,
            len(files),
            sum(file.unkept_bytes for file in files),
            mtime_to_datetime(main.mtime_ns),
            min(ends, default=None),
            name in self._sessions,
        )

    def _compare(self, source: SourceFile, status: os.stat_result) -> _UnkeptFile | None:
        """What is not kept of a file, as far as its size and times show; None if it is unchanged."""
        size, mtime_ns = status.st_size, status.st_mtime_ns
        versions = self._catalogue.versions.get((self._machine, str(self._home.path), source.path))
        if not versions:
            return _UnkeptFile(source.path, mtime_ns, "new", size)
        kept = versions[-1]
        if (kept.size, kept.mtime_ns) == (size, mtime_ns) and not kept.torn and self._has_content(source, status, kept):
            return None
        if size > kept.size:
            return _UnkeptFile(source.path, mtime_ns, "grown", size - kept.size)
        return _UnkeptFile(source.path, mtime_ns, "changed", size)

    def _has_content(self, source: SourceFile, status: os.stat_result, kept: Version) -> bool:
        """Whether a file with the size and mtime of a version has its content: surely if the ctime is the same."""
        if kept.ctime_ns in (0, change_time_ns(status)) or not change_time_ns(status):
            return True
        lengths = [self._catalogue.piece_length(hash_) for hash_ in kept.pieces]
        try:
            with os.fdopen(open_in_home(source.file, home=self._home.path), "rb") as file:
                return all(
                    length is not None and sha256(file.read(length)).hexdigest() == hash_
                    for length, hash_ in zip(lengths, kept.pieces, strict=True)
                )
        except OSError:
            return False


class _UnkeptFile(Struct, frozen=True):
    path: str
    mtime_ns: int
    state: RiskState
    unkept_bytes: int


def _session_in(path: str) -> str | None:
    return session_in_path(path.split("/"))


def _stat_file(source: SourceFile) -> os.stat_result | None:
    try:
        status = os.lstat(source.file)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _urgency(risk: AtRisk) -> tuple[bool, float, int, str]:
    """A sort key: what is deleted first comes first, then what was never kept."""
    return (
        risk.deleted is None,
        risk.deleted.timestamp() if risk.deleted is not None else 0.0,
        _RISK_STATES.index(risk.state),
        risk.path,
    )


def _summarise_machines(
    catalogue: Catalogue, sessions: Iterable[KeptSession], here: str, ended: str | None
) -> Iterator[KeptMachine]:
    by_machine: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in catalogue.manifests:
        by_machine[manifest.run.machine].append(manifest)
    sizes: dict[str, int] = defaultdict(int)
    for version in catalogue.newest():
        sizes[version.machine] += version.size
    counts: dict[str, int] = defaultdict(int)
    for session in sessions:
        counts[session.machine] += 1
    for machine, manifests in by_machine.items():
        last = max(manifests, key=lambda manifest: manifest.run.number)
        last_ended = next((row.ended for row in reversed(last.rows) if isinstance(row, EndRow)), None)
        yield KeptMachine(
            machine,
            last.run.label,
            machine == here,
            counts[machine],
            sizes[machine],
            len(manifests),
            last_ended,
            ended if machine == here else None,
        )


Change = Literal["new", "grown", "changed", "gone"]
_CHANGE_ORDER: tuple[Change, ...] = ("new", "grown", "changed", "gone")


class RunSummary(Struct, frozen=True):
    """A run: its number, start and end, and how many files and bytes it saw."""

    number: int
    machine: str
    label: str
    began: str
    ended: str
    files: int
    bytes: int


class Difference(Struct, frozen=True):
    """How a session, or a file that belongs to none (`session` is None), changed, and how many bytes that added."""

    change: Change
    session: str | None
    path: str
    machine: str
    home: str
    files: int
    bytes: int


def list_runs(catalogue: Catalogue, machine: str) -> list[RunSummary]:
    """The runs of a machine that found changes, in order."""
    manifests = [manifest for manifest in catalogue.manifests if manifest.run.machine == machine]
    return [_summarise_run(manifest) for manifest in sorted(manifests, key=lambda manifest: manifest.run.number)]


def select_runs(catalogue: Catalogue, machine: str, named: Sequence[int]) -> tuple[int, int]:
    """The two runs to compare. One number is compared with the last run; without numbers, the last two are.

    Run 0 is the state before the first run.

    Raises:
        NotFound: there is no such run.
    """
    numbers = [run.number for run in list_runs(catalogue, machine)]
    if not numbers:
        raise NotFound(
            "The keep has no run of this machine. Run `threadline keep`, or name another machine with --machine."
        )
    for number in named:
        if number and number not in numbers:
            raise NotFound(f"There is no run {number}. The runs are {numbers[0]} to {numbers[-1]}.")
    if not named:
        return (numbers[-2] if len(numbers) > 1 else 0), numbers[-1]
    return min(named), numbers[-1] if len(named) == 1 else max(named)


def list_differences(catalogue: Catalogue, machine: str, after: int, until: int) -> list[Difference]:
    """What changed in the runs of a machine after one and up to another, by session."""
    groups: dict[tuple[str, str], list[tuple[Change, str, int]]] = defaultdict(list)
    owners = file_owners(catalogue)
    # An id that only a todo list mentions is not a session.
    listed = {(session.home, session.id) for session in list_sessions(catalogue) if session.machine == machine}
    for home, path, change, size in _changed_files(catalogue, machine, after, until):
        versions = catalogue.versions.get((machine, home, path))
        session = owners.session(versions[-1]) if versions else None
        name = session if session is not None and (home, session) in listed else path
        groups[home, name].append((change, path, size))
    with_transcript = {
        (home, session_of_main_transcript(path)) for machine_, home, path in catalogue.versions if machine_ == machine
    }
    differences = [
        _make_difference(machine, home, name, files, has_transcript=(home, name) in with_transcript)
        for (home, name), files in groups.items()
    ]
    return sorted(differences, key=_difference_key)


def _difference_key(difference: Difference) -> tuple[int, bool, str]:
    return _CHANGE_ORDER.index(difference.change), difference.session is None, difference.path


def _make_difference(
    machine: str, home: str, name: str, files: list[tuple[Change, str, int]], *, has_transcript: bool
) -> Difference:
    main = next(((change, path) for change, path, _size in files if session_of_main_transcript(path) == name), None)
    is_session = name not in {path for _change, path, _size in files}
    change: Change = main[0] if main is not None else files[0][0] if not is_session else _combine_changes(files)
    if is_session and main is None and has_transcript:
        change = "changed"  # its transcript is unchanged: only a side file is new or gone
    added = sum(size for _change, _path, size in files)
    path = main[1] if main is not None else files[0][1]
    return Difference(change, name if is_session else None, path, machine, home, len(files), added)


def _combine_changes(files: list[tuple[Change, str, int]]) -> Change:
    kinds = {change for change, _path, _size in files}
    return next(iter(kinds)) if len(kinds) == 1 else "changed"


def _changed_files(
    catalogue: Catalogue, machine: str, after: int, until: int
) -> Iterator[tuple[str, str, Change, int]]:
    """Each file that changed: its home and path, how it changed in total, and how many bytes that added."""
    exists: dict[tuple[str, str], bool] = {}
    manifests = (
        manifest
        for manifest in catalogue.manifests
        if manifest.run.machine == machine and after < manifest.run.number <= until
    )
    for manifest in sorted(manifests, key=lambda manifest: manifest.run.number):
        for row in manifest.rows:
            if isinstance(row, FileRow | GoneRow):
                key = path_from_json(row.home, row.raw_home), path_from_json(row.path, row.raw_path)
                exists[key] = isinstance(row, FileRow)
    for (home, path), is_present in exists.items():
        versions = catalogue.versions.get((machine, home, path), [])
        before = next((version for version in reversed(versions) if version.run <= after), None)
        now = next((version for version in reversed(versions) if after < version.run <= until), None)
        if not is_present:
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
