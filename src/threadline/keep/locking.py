"""Locking: writers of one keep that must not meet; the system frees what a killed one held."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from threadline.errors import IndexBusy
from threadline.keep import durable

_ALL = ".lock"
PATIENCE = 5.0
"""Seconds to wait for another writer."""
_CODE = 0xFF
"""What SQLite's more exact codes have of the plain ones."""


@contextmanager
def adding(folder: Path, machine: str) -> Iterator[None]:
    """Nobody takes anything away meanwhile, and no other process of this machine adds; those of others may.

    Raises:
        IndexBusy: somebody does.
        Unreadable: the keep cannot be written, now or by what is done meanwhile.
    """
    with ExitStack() as held:
        held.enter_context(_held(folder, f"{_ALL}-{machine}", alone=True))
        held.enter_context(_held(folder, _ALL, alone=False))
        yield


@contextmanager
def removing(folder: Path, machine: str) -> Iterator[None]:
    """Nobody else writes meanwhile.

    Raises:
        IndexBusy: somebody does.
        Unreadable: the keep cannot be written, now or by what is done meanwhile.
    """
    with ExitStack() as held:
        held.enter_context(_held(folder, f"{_ALL}-{machine}", alone=True))
        held.enter_context(_held(folder, _ALL, alone=True))
        yield


@contextmanager
def _held(folder: Path, name: str, *, alone: bool) -> Iterator[None]:
    # SQLite's locks are the ones that are there on every system; its file stays empty.
    path = folder / name
    try:
        path.touch(mode=0o600)
        lock = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
    except (OSError, sqlite3.Error) as error:
        raise durable.unwritable(folder, _as_system_error(error)) from None
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE" if alone else "BEGIN")
            lock.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            if error.sqlite_errorcode & _CODE in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                said = f"Another threadline is writing the keep {str(folder)!r}; wait for it, or try again."
                raise IndexBusy(said) from None
            raise durable.unwritable(folder, _as_system_error(error)) from None
        try:
            yield
        except OSError as error:
            raise durable.unwritable(folder, error) from None
    finally:
        lock.close()


def _as_system_error(error: OSError | sqlite3.Error) -> OSError:
    if isinstance(error, OSError):
        return error
    is_full = getattr(error, "sqlite_errorcode", 0) & _CODE == sqlite3.SQLITE_FULL
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if is_full else OSError(None, str(error))
