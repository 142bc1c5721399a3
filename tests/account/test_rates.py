"""Which rate applies to a call: by the whole id, the day, the size of the prompt, and the mode."""

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
    """The rate, which there must be."""
    found = (table or shipped_rates()).rate(model, day, prompt, **mode)
    assert found is not None
    return found


def five(rate: Rate) -> tuple[str, ...]:
    """The five prices as text."""
    return tuple(str(getattr(rate, kind).normalize()) for kind in KINDS)


def override(tmp_path: Path, models: dict[str, Any], name: str = "own.json", **more: Any) -> Path:
    """A price file with these models."""
    path = tmp_path / name
    path.write_text(json.dumps({"schema": 1, "models": models, **more}))
    return path


def flat(price: Any, **more: Any) -> dict[str, Any]:
    """A model that costs the same for every kind of token, always."""
    return {"periods": [dict.fromkeys(KINDS, price)], **more}


def test_a_longer_id_is_another_model() -> None:
    """`claude-opus-5-5` is not priced as `claude-opus-5`, nor any other model as one whose id begins its own."""
    assert five(rate_of("claude-opus-5-5")) == ("4", "2E+1", "5", "8", "0.2")
    assert five(rate_of("claude-opus-5")) == ("5", "25", "6.25", "1E+1", "0.5")
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
def test_an_unknown_model_has_no_rate(model: str | None) -> None:
    """What is no model of the table has no price: no other family's, no prefix's, no likeness's."""
    assert shipped_rates().rate(model, "2026-11-01", 10) is None


def test_one_hour_writes_cost_twice_input() -> None:
    """Every shipped row has 1-hour cache writes at twice its input, long-context rows included."""
    rows = list(shipped_rates().rows())
    assert len(rows) == 33
    assert all(row.cache_write_1h == 2 * row.input for row in rows)


def test_published_roundings_stay() -> None:
    """The published cache prices of claude-3-haiku are rounded, and are not put back to the rule."""
    assert five(rate_of("claude-3-haiku-20240307")) == ("0.25", "1.25", "0.3", "0.5", "0.03")


def test_a_long_prompt_costs_more_whole() -> None:
    """Above the threshold every token of the request has the long price, output included; at it, none."""
    at = rate_of("claude-sonnet-4-5", prompt=200_000)
    above = rate_of("claude-sonnet-4-5", prompt=200_001)
    assert (five(at), at.long_context) == (("3", "15", "3.75", "6", "0.3"), None)
    assert (five(above), above.long_context) == (("6", "22.5", "7.5", "12", "0.6"), 200_000)
    assert above.amount(input=1, output=1_000_000, cache_read=200_000) == Decimal("22.620006")


def test_thresholds_are_the_models_own() -> None:
    """claude-haiku-5-5 becomes dearer above 100,000 tokens of prompt, not 200,000."""
    assert five(rate_of("claude-haiku-5-5", prompt=100_000)) == ("0.1", "0.5", "0.125", "0.2", "0.01")
    assert five(rate_of("claude-haiku-5-5", prompt=100_001)) == ("0.5", "2.5", "0.625", "1", "0.05")
    assert rate_of("claude-haiku-5-5", prompt=250_000).long_context == 100_000


def test_a_period_ends_before_its_last_day_begins() -> None:
    """The long-context premium of claude-opus-4-6 ended at 2026-03-13T00:00Z: that day is the new period's."""
    before = rate_of("claude-opus-4-6", "2026-03-12", 300_000)
    after = rate_of("claude-opus-4-6", "2026-03-13", 300_000)
    assert (before.output, before.begins, before.ends) == (Decimal("37.5"), None, "2026-03-13")
    assert (after.output, after.begins, after.ends) == (Decimal(25), "2026-03-13", None)
    assert (before.long_context, after.long_context) == (200_000, None)


def test_a_price_that_changed_has_two_periods() -> None:
    """Cache reads of claude-sonnet-5-5 cost 0.20 until 2026-10-08, and 0.10 from then on."""
    assert rate_of("claude-sonnet-5-5", "2026-10-07").cache_read == Decimal("0.2")
    assert rate_of("claude-sonnet-5-5", "2026-10-08").cache_read == Decimal("0.1")


def test_fast_mode_multiplies_all_five() -> None:
    """Fast mode multiplies every price, also those above a threshold, while the model has it."""
    fast = rate_of("claude-opus-4-6", "2026-03-01", 300_000, speed="fast")
    assert five(fast) == ("6E+1", "225", "75", "1.2E+2", "6")
    assert fast.multipliers == (("fast", Decimal(6)),)
    assert five(rate_of("claude-opus-5-5", speed="fast")) == ("8", "4E+1", "1E+1", "16", "0.4")
    assert rate_of("claude-opus-5-5", speed="standard").multipliers == ()


def test_fast_mode_without_a_known_price_has_none() -> None:
    """A model that has no fast mode, or not on that day, has no known price for it: nothing is guessed."""
    assert shipped_rates().rate("claude-sonnet-5", "2026-11-01", 1, speed="fast") is None
    assert shipped_rates().rate("claude-opus-4-6", "2026-02-06", 1, speed="fast") is None
    assert shipped_rates().rate("claude-opus-4-7", "2026-07-24", 1, speed="fast") is None
    assert rate_of("claude-opus-4-7", "2026-07-23", speed="fast").input == 30


def test_inference_in_the_us_costs_more_where_the_model_says_so() -> None:
    """`inference_geo` of `us` is 1.1 times the price from Opus 4.6 on, and nothing before; other words are nothing."""
    assert rate_of("claude-opus-4-6", geo="us").input == Decimal("5.5")
    assert rate_of("claude-opus-4-5", geo="us").multipliers == ()
    for word in ("not_available", "", "global"):
        assert rate_of("claude-opus-4-6", geo=word).multipliers == ()


def test_a_regional_id_of_a_cloud_costs_more_from_sonnet_45_on() -> None:
    """Ids with a region before them cost 1.1 times as much, `global` ones and older models do not."""
    regional = rate_of("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert (regional.input, regional.multipliers) == (Decimal("3.3"), (("regional", Decimal("1.1")),))
    assert rate_of("bedrock/eu.anthropic.claude-opus-4-6-v1").multipliers == (("regional", Decimal("1.1")),)
    assert rate_of("jp.anthropic.claude-mythos-5").input == 11  # of which only the month is known
    for plain in ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-opus-4-1-20250805-v1:0"):
        assert rate_of(plain).multipliers == ()


def test_a_regional_id_is_not_charged_for_the_us_as_well() -> None:
    """The surcharge for US inference is of Anthropic's own API: a cloud's regional id has its own instead."""
    assert rate_of("us.anthropic.claude-opus-4-6-v1", geo="us").multipliers == (("regional", Decimal("1.1")),)


def test_multipliers_multiply() -> None:
    """Fast, US and batch apply one on the other, exactly; another tier than batch is the list price."""
    all_three = rate_of("claude-opus-5-5", speed="fast", geo="us", tier="batch")
    assert [name for name, _ in all_three.multipliers] == ["fast", "us", "batch"]
    assert five(all_three) == ("4.4", "22", "5.5", "8.8", "0.22")
    assert rate_of("claude-opus-5-5", tier="priority").multipliers == ()


def test_the_same_row_is_the_same_object() -> None:
    """Every day and spelling that leads to one row gives one object, so that sums can be kept by it."""
    table = shipped_rates()
    first = table.rate("claude-opus-4-6", "2026-03-01", 1, speed="standard", tier="standard")
    assert first is table.rate("anthropic/claude-opus-4.6", "2026-03-12", 199_999)
    assert first is not table.rate("claude-opus-4-6", "2026-03-01", 200_001)
    assert table.rate("claude-opus-5", "2026-08-01", 1) is table.rate("claude-opus-5", "2026-08-02", 10**9)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many models and days a home names, little is remembered, and the same row stays the same object."""
    monkeypatch.setattr("threadline.account.rates._MAX_CACHED", 10)
    table = Rates(*shipped_rates().sources)
    first = table.rate("claude-opus-5", "2026-08-01", 1)
    for number in range(100):
        table.rate(f"model-{number}", "2026-08-01", 1)
        table.rate("x" * (1000 + number), "2026-08-01", 1)
    assert len(table._cache) <= 10
    assert table.rate("claude-opus-5", "2026-08-01", 1) is first


def test_a_table_travels_to_a_worker() -> None:
    """A table can be pickled and answers the same."""
    twin = pickle.loads(pickle.dumps(shipped_rates()))  # noqa: S301 - our own
    assert twin.digest == shipped_rates().digest
    assert twin.rate("claude-opus-5", "2026-08-01", 1) == rate_of("claude-opus-5", "2026-08-01", 1)


@given(
    st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53)
)
def test_amounts_are_exact(first: int, second: int, third: int, fourth: int, fifth: int) -> None:
    """An amount equals the sum in whole numbers, whatever the caller's decimal context is."""
    rate = rate_of("claude-haiku-5-5", speed="standard", geo="us", tier="batch")
    with localcontext() as context:
        context.prec = 3
        amount = rate.amount(input=first, output=second, cache_write_5m=third, cache_write_1h=fourth, cache_read=fifth)
    # Per token and in 1E-12 USD: 0.1, 0.5, 0.125, 0.2 and 0.01 per million, times 1.1 times 0.5.
    whole = 55_000 * first + 275_000 * second + 68_750 * third + 110_000 * fourth + 5_500 * fifth
    assert amount == Decimal(f"{whole}E-12")


def test_amounts_add_up() -> None:
    """What tokens cost together is what they cost apart, to the last digit: sums may be kept as counts."""
    rate = rate_of("claude-sonnet-5-5", "2026-10-09", geo="us")
    apart = [rate.amount(input=number, cache_read=7 * number + 1) for number in range(1000)]
    together = rate.amount(input=sum(range(1000)), cache_read=sum(7 * number + 1 for number in range(1000)))
    assert sum(apart) == together


def test_a_receipt_names_the_row() -> None:
    """A rate describes itself: model, period, tier, multipliers, prices; and where they are from."""
    rate = rate_of("claude-opus-4-6", "2026-03-01", 300_000, speed="fast")
    assert rate.describe() == (
        "claude-opus-4-6 until 2026-03-13, long context over 200,000, fast ×6: "  # noqa: RUF001 - the sign for times
        "input 60, output 225, cache write 5m 75, 1h 120, cache read 6 per million"
    )
    assert rate.source.startswith("official+litellm, high confidence: long-context premium dropped")
    assert rate_of("claude-opus-5").describe().startswith("claude-opus-5: input 5, ")


def test_the_digest_is_of_the_bytes() -> None:
    """The digest of the shipped rates is the SHA-256 of the file."""
    digest = hashlib.sha256(PRICES.read_bytes()).hexdigest()
    assert (shipped_rates().digest, shipped_rates().digests) == (digest, (("threadline", digest),))
    assert load_rates() is shipped_rates()


def test_prices_are_read_as_written() -> None:
    """Every price in the file is a decimal of exactly its digits, never a float's."""
    raw = json.loads(PRICES.read_bytes(), parse_float=Decimal, parse_int=Decimal)
    told = {(row.model, row.begins, row.long_context): row for row in shipped_rates().rows()}
    for key, model in raw["models"].items():
        for period in model["periods"]:
            long = period.get("long_context")
            for kind in KINDS:
                assert getattr(told[key, period["from"], None], kind) == period[kind]
                if long is not None:
                    assert getattr(told[key, period["from"], int(long["over_prompt_tokens"])], kind) == long[kind]
    assert shipped_rates().web_search_fee == Decimal("0.01")


def test_every_day_has_a_price() -> None:
    """The periods of each shipped model leave no day without a price."""
    days = [(date(2025, 1, 1) + timedelta(days=number)).isoformat() for number in range(0, 800, 3)]
    models = {row.model for row in shipped_rates().rows()}
    assert len(models) == 25
    assert all(shipped_rates().rate(model, day, 1) is not None for model in models for day in ["", *days])


@pytest.mark.real
@pytest.mark.skipif(not SHARED.exists(), reason="the reference is not there")
def test_the_shipped_prices_are_the_reference() -> None:
    """The file in the package is the reference, byte for byte."""
    assert PRICES.read_bytes() == SHARED.read_bytes()


def test_a_file_adds_and_replaces(tmp_path: Path) -> None:
    """A file's models are added; those that are there already are replaced whole, under all their names."""
    own = override(tmp_path, {"GLM-5.1": flat(0.6), "claude-opus-4-6": flat(1)})
    table = load_rates(own)
    for name in ("glm-5.1", "GLM-5.1", "zai/glm-5.1", "glm-5-1"):
        assert rate_of(name, table=table).input == Decimal("0.6")
    replaced = rate_of("claude-opus-4-6-20260205", "2026-03-01", 300_000, table)
    assert (str(replaced.output), replaced.ends, replaced.long_context) == ("1", None, None)
    assert table.rate("claude-opus-4-6", "2026-03-01", 1, speed="fast") is None
    assert rate_of("claude-opus-5", table=table) == rate_of("claude-opus-5")
    assert {row.model: row.file for row in table.rows()}["glm-5-1"] == str(own)


def test_a_replaced_model_is_as_old_as_it_was(tmp_path: Path) -> None:
    """When a model came out is no price: a file that does not say it leaves it, and regional ids their surcharge."""
    table = load_rates(override(tmp_path, {"claude-sonnet-4-5": flat(1)}))
    assert rate_of("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", table=table).input == Decimal("1.1")


def test_a_later_file_wins(tmp_path: Path) -> None:
    """Of two files that price a model, or say a fee, the later counts."""
    first = override(tmp_path, {"m": flat(1), "n": flat(1)}, "a.json", fees={"web_search_usd_per_request": 0.02})
    second = override(tmp_path, {"m": flat(2)}, "b.json")
    table = load_rates(first, second)
    assert [rate_of(model, table=table).input for model in "mn"] == [2, 1]
    assert [name for name, _ in table.digests] == ["threadline", str(first), str(second)]
    assert table.web_search_fee == Decimal("0.02")
    assert load_rates(second, first).digest != table.digest
    joined = "".join(digest for _, digest in table.digests)
    assert table.digest == hashlib.sha256(joined.encode()).hexdigest()


def test_an_own_name_beats_a_shipped_alias(tmp_path: Path) -> None:
    """A file may give a shipped alias a price of its own."""
    table = load_rates(override(tmp_path, {"claude-sonnet-4-0": flat(9)}))
    assert rate_of("claude-sonnet-4-0", table=table).input == 9
    assert rate_of("claude-sonnet-4", table=table).input == 3


def test_a_day_between_periods_has_no_price(tmp_path: Path) -> None:
    """Where a file leaves days out, calls of those days have no price."""
    periods = [{"to": "2026-01-01", **flat(1)["periods"][0]}, {"from": "2026-02-01", **flat(2)["periods"][0]}]
    table = load_rates(override(tmp_path, {"m": {"periods": periods}}))
    assert rate_of("m", "2025-12-31", table=table).input == 1
    assert table.rate("m", "2026-01-15", 1) is None
    assert rate_of("m", "2026-02-01", table=table).input == 2
