"""Locks between processes, held through SQLite so that the system frees them when a process is killed.

A keep has two locks: one per machine, and one for the whole folder. Processes that add files hold the second one
shared, so several machines may add at once. Processes that remove files hold it exclusively.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from threadline import atomic
from threadline.errors import IndexBusy

_LOCK_NAME = ".lock"
TIMEOUT_SECONDS = 5.0
"""Seconds to wait for another writer."""
_PRIMARY_CODE_MASK = 0xFF
"""What SQLite's more exact codes have of the plain ones."""


@contextmanager
def lock_for_adding(folder: Path, machine: str) -> Iterator[None]:
    """Nobody takes anything away meanwhile, and no other process of this machine adds; those of others may.

    Raises:
        IndexBusy: somebody does.
        Unreadable: the keep cannot be written, now or by what is done meanwhile.
    """
    with ExitStack() as held:
        held.enter_context(_hold_lock(folder, f"{_LOCK_NAME}-{machine}", alone=True))
        held.enter_context(_hold_lock(folder, _LOCK_NAME, alone=False))
        yield


@contextmanager
def lock_for_removing(folder: Path, machine: str) -> Iterator[None]:
    """Nobody else writes meanwhile.

    Raises:
        IndexBusy: somebody does.
        Unreadable: the keep cannot be written, now or by what is done meanwhile.
    """
    with ExitStack() as held:
        held.enter_context(_hold_lock(folder, f"{_LOCK_NAME}-{machine}", alone=True))
        held.enter_context(_hold_lock(folder, _LOCK_NAME, alone=True))
        yield


@contextmanager
def _hold_lock(folder: Path, name: str, *, alone: bool) -> Iterator[None]:
    # SQLite's locks are the ones that are there on every system; its file stays empty.
    path = folder / name
    try:
        path.touch(mode=0o600)
        lock = sqlite3.connect(path, isolation_level=None, timeout=TIMEOUT_SECONDS)
    except (OSError, sqlite3.Error) as error:
        raise atomic.keep_write_error(folder, _to_os_error(error)) from None
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE" if alone else "BEGIN")
            lock.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            if error.sqlite_errorcode & _PRIMARY_CODE_MASK in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                said = f"Another threadline is writing the keep {str(folder)!r}; wait for it, or try again."
                raise IndexBusy(said) from None
            raise atomic.keep_write_error(folder, _to_os_error(error)) from None
        try:
            yield
        except OSError as error:
            raise atomic.keep_write_error(folder, error) from None
    finally:
        lock.close()


def _to_os_error(error: OSError | sqlite3.Error) -> OSError:
    if isinstance(error, OSError):
        return error
    is_full = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK == sqlite3.SQLITE_FULL
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if is_full else OSError(None, str(error))
