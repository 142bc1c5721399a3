"""Memory: what the files of a keep tell, put by on this machine, so that each is read once; it can be thrown away."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from zlib import crc32

from threadline.keep import durable

_HEAD = struct.Struct("<HII")
_SLACK = 1024 * 1024


class Memory:
    """The tables of packs and the texts of manifests, by the names of their files, which never change.

    A keep that is sealed can be added to without its key only where this remembers what is in it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, bytes] = {}
        self._size = 0
        try:
            data = path.read_bytes()
        except OSError:
            return
        self._size = len(data)
        at = 0
        while at + _HEAD.size <= len(data):
            named, length, check = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            body = data[at : at + named + length]
            at += named + length
            if crc32(body) != check:
                self._size = 0  # the machine stopped while this was written: it is to be written anew
                break
            self._known[body[:named].decode(errors="replace")] = body[named:]

    def get(self, name: str) -> bytes | None:
        """What a file told, if it was read before."""
        return self._known.get(name)

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """All that is remembered, by the names of the files; some may not be there any more."""
        return iter(self._known.items())

    def is_there(self) -> bool:
        """Whether there is one on disk."""
        return self._size > 0

    def add(self, found: Iterable[tuple[str, bytes]], there: Iterable[str]) -> None:
        """Put by what was read; what is not `there` any more may be let go. Not being able to harms nothing."""
        new = dict(found)
        self._known |= new
        live = set(there)
        wanted = sum(len(data) for name, data in self._known.items() if name in live)
        try:
            if not self._path.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._size > 2 * wanted + _SLACK or self._size == 0:
                self._known = {name: data for name, data in self._known.items() if name in live}
                whole = b"".join(map(_record, self._known.items()))
                durable.put(self._path.parent, "memory", self._path.name, whole)
                self._size = len(whole)
            elif new:
                with self._path.open("ab") as file:
                    file.write(b"".join(map(_record, new.items())))
        except OSError:
            return


def memory_in(folder: Path | None, keep: str) -> Memory | None:
    """What is remembered in a folder of the keep with this id, if anything is to be."""
    return Memory(folder / f"{keep}.memory") if folder is not None else None


def _record(item: tuple[str, bytes]) -> bytes:
    body = item[0].encode() + item[1]
    return _HEAD.pack(len(item[0].encode()), len(item[1]), crc32(body)) + body
