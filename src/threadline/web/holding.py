"""Holding: archives that are open and up to date, each lent to one request at a time.

To open one means to compare the homes with the index, which takes some fifty milliseconds for thousands of transcripts:
far more than most answers. So an archive is used again for a second, and by then whoever waits for news has asked anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.archive import Standing

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.model.found import Home

SECONDS = 1.0
"""How old an archive may be."""


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

    @property
    def homes(self) -> tuple[Home, ...]:
        """The homes that are read."""
        return self._homes

    @contextmanager
    def archive(self) -> Iterator[Standing]:
        """An archive that is nobody else's meanwhile."""
        lent = self._taken() or self._opened()
        try:
            yield lent.archive
        except BaseException:
            lent.archive.close()  # whatever went wrong may have been its fault
            raise
        self._give_back(lent)

    def close(self) -> None:
        """Let go of all that is open."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for one in free:
            one.archive.close()

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
