"""Tests of which rate applies to a call: by model id, day, prompt size and mode."""

from __future__ import annotations

import hashlib
import json
import pickle
from datetime import date, timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.account import Rates, load_rates, shipped_rates
from threadline.model.ledger import Rate

PRICES = Path(__file__).parents[2] / "src/threadline/account/prices.json"
SHARED = Path(__file__).parents[3] / "shared/prices.json"
KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")


def rate_of(model: str, day: str = "2026-11-01", prompt: int = 1000, table: Rates | None = None, **mode: str) -> Rate:
    """Return the rate, which must exist."""
    rate = (table or shipped_rates()).rate(model, day, prompt, **mode)
    assert rate is not None
    return rate


def price_texts(rate: Rate) -> tuple[str, ...]:
    """Return the five prices as text."""
    return tuple(str(getattr(rate, kind).normalize()) for kind in KINDS)


def write_price_file(tmp_path: Path, models: dict[str, Any], name: str = "own.json", **more: Any) -> Path:
    """Write a price file with these models."""
    path = tmp_path / name
    path.write_text(json.dumps({"schema": 1, "models": models, **more}))
    return path


def flat_model(price: Any, **more: Any) -> dict[str, Any]:
    """Return a model with the same price for every kind of token."""
    return {"periods": [dict.fromkeys(KINDS, price)], **more}


def test_longer_id_is_another_model() -> None:
    """`claude-opus-5-5` does not have the price of `claude-opus-5`. No id matches by prefix."""
    assert price_texts(rate_of("claude-opus-5-5")) == ("4", "2E+1", "5", "8", "0.2")
    assert price_texts(rate_of("claude-opus-5")) == ("5", "25", "6.25", "1E+1", "0.5")
    assert rate_of("claude-fable-5-1").cache_read == Decimal("0.25")
    assert rate_of("claude-fable-5").cache_read == Decimal(1)
    assert rate_of("claude-sonnet-5-5").model != rate_of("claude-sonnet-5").model


@pytest.mark.parametrize(
    "model",
    [
        None,
        "",
        "<synthetic>",
        "claude",
        "claude-opus",
        "claude-opus-6",
        "claude-opus-5-5-5",
        "my-claude-opus-5",
        "claude-opus-5 ",
        "claude-opus-5\n",
        "glm-5.1",
        "glm-4.7",
        "deepseek-v4-flash",
        "deepseek-v4-pro",
        "MiniMax-M2.7",
        "kimi-k2",
        "qwen3",
        "gpt-5",
        "gemini-3-pro",
        "claude-hai\u212au-4-5",  # a sign that lower case turns into an ASCII k
        "claude-opus-5" * 100_000,
    ],
)
def test_unknown_model_has_no_rate(model: str | None) -> None:
    """It does not get the price of its family, of a prefix or of a similar name."""
    assert shipped_rates().rate(model, "2026-11-01", 10) is None


def test_one_hour_writes_cost_twice_input() -> None:
    """Every shipped row has 1-hour cache writes at twice its input price, including long-context rows."""
    rows = list(shipped_rates().rows())
    assert len(rows) == 33
    assert all(row.cache_write_1h == 2 * row.input for row in rows)


def test_published_roundings_are_kept() -> None:
    """The published cache prices of claude-3-haiku are rounded and do not follow the rule."""
    assert price_texts(rate_of("claude-3-haiku-20240307")) == ("0.25", "1.25", "0.3", "0.5", "0.03")


def test_long_prompts_pay_the_long_price_for_every_token() -> None:
    """Above the threshold, but not at it, all tokens of the request including output have the long price."""
    at_threshold = rate_of("claude-sonnet-4-5", prompt=200_000)
    above = rate_of("claude-sonnet-4-5", prompt=200_001)
    assert (price_texts(at_threshold), at_threshold.long_context) == (("3", "15", "3.75", "6", "0.3"), None)
    assert (price_texts(above), above.long_context) == (("6", "22.5", "7.5", "12", "0.6"), 200_000)
    assert above.amount(input=1, output=1_000_000, cache_read=200_000) == Decimal("22.620006")


def test_thresholds_differ_by_model() -> None:
    """claude-haiku-5-5 is more expensive above 100,000 prompt tokens, not 200,000."""
    assert price_texts(rate_of("claude-haiku-5-5", prompt=100_000)) == ("0.1", "0.5", "0.125", "0.2", "0.01")
    assert price_texts(rate_of("claude-haiku-5-5", prompt=100_001)) == ("0.5", "2.5", "0.625", "1", "0.05")
    assert rate_of("claude-haiku-5-5", prompt=250_000).long_context == 100_000


def test_end_of_a_period_is_exclusive() -> None:
    """The long-context premium of claude-opus-4-6 ended at 2026-03-13T00:00Z. That day is in the new period."""
    before = rate_of("claude-opus-4-6", "2026-03-12", 300_000)
    after = rate_of("claude-opus-4-6", "2026-03-13", 300_000)
    assert (before.output, before.begins, before.ends) == (Decimal("37.5"), None, "2026-03-13")
    assert (after.output, after.begins, after.ends) == (Decimal(25), "2026-03-13", None)
    assert (before.long_context, after.long_context) == (200_000, None)


def test_changed_price_has_two_periods() -> None:
    """Cache reads of claude-sonnet-5-5 cost 0.20 until 2026-10-08, and 0.10 from then on."""
    assert rate_of("claude-sonnet-5-5", "2026-10-07").cache_read == Decimal("0.2")
    assert rate_of("claude-sonnet-5-5", "2026-10-08").cache_read == Decimal("0.1")


def test_fast_mode_multiplies_all_prices() -> None:
    """It also applies above a threshold, but only while the model has a fast mode."""
    fast = rate_of("claude-opus-4-6", "2026-03-01", 300_000, speed="fast")
    assert price_texts(fast) == ("6E+1", "225", "75", "1.2E+2", "6")
    assert fast.multipliers == (("fast", Decimal(6)),)
    assert price_texts(rate_of("claude-opus-5-5", speed="fast")) == ("8", "4E+1", "1E+1", "16", "0.4")
    assert rate_of("claude-opus-5-5", speed="standard").multipliers == ()


def test_fast_mode_without_a_known_price_is_unpriced() -> None:
    """If the model has no fast mode on that day, no price is guessed."""
    assert shipped_rates().rate("claude-sonnet-5", "2026-11-01", 1, speed="fast") is None
    assert shipped_rates().rate("claude-opus-4-6", "2026-02-06", 1, speed="fast") is None
    assert shipped_rates().rate("claude-opus-4-7", "2026-07-24", 1, speed="fast") is None
    assert rate_of("claude-opus-4-7", "2026-07-23", speed="fast").input == 30


def test_us_inference_surcharge() -> None:
    """`inference_geo: us` costs 1.1 times the price from Opus 4.6 on. Other values cost nothing extra."""
    assert rate_of("claude-opus-4-6", geo="us").input == Decimal("5.5")
    assert rate_of("claude-opus-4-5", geo="us").multipliers == ()
    for word in ("not_available", "", "global"):
        assert rate_of("claude-opus-4-6", geo=word).multipliers == ()


def test_regional_ids_cost_more_from_sonnet_45_on() -> None:
    """Ids with a region prefix cost 1.1 times as much. `global` ids and older models do not."""
    regional = rate_of("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert (regional.input, regional.multipliers) == (Decimal("3.3"), (("regional", Decimal("1.1")),))
    assert rate_of("bedrock/eu.anthropic.claude-opus-4-6-v1").multipliers == (("regional", Decimal("1.1")),)
    assert rate_of("jp.anthropic.claude-mythos-5").input == 11  # of which only the month is known
    for plain in ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-opus-4-1-20250805-v1:0"):
        assert rate_of(plain).multipliers == ()


def test_regional_id_has_no_us_surcharge() -> None:
    """The US surcharge applies to Anthropic's own API. A cloud's regional id has its own surcharge instead."""
    assert rate_of("us.anthropic.claude-opus-4-6-v1", geo="us").multipliers == (("regional", Decimal("1.1")),)


def test_multipliers_combine() -> None:
    """Fast, US and batch are multiplied exactly. Tiers other than batch have the list price."""
    all_three = rate_of("claude-opus-5-5", speed="fast", geo="us", tier="batch")
    assert [name for name, _ in all_three.multipliers] == ["fast", "us", "batch"]
    assert price_texts(all_three) == ("4.4", "22", "5.5", "8.8", "0.22")
    assert rate_of("claude-opus-5-5", tier="priority").multipliers == ()


def test_same_row_is_the_same_object() -> None:
    """Sums can be stored by rate, because every day and spelling of a row gives one object."""
    table = shipped_rates()
    first = table.rate("claude-opus-4-6", "2026-03-01", 1, speed="standard", tier="standard")
    assert first is table.rate("anthropic/claude-opus-4.6", "2026-03-12", 199_999)
    assert first is not table.rate("claude-opus-4-6", "2026-03-01", 200_001)
    assert table.rate("claude-opus-5", "2026-08-01", 1) is table.rate("claude-opus-5", "2026-08-02", 10**9)


def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many models and days, the cache stays small, and the same row stays the same object."""
    monkeypatch.setattr("threadline.account.rates._MAX_CACHED", 10)
    table = Rates(*shipped_rates().sources)
    first = table.rate("claude-opus-5", "2026-08-01", 1)
    for number in range(100):
        table.rate(f"model-{number}", "2026-08-01", 1)
        table.rate("x" * (1000 + number), "2026-08-01", 1)
    assert len(table._cache) <= 10
    assert table.rate("claude-opus-5", "2026-08-01", 1) is first


def test_table_can_be_pickled() -> None:
    """A worker's copy has the same rates."""
    twin = pickle.loads(pickle.dumps(shipped_rates()))  # noqa: S301 - our own
    assert twin.digest == shipped_rates().digest
    assert twin.rate("claude-opus-5", "2026-08-01", 1) == rate_of("claude-opus-5", "2026-08-01", 1)


@given(
    st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53)
)
def test_amounts_are_exact(first: int, second: int, third: int, fourth: int, fifth: int) -> None:
    """An amount equals the sum in integers, whatever the caller's decimal context is."""
    rate = rate_of("claude-haiku-5-5", speed="standard", geo="us", tier="batch")
    with localcontext() as context:
        context.prec = 3
        amount = rate.amount(input=first, output=second, cache_write_5m=third, cache_write_1h=fourth, cache_read=fifth)
    # Per token and in 1E-12 USD: 0.1, 0.5, 0.125, 0.2 and 0.01 per million, times 1.1 times 0.5.
    expected = 55_000 * first + 275_000 * second + 68_750 * third + 110_000 * fourth + 5_500 * fifth
    assert amount == Decimal(f"{expected}E-12")


def test_amounts_add_up() -> None:
    """The amount of summed counts equals the sum of amounts, to the last digit."""
    rate = rate_of("claude-sonnet-5-5", "2026-10-09", geo="us")
    amounts = [rate.amount(input=number, cache_read=7 * number + 1) for number in range(1000)]
    total = rate.amount(input=sum(range(1000)), cache_read=sum(7 * number + 1 for number in range(1000)))
    assert sum(amounts) == total


def test_rate_describes_itself() -> None:
    """The description has the model, period, tier, multipliers, prices and their source."""
    rate = rate_of("claude-opus-4-6", "2026-03-01", 300_000, speed="fast")
    assert rate.describe() == (
        "claude-opus-4-6 until 2026-03-13, long context over 200,000, fast ×6: "  # noqa: RUF001 - the sign for times
        "input 60, output 225, cache write 5m 75, 1h 120, cache read 6 per million"
    )
    assert rate.source.startswith("official+litellm, high confidence: long-context premium dropped")
    assert rate_of("claude-opus-5").describe().startswith("claude-opus-5: input 5, ")


def test_digest_is_the_files_sha256() -> None:
    """The digest of the shipped rates is the SHA-256 of the file."""
    digest = hashlib.sha256(PRICES.read_bytes()).hexdigest()
    assert (shipped_rates().digest, shipped_rates().digests) == (digest, (("threadline", digest),))
    assert load_rates() is shipped_rates()


def test_prices_are_read_exactly() -> None:
    """Every price in the file is a decimal with exactly its digits."""
    raw = json.loads(PRICES.read_bytes(), parse_float=Decimal, parse_int=Decimal)
    rows = {(row.model, row.begins, row.long_context): row for row in shipped_rates().rows()}
    for key, model in raw["models"].items():
        for period in model["periods"]:
            long = period.get("long_context")
            for kind in KINDS:
                assert getattr(rows[key, period["from"], None], kind) == period[kind]
                if long is not None:
                    assert getattr(rows[key, period["from"], int(long["over_prompt_tokens"])], kind) == long[kind]
    assert shipped_rates().web_search_fee == Decimal("0.01")


def test_every_day_has_a_price() -> None:
    """The periods of each shipped model cover every day."""
    days = [(date(2025, 1, 1) + timedelta(days=number)).isoformat() for number in range(0, 800, 3)]
    models = {row.model for row in shipped_rates().rows()}
    assert len(models) == 25
    assert all(shipped_rates().rate(model, day, 1) is not None for model in models for day in ["", *days])


@pytest.mark.real
@pytest.mark.skipif(not SHARED.exists(), reason="the reference is not there")
def test_shipped_prices_equal_the_reference() -> None:
    """The file in the package equals the reference byte for byte."""
    assert PRICES.read_bytes() == SHARED.read_bytes()


def test_price_file_adds_and_replaces_models(tmp_path: Path) -> None:
    """A replaced model is replaced completely, under all its names."""
    path = write_price_file(tmp_path, {"GLM-5.1": flat_model(0.6), "claude-opus-4-6": flat_model(1)})
    table = load_rates(path)
    for name in ("glm-5.1", "GLM-5.1", "zai/glm-5.1", "glm-5-1"):
        assert rate_of(name, table=table).input == Decimal("0.6")
    replaced = rate_of("claude-opus-4-6-20260205", "2026-03-01", 300_000, table)
    assert (str(replaced.output), replaced.ends, replaced.long_context) == ("1", None, None)
    assert table.rate("claude-opus-4-6", "2026-03-01", 1, speed="fast") is None
    assert rate_of("claude-opus-5", table=table) == rate_of("claude-opus-5")
    assert {row.model: row.file for row in table.rows()}["glm-5-1"] == str(path)


def test_replaced_model_keeps_its_introduction_date(tmp_path: Path) -> None:
    """If the file does not state the date, regional ids keep their surcharge."""
    table = load_rates(write_price_file(tmp_path, {"claude-sonnet-4-5": flat_model(1)}))
    assert rate_of("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", table=table).input == Decimal("1.1")


def test_later_price_file_wins(tmp_path: Path) -> None:
    """This applies to prices and fees."""
    first = write_price_file(
        tmp_path, {"m": flat_model(1), "n": flat_model(1)}, "a.json", fees={"web_search_usd_per_request": 0.02}
    )
    second = write_price_file(tmp_path, {"m": flat_model(2)}, "b.json")
    table = load_rates(first, second)
    assert [rate_of(model, table=table).input for model in "mn"] == [2, 1]
    assert [name for name, _ in table.digests] == ["threadline", str(first), str(second)]
    assert table.web_search_fee == Decimal("0.02")
    assert load_rates(second, first).digest != table.digest
    joined = "".join(digest for _, digest in table.digests)
    assert table.digest == hashlib.sha256(joined.encode()).hexdigest()


def test_price_file_may_redefine_a_shipped_alias(tmp_path: Path) -> None:
    """The alias becomes a separate model."""
    table = load_rates(write_price_file(tmp_path, {"claude-sonnet-4-0": flat_model(9)}))
    assert rate_of("claude-sonnet-4-0", table=table).input == 9
    assert rate_of("claude-sonnet-4", table=table).input == 3


def test_day_between_periods_has_no_price(tmp_path: Path) -> None:
    """If a file leaves out days, calls on those days have no price."""
    periods = [
        {"to": "2026-01-01", **flat_model(1)["periods"][0]},
        {"from": "2026-02-01", **flat_model(2)["periods"][0]},
    ]
    table = load_rates(write_price_file(tmp_path, {"m": {"periods": periods}}))
    assert rate_of("m", "2025-12-31", table=table).input == 1
    assert table.rate("m", "2026-01-15", 1) is None
    assert rate_of("m", "2026-02-01", table=table).input == 2
