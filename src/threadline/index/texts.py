"""Text that a database takes."""

from __future__ import annotations

import os
from typing import Any


def as_text(value: Any) -> str | None:
    """Text that a database takes: half of a character, which JSON may hold, is not."""
    if not isinstance(value, str) or value.isascii():
        return value if isinstance(value, str) else None
    return value.encode("utf-8", "replace").decode()


def stored(path: str) -> str | bytes:
    """A path as the index keeps it: one that is no text, as its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path
