"""Locks between processes, held on an empty SQLite file.

SQLite's locks exist on every system, may be shared or exclusive, work between threads of one process, are not
inherited by forked workers, and are freed by the system when a process is killed. (The `filelock` package uses `flock`,
which forked children share with their parent, and falls back to SQLite for shared locks.) On network drives, locks are
only as good as the drive's.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic, sleep

TIMEOUT_SECONDS = 5.0
"""How long to wait for a lock that another process holds."""
_POLL_SECONDS = 0.005
"""SQLite's own busy handler waits up to 100 ms between attempts, and misses turns."""
_PRIMARY_CODE_MASK = 0xFF
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class LockBusy(Exception):
    """Another process held the lock for longer than the timeout."""


@contextmanager
def hold_lock(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock on a file, which is created if necessary and never removed.

    An exclusive lock excludes everybody else. Shared locks exclude only exclusive ones. With `wait`, it waits a few
    seconds for others.

    Raises:
        LockBusy: another process holds it.
        OSError: the file cannot be written.
    """
    create_database_file(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    except sqlite3.Error as error:
        raise _to_os_error(error) from None
    try:
        _acquire(connection, shared=shared, wait=wait)
        yield
    finally:
        connection.close()


_creation = Lock()


def create_database_file(path: Path) -> None:
    """Create an empty SQLite file, readable only by this user, unless it exists.

    An existing file must not be opened without SQLite: closing any descriptor of a file frees all locks that this
    process holds on it, also those of other threads. SQLite avoids that only for its own descriptors.

    Raises:
        OSError: it cannot be created, or this user may not write to it.
    """
    with _creation:  # until the file is closed again, no other thread of this process can have locked it
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
        except FileExistsError:
            if not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from None


def _acquire(connection: sqlite3.Connection, *, shared: bool, wait: bool) -> None:
    deadline = monotonic() + (TIMEOUT_SECONDS if wait else 0)
    while True:
        try:
            connection.execute("BEGIN" if shared else "BEGIN EXCLUSIVE")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK not in _BUSY_CODES:
                raise _to_os_error(error) from None
            if monotonic() > deadline:
                raise LockBusy from None
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            sleep(_POLL_SECONDS)
        else:
            return


def _to_os_error(error: sqlite3.Error) -> OSError:
    is_full = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK == sqlite3.SQLITE_FULL
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if is_full else OSError(None, str(error))
