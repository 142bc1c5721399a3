"""Text and numbers that a database takes."""

from __future__ import annotations

import os
from sys import intern
from typing import Any

_TOO_MANY = 1 << 63


def as_text(value: Any) -> str | None:
    """Text that a database takes: half of a character, which JSON may hold, is not."""
    if not isinstance(value, str) or value.isascii():
        return value if isinstance(value, str) else None
    return value.encode("utf-8", "replace").decode()


def as_number(value: Any) -> int | None:
    """A number that a database takes: JSON may hold larger ones."""
    return value if isinstance(value, int) and -_TOO_MANY < value < _TOO_MANY else None


def as_path(kept: str | bytes | None) -> str:
    """A path as the index keeps it, as it is on disk."""
    return intern(os.fsdecode(kept)) if kept is not None else ""


def stored(path: str) -> str | bytes:
    """A path as the index keeps it: one that is no text, as its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path
