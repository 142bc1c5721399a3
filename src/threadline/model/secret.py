"""Files that are never opened, by their name alone."""

from __future__ import annotations

_LAST = frozenset("yY")


def is_secret_name(name: str) -> bool:
    """Whether a file of that name holds credentials wherever it lies."""
    if name[:1] != "." and name[-1:] not in _LAST:  # as nearly all are
        return False
    lower = name.lower()
    return lower in {".credentials.json", ".env"} or lower.endswith(".key") or lower.startswith(".env.")
