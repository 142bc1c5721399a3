"""The store: where the index lies, and how it is opened by one that writes and many that read."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep

from threadline.errors import IndexBusy, Unreadable
from threadline.index.version import VERSION

_PAGE = 8192
_CACHE_KB = 32 * 1024
_HASH_BYTES = 64 * 1024 * 1024
_WAIT_MS = 5_000
_NAME = 12
_VERSIONED = re.compile(r"(?P<name>index-[0-9a-f]+)-v(?P<version>[0-9]{1,6})\.sqlite")
_JOIN_RUNS = 4
_MOMENT = 0.5  # seconds
# Where the table of tables is damaged, SQLite quotes it in its error, and that need not be text.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_NOT_WHOLE = ("no such ", "already exists", "malformed")
_TURN = 0.005
NEW = ".new"
"""What is added to the name of an index while it is made."""


def place(homes: Iterable[str | Path], cache: Path | None = None) -> Path:
    """Where the index of these homes lies: one file for each set of homes, in the platform's folder for caches."""
    known = "\n".join(sorted(os.fspath(home) for home in homes))
    name = blake2b(known.encode(errors="surrogateescape")).hexdigest()[:_NAME]
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


def open_to_read(path: Path) -> sqlite3.Connection:
    """The index for questions; nothing can be changed through it.

    Raises:
        Unreadable: it is not there, or no index.
    """
    until = monotonic() + _MOMENT
    while True:
        before = _inode(path)
        try:
            connection = _opened(path)
        except _DAMAGE as error:
            # One that is made anew takes its place in a moment, in which there is none, or only some of it.
            if (before and _inode(path) == before) or monotonic() > until or not _is_made(path):
                told = f"The index {str(path)!r} cannot be read ({error}); run `threadline index rebuild`."
                raise Unreadable(told) from None
            sleep(_MOMENT / 50)
            continue
        if _inode(path) == before:
            return connection
        connection.close()  # made anew meanwhile: what was opened could be some of both


def _opened(path: Path) -> sqlite3.Connection:
    # A server hands it from thread to thread, and never to two at once.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")
        connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    except _DAMAGE:
        connection.close()
        raise
    return connection


def _is_made(path: Path) -> bool:
    """Whether it is there, or about to be."""
    return path.exists() or Path(f"{path}{NEW}").exists() or path.exists()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def damaged(path: Path, error: Exception) -> Unreadable:
    """What to say of an index that is not whole."""
    return Unreadable(f"The index {str(path)!r} is damaged ({error}); run `threadline index rebuild`.")


@contextmanager
def alone(path: Path) -> Iterator[None]:
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
        _lock(lock)
    except sqlite3.Error as error:
        lock.close()
        if "locked" in str(error):
            raise IndexBusy(f"Another threadline is refreshing {str(path)!r}; wait for it, or try again.") from None
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        yield
    finally:
        lock.close()


def _lock(lock: sqlite3.Connection) -> None:
    """Take the lock as soon as it is free; the database itself would look every tenth of a second, and miss turns."""
    until = monotonic() + _WAIT_MS / 1000
    while True:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" not in str(error) or monotonic() > until:
                raise
            sleep(_TURN)
        else:
            return


@contextmanager
def open_alone(path: Path) -> Iterator[sqlite3.Connection]:
    """The index for one that is alone with it already.

    Raises:
        Unreadable: it is damaged, or its folder may not be written.
    """
    with _written(path) as connection:
        yield connection


@contextmanager
def open_to_write(path: Path) -> Iterator[sqlite3.Connection]:
    """The index for a refresh, made if it is not there; one process at a time has it.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: it is damaged, or its folder may not be written.
    """
    with alone(path), _written(path) as connection:
        yield connection


@contextmanager
def open_to_make(path: Path) -> Iterator[sqlite3.Connection]:
    """A new index, which nobody else sees until it is whole: a file that was there is removed.

    Nothing of it can be taken back, and nothing of it outlives a failure of the machine; so all is written once.

    Raises:
        Unreadable: its folder may not be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove(path)
    except OSError as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        with _written(path, is_new=True) as connection:
            yield connection
            # Words were written in a few long runs. From now on, what comes is little, and is joined to them by and by.
            connection.execute("INSERT INTO text(text, rank) VALUES('automerge', ?)", (_JOIN_RUNS,))
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        with suppress(OSError):  # half an index is of no use, and may be what fills the disk
            remove(path)
        raise


def remove(path: Path) -> None:
    """Remove an index, and what lies beside it; a log that outlived it would be played back into the next one."""
    for beside in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{beside}").unlink(missing_ok=True)


def remove_older(path: Path) -> None:
    """Remove the indexes of the same homes that older versions of the schema have left; nobody asks them any more."""
    named = _VERSIONED.fullmatch(path.name)
    if named is None:
        return
    for other in path.parent.iterdir():
        older = _VERSIONED.match(other.name)
        if older is not None and older["name"] == named["name"] and int(older["version"]) < int(named["version"]):
            with suppress(OSError):  # another user's, perhaps: it is only in the way
                other.unlink()


@contextmanager
def _written(path: Path, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_MS / 1000)
    except sqlite3.Error as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        _make_private(path)
        _prepare(connection, is_new=is_new)
        yield connection
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise IndexBusy(f"Another threadline is refreshing {str(path)!r}; wait for it, or try again.") from None
        if any(sign in str(error) for sign in _NOT_WHOLE):
            raise damaged(path, error) from None
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise damaged(path, error) from None
    finally:
        connection.close()


def _make_private(path: Path) -> None:
    """What transcripts say is nobody else's business."""
    try:
        path.chmod(0o600)
    except OSError as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error.strerror or error}.") from None


def _prepare(connection: sqlite3.Connection, *, is_new: bool) -> None:
    connection.execute(f"PRAGMA page_size = {_PAGE}")
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
