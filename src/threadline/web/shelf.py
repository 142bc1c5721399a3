"""Shelf: the sessions that pages are made of, each read once and kept while it is looked at."""

from __future__ import annotations

import gc
import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.archive import Archive, Standing
from threadline.errors import Error, NotFound
from threadline.load import read
from threadline.model.found import TranscriptKind
from threadline.web.kept import Kept

if TYPE_CHECKING:
    from threadline.model.found import Transcript

MOST = 128 * 1024 * 1024
"""Bytes of transcripts that are kept; in memory they take several times as much."""
_A_WHILE = 0.5
_SHARE = 4
"""What takes longer than a while to read is read again no sooner than after so many times as long."""
_SOON = 0.3
_LOG = logging.getLogger("threadline")


class Place(Struct, frozen=True):
    """What the archive calls a session, and where its main transcript lies."""

    id: str
    path: Path


class _Read(Struct):
    """A session that was read, when, and how long that took; `again` says that it is about to be read anew."""

    kept: Kept
    at: float
    seconds: float
    again: bool = False


class Shelf:
    """Sessions in memory: those looked at last. Whoever asks for one that is being read waits for it.

    A long one that is being written is told as it was a moment ago; `changed` is called when it has been read again.
    """

    def __init__(self, most: int = MOST, changed: Callable[[str], None] = lambda _session: None) -> None:
        self._most = most
        self._changed = changed
        self._read: OrderedDict[Path, _Read] = OrderedDict()
        self._places: dict[str, Place] = {}
        self._reading: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def session(self, name: str, archive: Archive) -> Kept:
        """The session of that id, as its transcripts are now; the start of an id will do.

        Raises:
            NotFound: the archive lists none.
            Ambiguous: it lists several that begin so.
        """
        place, version, size = self._found(name, archive)
        known = self._known(place, version)
        return known if known is not None else self._now(place, version, size)

    def unread(self, name: str, archive: Archive, least: int) -> Place | None:
        """Where a session lies that has not been read in any version and is no smaller than that; None for any other.

        Raises:
            NotFound: the archive lists none.
        """
        place = self._found(name, archive)[0]
        with self._lock:
            if place.path in self._read:
                return None
        try:
            return place if place.path.stat().st_size >= least else None
        except OSError:
            return None

    def begin(self, place: Place) -> None:
        """Read a session before anybody asks for it; not at once, since a page is being sent."""
        self._later(place, _SOON)

    def _found(self, name: str, archive: Archive) -> tuple[Place, str, int]:
        place = self._places.get(name)
        told = _version(place.path) if place is not None else None
        if place is None or told is None:  # it may have moved
            place = self._places[name] = _place(name, archive)
            told = _version(place.path)
        if told is None:
            raise NotFound("The session's transcript is not there any more; `threadline` shows what there is.")
        return place, *told

    def _known(self, place: Place, version: str) -> Kept | None:
        """What is at hand and new enough."""
        with self._lock:
            found = self._read.get(place.path)
            if found is None:
                return None
            self._read.move_to_end(place.path)
            wait = found.at + _SHARE * found.seconds - monotonic()
            if found.kept.version != version:
                if found.seconds < _A_WHILE or wait <= 0:
                    return None
                if not found.again:
                    found.again = True
                    self._later(place, wait)
            return found.kept

    def _later(self, place: Place, seconds: float) -> None:
        timer = threading.Timer(seconds, self._again, (place,))
        timer.daemon = True
        timer.start()

    def _again(self, place: Place) -> None:
        told = _version(place.path)
        if told is None:
            return
        try:
            self._now(place, *told)
        except Error as error:
            _LOG.warning("threadline: %s", error)
        self._changed(place.id)

    def _now(self, place: Place, version: str, size: int) -> Kept:
        """Read it, or wait for who does."""
        path = place.path
        with self._lock:
            reading = self._reading.setdefault(path, threading.Lock())
        with reading:
            found = self._read.get(path)
            if found is not None and found.kept.version == version:
                return found.kept
            began = monotonic()
            with _undisturbed():
                kept = Kept(place.id, read(path, continued=False), version, size)
            with self._lock:
                self._read[path] = _Read(kept, monotonic(), monotonic() - began)
                self._read.move_to_end(path)
                while len(self._read) > 1 and sum(one.kept.size for one in self._read.values()) > self._most:
                    self._read.popitem(last=False)
            return kept


def _place(name: str, archive: Archive) -> Place:
    """Where a session lies: only what the archive lists is ever opened."""
    listed = [one for home in archive.found for one in home.transcripts if one.kind is TranscriptKind.MAIN]
    exact = min((one for one in listed if one.session == name.lower()), key=_order, default=None)
    if exact is None and (path := _named_inside(name, archive)) is not None:
        return Place(name, path)
    found = exact or archive.transcript(name)
    if found.kind is TranscriptKind.MAIN and found.session is not None:
        return Place(str(found.session), found.path)
    return Place(f"agent-{found.agent}", found.path)  # one that lies beside the sessions is read as one of its own


def _named_inside(name: str, archive: Archive) -> Path | None:
    """The largest transcript whose rows name that session though its path does not; only an index knows."""
    if not isinstance(archive, Standing) or not archive.is_indexed:
        return None
    return archive.named_inside(name)


def _order(one: Transcript) -> tuple[int, int, str]:
    """Of several transcripts of one session, the largest first: others are copies of some of it."""
    return -one.size, -one.mtime_ns, str(one.path)


def _version(path: Path) -> tuple[str, int] | None:
    """What changes whenever a transcript of the session does, and how large they are; None where it is gone."""
    try:
        own = path.stat()
        below, beside = Archive.transcripts_of(path)
    except OSError:
        return None
    digest = hashlib.blake2b(f"{own.st_size} {own.st_mtime_ns} {own.st_ino}".encode(), digest_size=9)
    for one in (*below, *beside):
        digest.update(f"\0{one.path}\0{one.size} {one.mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest(), own.st_size + sum(one.size for one in below)


class _Readers:
    """How many are reading."""

    lock = threading.Lock()
    many = 0


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Reading makes objects by the hundred thousand, no rings of them, all to stay: looking for rings is time lost."""
    with _Readers.lock:
        _Readers.many += 1
        gc.disable()
    try:
        yield
    finally:
        with _Readers.lock:
            _Readers.many -= 1
            if not _Readers.many:
                gc.freeze()
                gc.enable()
