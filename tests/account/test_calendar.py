"""Tests of the calendar: days, weeks, months and hours in the reader's time zone, also when the clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.account import Calendar
from threadline.model.ledger import NO_TIME

BERLIN, NEW_YORK, KOLKATA, LORD_HOWE, APIA = (
    ZoneInfo(name)
    for name in ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia")
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "time", "day", "hour"),
    [
        (UTC, "2026-01-05T23:59:59.999Z", "2026-01-05", "23:00"),
        (BERLIN, "2026-01-05T23:00:00.000Z", "2026-01-06", "00:00"),
        (BERLIN, "2026-07-05T21:59:59.999Z", "2026-07-05", "23:00"),
        (BERLIN, "2026-07-05T22:00:00.000Z", "2026-07-06", "00:00"),
        (NEW_YORK, "2026-01-05T04:59:59Z", "2026-01-04", "23:00"),
        (KOLKATA, "2026-01-05T18:29:59.999Z", "2026-01-05", "23:00"),
        (KOLKATA, "2026-01-05T18:30:00.000Z", "2026-01-06", "00:00"),
        # The clock goes forward in Berlin at 01:00Z, and back in New York at 06:00Z.
        (BERLIN, "2026-03-29T00:59:59Z", "2026-03-29", "01:00"),
        (BERLIN, "2026-03-29T01:00:00Z", "2026-03-29", "03:00"),
        (NEW_YORK, "2026-11-01T05:30:00Z", "2026-11-01", "01:00"),
        (NEW_YORK, "2026-11-01T06:30:00Z", "2026-11-01", "01:00"),
        # By half an hour, in the midst of an hour of UTC.
        (LORD_HOWE, "2026-04-04T14:59:59Z", "2026-04-05", "01:00"),
        (LORD_HOWE, "2026-04-04T15:00:00Z", "2026-04-05", "01:00"),
        (LORD_HOWE, "2026-04-04T15:30:00Z", "2026-04-05", "02:00"),
        # Samoa had no 30 December 2011.
        (APIA, "2011-12-30T09:59:59Z", "2011-12-29", "23:00"),
        (APIA, "2011-12-30T10:00:00Z", "2011-12-31", "00:00"),
        # Not as Claude Code writes them.
        (UTC, "2026-01-06T01:00:00+14:00", "2026-01-05", "11:00"),
        (BERLIN, "2016-12-31T23:59:60.000Z", "2017-01-01", "00:00"),
        (UTC, "9999-12-31T23:59:59.999Z", "9999-12-31", "23:00"),
        (BERLIN, "9999-12-31T23:59:59.999Z", "9999-12-31", "23:00"),
    ],
)
def test_day_and_hour_are_local(zone: ZoneInfo, time: str, day: str, hour: str) -> None:
    """A moment has the day and the hour that a clock in the zone shows, in any order of calls."""
    calendar = Calendar(zone)
    assert (calendar.day(time), calendar.hour(time)) == (day, hour)
    assert (calendar.day(time), calendar.hour(time)) == (day, hour)


@pytest.mark.parametrize(
    ("time", "week"),
    [
        ("2026-01-05T00:00:00Z", "2026-01-05"),
        ("2026-01-11T23:59:59Z", "2026-01-05"),
        ("2026-01-01T12:00:00Z", "2025-12-29"),
        ("2024-02-29T12:00:00Z", "2024-02-26"),
        ("9999-12-31T12:00:00Z", "9999-12-27"),
    ],
)
def test_weeks_begin_on_monday(time: str, week: str) -> None:
    """A week is named by its Monday, across months and years."""
    assert Calendar().week(time) == week


def test_month_is_local() -> None:
    """The month is that of the local day."""
    assert Calendar(BERLIN).month("2026-01-31T23:30:00Z") == "2026-02"


@pytest.mark.parametrize("time", ["", "never", "2026-13-99T99:99:99Z", "2026-01-05T25:00:00Z"])
def test_invalid_times_have_no_day(time: str) -> None:
    """Invalid times are grouped under one name."""
    calendar = Calendar(BERLIN)
    assert {calendar.day(time), calendar.week(time), calendar.month(time), calendar.hour(time)} == {NO_TIME}


@given(
    st.integers(-30_000_000_000, 250_000_000_000).map(lambda seconds: _EPOCH + timedelta(seconds=seconds)),
    st.sampled_from([UTC, BERLIN, NEW_YORK, KOLKATA, LORD_HOWE, APIA, timezone(timedelta(hours=5, minutes=45))]),
)
def test_cached_hours_match_the_clock(moment: datetime, zone: ZoneInfo) -> None:
    """What is computed once per hour is correct for each moment of that hour."""
    calendar = Calendar(zone)
    first = moment.replace(minute=0, second=0, microsecond=0)
    for sample in (first, moment, first + timedelta(minutes=59, seconds=59)):
        local = sample.astimezone(zone)
        text = sample.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert (calendar.day(text), calendar.hour(text)) == (local.date().isoformat(), f"{local.hour:02}:00")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "0999-06-15T12:00:00Z"])
@pytest.mark.parametrize("zone", [UTC, NEW_YORK])
def test_years_below_1000_have_four_digits(time: str, zone: ZoneInfo) -> None:
    """Days sort and weeks can be computed in any year."""
    calendar = Calendar(zone)
    assert calendar.day(time)[:3] in {"000", "099"}
    assert calendar.week(time) <= calendar.day(time)
    assert calendar.month(time) == calendar.day(time)[:7]
