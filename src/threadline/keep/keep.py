"""One run of `keep`: store what is new or has grown in the homes, then write the manifest.

The manifest is written last, so nothing refers to bytes that are not on disk. A file that changes while it is read is
read again, and marked as torn if it keeps changing.

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

from threadline import home_files
from threadline.errors import Unreadable
from threadline.keep import forget, repair
from threadline.keep.cache import open_damaged_packs
from threadline.keep.catalogue import Catalogue, PieceList, Version
from threadline.keep.machine import MACHINE_FILE, LastRun, Machine, save_last_run, save_machine_id
from threadline.keep.manifest import AnyRow, EndRow, FileRow, GoneRow, format_timestamp, path_to_json
from threadline.keep.pack import Chunker, DictionaryTrainer, PackWriter, Piece
from threadline.keep.sessions import OmittedFile, SourceFile, find_source_files, list_left_out, own_files
from threadline.model.homes import Home
from threadline.model.places import Place, Problem, ProblemKind

_READ_SIZE = 1024 * 1024
_MAX_RETRIES = 2
"""How often a file is read again if it changes while it is read, and a run is repeated if another removes its packs."""


class KeepResult(Struct, frozen=True):
    """What a run did: the files it saw, how many were new, grown, changed or gone, and how many bytes that took.

    `left_out` lists the files in the homes that it did not store.
    """

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
    left_out: tuple[OmittedFile, ...] = ()


def run_keep(
    catalogue: Catalogue,
    homes: Sequence[Home],
    machine: Machine,
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> KeepResult:
    """Keep what is new in these homes. Nothing that was kept before is changed.

    The catalogue is refreshed under the lock, and contains the new run afterwards.

    Raises:
        IndexBusy: another process of this machine is writing.
        Unreadable: the keep cannot be written, or is no longer encrypted for the same keys.
    """
    store = catalogue.store
    if store.problem is not None:
        repair.repair_keep_info(store, machine)
    machine.require_known_recipients(store.folder, store.info.id, store.info.recipients)
    with store.adding(machine.id):
        store.repair_readme()
        catalogue.refresh()
        for attempt in range(_MAX_RETRIES + 1):
            run = _KeepRun(catalogue, machine, jobs, progress or (lambda _done: None))
            result = run.run(homes, planned if attempt == 0 else None, now)
            if result is not None:
                break
            catalogue.reload_locations()
    if result is None:
        raise Unreadable(f"Other processes keep removing packs from {str(store.folder)!r}. Try again later.")
    if catalogue.forgotten.rows:
        forget.finish_forgetting(catalogue, machine)
    ended = LastRun(store.info.id, format_timestamp(now()), store.info.recipients)
    save_last_run(machine.folder, store.folder, ended)
    return result


class _KeepRun:
    def __init__(self, catalogue: Catalogue, machine: Machine, jobs: int, progress: Callable[[int], None]) -> None:
        self._store = catalogue.store
        self._machine = machine
        self._jobs = jobs
        self._progress = progress
        self._catalogue = catalogue
        self._damaged_packs = open_damaged_packs(machine.folder, self._store.info.id)
        self._stored = catalogue.pieces_outside(
            self._damaged_packs.packs if self._damaged_packs is not None else frozenset()
        )
        # Noted now: a pack that is found damaged may be replaced by the run, which is worth reporting nevertheless.
        self._initial_problems = catalogue.problems
        self._required_packs: set[Path] = set()
        """The packs that must still exist when the run ends: pieces in them were not written again."""
        self._versions_by_name: dict[str, list[Version]] | None = None
        self._problems: list[Problem] = []
        self._rows: list[AnyRow] = []
        self._counts = dict.fromkeys(("new", "grown", "changed", "gone"), 0)
        self._bytes_read = 0

    def run(
        self, homes: Sequence[Home], planned: Callable[[int], None] | None, now: Callable[[], datetime]
    ) -> KeepResult | None:
        """Keep what is new, and write the manifest last; return None if packs were removed meanwhile."""
        began = now()
        last = self._catalogue.last_run(self._machine.id)
        candidates = [source for home in homes for source in find_source_files(home, self._problems)]
        candidates += own_files()
        sources = [source for source in candidates if not self._catalogue.forgotten.has(source.path)]
        readable = [(source, status) for source in sources if (status := self._stat_source(source)) is not None]
        changed = [(source, status) for source, status in readable if not self._is_kept(source, status)]
        if planned is not None:
            planned(sum(status.st_size for _source, status in changed))
        stored = self._store_files(changed)
        if any(not pack.exists() for pack in self._required_packs):
            return None
        self._note_gone_files(homes, sources)
        size = sum(status.st_size for _source, status in readable)
        run = self._catalogue.next_run(
            self._machine.id, self._machine.label, format_timestamp(began), [str(home.path) for home in homes]
        )
        if self._rows or (last is None and not self._store.is_key_missing):
            end = EndRow(format_timestamp(now()), len(readable), size)
            self._catalogue.add_run(*self._store.put_run([run, *self._rows, end]))
        self._catalogue.save_cache()
        return KeepResult(
            run.number,
            len(readable),
            **self._counts,
            bytes=size,
            read=self._bytes_read,
            stored=stored,
            problems=(*self._problems, *self._keep_problems()),
            left_out=list_left_out(self._catalogue.forgotten, candidates, self._problems),
        )

    def _keep_problems(self) -> list[Problem]:
        """What is wrong with the keep itself."""
        messages = list(dict.fromkeys((*self._initial_problems, *self._catalogue.problems)))
        if self._catalogue.unread:
            messages.append(
                f"{self._catalogue.unread:,} files of the keep cannot be read without its key and are not in this"
                " machine's cache, so some content may be stored twice. `threadline keep pack` with the key fixes that."
            )
        place = Place(str(self._store.folder))
        return [Problem(ProblemKind.UNREADABLE, place, message) for message in messages]

    def _store_files(self, changed: Sequence[tuple[SourceFile, os.stat_result]]) -> int:
        """Store these files; return the size of the new packs. Rows are added, but no manifest is written yet."""
        if not changed:
            return 0
        trainer = DictionaryTrainer(self._store, self._machine.id)
        with PackWriter(self._store, self._machine.id, jobs=self._jobs, dictionary=trainer.dictionary) as writer:
            for source, status in changed:
                self._store_file(source, status, writer, trainer)
            writer.dictionary = trainer.train()
        trainer.ensure_stored()
        self._catalogue.add_packs(writer.tables)
        if self._damaged_packs is not None:  # a new pack may have the name of a damaged one, and has replaced it
            self._damaged_packs.update((path.name for path in writer.finished), ())
        return writer.finished_size

    def _previous_version(self, source: SourceFile) -> Version | None:
        versions = self._catalogue.versions.get((self._machine.id, str(source.home.path), source.path))
        return versions[-1] if versions else None

    def _is_kept(self, source: SourceFile, status: os.stat_result) -> bool:
        """Whether a file is unchanged since it was kept, and can be restored."""
        previous = self._previous_version(source)
        return (
            previous is not None
            and previous.gone is None
            and not previous.torn
            and (previous.size, previous.mtime_ns, previous.mode, previous.ctime_ns)
            == (status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode), status.st_ctime_ns)
            and self._stored.issuperset(previous.pieces)
        )

    def _store_file(
        self, source: SourceFile, status: os.stat_result, writer: PackWriter, trainer: DictionaryTrainer
    ) -> None:
        """Store one file. A file that cannot be read is a problem, and the run continues."""
        previous = self._previous_version(source)
        try:
            row = self._read_file(source, previous, writer, trainer)
        except OSError as error:
            message = f"It cannot be read and was not stored: {error.strerror or error}."
            self._add_problem(ProblemKind.UNREADABLE, source, message)
            return
        finally:
            self._progress(status.st_size)
        has_grown = previous is not None and row.base == previous.pieces.id and row.pieces
        self._counts["new" if previous is None else "grown" if has_grown else "changed"] += 1
        self._rows.append(row)

    def _read_file(
        self, source: SourceFile, previous: Version | None, writer: PackWriter, trainer: DictionaryTrainer
    ) -> FileRow:
        """Read a file and store its new pieces. While it changes, read it again, up to a limit."""
        earlier: tuple[PieceList | None, tuple[str, ...]] | None = None
        for attempt in range(_MAX_RETRIES + 1):
            with home_files.open_unbuffered(source.file, home=source.home.path) as file:
                status = os.fstat(file.fileno())
                base, start = self._find_base(file, status, self._base_candidates(source, previous))
                pieces, size = self._read_pieces(file, start, status.st_size, writer, trainer)
                after = os.fstat(file.fileno())
            # A file that is written while it is read may mix two states, unless it reads the same twice.
            is_unchanged = (after.st_mtime_ns, after.st_ctime_ns, after.st_size, size) == (
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_size,
                status.st_size,
            )
            reads_same = earlier is not None and earlier[0] is base and _has_same_start(pieces, earlier[1])
            torn = not is_unchanged and not reads_same
            if not torn or attempt == _MAX_RETRIES:
                break
            earlier = (base, pieces)
        if torn:
            message = "It changed while it was read. The stored version may mix two states."
            self._add_problem(ProblemKind.CHANGED, source, message)
        path, raw_path = path_to_json(source.path)
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
            raw_path,
            torn,
        )

    def _base_candidates(self, source: SourceFile, previous: Version | None) -> Iterator[Version]:
        """Versions that a file may continue: its previous one, or else the longest of its name, if it was moved."""
        if previous is not None:
            yield previous
            return
        if self._versions_by_name is None:
            self._versions_by_name = {}
            for version in self._catalogue.newest():
                self._versions_by_name.setdefault(version.path.rsplit("/", 1)[-1], []).append(version)
        same_name = self._versions_by_name.get(source.path.rsplit("/", 1)[-1], ())
        yield from sorted(same_name, key=lambda version: version.size, reverse=True)[:2]

    def _find_base(
        self, file: BinaryIO, status: os.stat_result, versions: Iterator[Version]
    ) -> tuple[PieceList | None, int]:
        """The version that the file starts with, compared byte for byte, and its size."""
        located = self._catalogue.located
        for version in versions:
            if version.torn or not 0 < version.size <= status.st_size or not self._stored.issuperset(version.pieces):
                continue
            locations = [located.get(hash_) for hash_ in version.pieces]
            is_same = all(
                location is not None and sha256(file.read(location.length)).hexdigest() == hash_
                for location, hash_ in zip(locations, version.pieces, strict=True)
            )
            if is_same and file.tell() == version.size:  # a merged keep may claim any size
                self._required_packs.update(location.pack for location in locations if location is not None)
                return version.pieces, version.size
            file.seek(0)
        return None, 0

    def _read_pieces(
        self, file: BinaryIO, start: int, stop: int, writer: PackWriter, trainer: DictionaryTrainer
    ) -> tuple[tuple[str, ...], int]:
        """The pieces from `start` to `stop`, the file's size when it was opened, and where reading ended."""
        file.seek(start)
        chunker = Chunker()
        hashes: list[str] = []
        at = start
        while at < stop and (data := file.read(min(_READ_SIZE, stop - at))):
            at += len(data)
            trainer.sample(data)
            hashes += [self._store_piece(piece, writer) for piece in chunker.feed(data)]
        hashes += [self._store_piece(piece, writer) for piece in chunker.finish()]
        self._bytes_read += at - start
        return tuple(hashes), at

    def _store_piece(self, data: bytes, writer: PackWriter) -> str:
        piece = Piece.of(data)
        if piece.hash not in self._stored:
            self._stored.add(piece.hash)
            writer.add(piece)
        elif (location := self._catalogue.located.get(piece.hash)) is not None:
            self._required_packs.add(location.pack)
        return piece.hash

    def _note_gone_files(self, homes: Sequence[Home], sources: Sequence[SourceFile]) -> None:
        """Add rows for files that the last run saw and that are gone. A file that cannot be accessed is not gone."""
        existing = {(str(source.home.path), source.path) for source in sources}
        scanned = {str(home.path) for home in homes}
        for (machine, home, path), versions in self._catalogue.versions.items():
            if machine != self._machine.id or home not in scanned or (home, path) in existing or versions[-1].gone:
                continue
            if _is_gone(Path(home, path)):
                text, raw_path = path_to_json(path)
                home_text, raw_home = path_to_json(home)
                self._rows.append(GoneRow(home_text, text, raw_home, raw_path))
                self._counts["gone"] += 1

    def _stat_source(self, source: SourceFile) -> os.stat_result | None:
        """The status of a regular file; None for anything else."""
        try:
            status = os.lstat(source.file)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._add_problem(ProblemKind.UNREADABLE, source, f"It cannot be accessed: {error.strerror or error}.")
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _add_problem(self, kind: ProblemKind, source: SourceFile, message: str) -> None:
        self._problems.append(Problem(kind, Place(str(source.file)), message))


def _has_same_start(pieces: Sequence[str], earlier: Sequence[str]) -> bool:
    """Whether a file starts as it did before; its last piece may have grown."""
    return len(pieces) >= len(earlier) and tuple(pieces[: max(len(earlier) - 1, 0)]) == tuple(earlier[:-1])


def _is_gone(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


_MAX_COMPARED_FILES = 500
"""How many files are compared: the ctime of one file says enough, and some have grown since."""


def recognise_machine(catalogue: Catalogue, machine: Machine, homes: Sequence[Home]) -> tuple[Machine, str | None]:
    """The machine under the id with which it kept these homes before, and a message if there is something to say.

    It is the same machine if the files have the ctimes that were kept: those cannot be copied to another machine. Only
    an id that has not kept anything yet is replaced.

    Raises:
        Unreadable: the id cannot be saved.
    """
    if machine.folder is None or catalogue.last_run(machine.id) is not None or machine.has_completed_run:
        return machine, None
    paths = {os.fspath(home.path) for home in homes}
    candidates: dict[str, list[Version]] = {}
    for version in catalogue.newest():
        if version.label == machine.label and version.home in paths:
            candidates.setdefault(version.machine, []).append(version)
    by_last_run = sorted(candidates, key=lambda id_: _last_run_start(catalogue, id_), reverse=True)
    same = next((id_ for id_ in by_last_run if _are_mostly_unchanged(candidates[id_])), None)
    if same is not None:
        save_machine_id(machine.folder, same)
        return replace(machine, id=same), f"This machine's id was lost. Continuing as {same}, which stored these files."
    if by_last_run:
        other = by_last_run[0]
        return machine, (
            f"Another machine named {machine.label!r} ({other}) stored {candidates[other][0].home!r}, but other files."
            f" This machine's id is {machine.id}. If it is the same machine, write {other} into"
            f" {str(machine.folder / MACHINE_FILE)!r}."
        )
    return machine, None


def _are_mostly_unchanged(versions: list[Version]) -> bool:
    """Whether most of the files that still exist are as they were kept."""
    results = list(islice(_compare_files(versions), _MAX_COMPARED_FILES))
    return bool(results) and 2 * sum(results) >= len(results)


def _compare_files(versions: list[Version]) -> Iterator[bool]:
    for version in versions:
        try:
            status = os.lstat(os.path.join(version.home, version.path))  # noqa: PTH118 - there may be 100,000
        except (OSError, ValueError):
            continue
        kept = (version.size, version.mtime_ns, version.ctime_ns)
        yield version.ctime_ns != 0 and kept == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _last_run_start(catalogue: Catalogue, machine: str) -> str:
    last = catalogue.last_run(machine)
    return last.run.began if last is not None else ""
