"""Read and write packs: pieces in zstd frames, in a file that `zstd -dc` can read, with a table of contents at the end.

Frames are compressed in threads while the next ones are read. A pack gets its name only after it is on disk. Small
frames use a dictionary trained once on the user's own lines, since they are too short to compress well alone.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec
import zstandard
from msgspec import Struct
from msgspec.structs import replace

from threadline import atomic
from threadline.errors import Unreadable
from threadline.keep.chunking import Piece
from threadline.keep.manifest import Count, Hash
from threadline.keep.store import RETIRED_SUFFIX, Store

PACK_VERSION = 1
MAX_FRAME_SIZE = 64 * 1024 * 1024
"""A frame holds no more than this, so that reading one piece never takes more memory."""
_SKIPPABLE_HEADER = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A5B
"""A skippable frame: what reads zstd passes over it."""
_TAIL = struct.Struct("<I8s")
_SIGNATURE = b"threadln"


class Frame(Struct, frozen=True, omit_defaults=True):
    """One zstd frame: where it lies, how long it is, how much is in it, and the pieces inside, in order.

    A piece is told by its SHA-256 (in hexadecimal) and its length. `dictionary` is the SHA-256 of the dictionary that
    the frame was written with, if any.
    """

    offset: Count
    length: Count
    size: Count
    pieces: tuple[tuple[Hash, Count], ...]
    dictionary: Hash | None = None


class PackContents(Struct, frozen=True):
    """What a pack holds."""

    version: int
    frames: tuple[Frame, ...]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(PackContents)


def encode_table(frames: Sequence[Frame]) -> bytes:
    """The contents of a pack as text."""
    return _encode(PackContents(PACK_VERSION, tuple(frames)))


def build_footer(body: bytes) -> bytes:
    """The skippable frame that ends a pack: its contents, their hash, their length and a sign."""
    whole = body + sha256(body).digest() + _TAIL.pack(len(body), _SIGNATURE)
    return _SKIPPABLE_HEADER.pack(_SKIPPABLE_MAGIC, len(whole)) + whole


def read_table(file: BinaryIO, name: str) -> bytes:
    """The contents of a pack, as text.

    Raises:
        Unreadable: they are cut off or damaged.
    """
    end = file.seek(0, 2)
    if end < _TAIL.size:
        raise _damaged_pack_error(name, "it is cut off")
    file.seek(end - _TAIL.size)
    length, sign = _TAIL.unpack(file.read(_TAIL.size))
    start = end - _TAIL.size - sha256().digest_size - length
    if sign != _SIGNATURE or start < 0:
        raise _damaged_pack_error(name, "it is cut off")
    file.seek(start)
    body = file.read(length)
    if sha256(body).digest() != file.read(sha256().digest_size):
        raise _damaged_pack_error(name, "its table of contents is not what was written")
    return body


def decode_table(body: bytes, name: str) -> PackContents:
    """What a pack says that it holds, of the text of its contents.

    Raises:
        Unreadable: that is no table of contents, claims what cannot be, or is of a later version.
    """
    try:
        told = _decoder.decode(body)
    except msgspec.MsgspecError:
        raise _damaged_pack_error(name, "its table of contents cannot be read") from None
    if told.version > PACK_VERSION:
        raise Unreadable(f"The pack {name!r} is of a later version ({told.version}); update threadline.")
    if any(
        frame.size > MAX_FRAME_SIZE or frame.size != sum(length for _hash, length in frame.pieces)
        for frame in told.frames
    ):
        raise _damaged_pack_error(name, "its table of contents claims what cannot be")
    return told


def read_frame(file: BinaryIO, name: str, frame: Frame, dictionary: bytes | None = None) -> bytes:
    """What a frame holds, decompressed.

    Raises:
        Unreadable: it is not what was written.
    """
    where = f"the frame at byte {frame.offset:,}"
    known = zstandard.ZstdCompressionDict(dictionary) if dictionary is not None else None
    try:
        file.seek(frame.offset)
        packed = file.read(min(frame.length, 2 * MAX_FRAME_SIZE))
        # Asked before anything is unpacked: what claims to hold more than is told could be made to fill the memory.
        if zstandard.get_frame_parameters(packed).content_size != frame.size:
            raise _damaged_pack_error(name, f"{where} does not hold the {frame.size:,} bytes that are told")
        data = zstandard.ZstdDecompressor(dict_data=known).decompress(packed, max_output_size=frame.size)
    except OSError as error:
        raise Unreadable(f"The pack {name!r} cannot be read: {error.strerror or error}.") from None
    except (zstandard.ZstdError, MemoryError) as error:
        raise _damaged_pack_error(name, f"{where} cannot be unpacked ({error})") from None
    if len(data) != frame.size:
        raise _damaged_pack_error(name, f"{where} holds {len(data):,} bytes, not {frame.size:,}")
    return data


def split_frame(frame: Frame, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The pieces of a frame: the hash that each should have, and its bytes."""
    at = 0
    for digest, length in frame.pieces:
        yield digest, data[at : at + length]
        at += length


def _damaged_pack_error(name: str, what: str) -> Unreadable:
    return Unreadable(f"The pack {name!r} is damaged: {what}; `threadline keep verify` says what it touches.")


FRAME_SIZE, PACK_SIZE, ENCRYPTED_PACK_SIZE = 16 * 1024 * 1024, 256 * 1024 * 1024, 32 * 1024 * 1024
"""How much a frame holds, and how large a pack grows, in bytes; one that is sealed is only read whole."""
COMPRESSION_LEVEL = 9
SMALL_FRAME_SIZE = 256 * 1024
"""A frame with less is written with the dictionary: it has too little to learn from itself."""


class PackWriter:
    """Writes pieces into a keep's packs; use it in a `with` statement. What is not finished leaves nothing behind.

    `done` are the packs that are in their place, `writer` is the machine that writes them. `dictionary` may be given
    later, too: it is for the small frames that are begun from then on.
    """

    def __init__(
        self,
        store: Store,
        writer: str,
        *,
        jobs: int = 2,
        dictionary: bytes | None = None,
        level: int = COMPRESSION_LEVEL,
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
        if self._gathered_size >= FRAME_SIZE:
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
        dictionary = self.dictionary if size < SMALL_FRAME_SIZE else None
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
                if self._offset >= (ENCRYPTED_PACK_SIZE if self._store.is_encrypted else PACK_SIZE):
                    self._close()
            except OSError as error:
                raise atomic.keep_write_error(self._store.folder, error) from None

    def _write(self, frame: Frame, packed: bytes) -> None:
        if self._file is None:
            # What is to be sealed is never on the disk before it is.
            if self._store.is_encrypted:
                self._file = BytesIO()
            else:
                self._path, self._file = atomic.create_temporary_file(self._store.packs, self._writer)
        self._frames.append(replace(frame, offset=self._offset, length=len(packed)))
        self._put(packed)

    def _put(self, data: bytes) -> None:
        if self._file is not None:
            atomic.write_all(self._file, data)
            self._hash.update(data)
            self._offset += len(data)

    def _close(self) -> None:
        """End the pack: its contents, then fsync, then its name, then fsync of the folder."""
        if self._file is None:
            return
        body = encode_table(self._frames)
        try:
            self._put(build_footer(body))
            place = self._in_place(self._file)
        except OSError as error:
            raise atomic.keep_write_error(self._store.folder, error) from None
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
        atomic.sync_folder(self._store.packs)
        return place

    def _abandon(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


_DICTIONARY_SIZE = 48 * 1024
_MIN_SAMPLE_SIZE, _MAX_SAMPLE_SIZE = 256 * 1024, 5 * 1024 * 1024
"""From how many bytes of lines on a dictionary can be learned, and how many are listened to."""
_MAX_SAMPLE_LINE = 4 * 1024
_SAMPLE_HEAD_SIZE = 128 * 1024
"""How much of what is read at a time is listened to once there would be enough: all files are to have a say."""
_SAMPLE_EVERY = 7
"""One line in so many is listened to: neighbours are alike."""


class DictionaryTrainer:
    """The dictionary of a keep: the one that it has, or one that is learned from what is read, once."""

    def __init__(self, store: Store, writer: str) -> None:
        self._store = store
        self._writer = writer
        self._lines: list[bytes | bytearray | memoryview[int]] = []
        self._heard = 0
        files = [path for path in store.dictionary_files() if not path.name.endswith(RETIRED_SUFFIX)]
        self._done = bool(files)
        self.dictionary: bytes | None = None
        if files and not store.is_key_missing:
            try:
                self.dictionary = store.read(files[0])
            except Unreadable:
                self.dictionary = None  # frames do without; `verify` tells of it

    def hear(self, data: bytes) -> None:
        """Listen to what is read, until that is enough."""
        if self._done or self._heard >= _MAX_SAMPLE_SIZE:
            return
        lines = [
            line[:_MAX_SAMPLE_LINE]
            for line in (data if self._heard < _MIN_SAMPLE_SIZE else data[:_SAMPLE_HEAD_SIZE]).split(b"\n")[
                1:-1:_SAMPLE_EVERY
            ]
            if line
        ]
        self._lines += lines
        self._heard += sum(map(len, lines))

    def train(self) -> bytes | None:
        """The dictionary, put into the keep where it is new; None where there was too little to learn from.

        Raises:
            Unreadable: the keep cannot be written.
        """
        if not self._done and self._heard >= _MIN_SAMPLE_SIZE:
            self._done = True
            try:
                self.dictionary = zstandard.train_dictionary(_DICTIONARY_SIZE, self._lines).as_bytes()
            except zstandard.ZstdError:
                return None
            self._store.put_dictionary(self._writer, self.dictionary)
        self._lines = []
        return self.dictionary

    def ensure_stored(self) -> None:
        """Make sure that the dictionary that was used is there: another machine may have taken it away meanwhile."""
        if self.dictionary is not None and not self._store.dictionary_files():
            self._store.put_dictionary(self._writer, self.dictionary)
