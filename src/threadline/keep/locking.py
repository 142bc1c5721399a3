"""Locking: writers of one keep that must not meet; the system frees what a killed one held."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from threadline.errors import IndexBusy

_ALL = ".lock"
_PATIENCE = 5.0
"""Seconds to wait for another writer."""


@contextmanager
def adding(folder: Path, machine: str, *, patience: float = _PATIENCE) -> Iterator[None]:
    """Nobody takes anything away meanwhile, and no other process of this machine adds; those of others may.

    Raises:
        IndexBusy: somebody does.
    """
    with ExitStack() as held:
        held.enter_context(_held(folder, f"{_ALL}-{machine}", patience, alone=True))
        held.enter_context(_held(folder, _ALL, patience, alone=False))
        yield


@contextmanager
def removing(folder: Path, machine: str, *, patience: float = _PATIENCE) -> Iterator[None]:
    """Nobody else writes meanwhile.

    Raises:
        IndexBusy: somebody does.
    """
    with ExitStack() as held:
        held.enter_context(_held(folder, f"{_ALL}-{machine}", patience, alone=True))
        held.enter_context(_held(folder, _ALL, patience, alone=True))
        yield


@contextmanager
def _held(folder: Path, name: str, patience: float, *, alone: bool) -> Iterator[None]:
    # SQLite's locks are the ones that are there on every system; its file stays empty.
    path = folder / name
    try:
        path.touch(mode=0o600)
        lock = sqlite3.connect(path, isolation_level=None, timeout=patience)
    except (OSError, sqlite3.Error) as error:
        raise IndexBusy(f"The keep {str(folder)!r} cannot be written: {error}.") from None
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE" if alone else "BEGIN")
            lock.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            said = f"Another threadline is writing the keep {str(folder)!r}; wait for it, or try again."
            raise IndexBusy(said if "locked" in str(error) else f"The keep cannot be written: {error}.") from None
        yield
    finally:
        lock.close()
