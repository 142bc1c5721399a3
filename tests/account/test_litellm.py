"""LiteLLM's price file as models of ours."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from threadline.account import encode_price_file, load_rates, shipped_rates
from threadline.account.litellm import read_litellm
from threadline.account.prices import ModelPrices, PriceFile, read_price_file
from threadline.errors import BadQuery

KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")


def entry(sent: float, output: float, provider: str = "anthropic", **more: Any) -> dict[str, Any]:
    """An entry of the file: USD per token."""
    return {"input_cost_per_token": sent, "output_cost_per_token": output, "litellm_provider": provider, **more}


def read(**entries: Any) -> PriceFile:
    """What is made of these entries; `__` in a name stands for `/`."""
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in entries.items()}
    return read_litellm(json.dumps(named).encode(), "litellm.json")


def five(model: ModelPrices) -> list[str]:
    """The five prices of a model's only period."""
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
    """USD per token become USD per million with no digit of a float's; the long row is whole, its 1-hour write too."""
    model = read(claude_sonnet_4_5_20250929=SONNET).models["claude-sonnet-4-5"]
    assert five(model) == ["3", "15", "3.75", "6", "0.3"]
    long = model.periods[0].long_context
    assert long is not None
    assert [str(getattr(long, kind)) for kind in KINDS] == ["6", "22.5", "7.5", "12", "0.6"]
    assert long.over_prompt_tokens == 200_000


def test_it_agrees_with_what_is_shipped() -> None:
    """A model that both have at the same prices has the same row."""
    model = read(claude_sonnet_4_5_20250929=SONNET).models["claude-sonnet-4-5"]
    ours = [row for row in shipped_rates().rows() if row.model == "claude-sonnet-4-5"]
    assert [getattr(ours[0], kind) for kind in KINDS] == [getattr(model.periods[0], kind) for kind in KINDS]


def test_spellings_that_agree_are_one_model() -> None:
    """Dated ids and aliases with the same prices are one model, which came out on the earliest date."""
    found = read(
        claude_3_5_sonnet_20241022=entry(3e-06, 1.5e-05),
        claude_3_5_sonnet_20240620=entry(3e-06, 1.5e-05),
        claude_3_5_sonnet_latest=entry(3e-06, 1.5e-05),
        anthropic__claude_3_5_sonnet=entry(3e-06, 1.5e-05),
    )
    (model,) = found.models.values()
    assert list(found.models) == ["claude-3-5-sonnet"]
    assert model.aliases == ("claude-3-5-sonnet-20240620", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet-latest")
    assert model.introduced == "2024-06-20"
    assert found.notes == ()


def test_spellings_that_differ_are_told_and_kept_apart() -> None:
    """Two spellings with two prices: a note, and each spelling has the price the file gives it."""
    found = read(qwen_plus=entry(4e-07, 1e-06, "dashscope"), qwen_plus_20250428=entry(8e-07, 2e-06, "dashscope"))
    assert {key: five(model)[0] for key, model in found.models.items()} == {
        "qwen-plus": "0.4",
        "qwen-plus-20250428": "0.8",
    }
    assert found.notes == (
        "qwen-plus has different prices by spelling; each spelling has its own: qwen-plus, qwen-plus-20250428.",
    )


def test_anthropic_speaks_for_its_models() -> None:
    """A host that asks another price is told of; Anthropic's own is taken."""
    found = read(
        claude_opus_5=entry(5e-06, 2.5e-05), openrouter__anthropic__claude_opus_5=entry(6e-06, 3e-05, "openrouter")
    )
    assert five(found.models["claude-opus-5"])[0] == "5"
    assert found.notes == (
        "claude-opus-5 has other prices as openrouter/anthropic/claude-opus-5; those of claude-opus-5 are taken.",
    )


def test_hosts_that_differ_give_no_price() -> None:
    """A model that only hosts price, each otherwise, has no price: none of them speaks for the others."""
    found = read(
        a__glm_5=entry(1e-06, 2e-06, "a"), b__glm_5=entry(2e-06, 2e-06, "b"), c__glm_6=entry(1e-06, 1e-06, "c")
    )
    assert list(found.models) == ["glm-6"]
    assert found.notes == ("glm-5 has a different price with each host and is left out: a/glm-5, b/glm-5.",)


@pytest.mark.parametrize(
    ("name", "sent", "right"), [("claude_3_haiku_20240307", 2.5e-07, "0.5"), ("claude_3_opus_20240229", 1.5e-05, "30")]
)
def test_the_known_error_of_one_hour_writes_is_put_right(name: str, sent: float, right: str) -> None:
    """A 1-hour price of 6 for claude-3-haiku and claude-3-opus becomes twice input, and a note says so."""
    found = read(**{name: entry(sent, 5 * sent, cache_creation_input_token_cost_above_1hr=6e-06)})
    (model,) = found.models.values()
    assert five(model)[3] == right
    (note,) = found.notes
    assert f"the 1-hour cache write of 6 was corrected to {right}, twice input" in note
    assert "corrected" in (model.note or "")


def test_a_rounded_one_hour_price_stays() -> None:
    """A 1-hour price that is twice input but for rounding is taken as it is."""
    found = read(claude_x_1=entry(2.5e-07, 1e-06, cache_creation_input_token_cost_above_1hr=5.2e-07))
    assert five(found.models["claude-x-1"])[3] == "0.52"
    assert found.notes == ()


def test_what_is_missing_is_by_rule() -> None:
    """Cache prices that are not given are Anthropic's rule for Claude, and input's price for others; a note says so."""
    found = read(claude_opus_9=entry(4e-06, 2e-05), gpt_9=entry(2e-06, 8e-06, "openai", cache_read_input_token_cost=0))
    assert five(found.models["claude-opus-9"]) == ["4", "20", "5", "8", "0.4"]
    assert five(found.models["gpt-9"]) == ["2", "8", "2", "2", "0"]
    assert found.models["gpt-9"].note == "no price for cache write 5m: by rule from input"


def test_modes_are_multipliers() -> None:
    """The multipliers for fast mode and the US are taken, but not the 1.1 that once stood for fast mode by mistake."""
    found = read(
        claude_opus_4_6=entry(5e-06, 2.5e-05, provider_specific_entry={"us": 1.1, "fast": 6.0}),
        claude_opus_4_7=entry(5e-06, 2.5e-05, provider_specific_entry={"us": 1.1, "fast": 1.1}),
        fast__claude_opus_4_6=entry(3e-05, 1.5e-04),
        us__claude_opus_4_6=entry(5.5e-06, 2.75e-05),
    )
    first, second = found.models.values()
    assert [one.multiplier for one in first.fast] == [6]
    assert second.fast == ()
    assert first.us_inference_multiplier == second.us_inference_multiplier == Decimal("1.1")
    assert found.notes == (
        "claude-opus-4-7: the multiplier of 1.1 for fast mode was left out: it is that of US inference.",
    )


def test_regional_ids_are_left_to_the_multiplier() -> None:
    """A regional id's dearer entry is neither a model nor a conflict: the surcharge is ours to apply."""
    data = {
        "claude-sonnet-4-5": entry(3e-06, 1.5e-05),
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0": entry(3.3e-06, 1.65e-05, "bedrock_converse"),
    }
    found = read_litellm(json.dumps(data).encode(), "litellm.json")
    assert list(found.models) == ["claude-sonnet-4-5"]
    assert found.notes == ()


def test_what_is_no_price_of_tokens_is_passed_over() -> None:
    """Pictures, embeddings, explanations, free entries and odd values are no models; impossible ones are told of."""
    found = read(
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
    assert list(found.models) == ["good"]
    assert found.notes == (
        "tiers has several thresholds for long prompts and is left out.",
        "minus is left out: periods[0].input is -1; a price is 0 or more.",
    )


def test_another_threshold() -> None:
    """A threshold other than 200,000 is taken; a price without one of its own above it stays as it is below."""
    model = read(gpt_9=entry(2e-06, 8e-06, "openai", input_cost_per_token_above_272k_tokens=4e-06)).models["gpt-9"]
    long = model.periods[0].long_context
    assert long is not None
    assert (long.over_prompt_tokens, str(long.input), str(long.output)) == (272_000, "4", "8")


def test_a_file_without_prices_is_refused() -> None:
    """Entries none of which has prices are no price file."""
    with pytest.raises(BadQuery, match="none of its entries has prices"):
        read(half={"litellm_provider": "anthropic"})


def test_it_is_read_by_its_shape(tmp_path: Path) -> None:
    """`rates` takes LiteLLM's file as it is: its models are added, and its notes are there to be shown."""
    path = tmp_path / "litellm.json"
    path.write_text(json.dumps({"zai/glm-5.1": entry(6e-07, 2.2e-06, "zai"), "claude-opus-5": entry(5e-06, 2.5e-05)}))
    table = load_rates(path)
    found = table.rate("glm-5.1", "2026-11-01", 1)
    assert found is not None
    assert (found.input, found.source) == (
        Decimal("0.6"),
        "litellm, unchecked confidence: no price for cache write 5m and cache read: by rule from input",
    )
    assert table.rate("glm-5.10", "2026-11-01", 1) is None
    assert table.rate("claude-opus-5-5", "2026-11-01", 1) == shipped_rates().rate("claude-opus-5-5", "2026-11-01", 1)


def test_what_was_imported_reads_back() -> None:
    """The models, written in our schema, are read back equal."""
    found = read(claude_sonnet_4_5_20250929=SONNET, gpt_9=entry(1.25e-06, 1e-05, "openai"))
    assert read_price_file(encode_price_file(found, "a test"), "again").models == found.models
