"""The kept home: what only the keep still has, laid out as a Claude home under the cache, to be read like any other.

It can be deleted at any time, and is then made again. Whether it is as it should be is told by a few names and times;
only where one of them changed is the rest looked at. Nothing here is fsynced: it is a copy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error, IndexBusy, Missing, Unreadable
from threadline.find.links import real_projects
from threadline.keep.folder import ABOUT, data_folder
from threadline.keep.missing import Listed, Origin, Row, missing
from threadline.model.found import Home
from threadline.model.kept import KEEP, KeptHome, remember

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, Version
    from threadline.keep.missing import Missing as NotThere

_VERSION = 1
_NAME = 16
_GRAIN_NS = 2_000_000_000
"""The coarsest times there are come every two seconds: what changed since may have the time that was noted."""
_UNSETTLED = -1
_ROOM = 512 * 1024 * 1024
"""How many bytes are left free on the disk whatever is asked for."""
_NEW = ".new"
_STATE, _LISTING = ".state", ".listing"


class KeptHomes(Struct, frozen=True):
    """The homes that what is only in a keep is read from, and what is wrong with the keep."""

    homes: tuple[Home, ...] = ()
    problems: tuple[str, ...] = ()


class _State(Struct, frozen=True):
    """How things were when the kept homes were last brought up to date."""

    version: int
    runs: str
    homes: tuple[KeptHome, ...]
    watched: dict[str, int]
    problems: tuple[str, ...] = ()


class _Listing(Struct, frozen=True):
    """What is in the keep, as its runs say."""

    version: int
    runs: str
    listed: tuple[Listed, ...]
    problems: tuple[str, ...] = ()


class _About(Struct):
    id: str


def kept_homes(
    keep: Path,
    homes: Sequence[Home],
    cache: Path,
    *,
    only: bool = False,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> KeptHomes:
    """The homes with what these homes do not have any more, brought up to date, and put in where it was.

    With `only`, no other home's, nor another machine's. What cannot be had from the keep is told, and hides nothing.
    """
    try:
        kept = _Kept(keep, homes, cache / "kept" / _id(keep), only=only)
    except Error as error:
        return KeptHomes(problems=(str(error),))
    try:
        return kept.brought_up_to_date(planned, progress)
    except IndexBusy:
        return kept.as_it_was(f"Another threadline is putting back what only the keep {str(keep)!r} has; wait for it.")
    except Error as error:
        return kept.as_it_was(str(error))
    except OSError as error:
        return kept.as_it_was(_unusable(keep, error))


def clear(keep: Path, cache: Path) -> None:
    """Throw away the kept homes of a keep, after something was forgotten."""
    from shutil import rmtree  # noqa: PLC0415 - takes longer to load than all else here

    with suppress(Error, OSError):
        rmtree(cache / "kept" / _id(keep))


class _Kept:
    """The kept homes of one keep for one set of living homes."""

    def __init__(self, keep: Path, homes: Sequence[Home], folder: Path, *, only: bool) -> None:
        self._keep = keep
        self._living = [os.fspath(home.path) for home in homes]
        self._folder = folder
        self._only = only
        self._machine = _machine()
        set_ = _hash(*sorted(self._living), str(only), self._machine or "")
        self._state = folder / f"{set_}{_STATE}"

    def brought_up_to_date(
        self, planned: Callable[[int], None] | None, progress: Callable[[int], None] | None
    ) -> KeptHomes:
        runs = _runs(self._keep)
        known = _decoded(self._state, _State)
        if known is None or known.runs != runs or not self._is_current(known):
            known = self._renewed(runs, planned, progress)
        return _given(known)

    def as_it_was(self, problem: str) -> KeptHomes:
        """What was put back before, where no more can be: what was listed yesterday does not vanish today."""
        known = _decoded(self._state, _State)
        if known is None:
            return KeptHomes(problems=(problem,))
        there = tuple(one for one in known.homes if os.path.isdir(one.path))  # noqa: PTH112 - as below
        return _given(replace(known, homes=there, problems=(problem,)))

    def _is_current(self, known: _State) -> bool:
        return all(_time(path) == told for path, told in known.watched.items()) and all(
            os.path.isdir(one.path)  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
            for one in known.homes
        )

    def _renewed(
        self, runs: str, planned: Callable[[int], None] | None, progress: Callable[[int], None] | None
    ) -> _State:
        from threadline.keep import locking  # noqa: PLC0415 - only where something changed

        _make(self._folder)
        with locking.adding(self._folder, "kept"):
            began = time.time_ns()
            keep = _Reading(self._keep, self._folder / f"{_hash(self._machine or '')}{_LISTING}", runs)
            problems = list(keep.listing.problems)
            wanted = missing(keep.listing.listed, self._machine, self._living, only=self._only)
            todo = [(one, self._place(one)) for one in wanted]
            put = [(place, row) for one, place in todo for row in _absent(place, one.rows, whole=keep.is_new)]
            problems += _put(keep, put, {place: one for one, place in todo}, planned, progress)
            for one, place in todo:
                _take_away(place, one.rows)
            watched = {path: _settled(path, began) for one, _place in todo for path in one.watched}
            told = tuple(self._told(one, place) for one, place in todo if one.rows and place.is_dir())
            state = _State(_VERSION, runs, told, watched, tuple(problems))
            _write(self._state, msgspec.json.encode(state))
            return state

    def _place(self, one: NotThere) -> Path:
        """The folder of a kept home. What another machine's is made of depends on which living homes are read."""
        origin = one.origin
        own = () if origin.machine == self._machine else sorted(self._living)
        return self._folder / _hash(origin.machine, origin.home, *own)

    def _told(self, one: NotThere, place: Path) -> KeptHome:
        origin = one.origin
        if origin.machine != self._machine:
            return KeptHome(os.path.realpath(place), origin.home, origin.label)
        return KeptHome(os.path.realpath(place), origin.home, projects=real_projects(origin.home))


def _given(state: _State) -> KeptHomes:
    for one in state.homes:
        remember(one)
    return KeptHomes(tuple(Home(Path(one.path), KEEP) for one in state.homes), state.problems)


class _Reading:
    """What a keep holds: its newest versions from what was noted, and their bytes, for which it must be opened."""

    def __init__(self, keep: Path, noted: Path, runs: str) -> None:
        self._keep = keep
        self._opened: Catalogue | None = None
        known = _decoded(noted, _Listing)
        self.is_new = known is None or known.runs != runs
        if known is None or known.runs != runs:
            problems = (*self.catalogue.problems, *_strange(self.catalogue))
            known = _Listing(_VERSION, runs, tuple(_listed(self.catalogue)), problems)
            _write(noted, msgspec.json.encode(known))
        self.listing = known

    @property
    def catalogue(self) -> Catalogue:
        if self._opened is None:
            self._opened = _catalogue(self._keep)
        return self._opened


def _catalogue(keep: Path) -> Catalogue:
    try:
        from threadline.keep.catalogue import Catalogue  # noqa: PLC0415 - zstandard may be missing, and takes a while
    except ImportError as error:
        told = f"The keep {str(keep)!r} cannot be read without zstandard: pip install 'threadline[keep]'."
        raise Missing(told) from error
    from threadline.keep.keeping import memory_of  # noqa: PLC0415 - the same
    from threadline.keep.machine import Machine, machine_folder  # noqa: PLC0415 - the same
    from threadline.keep.store import Store  # noqa: PLC0415 - the same

    store = Store(keep)
    if store.is_locked:
        raise Unreadable(f"The keep {str(keep)!r} is encrypted and its key is not at hand; --no-keep leaves it out.")
    return Catalogue(store, memory_of(store, Machine("", "", machine_folder())))


def _listed(catalogue: Catalogue) -> Iterator[Listed]:
    by_origin: dict[tuple[str, str], list[Version]] = {}
    for version in catalogue.newest():
        by_origin.setdefault((version.machine, version.home), []).append(version)
    for (machine, home), versions in by_origin.items():
        rows = (Row(one.path, one.size, one.mtime_ns, one.pieces.id) for one in versions if _is_inside(one.path))
        yield Listed(Origin(machine, versions[-1].label, home), tuple(rows))


def _strange(catalogue: Catalogue) -> Iterator[str]:
    """What is not put back, since its name is no text or leads elsewhere."""
    many = sum(not _is_inside(version.path) for version in catalogue.newest())
    if many:
        yield f"Of the keep, {many:,} paths lead out of their home or are no text; `threadline keep restore` says more."


def _is_inside(path: str) -> bool:
    """Whether a path stays in the home, and is text: a keep may come from anywhere."""
    parts = path.split("/")
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return all(part not in {"", ".", ".."} and "\\" not in part and "\0" not in part for part in parts)


def _put(
    keep: _Reading,
    absent: Sequence[tuple[Path, Row]],
    homes: dict[Path, NotThere],
    planned: Callable[[int], None] | None,
    progress: Callable[[int], None] | None,
) -> Iterator[str]:
    """Put files where a Claude home has them; why some could not be."""
    if not absent:
        return
    from shutil import disk_usage  # noqa: PLC0415 - takes longer to load than all else here

    needed = sum(row.size for _place, row in absent)
    first = absent[0][0].parent
    free = disk_usage(first).free
    if needed > free - _ROOM:
        yield (
            f"What only the keep has would take {needed / 1e9:.1f} GB below {str(first)!r}, where {free / 1e9:.1f} GB "
            "are free; make room, or name another folder with THREADLINE_CACHE."
        )
        return
    if planned is not None:
        planned(needed)
    for place, row in sorted(absent, key=lambda one: str(one[0])):
        origin = homes[place].origin
        versions = keep.catalogue.versions.get((origin.machine, origin.home, row.path))
        try:
            if not versions:
                raise Unreadable("it is not in the keep any more.")
            _copy(keep.catalogue, versions[-1], place / row.path)
        except (Error, OSError) as error:
            yield f"{row.path} cannot be had from the keep: {error}"
        if progress is not None:
            progress(row.size)


def _copy(catalogue: Catalogue, version: Version, place: Path) -> None:
    """One file, whole or not at all, with its time."""
    _make(place.parent)
    temporary = place.with_name(f"{place.name[:80]}.{os.getpid()}{_NEW}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - a mode
            file.writelines(catalogue.data(version))
        os.utime(temporary, ns=(version.mtime_ns, version.mtime_ns))
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make(folder: Path) -> None:
    """A folder, and those above it that are not there, for its owner alone."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def _absent(place: Path, rows: dict[str, Row], *, whole: bool) -> Iterator[Row]:
    """Of what should be in a kept home, what is not; where the keep has changed, in that very version."""
    by_directory: dict[str, list[Row]] = {}
    for row in rows.values():
        by_directory.setdefault(row.path.rpartition("/")[0], []).append(row)
    for directory, some in by_directory.items():
        there = _entries(place / directory, whole=whole)
        for row in some:
            told = there.get(row.path.rpartition("/")[2])
            if told is None or (whole and told != (row.size, row.mtime_ns)):
                yield row


def _entries(directory: Path, *, whole: bool) -> dict[str, tuple[int, int]]:
    found = {}
    with suppress(OSError), os.scandir(directory) as inside:
        for entry in inside:
            status = entry.stat(follow_symlinks=False) if whole else None
            found[entry.name] = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
    return found


def _take_away(place: Path, rows: dict[str, Row]) -> None:
    """What is in a living home again, or was forgotten, leaves."""
    if not rows and not place.is_dir():
        return
    for directory, _below, names in os.walk(place, topdown=False):
        inside = os.path.relpath(directory, place).replace(os.sep, "/")
        above = "" if inside == "." else f"{inside}/"
        for name in names:
            if f"{above}{name}" not in rows:
                with suppress(OSError):
                    os.unlink(os.path.join(directory, name))  # noqa: PTH108, PTH118 - paths are text here
        with suppress(OSError):  # those that hold something stay
            os.rmdir(directory)  # noqa: PTH106 - the same


def _machine() -> str | None:
    """This machine's id, where it has one."""
    try:
        return (Path(data_folder()) / "machine").read_text(errors="replace").strip() or None
    except OSError:
        return None


def _id(keep: Path) -> str:
    try:
        return str(msgspec.json.decode((keep / ABOUT).read_bytes(), type=_About).id.replace("/", "_")[:64])
    except OSError as error:
        raise Unreadable(_unusable(keep, error)) from None
    except msgspec.MsgspecError:
        return _hash(os.path.realpath(keep))  # damaged: what else there is can still be read


def _unusable(keep: Path, error: OSError) -> str:
    return f"What only the keep {str(keep)!r} has cannot be read: {error.strerror or error}; --no-keep leaves it out."


def _runs(keep: Path) -> str:
    """The names of all manifests, which say what they hold: that none was added or taken away."""
    return _hash(*sorted(os.listdir(keep / "runs")))  # noqa: PTH208 - names are enough


def _hash(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:_NAME]


def _time(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - paths are text here
    except OSError:
        return 0


def _settled(path: str, began: int) -> int:
    told = _time(path)
    return told if told < began - _GRAIN_NS else _UNSETTLED


_Noted = TypeVar("_Noted", _State, _Listing)


def _decoded(path: Path, kind: type[_Noted]) -> _Noted | None:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.version == _VERSION else None


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}{_NEW}")
    try:
        temporary.write_bytes(data)
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
