"""Files that are never opened, by their name alone."""

from __future__ import annotations


def is_secret_name(name: str) -> bool:
    """Whether a file of that name holds credentials wherever it lies."""
    lower = name.lower()
    return lower in {".credentials.json", ".env"} or lower.endswith(".key") or lower.startswith(".env.")
