"""The price file: its shape, and the sentences for what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from threadline.account.model_id import dashed, lowered
from threadline.errors import BadQuery
from threadline.model.rate import plain_number

SCHEMA = 1
UNIT = "USD per 1,000,000 tokens"
PRICES = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
"""The kinds of tokens that have a price."""

_MOST = 1_000_000
_FINEST = -30
_MOST_TIMES = 1000
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_WHERE = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)


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
    """Prices from a day up to another, which is no longer part of it; None is open."""

    begins: str | None = field(default=None, name="from")
    ends: str | None = field(default=None, name="to")
    long_context: LongContext | None = None


class Fast(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What fast mode multiplies all prices by, during a period."""

    multiplier: Decimal
    begins: str | None = field(default=None, name="from")
    ends: str | None = field(default=None, name="to")
    note: str | None = None


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model: its names, and its prices by period."""

    aliases: tuple[str, ...] = ()
    introduced: str | None = None
    max_context: int | None = None
    periods: tuple[Period, ...]
    fast: tuple[Fast, ...] = ()
    us_inference_multiplier: Decimal | None = None
    source: str = ""
    confidence: str = ""
    note: str | None = None


class Fees(Struct, frozen=True):
    """What is charged by the piece; what a file does not say stays as it is."""

    web_search_usd_per_request: Decimal | None = None


class Rules(Struct, frozen=True):
    """What holds for all models of a file."""

    batch: Decimal | None = None


class PriceFile(Struct, frozen=True):
    """All that is used of a price file. `notes` is what had to be put right in it."""

    models: dict[str, Model]
    fees: Fees = Fees()
    rules: Rules = Rules()
    notes: tuple[str, ...] = ()


def is_price_file(fields: dict[str, Raw]) -> bool:
    """Whether a JSON object is meant to be a price file of ours."""
    return "schema" in fields or "models" in fields


def read_price_file(data: bytes, name: str) -> PriceFile:
    """Decode and check a price file; `name` is for the sentences.

    Raises:
        BadQuery: it is no price file, or says what cannot be.
    """
    fields = _decode(data, dict[str, Raw], name, "$")
    schema = _decode(fields.get("schema", b"null"), Any, name, "$.schema")
    if schema != SCHEMA or schema is True:
        raise BadQuery(f"{name}: $.schema is {_shown(schema)}; this version reads schema {SCHEMA}.")
    unit = _decode(fields.get("unit", b"null"), Any, name, "$.unit")
    if unit not in (None, UNIT):
        raise BadQuery(f"{name}: $.unit is {_shown(unit)}; prices must be in {UNIT!r}.")
    if "models" not in fields:
        raise BadQuery(f"{name}: $.models is missing; it holds the models by id.")
    models = {
        key: _decode(raw, Model, name, f"$.models.{key}")
        for key, raw in _decode(fields["models"], dict[str, Raw], name, "$.models").items()
    }
    fees = _decode(fields.get("fees", b"{}"), Fees, name, "$.fees")
    rules = _decode(fields.get("rules", b"{}"), Rules, name, "$.rules")
    found = PriceFile(models, fees, rules)
    for path, wrong in problems(found):
        raise BadQuery(f"{name}: {path} {wrong}.")
    return found


def problems(file: PriceFile) -> Iterator[tuple[str, str]]:
    """All that cannot be in a file whose shape is right: a JSON path, and what is wrong there."""
    fee = file.fees.web_search_usd_per_request
    if fee is not None and _not_a_price(fee):
        yield "$.fees.web_search_usd_per_request", _not_a_price(fee)
    if file.rules.batch is not None and _not_a_multiplier(file.rules.batch):
        yield "$.rules.batch", _not_a_multiplier(file.rules.batch)
    yield from _shared_names(file.models)
    for key, model in file.models.items():
        yield from _problems_of(model, f"$.models.{key}")


def _decode(data: bytes | Raw, shape: Any, name: str, path: str) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        found = _WHERE.fullmatch(str(error))
        what, below = (found[1], found[2] or "") if found else (str(error), "")
        raise BadQuery(f"{name}: {path}{below} is not as it should be: {what}.") from None
    except UnicodeDecodeError:
        raise BadQuery(f"{name} is not UTF-8; save it as UTF-8 and try again.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadQuery(f"{name} is no JSON that can be read: {error}.") from None


def _shared_names(models: dict[str, Model]) -> Iterator[tuple[str, str]]:
    owners: dict[str, str] = {}
    for key in models:
        owner = owners.setdefault(dashed(key), key)
        if not key:
            yield "$.models", "has a model without an id"
        elif owner != key:
            yield f"$.models.{key}", f"is the same id as {owner!r}"
    for key, model in models.items():
        for at, alias in enumerate(model.aliases):
            owner = owners.setdefault(lowered(alias), key)
            if owner != key:
                yield f"$.models.{key}.aliases[{at}]", f"is {alias!r}, which names {owner!r} already"


def _problems_of(model: Model, path: str) -> Iterator[tuple[str, str]]:
    if not model.periods:
        yield f"{path}.periods", "is empty; a model without prices is left out"
    yield from _periods(model.periods, f"{path}.periods")
    for at, period in enumerate(model.periods):
        yield from _prices(period, f"{path}.periods[{at}]")
        if period.long_context is not None:
            yield from _prices(period.long_context, f"{path}.periods[{at}].long_context")
            if period.long_context.over_prompt_tokens <= 0:
                yield f"{path}.periods[{at}].long_context.over_prompt_tokens", "must be more than 0"
    yield from _periods(model.fast, f"{path}.fast")
    for at, fast in enumerate(model.fast):
        if _not_a_multiplier(fast.multiplier):
            yield f"{path}.fast[{at}].multiplier", _not_a_multiplier(fast.multiplier)
    us = model.us_inference_multiplier
    if us is not None and _not_a_multiplier(us):
        yield f"{path}.us_inference_multiplier", _not_a_multiplier(us)


def _periods(periods: Sequence[Period | Fast], path: str) -> Iterator[tuple[str, str]]:
    """Periods follow one another; between two there may be days without a price."""
    for at, period in enumerate(periods):
        for word, day in (("from", period.begins), ("to", period.ends)):
            if day is not None and not _is_day(day):
                yield f"{path}[{at}].{word}", f"is {day!r}, which is no day; write it 2026-03-13"
        if period.begins is not None and period.ends is not None and period.begins >= period.ends:
            yield f"{path}[{at}]", f"ends on {period.ends}, which is not after its beginning, {period.begins}"
        if at and not _follows(periods[at - 1], period):
            yield f"{path}[{at}]", "overlaps the period before it, or stands before it; order them by `from`"


def _follows(before: Period | Fast, after: Period | Fast) -> bool:
    return before.ends is not None and after.begins is not None and before.ends <= after.begins


def _prices(prices: Prices, path: str) -> Iterator[tuple[str, str]]:
    for word in PRICES:
        wrong = _not_a_price(getattr(prices, word))
        if wrong:
            yield f"{path}.{word}", wrong


def _not_a_price(price: Decimal) -> str:
    if not price.is_finite() or price < 0:
        return f"is {_shown(price)}; a price is 0 or more"
    if price > _MOST:
        return f"is {_shown(price)}; prices are in USD per million tokens, and none is above {_MOST:,}"
    return f"is {_shown(price)}, which has too many digits" if _too_fine(price) else ""


def _not_a_multiplier(number: Decimal) -> str:
    if not number.is_finite() or not 0 < number <= _MOST_TIMES or _too_fine(number):
        return f"is {_shown(number)}; a multiplier is more than 0 and at most {_MOST_TIMES:,}"
    return ""


def _too_fine(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent < _FINEST


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"  # noqa: PLR2004 - as much as a sentence can show


def written(file: PriceFile, source: str) -> bytes:
    """The file as JSON, in ASCII: prices are numbers, as in the shipped one; `source` says where they are from."""
    models = {key: msgspec.to_builtins(model, builtin_types=(Decimal,)) for key, model in file.models.items()}
    whole = {"schema": SCHEMA, "unit": UNIT, "sources": [source], "notes": file.notes, "models": models}
    encoded = msgspec.json.Encoder(decimal_format="number").encode(_plain(whole))
    text = msgspec.json.format(encoded, indent=1).decode()
    return _NOT_ASCII.sub(_escaped, text).encode() + b"\n"


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _plain(value: Any) -> Any:
    """The same with numbers that have no exponent: `1E+1` is `10`."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return Decimal(plain_number(value)) if isinstance(value, Decimal) else value
