"""Tests of `parse_timestamp`."""

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


@for_each("value, moment", TIMES.values(), ids=TIMES)
def test_parses_known_formats(value: Any, moment: datetime | None) -> None:
    """A valid time becomes an aware datetime in UTC, an invalid one None. Nothing raises."""
    result = threadline.parse_timestamp(value)
    assert result == moment
    assert result is None or result.tzinfo is UTC


@given(st.text(max_size=40) | st.integers() | st.floats() | st.binary(max_size=9) | st.lists(st.none()))
def test_any_value_is_a_datetime_or_none(value: Any) -> None:
    """No value raises."""
    result = threadline.parse_timestamp(value)
    assert result is None or result.tzinfo is UTC


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds are naive
def test_isoformat_round_trips(moment: datetime) -> None:
    """Any of the usual ISO 8601 forms of a moment is read as that moment."""
    text = moment.isoformat()
    assert threadline.parse_timestamp(text) == moment
    assert threadline.parse_timestamp(text.replace("+00:00", "Z")) == moment
    local = moment.astimezone(timezone(timedelta(hours=-3, minutes=-30)))
    assert threadline.parse_timestamp(local.isoformat()) == moment
