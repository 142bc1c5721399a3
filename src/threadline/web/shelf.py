"""Shelf: the sessions that pages are made of, each read once and kept while it is looked at."""

from __future__ import annotations

import gc
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.errors import NotFound
from threadline.find import session_transcripts
from threadline.find.at_path import by_id
from threadline.load import read
from threadline.model.found import TranscriptKind
from threadline.web.kept import Kept

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.found import Transcript

MOST = 128 * 1024 * 1024
"""Bytes of transcripts that are kept; in memory they take several times as much."""
_COUNTED = threading.Lock()


class _Place(Struct, frozen=True):
    """What the archive calls a session, and where its main transcript lies."""

    id: str
    path: Path


class Shelf:
    """Sessions in memory: those looked at last. Whoever asks for one that is being read waits for it."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Path, Kept] = OrderedDict()
        self._places: dict[str, _Place] = {}
        self._reading: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def session(self, name: str, archive: Archive) -> Kept:
        """The session of that id, as its transcripts are now; the start of an id will do.

        Raises:
            NotFound: the archive lists none.
            Ambiguous: it lists several that begin so.
        """
        place = self._places.get(name)
        told = _version(place.path) if place is not None else None
        if place is None or told is None:  # it may have moved
            place = self._places[name] = _place(name, archive)
            told = _version(place.path)
        if told is None:
            raise NotFound("The session's transcript is not there any more; `threadline` shows what there is.")
        return self._read(place, *told)

    def _read(self, place: _Place, version: str, size: int) -> Kept:
        path = place.path
        with self._lock:
            kept = self._kept.get(path)
            if kept is not None and kept.version == version:
                self._kept.move_to_end(path)
                return kept
            reading = self._reading.setdefault(path, threading.Lock())
        with reading:
            kept = self._kept.get(path)
            if kept is not None and kept.version == version:  # another has read it meanwhile
                return kept
            with _undisturbed():
                kept = Kept(place.id, read(path, continued=False), version, size)
            with self._lock:
                self._kept[path] = kept
                self._kept.move_to_end(path)
                while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > self._most:
                    self._kept.popitem(last=False)
            return kept


def _place(name: str, archive: Archive) -> _Place:
    """Where a session lies: only what the archive lists is ever opened."""
    listed = [one for home in archive.found for one in home.transcripts if one.kind is TranscriptKind.MAIN]
    exact = min((one for one in listed if one.session == name.lower()), key=_order, default=None)
    found = exact or by_id(name, archive.found)
    if found.kind is TranscriptKind.MAIN and found.session is not None:
        return _Place(str(found.session), found.path)
    return _Place(f"agent-{found.agent}", found.path)  # one that lies beside the sessions is read as one of its own


def _order(one: Transcript) -> tuple[int, int, str]:
    """Of several transcripts of one session, the largest first: others are copies of some of it."""
    return -one.size, -one.mtime_ns, str(one.path)


def _version(path: Path) -> tuple[str, int] | None:
    """What changes whenever a transcript of the session does, and how large they are; None where it is gone."""
    try:
        own = path.stat()
        below, beside = session_transcripts(path)
    except OSError:
        return None
    digest = hashlib.blake2b(f"{own.st_size} {own.st_mtime_ns} {own.st_ino}".encode(), digest_size=9)
    for one in (*below, *beside):
        digest.update(f"\0{one.path}\0{one.size} {one.mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest(), own.st_size + sum(one.size for one in below)


class _Readers:
    many = 0


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Reading makes objects by the hundred thousand, no rings of them, all to stay: looking for rings is time lost."""
    with _COUNTED:
        _Readers.many += 1
        gc.disable()
    try:
        yield
    finally:
        with _COUNTED:
            _Readers.many -= 1
            if not _Readers.many:
                gc.freeze()
                gc.enable()
