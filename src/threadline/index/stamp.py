"""Stamps: times as the index keeps them, in milliseconds where they are written as usual, and else as they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from threadline.model.time import parse_timestamp

QUARTER = 900_000
"""Milliseconds in a quarter of an hour."""
_HOUR = 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_usual = re.compile(r"(\d{4}-\d\d-\d\dT\d\d):([0-5]\d):([0-5]\d)\.(\d{3})Z", re.ASCII).fullmatch
_A_YEAR = timedelta(days=366)
# Zones shift the first and last days of all time out of it; what stands there is kept as it is written.
_LAST = datetime.max.replace(tzinfo=UTC) - _A_YEAR


def stamp(time: str) -> int | str:
    """A time as the index keeps it.

    >>> stamp("2025-07-01T10:43:45.885Z"), stamp("2025-07-01T12:43+02:00")
    (1751366625885, '2025-07-01T12:43+02:00')
    """
    written = _usual(time)
    hour = _begins(written[1]) if written is not None else None
    if written is None or hour is None:
        return time
    return hour + 60_000 * int(written[2]) + 1_000 * int(written[3]) + int(written[4])


def written(stamped: int | str) -> str:
    """The time as it was written.

    >>> written(1751366625885)
    '2025-07-01T10:43:45.885Z'
    """
    if isinstance(stamped, str):
        return stamped
    hour, rest = divmod(stamped, _HOUR)
    return f"{_named(hour)}:{rest // 60_000:02}:{rest // 1_000 % 60:02}.{rest % 1_000:03}Z"


def milliseconds(moment: datetime, *, up: bool = False) -> int:
    """A moment in milliseconds since 1970, rounded down, or up."""
    since = moment - _EPOCH
    return -(-since // timedelta(milliseconds=1)) if up else since // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _begins(hour: str) -> int | None:
    moment = parse_timestamp(f"{hour}:00:00Z")
    return milliseconds(moment) if moment is not None and _EPOCH <= moment <= _LAST else None


@lru_cache(maxsize=4096)
def _named(hour: int) -> str:
    return f"{_EPOCH + timedelta(hours=hour):%Y-%m-%dT%H}"
