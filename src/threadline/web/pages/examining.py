"""Examining: the doctor's reading of everything, done by another process while pages are shown as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct

from threadline.survey.doctor import Examination

_CHILD = "from threadline.web.pages.examining import examine; examine()"
_EVERY = 4 * 1024 * 1024


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


class _Line(Struct, frozen=True, omit_defaults=True):
    done: int = 0
    total: int = 0
    found: Examination | None = None


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
                threading.Thread(target=self._follow, args=(state,), daemon=True, name="examining").start()
            return self._reading

    def _follow(self, state: str) -> None:
        """Start the other process and note what it says, until it ends."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", _CHILD, *self._homes]
        quiet = subprocess.DEVNULL
        try:
            with subprocess.Popen(  # noqa: S603 - this very program
                command, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, env=environment
            ) as child:
                for line in child.stdout or ():
                    told = msgspec.json.decode(line, type=_Line)
                    self._reading = Reading(state, told.done, told.total, told.found)
        except (OSError, ValueError, msgspec.MsgspecError):
            pass  # what it has said so far tells that it did not end well
        reading = self._reading
        if reading is not None and reading.is_at_work:
            self._reading = Reading(state, failed="The reading ended before it was done; try `threadline doctor`.")


def examine() -> None:
    """What the other process does: read the homes that it is told, and say how far it has come and what it found."""
    from threadline.archive import Archive  # noqa: PLC0415 - only there
    from threadline.find import homes as find_homes  # noqa: PLC0415 - only there
    from threadline.survey.each import cores  # noqa: PLC0415 - only there

    with suppress(OSError, AttributeError):
        os.nice(10)  # whoever looks at a page meanwhile goes first
    archive = Archive(find_homes(*sys.argv[1:]), index=False, jobs=max(1, cores() - 1), showing=_telling)
    _say(_Line(found=archive.examine()))


@contextmanager
def _telling(_label: str, total: int) -> Iterator[_Telling]:
    yield _Telling(total)


class _Telling:
    """Says how many bytes were read, now and then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = self._said = 0
        _say(_Line(0, total))

    def __call__(self, done: int) -> None:
        self._done += done
        if self._done - self._said >= _EVERY:
            self._said = self._done
            _say(_Line(self._done, self._total))


def _say(line: _Line) -> None:
    # A path may hold bytes that are no text: then it is told as well as text can.
    text = json.dumps(msgspec.to_builtins(line), ensure_ascii=False)
    sys.stdout.buffer.write(text.encode(errors="replace") + b"\n")
    sys.stdout.buffer.flush()
