"""Charges: the rate of a call, the passes of other models, and the way back to every line."""

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
    """One message: input 1,000, output 100, no cache."""
    told: dict[str, Any] = {
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
    return Sighting(key, 0, **{**told, **fields})


def _charges(*seen: Sighting) -> list[Charge]:
    return list(compute_charges(seen, load_rates()))


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
def test_what_a_charge_costs(fields: dict[str, Any], amount: str) -> None:
    """Tokens times the prices of the day, the mode and the tier, and a cent a search."""
    assert _charge(**fields).amount == Decimal(amount)


@pytest.mark.parametrize("model", ["glm-5.1", "claude-opus-5-6", "claude-opus-5-5-5", "opus", "", None])
def test_what_has_no_price_has_no_amount(model: str | None) -> None:
    """Another model's price is never taken; tokens are there, and the charge says so."""
    charge = _charge(model=model, web_searches=1)
    assert (charge.amount, charge.rate, charge.input) == (None, None, 1000)
    assert Flag.UNPRICED in charge.flags


def test_counts_as_large_as_a_double_are_exact() -> None:
    """No digit of an amount is lost, however large the counts."""
    charge = _charge(input=2**53, output=1, cache_read=2**53)
    long = 2**53 * 6 * 10 + 225 + 2**53 * 6  # in tenths: prices above 200,000 tokens
    assert charge.amount == Decimal(long) / Decimal(10_000_000)


def test_the_price_is_that_of_the_day_it_was_spent() -> None:
    """A copy with the final output, written when the price was another, does not change the price."""
    there = Origin("s2", transcript="/b.jsonl", began="2026-10-09T00:00:00Z")
    fields: dict[str, Any] = {"model": "claude-sonnet-5-5", "cache_read": 1000}
    original = _sighting(**fields, output=1, time="2026-10-07T09:00:00Z")
    (charge,) = _charges(_sighting(**fields, time="2026-10-09T09:00:00Z", origin=there), original)
    assert (charge.output, charge.amount) == (100, Decimal("0.0032"))


def test_an_advisor_is_charged_on_top() -> None:
    """Its pass has its own model, its own counts and its own charge; searches are the message's."""
    passes = [UsagePass("message", None, 1000, 100), UsagePass("advisor_message", OPUS, 10, 20, 30, 40, 50)]
    main, advisor = _charges(_sighting(passes=passes, web_searches=1))
    assert (main.input, main.model, main.part, main.web_searches) == (1000, SONNET, "", 1)
    assert (advisor.input, advisor.output, advisor.model, advisor.web_searches) == (10, 20, OPUS, 0)
    assert (advisor.cache_write_5m, advisor.cache_write_1h, advisor.cache_read) == (30, 40, 50)
    assert advisor.amount == Decimal("0.0011625")
    assert Flag.ADVISOR in advisor.flags


def test_several_advisors_are_charged_each() -> None:
    """Every advisor's pass counts."""
    passes = [
        UsagePass("advisor_message", OPUS, 1),
        UsagePass("advisor_message", OPUS, 2),
        UsagePass("advisor_message", None, 4),
    ]
    assert [charge.input for charge in _charges(_sighting(passes=passes))] == [1000, 1, 2, 4]


def test_fallback_passes_that_add_up_are_priced_apart() -> None:
    """Nothing is added: what another model did is taken off the message."""
    passes = [UsagePass("message", SONNET, 600, 0), UsagePass("fallback_message", OPUS, 400, 100)]
    main, other = _charges(_sighting(passes=passes))
    assert (main.input, main.output, main.model) == (600, 0, SONNET)
    assert (other.input, other.output, other.model) == (400, 100, OPUS)
    assert Flag.FALLBACK in other.flags


def test_fallback_passes_that_do_not_add_up_leave_the_serving_model() -> None:
    """The totals are the serving model's."""
    passes = [UsagePass("message", SONNET, 900, 3), UsagePass("fallback_message", OPUS, 1000, 100)]
    (charge,) = _charges(_sighting(passes=passes))
    assert (charge.input, charge.output, charge.model) == (1000, 100, OPUS)


def test_passes_of_the_same_model_change_nothing() -> None:
    """Iterations that restate the message are never added."""
    assert (
        len(_charges(_sighting(passes=[UsagePass("message", SONNET, 400, 0), UsagePass("message", SONNET, 600, 100)])))
        == 1
    )


def test_a_charge_leads_back_to_every_line() -> None:
    """The line that counted, and all others with the reason why they did not."""
    there = Origin("s2", transcript="/b.jsonl", began="2026-01-06T00:00:00Z", lines=lambda at: at // 100 + 1)
    seen = [
        _sighting(rows="0 u1 100 u2", offset=100),
        _sighting(rows="200 u3", offset=200, output=0, input=0),
        _sighting(rows="0 u1 500 u2", origin=there),
        _sighting(rows="300 p1", is_repeat=True),
    ]
    (charge,) = _charges(*seen)
    assert (charge.place.transcript, charge.place.line, charge.place.json_path) == ("/a.jsonl", 2, "$.message.usage")
    assert [(one.place.transcript, one.place.line, one.reason) for one in charge.set_aside] == [
        ("/a.jsonl", 1, UncountedReason.LESS),
        ("/a.jsonl", 3, UncountedReason.EMPTY),
        ("/b.jsonl", 1, UncountedReason.COPY),
        ("/b.jsonl", 6, UncountedReason.COPY),
        ("/a.jsonl", 4, UncountedReason.REPEATED),
    ]
    assert charge.set_aside[-1].place.json_path == "$.data.message.message.usage"
    assert charge.is_copied


def test_the_parts_of_a_message_point_at_the_line_that_counted() -> None:
    """A pass has the place of its message, which is never set aside."""
    seen = _sighting(rows="0 u1 100 u2", offset=100, passes=[UsagePass("advisor_message", OPUS, 1)])
    for charge in _charges(seen):
        assert charge.place.line == 2
        assert [one.place.line for one in charge.set_aside] == [1]


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
def test_which_versions_did_not_write_the_final_output(version: str | None, before: bool) -> None:
    """Versions are compared as numbers, whatever follows them."""
    assert lacks_final_usage(version) is before


def test_a_part_is_no_lower_bound() -> None:
    """Only a message has an output that may be a placeholder; its passes are not marked again."""
    found = _charges(_sighting(partial=True, passes=[UsagePass("advisor_message", OPUS, 1)]))
    assert [charge.is_lower_bound for charge in found] == [True, False]


def test_a_copy_that_tells_of_a_placeholder_tells_it_of_the_call() -> None:
    """The row that counts may be short while another of the same message is long."""
    (charge,) = _charges(_sighting(output=3), _sighting(output=3, rows="100 u2", partial=True, stopped=False))
    assert charge.is_lower_bound


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ("0.5", "0.5"),
        ("0", "0"),
        ("1e-7", "1E-7"),
        *((told, "-1") for told in (None, "x", '"0.5"', "NaN", "-3", "1e999999", "1e9", "Infinity", "{}")),
    ],
)
def test_what_a_row_says_that_it_costs(told: str | None, number: str) -> None:
    """A cost is a number that someone could have spent, or it is none."""
    assert parse_amount(told) == Decimal(number)


def test_reported_is_the_greatest_of_all_copies() -> None:
    """What cannot be a cost is not reported."""
    seen = [_sighting(reported=told, rows=f"{at}00 u{at}") for at, told in enumerate(("0.2", "1e999", None, "0.3"))]
    (charge,) = _charges(*seen)
    assert charge.reported == Decimal("0.3")
    assert _charge(reported="x").reported is None


@pytest.mark.parametrize(
    ("flat", "five", "hour", "expected"),
    [(0, 0, 0, (0, 0)), (9, 0, 0, (9, 0)), (9, 2, 3, (6, 3)), (0, 2, 3, (2, 3)), (4, 2, 3, (2, 3)), (9, 9, 0, (9, 0))],
)
def test_cache_writes_by_lifetime(flat: int, five: int, hour: int, expected: tuple[int, int]) -> None:
    """The split is right where it says more; what it leaves of the flat count was for five minutes."""
    assert split_cache_writes(flat, five, hour) == expected


def test_a_charge_without_a_time_says_so() -> None:
    """The flag is the owner's."""
    assert _charge(timeless=True).flags == (Flag.TIMELESS,)
