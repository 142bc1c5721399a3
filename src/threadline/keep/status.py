"""The status of a keep: what is kept, and what is at risk because it is not kept as it stands."""

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

from threadline.find.side_files import session_of
from threadline.keep.catalogue import Catalogue, Key, Version
from threadline.keep.living import Period, is_swept, period
from threadline.keep.manifest import End, Manifest
from threadline.keep.misnamed import misnamed, sentence
from threadline.keep.sessions import (
    KeptSession,
    is_kept_only,
    is_session_transcript,
    main_of,
    moment_of,
    path_session,
    sessions,
)
from threadline.keep.sources import Source, sources
from threadline.keep.versions import Forgotten
from threadline.model.found import Home
from threadline.model.problem import Problem

State = Literal["new", "grown", "changed"]
"""Why something is at risk: it is not kept, not since it grew, or not since it changed otherwise."""
_STATES: tuple[State, ...] = ("new", "grown", "changed")


class AtRisk(Struct, frozen=True):
    """What a home has and the keep has not: files of a session, or a file that belongs to none (`session` is None).

    `deleted` is when the first of them will be, by the next start of Claude Code; None is never.
    """

    session: str | None
    home: str
    path: str
    state: State
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
    period: Period
    sessions: int
    files: int
    bytes: int


class Status(Struct, frozen=True):
    """How a keep stands.

    `only` are sessions that Claude Code has deleted, `bytes` what the kept files take, raw, `all_bytes` that of every
    version of them, and `stored` what the keep takes on disk. `misnamed` tells what belongs to no session by its path.
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
    misnamed: tuple[str, ...] = ()


def status(
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
    kept = sessions(catalogue)
    unseen: list[Problem] = []
    seen = [_Seen(home, catalogue, machine, unseen) for home in homes]
    newest = list(catalogue.newest())
    risks = [risk for one in seen for risk in one.at_risk()]
    return Status(
        sessions=len(kept),
        only=sum(is_kept_only(one, machine) for one in kept),
        files=len(newest),
        versions=sum(map(len, catalogue.versions.values())),
        bytes=sum(one.size for one in newest),
        all_bytes=sum(one.size for versions in catalogue.versions.values() for one in versions),
        stored=stored_bytes(catalogue.store.folder),
        forgotten=len(catalogue.forgotten.rows),
        machines=tuple(_machines(catalogue, kept, machine, ended)),
        homes=tuple(one.home() for one in seen),
        at_risk=tuple(sorted(risks, key=_urgency)),
        problems=(*catalogue.problems, *_doubts(catalogue, doubted)),
        misnamed=tuple(map(sentence, misnamed(catalogue))),
        unseen=tuple(unseen),
    )


def unkept(homes: Sequence[Home]) -> Status:
    """How things stand before there is a keep: all that Claude Code deletes is at risk."""
    unseen: list[Problem] = []
    seen = [_Seen(home, _Nothing(), "", unseen) for home in homes]
    risks = sorted((risk for one in seen for risk in one.at_risk()), key=_urgency)
    there = tuple(one.home() for one in seen)
    return Status(0, 0, 0, 0, 0, 0, 0, 0, (), there, tuple(risks), (), tuple(unseen))


def forgotten_there(catalogue: Catalogue, homes: Sequence[Home]) -> set[str]:
    """The sessions that were forgotten and are still in a home, where nothing keeps them."""
    paths = (one.path for home in homes for one in sources(home, []) if catalogue.forgotten.has(one.path))
    return {session for path in paths if (session := main_of(path)) is not None}


class _Known(Protocol):
    """What a home is compared with."""

    @property
    def versions(self) -> Mapping[Key, Sequence[Version]]: ...

    @property
    def forgotten(self) -> Forgotten: ...


class _Nothing:
    """A keep that has nothing."""

    versions: Mapping[Key, Sequence[Version]] = {}
    forgotten = Forgotten()


def _doubts(catalogue: Catalogue, doubted: AbstractSet[str]) -> Iterator[str]:
    """That packs are damaged, and whether what lies in them is kept elsewhere, too."""
    many = len(doubted & {path.name for path in catalogue.store.pack_files()})
    if not many:
        return
    lost = {hash_ for one in catalogue.all_versions() for hash_ in one.pieces} - catalogue.outside(doubted)
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


def stored_bytes(folder: Path) -> int:
    """How many bytes a keep's files have."""
    total = 0
    for above, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size  # noqa: PTH118 - text is enough
            except OSError:
                continue
    return total


class _Seen:
    """One home as it stands, beside what is kept of it."""

    def __init__(self, home: Home, catalogue: _Known, machine: str, unseen: list[Problem]) -> None:
        self._home = home
        self._period = period(home.path)
        self._catalogue = catalogue
        self._machine = machine
        found = [(one, told) for one in sources(home, unseen) if (told := _status(one)) is not None]
        self._found = [(one, told) for one, told in found if not catalogue.forgotten.has(one.path)]

    def home(self) -> LivingHome:
        """What is there."""
        found = {path_session(one.path) for one, _told in self._found if is_session_transcript(one.path)} - {None}
        size = sum(told.st_size for _one, told in self._found)
        return LivingHome(str(self._home.path), self._period, len(found), len(self._found), size)

    def at_risk(self) -> Iterator[AtRisk]:
        """What is not kept as it stands, by session; of files that belong to none, each by itself."""
        gathered: dict[str, list[tuple[Source, os.stat_result, State]]] = defaultdict(list)
        for one, told in self._found:
            state = self._state(one, told)
            if state is not None:
                gathered[session_of(one.path.split("/")) or one.path].append((one, told, state))
        for name, files in gathered.items():
            yield self._risk(name, files)

    def _risk(self, name: str, files: list[tuple[Source, os.stat_result, State]]) -> AtRisk:
        main = next(((one, told, state) for one, told, state in files if main_of(one.path)), files[0])
        ends = [
            ending
            for one, told, _state in files
            if is_swept(one.path) and (ending := self._period.ends(told.st_mtime_ns)) is not None
        ]
        is_session = session_of(main[0].path.split("/")) is not None
        # A session of which only a side file is new is not new itself.
        state = main[2] if main_of(main[0].path) or not is_session else "changed"
        return AtRisk(
            name if is_session else None,
            str(self._home.path),
            main[0].path,
            state,
            len(files),
            sum(self._missing(one, told) for one, told, _state in files),
            moment_of(main[1].st_mtime_ns),
            min(ends, default=None),
        )

    def _before(self, source: Source) -> Version | None:
        versions = self._catalogue.versions.get((self._machine, str(self._home.path), source.path))
        return versions[-1] if versions else None

    def _state(self, source: Source, told: os.stat_result) -> State | None:
        before = self._before(source)
        if before is None:
            return "new"
        if (before.size, before.mtime_ns) == (told.st_size, told.st_mtime_ns) and not before.torn:
            return None
        return "grown" if told.st_size > before.size else "changed"

    def _missing(self, source: Source, told: os.stat_result) -> int:
        """How many of its bytes are not kept, as far as can be told without reading."""
        before = self._before(source)
        return told.st_size - before.size if before is not None and told.st_size > before.size else told.st_size


def _status(source: Source) -> os.stat_result | None:
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
        _STATES.index(risk.state),
        risk.path,
    )


def _machines(catalogue: Catalogue, kept: Iterable[KeptSession], here: str, ended: str | None) -> Iterator[KeptMachine]:
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
        found = next((row.ended for row in reversed(last.rows) if isinstance(row, End)), None)
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
