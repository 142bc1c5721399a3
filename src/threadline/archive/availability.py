"""Tell a damaged index from a bad query, and notice homes that have disappeared."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.errors import Unreadable
from threadline.find import PROJECTS
from threadline.model.homes import KEEP_SOURCE

if TYPE_CHECKING:
    from threadline.model.homes import Home

# What SQLite quotes of a damaged file need not be text.
INDEX_ERRORS = (Unreadable, sqlite3.Error, UnicodeDecodeError)
"""What an archive may raise because of its index."""
_DAMAGE_MESSAGES = ("disk i/o", "full", "unable to open", "readonly", "malformed", "not a database")


def is_index_damage(error: Exception) -> bool:
    """Whether SQLite says that the file is at fault, and neither the question nor somebody who is writing it."""
    if isinstance(error, sqlite3.OperationalError):
        return any(sign in str(error).lower() for sign in _DAMAGE_MESSAGES)
    return isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and not isinstance(
        error, sqlite3.ProgrammingError | sqlite3.InterfaceError
    )


class HomePresence:
    """The homes as they were found, by what has to be there for them to be."""

    def __init__(self, homes: Sequence[Home]) -> None:
        living = [home.path for home in homes if home.source != KEEP_SOURCE]
        # A folder whose disk is gone may still be there, empty.
        self._places = {path: inner if (inner := path / PROJECTS).is_dir() else path for path in living}

    def lost(self) -> tuple[Path, ...]:
        """The homes that are not there now."""
        return tuple(home for home, place in self._places.items() if not place.is_dir())

    def covers_all(self, homes: Sequence[Path]) -> bool:
        """Whether these are all there were."""
        return len(homes) == len(self._places)
