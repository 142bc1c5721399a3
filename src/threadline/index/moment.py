"""Moments: when entries were written, in whole seconds, for lists in order of time."""

from __future__ import annotations

from datetime import datetime

from threadline.model.entries import Entry

_USUAL = len("2026-11-15T12:00:00.000Z")


def moment_of(entry: Entry) -> int | None:
    """When an entry was written, in seconds since 1970; None where it does not say."""
    text = entry.timestamp_text
    if type(text) is str and len(text) == _USUAL and text.endswith("Z"):
        try:
            return int(datetime.fromisoformat(text).timestamp())
        except (ValueError, OverflowError):
            return None
    moment = entry.timestamp
    return int(moment.timestamp()) if moment is not None else None
