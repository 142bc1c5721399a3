"""Import prices from LiteLLM's price file."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Raw, Struct

from threadline.account.prices import (
    FastMode,
    LongContext,
    ModelPrices,
    Period,
    PriceFile,
    cloud_region,
    find_problems,
    normalise_model_id,
)
from threadline.errors import BadQuery
from threadline.model.ledger import EXACT
from threadline.model.text import format_decimal, join_some

_SIGNATURES = (b'"input_cost_per_token"', b'"litellm_provider"')
_SAMPLE_ENTRY = "sample_spec"  # an entry that explains the fields
_TOKEN_MODES = {None, "chat", "completion", "responses"}
_TOKENS_PER_UNIT = Decimal(1_000_000)
_THRESHOLD = re.compile(r"(?:input|output)_cost_per_token_above_(\d{1,6})k_tokens", re.ASCII)
_DATE_IN_ID = re.compile(r"-(\d{4})(\d\d)(\d\d)(?!\d)", re.ASCII)
# Anthropic's own rule, for prices that the file leaves out: a write costs 1.25 or 2 times input, a read a tenth.
_WRITE_5M, _WRITE_1H, _READ = Decimal("1.25"), Decimal(2), Decimal("0.1")
_MAX_DEVIATION = Decimal("0.2")
# Early in 2026, the file had the factor for US inference in place of the one for fast mode.
_US_INFERENCE_FACTOR = Decimal("1.1")
_MAX_LISTED = 3


class _Entry(Struct, frozen=True):
    """One entry of the file: its id, its prices, and what was corrected."""

    id: str
    rank: int
    model: ModelPrices
    notes: tuple[str, ...] = ()

    @property
    def costs(self) -> tuple[Any, ...]:
        """What two spellings of one model must agree on."""
        return self.model.periods, self.model.fast, self.model.us_inference_multiplier


def is_litellm(fields: dict[str, Raw]) -> bool:
    """Whether a JSON object has the shape of LiteLLM's price file."""
    return any(mark in bytes(raw) for raw in fields.values() for mark in _SIGNATURES)


def read_litellm(data: bytes, name: str) -> PriceFile:
    """Read the models of LiteLLM's price file, in exact USD per million tokens.

    `notes` lists what was corrected or left out.

    Raises:
        BadQuery: no entry has prices.
    """
    try:
        fields = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode(data)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise BadQuery(f"{name} is not a price file: {error}.") from None
    spellings: dict[str, list[_Entry]] = defaultdict(list)
    notes: list[str] = []
    for key, value in fields.items():
        if not isinstance(value, dict) or key == _SAMPLE_ENTRY:
            continue
        try:
            entry = _parse_entry(key, value, notes)
        except ArithmeticError:  # an exponent beyond what a decimal can have
            notes.append(f"{key} is left out: one of its numbers is too large.")
            continue
        if entry is not None:
            spellings[normalise_model_id(key)].append(entry)
    models: dict[str, ModelPrices] = {}
    for key in sorted(spellings):
        models |= _merge_spellings(key, spellings[key], notes)
    if not models:
        raise BadQuery(f"{name} is not a price file: none of its entries has prices for input and output tokens.")
    return PriceFile(models, notes=tuple(notes))


def _parse_entry(key: str, value: dict[str, Any], notes: list[str]) -> _Entry | None:
    """Parse an entry; None if it has no token prices, such as entries for other modes and regional surcharges."""
    mode = value.get("mode")
    is_token_mode = mode is None or (isinstance(mode, str) and mode in _TOKEN_MODES)
    if not is_token_mode or cloud_region(key) is not None or key.startswith(("fast/", "us/", "eu/", "global/")):
        return None
    corrections: list[str] = []
    thresholds = sorted({int(match[1]) for word in value if (match := _THRESHOLD.fullmatch(word))})
    base = _parse_prices(key, value, "", corrections)
    if base is None or not (base["input"] or base["output"]):
        return None
    if len(thresholds) > 1:
        notes.append(f"{key} has several thresholds for long prompts and is left out.")
        return None
    long = None
    if thresholds:
        above = _parse_prices(key, value, f"_above_{thresholds[0]}k_tokens", corrections, base)
        long = (
            LongContext(over_prompt_tokens=thresholds[0] * 1000, scope="whole_request", **above)
            if above is not None
            else None
        )
    model = ModelPrices(
        introduced=_introduction_date(key),
        periods=(Period(begins=None, ends=None, long_context=long, **base),),
        fast=_fast_modes(value, corrections),
        us_inference_multiplier=_multiplier(value, "us"),
        source="litellm",
        confidence="unchecked",
    )
    wrong = next(find_problems(PriceFile({key: model})), None)
    if wrong is not None:
        notes.append(f"{key} is left out: {wrong[0].removeprefix(f'$.models.{key}.')} {wrong[1]}.")
        return None
    return _Entry(key, _source_rank(key, value), model, tuple(corrections))


def _source_rank(key: str, value: dict[str, Any]) -> int:
    """Rank sources: Anthropic's prices for its models, then ids without a host's name, then hosts."""
    if "/" in key:
        return 2
    return 0 if value.get("litellm_provider") == "anthropic" else 1


def _parse_prices(
    key: str, value: dict[str, Any], above: str, corrections: list[str], base: dict[str, Decimal] | None = None
) -> dict[str, Decimal] | None:
    """Return the five prices, or those above a threshold, with `base` for those that have none there."""
    sent = _per_million(value.get(f"input_cost_per_token{above}"))
    output = _per_million(value.get(f"output_cost_per_token{above}"))
    if base is not None:
        sent, output = base["input"] if sent is None else sent, base["output"] if output is None else output
    if sent is None or output is None:
        return None
    cache = {
        "cache_write_5m": _per_million(value.get(f"cache_creation_input_token_cost{above}")),
        "cache_write_1h": _per_million(value.get(f"cache_creation_input_token_cost_above_1hr{above}")),
        "cache_read": _per_million(value.get(f"cache_read_input_token_cost{above}")),
    }
    return {"input": sent, "output": output, **_cache_prices(key, cache, sent, above, corrections)}


def _cache_prices(
    key: str, prices: dict[str, Decimal | None], sent: Decimal, above: str, corrections: list[str]
) -> dict[str, Decimal]:
    if not normalise_model_id(key).startswith("claude-"):
        write = sent if prices["cache_write_5m"] is None else prices["cache_write_5m"]
        by_rule = {"cache_write_5m": sent, "cache_write_1h": write, "cache_read": sent}
    else:
        factors = {"cache_write_5m": _WRITE_5M, "cache_write_1h": _WRITE_1H, "cache_read": _READ}
        by_rule = {word: EXACT.multiply(sent, by) for word, by in factors.items()}
        hour = prices["cache_write_1h"]
        if hour is not None and EXACT.abs(EXACT.subtract(hour, by_rule["cache_write_1h"])) > EXACT.multiply(
            by_rule["cache_write_1h"], _MAX_DEVIATION
        ):
            corrections.append(
                f"the 1-hour cache write of {format_decimal(hour)} was corrected to "
                f"{format_decimal(by_rule['cache_write_1h'])}, twice input"
            )
            prices = {**prices, "cache_write_1h": None}
    missing = [word for word, price in prices.items() if price is None and word != "cache_write_1h"]
    if missing and not above:
        corrections.append(
            f"no price for {' and '.join(word.replace('_', ' ') for word in missing)}: by rule from input"
        )
    return {word: by_rule[word] if price is None else price for word, price in prices.items()}


def _per_million(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return EXACT.multiply(Decimal(value), _TOKENS_PER_UNIT).normalize(EXACT)


def _multiplier(value: dict[str, Any], word: str) -> Decimal | None:
    details = value.get("provider_specific_entry")
    number = details.get(word) if isinstance(details, dict) else None
    usable = isinstance(number, int | Decimal) and not isinstance(number, bool)
    return Decimal(number).normalize(EXACT) if usable and number is not None else None


def _fast_modes(value: dict[str, Any], corrections: list[str]) -> tuple[FastMode, ...]:
    number = _multiplier(value, "fast")
    if number == _US_INFERENCE_FACTOR:
        corrections.append("the multiplier of 1.1 for fast mode was left out: it is that of US inference")
    return () if number is None or number == _US_INFERENCE_FACTOR else (FastMode(multiplier=number),)


def _introduction_date(key: str) -> str | None:
    match = _DATE_IN_ID.search(key)
    return "-".join(match.groups()) if match else None


def _merge_spellings(key: str, entries: list[_Entry], notes: list[str]) -> dict[str, ModelPrices]:
    """Merge the spellings of one model that agree.

    If they disagree, each spelling has its own price or none, and a note says so.
    """
    best = min(entry.rank for entry in entries)
    preferred = [entry for entry in entries if entry.rank == best]
    groups: dict[Any, list[_Entry]] = defaultdict(list)
    for entry in preferred:
        groups[entry.costs].append(entry)
    periods = {entry.model.periods for entry in preferred}
    others = [entry.id for entry in entries if entry.rank != best and entry.model.periods not in periods]
    if others:
        notes.append(
            f"{key} has other prices as {join_some(others, _MAX_LISTED)}; "
            f"those of {join_some((entry.id for entry in preferred), _MAX_LISTED)} are taken."
        )
    if len(groups) == 1:
        return {key: _merge_entries(key, preferred, notes)}
    examples = join_some((group[0].id for group in groups.values()), _MAX_LISTED)
    if best == 2:  # noqa: PLR2004 - hosts, of which none speaks for the others
        notes.append(f"{key} has a different price with each host and is left out: {examples}.")
        return {}
    notes.append(f"{key} has different prices by spelling; each spelling has its own: {examples}.")
    return dict(_spelling_model(key, group, notes) for group in groups.values())


def _spelling_model(key: str, group: list[_Entry], notes: list[str]) -> tuple[str, ModelPrices]:
    plain = next((entry.id.lower() for entry in group if entry.id.lower() == key), group[0].id.lower())
    return plain, _merge_entries(plain, group, notes)


def _merge_entries(key: str, agreeing: list[_Entry], notes: list[str]) -> ModelPrices:
    aliases = {entry.id.lower() for entry in agreeing if not set(entry.id) & set("/@:")} - {key}
    corrections = list(dict.fromkeys(correction for entry in agreeing for correction in entry.notes))
    notes.extend(f"{key}: {correction}." for correction in corrections if "was " in correction)
    dates = [entry.model.introduced for entry in agreeing if entry.model.introduced is not None]
    return msgspec.structs.replace(
        agreeing[0].model,
        aliases=tuple(sorted(aliases)),
        introduced=min(dates, default=None),
        note="; ".join(corrections) or None,
    )
