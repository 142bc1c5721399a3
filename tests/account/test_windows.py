"""Windows of five hours: where they begin and end, what they come to, and where the active one leads."""

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

from threadline.account import Ledger, active_window, shipped_rates, window_limit
from threadline.account.charges import compute_charges
from threadline.account.windows import usage_windows
from threadline.model.ledger import Charge, Projection, Sum, UsageWindow, WindowLimit
from threadline.model.usage import Origin, Sighting
from threadline.reports import read_ledger

DAY = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2026, 11, 15, tzinfo=UTC)
OPUS, HAIKU = "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001"


def charged(*times: str, model: str | None = OPUS, output: int = 100) -> list[Charge]:
    """Charges of 10 input, 1,000 written, 5,000 read, at times of one day or at whole times."""
    origin = Origin(session="s", transcript="t.jsonl", project="/p", home="/h")
    seen = [
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
    return list(compute_charges(seen, shipped_rates()))


def spans(found: Sequence[UsageWindow]) -> list[str]:
    """Windows as text: `10:00-15:00`, and `gap 15:40-23:50`."""
    return [
        f"{'gap ' if usage_window.is_gap else ''}{usage_window.begins:%H:%M}-{usage_window.ends:%H:%M}"
        for usage_window in found
    ]


def test_a_window_begins_with_the_hour() -> None:
    """It begins with the hour of its first charge, and ends five hours later, however late in that hour it was."""
    (found,) = usage_windows(charged("10:59:59.900", "12:00:00"), now=LATER)
    assert (found.begins, found.ends) == (DAY + timedelta(hours=10), DAY + timedelta(hours=15))
    assert (found.first, found.last) == (DAY + timedelta(hours=10, minutes=59, seconds=59.9), DAY + timedelta(hours=12))
    assert (found.sum.charges, found.sum.tokens, found.is_gap, found.is_active) == (2, 12220, False, False)


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
def test_where_another_begins(times: tuple[str, ...], expected: list[str]) -> None:
    """A charge after the end opens a window; only one more than five hours after the charge before makes a gap."""
    assert spans(usage_windows(charged(*times), now=LATER)) == expected


def test_a_gap_is_nothing() -> None:
    """A gap begins five hours after the last charge and ends with the next; it has no sum, model or rate."""
    _, gap, _ = usage_windows(charged("10:20:30.123", "10:40:30.5", "23:50:00"), now=LATER)
    assert gap == UsageWindow(
        DAY + timedelta(hours=15, minutes=40, seconds=30.5), DAY + timedelta(hours=23, minutes=50)
    )
    assert (gap.is_gap, gap.sum, gap.models, gap.burn, gap.projection) == (True, Sum(), (), None, None)


def test_the_burn_of_the_active_one() -> None:
    """Rates are the sum by the minutes between the first and the last charge; the projection is by whole minutes.

    What ccusage 20.0.24 says of 12,453 tokens and 0.014725 USD in 78 minutes with 200 to go: 159.65384615384616 tokens
    a minute, 5.8076923076923075 without the cache, 0.011326923076923078 USD an hour, 44,384 tokens and 0.05 USD.
    """
    some = charged("11:10:14") + charged("12:28:14", model=HAIKU, output=333)
    (found,) = usage_windows(some, now=DAY + timedelta(hours=12, minutes=40, seconds=14))
    assert (found.is_active, found.models) == (True, (OPUS, HAIKU))
    assert (found.sum.tokens, found.sum.amount) == (12453, Decimal("0.014725"))
    assert found.burn is not None
    assert float(found.burn.tokens_per_minute) == 159.65384615384616
    assert float(found.burn.new_tokens_per_minute) == 5.8076923076923075
    assert float(found.burn.amount_per_hour or 0) == pytest.approx(0.011326923076923078, rel=1e-15)
    assert found.projection == Projection(200, 44384, Decimal("0.05"))
    shown = found.record()
    assert (shown["tokens_per_minute"], shown["amount_per_hour"]) == (Decimal("159.653846"), Decimal("0.011327"))


def test_one_moment_has_no_rate() -> None:
    """Where all was spent at one moment, nothing follows from it."""
    (found,) = usage_windows(charged("12:00:00", "12:00:00"), now=DAY + timedelta(hours=12, minutes=1))
    assert (found.is_active, found.burn, found.projection) == (True, None, None)


@pytest.mark.parametrize(("hour", "expected"), [(14, True), (14.999, True), (15, False), (40, False)])
def test_active_until_it_ends(hour: float, expected: bool) -> None:
    """A window is active until its end, and no window is after that."""
    found = usage_windows(charged("10:30:00", "13:00:00"), now=DAY + timedelta(hours=hour))
    assert (active_window(found) is not None) is expected


def test_amounts_of_unknown_models() -> None:
    """A model without a price leaves no amount, no amount an hour and none to come, and is counted as unpriced."""
    (found,) = usage_windows(charged("12:00:00", "12:30:00", model="no-such"), now=DAY + timedelta(hours=13))
    assert (found.sum.amount, found.sum.unpriced, found.sum.tokens) == (None, 2, 12220)
    assert found.burn is not None
    assert found.projection is not None
    assert (found.burn.amount_per_hour, found.projection.amount) == (None, None)


def test_the_limit() -> None:
    """It is what was given, or the most of a window that is over; above four fifths is a warning."""
    found = usage_windows(
        charged("01:00:00", "01:01:00", "12:00:00", "12:30:00", "12:31:00"), now=DAY + timedelta(hours=13)
    )
    assert window_limit(found) == WindowLimit(12220, is_given=False)
    assert window_limit(found, 500) == WindowLimit(500, is_given=True)
    assert window_limit([]) is None
    limit = WindowLimit(1000, is_given=True)
    assert [limit.status(tokens) for tokens in (800, 801, 1000, 1001)] == ["ok", "warning", "warning", "exceeds"]
    assert found[-1].record(limit)["limit_remaining"] == 0
    assert found[0].record(limit)["limit_status"] is None


def test_charges_without_a_time_are_in_no_window() -> None:
    """A time that is none puts a charge into no window, and does not stop the others."""
    assert spans(usage_windows(charged("10:30:00", "2026-99-99Tnever"), now=LATER)) == ["10:00-15:00"]
    assert usage_windows(charged("2026-99-99Tnever"), now=LATER) == []


def test_the_end_of_time() -> None:
    """A window at the last hour of the last year ends with its last charge."""
    (found,) = usage_windows(charged("9999-12-31T23:30:00Z"), now=LATER)
    assert found.ends == found.last


@given(
    st.lists(st.datetimes(datetime(2025, 1, 1), datetime(2025, 1, 9)), min_size=1, max_size=40),  # noqa: DTZ001
    st.sampled_from([1, 5, 24]),
)
def test_laws(moments: list[datetime], hours: int) -> None:
    """Every charge is in one window, within its time; windows do not overlap in charges and sums are the ledger's."""
    some = charged(*(f"{when.isoformat()}Z" for when in moments))
    found = usage_windows(some, now=LATER, hours=hours)
    spent = [one for one in found if not one.is_gap]
    assert Sum.of(one.sum for one in spent) == Ledger(some, shipped_rates()).total
    assert usage_windows(some[::-1], now=LATER, hours=hours) == found
    for one in spent:
        assert one.first is not None
        assert one.last is not None
        assert one.begins <= one.first <= one.last <= one.ends == one.begins + timedelta(hours=hours)
        assert (one.begins.minute, one.begins.second, one.begins.microsecond) == (0, 0, 0)
    for one, other in pairwise(spent):
        assert one.last is not None
        assert other.first is not None
        assert other.first > one.ends or other.first - one.last > timedelta(hours=hours)
    for at, gap in enumerate(found):
        if gap.is_gap:
            last = found[at - 1].last
            assert last is not None
            assert (gap.begins, gap.ends) == (last + timedelta(hours=hours), found[at + 1].first)


def test_a_copy_opens_no_window(tmp_path: Path) -> None:
    """A session that was copied a day later, with its own times, is spent once: in the window of the original."""
    said = reply("Hello.", output=7)
    folder = tmp_path / "projects/-work-app"
    write(folder / f"{SESSION}.jsonl", *transcript(said))
    other = SESSION.replace("0001", "0002")
    copy = [dict(row) for row in transcript(said) if isinstance(row, dict)]
    for row in copy:
        row.update(sessionId=other, timestamp="2026-01-06T12:00:00.000Z")
    write(folder / f"{other}.jsonl", *copy)
    (found,) = usage_windows(read_ledger(tmp_path, jobs=1), now=LATER)
    assert (found.sum.charges, found.begins.day) == (1, 5)
