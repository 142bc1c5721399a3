"""One run of `keep`: store what is new or has grown in the homes, then write the manifest.

The manifest is written last, so nothing refers to bytes that are not on disk. A file that changes while it is read is
read again, and marked as torn if it never holds still.

A machine whose id was lost is recognised by its files: their ctimes are those that were kept, which a copy on another
machine cannot have.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from threadline import atomic
from threadline.errors import Unreadable
from threadline.keep import forget, pack, repair
from threadline.keep import machine as machine_machine
from threadline.keep.cache import KeepCache, open_keep_cache
from threadline.keep.catalogue import Catalogue, PieceList, Version
from threadline.keep.chunking import Chunker, Piece
from threadline.keep.machine import Machine, has_completed_run, save_machine_id
from threadline.keep.manifest import (
    MANIFEST_VERSION,
    AnyRow,
    EndRow,
    FileRow,
    GoneRow,
    RunRow,
    encode_rows,
    path_to_json,
)
from threadline.keep.pack import PackWriter
from threadline.keep.paths import SourceFile, find_source_files
from threadline.keep.repair import open_damaged_packs
from threadline.keep.store import Store
from threadline.model.homes import Home
from threadline.model.places import Place, Problem, ProblemKind

_READ_SIZE = 1024 * 1024
_MAX_RETRIES = 2
"""How often a file that changes while it is read is read again, and a run whose packs were taken away done again."""


class KeepResult(Struct, frozen=True):
    """What a run did: how many files it saw, which were new, grew, changed or vanished, and what that took."""

    run: int
    files: int = 0
    new: int = 0
    grown: int = 0
    changed: int = 0
    gone: int = 0
    bytes: int = 0
    read: int = 0
    stored: int = 0
    problems: tuple[Problem, ...] = ()


def run_keep(
    store: Store,
    homes: Sequence[Home],
    machine: Machine,
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> KeepResult:
    """Keep what is new in these homes. What was kept before is never touched.

    Raises:
        IndexBusy: another process of this machine is writing the keep.
        Unreadable: the keep cannot be written.
    """
    repair.repair_keep_info(store, machine)
    with store.adding(machine.id):
        repair.repair_readme(store)
        catalogue = Catalogue(store, open_machine_cache(store, machine))
        for turn in range(_MAX_RETRIES + 1):
            run = _KeepRun(catalogue, machine, jobs, progress or (lambda _done: None))
            kept = run.run(homes, planned if turn == 0 else None, now)
            if kept is not None:
                break
            catalogue.reload_locations()
    if kept is not None:
        forget.finish_forgetting(catalogue, machine)
        machine_machine.save_last_run(machine.memory, store.folder, store.about.id, _format_timestamp(now()))
        return kept
    raise Unreadable(f"Others take packs away from {str(store.folder)!r} all the time; try again when they are done.")


def open_machine_cache(store: Store, machine: Machine) -> KeepCache | None:
    """What a machine remembers of a keep."""
    return open_keep_cache(machine.memory, store.about.id)


class _KeepRun:
    """One run."""

    def __init__(self, catalogue: Catalogue, machine: Machine, jobs: int, progress: Callable[[int], None]) -> None:
        self._store = catalogue.store
        self._machine = machine
        self._jobs = jobs
        self._progress = progress
        self._catalogue = catalogue
        self._doubts = open_damaged_packs(machine.memory, self._store.about.id)
        self._known = catalogue.pieces_outside(self._doubts.packs if self._doubts is not None else frozenset())
        self._relied: set[Path] = set()
        """The packs that must be there when the run ends: what lies in them was not written again."""
        self._by_name: dict[str, list[Version]] | None = None
        self._problems: list[Problem] = []
        self._rows: list[AnyRow] = []
        self._counts = dict.fromkeys(("new", "grown", "changed", "gone"), 0)
        self._read = 0

    def run(
        self, homes: Sequence[Home], planned: Callable[[int], None] | None, now: Callable[[], datetime]
    ) -> KeepResult | None:
        """Look at every file, keep what is new, and write the manifest last; None where packs vanished meanwhile."""
        began = now()
        last = self._catalogue.last_run(self._machine.id)
        found = [
            source
            for home in homes
            for source in find_source_files(home, self._problems)
            if not self._catalogue.forgotten.has(source.path)
        ]
        seen = [(source, status) for source in found if (status := self._status(source)) is not None]
        changed = [(source, status) for source, status in seen if not self._is_kept(source, status)]
        if planned is not None:
            planned(sum(status.st_size for _source, status in changed))
        stored = self._store_all(changed)
        if any(not pack.exists() for pack in self._relied):
            return None
        self._miss(homes, found)
        number = last.run.number + 1 if last is not None else 1
        size = sum(status.st_size for _source, status in seen)
        if self._rows or (last is None and not self._store.is_key_missing):
            run = RunRow(
                MANIFEST_VERSION,
                self._machine.id,
                path_to_json(self._machine.label)[0],
                number,
                last.hash if last is not None else None,
                _format_timestamp(began),
                tuple(path_to_json(str(home.path))[0] for home in homes),
            )
            rows = [run, *self._rows, EndRow(_format_timestamp(now()), len(seen), size)]
            path, _hash = self._store.put_run(rows)
            self._catalogue.note({path.name: encode_rows(rows)})
        self._catalogue.remember()
        counts = self._counts
        return KeepResult(
            number,
            len(found),
            counts["new"],
            counts["grown"],
            counts["changed"],
            counts["gone"],
            size,
            self._read,
            stored,
            (*self._problems, *self._troubles()),
        )

    def _troubles(self) -> list[Problem]:
        """What is wrong with the keep itself, as far as a run notices."""
        said = list(dict.fromkeys(self._catalogue.problems))
        if self._catalogue.unread:
            said.append(
                f"{self._catalogue.unread:,} files of the keep are closed without its key, and this machine does not "
                "remember them; what is in them may have been kept again; `threadline keep pack` with the key mends it."
            )
        return [Problem(ProblemKind.UNREADABLE, Place(str(self._store.folder)), one) for one in said]

    def _store_all(self, changed: Sequence[tuple[SourceFile, os.stat_result]]) -> int:
        """Keep these files; how many bytes their packs take. Nothing is told of them before those are on the disk."""
        if not changed:
            return 0
        teaching = pack.DictionaryTrainer(self._store, self._machine.id)
        with PackWriter(self._store, self._machine.id, jobs=self._jobs, dictionary=teaching.dictionary) as packing:
            for source, status in changed:
                self._take(source, status, packing, teaching)
            packing.dictionary = teaching.train()
        teaching.ensure_stored()
        self._catalogue.note(packing.tables)
        if self._doubts is not None:  # what is in a damaged pack may make the same one again, which takes its place
            self._doubts.judge((path.name for path in packing.done), ())
        return sum(path.stat().st_size for path in packing.done)

    def _before(self, source: SourceFile) -> Version | None:
        versions = self._catalogue.versions.get((self._machine.id, str(source.home.path), source.path))
        return versions[-1] if versions else None

    def _is_kept(self, source: SourceFile, status: os.stat_result) -> bool:
        """Whether it is as it was kept last, and can be given back so."""
        before = self._before(source)
        return (
            before is not None
            and before.gone is None
            and not before.torn
            and (before.size, before.mtime_ns, before.mode, before.ctime_ns)
            == (status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode), status.st_ctime_ns)
            and self._known.issuperset(before.pieces)
        )

    def _take(
        self, source: SourceFile, status: os.stat_result, packing: PackWriter, teaching: pack.DictionaryTrainer
    ) -> None:
        """Keep one file; what cannot be read is a problem, and the run goes on."""
        before = self._before(source)
        try:
            row = self._kept(source, before, packing, teaching)
        except OSError as error:
            said = f"It cannot be read and was not kept: {error.strerror or error}."
            self._problem(ProblemKind.UNREADABLE, source, said)
            return
        finally:
            self._progress(status.st_size)
        grew = before is not None and row.base == before.pieces.id and row.pieces
        self._counts["new" if before is None else "grown" if grew else "changed"] += 1
        self._rows.append(row)

    def _kept(
        self, source: SourceFile, before: Version | None, packing: PackWriter, teaching: pack.DictionaryTrainer
    ) -> FileRow:
        earlier: tuple[PieceList | None, tuple[str, ...]] | None = None
        for turn in range(_MAX_RETRIES + 1):
            with atomic.open_regular_file(source.file) as file:
                status = os.fstat(file.fileno())
                base, start = self._base(file, status, self._bases(source, before))
                pieces, size = self._pieces(file, start, status.st_size, packing, teaching)
                after = os.fstat(file.fileno())
            # One that is written while it is read may be a mix of two states, unless it reads the same twice.
            still = (after.st_mtime_ns, after.st_size) == (
                status.st_mtime_ns,
                status.st_size,
            ) and size == status.st_size
            begins = earlier is not None and earlier[0] is base and _has_same_start(pieces, earlier[1])
            torn = not still and not begins
            if not torn or turn == _MAX_RETRIES:
                break
            earlier = (base, pieces)
        if torn:
            said = "It changed while it was read; what was kept of it may be a mix."
            self._problem(ProblemKind.CHANGED, source, said)
        path, raw = path_to_json(source.path)
        home, raw_home = path_to_json(str(source.home.path))
        return FileRow(
            home,
            path,
            stat.S_IMODE(status.st_mode),
            status.st_mtime_ns,
            size,
            pieces,
            start,
            base.id if base is not None else None,
            status.st_ctime_ns,
            raw_home,
            raw,
            torn,
        )

    def _bases(self, source: SourceFile, before: Version | None) -> Iterator[Version]:
        """What a file may go on from: what was kept of it last, else the longest of its name, for it may have moved."""
        if before is not None:
            yield before
            return
        if self._by_name is None:
            self._by_name = {}
            for one in self._catalogue.newest():
                self._by_name.setdefault(one.path.rsplit("/", 1)[-1], []).append(one)
        same = self._by_name.get(source.path.rsplit("/", 1)[-1], ())
        yield from sorted(same, key=lambda one: one.size, reverse=True)[:2]

    def _base(
        self, file: BinaryIO, status: os.stat_result, versions: Iterator[Version]
    ) -> tuple[PieceList | None, int]:
        """The version that it still begins with, every byte of it, and how long that is."""
        located = self._catalogue.located
        for version in versions:
            if version.torn or not 0 < version.size <= status.st_size or not self._known.issuperset(version.pieces):
                continue
            places = [located.get(piece) for piece in version.pieces]
            if all(
                place is not None and sha256(file.read(place.length)).hexdigest() == hash_
                for place, hash_ in zip(places, version.pieces, strict=True)
            ):
                self._relied.update(place.pack for place in places if place is not None)
                return version.pieces, version.size
            file.seek(0)
        return None, 0

    def _pieces(
        self, file: BinaryIO, start: int, stop: int, packing: PackWriter, teaching: pack.DictionaryTrainer
    ) -> tuple[tuple[str, ...], int]:
        """The pieces from `start` on to what was its end when it was opened, and how long it is with them."""
        file.seek(start)
        cut = Chunker()
        hashes: list[str] = []
        at = start
        while at < stop and (data := file.read(min(_READ_SIZE, stop - at))):
            at += len(data)
            teaching.hear(data)
            hashes += [self._piece(one, packing) for one in cut.more(data)]
        hashes += [self._piece(one, packing) for one in cut.rest()]
        self._read += at - start
        return tuple(hashes), at

    def _piece(self, data: bytes, packing: PackWriter) -> str:
        piece = Piece.of(data)
        if piece.hash not in self._known:
            self._known.add(piece.hash)
            packing.add(piece)
        elif (place := self._catalogue.located.get(piece.hash)) is not None:
            self._relied.add(place.pack)
        return piece.hash

    def _miss(self, homes: Sequence[Home], found: Sequence[SourceFile]) -> None:
        """Note what was there last time and is not any more; what may not be looked at is not gone for that."""
        here = {(str(source.home.path), source.path) for source in found}
        looked = {str(home.path) for home in homes}
        for (machine, home, path), versions in self._catalogue.versions.items():
            if machine != self._machine.id or home not in looked or (home, path) in here or versions[-1].gone:
                continue
            if _is_gone(Path(home, path)):
                text, raw = path_to_json(path)
                home_text, raw_home = path_to_json(home)
                self._rows.append(GoneRow(home_text, text, raw_home, raw))
                self._counts["gone"] += 1

    def _status(self, source: SourceFile) -> os.stat_result | None:
        """What the system tells of a file; None where that is nothing to keep."""
        try:
            status = os.lstat(source.file)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(ProblemKind.UNREADABLE, source, f"It cannot be looked at: {error.strerror or error}.")
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _problem(self, kind: ProblemKind, source: SourceFile, said: str) -> None:
        self._problems.append(Problem(kind, Place(str(source.file)), said))


def _has_same_start(pieces: Sequence[str], earlier: Sequence[str]) -> bool:
    """Whether what was read begins as it did before; its last piece may have grown."""
    return len(pieces) >= len(earlier) and tuple(pieces[: max(len(earlier) - 1, 0)]) == tuple(earlier[:-1])


def _is_gone(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _format_timestamp(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_MAX_COMPARED_FILES = 500
"""How many files are compared: the clock of one file's last change says enough, and some have grown since."""


def recognise_machine(catalogue: Catalogue, machine: Machine, homes: Sequence[Home]) -> tuple[Machine, str | None]:
    """The machine under the id that it kept these homes with, which it takes up again; or what to say of one like it.

    It is the same where the files lie there as they were kept, down to when the system says that each was changed: that
    cannot be copied to another machine. Only an id that has not kept anything yet is given up.

    Raises:
        Unreadable: the id cannot be put down.
    """
    if machine.memory is None or catalogue.last_run(machine.id) is not None or has_completed_run(machine.memory):
        return machine, None
    named = {os.fspath(home.path) for home in homes}
    found: dict[str, list[Version]] = {}
    for one in catalogue.newest():
        if one.label == machine.label and one.home in named:
            found.setdefault(one.machine, []).append(one)
    same = [id_ for id_, versions in found.items() if _are_mostly_unchanged(versions)]
    if same:
        last = max(same, key=lambda id_: _last_run_start(catalogue, id_))
        save_machine_id(machine.memory, last)
        return replace(machine, id=last), f"This machine's id was lost; it goes on as {last}, whose files lie here."
    for id_ in sorted(found, key=lambda id_: _last_run_start(catalogue, id_), reverse=True):
        return machine, (
            f"Another machine called {machine.label!r} ({id_}) kept {found[id_][0].home!r}, and its files are not those"
            f" that lie here; this one keeps as {machine.id}. If it is the same, write {id_} into"
            f" {str(machine.memory / 'machine')!r}."
        )
    return machine, None


def _are_mostly_unchanged(versions: list[Version]) -> bool:
    """Whether most of the files that are still there are as they were kept."""
    looked = list(islice(_compare_files(versions), _MAX_COMPARED_FILES))
    return bool(looked) and 2 * sum(looked) >= len(looked)


def _compare_files(versions: list[Version]) -> Iterator[bool]:
    for version in versions:
        try:
            status = os.lstat(os.path.join(version.home, version.path))  # noqa: PTH118 - there may be 100,000
        except (OSError, ValueError):
            continue
        told = (version.size, version.mtime_ns, version.ctime_ns)
        yield version.ctime_ns != 0 and told == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _last_run_start(catalogue: Catalogue, machine: str) -> str:
    return max((manifest.run.began for manifest in catalogue.manifests if manifest.run.machine == machine), default="")
