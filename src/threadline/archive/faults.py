"""Faults: what SQLite says when an index is at fault, told apart from a wrong question and from somebody who writes."""

from __future__ import annotations

import sqlite3

from threadline.errors import Unreadable

# What SQLite quotes of a damaged file need not be text.
FAULTS = (Unreadable, sqlite3.Error, UnicodeDecodeError)
"""What an archive may raise because of its index."""
_SIGNS = ("disk i/o", "full", "unable to open", "readonly", "malformed", "not a database")


def is_of_index(error: Exception) -> bool:
    """Whether SQLite says that the file is at fault, and neither the question nor somebody who is writing it."""
    if isinstance(error, sqlite3.OperationalError):
        return any(sign in str(error).lower() for sign in _SIGNS)
    return isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and not isinstance(
        error, sqlite3.ProgrammingError | sqlite3.InterfaceError
    )
