"""Times as people write them, in UTC and in a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.errors import BadQuery
from threadline.model.times import parse_moment

NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)  # a Sunday
BERLIN, KOLKATA, LORD_HOWE = map(ZoneInfo, ("Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"))
TICK = timedelta(microseconds=1)


def parse_span(text: str, zone: str | None = None, now: datetime = NOW) -> tuple[str, str]:
    """The first moment that a text means, and the moment after its last, in UTC."""
    here = ZoneInfo(zone) if zone is not None else None
    first, last = parse_moment(text, now=now, tz=here), parse_moment(text, now=now, end=True, tz=here) + TICK
    return f"{first:%Y-%m-%dT%H:%M}", f"{last:%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize(
    ("word", "first", "after"),
    [
        ("today", "2026-11-15", "2026-11-16"),
        ("Yesterday", "2026-11-14", "2026-11-15"),
        ("this week", "2026-11-09", "2026-11-16"),
        ("last week", "2026-11-02", "2026-11-09"),
        ("last-week", "2026-11-02", "2026-11-09"),
        ("this month", "2026-11-01", "2026-12-01"),
        ("LAST  MONTH", "2026-10-01", "2026-11-01"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2025-12", "2025-12-01", "2026-01-01"),
        ("2026-11-03", "2026-11-03", "2026-11-04"),
    ],
)
def test_days_weeks_months_and_years(word: str, first: str, after: str) -> None:
    """A day, week, month or year means its first moment, or its last as an end. Weeks begin on Monday."""
    assert parse_span(word) == (f"{first}T00:00", f"{after}T00:00")


def test_last_month_in_january_is_december() -> None:
    """The month before January is in the year before."""
    assert parse_span("last month", now=NOW.replace(month=1)) == ("2025-12-01T00:00", "2026-01-01T00:00")


@pytest.mark.parametrize(
    ("day", "zone", "first", "after", "hours"),
    [
        ("2026-03-29", "Europe/Berlin", "2026-03-28T23:00", "2026-03-29T22:00", 23),
        ("2026-10-25", "Europe/Berlin", "2026-10-24T22:00", "2026-10-25T23:00", 25),
        ("2026-11-03", "Europe/Berlin", "2026-11-02T23:00", "2026-11-03T23:00", 24),
        ("2026-11-03", "Asia/Kolkata", "2026-11-02T18:30", "2026-11-03T18:30", 24),
        ("2026-04-05", "Australia/Lord_Howe", "2026-04-04T13:00", "2026-04-05T13:30", 24.5),
        ("2026-10-04", "Australia/Lord_Howe", "2026-10-03T13:30", "2026-10-04T13:00", 23.5),
        ("2026-04-24", "Africa/Cairo", "2026-04-23T22:00", "2026-04-24T21:00", 23),
    ],
)
def test_length_of_days_at_clock_changes(day: str, zone: str, first: str, after: str, hours: float) -> None:
    """Days of 23, 25, 24.5 and 23.5 hours, and one without a midnight, begin and end correctly."""
    assert parse_span(day, zone) == (first, after)
    duration = datetime.fromisoformat(after) - datetime.fromisoformat(first)
    assert duration == timedelta(hours=hours)


@given(st.dates(), st.sampled_from([UTC, BERLIN, KOLKATA, LORD_HOWE, ZoneInfo("America/St_Johns")]))
def test_days_are_contiguous(day: datetime, zone: ZoneInfo) -> None:
    """In any zone, a day ends one tick before the next one begins."""
    try:
        after = day + timedelta(days=1)
    except OverflowError:
        return
    ends = parse_moment(f"{day:%Y-%m-%d}".zfill(10), end=True, tz=zone)
    assert parse_moment(f"{after:%Y-%m-%d}".zfill(10), tz=zone) - ends == TICK


def test_today_depends_on_the_zone() -> None:
    """Sunday noon in UTC is Monday in Kiritimati, so yesterday is Sunday there."""
    late = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
    assert parse_span("today", "Pacific/Kiritimati", late) == ("2026-11-15T10:00", "2026-11-16T10:00")
    assert parse_span("this week", "Pacific/Kiritimati", late)[0] == "2026-11-15T10:00"
    assert parse_span("yesterday", "Pacific/Kiritimati", late) == ("2026-11-14T10:00", "2026-11-15T10:00")


def test_time_without_offset_is_in_the_zone() -> None:
    """A time is in the zone, unless it has an offset. Without a zone it is in UTC."""
    assert parse_moment("2026-07-01T14:00", tz=BERLIN) == datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert parse_moment("2026-07-01T14:00Z", tz=BERLIN) == datetime(2026, 7, 1, 14, tzinfo=UTC)
    assert parse_moment("2026-07-01T14:00-05:00", tz=BERLIN) == datetime(2026, 7, 1, 19, tzinfo=UTC)
    assert parse_moment("2026-07-01T14:00") == datetime(2026, 7, 1, 14, tzinfo=UTC)


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("12h", 12), ("7d", 168), ("30d", 720), ("2w", 336)])
def test_relative_times_do_not_depend_on_the_zone(text: str, hours: float) -> None:
    """Spans are counted back from now in hours, in any zone and across clock changes."""
    expected = NOW - timedelta(hours=hours)
    assert {
        parse_moment(text, now=NOW),
        parse_moment(text, now=NOW, tz=BERLIN),
        parse_moment(text, now=NOW, end=True),
    } == {expected}
    assert parse_moment("999999w", now=NOW) == datetime.min.replace(tzinfo=UTC)


def test_first_and_last_day_can_be_parsed() -> None:
    """The first and the last day that can be written work like others."""
    assert parse_moment("9999-12-31", end=True) == datetime.max.replace(tzinfo=UTC)
    assert parse_moment("9999-12-31", end=True, tz=LORD_HOWE) == datetime.max.replace(tzinfo=UTC)
    assert parse_moment("0001-01-01", tz=BERLIN) == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "frob", "next week", "last", "202", "2026-13", "2026-02-30", "7y", "1e9d", "-"])
def test_invalid_time_is_an_error(text: str) -> None:
    """The message shows what to write."""
    with pytest.raises(BadQuery, match=r"is not a time\. Write 2026-11-03"):
        parse_moment(text, tz=BERLIN)


def test_a_year_is_its_first_and_its_last_moment() -> None:
    """`2026` is all of that year, as `2026-11` is all of that month."""
    assert parse_moment("2026", tz="UTC") == parse_moment("2026-01-01", tz="UTC")
    assert parse_moment("2026", end=True, tz="UTC") == parse_moment("2026-12-31", end=True, tz="UTC")
