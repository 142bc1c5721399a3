"""Moments as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from threadline.errors import BadQuery
from threadline.model.time import parse_timestamp

_AGO = re.compile(r"(\d{1,6})\s*(m|min|h|d|w)")
_UNITS = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str, *, now: datetime | None = None, end: bool = False) -> datetime:
    """The moment that `2026-11-03`, `2026-11-03T14:00`, `12h`, `7d`, `2w`, `now`, `today` or `yesterday` means, in UTC.

    A day means its first moment, or with `end` its last; days are days in UTC.
    """
    present = now or datetime.now(UTC)
    word = text.strip().lower()
    days = {"today": 0, "yesterday": 1}
    if word == "now":
        return present
    if word in days:
        return _day(present - timedelta(days=days[word]), end=end)
    ago = _AGO.fullmatch(word)
    if ago is not None:
        try:
            return present - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        except OverflowError:  # before the year 1: from the beginning
            return datetime.min.replace(tzinfo=UTC)
    written = parse_timestamp(text) if "-" in text else None
    if written is None:
        raise BadQuery(
            f"{text!r} is no time; write 2026-11-03, 2026-11-03T14:00, 12h, 7d, 2w, now, today or yesterday."
        )
    return _day(written, end=end) if re.fullmatch(r"\d{4}-\d\d-\d\d", text.strip()) else written


def _day(present: datetime, *, end: bool) -> datetime:
    start = present.replace(hour=0, minute=0, second=0, microsecond=0)
    return start + timedelta(days=1, microseconds=-1) if end else start
