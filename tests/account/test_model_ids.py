"""Tests of normalising the many spellings of a model id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each

from threadline.account import shipped_rates
from threadline.account.prices import cloud_region, normalise_model_id

SPELLINGS = {
    "claude-opus-4-6-thinking": "claude-opus-4-6",
    "anthropic/claude-sonnet-4.5": "claude-sonnet-4-5",
    "openrouter/anthropic/claude-sonnet-4.5": "claude-sonnet-4-5",
    "claude-sonnet-4": "claude-sonnet-4",
    "claude-opus-4-6[1m]": "claude-opus-4-6",
    "claude-sonnet-4-5-20250929[1m]": "claude-sonnet-4-5",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]": "claude-sonnet-4-5",
    "apac.anthropic.claude-3-5-sonnet-20241022-v2:0": "claude-3-5-sonnet",
    "global.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5",
    "anthropic.claude-3-haiku-20240307-v1:0": "claude-3-haiku",
    "bedrock/us-east-1/anthropic.claude-opus-4-6-v1": "claude-opus-4-6",
    "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-5-v1:0": "claude-opus-5",
    "claude-sonnet-4-5@20250929": "claude-sonnet-4-5",
    "vertex_ai/claude-opus-4-1@20250805": "claude-opus-4-1",
    "claude-3-5-haiku-latest": "claude-3-5-haiku",
    "claude-opus-4-6-fast": "claude-opus-4-6",
    "claude-sonnet-4-5-20250929-thinking": "claude-sonnet-4-5",
    "claude-4-opus-20250514": "claude-opus-4",
    "claude-4.5-sonnet": "claude-sonnet-4-5",
    "claude-3.7-sonnet": "claude-3-7-sonnet",
    "Claude-Opus-5-5": "claude-opus-5-5",
    "claude-3-opus-20240229": "claude-3-opus",
    "claude-opus-5-5": "claude-opus-5-5",
    "claude-mythos-preview": "claude-mythos-preview",
}
FOREIGN = {
    "glm-5.1": "glm-5-1",
    "glm-4.7": "glm-4-7",
    "deepseek-v4-flash": "deepseek-v4-flash",
    "deepseek-v4-pro": "deepseek-v4-pro",
    "MiniMax-M2.7": "minimax-m2-7",
    "grok-4-fast": "grok-4-fast",
    "kimi-k2-thinking": "kimi-k2-thinking",
    "<synthetic>": "<synthetic>",
}


@for_each("spelling, model", [*SPELLINGS.items(), *FOREIGN.items()])
def test_spellings_are_normalised(spelling: str, model: str) -> None:
    """Every known spelling becomes the model's id. `-fast` and `-thinking` are removed only from Claude's ids."""
    assert normalise_model_id(spelling) == model
    assert normalise_model_id(model) == model


@for_each("spelling", SPELLINGS)
def test_spellings_are_priced(spelling: str) -> None:
    """Every spelling of a Claude model has a price."""
    assert shipped_rates().rate(spelling, "2026-11-01", 1) is not None


@pytest.mark.parametrize("spelling", FOREIGN)
def test_foreign_models_are_not_priced(spelling: str) -> None:
    """No other model has a price."""
    assert shipped_rates().rate(spelling, "2026-11-01", 1) is None


def test_every_alias_and_key_is_found() -> None:
    """Each key and alias of the shipped file names its model, with or without a provider's path."""
    for row in shipped_rates().rows():
        for name in (row.model, *row.aliases):
            assert shipped_rates().model(name) == row.model
            assert shipped_rates().model(f"openrouter/anthropic/{name.upper()}") == row.model


@pytest.mark.parametrize(
    "spelling",
    ["", "/", "[", "[]", "-fast", ":0", "@20250929", "us.", "us.anthropic.", "claude-opus-5\n", "claude-opus-5\n-v1"],
)
def test_odd_ids_name_no_model(spelling: str) -> None:
    """A line end is part of an id and never skipped."""
    assert shipped_rates().model(spelling) is None
    assert cloud_region(spelling) in {None, "us"}


@pytest.mark.parametrize("unit", ["a", "[", "]", "[1m]", "-20250929", ".", "1.", "/", "us.", "-v1:0", "\u212a"])
def test_huge_ids_name_no_model(unit: str) -> None:
    """An id of a megabyte is returned unchanged, immediately."""
    spelling = "claude-opus-5" + unit * (1_000_000 // len(unit))
    assert normalise_model_id(spelling) == spelling
    assert shipped_rates().model(spelling) is None
    assert cloud_region(spelling) is None


def test_letters_of_other_scripts_are_not_ascii() -> None:
    """A Kelvin sign is not a k, and full-width or Arabic digits are not digits, although Python treats them as such."""
    for spelling in ("claude-hai\u212au-4-5", "claude-opus-\uff15", "claude-opus-\u0665", "claude-opus-5-\u0662" * 8):
        assert normalise_model_id(spelling) == spelling
        assert shipped_rates().model(spelling) is None


@given(st.text(alphabet="claudeopus-.:/@[]v0123456789\n ", max_size=60))
def test_only_whole_ids_match(spelling: str) -> None:
    """Any text names a model only if nothing of it is left over."""
    model = shipped_rates().model(spelling)
    names = {name: row.model for row in shipped_rates().rows() for name in (row.model, *row.aliases)}
    assert model == names.get(spelling.lower(), names.get(normalise_model_id(spelling)))


@pytest.mark.parametrize(
    ("spelling", "region"),
    [
        ("us.anthropic.claude-opus-5-v1:0", "us"),
        ("bedrock/eu.anthropic.claude-opus-5-v1:0", "eu"),
        ("global.anthropic.claude-opus-5", "global"),
        ("anthropic.claude-opus-5", None),
        ("claude-opus-5", None),
        ("us-gov.anthropic.claude-opus-5", None),
    ],
)
def test_cloud_region_of_an_id(spelling: str, region: str | None) -> None:
    """The region is the part between the path and the first dot, if it is a known one."""
    assert cloud_region(spelling) == region
