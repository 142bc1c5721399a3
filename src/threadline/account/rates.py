"""The rate table: which price applies to a call of a model, on a day, in a mode."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import cache, reduce
from os import PathLike, fspath
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from threadline.account.litellm import is_litellm, read_litellm
from threadline.account.prices import (
    MAX_ID_LENGTH,
    FastMode,
    LongContext,
    ModelPrices,
    Period,
    PriceFile,
    Prices,
    cloud_region,
    is_price_file,
    lower_ascii,
    normalise_model_id,
    read_price_file,
    with_dashes,
)
from threadline.account.shipped_prices import SHIPPED, combine_digests, shipped_bytes
from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.files import read_file, sha256
from threadline.model.ledger import EXACT, Rate

_WEB_SEARCH_FEE = Decimal("0.01")
_BATCH_FACTOR = Decimal("0.5")
_REGIONAL_FACTOR = Decimal("1.1")
# Regional endpoints of clouds cost more, for models from Sonnet 4.5 on.
_REGIONAL_SINCE = "2025-09-29"
# More models and days than anybody uses. A hostile home could name more.
_MAX_CACHED = 100_000

Multipliers = tuple[tuple[str, Decimal], ...]
_Dated = TypeVar("_Dated", Period, FastMode)
_RateQuery = tuple[str | None, str, str | None, str | None, str | None]
Tiers = tuple[int, Rate | None, Rate | None]


class RateRow(Struct, frozen=True):
    """One row of the table: a model, a period, and prices before multipliers. `file` is the file it is from."""

    model: str
    begins: str | None
    ends: str | None
    long_context: int | None
    input: Decimal
    output: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    cache_read: Decimal
    fast: tuple[FastMode, ...]
    us: Decimal | None
    regional: Decimal | None
    aliases: tuple[str, ...]
    introduced: str | None
    source: str
    confidence: str
    note: str | None
    file: str


class Rates:
    """A table of rates from one or more price files. Models in a later file replace those in earlier ones.

    Lookups are cheap: the result for a model, day and mode is cached, and equal rates are the same object.
    """

    def __init__(self, *sources: PriceSource) -> None:
        self.sources = sources
        self._models: dict[str, ModelPrices] = {}
        self._files: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for source in sources:
            self._add(source)
        fees = [source.prices.fees.web_search_usd_per_request for source in sources]
        self._fee = next((fee for fee in reversed(fees) if fee is not None), _WEB_SEARCH_FEE)
        batches = [source.prices.rules.batch for source in sources]
        self._batch = next((batch for batch in reversed(batches) if batch is not None), _BATCH_FACTOR)
        self._cache: dict[_RateQuery, Tiers] = {}
        self._rates: dict[Rate, Rate] = {}

    def _add(self, source: PriceSource) -> None:
        names: dict[str, str] = {}
        for id_, model in source.prices.models.items():
            key = with_dashes(id_)
            before = self._models.get(key)
            introduced = model.introduced or (before.introduced if before is not None else None)
            self._models[key] = msgspec.structs.replace(model, introduced=introduced)
            self._files[key] = source.name
            names |= {lower_ascii(name): key for name in (key, id_, *model.aliases)}
        self._names |= names

    @property
    def digest(self) -> str:
        """The SHA-256 of the price file. For several files, the SHA-256 of their digests, concatenated."""
        return combine_digests(self.digests)

    @property
    def digests(self) -> tuple[tuple[str, str], ...]:
        """Each file's name and SHA-256, in the order they are applied."""
        return tuple((source.name, source.digest) for source in self.sources)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was corrected in the files or could not be determined, a sentence each."""
        return tuple(f"{source.name}: {note}" for source in self.sources for note in source.prices.notes)

    @property
    def web_search_fee(self) -> Decimal:
        """USD for one web search."""
        return self._fee

    def model(self, name: str) -> str | None:
        """Return the key of the model that an id names; None if there is no such model. The whole id must match."""
        return self._names.get(lower_ascii(name)) or self._names.get(normalise_model_id(name))

    def model_name(self, id_: str) -> str:
        """Return one name for every id of a model, whether it has a price or not."""
        return self.model(id_) or normalise_model_id(id_)

    def rate(
        self,
        model: str | None,
        day: str,
        prompt_tokens: int = 0,
        *,
        speed: str | None = None,
        geo: str | None = None,
        tier: str | None = None,
    ) -> Rate | None:
        """Return the rate for a call; None if it is unknown. Another model's price is never used.

        `day` is the day of the call in UTC, `YYYY-MM-DD`; an empty one is before all days. `prompt_tokens` is input,
        cache writes and cache reads together. `speed`, `geo` and `tier` are the `speed`, `inference_geo` and
        `service_tier` of the usage.
        """
        threshold, short, long = self.tiers(model, day, speed, geo, tier)
        return long if prompt_tokens > threshold else short

    def tiers(
        self, model: str | None, day: str, speed: str | None = None, geo: str | None = None, tier: str | None = None
    ) -> Tiers:
        """Return the rates for prompts of any size: the threshold, the rate up to it, and the rate above it."""
        query = (model, day, speed, geo, tier)
        return self._cache.get(query) or self._cached_tiers(query)

    def rows(self) -> Iterator[RateRow]:
        """Yield one row for each model and period, and another one if long prompts cost more."""
        for key, model in self._models.items():
            for period in model.periods:
                yield self._row(key, model, period, None)
                if period.long_context is not None:
                    yield self._row(key, model, period, period.long_context.over_prompt_tokens)

    def _row(self, key: str, model: ModelPrices, period: Period, long_context: int | None) -> RateRow:
        prices: Prices = period if long_context is None else period.long_context or period
        return RateRow(
            model=key,
            begins=period.begins,
            ends=period.ends,
            long_context=long_context,
            input=prices.input,
            output=prices.output,
            cache_write_5m=prices.cache_write_5m,
            cache_write_1h=prices.cache_write_1h,
            cache_read=prices.cache_read,
            fast=model.fast,
            us=model.us_inference_multiplier,
            regional=_REGIONAL_FACTOR if _has_regional_surcharge(model) else None,
            aliases=model.aliases,
            introduced=model.introduced,
            source=model.source,
            confidence=model.confidence,
            note=model.note,
            file=self._files[key],
        )

    def _cached_tiers(self, query: _RateQuery) -> Tiers:
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        tiers = self._find_tiers(query)
        if len(query[0] or "") <= MAX_ID_LENGTH:
            self._cache[query] = tiers
        return tiers

    def _find_tiers(self, query: _RateQuery) -> Tiers:
        """Return the threshold, the rate up to it, and the rate above it."""
        name, day, *_ = query
        key = self.model(name) if name else None
        model = self._models[key] if key is not None else None
        period = _period_on(model.periods, day) if model is not None else None
        multipliers = self._multipliers(model, query) if model is not None else None
        if key is None or period is None or multipliers is None:
            return sys.maxsize, None, None
        short, long = self._rate(key, period, period, multipliers), period.long_context
        if long is None:
            return sys.maxsize, short, short
        return long.over_prompt_tokens, short, self._rate(key, period, long, multipliers)

    def _multipliers(self, model: ModelPrices, query: _RateQuery) -> Multipliers | None:
        """Return the multipliers of a mode; None if the price of the mode is unknown."""
        name, day, speed, geo, tier = query
        multipliers: list[tuple[str, Decimal]] = []
        if speed == "fast":
            fast = _period_on(model.fast, day)
            if fast is None:
                return None
            multipliers.append(("fast", fast.multiplier))
        if cloud_region(name or "") not in {None, "global"}:
            # A cloud's region has its own surcharge. The one for US inference is for Anthropic's own API.
            if _has_regional_surcharge(model):
                multipliers.append(("regional", _REGIONAL_FACTOR))
        elif geo == "us" and model.us_inference_multiplier is not None:
            multipliers.append(("us", model.us_inference_multiplier))
        if tier == "batch":
            multipliers.append(("batch", self._batch))
        return tuple(multipliers)

    def _rate(self, key: str, period: Period, prices: Prices, multipliers: Multipliers) -> Rate:
        factor = reduce(EXACT.multiply, (number for _, number in multipliers), Decimal(1))
        rate = Rate(
            model=key,
            input=EXACT.multiply(prices.input, factor),
            output=EXACT.multiply(prices.output, factor),
            cache_write_5m=EXACT.multiply(prices.cache_write_5m, factor),
            cache_write_1h=EXACT.multiply(prices.cache_write_1h, factor),
            cache_read=EXACT.multiply(prices.cache_read, factor),
            begins=period.begins,
            ends=period.ends,
            long_context=prices.over_prompt_tokens if isinstance(prices, LongContext) else None,
            multipliers=multipliers,
            source=_describe_source(self._models[key], self._files[key]),
            web_search=self._fee,
        )
        return self._rates.setdefault(rate, rate)


def _period_on(periods: tuple[_Dated, ...], day: str) -> _Dated | None:
    """Return the period that contains a day."""
    for period in periods:
        if (period.begins is None or period.begins <= day) and (period.ends is None or day < period.ends):
            return period
    return None


def _has_regional_surcharge(model: ModelPrices) -> bool:
    return model.introduced is not None and model.introduced >= _REGIONAL_SINCE


def _describe_source(model: ModelPrices, file: str) -> str:
    text = model.source or f"from {file}"
    if model.confidence:
        text += f", {model.confidence} confidence"
    return f"{text}: {model.note}" if model.note else text


@cache
def shipped_rates() -> Rates:
    """The rates that come with threadline."""
    return Rates(shipped_price_source())


def load_rates(*files: str | PathLike[str]) -> Rates:
    """Return the shipped rates, with the models of each file added or replaced.

    A file may be in our format or LiteLLM's.

    Raises:
        NotFound: the file does not exist.
        Unreadable: it cannot be read.
        BadQuery: it is not a price file.
    """
    if not files:
        return shipped_rates()
    return Rates(*shipped_rates().sources, *map(read_price_source, files))


_MAX_FILE_SIZE = 64_000_000


class PriceSource(Struct, frozen=True):
    """A price file that was read: its name, the SHA-256 of its bytes, and its content."""

    name: str
    digest: str
    prices: PriceFile


def shipped_price_source() -> PriceSource:
    """The price file that comes with threadline."""
    data = shipped_bytes()
    return PriceSource(SHIPPED, sha256(data).hexdigest(), read_price_file(data, SHIPPED))


def read_price_source(file: str | PathLike[str]) -> PriceSource:
    """Read a price file in our format or LiteLLM's.

    Raises:
        NotFound: the file does not exist.
        Unreadable: it cannot be read.
        BadQuery: it is not a price file.
    """
    name = fspath(file)
    data = _read_bytes(Path(name), name)
    return PriceSource(name, sha256(data).hexdigest(), _parse_prices(data.removeprefix(b"\xef\xbb\xbf"), name))


def _parse_prices(data: bytes, name: str) -> PriceFile:
    try:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise BadQuery(f"{name} is not a price file: it does not contain a JSON object.") from None
    except (ValueError, RecursionError) as error:
        raise BadQuery(f"{name} is not a price file: it is not valid JSON ({error}).") from None
    if is_price_file(fields):
        return read_price_file(data, name)
    if is_litellm(fields):
        return read_litellm(data, name)
    raise BadQuery(
        f"{name} is not a price file: it has neither `schema` and `models`, as threadline's price files have, "
        "nor entries with `input_cost_per_token`, as LiteLLM's has."
    )


def _read_bytes(path: Path, name: str) -> bytes:
    try:
        data = read_file(path, follow_symlinks=True, limit=_MAX_FILE_SIZE + 1)
    except FileNotFoundError:
        raise NotFound(f"Price file {name!r} not found.") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(f"Cannot read the price file {name!r}: {why}.") from None
    if len(data) > _MAX_FILE_SIZE:
        raise BadQuery(f"{name} is not a price file: it is larger than {_MAX_FILE_SIZE:,} bytes.")
    return data
