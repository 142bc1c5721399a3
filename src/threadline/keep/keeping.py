"""Keeping: one run over homes; what is new or grew goes into packs, and the manifest says what was seen."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep import durable, forgetting, labelling, lately, mending, training
from threadline.keep.catalogue import Catalogue
from threadline.keep.doubting import doubts_in
from threadline.keep.machine import Machine
from threadline.keep.manifest import VERSION, AnyRow, End, File, Gone, Run, as_text, text_of
from threadline.keep.pieces import Cutting, Piece
from threadline.keep.remembering import Memory, memory_in
from threadline.keep.sources import Source, sources
from threadline.keep.store import Store
from threadline.keep.versions import Pieces, Version
from threadline.keep.writing import Packing
from threadline.model.found import Home
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind

_READ = 1024 * 1024
_AGAIN = 2
"""How often a file that changes while it is read is read again, and a run whose packs were taken away done again."""


class Kept(Struct, frozen=True):
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


def keep(
    store: Store,
    homes: Sequence[Home],
    machine: Machine,
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Kept:
    """Keep what is new in these homes. What was kept before is never touched.

    Raises:
        IndexBusy: another process of this machine is writing the keep.
        Unreadable: the keep cannot be written.
    """
    labelling.mend(store, machine)
    with store.adding(machine.id):
        mending.mend_text(store)
        catalogue = Catalogue(store, memory_of(store, machine))
        for turn in range(_AGAIN + 1):
            run = _Keeping(catalogue, machine, jobs, progress or (lambda _done: None))
            kept = run.run(homes, planned if turn == 0 else None, now)
            if kept is not None:
                break
            catalogue.locate_again()
    if kept is not None:
        forgetting.finish(catalogue, machine)
        lately.note(machine.memory, store.folder, store.about.id, _moment(now()))
        return kept
    raise Unreadable(f"Others take packs away from {str(store.folder)!r} all the time; try again when they are done.")


def memory_of(store: Store, machine: Machine) -> Memory | None:
    """What a machine remembers of a keep."""
    return memory_in(machine.memory, store.about.id)


class _Keeping:
    """One run."""

    def __init__(self, catalogue: Catalogue, machine: Machine, jobs: int, progress: Callable[[int], None]) -> None:
        self._store = catalogue.store
        self._machine = machine
        self._jobs = jobs
        self._progress = progress
        self._catalogue = catalogue
        self._doubts = doubts_in(machine.memory, self._store.about.id)
        self._known = catalogue.outside(self._doubts.packs if self._doubts is not None else frozenset())
        self._relied: set[Path] = set()
        """The packs that must be there when the run ends: what lies in them was not written again."""
        self._by_name: dict[str, list[Version]] | None = None
        self._problems: list[Problem] = []
        self._rows: list[AnyRow] = []
        self._counts = dict.fromkeys(("new", "grown", "changed", "gone"), 0)
        self._read = 0

    def run(
        self, homes: Sequence[Home], planned: Callable[[int], None] | None, now: Callable[[], datetime]
    ) -> Kept | None:
        """Look at every file, keep what is new, and write the manifest last; None where packs vanished meanwhile."""
        began = now()
        last = self._catalogue.last_run(self._machine.id)
        found = [
            source
            for home in homes
            for source in sources(home, self._problems)
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
        if self._rows or (last is None and not self._store.is_locked):
            run = Run(
                VERSION,
                self._machine.id,
                as_text(self._machine.label)[0],
                number,
                last.hash if last is not None else None,
                _moment(began),
                tuple(as_text(str(home.path))[0] for home in homes),
            )
            rows = [run, *self._rows, End(_moment(now()), len(seen), size)]
            path, _hash = self._store.put_run(rows)
            self._catalogue.note({path.name: text_of(rows)})
        self._catalogue.remember()
        counts = self._counts
        return Kept(
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

    def _store_all(self, changed: Sequence[tuple[Source, os.stat_result]]) -> int:
        """Keep these files; how many bytes their packs take. Nothing is told of them before those are on the disk."""
        if not changed:
            return 0
        teaching = training.Teaching(self._store, self._machine.id)
        with Packing(self._store, self._machine.id, jobs=self._jobs, dictionary=teaching.dictionary) as packing:
            for source, status in changed:
                self._take(source, status, packing, teaching)
            packing.dictionary = teaching.learned()
        teaching.hold()
        self._catalogue.note(packing.tables)
        if self._doubts is not None:  # what is in a damaged pack may make the same one again, which takes its place
            self._doubts.judge((path.name for path in packing.done), ())
        return sum(path.stat().st_size for path in packing.done)

    def _before(self, source: Source) -> Version | None:
        versions = self._catalogue.versions.get((self._machine.id, str(source.home.path), source.path))
        return versions[-1] if versions else None

    def _is_kept(self, source: Source, status: os.stat_result) -> bool:
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

    def _take(self, source: Source, status: os.stat_result, packing: Packing, teaching: training.Teaching) -> None:
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

    def _kept(self, source: Source, before: Version | None, packing: Packing, teaching: training.Teaching) -> File:
        earlier: tuple[Pieces | None, tuple[str, ...]] | None = None
        for turn in range(_AGAIN + 1):
            with durable.opened(source.file) as file:
                status = os.fstat(file.fileno())
                base, start = self._base(file, status, self._bases(source, before))
                pieces, size = self._pieces(file, start, status.st_size, packing, teaching)
                after = os.fstat(file.fileno())
            # One that is written while it is read may be a mix of two states, unless it reads the same twice.
            still = (after.st_mtime_ns, after.st_size) == (
                status.st_mtime_ns,
                status.st_size,
            ) and size == status.st_size
            begins = earlier is not None and earlier[0] is base and _begins(pieces, earlier[1])
            torn = not still and not begins
            if not torn or turn == _AGAIN:
                break
            earlier = (base, pieces)
        if torn:
            said = "It changed while it was read; what was kept of it may be a mix."
            self._problem(ProblemKind.CHANGED, source, said)
        path, raw = as_text(source.path)
        home, raw_home = as_text(str(source.home.path))
        return File(
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

    def _bases(self, source: Source, before: Version | None) -> Iterator[Version]:
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

    def _base(self, file: BinaryIO, status: os.stat_result, versions: Iterator[Version]) -> tuple[Pieces | None, int]:
        """The version that it still begins with, every byte of it, and how long that is."""
        located = self._catalogue.located
        for version in versions:
            if version.torn or not 0 < version.size <= status.st_size or not self._known.issuperset(version.pieces):
                continue
            places = [located.get(one) for one in version.pieces]
            if all(
                place is not None and sha256(file.read(place.length)).hexdigest() == hash_
                for place, hash_ in zip(places, version.pieces, strict=True)
            ):
                self._relied.update(place.pack for place in places if place is not None)
                return version.pieces, version.size
            file.seek(0)
        return None, 0

    def _pieces(
        self, file: BinaryIO, start: int, stop: int, packing: Packing, teaching: training.Teaching
    ) -> tuple[tuple[str, ...], int]:
        """The pieces from `start` on to what was its end when it was opened, and how long it is with them."""
        file.seek(start)
        cut = Cutting()
        hashes: list[str] = []
        at = start
        while at < stop and (data := file.read(min(_READ, stop - at))):
            at += len(data)
            teaching.hear(data)
            hashes += [self._piece(one, packing) for one in cut.more(data)]
        hashes += [self._piece(one, packing) for one in cut.rest()]
        self._read += at - start
        return tuple(hashes), at

    def _piece(self, data: bytes, packing: Packing) -> str:
        piece = Piece.of(data)
        if piece.hash not in self._known:
            self._known.add(piece.hash)
            packing.add(piece)
        elif (place := self._catalogue.located.get(piece.hash)) is not None:
            self._relied.add(place.pack)
        return piece.hash

    def _miss(self, homes: Sequence[Home], found: Sequence[Source]) -> None:
        """Note what was there last time and is not any more; what may not be looked at is not gone for that."""
        here = {(str(source.home.path), source.path) for source in found}
        looked = {str(home.path) for home in homes}
        for (machine, home, path), versions in self._catalogue.versions.items():
            if machine != self._machine.id or home not in looked or (home, path) in here or versions[-1].gone:
                continue
            if _is_gone(Path(home, path)):
                text, raw = as_text(path)
                home_text, raw_home = as_text(home)
                self._rows.append(Gone(home_text, text, raw_home, raw))
                self._counts["gone"] += 1

    def _status(self, source: Source) -> os.stat_result | None:
        """What the system tells of a file; None where that is nothing to keep."""
        try:
            status = os.lstat(source.file)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(ProblemKind.UNREADABLE, source, f"It cannot be looked at: {error.strerror or error}.")
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _problem(self, kind: ProblemKind, source: Source, said: str) -> None:
        self._problems.append(Problem(kind, Place(str(source.file)), said))


def _begins(pieces: Sequence[str], earlier: Sequence[str]) -> bool:
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


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
