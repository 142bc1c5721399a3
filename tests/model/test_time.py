"""`parse_timestamp`: times as transcripts write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each

import threadline


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]  # year, month, day are always among the parts


TIMES: dict[str, tuple[Any, datetime | None]] = {
    "as documented": ("2024-01-15T10:30:00.000Z", _utc(2024, 1, 15, 10, 30)),
    "milliseconds": ("2025-07-23T15:00:55.015Z", _utc(2025, 7, 23, 15, 0, 55, 15_000)),
    "microseconds": ("2025-07-23T15:00:55.015678Z", _utc(2025, 7, 23, 15, 0, 55, 15_678)),
    "no fraction": ("2025-07-23T15:00:55Z", _utc(2025, 7, 23, 15, 0, 55)),
    "an offset": ("2025-07-23T17:00:55+02:00", _utc(2025, 7, 23, 15, 0, 55)),
    "the largest offset": ("2026-01-01T00:00:00+14:00", _utc(2025, 12, 31, 10)),
    "no zone is UTC": ("2025-07-23T15:00:55", _utc(2025, 7, 23, 15, 0, 55)),
    "a space for the T": ("2025-07-23 15:00:55Z", _utc(2025, 7, 23, 15, 0, 55)),
    "a date": ("2025-07-23", _utc(2025, 7, 23)),
    "spaces around": (" 2025-07-23T15:00:55Z\n", _utc(2025, 7, 23, 15, 0, 55)),
    "a leap second": ("2016-12-31T23:59:60Z", _utc(2016, 12, 31, 23, 59, 59)),
    "the first year": ("0001-01-01T00:00:00Z", _utc(1, 1, 1)),
    "the last year": ("9999-12-31T23:59:59.999Z", _utc(9999, 12, 31, 23, 59, 59, 999_000)),
    "before the first year": ("0001-01-01T00:00:00+14:00", None),
    "after the last year": ("9999-12-31T23:59:59-14:00", None),
    "milliseconds since 1970": (1751366625885, _utc(2025, 7, 1, 10, 43, 45, 885_000)),
    "seconds since 1970": (1751366625, _utc(2025, 7, 1, 10, 43, 45)),
    "seconds with a fraction": (1751366625.5, _utc(2025, 7, 1, 10, 43, 45, 500_000)),
    "milliseconds as digits": ("1751366625885", _utc(2025, 7, 1, 10, 43, 45, 885_000)),
    "1970": (0, _utc(1970, 1, 1)),
    "before 1970": (-1, _utc(1969, 12, 31, 23, 59, 59)),
    "an aware datetime": (datetime(2025, 7, 23, 17, tzinfo=timezone(timedelta(hours=2))), _utc(2025, 7, 23, 15)),
    "a naive datetime": (datetime(2025, 7, 23, 15), _utc(2025, 7, 23, 15)),  # noqa: DTZ001 - it is what is tested
    "nothing": (None, None),
    "an empty string": ("", None),
    "words": ("yesterday", None),
    "no such day": ("2026-02-30T00:00:00Z", None),
    "no such hour": ("2026-02-03T25:00:00Z", None),
    "redacted": ("REDACTED", None),
    "a boolean": (True, None),
    "a list": ([2026], None),
    "an object": ({"at": 1}, None),
    "not a number": (float("nan"), None),
    "infinity": (float("inf"), None),
    "a float too large": (1e308, None),
    "an integer too large": (10**400, None),
    "digits too many": ("9" * 5000, None),
    "half a surrogate pair": ("2026-01-01T00:00:00\ud800", None),
    "a NUL": ("2026-01-01\0", None),
}


@for_each("written, moment", TIMES.values(), ids=TIMES)
def test_a_time_is_a_moment_in_utc_or_none(written: Any, moment: datetime | None) -> None:
    """What names a moment is that moment, aware and in UTC; what names none is None, and nothing raises."""
    found = threadline.parse_timestamp(written)
    assert found == moment
    assert found is None or found.tzinfo is UTC


@given(st.text(max_size=40) | st.integers() | st.floats() | st.binary(max_size=9) | st.lists(st.none()))
def test_nothing_raises(written: Any) -> None:
    """Whatever is asked, the answer is a moment or None."""
    found = threadline.parse_timestamp(written)
    assert found is None or found.tzinfo is UTC


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds are naive
def test_what_is_written_is_read(moment: datetime) -> None:
    """A moment written as ISO 8601 in any of its usual forms is read as that moment."""
    written = moment.isoformat()
    assert threadline.parse_timestamp(written) == moment
    assert threadline.parse_timestamp(written.replace("+00:00", "Z")) == moment
    elsewhere = moment.astimezone(timezone(timedelta(hours=-3, minutes=-30)))
    assert threadline.parse_timestamp(elsewhere.isoformat()) == moment
