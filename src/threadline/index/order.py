"""The order in which transcripts are read: the oldest first, by what their ends say."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from threadline.errors import Error
from threadline.parse.chunks import open_transcript

_END = 8 * 1024
_TIME = b'"timestamp":"2'
_LENGTH = 23  # 2026-11-15T12:00:00.000


def last_told(path: str, size: int, mtime_ns: int) -> str:
    """The last time that the end of a transcript names, as text that sorts; when it was written where it names none.

    A copy of a home has lost the times of its files, and they may all be the same.
    """
    try:
        file = open_transcript(path)
        try:
            os.lseek(file, max(0, size - _END), os.SEEK_SET)
            end = os.read(file, _END)
        finally:
            os.close(file)
    except (Error, OSError):
        end = b""
    at = end.rfind(_TIME)
    if at >= 0:
        start = at + len(_TIME) - 1
        return end[start : start + _LENGTH].decode(errors="replace")
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC).isoformat()[:_LENGTH]
    except (OverflowError, ValueError, OSError):
        return ""
