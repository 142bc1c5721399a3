"""Tests of five-hour usage windows: where they begin and end, their sums, and the projection of the active one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import SESSION, reply, transcript, write

from threadline.account import Ledger, active_window, measure_budgets, shipped_rates, window_limit
from threadline.account.charges import compute_charges
from threadline.account.windows import usage_windows
from threadline.model.budgets import Budget
from threadline.model.ledger import Charge, Projection, Sum, UsageWindow, WindowLimit
from threadline.model.usage import Origin, Sighting
from threadline.reports import read_ledger

DAY = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2026, 11, 15, tzinfo=UTC)
OPUS, HAIKU = "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001"


def charges_at(*times: str, model: str | None = OPUS, output: int = 100) -> list[Charge]:
    """Return charges of 10 input, 1,000 cache write and 5,000 cache read tokens at these times."""
    origin = Origin(session="s", transcript="t.jsonl", project="/p", home="/h")
    sightings = [
        Sighting(
            key=f"msg_01{model}{when}{number}",
            origin_number=0,
            model=model,
            time=when if "T" in when or not when else f"2026-03-01T{when}Z",
            offset=number,
            input=10,
            output=output,
            cache_write=1000,
            cache_write_5m=1000,
            cache_write_1h=0,
            cache_read=5000,
            stopped=True,
            rows=f"{number} {model}-{when}-{number}",
            origin=origin,
        )
        for number, when in enumerate(times)
    ]
    return list(compute_charges(sightings, shipped_rates()))


def spans(windows: Sequence[UsageWindow]) -> list[str]:
    """Return windows as text: `10:00-15:00`, `gap 15:40-23:50`."""
    return [
        f"{'gap ' if usage_window.is_gap else ''}{usage_window.begins:%H:%M}-{usage_window.ends:%H:%M}"
        for usage_window in windows
    ]


def test_window_begins_on_the_hour() -> None:
    """It begins with the hour of its first charge and ends five hours later."""
    (window,) = usage_windows(charges_at("10:59:59.900", "12:00:00"), now=LATER)
    assert (window.begins, window.ends) == (DAY + timedelta(hours=10), DAY + timedelta(hours=15))
    assert (window.first, window.last) == (
        DAY + timedelta(hours=10, minutes=59, seconds=59.9),
        DAY + timedelta(hours=12),
    )
    assert (window.sum.charges, window.sum.tokens, window.is_gap, window.is_active) == (2, 12220, False, False)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (("10:20:30.123", "10:40:30", "23:50:00"), ["10:00-15:00", "gap 15:40-23:50", "23:00-04:00"]),
        (("10:30:00", "15:00:00"), ["10:00-15:00"]),
        (("10:30:00", "15:00:00.001"), ["10:00-15:00", "15:00-20:00"]),
        (("10:00:00", "15:00:00"), ["10:00-15:00"]),
        (("10:00:00", "14:00:00", "15:00:01"), ["10:00-15:00", "15:00-20:00"]),
        (("10:00:00", "15:00:00", "15:30:00"), ["10:00-15:00", "15:00-20:00"]),
        (("10:59:00", "15:59:00"), ["10:00-15:00", "15:00-20:00"]),
        (("10:59:00", "15:59:00.001"), ["10:00-15:00", "gap 15:59-15:59", "15:00-20:00"]),
    ],
)
def test_where_the_next_window_begins(times: tuple[str, ...], expected: list[str]) -> None:
    """A charge after the end opens a window. There is a gap if the previous charge was more than five hours ago."""
    assert spans(usage_windows(charges_at(*times), now=LATER)) == expected


def test_gap_has_no_figures() -> None:
    """It begins five hours after the last charge and ends with the next. It has no sum, model or rate."""
    _, gap, _ = usage_windows(charges_at("10:20:30.123", "10:40:30.5", "23:50:00"), now=LATER)
    assert gap == UsageWindow(
        DAY + timedelta(hours=15, minutes=40, seconds=30.5), DAY + timedelta(hours=23, minutes=50)
    )
    assert (gap.is_gap, gap.sum, gap.models, gap.burn, gap.projection) == (True, Sum(), (), None, None)


def test_burn_rate_and_projection_match_ccusage() -> None:
    """The rate is the sum divided by the minutes between the first and the last charge.

    The projection uses whole minutes. ccusage 20.0.24 reports for 12,453 tokens and 0.014725 USD in 78 minutes with 200
    to go: 159.65384615384616 tokens a minute, 5.8076923076923075 without the cache, 0.011326923076923078 USD an hour,
    44,384 tokens and 0.05 USD.
    """
    charges = charges_at("11:10:14") + charges_at("12:28:14", model=HAIKU, output=333)
    (window,) = usage_windows(charges, now=DAY + timedelta(hours=12, minutes=40, seconds=14))
    assert (window.is_active, window.models) == (True, (OPUS, HAIKU))
    assert (window.sum.tokens, window.sum.amount) == (12453, Decimal("0.014725"))
    assert window.burn is not None
    assert float(window.burn.tokens_per_minute) == 159.65384615384616
    assert float(window.burn.new_tokens_per_minute) == 5.8076923076923075
    assert float(window.burn.amount_per_hour or 0) == pytest.approx(0.011326923076923078, rel=1e-15)
    assert window.projection == Projection(200, 44384, Decimal("0.05"))
    record = window.record()
    assert (record["tokens_per_minute"], record["amount_per_hour"]) == (Decimal("159.653846"), Decimal("0.011327"))


def test_single_moment_has_no_rate() -> None:
    """If everything was spent at one moment, there is no burn rate or projection."""
    (window,) = usage_windows(charges_at("12:00:00", "12:00:00"), now=DAY + timedelta(hours=12, minutes=1))
    assert (window.is_active, window.burn, window.projection) == (True, None, None)


@pytest.mark.parametrize(("hour", "expected"), [(14, True), (14.999, True), (15, False), (40, False)])
def test_window_is_active_until_its_end(hour: float, expected: bool) -> None:
    """After that, no window is active."""
    windows = usage_windows(charges_at("10:30:00", "13:00:00"), now=DAY + timedelta(hours=hour))
    assert (active_window(windows) is not None) is expected


def test_unknown_models_have_no_amounts() -> None:
    """There is no amount, no amount per hour and no projected amount, and the charges are counted as unpriced."""
    (window,) = usage_windows(charges_at("12:00:00", "12:30:00", model="no-such"), now=DAY + timedelta(hours=13))
    assert (window.sum.amount, window.sum.unpriced, window.sum.tokens) == (None, 2, 12220)
    assert window.burn is not None
    assert window.projection is not None
    assert (window.burn.amount_per_hour, window.projection.amount) == (None, None)


def test_limit() -> None:
    """It is the given number or the maximum of a past window. Above four fifths, the status is `warning`."""
    windows = usage_windows(
        charges_at("01:00:00", "01:01:00", "12:00:00", "12:30:00", "12:31:00"), now=DAY + timedelta(hours=13)
    )
    assert window_limit(windows) == WindowLimit(12220, is_given=False)
    assert window_limit(windows, 500) == WindowLimit(500, is_given=True)
    assert window_limit([]) is None
    limit = WindowLimit(1000, is_given=True)
    assert [limit.status(tokens) for tokens in (800, 801, 1000, 1001)] == ["ok", "warning", "warning", "exceeds"]
    assert windows[-1].record(limit)["limit_remaining"] == 0
    assert windows[0].record(limit)["limit_status"] is None


def test_charges_without_a_time_are_in_no_window() -> None:
    """An invalid time does not affect other charges."""
    assert spans(usage_windows(charges_at("10:30:00", "2026-99-99Tnever"), now=LATER)) == ["10:00-15:00"]
    assert usage_windows(charges_at("2026-99-99Tnever"), now=LATER) == []


def test_window_at_the_last_possible_hour() -> None:
    """It ends with its last charge."""
    (window,) = usage_windows(charges_at("9999-12-31T23:30:00Z"), now=LATER)
    assert window.ends == window.last


@given(
    st.lists(st.datetimes(datetime(2025, 1, 1), datetime(2025, 1, 9)), min_size=1, max_size=40),  # noqa: DTZ001
    st.sampled_from([1, 5, 24]),
)
def test_windows_partition_the_charges(moments: list[datetime], hours: int) -> None:
    """Every charge is in one window, within its time. Windows do not overlap, and their sums equal the ledger's."""
    charges = charges_at(*(f"{when.isoformat()}Z" for when in moments))
    windows = usage_windows(charges, now=LATER, hours=hours)
    used = [window for window in windows if not window.is_gap]
    assert Sum.of(window.sum for window in used) == Ledger(charges, shipped_rates()).total
    assert usage_windows(charges[::-1], now=LATER, hours=hours) == windows
    for window in used:
        assert window.first is not None
        assert window.last is not None
        assert window.begins <= window.first <= window.last <= window.ends == window.begins + timedelta(hours=hours)
        assert (window.begins.minute, window.begins.second, window.begins.microsecond) == (0, 0, 0)
    for window, next_window in pairwise(used):
        assert window.last is not None
        assert next_window.first is not None
        assert next_window.first > window.ends or next_window.first - window.last > timedelta(hours=hours)
    for at, gap in enumerate(windows):
        if gap.is_gap:
            last = windows[at - 1].last
            assert last is not None
            assert (gap.begins, gap.ends) == (last + timedelta(hours=hours), windows[at + 1].first)


def test_copied_session_opens_no_window(tmp_path: Path) -> None:
    """A session that was copied a day later, with new times, counts in the window of the original."""
    greeting = reply("Hello.", output=7)
    folder = tmp_path / "projects/-work-app"
    write(folder / f"{SESSION}.jsonl", *transcript(greeting))
    copied_session = SESSION.replace("0001", "0002")
    copy = [dict(row) for row in transcript(greeting) if isinstance(row, dict)]
    for row in copy:
        row.update(sessionId=copied_session, timestamp="2026-01-06T12:00:00.000Z")
    write(folder / f"{copied_session}.jsonl", *copy)
    (window,) = usage_windows(read_ledger(tmp_path, jobs=1), now=LATER)
    assert (window.sum.charges, window.begins.day) == (1, 5)


def test_no_window_is_certain_only_after_a_pause() -> None:
    """Without earlier charges, a window seems to have ended that is still running: budgets look further back."""
    hours = ("01T04:50", "01T08:10", "01T12:20", "01T17:10", "01T20:30", "02T01:20", "02T04:40", "02T08:50")
    later = ("02T13:00", "02T17:50", "02T21:10", "03T01:20")
    ledger = Ledger(charges_at(*(f"2026-01-{hour}:00.000Z" for hour in (*hours, *later))), shipped_rates())
    now = datetime(2026, 1, 3, 2, 30, tzinfo=UTC)
    everything, is_certain = ledger.current_window(since=datetime(2025, 12, 1, tzinfo=UTC), now=now)
    assert everything is not None
    assert (everything.begins.hour, is_certain) == (1, True)
    assert ledger.current_window(since=now - timedelta(days=1), now=now) == (None, False)
    (use,) = measure_budgets([Budget.parse("1M tokens/5h")], ledger, now=now, zone=UTC)
    assert (use.spent, use.is_certain) == (Decimal(everything.sum.tokens), True)
    assert ledger.current_window(since=now - timedelta(days=1), now=now + timedelta(hours=4)) == (None, True)
