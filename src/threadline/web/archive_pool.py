"""The pool of open archives, each lent to one request at a time, and the cache of figures computed from their index.

Opening an archive compares the homes with the index. For thousands of transcripts that takes about fifty milliseconds,
far longer than most answers. So an archive is reused.

**What is valid for how long.** An archive and every figure computed from it are valid for one state of the homes, which
the *generation* of the index identifies. Figures are stored under the generation, so a figure of an older state is
never returned. A figure of one session may be stored under the state of the files that it was computed from. An archive
is compared with the homes when it is opened; one opened more than `MAX_AGE_SECONDS` ago, or one that was in use when an
error was raised, is closed instead of being reused.

If the index turns out to be unusable, the pool builds another one in a private temporary folder, once per server.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from threadline.archive import Archive, HomePresence, InsightPreparation
from threadline.errors import Error, IndexBusy, NotFound, Unreadable
from threadline.index import DamagedIndex
from threadline.web.examiner import Examiner

if TYPE_CHECKING:
    from threadline.archive import ProgressDisplay
    from threadline.lake import LakeReader
    from threadline.model.homes import Home

MAX_AGE_SECONDS = 1.0
"""How long an archive is reused without comparing it with the homes again."""
_MAX_FIGURES = 32
_MAX_WAIT_SECONDS = 2.0
"""How long a request waits for another process. If that takes longer, the machine is busy."""
_LOG = logging.getLogger("threadline")
_T = TypeVar("_T")


_FigureKey = tuple[Hashable, str, tuple[Hashable, ...]]


class _PooledArchive(Struct):
    archive: Archive
    opened_at: float


class _ReservedFuture(Future[_T]):
    """The value of a figure that another process computes."""


class ReservedFigure(Generic[_T]):
    """A figure that is computed outside the pool. Requests for it wait for the value.

    At the end of the block without a value, or if it takes too long, they compute it themselves.
    """

    def __init__(self, pool: ArchivePool, key: _FigureKey, future: Future[_T]) -> None:
        self._pool = pool
        self._key = key
        self._future = future

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits for it."""
        return self._pool.is_awaited(self._key)

    def set(self, value: _T) -> None:
        """Store the value."""
        self._future.set_result(value)

    def __enter__(self) -> ReservedFigure[_T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._future.done():
            self._pool.drop(self._key, self._future, NotFound("The value was not computed."))


class ArchivePool:
    """Lends archives of the same homes. `reload_homes` returns the homes with what only the keep has by now.

    With `lake`, these are the sessions that have been downloaded from it.
    """

    def __init__(
        self,
        homes: tuple[Home, ...],
        *,
        index: bool | Path = True,
        reload_homes: Callable[[], tuple[Home, ...]] | None = None,
        without_keep: bool = False,
        lake: LakeReader | None = None,
    ) -> None:
        self.homes = homes
        self.lake = lake
        self.examiner = Examiner()
        # One job: forking a process that has threads is not safe.
        self.insight = InsightPreparation(lambda progress: self._archive_of(self._reload_homes(), 1, progress))
        self._index = index
        self._temporary_folder: Path | None = None
        self._is_index_replaced = False
        self._reload_homes = reload_homes or (lambda: homes)
        self._without_keep = without_keep
        self._presence = HomePresence(homes)
        self._idle: list[_PooledArchive] = []
        self._figures: OrderedDict[_FigureKey, Future[Any]] = OrderedDict()
        self._awaited = Counter[_FigureKey]()
        self._ahead = threading.Semaphore()
        self._is_closed = False
        self._changed_at = 0.0
        self._lock = threading.Lock()
        self._homes_lock = threading.Lock()  # held while homes are reloaded or the index is replaced

    @classmethod
    def of_lake(cls, lake: LakeReader) -> ArchivePool:
        """The pool of a lake, which closes the reader."""
        index = lake.folder / "index.sqlite"
        return cls((), index=index, reload_homes=lake.homes, without_keep=True, lake=lake)

    def run(self, compute: Callable[[Archive], _T]) -> _T:
        """Return what `compute` makes of an archive. It may be called twice, with another archive.

        What a reused archive does not find may have been written since, so a new one is asked. If the index is
        unusable, it is replaced.
        """
        pooled = self._take()
        while True:
            is_reused, index = pooled is not None, self._index
            try:
                with self._lend(pooled or self._open()) as archive:
                    return compute(archive)
            except NotFound:
                if not is_reused:
                    raise
            except Unreadable as error:
                # One job: forking a process that has threads is not safe.
                if not self._replace_index(index, error, jobs=1):
                    raise
            pooled = None

    @contextmanager
    def archive(self) -> Iterator[Archive]:
        """Lend an archive that no other thread uses meanwhile."""
        with self._lend(self._take() or self._open()) as archive:
            yield archive

    def cached(
        self,
        archive: Archive,
        name: str,
        compute: Callable[[], _T],
        *key: Hashable,
        state: Hashable = None,
        most: int = _MAX_FIGURES,
    ) -> _T:
        """Return a figure, computed once for each generation of the index, name and key.

        `state` identifies, instead of the generation, everything that the figure depends on. `most` is how many figures
        of this name are cached. A request for a figure that another one is computing waits for it. A figure must not
        hold the archive or its connection, which by then belong to another request.
        """
        valid_for = (str(archive.index), archive.open_index().generation) if state is None else state
        full_key = (valid_for, name, key)
        future, is_known = self._claim(full_key, most, Future())
        if is_known:
            with self._awaiting(full_key):
                wait([future], _MAX_WAIT_SECONDS if isinstance(future, _ReservedFuture) else None)
            value: _T = future.result() if future.done() and future.exception() is None else compute()
            return value
        try:
            value = compute()
        except BaseException as error:
            self.drop(full_key, future, error)
            raise
        future.set_result(value)
        return value

    def peek(self, name: str, *key: Hashable, state: Hashable) -> Any:
        """A figure that was stored under a state, if it is cached; None if it is not, or is being computed."""
        with self._lock:
            future = self._figures.get((state, name, key))
        return future.result() if future is not None and future.done() and future.exception() is None else None

    def reserve(
        self, name: str, *key: Hashable, state: Hashable, most: int = _MAX_FIGURES
    ) -> ReservedFigure[Any] | None:
        """Reserve a figure for a value that is computed elsewhere; None if it is cached, or is being computed."""
        full_key = (state, name, key)
        future, is_known = self._claim(full_key, most, _ReservedFuture())
        return None if is_known else ReservedFigure(self, full_key, future)

    def is_awaited(self, key: _FigureKey) -> bool:
        """Whether a request waits for a figure that is being computed."""
        with self._lock:
            return self._awaited[key] > 0

    def drop(self, key: _FigureKey, future: Future[Any], error: BaseException) -> None:
        """Remove a figure that could not be computed, unless it has been replaced meanwhile."""
        with self._lock:
            if self._figures.get(key) is future:
                del self._figures[key]
        future.set_exception(error)

    def _claim(self, key: _FigureKey, most: int, new: Future[Any]) -> tuple[Future[Any], bool]:
        """The future of a figure, and whether somebody computes it already. If nobody does, the caller must."""
        with self._lock:
            known = self._figures.get(key)
            future = self._figures.setdefault(key, new)
            self._figures.move_to_end(key)
            same_name = [each for each in self._figures if each[1] == key[1]]
            for oldest in same_name[:-most] or list(self._figures)[:-_MAX_FIGURES]:
                del self._figures[oldest]
            return future, known is not None

    @contextmanager
    def _awaiting(self, key: _FigureKey) -> Iterator[None]:
        with self._lock:
            self._awaited[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._awaited[key] -= 1
                if not self._awaited[key]:
                    del self._awaited[key]

    def compute_ahead(self, compute: Callable[[Archive], object]) -> None:
        """Compute a figure in the background because it will probably be requested next; only one at a time."""
        if self._ahead.acquire(blocking=False):
            threading.Thread(target=self._compute_ahead, args=(compute,), name="threadline-ahead", daemon=True).start()

    def _compute_ahead(self, compute: Callable[[Archive], object]) -> None:
        try:
            self.run(compute)
        except Exception:  # noqa: BLE001 - the request for the figure will report it
            _LOG.debug("threadline: cannot compute ahead.", exc_info=True)
        finally:
            self._ahead.release()

    def expire(self) -> None:
        """Stop reusing the archives opened so far, because the homes have changed since."""
        self._changed_at = monotonic()

    def _is_expired(self, pooled: _PooledArchive) -> bool:
        return pooled.opened_at < max(self._changed_at, monotonic() - MAX_AGE_SECONDS)

    def missing_homes_notice(self) -> str | None:
        """A sentence about homes that have disappeared; None if all are there.

        Raises:
            Unreadable: all of them have disappeared, and the keep has nothing of them.
        """
        missing = self._presence.missing()
        if not missing:
            return None
        with self._homes_lock:
            is_kept = any(home.is_kept for home in self._reload_homes())
        names = ", ".join(repr(str(home)) for home in missing)
        is_one = len(missing) == 1
        sentence = f"{'Home' if is_one else 'Homes'} {names} no longer {'exists' if is_one else 'exist'}."
        if self._presence.are_all(missing) and not is_kept:
            raise Unreadable(f"{sentence} Restore it, or restart `threadline serve` with another --home.")
        whose = "its" if is_one else "their"
        shown = f"Only {whose} sessions in the keep are shown." if is_kept else f"None of {whose} sessions are shown."
        return f"{sentence} {shown}"

    def prepare(self, jobs: int | None = None, progress: ProgressDisplay | None = None) -> None:
        """Bring the index up to date before the first request, or replace it if it is unusable.

        Raises:
            IndexBusy: another process is writing it.
            Unreadable: it is unusable, and no other one could be built.
        """
        try:
            self._prepare_index(jobs, progress)
        except Unreadable as error:
            if not self._replace_index(self._index, error, jobs=jobs, progress=progress):
                raise

    def close(self) -> None:
        """Close all archives and remove the temporary index."""
        with self._lock:
            self._is_closed = True
        self._close_idle()
        self._remove_temporary_folder()
        if self.lake is not None:
            self.lake.close()

    @contextmanager
    def _lend(self, pooled: _PooledArchive) -> Iterator[Archive]:
        try:
            yield pooled.archive
        except BaseException:
            pooled.archive.close()  # the archive may have caused the error
            raise
        with self._lock:
            if not self._is_closed and not self._is_expired(pooled):
                self._idle.append(pooled)
                return
        pooled.archive.close()

    def _take(self) -> _PooledArchive | None:
        """Take the idle archive that was returned last: then the others expire, and are closed here."""
        with self._lock:
            expired = [pooled for pooled in self._idle if self._is_expired(pooled)]
            self._idle = [pooled for pooled in self._idle if pooled not in expired]
            newest = self._idle.pop() if self._idle else None
        for pooled in expired:
            pooled.archive.close()
        return newest

    def _open(self) -> _PooledArchive:
        opened_at = monotonic()  # before the homes are listed: what changes meanwhile may be missing
        with self._homes_lock:  # only one thread reads the keep for what a home has lost
            homes = self._reload_homes()
        return _PooledArchive(self._archive_of(homes), opened_at)

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for pooled in idle:
            pooled.archive.close()

    def _prepare_index(self, jobs: int | None = None, progress: ProgressDisplay | None = None) -> None:
        with self._archive_of(self.homes, jobs, progress) as archive:
            archive.open_index()

    def _archive_of(
        self, homes: tuple[Home, ...], jobs: int | None = None, progress: ProgressDisplay | None = None
    ) -> Archive:
        return Archive(
            homes,
            index=self._index,
            jobs=jobs,
            progress=progress,
            without_keep=self._without_keep,
            stale_ok=True,
        )

    def _replace_index(
        self, index: bool | Path, error: Unreadable, *, jobs: int | None, progress: ProgressDisplay | None = None
    ) -> bool:
        """Return whether there is another index now than the one that raised the error."""
        with self._homes_lock:
            if self._index is not index:  # another request has replaced it
                return True
            if self._is_index_replaced or not self._is_unusable(error):
                return False
            self._is_index_replaced = True  # try once: if it fails, every page would try in vain
            _LOG.warning("threadline: %s Until it is repaired, pages use a new one in a temporary folder.", error)
            try:
                self._index = self._build_temporary_index(jobs, progress)
            except Error as failure:
                _LOG.warning("threadline: %s Pages that need an index will say so.", failure)
                return False
        self._close_idle()
        return True

    def _is_unusable(self, error: Unreadable) -> bool:
        """Whether the index caused the error, and not a transcript."""
        if isinstance(error, DamagedIndex):
            return True
        try:
            self._prepare_index()
        except Unreadable:
            return True
        except IndexBusy:
            return False
        return False

    def _build_temporary_index(self, jobs: int | None, progress: ProgressDisplay | None) -> Path:
        try:
            self._temporary_folder = Path(mkdtemp(prefix="threadline-"))  # private, whatever the umask is
        except OSError as error:
            raise Unreadable(f"Cannot create a temporary folder ({error.strerror or error}).") from None
        index = self._temporary_folder / "index.sqlite"
        try:
            with Archive(self._reload_homes(), index=index, jobs=jobs, progress=progress) as archive:
                archive.open_index()
        except Error:
            self._remove_temporary_folder()
            raise
        return index

    def _remove_temporary_folder(self) -> None:
        if self._temporary_folder is not None:
            with suppress(OSError):
                rmtree(self._temporary_folder)
            self._temporary_folder = None
