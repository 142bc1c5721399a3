"""Attribute the costs of all sessions in the background, so that questions about a period need not wait.

The first call of `Archive.causes` does this as well, but takes as long as reading all transcripts. A browser or an
agent would time out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error

if TYPE_CHECKING:
    from threadline.archive.archive import Archive, ProgressDisplay

_LOG = logging.getLogger("threadline")
_MAX_BYTES = 8 * 1024 * 1024
"""How many bytes of transcripts may be read while somebody waits."""


class PreparationProgress(Struct, frozen=True):
    """Bytes read of the total."""

    done: int = 0
    total: int = 0


class InsightPreparation:
    """Runs at most one preparation at a time. `open_archive` opens an archive that displays its progress."""

    def __init__(self, open_archive: Callable[[ProgressDisplay], Archive]) -> None:
        self._open_archive = open_archive
        self._lock = threading.Lock()
        self._progress: PreparationProgress | None = None
        self._checked = ""
        self._failed = ""

    def is_stored(self, archive: Archive) -> bool:
        """Whether nothing has to be prepared. This starts nothing."""
        generation = archive.open_index().generation
        if self._progress is None and generation != self._checked and archive.unstored_insights() == 0:
            self._checked = generation
        return self._progress is None and generation == self._checked

    def pending(self, archive: Archive) -> PreparationProgress | None:
        """Return the progress of the preparation, which is started if there is much to read; None if there is not.

        If a preparation failed, the caller has to do the work itself, and report the error.
        """
        generation = archive.open_index().generation
        progress = self._progress
        if progress is not None or generation in (self._checked, self._failed):
            return progress
        size = archive.unstored_insights()
        if size <= _MAX_BYTES:
            self._checked = generation
            return None
        return self._start(generation, size)

    def _start(self, generation: str, size: int) -> PreparationProgress:
        """Start a preparation unless one is running, and return its progress."""
        with self._lock:
            if self._progress is None:
                self._progress = PreparationProgress(total=size)
                # A daemon thread: what it stores is written in transactions, so it may end with the server.
                arguments = (generation,)
                threading.Thread(target=self._run, args=arguments, daemon=True, name="threadline-insight").start()
            return self._progress

    def _run(self, generation: str) -> None:
        try:
            with self._open_archive(self._show_progress) as archive:
                archive.store_insights()
        except Error as error:
            _LOG.warning("threadline: %s", error)
            self._failed = generation
        except Exception:  # noqa: BLE001 - after any error, callers have to answer without it
            _LOG.exception("threadline: attributing costs failed.")
            self._failed = generation
        finally:
            with self._lock:
                self._progress = None

    @contextmanager
    def _show_progress(self, _label: str, total: int) -> Iterator[Callable[[int], None]]:
        with self._lock:
            if self._progress is not None:
                self._progress = replace(self._progress, done=0, total=total)

        def advance(done: int) -> None:
            with self._lock:
                if self._progress is not None:
                    self._progress = replace(self._progress, done=self._progress.done + done)

        yield advance
