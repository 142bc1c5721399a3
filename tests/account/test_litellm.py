"""Tests of importing LiteLLM's price file."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from threadline.account import encode_price_file, load_rates, read_price_source, shipped_rates
from threadline.account.litellm import read_litellm
from threadline.account.prices import ModelPrices, PriceFile, read_price_file
from threadline.errors import BadQuery

KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")


def entry(sent: float, output: float, provider: str = "anthropic", **more: Any) -> dict[str, Any]:
    """Return an entry of the file, in USD per token."""
    return {"input_cost_per_token": sent, "output_cost_per_token": output, "litellm_provider": provider, **more}


def import_entries(**entries: Any) -> PriceFile:
    """Import these entries. `__` in a name is replaced by `/`."""
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in entries.items()}
    return read_litellm(json.dumps(named).encode(), "litellm.json")


def prices_of(model: ModelPrices) -> list[str]:
    """Return the five prices of a model's only period."""
    (period,) = model.periods
    return [f"{getattr(period, kind).normalize():f}" for kind in KINDS]


SONNET = entry(
    3e-06,
    1.5e-05,
    cache_creation_input_token_cost=3.75e-06,
    cache_creation_input_token_cost_above_1hr=6e-06,
    cache_read_input_token_cost=3e-07,
    input_cost_per_token_above_200k_tokens=6e-06,
    output_cost_per_token_above_200k_tokens=2.25e-05,
    cache_creation_input_token_cost_above_200k_tokens=7.5e-06,
    cache_read_input_token_cost_above_200k_tokens=6e-07,
    mode="chat",
)


def test_prices_are_exact() -> None:
    """USD per token become USD per million without float errors, also above the threshold and for 1-hour writes."""
    model = import_entries(claude_sonnet_4_5_20250929=SONNET).models["claude-sonnet-4-5"]
    assert prices_of(model) == ["3", "15", "3.75", "6", "0.3"]
    long = model.periods[0].long_context
    assert long is not None
    assert [str(getattr(long, kind)) for kind in KINDS] == ["6", "22.5", "7.5", "12", "0.6"]
    assert long.over_prompt_tokens == 200_000


def test_matches_shipped_prices() -> None:
    """A model with the same prices in both has the same row."""
    model = import_entries(claude_sonnet_4_5_20250929=SONNET).models["claude-sonnet-4-5"]
    ours = [row for row in shipped_rates().rows() if row.model == "claude-sonnet-4-5"]
    assert [getattr(ours[0], kind) for kind in KINDS] == [getattr(model.periods[0], kind) for kind in KINDS]


def test_spellings_with_equal_prices_are_one_model() -> None:
    """It was introduced on the earliest date of its dated ids."""
    prices = import_entries(
        claude_3_5_sonnet_20241022=entry(3e-06, 1.5e-05),
        claude_3_5_sonnet_20240620=entry(3e-06, 1.5e-05),
        claude_3_5_sonnet_latest=entry(3e-06, 1.5e-05),
        anthropic__claude_3_5_sonnet=entry(3e-06, 1.5e-05),
    )
    (model,) = prices.models.values()
    assert list(prices.models) == ["claude-3-5-sonnet"]
    assert model.aliases == ("claude-3-5-sonnet-20240620", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet-latest")
    assert model.introduced == "2024-06-20"
    assert prices.notes == ()


def test_spellings_with_different_prices_stay_separate() -> None:
    """Each spelling has its own price, and a note reports it."""
    prices = import_entries(
        qwen_plus=entry(4e-07, 1e-06, "dashscope"), qwen_plus_20250428=entry(8e-07, 2e-06, "dashscope")
    )
    assert {key: prices_of(model)[0] for key, model in prices.models.items()} == {
        "qwen-plus": "0.4",
        "qwen-plus-20250428": "0.8",
    }
    assert prices.notes == (
        "qwen-plus has different prices by spelling; each spelling has its own: qwen-plus, qwen-plus-20250428.",
    )


def test_anthropics_own_price_wins() -> None:
    """A note names hosts with other prices."""
    prices = import_entries(
        claude_opus_5=entry(5e-06, 2.5e-05), openrouter__anthropic__claude_opus_5=entry(6e-06, 3e-05, "openrouter")
    )
    assert prices_of(prices.models["claude-opus-5"])[0] == "5"
    assert prices.notes == (
        "claude-opus-5 has other prices as openrouter/anthropic/claude-opus-5; those of claude-opus-5 are taken.",
    )


def test_model_with_conflicting_host_prices_is_left_out() -> None:
    """If only hosts price a model and they differ, none of them is right for the others."""
    prices = import_entries(
        a__glm_5=entry(1e-06, 2e-06, "a"), b__glm_5=entry(2e-06, 2e-06, "b"), c__glm_6=entry(1e-06, 1e-06, "c")
    )
    assert list(prices.models) == ["glm-6"]
    assert prices.notes == ("glm-5 has a different price with each host and is left out: a/glm-5, b/glm-5.",)


@pytest.mark.parametrize(
    ("name", "sent", "right"), [("claude_3_haiku_20240307", 2.5e-07, "0.5"), ("claude_3_opus_20240229", 1.5e-05, "30")]
)
def test_corrects_known_error_of_one_hour_writes(name: str, sent: float, right: str) -> None:
    """A 1-hour price of 6 for claude-3-haiku and claude-3-opus becomes twice input, with a note."""
    prices = import_entries(**{name: entry(sent, 5 * sent, cache_creation_input_token_cost_above_1hr=6e-06)})
    (model,) = prices.models.values()
    assert prices_of(model)[3] == right
    (note,) = prices.notes
    assert f"the 1-hour cache write of 6 was corrected to {right}, twice input" in note
    assert "corrected" in (model.note or "")


def test_rounded_one_hour_price_is_unchanged() -> None:
    """A price that is twice input except for rounding is used as it is."""
    prices = import_entries(claude_x_1=entry(2.5e-07, 1e-06, cache_creation_input_token_cost_above_1hr=5.2e-07))
    assert prices_of(prices.models["claude-x-1"])[3] == "0.52"
    assert prices.notes == ()


def test_missing_cache_prices_follow_a_rule() -> None:
    """Claude models use Anthropic's rule, others the price of input. A note reports it."""
    prices = import_entries(
        claude_opus_9=entry(4e-06, 2e-05), gpt_9=entry(2e-06, 8e-06, "openai", cache_read_input_token_cost=0)
    )
    assert prices_of(prices.models["claude-opus-9"]) == ["4", "20", "5", "8", "0.4"]
    assert prices_of(prices.models["gpt-9"]) == ["2", "8", "2", "2", "0"]
    assert prices.models["gpt-9"].note == "no price for cache write 5m: by rule from input"


def test_imports_multipliers() -> None:
    """Fast mode and US inference have multipliers. A fast multiplier of 1.1 is LiteLLM's mistake and is ignored."""
    prices = import_entries(
        claude_opus_4_6=entry(5e-06, 2.5e-05, provider_specific_entry={"us": 1.1, "fast": 6.0}),
        claude_opus_4_7=entry(5e-06, 2.5e-05, provider_specific_entry={"us": 1.1, "fast": 1.1}),
        fast__claude_opus_4_6=entry(3e-05, 1.5e-04),
        us__claude_opus_4_6=entry(5.5e-06, 2.75e-05),
    )
    first, second = prices.models.values()
    assert [period.multiplier for period in first.fast] == [6]
    assert second.fast == ()
    assert first.us_inference_multiplier == second.us_inference_multiplier == Decimal("1.1")
    assert prices.notes == (
        "claude-opus-4-7: the multiplier of 1.1 for fast mode was left out: it is that of US inference.",
    )


def test_regional_ids_are_ignored() -> None:
    """Their higher price is neither a model nor a conflict, because we apply the surcharge ourselves."""
    data = {
        "claude-sonnet-4-5": entry(3e-06, 1.5e-05),
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0": entry(3.3e-06, 1.65e-05, "bedrock_converse"),
    }
    prices = read_litellm(json.dumps(data).encode(), "litellm.json")
    assert list(prices.models) == ["claude-sonnet-4-5"]
    assert prices.notes == ()


def test_skips_entries_without_token_prices() -> None:
    """Images, embeddings, explanations, free entries and odd values are not models. Impossible ones get a note."""
    prices = import_entries(
        sample_spec=entry(0, 0, "one of …", mode="chat, embedding, …"),
        dall_e=entry(1e-06, 1e-06, "openai", mode="image_generation"),
        odd_mode=entry(1e-06, 1e-06, "openai", mode=["chat"]),
        free__model=entry(0, 0, "openrouter"),
        half={"input_cost_per_token": 1e-06},
        text={"input_cost_per_token": "1e-06", "output_cost_per_token": True},
        no_object=7,
        tiers=entry(
            1e-06, 1e-06, "x", input_cost_per_token_above_32k_tokens=2e-06, input_cost_per_token_above_128k_tokens=3e-06
        ),
        minus=entry(-1e-06, 1e-06),
        good=entry(1e-06, 1e-06, "x"),
    )
    assert list(prices.models) == ["good"]
    assert prices.notes == (
        "tiers has several thresholds for long prompts and is left out.",
        "minus is left out: periods[0].input is -1; a price is 0 or more.",
    )


def test_number_beyond_any_decimal_is_left_out(tmp_path: Path) -> None:
    """An exponent that is too large for a decimal concerns one entry, not the file."""
    path = tmp_path / "litellm.json"
    large = '{"input_cost_per_token": 1e999999, "output_cost_per_token": 1, "mode": "chat"}'
    path.write_text(f'{{"large": {large}, "glm": {json.dumps(entry(6e-07, 2.2e-06, "zai"))}}}')
    prices = read_price_source(path).prices
    assert set(prices.models) == {"glm"}
    assert "large is left out: one of its numbers is too large." in prices.notes


def test_threshold_other_than_200k() -> None:
    """Prices without a value above the threshold stay the same."""
    model = import_entries(gpt_9=entry(2e-06, 8e-06, "openai", input_cost_per_token_above_272k_tokens=4e-06)).models[
        "gpt-9"
    ]
    long = model.periods[0].long_context
    assert long is not None
    assert (long.over_prompt_tokens, str(long.input), str(long.output)) == (272_000, "4", "8")


def test_file_without_prices_is_refused() -> None:
    """At least one entry must have prices."""
    with pytest.raises(BadQuery, match="none of its entries has prices"):
        import_entries(half={"litellm_provider": "anthropic"})


def test_rates_detect_the_litellm_format(tmp_path: Path) -> None:
    """`load_rates` accepts LiteLLM's file, adds its models and has its notes."""
    path = tmp_path / "litellm.json"
    path.write_text(json.dumps({"zai/glm-5.1": entry(6e-07, 2.2e-06, "zai"), "claude-opus-5": entry(5e-06, 2.5e-05)}))
    table = load_rates(path)
    rate = table.rate("glm-5.1", "2026-11-01", 1)
    assert rate is not None
    assert (rate.input, rate.source) == (
        Decimal("0.6"),
        "litellm, unchecked confidence: no price for cache write 5m and cache read: by rule from input",
    )
    assert table.rate("glm-5.10", "2026-11-01", 1) is None
    assert table.rate("claude-opus-5-5", "2026-11-01", 1) == shipped_rates().rate("claude-opus-5-5", "2026-11-01", 1)


def test_imported_models_round_trip() -> None:
    """Written in our schema, the models are read back equal."""
    prices = import_entries(claude_sonnet_4_5_20250929=SONNET, gpt_9=entry(1.25e-06, 1e-05, "openai"))
    assert read_price_file(encode_price_file(prices, "a test"), "again").models == prices.models
