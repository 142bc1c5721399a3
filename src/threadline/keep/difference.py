"""Differences between runs: what of each session was new, grew, changed or vanished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from threadline.errors import NotFound
from threadline.keep.belonging import Belonging
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.manifest import End, File, Gone, Manifest, as_path
from threadline.keep.sessions import main_of, sessions

Change = Literal["new", "grown", "changed", "gone"]
_ORDER: tuple[Change, ...] = ("new", "grown", "changed", "gone")


class RunTold(Struct, frozen=True):
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


def runs(catalogue: Catalogue, machine: str) -> list[RunTold]:
    """The runs of a machine that found something, in order."""
    found = [one for one in catalogue.manifests if one.run.machine == machine]
    return [_told(one) for one in sorted(found, key=lambda one: one.run.number)]


def between(catalogue: Catalogue, machine: str, named: Sequence[int]) -> tuple[int, int]:
    """After which run and up to which: of two that are named, from one to the other; of one, from it to the last.

    Where none is named, what the last one found. Run 0 is before the first.

    Raises:
        NotFound: there is no such run.
    """
    numbers = [one.number for one in runs(catalogue, machine)]
    if not numbers:
        raise NotFound("No run of this machine is in the keep; `threadline keep` does one, --machine names another.")
    for number in named:
        if number and number not in numbers:
            raise NotFound(f"There is no run {number}; the runs are {numbers[0]} to {numbers[-1]}.")
    if not named:
        return (numbers[-2] if len(numbers) > 1 else 0), numbers[-1]
    return min(named), numbers[-1] if len(named) == 1 else max(named)


def differences(catalogue: Catalogue, machine: str, after: int, until: int) -> list[Difference]:
    """What runs of a machine after one and up to another found, by session."""
    gathered: dict[tuple[str, str], list[tuple[Change, str, int]]] = defaultdict(list)
    belonging = Belonging(catalogue)
    # What only a list of todos tells of is no session.
    listed = {(one.home, one.id) for one in sessions(catalogue, machine=machine)}
    for home, path, change, size in _files(catalogue, machine, after, until):
        versions = catalogue.versions.get((machine, home, path))
        session = belonging.session(versions[-1]) if versions else None
        name = session if session is not None and (home, session) in listed else path
        gathered[home, name].append((change, path, size))
    made = [_made(catalogue, machine, home, name, files) for (home, name), files in gathered.items()]
    return sorted(made, key=lambda one: (_ORDER.index(one.change), one.session is None, one.path))


def _made(catalogue: Catalogue, machine: str, home: str, name: str, files: list[tuple[Change, str, int]]) -> Difference:
    main = next(((change, path) for change, path, _size in files if main_of(path) == name), None)
    is_session = name not in {path for _change, path, _size in files}
    change: Change = main[0] if main is not None else files[0][0] if not is_session else _together(files)
    if is_session and main is None and _has_main(catalogue, machine, home, name):
        change = "changed"  # its transcript is as it was: only something beside it is new, or gone
    added = sum(size for _change, _path, size in files)
    path = main[1] if main is not None else files[0][1]
    return Difference(change, name if is_session else None, path, machine, home, len(files), added)


def _together(files: list[tuple[Change, str, int]]) -> Change:
    kinds = {change for change, _path, _size in files}
    return next(iter(kinds)) if len(kinds) == 1 else "changed"


def _has_main(catalogue: Catalogue, machine: str, home: str, session: str) -> bool:
    return any((one, at) == (machine, home) and main_of(path) == session for one, at, path in catalogue.versions)


def _files(catalogue: Catalogue, machine: str, after: int, until: int) -> Iterator[tuple[str, str, Change, int]]:
    """Each file that runs found otherwise: its home and path, what became of it in all, and how much that added."""
    there: dict[tuple[str, str], bool] = {}
    wanted = (one for one in catalogue.manifests if one.run.machine == machine and after < one.run.number <= until)
    for manifest in sorted(wanted, key=lambda one: one.run.number):
        for row in manifest.rows:
            if isinstance(row, File | Gone):
                there[as_path(row.home, row.raw_home), as_path(row.path, row.raw_path)] = isinstance(row, File)
    for (home, path), is_there in there.items():
        versions = catalogue.versions.get((machine, home, path), [])
        before = next((one for one in reversed(versions) if one.run <= after), None)
        now = next((one for one in reversed(versions) if after < one.run <= until), None)
        if not is_there:
            if before is not None or now is not None:
                yield home, path, "gone", 0
        elif now is not None:
            yield home, path, *_became(before, now)


def _became(before: Version | None, now: Version) -> tuple[Change, int]:
    if before is None:
        return "new", now.size
    if now.size > before.size and list(now.pieces)[: len(before.pieces)] == list(before.pieces):
        return "grown", now.size - before.size
    return "changed", now.size


def _told(manifest: Manifest) -> RunTold:
    run = manifest.run
    end = next((row for row in reversed(manifest.rows) if isinstance(row, End)), None)
    ended, files, size = (end.ended, end.files, end.bytes) if end is not None else (run.began, 0, 0)
    return RunTold(run.number, run.machine, run.label, run.began, ended, files, size)
