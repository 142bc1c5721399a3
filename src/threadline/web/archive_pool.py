"""A pool of open archives, each lent to one request at a time, and a cache of figures computed from their index.

Opening an archive compares the homes with the index, which takes about fifty milliseconds for thousands of
transcripts: far more than most answers. So an archive is reused for a second. If the index turns out to be unusable,
another is built in a private temporary folder, and pages are shown all the same.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

from threadline.archive import Archive, HomePresence
from threadline.errors import Error, IndexBusy, NotFound, Unreadable
from threadline.index import DamagedIndex
from threadline.model.homes import KEEP_SOURCE
from threadline.web.errors import missing_homes_notice

if TYPE_CHECKING:
    from threadline.archive import ProgressDisplay
    from threadline.model.homes import Home

MAX_AGE_SECONDS = 1.0
"""How old an archive may be."""
_LOG = logging.getLogger("threadline")
_T = TypeVar("_T")


class _PooledArchive(Struct):
    archive: Archive
    since: float


class ArchivePool:
    """Lends archives of the same homes; `homes_now` tells those with what is only in the keep by now."""

    def __init__(
        self,
        homes: tuple[Home, ...],
        *,
        index: bool | Path = True,
        homes_now: Callable[[], tuple[Home, ...]] | None = None,
        without_keep: bool = False,
    ) -> None:
        self._homes = homes
        self._index = index
        self._homes_now = homes_now or (lambda: homes)
        self._without_keep = without_keep
        self._free: list[_PooledArchive] = []
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._is_closed = False
        self._spare: TemporaryIndex | None = None
        self._places = HomePresence(homes)

    @property
    def homes(self) -> tuple[Home, ...]:
        """The homes that are read."""
        return self._homes

    @contextmanager
    def archive(self) -> Iterator[Archive]:
        """An archive that is nobody else's meanwhile."""
        with self._lent(self._taken() or self._opened()) as lent:
            yield lent.archive

    @contextmanager
    def _lent(self, lent: _PooledArchive) -> Iterator[_PooledArchive]:
        try:
            yield lent
        except BaseException:
            lent.archive.close()  # whatever went wrong may have been its fault
            raise
        self._give_back(lent)

    def lost(self) -> str | None:
        """What to say of homes that are not there any more; None where all are.

        Raises:
            Unreadable: there is nothing else to be shown.
        """
        lost = self._places.missing()
        if not lost:
            return None
        with self._looking:
            is_kept = any(home.source == KEEP_SOURCE for home in self._homes_now())
        said = missing_homes_notice(lost, is_kept=is_kept)
        if self._places.are_all(lost) and not is_kept:
            raise Unreadable(f"{said} Put it back, or end `threadline serve` and name another with --home.")
        return said

    def ask(self, make: Callable[[Archive], _T]) -> _T:
        """What is made of an archive; where its index is of no use, it is made again of another.

        What is not found in an archive that was used before may have been written since: it is looked for in a new one.
        """
        used = self._taken()
        if used is not None:
            with suppress(NotFound):
                return self._made(make, used)
        return self._made(make, self._opened())

    def _made(self, make: Callable[[Archive], _T], lent: _PooledArchive) -> _T:
        index = self._index
        try:
            with self._lent(lent):
                return make(lent.archive)
        except Unreadable as error:
            # To fork beside threads is not safe.
            if not self._replaced(index, error, jobs=1, showing=None):
                raise
        with self.archive() as archive:
            return make(archive)

    def prepare(self, jobs: int | None = None, showing: ProgressDisplay | None = None) -> None:
        """Bring the index up to date before anybody asks, or make another where it is of no use.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is of no use, and another could not be made.
        """
        try:
            with self._archive(self._homes, jobs=jobs, showing=showing) as archive:
                archive.open_index()
        except Unreadable as error:
            if not self._replaced(self._index, error, jobs=jobs, showing=showing):
                raise

    def close(self) -> None:
        """Let go of all that is open."""
        with self._lock:
            self._is_closed = True
        self._close_free()
        if self._spare is not None:
            self._spare.remove()

    def _close_free(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for one in free:
            one.archive.close()

    def _replaced(
        self, index: bool | Path, error: Exception, *, jobs: int | None, showing: ProgressDisplay | None
    ) -> bool:
        """Whether there is another index now, since the one that was asked is of no use."""
        with self._looking:
            if self._index is not index:  # another request has seen to it meanwhile
                return True
            # Once is enough: where that cannot be written either, each page would try in vain.
            if self._spare is not None or not self._is_useless(error):
                return False
            self._spare = TemporaryIndex()
            _LOG.warning("threadline: %s", _replacement_warning(error))
            try:
                self._index = self._spare.made(self._homes_now(), jobs=jobs, showing=showing)
            except Error as also:
                _LOG.warning("threadline: %s Pages that need an index will say so.", also)
                return False
        self._close_free()
        return True

    def _is_useless(self, error: Exception) -> bool:
        """Whether it is the index that is to blame, and no transcript."""
        if isinstance(error, DamagedIndex):
            return True
        try:
            with self._archive(self._homes) as archive:
                archive.open_index()
        except Unreadable:
            return True
        except IndexBusy:
            return False
        return False

    def _archive(
        self, homes: tuple[Home, ...], *, jobs: int | None = None, showing: ProgressDisplay | None = None
    ) -> Archive:
        return Archive(
            homes,
            index=self._index,
            jobs=jobs,
            progress=showing,
            without_keep=self._without_keep,
            stale_ok=True,
        )

    def _opened(self) -> _PooledArchive:
        with self._looking:  # what a home has lost meanwhile is put back by one
            homes = self._homes_now()
        return _PooledArchive(self._archive(homes), monotonic())

    def _taken(self) -> _PooledArchive | None:
        """The one that was given back last: of two that wait, one grows old and is closed."""
        oldest = monotonic() - MAX_AGE_SECONDS
        with self._lock:
            old = [one for one in self._free if one.since < oldest]
            self._free = [one for one in self._free if one.since >= oldest]
            found = self._free.pop() if self._free else None
        for one in old:
            one.archive.close()
        return found

    def _give_back(self, lent: _PooledArchive) -> None:
        with self._lock:
            if not self._is_closed and lent.since >= monotonic() - MAX_AGE_SECONDS:
                self._free.append(lent)
                return
        lent.archive.close()


def _replacement_warning(error: Exception) -> str:
    return f"{error} Meanwhile pages use another index, built now in a temporary folder."


class TemporaryIndex:
    """Where it lies, once it was made."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def made(self, homes: Sequence[Home], *, jobs: int | None, showing: ProgressDisplay | None) -> Path:
        """Read everything, and give where the index of it lies.

        Raises:
            Unreadable: it cannot be written there either.
        """
        try:
            self._folder = Path(mkdtemp(prefix="threadline-"))  # for its owner alone, whatever the mask is
        except OSError as error:
            raise Unreadable(f"No temporary folder can be made ({error.strerror or error}).") from None
        place = self._folder / "index.sqlite"
        try:
            with Archive(homes, index=place, jobs=jobs, progress=showing) as archive:
                archive.open_index()
        except Error:
            self.remove()
            raise
        return place

    def remove(self) -> None:
        """Leave nothing behind."""
        if self._folder is not None:
            with suppress(OSError):
                rmtree(self._folder)
            self._folder = None


_Figure = TypeVar("_Figure")
_MAX_CACHED = 32
_CACHE_LOCK = threading.Lock()
_CACHE: OrderedDict[Hashable, Any] = OrderedDict()


def cached_figure(archive: Archive, name: str, make: Callable[[], _Figure], *given: Hashable) -> _Figure:
    """What `make` gives for these values; the same again as long as nothing in the homes has changed.

    It must not hold the archive or its connection, which are another's by then.
    """
    key = _cache_key(archive, name, given)
    with _CACHE_LOCK:
        if key in _CACHE:
            _CACHE.move_to_end(key)
            return cast("_Figure", _CACHE[key])
    made = make()
    with _CACHE_LOCK:
        _CACHE[key] = made
        while len(_CACHE) > _MAX_CACHED:
            _CACHE.popitem(last=False)
    return made


def _cache_key(archive: Archive, name: str, given: Hashable) -> Hashable:
    return (str(archive.index), archive.open_index().generation, name, given)
