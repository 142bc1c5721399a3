"""Keeping: one run over homes; what is new or grew goes into packs, and the manifest says what was seen."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import BinaryIO

from msgspec import Struct

from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.machine import Machine
from threadline.keep.manifest import VERSION, AnyRow, End, File, Gone, Run
from threadline.keep.pieces import Cutting, Piece
from threadline.keep.sources import Source, sources
from threadline.keep.store import Store
from threadline.keep.writing import Packing
from threadline.model.found import Home
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind

_READ = 1024 * 1024
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_AGAIN = 2
"""How often a file that changes while it is read is read once more."""


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
    with store.alone(machine.id):
        store.sweep()
        return _Keeping(store, machine, jobs, progress or (lambda _done: None)).run(homes, planned, now)


class _Keeping:
    """One run."""

    def __init__(self, store: Store, machine: Machine, jobs: int, progress: Callable[[int], None]) -> None:
        self._store = store
        self._machine = machine
        self._jobs = jobs
        self._progress = progress
        self._catalogue = Catalogue(store)
        self._known = set(self._catalogue.located)
        self._problems: list[Problem] = []
        self._rows: list[AnyRow] = []
        self._counts = dict.fromkeys(("new", "grown", "changed", "gone"), 0)
        self._read = 0

    def run(self, homes: Sequence[Home], planned: Callable[[int], None] | None, now: Callable[[], datetime]) -> Kept:
        """Look at every file, keep what is new, and write the manifest last."""
        began = now()
        last = self._catalogue.last_run(self._machine.id)
        found = [source for home in homes for source in sources(home, self._problems)]
        changed = [(source, status) for source in found if (status := self._changed(source)) is not None]
        if planned is not None:
            planned(sum(status.st_size for _source, status in changed))
        with Packing(self._store.packs, jobs=self._jobs) as packing:
            for source, status in changed:
                self._take(source, status, packing)
        self._miss(homes, found)
        number = last.run.number + 1 if last is not None else 1
        size = sum(one.st_size for source in found if (one := _status(source)) is not None)
        if self._rows or last is None:
            run = Run(
                VERSION,
                self._machine.id,
                self._machine.label,
                number,
                last.hash if last is not None else None,
                _moment(began),
                tuple(str(home.path) for home in homes),
            )
            self._store.put_run([run, *self._rows, End(_moment(now()), len(found), size)])
        stored = sum(path.stat().st_size for path in packing.done)
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
            tuple(self._problems),
        )

    def _before(self, source: Source) -> Version | None:
        versions = self._catalogue.versions.get((self._machine.id, str(source.home.path), source.path))
        return versions[-1] if versions else None

    def _changed(self, source: Source) -> os.stat_result | None:
        """Its status, where it is not the one that was kept last."""
        status = _status(source)
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        before = self._before(source)
        same = (
            before is not None
            and before.gone is None
            and not before.torn
            and (before.size, before.mtime_ns, before.mode)
            == (status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode))
        )
        return None if same else status

    def _take(self, source: Source, status: os.stat_result, packing: Packing) -> None:
        """Keep one file; what cannot be read is a problem, and the run goes on."""
        before = self._before(source)
        try:
            row = self._kept(source, before, packing)
        except OSError as error:
            said = f"It cannot be read and was not kept: {error.strerror or error}."
            self._problems.append(Problem(ProblemKind.UNREADABLE, Place(str(source.file)), said))
            return
        finally:
            self._progress(status.st_size)
        self._counts["new" if before is None else "grown" if row.start else "changed"] += 1
        self._rows.append(row)

    def _kept(self, source: Source, before: Version | None, packing: Packing) -> File:
        for turn in range(_AGAIN + 1):
            with _opened(source) as file:
                status = os.fstat(file.fileno())
                start = self._start(file, status, before)
                pieces, size = self._pieces(file, start, status.st_size, packing)
                after = os.fstat(file.fileno())
            # What was appended meanwhile is the next run's; any other change may have mixed two versions.
            torn = size < status.st_size or (
                (after.st_mtime_ns, after.st_size) != (status.st_mtime_ns, status.st_size) and after.st_size <= size
            )
            if not torn or turn == _AGAIN:
                break
        if torn:
            said = "It changed while it was read; what was kept of it may be a mix."
            self._problems.append(Problem(ProblemKind.UNREADABLE, Place(str(source.file)), said))
        path, raw = _named(source.path)
        mode = stat.S_IMODE(status.st_mode)
        return File(str(source.home.path), path, mode, status.st_mtime_ns, size, pieces, start, raw, torn)

    def _start(self, file: BinaryIO, status: os.stat_result, before: Version | None) -> int:
        """From where on it is new: it only grew if it still begins and goes on as it did."""
        if before is None or before.torn or not before.pieces or status.st_size < before.size:
            return 0
        located = self._catalogue.located
        lengths = [located[one].length if one in located else None for one in (before.pieces[0], before.pieces[-1])]
        first, last = lengths
        if first is None or last is None:
            return 0
        for offset, length, hash_ in (
            (0, first, before.pieces[0]),
            (before.size - last, last, before.pieces[-1]),
        ):
            file.seek(offset)
            if sha256(file.read(length)).hexdigest() != hash_:
                return 0
        return before.size

    def _pieces(self, file: BinaryIO, start: int, stop: int, packing: Packing) -> tuple[tuple[str, ...], int]:
        """The pieces from `start` on to what was its end when it was opened, and how long it is with them."""
        file.seek(start)
        cut = Cutting()
        hashes: list[str] = []
        at = start
        while at < stop and (data := file.read(min(_READ, stop - at))):
            at += len(data)
            hashes += (self._piece(one, packing) for one in cut.more(data))
        hashes += (self._piece(one, packing) for one in cut.rest())
        self._read += at - start
        return tuple(hashes), at

    def _piece(self, data: bytes, packing: Packing) -> str:
        piece = Piece.of(data)
        if piece.hash not in self._known:
            self._known.add(piece.hash)
            packing.add(piece)
        return piece.hash

    def _miss(self, homes: Sequence[Home], found: Sequence[Source]) -> None:
        """Note what was there last time and is not any more."""
        here = {(str(source.home.path), source.path) for source in found}
        looked = {str(home.path) for home in homes}
        for (machine, home, path), versions in self._catalogue.versions.items():
            if machine == self._machine.id and home in looked and (home, path) not in here and not versions[-1].gone:
                self._rows.append(Gone(home, path))
                self._counts["gone"] += 1


def _opened(source: Source) -> BinaryIO:
    descriptor = os.open(source.file, _FLAGS)
    try:
        _check_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, "it is no regular file any more")


def _status(source: Source) -> os.stat_result | None:
    try:
        return os.lstat(source.file)
    except OSError:
        return None


def _named(path: str) -> tuple[str, str | None]:
    """A path as JSON can hold it, and its bytes where that is not all."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return path.encode(errors="replace").decode(), os.fsencode(path).hex()
    return path, None


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
