"""Prices: the file format, model ids, and the price file that comes with threadline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from threadline.errors import BadQuery
from threadline.json_values import escape_match
from threadline.model.text import plain_decimal

SCHEMA = 1
UNIT = "USD per 1,000,000 tokens"
PRICE_KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
"""The kinds of tokens that have a price."""

_MAX_PRICE = 1_000_000
_MIN_EXPONENT = -30
_MAX_MULTIPLIER = 1000
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_ERROR_LOCATION = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """USD per million tokens of each kind."""

    input: Decimal
    output: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    cache_read: Decimal


class LongContext(Prices, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of a whole request whose prompt has more tokens than the threshold."""

    over_prompt_tokens: int
    scope: Literal["whole_request"] = "whole_request"


class Period(Prices, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Prices from a day up to, but not including, another. None means open-ended."""

    begins: str | None = field(default=None, name="from")
    ends: str | None = field(default=None, name="to")
    long_context: LongContext | None = None


class FastMode(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The factor that fast mode multiplies all prices by, during a period."""

    multiplier: Decimal
    begins: str | None = field(default=None, name="from")
    ends: str | None = field(default=None, name="to")
    note: str | None = None


class ModelPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model: its names, and its prices by period."""

    aliases: tuple[str, ...] = ()
    introduced: str | None = None
    max_context: int | None = None
    periods: tuple[Period, ...]
    fast: tuple[FastMode, ...] = ()
    us_inference_multiplier: Decimal | None = None
    source: str = ""
    confidence: str = ""
    note: str | None = None


class Fees(Struct, frozen=True):
    """Fees per request. A fee that a file does not contain stays unchanged."""

    web_search_usd_per_request: Decimal | None = None


class PriceRules(Struct, frozen=True):
    """Rules for all models of a file."""

    batch: Decimal | None = None


class PriceFile(Struct, frozen=True):
    """The parts of a price file that are used. `notes` lists corrections."""

    models: dict[str, ModelPrices]
    fees: Fees = Fees()
    rules: PriceRules = PriceRules()
    notes: tuple[str, ...] = ()


def is_price_file(fields: dict[str, Raw]) -> bool:
    """Whether a JSON object is meant to be a price file in our format."""
    return "schema" in fields or "models" in fields


def read_price_file(data: bytes, name: str) -> PriceFile:
    """Decode and validate a price file. `name` is used in messages.

    Raises:
        BadQuery: it is not a price file, or contains impossible values.
    """
    fields = _decode(data, dict[str, Raw], name, "$")
    schema = _decode(fields.get("schema", b"null"), Any, name, "$.schema")
    if schema != SCHEMA or schema is True:
        problem = f"is {_shorten(schema)}" if schema is not None else "is missing"
        raise BadQuery(f"{name}: $.schema {problem}; this version reads schema {SCHEMA}.")
    unit = _decode(fields.get("unit", b"null"), Any, name, "$.unit")
    if unit not in (None, UNIT):
        raise BadQuery(f"{name}: $.unit is {_shorten(unit)}; prices must be in {UNIT!r}.")
    if "models" not in fields:
        raise BadQuery(f"{name}: $.models is missing; it must contain the models by id.")
    models = {
        key: _decode(raw, ModelPrices, name, f"$.models.{key}")
        for key, raw in _decode(fields["models"], dict[str, Raw], name, "$.models").items()
    }
    fees = _decode(fields.get("fees", b"{}"), Fees, name, "$.fees")
    rules = _decode(fields.get("rules", b"{}"), PriceRules, name, "$.rules")
    file = PriceFile(models, fees, rules)
    for path, wrong in find_problems(file):
        raise BadQuery(f"{name}: {path} {wrong}.")
    return file


def find_problems(file: PriceFile) -> Iterator[tuple[str, str]]:
    """Yield what is invalid in a file of the right shape: a JSON path, and what is wrong there."""
    fee = file.fees.web_search_usd_per_request
    if fee is not None and _price_error(fee):
        yield "$.fees.web_search_usd_per_request", _price_error(fee)
    if file.rules.batch is not None and _multiplier_error(file.rules.batch):
        yield "$.rules.batch", _multiplier_error(file.rules.batch)
    yield from _duplicate_names(file.models)
    for key, model in file.models.items():
        yield from _model_problems(model, f"$.models.{key}")


def _decode(data: bytes | Raw, shape: Any, name: str, path: str) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        match = _ERROR_LOCATION.fullmatch(str(error))
        what, below = (match[1], match[2] or "") if match else (str(error), "")
        raise BadQuery(f"{name}: {path}{below} is invalid: {what}.") from None
    except UnicodeDecodeError:
        raise BadQuery(f"{name} is not UTF-8; save it as UTF-8 and try again.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadQuery(f"{name} is not valid JSON: {error}.") from None


def _duplicate_names(models: dict[str, ModelPrices]) -> Iterator[tuple[str, str]]:
    owners: dict[str, str] = {}
    for key in models:
        owner = owners.setdefault(with_dashes(key), key)
        if not key:
            yield "$.models", "has a model without an id"
        elif owner != key:
            yield f"$.models.{key}", f"is the same id as {owner!r}"
    for key, model in models.items():
        for at, alias in enumerate(model.aliases):
            owner = owners.setdefault(lower_ascii(alias), key)
            if owner != key:
                yield f"$.models.{key}.aliases[{at}]", f"is {alias!r}, which names {owner!r} already"


def _model_problems(model: ModelPrices, path: str) -> Iterator[tuple[str, str]]:
    if not model.periods:
        yield f"{path}.periods", "is empty; a model without prices is left out"
    yield from _period_problems(model.periods, f"{path}.periods")
    for at, period in enumerate(model.periods):
        yield from _price_problems(period, f"{path}.periods[{at}]")
        if period.long_context is not None:
            yield from _price_problems(period.long_context, f"{path}.periods[{at}].long_context")
            if period.long_context.over_prompt_tokens <= 0:
                yield f"{path}.periods[{at}].long_context.over_prompt_tokens", "must be more than 0"
    yield from _period_problems(model.fast, f"{path}.fast")
    for at, fast in enumerate(model.fast):
        if _multiplier_error(fast.multiplier):
            yield f"{path}.fast[{at}].multiplier", _multiplier_error(fast.multiplier)
    us = model.us_inference_multiplier
    if us is not None and _multiplier_error(us):
        yield f"{path}.us_inference_multiplier", _multiplier_error(us)


def _period_problems(periods: Sequence[Period | FastMode], path: str) -> Iterator[tuple[str, str]]:
    """Periods follow one another. There may be days without a price between two."""
    for at, period in enumerate(periods):
        for word, day in (("from", period.begins), ("to", period.ends)):
            if day is not None and not _is_day(day):
                yield f"{path}[{at}].{word}", f"is {day!r}, which is not a date. Write it as 2026-03-13"
        if period.begins is not None and period.ends is not None and period.begins >= period.ends:
            yield f"{path}[{at}]", f"ends on {period.ends}, which is not after its beginning, {period.begins}"
        if at and not _is_in_order(periods[at - 1], period):
            yield f"{path}[{at}]", "overlaps or precedes the period before it; sort them by `from`"


def _is_in_order(before: Period | FastMode, after: Period | FastMode) -> bool:
    return before.ends is not None and after.begins is not None and before.ends <= after.begins


def _price_problems(prices: Prices, path: str) -> Iterator[tuple[str, str]]:
    for word in PRICE_KINDS:
        wrong = _price_error(getattr(prices, word))
        if wrong:
            yield f"{path}.{word}", wrong


def _price_error(price: Decimal) -> str:
    if not price.is_finite() or price < 0:
        return f"is {_shorten(price)}; a price is 0 or more"
    if price > _MAX_PRICE:
        return f"is {_shorten(price)}; prices are in USD per million tokens, and none is above {_MAX_PRICE:,}"
    return f"is {_shorten(price)}, which has too many digits" if _has_too_many_digits(price) else ""


def _multiplier_error(number: Decimal) -> str:
    if not number.is_finite() or not 0 < number <= _MAX_MULTIPLIER or _has_too_many_digits(number):
        return f"is {_shorten(number)}; a multiplier is more than 0 and at most {_MAX_MULTIPLIER:,}"
    return ""


def _has_too_many_digits(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent < _MIN_EXPONENT


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _shorten(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"  # noqa: PLR2004 - as much as a sentence can show


def encode_price_file(file: PriceFile, source: str) -> bytes:
    """Encode a price file as ASCII JSON.

    Prices are numbers, as in the shipped file; `source` says where they are from.
    """
    models = {key: msgspec.to_builtins(model, builtin_types=(Decimal,)) for key, model in file.models.items()}
    document = {"schema": SCHEMA, "unit": UNIT, "sources": [source], "notes": file.notes, "models": models}
    encoded = msgspec.json.Encoder(decimal_format="number").encode(_without_exponents(document))
    text = msgspec.json.format(encoded, indent=1).decode()
    return _NOT_ASCII.sub(escape_match, text).encode() + b"\n"


def _without_exponents(value: Any) -> Any:
    """Return the value with numbers that have no exponent: `1E+1` becomes `10`."""
    if isinstance(value, dict):
        return {key: _without_exponents(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_exponents(item) for item in value]
    return plain_decimal(value) if isinstance(value, Decimal) else value


# Longer than any model address of a cloud. A longer text is not an id.
MAX_ID_LENGTH = 512
"""The maximum length of a model id."""

_REGION = re.compile(r"(us|eu|apac|au|jp|global)\.")
_BRACKETS = re.compile(r"(?:\[[^\[\]]*\])+\Z")
_REVISION = re.compile(r"(?:-v\d{1,2}:\d{1,2}|-v1|:0)\Z")
_AT_DATE = re.compile(r"@\d{8}\Z")
_DATE = re.compile(r"-\d{8}\Z")
_MODE_SUFFIXES = ("-latest", "-fast", "-thinking")
_DOT = re.compile(r"(?<=\d)\.(?=\d)")
# From version 4 on, the family comes before the version. Earlier it came after it.
_VERSION_BEFORE_FAMILY = re.compile(r"claude-((?:[4-9]|\d\d)(?:-\d{1,2})?)-([a-z]+)")


def normalise_model_id(model: str) -> str:
    """Return a model id without region, date and mode.

    An impossible id (too long, not ASCII) is returned unchanged.

    >>> normalise_model_id("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    'claude-sonnet-4-5'
    >>> normalise_model_id("openrouter/anthropic/claude-4.5-sonnet")
    'claude-sonnet-4-5'
    """
    if len(model) > MAX_ID_LENGTH or not model.isascii():
        return model
    name = _REGION.sub("", _without_path(model), count=1) if cloud_region(model) else _without_path(model)
    name = name.removeprefix("anthropic.")
    for suffix in (_BRACKETS, _REVISION, _AT_DATE, _DATE):
        name = suffix.sub("", name)
    if name.startswith("claude-"):
        name = _without_modes(name)
    name = with_dashes(name)
    swapped = _VERSION_BEFORE_FAMILY.fullmatch(name)
    return f"claude-{swapped[2]}-{swapped[1]}" if swapped else name


def cloud_region(model: str) -> str | None:
    """Return the region that a cloud's id has before the model: `us`, `eu`, …, or `global`.

    >>> cloud_region("bedrock/eu.anthropic.claude-opus-4-6-v1")
    'eu'
    """
    if len(model) > MAX_ID_LENGTH or not model.isascii():
        return None
    match = _REGION.match(_without_path(model))
    return match[1] if match else None


def with_dashes(name: str) -> str:
    """Return a name in lower case, with dashes in its version: `GLM-5.1` becomes `glm-5-1`."""
    return _DOT.sub("-", lower_ascii(name))


def lower_ascii(name: str) -> str:
    """Return a name in lower case. One that is not ASCII is unchanged: some of its letters would become ASCII."""
    return name.lower() if name.isascii() else name


def _without_path(model: str) -> str:
    return model.lower().rpartition("/")[2]


def _without_modes(name: str) -> str:
    """Remove modes from a Claude id. Elsewhere, `-fast` and `-thinking` are models with prices of their own."""
    for mode in _MODE_SUFFIXES:
        name = name.removesuffix(mode)
    return _DATE.sub("", name)
