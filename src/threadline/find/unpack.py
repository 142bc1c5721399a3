"""Read zip and tar archives from untrusted sources, and unpack some of their files.

- A file is unpacked below the given folder or not at all: a leading `/` is dropped, and a path with `..` is skipped.
- Only regular files are unpacked. Symlinks, devices and the like are skipped. A hard link becomes one to the unpacked
  file.
- If several files have the same path, the last one counts, as with `tar`.
- The number of files, their total size in relation to the archive, and the memory for reading it are limited.
- Unpacked files are private and read-only.

Archives are read twice: first to list their files, then to unpack the selected ones.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, Self

from threadline.errors import Missing, Unreadable
from threadline.files import make_private_folders, open_regular, read_file
from threadline.model.text import format_size

MAX_FILES = 1_000_000
"""The most files that an archive may contain."""
MAX_RATIO = 200
"""How many times larger than the archive its content may be. Transcripts compress to a tenth, sometimes a fiftieth."""
ALWAYS_ALLOWED_BYTES = 1 << 30
"""Content up to this size is unpacked, however small the archive is."""
MAX_HEADER_BYTES = 2 << 20
"""The most bytes that describe a file of a tar archive; they are read into memory."""
MAX_SHARED_HEADERS = 100
"""The most values that describe all files of a tar archive; they stay in memory."""
FORMATS = ".zip, .tar, .tar.gz or .tar.zst"
"""The formats that are read, as messages list them."""

_ZIP, _GZIP, _ZSTD, _TAR = "zip", "gzip", "zstd", "tar"
_MAGIC = (
    (b"PK\x03\x04", _ZIP),
    (b"PK\x05\x06", _ZIP),
    (b"\x1f\x8b", _GZIP),
    (b"\x28\xb5\x2f\xfd", _ZSTD),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
)
_READABLE = frozenset({_ZIP, _GZIP, _ZSTD, _TAR})
_TAR_MAGIC = slice(257, 262)
_BLOCK_BYTES = 1 << 18
_ZSTD_WINDOW_BYTES = 1 << 27
_MAX_PATH_BYTES = 1024
_MAX_PART_BYTES = 255
RESERVED_BYTES = 256 << 20
"""How much disk space is left free."""
_IS_ENCRYPTED = 0x1
_ZIP_TIMES = 0x5455
"""The extra field of zip archives with times in seconds since 1970; the usual ones are local times."""
_FILE_MODE = 0o400
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_EndMarkerError = tarfile.EOFHeaderError  # type: ignore[attr-defined] # not documented
_READ_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    NotImplementedError,
)


def detect_format(path: Path) -> str | None:
    """Return the format of an archive by its first bytes, readable or not; None if the file is not an archive.

    Raises:
        OSError: it cannot be read.
    """
    head = read_file(path, follow_symlinks=True, limit=512)
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    # Archives of old programs have no magic bytes.
    return _TAR if head[_TAR_MAGIC] == b"ustar" or (path.suffix == ".tar" and head) else None


class PackedFile(NamedTuple):
    """A file of an archive. `number` is its position, `link` the path of the file that a hard link leads to."""

    size: int
    number: int
    link: str | None = None


class _Entry(NamedTuple):
    """What an archive says about a file. `problem` is why it is skipped. `open` opens its content."""

    name: str
    size: int
    mtime: float
    open: Callable[[], IO[bytes] | None]
    problem: str | None = None
    link: str | None = None
    is_folder: bool = False


class PackedArchive:
    """An archive that is open; use it in a `with` statement.

    `files` are its regular files by path, `skipped` says why others are not unpacked. `progress` is called with the
    number of bytes of the archive that were read; it is read twice.

    Raises:
        Unreadable: it is damaged, encrypted, too large, or has another format.
        Missing: zstandard is not installed.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        self.path = path
        self.files: dict[str, PackedFile] = {}
        self.skipped: dict[str, str] = {}
        self._progress = progress
        self._stack = ExitStack()
        with self._translated_errors():
            self._format = detect_format(path)
            if self._format not in _READABLE:
                raise Unreadable(f"{str(path)!r} is not an archive that threadline reads. Use {FORMATS}.")
            self._file = self._stack.enter_context(open_regular(path, follow_symlinks=True))
            self._limit = max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * os.fstat(self._file.fileno()).st_size)
            try:
                self._list_files()
            except BaseException:
                self._stack.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def unpack(self, names: Collection[str], folder: Path, *, is_empty: Callable[[str], bool]) -> None:
        """Write these files below an empty private folder, with their modification times.

        Of files for which `is_empty` is true, only the name is written.

        Raises:
            Unreadable: they are damaged, or do not fit on the disk.
        """
        with self._translated_errors():
            self._check_space(names, folder)
            numbers = {self.files[name].number: name for name in names if self.files[name].link is None}
            for number, entry in enumerate(self._entries()):
                name = numbers.get(number)
                if name is not None:
                    target = folder / name
                    make_private_folders(target.parent)
                    self._write(entry, target, is_empty=is_empty(name))
            for name in names:
                source = self.files[name].link
                if source is None:
                    continue
                if source in names and not is_empty(name):
                    make_private_folders((folder / name).parent)
                    os.link(folder / source, folder / name)
                else:
                    self.skipped[name] = "a hard link to a file that is not unpacked"

    def _list_files(self) -> None:
        folders: set[str] = set()
        for number, entry in enumerate(self._entries()):
            if number >= MAX_FILES:
                raise Unreadable(f"{str(self.path)!r} contains more than {MAX_FILES:,} files. Pack only a Claude home.")
            if entry.is_folder:
                continue
            name = safe_path(entry.name)
            if name is None:
                self.skipped[entry.name] = "its path leads out of the archive, or is not valid"
            elif entry.problem is not None:
                self.skipped[name] = entry.problem
                self.files.pop(name, None)
            else:
                self._add_file(name, number, entry)
                folders.update(_parents(name, folders))
        for name in folders & self.files.keys():
            self.skipped[name] = "there is a folder with the same path"
            del self.files[name]
        if sum(file.size for file in self.files.values()) > self._limit:
            raise self._too_large()

    def _add_file(self, name: str, number: int, entry: _Entry) -> None:
        self.skipped.pop(name, None)
        if entry.link is None:
            self.files[name] = PackedFile(entry.size, number)
            return
        source = safe_path(entry.link)
        target = self.files.get(source) if source is not None else None
        if target is None or source == name:
            self.skipped[name] = "a hard link to a file that is not in the archive"
            self.files.pop(name, None)
        else:
            self.files[name] = PackedFile(target.size, number, target.link or source)

    def _write(self, entry: _Entry, target: Path, *, is_empty: bool) -> None:
        written = 0
        with os.fdopen(os.open(target, _CREATE_FLAGS, _FILE_MODE), "wb", buffering=0) as file:
            content = entry.open() if not is_empty else None
            while content is not None and (data := content.read(_BLOCK_BYTES)):
                written += file.write(data)
            if not is_empty and written != entry.size:
                raise Unreadable(self._damage("a file is shorter than it should be"))
        with suppress(OSError, OverflowError, ValueError):  # not a time that the disk can store
            os.utime(target, (entry.mtime, entry.mtime))

    def _check_space(self, names: Collection[str], folder: Path) -> None:
        needed = sum(self.files[name].size for name in names)
        free = shutil.disk_usage(folder).free
        if needed + RESERVED_BYTES > free:
            raise Unreadable(
                f"{str(self.path)!r} unpacks to {format_size(needed)}, and {format_size(free)} are free. Free some "
                "space, or set THREADLINE_CACHE to a folder on another disk."
            )

    def _entries(self) -> Iterator[_Entry]:
        self._file.seek(0)
        if self._format == _ZIP:
            return self._zip_entries()
        return self._tar_entries(_Stream(self._open_stream(), self._limit))

    def _open_stream(self) -> Any:
        source: Any = _ProgressFile(self._file, self._progress)
        if self._format == _GZIP:
            return gzip.GzipFile(fileobj=source)
        if self._format == _ZSTD:
            try:
                import zstandard  # noqa: PLC0415 - an extra
            except ImportError:
                raise Missing(
                    f"{str(self.path)!r} needs zstandard, which is not installed. Run: pip install 'threadline[keep]'"
                ) from None
            decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
            return _ZstdReader(decompressor.stream_reader(source, read_across_frames=True), zstandard.ZstdError)
        return source

    def _tar_entries(self, stream: _Stream) -> Iterator[_Entry]:
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK_BYTES, tarinfo=_TarMember) as archive:  # type: ignore[call-overload] # it only reads
                while (member := archive.next()) is not None:
                    archive.members = []  # it would remember all of them
                    if len(archive.pax_headers) > MAX_SHARED_HEADERS:
                        raise Unreadable(self._damage("too many values describe all files"))
                    stream.check_size(member.size)
                    stream.header_bytes = member.offset_data - archive.offset  # its content, before the next header
                    is_file = member.isreg() and not member.issparse()
                    is_readable = is_file or member.islnk() or member.isdir()
                    yield _Entry(
                        name=member.name,
                        size=member.size if is_file else 0,
                        mtime=member.mtime,
                        open=partial(archive.extractfile, member),
                        problem=None if is_readable else _describe_tar_type(member),
                        link=member.linkname if member.islnk() else None,
                        is_folder=member.isdir(),
                    )
                if not getattr(archive, "is_complete", False):
                    raise Unreadable(self._damage("its end is missing"))
        except _TooLargeError:
            raise self._too_large() from None

    def _zip_entries(self) -> Iterator[_Entry]:
        with zipfile.ZipFile(self._file) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                is_directory = info.filename.endswith("/")  # `is_dir` fails for a name without characters
                is_file = stat.S_IFMT(mode) in {0, stat.S_IFREG}
                if not is_directory and is_file and info.flag_bits & _IS_ENCRYPTED:
                    raise Unreadable(
                        f"{str(self.path)!r} is encrypted. Unpack it yourself, and name the folder with --home."
                    )
                if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                    raise Unreadable(
                        f"{str(self.path)!r} uses a compression that is not supported. Use deflate, or unpack it "
                        "yourself, and name the folder with --home."
                    )
                yield _Entry(
                    name=info.filename,
                    size=info.file_size,
                    mtime=_zip_mtime(info),
                    open=partial(archive.open, info),
                    problem=None if is_directory or is_file else "a link or a special file",
                    is_folder=is_directory,
                )
                if self._progress is not None:
                    self._progress(info.compress_size)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # also raised for damaged gzip data
            if error.errno is None:
                raise Unreadable(self._damage(str(error))) from error
            raise Unreadable(f"{str(self.path)!r} cannot be unpacked: {error.strerror or error}.") from error
        except _READ_ERRORS as error:
            raise Unreadable(self._damage(str(error) or type(error).__name__)) from error

    def _damage(self, reason: str) -> str:
        return f"{str(self.path)!r} is damaged or incomplete ({reason.rstrip('.')}). Copy it again, or make it again."

    def _too_large(self) -> Unreadable:
        return Unreadable(
            f"{str(self.path)!r} unpacks to more than {format_size(self._limit)}, which is more than threadline allows "
            "for an archive of its size. If you trust it, unpack it yourself, and name the folder with --home."
        )


class _TarMember(tarfile.TarInfo):
    """Notes the end marker. Without it, `tarfile` takes a damaged archive for a short one."""

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except _EndMarkerError:
            tarfile.is_complete = True
            raise


class _TooLargeError(Exception):
    """The content of the archive is larger than its limit."""


class _ProgressFile:
    """A file that reports how much of it was read."""

    def __init__(self, file: BinaryIO, progress: Callable[[int], None] | None) -> None:
        self._file = file
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self._progress is not None:
            self._progress(len(data))
        return data


class _ZstdReader:
    """Raises `ValueError` for damaged data. The errors of zstandard have no base class that is always there."""

    def __init__(self, reader: Any, error: type[Exception]) -> None:
        self._reader = reader
        self._error = error

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._reader.read(size)
        except self._error as error:
            raise ValueError(str(error)) from error
        return data


class _Stream:
    """Limits how much of a tar archive is read in all, and for one header."""

    def __init__(self, source: Any, limit: int) -> None:
        self._source = source
        self._left = limit
        self.header_bytes = 0

    def check_size(self, size: int) -> None:
        """Refuse content of a size over the limit. `tarfile` would skip it in blocks, even after the archive's end."""
        if size > self._left:
            raise _TooLargeError

    def read(self, size: int) -> bytes:
        data: bytes = self._source.read(size)
        self._left -= len(data)
        self.header_bytes += len(data)
        if self._left < 0:
            raise _TooLargeError
        if self.header_bytes > MAX_HEADER_BYTES:
            raise ValueError("the description of a file is too long")
        return data


def safe_path(name: str) -> str | None:
    """Return a path below the archive's root; None for one that leads out of it or that the disk may not store."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if not parts or ".." in parts or "\\" in name or "\0" in name or ":" in parts[0]:
        return None
    sizes = [len(os.fsencode(part)) for part in parts]
    return "/".join(parts) if max(sizes) <= _MAX_PART_BYTES and sum(sizes) <= _MAX_PATH_BYTES else None


def _parents(name: str, known: Collection[str]) -> Iterator[str]:
    while (name := name.rpartition("/")[0]) and name not in known:
        yield name


def _describe_tar_type(member: tarfile.TarInfo) -> str:
    return "a symlink" if member.issym() else "a sparse file" if member.issparse() else "a special file"


def _zip_mtime(info: zipfile.ZipInfo) -> float:
    """Return when a file was modified: in UTC if the archive says so, or else in local time."""
    extra = info.extra
    while len(extra) >= 4:  # noqa: PLR2004 - the header of a field
        kind, size = struct.unpack_from("<HH", extra)
        if kind == _ZIP_TIMES and size >= 5 and len(extra) >= 9 and extra[4] & 1:  # noqa: PLR2004 - flags, and a time
            return float(struct.unpack_from("<i", extra, 5)[0])
        extra = extra[4 + size :]
    try:
        return time.mktime((*info.date_time, 0, 0, -1))
    except (OverflowError, ValueError):
        return 0.0
