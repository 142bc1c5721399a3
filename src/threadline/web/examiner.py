"""Read all transcripts in the background for the doctor page, and remember the last result."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline import archive
from threadline.errors import Error

if TYPE_CHECKING:
    from threadline.reports import Examination

_LOG = logging.getLogger("threadline")
_FAILURE = "The check failed before it was complete. Run `threadline doctor` to see why."


class ExaminationProgress(Struct, frozen=True):
    """An examination, running or ended: bytes read of the total, and then its result or the reason it failed.

    `generation` identifies the state of the homes when it began.
    """

    generation: str
    done: int = 0
    total: int = 0
    result: Examination | None = None
    failure: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.result is None and self.failure is None


class Examiner:
    """Runs at most one examination at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: ExaminationProgress | None = None

    @property
    def progress(self) -> ExaminationProgress | None:
        """The running examination or the last one; None if there was none yet."""
        return self._progress

    def start(self, generation: str, homes: Sequence[str]) -> ExaminationProgress:
        """Start an examination of homes unless one is running, and return the one that is running."""
        with self._lock:
            if self._progress is None or not self._progress.is_running:
                self._progress = ExaminationProgress(generation)
                # A daemon thread: it only reads, so it may end with the server at any point.
                arguments = (self._progress, list(homes))
                threading.Thread(target=self._run, args=arguments, daemon=True, name="threadline-examiner").start()
            return self._progress

    def _run(self, started: ExaminationProgress, homes: list[str]) -> None:
        """Read everything, without the index, in this thread: forking a process that has threads is not safe."""
        try:
            everything = archive.open(homes, index=False, jobs=1, progress=self._show_progress, keep=False)
            self._progress = replace(started, result=everything.examine())
        except Error as error:
            self._progress = replace(started, failure=str(error))
        except Exception:  # noqa: BLE001 - after any error, the page has to show that the examination ended
            _LOG.exception("threadline: the examination failed.")
            self._progress = replace(started, failure=_FAILURE)

    @contextmanager
    def _show_progress(self, _label: str, total: int) -> Iterator[Callable[[int], None]]:
        def advance(done: int) -> None:
            if self._progress is not None:
                self._progress = replace(self._progress, done=self._progress.done + done, total=total)

        yield advance
