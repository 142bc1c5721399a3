"""Times as transcripts write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

_LEAP_SECOND = re.compile(r"(T\d\d:\d\d):60")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Counts since 1970 beyond this are milliseconds, below it seconds (the year 5138).
_MOST_SECONDS = 100_000_000_000
_MOST_DIGITS = len("253402300799999")  # the last millisecond of the year 9999


def parse_timestamp(text: Any) -> datetime | None:
    """The moment a timestamp names, aware and in UTC; None when it names none.

    Takes ISO 8601 with `Z`, an offset or nothing (read as UTC), and counts of milliseconds or seconds
    since 1970, as numbers or as digits.

    >>> parse_timestamp("2025-07-01T10:43:45.885Z")
    datetime.datetime(2025, 7, 1, 10, 43, 45, 885000, tzinfo=datetime.timezone.utc)
    >>> parse_timestamp(1751366625885) == parse_timestamp("2025-07-01T12:43:45.885+02:00")
    True
    >>> parse_timestamp("yesterday") is None
    True
    """
    if text.__class__ is str and text[-1:] == "Z":  # as nearly all are written
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return _written(text.strip())
    if isinstance(text, datetime):
        return _in_utc(text)
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _since_1970(text)
    return _written(text.strip()) if isinstance(text, str) else None


def _written(text: str) -> datetime | None:
    if text.isascii() and text.isdecimal():
        return _since_1970(int(text)) if len(text) <= _MOST_DIGITS else None
    try:
        return _in_utc(datetime.fromisoformat(text))
    except ValueError:
        # The sixtieth second exists in the standard and in no datetime: the same minute's last one.
        leap = _LEAP_SECOND.sub(r"\1:59", text)
        return _written(leap) if leap != text else None


def _in_utc(moment: datetime) -> datetime | None:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _since_1970(count: float) -> datetime | None:
    try:
        seconds = count / 1000 if abs(count) >= _MOST_SECONDS else count
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None
