"""Locate, open, lock and remove the SQLite file of the index, and convert values to what SQLite can store.

There is one file per set of homes, in the platform's cache folder. Many processes may read it while one writes; a new
index is built in a file beside the old one and then takes its place.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from sys import intern
from time import monotonic, sleep
from typing import Any

from threadline.errors import IndexBusy, Unreadable
from threadline.model.times import parse_timestamp

_PAGE_BYTES = 8192
_CACHE_KB = 32 * 1024
_HASH_BYTES = 64 * 1024 * 1024
_BUSY_TIMEOUT_MS = 5_000
_HASH_LENGTH = 12
_VERSIONED_NAME = re.compile(r"(?P<name>index-[0-9a-f]+)-v(?P<version>[0-9]{1,6})\.sqlite")
_AUTOMERGE_SEGMENTS = 4
_REPLACE_SECONDS = 0.5  # seconds
# Where the table of tables is damaged, SQLite quotes it in its error, and that need not be text.
_CORRUPTION_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_CORRUPTION_SIGNS = ("no such ", "already exists", "malformed")
_LOCK_RETRY_SECONDS = 0.005
NEW_SUFFIX = ".new"
"""What is added to the name of an index while it is made."""


def index_path(homes: Iterable[str | Path], cache: Path | None = None) -> Path:
    """Where the index of these homes lies: one file for each set of homes, in the platform's folder for caches."""
    known = "\n".join(sorted(os.fspath(home) for home in homes))
    name = blake2b(known.encode(errors="surrogateescape")).hexdigest()[:_HASH_LENGTH]
    return (cache or cache_folder()) / f"index-{name}-v{VERSION}.sqlite"


def cache_folder() -> Path:
    """The folder for what can be made again: `THREADLINE_CACHE`, or the platform's."""
    said = os.environ.get("THREADLINE_CACHE")
    if said:
        return Path(said)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "threadline" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "threadline"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # By its own rules a relative one does not count: each directory would have an index of its own.
    return (named if named.is_absolute() else Path.home() / ".cache") / "threadline"


def open_read_only(path: Path) -> sqlite3.Connection:
    """The index for questions; nothing can be changed through it.

    Raises:
        Unreadable: it is not there, or no index.
    """
    until = monotonic() + _REPLACE_SECONDS
    while True:
        before = _inode(path)
        try:
            connection = _connect_read_only(path)
        except _CORRUPTION_ERRORS as error:
            # One that is made anew takes its place in a moment, in which there is none, or only some of it.
            if (before and _inode(path) == before) or monotonic() > until or not _exists_or_is_being_replaced(path):
                told = f"The index {str(path)!r} cannot be read ({error}); run `threadline index rebuild`."
                raise Unreadable(told) from None
            sleep(_REPLACE_SECONDS / 50)
            continue
        if _inode(path) == before:
            return connection
        connection.close()  # made anew meanwhile: what was opened could be some of both


def _connect_read_only(path: Path) -> sqlite3.Connection:
    # A server hands it from thread to thread, and never to two at once.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    except _CORRUPTION_ERRORS:
        connection.close()
        raise
    return connection


def _exists_or_is_being_replaced(path: Path) -> bool:
    """Whether it is there, or about to be."""
    return path.exists() or Path(f"{path}{NEW_SUFFIX}").exists() or path.exists()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def damaged_error(path: Path, error: Exception) -> Unreadable:
    """What to say of an index that is not whole."""
    return Unreadable(f"The index {str(path)!r} is damaged ({error}); run `threadline index rebuild`.")


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Nobody else writes this index meanwhile, between transactions neither; the system frees what a killed one held.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: its folder may not be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Another database, never written to, and locked: that works on every platform, and forks do not inherit it.
        lock = sqlite3.connect(f"{path}.lock", isolation_level=None, timeout=0)
    except (OSError, sqlite3.Error) as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        _acquire_lock(lock)
    except sqlite3.Error as error:
        lock.close()
        if "locked" in str(error):
            raise IndexBusy(f"Another threadline is refreshing {str(path)!r}; wait for it, or try again.") from None
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        yield
    finally:
        lock.close()


def _acquire_lock(lock: sqlite3.Connection) -> None:
    """Take the lock as soon as it is free; the database itself would look every tenth of a second, and miss turns."""
    until = monotonic() + _BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" not in str(error) or monotonic() > until:
                raise
            sleep(_LOCK_RETRY_SECONDS)
        else:
            return


@contextmanager
def open_locked(path: Path) -> Iterator[sqlite3.Connection]:
    """The index for one that is alone with it already.

    Raises:
        Unreadable: it is damaged, or its folder may not be written.
    """
    with _open_writable(path) as connection:
        yield connection


@contextmanager
def open_for_writing(path: Path) -> Iterator[sqlite3.Connection]:
    """The index for a refresh, made if it is not there; one process at a time has it.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: it is damaged, or its folder may not be written.
    """
    with write_lock(path), _open_writable(path) as connection:
        yield connection


@contextmanager
def open_new(path: Path) -> Iterator[sqlite3.Connection]:
    """A new index, which nobody else sees until it is whole: a file that was there is removed.

    Nothing of it can be taken back, and nothing of it outlives a failure of the machine; so all is written once.

    Raises:
        Unreadable: its folder may not be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove_index(path)
    except OSError as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        with _open_writable(path, is_new=True) as connection:
            yield connection
            # Words were written in a few long runs. From now on, what comes is little, and is joined to them by and by.
            connection.execute("INSERT INTO text(text, rank) VALUES('automerge', ?)", (_AUTOMERGE_SEGMENTS,))
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        with suppress(OSError):  # half an index is of no use, and may be what fills the disk
            remove_index(path)
        raise


def remove_index(path: Path) -> None:
    """Remove an index, and what lies beside it; a log that outlived it would be played back into the next one."""
    for beside in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{beside}").unlink(missing_ok=True)


def remove_older_versions(path: Path) -> None:
    """Remove the indexes of the same homes that older versions of the schema have left; nobody asks them any more."""
    named = _VERSIONED_NAME.fullmatch(path.name)
    if named is None:
        return
    for other in path.parent.iterdir():
        older = _VERSIONED_NAME.match(other.name)
        if older is not None and older["name"] == named["name"] and int(older["version"]) < int(named["version"]):
            with suppress(OSError):  # another user's, perhaps: it is only in the way
                other.unlink()


@contextmanager
def _open_writable(path: Path, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_MS / 1000)
    except sqlite3.Error as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        _make_private(path)
        _prepare(connection, is_new=is_new)
        yield connection
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise IndexBusy(f"Another threadline is refreshing {str(path)!r}; wait for it, or try again.") from None
        if any(sign in str(error) for sign in _CORRUPTION_SIGNS):
            raise damaged_error(path, error) from None
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise damaged_error(path, error) from None
    finally:
        connection.close()


def _make_private(path: Path) -> None:
    """What transcripts say is nobody else's business."""
    try:
        path.chmod(0o600)
    except OSError as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error.strerror or error}.") from None


def _prepare(connection: sqlite3.Connection, *, is_new: bool) -> None:
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute(f"PRAGMA journal_mode = {'OFF' if is_new else 'WAL'}")
    # What is lost when the machine fails is made again; WAL keeps the file itself whole.
    connection.execute(f"PRAGMA synchronous = {'OFF' if is_new else 'NORMAL'}")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    connection.execute("BEGIN IMMEDIATE")
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
    if known is None:
        from threadline.index.schema import INDEXES, TABLES, VIEWS  # noqa: PLC0415 - seldom needed, and long to load

        for made in (*TABLES.values(), *VIEWS.values(), *INDEXES):
            connection.execute(made)
        # Words are gathered in memory and written in long runs: many short ones would be merged again and again.
        connection.execute("INSERT INTO text(text, rank) VALUES('hashsize', ?)", (_HASH_BYTES,))
        if is_new:
            connection.execute("INSERT INTO text(text, rank) VALUES('automerge', 0)")
        connection.execute(
            "INSERT INTO meta VALUES('schema', ?), ('next_entry', '1'), ('generation', '')", (str(VERSION),)
        )
    connection.execute("COMMIT")


VERSION = 3
"""An index of another version is not opened; it is made anew beside it."""


_INT64_LIMIT = 1 << 63


def storable_text(value: Any) -> str | None:
    """Return text that SQLite accepts: half of a surrogate pair, which JSON may contain, becomes U+FFFD."""
    if not isinstance(value, str) or value.isascii():
        return value if isinstance(value, str) else None
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def storable_int(value: Any) -> int | None:
    """A number that a database takes: JSON may hold larger ones."""
    return value if isinstance(value, int) and -_INT64_LIMIT < value < _INT64_LIMIT else None


def decode_path(kept: str | bytes | None) -> str:
    """A path as the index keeps it, as it is on disk."""
    return intern(os.fsdecode(kept)) if kept is not None else ""


def encode_path(path: str) -> str | bytes:
    """A path as the index keeps it: one that is no text, as its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


QUARTER_MS = 900_000
"""Milliseconds in a quarter of an hour."""
_HOUR_MS = 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_match_usual_time = re.compile(r"(\d{4}-\d\d-\d\dT\d\d):([0-5]\d):([0-5]\d)\.(\d{3})Z", re.ASCII).fullmatch
_A_YEAR = timedelta(days=366)
# Zones shift the first and last days of all time out of it; what stands there is kept as it is written.
_LATEST = datetime.max.replace(tzinfo=UTC) - _A_YEAR


def encode_time(time: str) -> int | str:
    """A time as the index keeps it.

    >>> encode_time("2025-07-01T10:43:45.885Z"), encode_time("2025-07-01T12:43+02:00")
    (1751366625885, '2025-07-01T12:43+02:00')
    """
    written = _match_usual_time(time)
    hour = _hour_start_ms(written[1]) if written is not None else None
    if written is None or hour is None:
        return time
    return hour + 60_000 * int(written[2]) + 1_000 * int(written[3]) + int(written[4])


def decode_time(stamped: int | str) -> str:
    """The time as it was written.

    >>> decode_time(1751366625885)
    '2025-07-01T10:43:45.885Z'
    """
    if isinstance(stamped, str):
        return stamped
    hour, rest = divmod(stamped, _HOUR_MS)
    return f"{_hour_text(hour)}:{rest // 60_000:02}:{rest // 1_000 % 60:02}.{rest % 1_000:03}Z"


def epoch_milliseconds(moment: datetime, *, up: bool = False) -> int:
    """A moment in milliseconds since 1970, rounded down, or up."""
    since = moment - _EPOCH
    return -(-since // timedelta(milliseconds=1)) if up else since // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _hour_start_ms(hour: str) -> int | None:
    moment = parse_timestamp(f"{hour}:00:00Z")
    return epoch_milliseconds(moment) if moment is not None and _EPOCH <= moment <= _LATEST else None


@lru_cache(maxsize=4096)
def _hour_text(hour: int) -> str:
    return f"{_EPOCH + timedelta(hours=hour):%Y-%m-%dT%H}"
