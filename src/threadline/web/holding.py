"""Holding: archives that are open and up to date, each lent to one request at a time.

To open one means to compare the homes with the index, which takes some fifty milliseconds for thousands of transcripts:
far more than most answers. So an archive is used again for a second, and by then whoever waits for news has asked anew.
Where the index turns out to be of no use, another one takes its place: pages are shown all the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from threadline.archive import Standing
from threadline.archive.faults import FAULTS, is_of_index
from threadline.errors import Error, IndexBusy, NotFound, Unreadable
from threadline.model.kept import KEEP
from threadline.survey.lost import Places
from threadline.web.lost import sentence
from threadline.web.spare import Spare

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.archive import Showing
    from threadline.model.found import Home

SECONDS = 1.0
"""How old an archive may be."""
_LOG = logging.getLogger("threadline")
_T = TypeVar("_T")


class _Open(Struct):
    archive: Standing
    since: float


class Holding:
    """Lends archives of the same homes; `homes_now` tells those with what is only in the keep by now."""

    def __init__(
        self,
        homes: tuple[Home, ...],
        *,
        index: bool | Path = True,
        homes_now: Callable[[], tuple[Home, ...]] | None = None,
        apart: bool = False,
    ) -> None:
        self._homes = homes
        self._index = index
        self._homes_now = homes_now or (lambda: homes)
        self._apart = apart
        self._free: list[_Open] = []
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._is_closed = False
        self._spare: Spare | None = None
        self._places = Places(homes)

    @property
    def homes(self) -> tuple[Home, ...]:
        """The homes that are read."""
        return self._homes

    @contextmanager
    def archive(self) -> Iterator[Standing]:
        """An archive that is nobody else's meanwhile."""
        with self._lent(self._taken() or self._opened()) as lent:
            yield lent.archive

    @contextmanager
    def _lent(self, lent: _Open) -> Iterator[_Open]:
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
        lost = self._places.lost()
        if not lost:
            return None
        with self._looking:
            is_kept = any(home.source == KEEP for home in self._homes_now())
        said = sentence(lost, is_kept=is_kept)
        if self._places.are_all(lost) and not is_kept:
            raise Unreadable(f"{said} Put it back, or end `threadline serve` and name another with --home.")
        return said

    def ask(self, make: Callable[[Standing], _T]) -> _T:
        """What is made of an archive; where its index is of no use, it is made again of another.

        What is not found in an archive that was used before may have been written since: it is looked for in a new one.
        """
        used = self._taken()
        if used is not None:
            with suppress(NotFound):
                return self._made(make, used)
        return self._made(make, self._opened())

    def _made(self, make: Callable[[Standing], _T], lent: _Open) -> _T:
        index = self._index
        try:
            with self._lent(lent):
                return make(lent.archive)
        except FAULTS as error:
            # To fork beside threads is not safe.
            if not self._replaced(index, error, jobs=1, showing=None):
                raise
        with self.archive() as archive:
            return make(archive)

    def prepare(self, jobs: int | None = None, showing: Showing | None = None) -> None:
        """Bring the index up to date before anybody asks, or make another where it is of no use.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is of no use, and another could not be made.
        """
        try:
            with Standing(self._homes, index=self._index, apart=self._apart, jobs=jobs, showing=showing) as archive:
                archive.prepare()
        except FAULTS as error:
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

    def _replaced(self, index: bool | Path, error: Exception, *, jobs: int | None, showing: Showing | None) -> bool:
        """Whether there is another index now, since the one that was asked is of no use."""
        with self._looking:
            if self._index is not index:  # another request has seen to it meanwhile
                return True
            # Once is enough: where that cannot be written either, each page would try in vain.
            if self._spare is not None or not self._is_useless(error):
                return False
            self._spare = Spare()
            _LOG.warning("threadline: %s", _told(error))
            try:
                self._index = self._spare.made(self._homes_now(), jobs=jobs, showing=showing)
            except Error as also:
                _LOG.warning("threadline: %s Pages that need an index will say so.", also)
                return False
        self._close_free()
        return True

    def _is_useless(self, error: Exception) -> bool:
        """Whether it is the index that is to blame, and no transcript."""
        if not isinstance(error, Unreadable):
            return is_of_index(error)
        try:
            with Standing(self._homes, index=self._index, apart=self._apart) as archive:
                archive.prepare()
        except Unreadable:
            return True
        except (IndexBusy, *FAULTS):
            return False
        return False

    def _opened(self) -> _Open:
        with self._looking:  # what a home has lost meanwhile is put back by one
            homes = self._homes_now()
        return _Open(Standing(homes, index=self._index, apart=self._apart), monotonic())

    def _taken(self) -> _Open | None:
        """The one that was given back last: of two that wait, one grows old and is closed."""
        oldest = monotonic() - SECONDS
        with self._lock:
            old = [one for one in self._free if one.since < oldest]
            self._free = [one for one in self._free if one.since >= oldest]
            found = self._free.pop() if self._free else None
        for one in old:
            one.archive.close()
        return found

    def _give_back(self, lent: _Open) -> None:
        with self._lock:
            if not self._is_closed and lent.since >= monotonic() - SECONDS:
                self._free.append(lent)
                return
        lent.archive.close()


def _told(error: Exception) -> str:
    said = (
        str(error)
        if isinstance(error, Unreadable)
        else f"The index is damaged ({error}); run `threadline index rebuild`."
    )
    return f"{said} Meanwhile pages use another index, made now in a temporary folder."
