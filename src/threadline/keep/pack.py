"""Cut files into pieces, and store them in packs: zstd frames in a file that `zstd -dc` can read.

Where a piece ends depends only on its own bytes, so files that start alike are cut alike and share their first pieces.

Frames are compressed in threads while the next ones are read. A pack gets its name only after it is on disk. Small
frames use a dictionary trained once on the user's own lines, since they are too short to compress well without it.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from zlib import crc32

import msgspec
import zstandard
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.files import AtomicFile
from threadline.keep.manifest import Count, Hash
from threadline.keep.store import RETIRED_SUFFIX, Store, is_damaged, read_error

MIN_PIECE_SIZE, MAX_PIECE_SIZE = 32 * 1024, 1024 * 1024
"""The size of a piece in bytes; only the last piece of a file may be smaller."""
_BOUNDARY_ODDS = 8
"""Once a piece is long enough, one line in this many ends it."""


class Piece(Struct, frozen=True, gc=False):
    """A part of a file: its bytes, and their SHA-256 in hexadecimal."""

    hash: str
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Piece:
        """The piece with these bytes."""
        return cls(sha256(data).hexdigest(), data)


class Chunker:
    """Cuts a stream of bytes into pieces. The result does not depend on how the stream is divided into `feed` calls.

    >>> chunker = Chunker()
    >>> [len(piece) for piece in (*chunker.feed(b"a line" + bytes([10])), *chunker.finish())]
    [7]
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._searched = 0
        """How many bytes of the buffer were searched without finding an end."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add bytes; yield the pieces that are complete."""
        buffer = self._buffer + data if self._buffer else data
        start = 0
        while (end := self._find_end(buffer, start)) is not None:
            yield buffer[start:end]
            start = end
            self._searched = 0
        self._buffer = buffer[start:]

    def finish(self) -> Iterator[bytes]:
        """Yield what is left at the end of the stream."""
        if self._buffer:
            yield self._buffer
        self._buffer = b""
        self._searched = 0

    def _find_end(self, buffer: bytes, piece_start: int) -> int | None:
        """Where a piece ends: after the first boundary line past the minimum size, or at the maximum size."""
        start, stop = piece_start + max(self._searched, MIN_PIECE_SIZE), piece_start + MAX_PIECE_SIZE
        # The first line is hashed from where the search starts, whatever is before that on the line.
        while (newline := buffer.find(b"\n", start, stop)) >= 0:
            if crc32(buffer[start:newline]) % _BOUNDARY_ODDS == 0:
                return newline + 1
            start = newline + 1
        self._searched = start - piece_start
        return stop if len(buffer) >= stop else None


PACK_VERSION = 1
MAX_FRAME_SIZE = 64 * 1024 * 1024
"""The largest frame, uncompressed: reading one piece never takes more memory."""
_SKIPPABLE_HEADER = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A5B
"""Starts a skippable frame, which zstd readers ignore."""
_TAIL = struct.Struct("<I8s")
_SIGNATURE = b"threadln"


class Frame(Struct, frozen=True, omit_defaults=True):
    """One zstd frame of a pack: its offset and length in the file, its uncompressed size, and its pieces in order.

    A piece is given by its SHA-256 in hexadecimal and its length. `dictionary` is the SHA-256 of the dictionary that
    the frame was compressed with, if any.
    """

    offset: Count
    length: Count
    size: Count
    pieces: tuple[tuple[Hash, Count], ...]
    dictionary: Hash | None = None

    @property
    def hashes(self) -> Iterator[str]:
        """The hashes of its pieces."""
        return (hash_ for hash_, _length in self.pieces)


class PackContents(Struct, frozen=True):
    """The table of contents of a pack."""

    version: int
    frames: tuple[Frame, ...]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(PackContents)


def encode_table(frames: Sequence[Frame]) -> bytes:
    """Encode the table of contents of a pack."""
    return _encode(PackContents(PACK_VERSION, tuple(frames)))


def build_footer(body: bytes) -> bytes:
    """The skippable frame that ends a pack: the table of contents, its hash, its length and a signature."""
    content = body + sha256(body).digest() + _TAIL.pack(len(body), _SIGNATURE)
    return _SKIPPABLE_HEADER.pack(_SKIPPABLE_MAGIC, len(content)) + content


def read_table(file: BinaryIO, name: str) -> bytes:
    """Read the encoded table of contents of a pack.

    Raises:
        Unreadable: it is truncated or damaged.
    """
    end = file.seek(0, 2)
    if end < _TAIL.size:
        raise _damaged_pack_error(name, "it is truncated")
    file.seek(end - _TAIL.size)
    length, signature = _TAIL.unpack(file.read(_TAIL.size))
    start = end - _TAIL.size - sha256().digest_size - length
    if signature != _SIGNATURE or start < 0:
        raise _damaged_pack_error(name, "it is truncated")
    file.seek(start)
    body = file.read(length)
    if sha256(body).digest() != file.read(sha256().digest_size):
        raise _damaged_pack_error(name, "its table of contents does not match its hash")
    return body


def decode_table(body: bytes, name: str) -> PackContents:
    """Decode the table of contents of a pack.

    Raises:
        Unreadable: it is not a table of contents, contains impossible values, or is of a newer version.
    """
    try:
        contents = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _damaged_pack_error(name, "its table of contents cannot be read") from None
    if contents.version > PACK_VERSION:
        raise Unreadable(f"The pack {name!r} has a newer format ({contents.version}). Update threadline.")
    if any(
        frame.size > MAX_FRAME_SIZE or frame.size != sum(length for _hash, length in frame.pieces)
        for frame in contents.frames
    ):
        raise _damaged_pack_error(name, "its table of contents has impossible sizes")
    return contents


def read_frame(file: BinaryIO, name: str, frame: Frame, dictionary: bytes | None = None) -> bytes:
    """Read and decompress a frame.

    Raises:
        Unreadable: it is damaged.
    """
    where = f"the frame at byte {frame.offset:,}"
    zstd_dictionary = zstandard.ZstdCompressionDict(dictionary) if dictionary is not None else None
    try:
        file.seek(frame.offset)
        compressed = file.read(min(frame.length, 2 * MAX_FRAME_SIZE))
        # Checked before decompressing: a frame could be crafted to fill the memory.
        if zstandard.get_frame_parameters(compressed).content_size != frame.size:
            raise _damaged_pack_error(name, f"{where} does not contain the {frame.size:,} bytes that its table says")
        data = zstandard.ZstdDecompressor(dict_data=zstd_dictionary).decompress(compressed, max_output_size=frame.size)
    except OSError as error:
        raise Unreadable(f"The pack {name!r} cannot be read: {error.strerror or error}.") from None
    except (zstandard.ZstdError, MemoryError) as error:
        raise _damaged_pack_error(name, f"{where} cannot be decompressed ({error})") from None
    if len(data) != frame.size:
        raise _damaged_pack_error(name, f"{where} contains {len(data):,} bytes instead of {frame.size:,}")
    return data


def split_frame(frame: Frame, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The pieces of a decompressed frame: the hash that each should have, and its bytes."""
    at = 0
    for digest, length in frame.pieces:
        yield digest, data[at : at + length]
        at += length


def _damaged_pack_error(name: str, problem: str) -> Unreadable:
    return Unreadable(f"The pack {name!r} is damaged: {problem}. `threadline keep verify` lists what is affected.")


class PackReader:
    """Reads the packs of a keep; dictionaries are read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._dictionary = lru_cache(maxsize=4)(store.dictionary)

    def table(self, path: Path) -> bytes:
        """The encoded table of contents of a pack.

        Raises:
            Unreadable: it cannot be read, or is damaged.
        """
        with self.store.open(path) as file:
            try:
                return read_table(file, path.name)
            except OSError as error:
                raise read_error(path, error) from None

    def frames(self, path: Path) -> tuple[Frame, ...]:
        """The frames of a pack.

        Raises:
            Unreadable: its table of contents cannot be read, or is damaged.
        """
        return decode_table(self.table(path), path.name).frames

    def all_frames(self) -> dict[Path, tuple[Frame, ...]]:
        """The frames of every pack whose table of contents can be read."""
        tables = {}
        for path in self.store.pack_files():
            try:
                tables[path] = self.frames(path)
            except Unreadable:
                continue
        return tables

    def frame(self, path: Path, frame: Frame) -> bytes:
        """The decompressed bytes of a frame.

        Raises:
            Unreadable: it, or its dictionary, is missing or damaged.
        """
        dictionary = self._dictionary(frame.dictionary) if frame.dictionary is not None else None
        with self.store.open(path) as file:
            return read_frame(file, path.name, frame, dictionary)

    def pieces(self, path: Path, frame: Frame) -> Iterator[tuple[str, bytes | None]]:
        """The pieces of a frame: the hash that each should have, and its bytes, or None if they do not match it.

        Raises:
            Unreadable: the frame is missing or damaged as a whole.
        """
        for hash_, data in split_frame(frame, self.frame(path, frame)):
            yield hash_, data if sha256(data).hexdigest() == hash_ else None

    def damaged_pieces(self, path: Path, frame: Frame) -> set[str]:
        """The hashes of the pieces of a frame that are damaged."""
        try:
            return {hash_ for hash_, data in self.pieces(path, frame) if data is None}
        except Unreadable:
            return set(frame.hashes)


FRAME_SIZE, PACK_SIZE, ENCRYPTED_PACK_SIZE = 16 * 1024 * 1024, 256 * 1024 * 1024, 32 * 1024 * 1024
"""How many bytes a frame holds, and how large a pack grows. Encrypted packs are smaller: they are only read whole."""
_ZSTD_LEVEL = 9
SMALL_FRAME_SIZE = 256 * 1024
"""A smaller frame is compressed with the dictionary, because it is too short to compress well without it."""


def max_pack_size(store: Store) -> int:
    """How large a pack of this keep grows."""
    return ENCRYPTED_PACK_SIZE if store.is_encrypted else PACK_SIZE


class PackWriter:
    """Writes pieces into a keep's packs; use it in a `with` statement. An unfinished pack leaves nothing behind.

    `finished` lists the packs that are in place, `tables` their encoded tables of contents by name. `owner` is the id
    of the machine that writes. `dictionary` may be set later; small frames that are begun from then on use it.
    """

    def __init__(
        self,
        store: Store,
        owner: str,
        *,
        jobs: int = 2,
        dictionary: bytes | None = None,
    ) -> None:
        self.finished: list[Path] = []
        self.tables: dict[str, bytes] = {}
        self.dictionary = dictionary
        self._store = store
        self._owner = owner
        self._jobs = jobs
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="keep")
        self._compressing: deque[tuple[Frame, Future[bytes]]] = deque()
        """Frames that are being compressed, whose offset is not known yet."""
        self._pieces: list[Piece] = []
        self._pieces_size = 0
        self._file: AtomicFile | BytesIO | None = None
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
            if isinstance(self._file, AtomicFile):
                self._file.discard()

    @property
    def finished_size(self) -> int:
        """How many bytes the finished packs take."""
        return sum(path.stat().st_size for path in self.finished)

    def add(self, piece: Piece) -> None:
        """Add a piece. It is in the keep once its pack is `finished`.

        Raises:
            Unreadable: the keep cannot be written.
        """
        self._pieces.append(piece)
        self._pieces_size += len(piece.data)
        if self._pieces_size >= FRAME_SIZE:
            self._start_frame()

    def finish(self) -> None:
        """Write everything that was added, and put the last pack in place.

        Raises:
            Unreadable: the keep cannot be written.
        """
        self._start_frame()
        self._write_frames(0)
        with self._store.reporting_write_errors():
            self._finish_pack()

    def _start_frame(self) -> None:
        """Compress the collected pieces in the background."""
        if not self._pieces:
            return
        pieces, size = self._pieces, self._pieces_size
        self._pieces, self._pieces_size = [], 0
        dictionary = self.dictionary if size < SMALL_FRAME_SIZE else None
        dictionary_hash = sha256(dictionary).hexdigest() if dictionary is not None else None
        frame = Frame(0, 0, size, tuple((piece.hash, len(piece.data)) for piece in pieces), dictionary_hash)
        # Joined here, so that no frame is in memory twice.
        data = b"".join(piece.data for piece in pieces)
        self._compressing.append((frame, self._pool.submit(self._compress, data, dictionary)))
        self._write_frames(self._jobs)

    def _compress(self, data: bytes, dictionary: bytes | None) -> bytes:
        if dictionary is not None:
            zstd_dictionary = zstandard.ZstdCompressionDict(dictionary)
            compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, dict_data=zstd_dictionary, write_checksum=True)
            return compressor.compress(data)
        # The window is the whole frame: sessions repeat what they read an hour ago. Long-distance matching on top of
        # that was measured to be slower by a quarter, and to compress worse.
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _ZSTD_LEVEL, source_size=len(data), window_log=24, write_checksum=True
        )
        return zstandard.ZstdCompressor(compression_params=parameters).compress(data)

    def _write_frames(self, pending: int) -> None:
        """Write compressed frames, in order, until at most `pending` are left."""
        while len(self._compressing) > pending:
            frame, compressed = self._compressing.popleft()
            with self._store.reporting_write_errors():
                self._write_frame(frame, compressed.result())
                if self._offset >= max_pack_size(self._store):
                    self._finish_pack()

    def _write_frame(self, frame: Frame, compressed: bytes) -> None:
        if self._file is None:
            # The pack of an encrypted keep is never on disk unencrypted.
            is_encrypted = self._store.is_encrypted
            self._file = BytesIO() if is_encrypted else AtomicFile(self._store.packs, owner=self._owner)
        self._frames.append(replace(frame, offset=self._offset, length=len(compressed)))
        self._write(self._file, compressed)

    def _write(self, file: AtomicFile | BytesIO, data: bytes) -> None:
        file.write(data)
        self._hash.update(data)
        self._offset += len(data)

    def _finish_pack(self) -> None:
        """End the pack: table of contents, fsync, rename, fsync of the folder."""
        if self._file is None:
            return
        body = encode_table(self._frames)
        self._write(self._file, build_footer(body))
        if isinstance(self._file, BytesIO):
            path = self._store.put(self._store.packs, self._owner, "", ".zst", self._file.getvalue())
        else:
            path = self._file.commit(f"{self._hash.hexdigest()}.zst")
        self.finished.append(path)
        self.tables[path.name] = body
        self._file, self._frames, self._offset, self._hash = None, [], 0, sha256()


_DICTIONARY_SIZE = 48 * 1024
_MIN_SAMPLE_SIZE, _MAX_SAMPLE_SIZE = 256 * 1024, 5 * 1024 * 1024
"""How many bytes of lines are needed to train a dictionary, and how many are used at most."""
_MAX_SAMPLE_LINE = 4 * 1024
_SAMPLE_HEAD_SIZE = 128 * 1024
"""Once there is enough to train with, only this much of each chunk is sampled, so that all files contribute."""
_SAMPLE_EVERY = 7
"""One line in this many is sampled: neighbours are alike."""


class DictionaryTrainer:
    """The dictionary of a keep: the existing one, or one that is trained once on what is read."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._samples: list[bytes | bytearray | memoryview[int]] = []
        self._sample_size = 0
        files = [path for path in store.dictionary_files() if not path.name.endswith(RETIRED_SUFFIX)]
        self._is_done = bool(files)
        self.dictionary: bytes | None = None
        # No frame could be read that was compressed with a damaged dictionary, which `verify` reports.
        intact = next((path for path in files if not is_damaged(path)), None)
        if intact is not None and not store.is_key_missing:
            with suppress(Unreadable):
                self.dictionary = store.read(intact)

    def sample(self, data: bytes) -> None:
        """Collect lines to train with, until there are enough."""
        if self._is_done or self._sample_size >= _MAX_SAMPLE_SIZE:
            return
        text = data if self._sample_size < _MIN_SAMPLE_SIZE else data[:_SAMPLE_HEAD_SIZE]
        lines = [line[:_MAX_SAMPLE_LINE] for line in text.split(b"\n")[1:-1:_SAMPLE_EVERY] if line]
        self._samples += lines
        self._sample_size += sum(map(len, lines))

    def train(self) -> bytes | None:
        """The dictionary, stored in the keep if it is new; None if there was too little to train with.

        Raises:
            Unreadable: the keep cannot be written.
        """
        if not self._is_done and self._sample_size >= _MIN_SAMPLE_SIZE:
            self._is_done = True
            try:
                self.dictionary = zstandard.train_dictionary(_DICTIONARY_SIZE, self._samples).as_bytes()
            except zstandard.ZstdError:
                return None
            self._store.put_dictionary(self._owner, self.dictionary)
        self._samples = []
        return self.dictionary

    def ensure_stored(self) -> None:
        """Store the dictionary again if another machine has removed it meanwhile."""
        if self.dictionary is not None and not self._store.dictionary_files():
            self._store.put_dictionary(self._owner, self.dictionary)
