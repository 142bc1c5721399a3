"""Tests of charges: the rate of a call, the passes of other models, and the lines behind a charge."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from threadline.account import load_rates
from threadline.account.charges import compute_charges
from threadline.model.ledger import Charge, Flag, UncountedReason
from threadline.model.usage import Origin, Sighting, UsagePass, lacks_final_usage, parse_amount, split_cache_writes

SONNET, OPUS = "claude-sonnet-4-5", "claude-opus-4-5"


def _sighting(key: str = "msg_01XFDUDYJgAACzvnptvVoYEL", **fields: Any) -> Sighting:
    """Return a sighting of a message with 1,000 input and 100 output tokens, and no cache."""
    defaults: dict[str, Any] = {
        "model": SONNET,
        "time": "2026-01-05T09:00:00.000Z",
        "offset": 0,
        "input": 1000,
        "output": 100,
        "cache_write": 0,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "cache_read": 0,
        "stopped": True,
        "rows": "0 u1",
        "origin": Origin("s1", transcript="/a.jsonl", began="2026-01-05T09:00:00.000Z", lines=lambda at: at // 100 + 1),
    }
    return Sighting(key, 0, **{**defaults, **fields})


def _charges(*sightings: Sighting) -> list[Charge]:
    return list(compute_charges(sightings, load_rates()))


def _charge(**fields: Any) -> Charge:
    (charge,) = _charges(_sighting(**fields))
    return charge


@pytest.mark.parametrize(
    ("fields", "amount"),
    [
        ({}, "0.0045"),
        ({"cache_write": 100, "cache_write_5m": 100}, "0.004875"),
        ({"cache_write": 100, "cache_write_1h": 100}, "0.0051"),
        ({"cache_read": 1000}, "0.0048"),
        ({"web_searches": 3}, "0.0345"),
        ({"model": "claude-opus-4-7", "speed": "fast", "time": "2026-06-01T00:00:00Z"}, "0.045"),
        ({"model": "claude-opus-4-7", "speed": "standard", "time": "2026-06-01T00:00:00Z"}, "0.0075"),
        ({"model": "claude-opus-4-7", "geo": "us", "time": "2026-06-01T00:00:00Z"}, "0.00825"),
        ({"tier": "batch"}, "0.00225"),
        ({"model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, "0.00495"),
        ({"model": "claude-haiku-5-5", "input": 100_000, "time": "2026-10-10T00:00:00Z"}, "0.01005"),
        ({"model": "claude-haiku-5-5", "input": 100_001, "time": "2026-10-10T00:00:00Z"}, "0.0502505"),
        ({"model": "claude-haiku-5-5", "input": 1, "cache_read": 100_000, "time": "2026-10-10T00:00:00Z"}, "0.0052505"),
        ({"model": "claude-sonnet-5-5", "cache_read": 1000, "time": "2026-10-07T23:59:59.999Z"}, "0.0032"),
        ({"model": "claude-sonnet-5-5", "cache_read": 1000, "time": "2026-10-08T00:00:00.000Z"}, "0.0031"),
        ({"model": "claude-sonnet-5-5", "cache_read": 1000, "time": "2026-10-08T01:00:00+02:00"}, "0.0032"),
        ({"input": 0, "output": 0}, "0"),
    ],
)
def test_amount_of_a_charge(fields: dict[str, Any], amount: str) -> None:
    """The amount is tokens times the prices of the day, mode and tier, plus a cent per search."""
    assert _charge(**fields).amount == Decimal(amount)


@pytest.mark.parametrize("model", ["glm-5.1", "claude-opus-5-6", "claude-opus-5-5-5", "opus", "", None])
def test_unknown_models_have_no_amount(model: str | None) -> None:
    """No other model's price is used. The tokens are counted, and the charge has the flag `UNPRICED`."""
    charge = _charge(model=model, web_searches=1)
    assert (charge.amount, charge.rate, charge.input) == (None, None, 1000)
    assert Flag.UNPRICED in charge.flags


def test_amounts_of_huge_counts_are_exact() -> None:
    """No digit of an amount is lost, however large the counts are."""
    charge = _charge(input=2**53, output=1, cache_read=2**53)
    long = 2**53 * 6 * 10 + 225 + 2**53 * 6  # in tenths: prices above 200,000 tokens
    assert charge.amount == Decimal(long) / Decimal(10_000_000)


def test_price_is_that_of_the_original_day() -> None:
    """A copy with the final output that was written after a price change does not change the price."""
    copy = Origin("s2", transcript="/b.jsonl", began="2026-10-09T00:00:00Z")
    fields: dict[str, Any] = {"model": "claude-sonnet-5-5", "cache_read": 1000}
    original = _sighting(**fields, output=1, time="2026-10-07T09:00:00Z")
    (charge,) = _charges(_sighting(**fields, time="2026-10-09T09:00:00Z", origin=copy), original)
    assert (charge.output, charge.amount) == (100, Decimal("0.0032"))


def test_advisor_pass_is_an_extra_charge() -> None:
    """Its charge has its own model and counts. Searches belong to the message."""
    passes = [UsagePass("message", None, 1000, 100), UsagePass("advisor_message", OPUS, 10, 20, 30, 40, 50)]
    main, advisor = _charges(_sighting(passes=passes, web_searches=1))
    assert (main.input, main.model, main.part, main.web_searches) == (1000, SONNET, "", 1)
    assert (advisor.input, advisor.output, advisor.model, advisor.web_searches) == (10, 20, OPUS, 0)
    assert (advisor.cache_write_5m, advisor.cache_write_1h, advisor.cache_read) == (30, 40, 50)
    assert advisor.amount == Decimal("0.0011625")
    assert Flag.ADVISOR in advisor.flags


def test_every_advisor_pass_is_charged() -> None:
    """Each pass has its own charge."""
    passes = [
        UsagePass("advisor_message", OPUS, 1),
        UsagePass("advisor_message", OPUS, 2),
        UsagePass("advisor_message", None, 4),
    ]
    assert [charge.input for charge in _charges(_sighting(passes=passes))] == [1000, 1, 2, 4]


def test_fallback_passes_that_add_up_are_priced_separately() -> None:
    """Nothing is added: the other model's tokens are subtracted from the message."""
    passes = [UsagePass("message", SONNET, 600, 0), UsagePass("fallback_message", OPUS, 400, 100)]
    main, fallback = _charges(_sighting(passes=passes))
    assert (main.input, main.output, main.model) == (600, 0, SONNET)
    assert (fallback.input, fallback.output, fallback.model) == (400, 100, OPUS)
    assert Flag.FALLBACK in fallback.flags


def test_fallback_passes_that_do_not_add_up_are_ignored() -> None:
    """The totals belong to the serving model."""
    passes = [UsagePass("message", SONNET, 900, 3), UsagePass("fallback_message", OPUS, 1000, 100)]
    (charge,) = _charges(_sighting(passes=passes))
    assert (charge.input, charge.output, charge.model) == (1000, 100, OPUS)


def test_passes_of_the_same_model_change_nothing() -> None:
    """Iterations that repeat the message are never added."""
    assert (
        len(_charges(_sighting(passes=[UsagePass("message", SONNET, 400, 0), UsagePass("message", SONNET, 600, 100)])))
        == 1
    )


def test_charge_lists_every_line_with_a_reason() -> None:
    """It has the line that was counted, and all others with the reason why they were not."""
    other_origin = Origin("s2", transcript="/b.jsonl", began="2026-01-06T00:00:00Z", lines=lambda at: at // 100 + 1)
    sightings = [
        _sighting(rows="0 u1 100 u2", offset=100),
        _sighting(rows="200 u3", offset=200, output=0, input=0),
        _sighting(rows="0 u1 500 u2", origin=other_origin),
        _sighting(rows="300 p1", is_repeat=True),
    ]
    (charge,) = _charges(*sightings)
    assert (charge.place.transcript, charge.place.line, charge.place.json_path) == ("/a.jsonl", 2, "$.message.usage")
    assert [(uncounted.place.transcript, uncounted.place.line, uncounted.reason) for uncounted in charge.set_aside] == [
        ("/a.jsonl", 1, UncountedReason.LESS),
        ("/a.jsonl", 3, UncountedReason.EMPTY),
        ("/b.jsonl", 1, UncountedReason.COPY),
        ("/b.jsonl", 6, UncountedReason.COPY),
        ("/a.jsonl", 4, UncountedReason.REPEATED),
    ]
    assert charge.set_aside[-1].place.json_path == "$.data.message.message.usage"
    assert charge.is_copied


def test_passes_have_the_place_of_their_message() -> None:
    """That place is never among those that were set aside."""
    sighting = _sighting(rows="0 u1 100 u2", offset=100, passes=[UsagePass("advisor_message", OPUS, 1)])
    for charge in _charges(sighting):
        assert charge.place.line == 2
        assert [uncounted.place.line for uncounted in charge.set_aside] == [1]


@pytest.mark.parametrize(
    ("version", "before"),
    [
        ("2.1.58", True),
        ("2.1.59", False),
        ("2.1.60-beta.1", False),
        ("2.1.58-beta.1", True),
        ("2.2", False),
        ("2.1", True),
        ("1.0.128", True),
        ("10.0.0", False),
        ("", False),
        ("x", False),
        ("9" * 5000, False),
        (None, False),
    ],
)
def test_versions_without_final_usage(version: str | None, before: bool) -> None:
    """Versions are compared as numbers. Any suffix is ignored."""
    assert lacks_final_usage(version) is before


def test_passes_are_not_lower_bounds() -> None:
    """Only a message may have a placeholder as output. Its passes are not marked again."""
    charges = _charges(_sighting(partial=True, passes=[UsagePass("advisor_message", OPUS, 1)]))
    assert [charge.is_lower_bound for charge in charges] == [True, False]


def test_partial_copy_makes_the_call_a_lower_bound() -> None:
    """The counted row may be short while another row of the same message is long."""
    (charge,) = _charges(_sighting(output=3), _sighting(output=3, rows="100 u2", partial=True, stopped=False))
    assert charge.is_lower_bound


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5", "0.5"),
        ("0", "0"),
        ("1e-7", "1E-7"),
        *((text, "-1") for text in (None, "x", '"0.5"', "NaN", "-3", "1e999999", "1e9", "Infinity", "{}")),
    ],
)
def test_parses_reported_costs(text: str | None, number: str) -> None:
    """A cost is a plausible non-negative number. Anything else is invalid."""
    assert parse_amount(text) == Decimal(number)


def test_reported_amount_is_the_greatest_of_all_copies() -> None:
    """Values that cannot be a cost are ignored."""
    sightings = [
        _sighting(reported=cost, rows=f"{at}00 u{at}") for at, cost in enumerate(("0.2", "1e999", None, "0.3"))
    ]
    (charge,) = _charges(*sightings)
    assert charge.reported == Decimal("0.3")
    assert _charge(reported="x").reported is None


@pytest.mark.parametrize(
    ("flat", "five", "hour", "expected"),
    [(0, 0, 0, (0, 0)), (9, 0, 0, (9, 0)), (9, 2, 3, (6, 3)), (0, 2, 3, (2, 3)), (4, 2, 3, (2, 3)), (9, 9, 0, (9, 0))],
)
def test_splits_cache_writes_by_lifetime(flat: int, five: int, hour: int, expected: tuple[int, int]) -> None:
    """The split counts if it is larger. What it leaves of the flat count was written for five minutes."""
    assert split_cache_writes(flat, five, hour) == expected


def test_charge_without_a_time_is_flagged() -> None:
    """The flag comes from the owner."""
    assert _charge(timeless=True).flags == (Flag.TIMELESS,)
