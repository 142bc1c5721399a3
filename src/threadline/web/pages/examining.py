"""Examining: the doctor's reading of everything, done by a thread of its own while pages are shown as before."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from threadline import archive
from threadline.errors import Error
from threadline.survey.doctor import Examination

_LOG = logging.getLogger("threadline")
_SENTENCE = "The reading ended before it was done; try `threadline doctor`."


class Reading(Struct, frozen=True):
    """How far it has come: bytes read of how many; what was found; or why it failed.

    `state` is that of the homes when it began.
    """

    state: str
    done: int = 0
    total: int = 0
    found: Examination | None = None
    failed: str | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether it goes on."""
        return self.found is None and self.failed is None


class Examining:
    """At most one reading at a time of the same homes, and what the last one found."""

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = list(homes)
        self._lock = threading.Lock()
        self._reading: Reading | None = None

    @property
    def reading(self) -> Reading | None:
        """How the last reading stands; None where there was none."""
        return self._reading

    def begin(self, state: str) -> Reading:
        """Begin, unless it is at work; give how it stands."""
        with self._lock:
            if self._reading is None or not self._reading.is_at_work:
                self._reading = Reading(state)
                # It ends with the server, wherever it is: it only reads.
                threading.Thread(target=self._read, args=(self._reading,), daemon=True, name="examining").start()
            return self._reading

    def _read(self, begun: Reading) -> None:
        """Read everything, without the index and by this thread alone: to fork beside others is not safe."""
        try:
            every = archive.open(self._homes, index=False, jobs=1, showing=self._showing, keep=False)
            self._reading = replace(begun, found=every.examine())
        except Error as error:
            self._reading = replace(begun, failed=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, the page has to say that it is over
            _LOG.exception("threadline: reading everything failed.")
            self._reading = replace(begun, failed=_SENTENCE)

    @contextmanager
    def _showing(self, _label: str, total: int) -> Iterator[Callable[[int], None]]:
        """Notes how many bytes were read."""

        def advance(done: int) -> None:
            if self._reading is not None:
                self._reading = replace(self._reading, done=self._reading.done + done, total=total)

        yield advance
