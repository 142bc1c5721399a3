"""Open and write files safely.

Only regular files are opened for reading: never a pipe or a device, and never waiting for a writer. Callers say whether
symlinks are followed.

- `open_descriptor` and `open_regular` open a file, `read_file` reads a small one.
- Files of a home are opened by `home_files`, which refuses what leads out of the home.

Files are written atomically: to a temporary file first, then renamed into place. All files that threadline writes go
through here. A reader sees the old file or the new one, never a part of it.

- `write_file` writes a small file. `AtomicFile` writes a large one, or one whose name is known only at the end.
- `staged_path` is for libraries that want a path to write to; `move_file` and `copy_file` place a finished file.
- `write_output`, `staged_path`, `move_file` and `copy_file` write what a user asked for. They refuse a target that is a
  symlink, and remove the temporary files that killed processes left for the same target.
- `BatchWriter` writes many files and waits for the disk once per batch.

`blake2b` and `sha256` are for short texts and small files: `hashlib` loads OpenSSL, which takes two milliseconds. Its
SHA-256 is faster for large files.

`settings_file` is where the user's settings are, `cache_folder` where files are that can be rebuilt.

`durable` files are on disk before they get their name, and so is the name before the call returns. `private` files
are readable by their owner only, from the first byte on. Everything here raises `OSError`; callers add the message.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

if TYPE_CHECKING:
    import hashlib

    blake2b, sha256 = hashlib.blake2b, hashlib.sha256
else:
    # CPython has both functions without OpenSSL, unless a distribution left them out.
    try:
        from importlib import import_module

        blake2b = import_module("_blake2").blake2b
        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        import hashlib

        blake2b, sha256 = hashlib.blake2b, hashlib.sha256

READ_FLAGS = (
    os.O_RDONLY
    # A file may be replaced by a pipe after the check; opening that must not wait for a writer.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""The flags of `os.open` that open a file for reading, and wait for nothing."""
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
"""The flag of `os.open` that refuses a symlink, where the system has one."""
_ESCAPED_BYTE = re.compile(rb"\\x([89a-f][0-9a-f])")
SMALL_FILE_LIMIT = 64 * 1024
"""How much of a file `read_file` returns by default: the files that threadline writes itself are smaller."""


BUDGETS, REDACTION = "budgets.conf", "redaction.toml"
"""The names of the user's settings files."""


def settings_file(name: str) -> Path:
    """Return the path of one of the user's settings files, whether it exists or not."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification ignores relative paths. Path.home raises if there is none.
    folder = config if os.path.isabs(config) else os.path.join(os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH117, PTH118
    return Path(folder, "threadline", name)


def cache_folder() -> Path:
    """The folder for files that can be rebuilt: `THREADLINE_CACHE`, or the platform's cache folder."""
    folder = os.environ.get("THREADLINE_CACHE")
    if folder:
        return Path(folder)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "threadline" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "threadline"
    folder = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification ignores relative paths; with one, each working directory would get its own index.
    return (Path(folder) if Path(folder).is_absolute() else Path.home() / ".cache") / "threadline"


def data_folder() -> str:
    """Return the platform's folder for threadline's data, as text, whether it exists or not."""
    return os.path.join(_platform_data_folder(), "threadline")  # noqa: PTH118 - paths are text


def _platform_data_folder() -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser raises if it finds no home
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")  # noqa: PTH118 - the same
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")  # noqa: PTH118 - the same
    configured = os.environ.get("XDG_DATA_HOME", "")
    return configured if os.path.isabs(configured) else os.path.join(home, ".local", "share")  # noqa: PTH117, PTH118 - the same


def escape_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path as valid text: bytes that are not UTF-8 become `\xff`. `find_escaped` finds the file again.

    >>> escape_path("a/caf\udcff")
    'a/caf\\xff'
    """
    return os.fspath(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def is_valid_path(path: str) -> bool:
    r"""Whether a file can have this path. A transcript may name any text, also one with half of a surrogate pair.

    >>> is_valid_path("/a/caf\udcff"), is_valid_path("/a/\ud800"), is_valid_path("/a/\x00")
    (True, False, False)
    """
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def find_escaped(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file, which may be written as `escape_path` does. A file with that very name comes first."""
    text = os.fspath(path)
    if "\\x" in text and not os.path.lexists(text):
        unescaped = os.fsdecode(_ESCAPED_BYTE.sub(lambda match: bytes.fromhex(match[1].decode()), os.fsencode(text)))
        if os.path.lexists(unescaped):
            return Path(unescaped)
    return Path(path)


class NotRegularFileError(OSError):
    """The path is a directory, a pipe, a socket or a device."""


def open_descriptor(path: str | os.PathLike[str], *, follow_symlinks: bool) -> int:
    """Open a regular file for reading and return its descriptor.

    Raises:
        NotRegularFileError: it is something else, which is not opened.
        OSError: it cannot be opened.
    """
    check_regular(os.stat(path, follow_symlinks=follow_symlinks), path)  # noqa: PTH116 - a path may be text
    descriptor = os.open(path, READ_FLAGS if follow_symlinks else READ_FLAGS | NO_FOLLOW)
    try:
        check_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_regular(path: str | os.PathLike[str], *, follow_symlinks: bool) -> BinaryIO:
    """Open a regular file for reading, unbuffered; raises what `open_descriptor` raises."""
    return os.fdopen(open_descriptor(path, follow_symlinks=follow_symlinks), "rb", buffering=0)


def read_file(path: str | os.PathLike[str], *, follow_symlinks: bool, limit: int = SMALL_FILE_LIMIT) -> bytes:
    """Return the content of a regular file, or its first `limit` bytes.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with os.fdopen(open_descriptor(path, follow_symlinks=follow_symlinks), "rb") as file:
        return file.read(limit)


def read_at(descriptor: int, start: int, stop: int) -> bytes:
    """Return the bytes from `start` to `stop`, or as many of them as the file has."""
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, stop - start)
    # One call reads at most 2 GiB, and signals may cut it short.
    while len(data) < stop - start and (more := os.read(descriptor, stop - start - len(data))):
        data += more
    return data


def check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Refuse what is not a regular file, by its status.

    Raises:
        NotRegularFileError: it is something else.
    """
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularFileError(errno.EINVAL, "not a regular file", os.fspath(path))


TEMPORARY_SUFFIX = ".new"
"""Ends the name of every temporary file: OWNER-PID-TOKEN.new."""
_TEMPORARY_NAME = re.compile(rf"(?P<owner>.*)-(?P<pid>[0-9]+)-[0-9a-z]+{re.escape(TEMPORARY_SUFFIX)}", re.DOTALL)

_COPY_SIZE = 1024 * 1024
_MAX_NAME_PART = 80
_TOKEN = os.urandom(4).hex()
"""Keeps names apart on drives that several machines share, where process ids are not unique."""
_counter = count()
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | _BINARY
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all of the data to an unbuffered file, with as many calls as the system needs."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


class AtomicFile:
    """A file under a temporary name, which `commit` turns into the real one.

    Use it in a `with` statement, or call `discard`: what is not committed is removed. `owner` starts the temporary
    name, which lets `remove_leftovers` recognise whose file it is. An `unnamed` file has no name before `commit`, where
    the system allows that, so that nothing is left if the process is killed.
    """

    def __init__(
        self, folder: Path, *, owner: str, private: bool = True, durable: bool = True, unnamed: bool = False
    ) -> None:
        self.path = folder / _temporary_name(owner)
        self._durable = durable
        mode = 0o600 if private else 0o666
        descriptor = _open_unnamed(folder, mode) if unnamed else None
        self._is_unnamed = descriptor is not None
        if descriptor is None:
            descriptor = os.open(self.path, _CREATE_FLAGS, mode)
        self._file: BinaryIO = os.fdopen(descriptor, "wb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def write(self, data: bytes) -> None:
        """Write more."""
        write_all(self._file, data)

    def commit(self, name: str, *, mtime_ns: int | None = None, overwrite: bool = True) -> Path:
        """Give the file its name, and return its path.

        Raises:
            FileExistsError: the name is taken, and `overwrite` is false.
            OSError: the file cannot be written or renamed.
        """
        if self._durable:
            os.fsync(self._file.fileno())
        if self._is_unnamed:
            self._link_unnamed()
        self._file.close()
        if mtime_ns is not None:
            os.utime(self.path, ns=(mtime_ns, mtime_ns))
        target = self.path.with_name(name)
        _rename(self.path, target, overwrite=overwrite)
        if self._durable:
            sync_folder(target.parent)
        return target

    def _link_unnamed(self) -> None:
        """Give an unnamed file its temporary name."""
        descriptor = self._file.fileno()
        try:
            # Python follows the link in /proc only if a folder is passed, which an absolute path does not need.
            os.link(f"/proc/self/fd/{descriptor}", self.path, src_dir_fd=descriptor, follow_symlinks=True)
        except OSError:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            with os.fdopen(os.open(self.path, _CREATE_FLAGS, mode), "wb", buffering=0) as file:
                os.lseek(descriptor, 0, os.SEEK_SET)
                while data := os.read(descriptor, _COPY_SIZE):
                    write_all(file, data)
                os.fsync(file.fileno())

    def discard(self) -> None:
        """Close and remove the temporary file. Does nothing after `commit`."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def _open_unnamed(folder: Path, mode: int) -> int | None:
    """A new file without a name in a folder; None if the system or the disk has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, flag | os.O_RDWR | _BINARY, mode)
    except OSError:
        return None


def write_file(
    path: Path, data: bytes, *, owner: str = "", private: bool = True, durable: bool = True, overwrite: bool = True
) -> Path:
    """Write a file in one step, and return its path. A symlink at `path` is replaced.

    Raises:
        FileExistsError: it exists, and `overwrite` is false.
        OSError: it cannot be written; nothing is left behind.
    """
    owner = owner or _owner_of(path)
    with AtomicFile(path.parent, owner=owner, private=private, durable=durable) as file:
        file.write(data)
        return file.commit(path.name, overwrite=overwrite)


@contextmanager
def staged_path(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a path on the same disk; the file written there becomes `target` when the block ends without an error.

    The path has the target's name, since some libraries look at the extension.

    Raises:
        FileExistsError: the target exists, and `overwrite` is false.
        OSError: it cannot be written.
    """
    _refuse_link(target)
    with staging_folder(target.parent, _owner_of(target)) as folder:
        yield folder / target.name
        move_file(folder / target.name, target, overwrite=overwrite)


@contextmanager
def staging_folder(parent: Path, owner: str) -> Iterator[Path]:
    """A private folder inside `parent`, removed afterwards: for files that `move_file` then puts in place.

    The folders that killed processes left there are removed, too.

    Raises:
        OSError: it cannot be created.
    """
    remove_leftovers(parent, owner)
    folder = parent / _temporary_name(owner)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        _remove_folder(folder)


def _remove_folder(folder: str | Path) -> None:
    from shutil import rmtree  # noqa: PLC0415 - slow to import, and most commands write nothing this way

    rmtree(folder, ignore_errors=True)


def move_file(path: Path, target: Path, *, overwrite: bool) -> None:
    """Move a finished file to `target` on the same disk.

    Raises:
        FileExistsError: the target exists, and `overwrite` is false.
        OSError: it cannot be written, or is a symlink.
    """
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
    _refuse_link(target)
    _sync_file(path)
    _rename(path, target, overwrite=overwrite)
    sync_folder(target.parent)


def copy_file(path: Path, target: Path, *, overwrite: bool) -> None:
    """Copy a finished file to `target`, on any disk, with the permissions of a new file.

    Raises:
        FileExistsError: the target exists, and `overwrite` is false.
        OSError: it cannot be read or written, or the target is a symlink.
    """
    _refuse_link(target)
    owner = _owner_of(target)
    remove_leftovers(target.parent, owner)
    with path.open("rb") as source, AtomicFile(target.parent, owner=owner, private=False, unnamed=True) as file:
        while data := source.read(_COPY_SIZE):
            file.write(data)
        file.commit(target.name, overwrite=overwrite)


def write_output(target: Path, data: bytes, *, overwrite: bool = True) -> None:
    """Write a small file that a user asked for, with the permissions of a new file.

    Raises:
        FileExistsError: the target exists, and `overwrite` is false.
        OSError: it cannot be written, or is a symlink.
    """
    if overwrite:
        _refuse_link(target)
    remove_leftovers(target.parent, _owner_of(target))
    write_file(target, data, private=False, overwrite=overwrite)


def _refuse_link(target: Path) -> None:
    """Raise if a file that a user asked for is a symlink: nothing is written through it.

    It is not replaced either: `/dev/stdout` is one.
    """
    if target.is_symlink():
        message = "it is a symlink. Name the file it points to, or remove it"
        raise OSError(errno.ELOOP, message, os.fspath(target))


def _owner_of(target: Path) -> str:
    return f".{target.name[:_MAX_NAME_PART]}"


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    if os.name == "nt":  # a folder cannot be opened there, and its names are written through
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_owner(name: str) -> str | None:
    """The owner in the name of a temporary file; None for any other name."""
    match = _TEMPORARY_NAME.fullmatch(name)
    return match["owner"] if match is not None else None


def remove_leftovers(folder: Path, owner: str) -> None:
    """Remove the temporary files and folders that killed processes of this machine left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY_NAME.fullmatch(entry.name)
            if match is not None and match["owner"] == owner and not is_running(int(match["pid"])):
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        _remove_folder(entry.path)
                    else:
                        os.unlink(entry.path)  # noqa: PTH108 - the entry has the path as text


def _temporary_name(owner: str) -> str:
    return f"{owner}-{os.getpid()}-{_TOKEN}{next(_counter)}{TEMPORARY_SUFFIX}"


def _rename(path: Path, target: Path, *, overwrite: bool) -> None:
    if overwrite:
        with suppress(FileNotFoundError):
            mode = target.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):  # a device or a pipe
                raise OSError(errno.EINVAL, "It is not a regular file", os.fspath(target))
        path.replace(target)
        return
    try:
        os.link(path, target)  # unlike checking first, this cannot overwrite a file that appears meanwhile
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target)) from None
        path.replace(target)
    else:
        path.unlink()


def _sync_file(path: Path) -> None:
    """Wait until the content of a file is on disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        _sync_data(descriptor)
    finally:
        os.close(descriptor)


def is_running(pid: int) -> bool:
    """Whether a process of this machine is running. On Windows, always, since that cannot be asked safely."""
    if os.name == "nt":
        return True  # there, os.kill(pid, 0) would end the process
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


_START_TIME_FIELD = 19
"""The index of the start time in `/proc/<pid>/stat`, counted after the name."""


def process_start_time(pid: int) -> str | None:
    """Return when a process began, as Linux counts it; None if that is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    after_name = stat.rpartition(")")[2].split()
    return after_name[_START_TIME_FIELD] if len(after_name) > _START_TIME_FIELD else None


_BATCH_FILES = 256
_BATCH_BYTES = 64 * 1024 * 1024
"""How many files, or bytes, are written before waiting for the disk."""
_SYNC_THREADS = 16
"""How many files are synced at a time: the disk writes them together."""
_sync_data = getattr(os, "fdatasync", os.fsync)


class _PendingFile(NamedTuple):
    temporary: Path
    target: Path
    mtime_ns: int


class BatchWriter:
    """Write many private files with their times, in private folders; use it in a `with` statement.

    Waiting for the disk after every file would take most of the time, so files are synced and renamed in batches.
    `finished` lists the files that have their names, `failed` those that could not be written, and why.
    """

    def __init__(self, owner: str) -> None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - loads logging, which start-up must not

        self.finished: list[Path] = []
        self.failed: list[tuple[Path, Exception]] = []
        self._owner = owner
        self._pending: list[_PendingFile] = []
        self._bytes = 0
        self._folders: set[Path] = set()
        self._pool = ThreadPoolExecutor(_SYNC_THREADS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self._pool.shutdown()
            for pending in self._pending:
                with suppress(OSError):
                    pending.temporary.unlink()

    def write(self, target: Path, data: Iterable[bytes], mtime_ns: int) -> None:
        """Write a file, which gets its name with the rest of its batch. Leftovers in its folder are removed.

        Raises:
            OSError: it cannot be written; nothing is left of it.
        """
        if target.parent not in self._folders:
            make_private_folders(target.parent)
            remove_leftovers(target.parent, self._owner)
            self._folders.add(target.parent)
        temporary = target.with_name(_temporary_name(self._owner))
        descriptor = os.open(temporary, _CREATE_FLAGS, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in data:
                    file.write(chunk)
                    self._bytes += len(chunk)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._pending.append(_PendingFile(temporary, target, mtime_ns))
        if len(self._pending) >= _BATCH_FILES or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Wait until everything written is on disk, and give the files their names."""
        results = self._pool.map(_sync_or_error, (pending.temporary for pending in self._pending))
        for pending, problem in zip(self._pending, results, strict=True):
            try:
                if problem is not None:
                    raise problem
                make_private(pending.temporary, pending.mtime_ns)
                pending.temporary.replace(pending.target)
                self.finished.append(pending.target)
            except (OSError, OverflowError, ValueError) as error:
                pending.temporary.unlink(missing_ok=True)
                self.failed.append((pending.target, error))
        self._pending.clear()
        self._bytes = 0


def make_private(path: Path, mtime_ns: int) -> None:
    """Allow only the owner to read and write a file, and set its mtime."""
    path.chmod(0o600)
    os.utime(path, ns=(mtime_ns, mtime_ns))


def make_private_folders(folder: Path) -> None:
    """Create a folder and those above it that are missing, for their owner only. Existing ones stay as they are."""
    # `mkdir(parents=True)` would create those above it with the usual permissions.
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def _sync_or_error(path: Path) -> OSError | None:
    try:
        _sync_file(path)
    except OSError as error:
        return error
    return None
