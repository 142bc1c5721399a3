"""Writing packs: pieces gathered into frames, compressed beside the reading, put in place only when they are safe."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import zstandard
from msgspec.structs import replace

from threadline.keep import durable
from threadline.keep.pack import Frame, table, written
from threadline.keep.pieces import Piece
from threadline.keep.store import Store

FRAME, PACK, SEALED = 16 * 1024 * 1024, 256 * 1024 * 1024, 32 * 1024 * 1024
"""How much a frame holds, and how large a pack grows, in bytes; one that is sealed is only read whole."""
LEVEL = 9
SMALL = 256 * 1024
"""A frame with less is written with the dictionary: it has too little to learn from itself."""


class Packing:
    """Writes pieces into a keep's packs; use it in a `with` statement. What is not finished leaves nothing behind.

    `done` are the packs that are in their place, `writer` is the machine that writes them. `dictionary` may be given
    later, too: it is for the small frames that are begun from then on.
    """

    def __init__(
        self, store: Store, writer: str, *, jobs: int = 2, dictionary: bytes | None = None, level: int = LEVEL
    ) -> None:
        self.done: list[Path] = []
        self.dictionary = dictionary
        self.tables: dict[str, bytes] = {}
        """The table of contents of each pack that is done, by its name."""
        self._store = store
        self._writer = writer
        self._jobs = jobs
        self._level = level
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="keep")
        self._waiting: deque[tuple[Frame, Future[bytes]]] = deque()
        """The frames under way, whose place is not known yet."""
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

    def add(self, piece: Piece) -> None:
        """One more piece. It is in the keep once the pack that it is in is `done`.

        Raises:
            Unreadable: the keep cannot be written.
        """
        self._gathered.append(piece)
        self._gathered_size += len(piece.data)
        if self._gathered_size >= FRAME:
            self._send()

    def finish(self) -> None:
        """Write all that was added, and put the last pack in its place.

        Raises:
            Unreadable: the keep cannot be written.
        """
        self._send()
        self._receive(0)
        self._close()

    def _send(self) -> None:
        if not self._gathered:
            return
        pieces, size = self._gathered, self._gathered_size
        self._gathered, self._gathered_size = [], 0
        dictionary = self.dictionary if size < SMALL else None
        named = sha256(dictionary).hexdigest() if dictionary is not None else None
        frame = Frame(0, 0, size, tuple((piece.hash, len(piece.data)) for piece in pieces), named)
        # Joined here, so that no frame under way is in memory twice.
        data = b"".join(piece.data for piece in pieces)
        self._waiting.append((frame, self._pool.submit(self._compressed, data, dictionary)))
        self._receive(self._jobs)

    def _compressed(self, data: bytes, dictionary: bytes | None) -> bytes:
        if dictionary is not None:
            known = zstandard.ZstdCompressionDict(dictionary)
            return zstandard.ZstdCompressor(level=self._level, dict_data=known, write_checksum=True).compress(data)
        # The window is the whole frame: sessions repeat what they read an hour ago. Long-distance matching on top of
        # that was measured to be slower by a quarter, and to compress worse.
        wide = zstandard.ZstdCompressionParameters.from_level(
            self._level, source_size=len(data), window_log=24, write_checksum=True
        )
        return zstandard.ZstdCompressor(compression_params=wide).compress(data)

    def _receive(self, most: int) -> None:
        """Write frames, in order, until no more than so many are under way."""
        while len(self._waiting) > most:
            frame, packed = self._waiting.popleft()
            try:
                self._write(frame, packed.result())
                if self._offset >= (SEALED if self._store.is_sealed else PACK):
                    self._close()
            except OSError as error:
                raise durable.unwritable(self._store.folder, error) from None

    def _write(self, frame: Frame, packed: bytes) -> None:
        if self._file is None:
            # What is to be sealed is never on the disk before it is.
            if self._store.is_sealed:
                self._file = BytesIO()
            else:
                self._path, self._file = durable.begun(self._store.packs, self._writer)
        self._frames.append(replace(frame, offset=self._offset, length=len(packed)))
        self._put(packed)

    def _put(self, data: bytes) -> None:
        if self._file is not None:
            durable.write(self._file, data)
            self._hash.update(data)
            self._offset += len(data)

    def _close(self) -> None:
        """End the pack: its contents, then fsync, then its name, then fsync of the folder."""
        if self._file is None:
            return
        body = table(self._frames)
        try:
            self._put(written(body))
            place = self._in_place(self._file)
        except OSError as error:
            raise durable.unwritable(self._store.folder, error) from None
        self.done.append(place)
        self.tables[place.name] = body
        self._file, self._path, self._frames, self._offset, self._hash = None, None, [], 0, sha256()

    def _in_place(self, file: BinaryIO) -> Path:
        if isinstance(file, BytesIO):
            return self._store.put(self._store.packs, self._writer, "", ".zst", file.getvalue())
        if self._path is None:
            raise TypeError("a pack that is no file has no path")
        os.fsync(file.fileno())
        file.close()
        place = self._store.packs / f"{self._hash.hexdigest()}.zst"
        self._path.replace(place)
        durable.sync(self._store.packs)
        return place

    def _abandon(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
