"""Writing packs: pieces gathered into frames, compressed beside the reading, put in place only when they are safe."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import zstandard

from threadline.keep.pack import Frame, written
from threadline.keep.pieces import Piece

FRAME, PACK = 16 * 1024 * 1024, 256 * 1024 * 1024
"""How much a frame holds, and how large a pack grows, in bytes."""
LEVEL = 9
_SMALL = 256 * 1024
"""A frame with less is written with the dictionary: it has too little to learn from itself."""
TEMPORARY = ".new"


class Packing:
    """Writes pieces into packs in a folder; use it in a `with` statement. What is not finished leaves nothing behind.

    `done` are the packs that are in their place.
    """

    def __init__(self, folder: Path, *, jobs: int = 2, dictionary: bytes | None = None, level: int = LEVEL) -> None:
        self.done: list[Path] = []
        self._folder = folder
        self._jobs = jobs
        self._level = level
        self._dictionary = dictionary
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="keep")
        self._waiting: deque[tuple[list[Piece], Future[bytes]]] = deque()
        self._gathered: list[Piece] = []
        self._gathered_size = 0
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._frames: list[Frame] = []
        self._offset = 0
        self._hash = sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._abandon()

    @property
    def written(self) -> int:
        """How many bytes the packs take so far, those that are not finished included."""
        return sum(path.stat().st_size for path in self.done) + self._offset

    def add(self, piece: Piece) -> None:
        """One more piece. It is in the keep once the pack that it is in is `done`."""
        self._gathered.append(piece)
        self._gathered_size += len(piece.data)
        if self._gathered_size >= FRAME:
            self._send()

    def finish(self) -> None:
        """Write all that was added, and put the last pack in its place."""
        self._send()
        self._receive(0)
        self._close()

    def _send(self) -> None:
        if not self._gathered:
            return
        pieces, self._gathered = self._gathered, []
        small = self._gathered_size < _SMALL and self._dictionary is not None
        self._gathered_size = 0
        self._waiting.append((pieces, self._pool.submit(self._compressed, pieces, small)))
        self._receive(self._jobs)

    def _compressed(self, pieces: list[Piece], small: bool) -> bytes:
        data = b"".join(piece.data for piece in pieces)
        if small and self._dictionary is not None:
            known = zstandard.ZstdCompressionDict(self._dictionary)
            return zstandard.ZstdCompressor(level=self._level, dict_data=known, write_checksum=True).compress(data)
        # Matches far apart are found, too: sessions repeat what they read an hour ago.
        wide = zstandard.ZstdCompressionParameters.from_level(
            self._level, source_size=len(data), window_log=24, enable_ldm=len(data) > _SMALL, write_checksum=True
        )
        return zstandard.ZstdCompressor(compression_params=wide).compress(data)

    def _receive(self, most: int) -> None:
        """Write frames, in order, until no more than so many are under way."""
        while len(self._waiting) > most:
            pieces, packed = self._waiting.popleft()
            self._write(pieces, packed.result())
            if self._offset >= PACK:
                self._close()

    def _write(self, pieces: list[Piece], packed: bytes) -> None:
        if self._file is None:
            self._path = self._folder / f"{os.getpid()}-{len(self.done)}{TEMPORARY}"
            self._file = self._path.open("xb", buffering=0)
        size = sum(len(piece.data) for piece in pieces)
        small = size < _SMALL and self._dictionary is not None
        named = sha256(self._dictionary).hexdigest() if small and self._dictionary is not None else None
        inside = tuple((piece.hash, len(piece.data)) for piece in pieces)
        self._frames.append(Frame(self._offset, len(packed), size, inside, named))
        self._put(packed)

    def _put(self, data: bytes) -> None:
        if self._file is None:
            return
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        self._hash.update(data)
        self._offset += len(data)

    def _close(self) -> None:
        """End the pack: its contents, then fsync, then its name, then fsync of the folder."""
        if self._file is None or self._path is None:
            return
        self._put(written(self._frames))
        os.fsync(self._file.fileno())
        self._file.close()
        place = self._folder / f"{self._hash.hexdigest()}.zst"
        self._path.rename(place)
        sync(self._folder)
        self.done.append(place)
        self._file, self._path, self._frames, self._offset, self._hash = None, None, [], 0, sha256()

    def _abandon(self) -> None:
        if self._file is not None and self._path is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)


def sync(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
