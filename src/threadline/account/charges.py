"""Turn API calls into charges: the rate that applies, and the passes of other models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from threadline.account.dedupe import ApiCall, resolve_calls
from threadline.account.rates import Rates, Tiers
from threadline.model.charges import Charge, Rate
from threadline.model.sightings import Sighting, UsagePass
from threadline.model.times import parse_timestamp

_ADVISOR, _FALLBACK = "advisor_message", "fallback_message"
_DAY_LENGTH = 10


def compute_charges(seen: Iterable[Sighting], rates: Rates) -> Iterator[Charge]:
    """Every call that the sightings tell of, charged once by the rate of its day.

    Each is charged as it comes, as if there were no other of its key, while the rest is still being read: nine of ten
    are alone. Only keys with several are gone through by the rule when all have been seen.
    """
    alone: dict[str, Charge] = {}
    several: dict[str, list[Sighting]] = {}
    usual: dict[tuple[str | None, str], Tiers] = {}
    for sighting in seen:
        known = alone.get(sighting.key)
        if known is not None:
            several.setdefault(sighting.key, [known.owner]).append(sighting)
            continue
        question = (sighting.model, sighting.time[:_DAY_LENGTH])
        tiers = usual.get(question)
        if tiers is None:
            tiers = usual[question] = rates.tiers(*question)
        threshold, short, long = tiers
        rate = long if sighting.input + sighting.cache_write + sighting.cache_read > threshold else short
        alone[sighting.key] = Charge(sighting, sighting, (sighting,), rate, "", sighting.web_searches)
    settled = resolve_calls(several, (charge.owner for key, charge in alone.items() if key not in several))
    for key, charge in alone.items():
        sighting = charge.owner
        if key in settled:
            for call in settled[key]:
                yield from charge_call(call, rates)
        elif has_special_pricing(sighting):
            yield from charge_call(ApiCall(sighting, sighting, (sighting,)), rates)
        else:
            yield charge


def charge_single(sighting: Sighting, rates: Rates) -> Iterator[Charge]:
    """What a message that has one sighting is charged."""
    if has_special_pricing(sighting):
        yield from charge_call(ApiCall(sighting, sighting, (sighting,)), rates)
        return
    threshold, short, long = rates.tiers(sighting.model, sighting.time[:_DAY_LENGTH])
    rate = long if sighting.input + sighting.cache_write + sighting.cache_read > threshold else short
    yield Charge(sighting, sighting, (sighting,), rate, "", sighting.web_searches)


def has_special_pricing(sighting: Sighting) -> bool:
    """Whether something about it has a price of its own."""
    return bool(
        sighting.speed or sighting.geo or sighting.tier or sighting.passes is not None or sighting.time[-1:] != "Z"
    )


def charge_call(call: ApiCall, rates: Rates) -> Iterator[Charge]:
    """What a call is charged, and what other models did for it."""
    if call.counted.passes is not None:
        yield from _charge_passes(call, rates)
    else:
        yield _make_charge(call, call.counted, rates)


def _rate_for(counted: Sighting, time: str, rates: Rates) -> Rate | None:
    return rates.rate(
        counted.model,
        time[:_DAY_LENGTH] if time[-1:] == "Z" and time[4:5] == "-" and time[10:11] == "T" else _utc_day(time),
        counted.input + counted.cache_write + counted.cache_read,
        speed=counted.speed,
        geo=counted.geo,
        tier=counted.tier,
    )


def _make_charge(call: ApiCall, counted: Sighting, rates: Rates, part: str = "") -> Charge:
    searches = 0 if part else max(sighting.web_searches for sighting in call.sightings)
    return Charge(counted, call.owner, call.sightings, _rate_for(counted, call.owner.time, rates), part, searches)


def _charge_passes(call: ApiCall, rates: Rates) -> Iterator[Charge]:
    """A message that took passes of several models: each is charged by its own model, an advisor's on top."""
    counted = call.counted
    told = counted.passes or []
    own = [one for one in told if one.type != _ADVISOR]
    others = [one for one in own if one.model is not None and one.model != counted.model]
    if others and _sum_passes(own) == _token_counts(counted):
        rest = _without_passes(counted, others)
        yield _make_charge(call, rest, rates)
        for one in others:
            yield _make_charge(call, _pass_as_sighting(counted, one), rates, "fallback")
    else:
        serving = [one.model for one in own if one.type == _FALLBACK and one.model]
        yield _make_charge(call, replace(counted, model=serving[-1]) if serving else counted, rates)
    for one in told:
        if one.type == _ADVISOR:
            yield _make_charge(call, _pass_as_sighting(counted, one), rates, "advisor")


def _token_counts(sighting: Sighting | UsagePass) -> tuple[int, ...]:
    return sighting.input, sighting.output, sighting.cache_write_5m, sighting.cache_write_1h, sighting.cache_read


def _sum_passes(passes: list[UsagePass]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*map(_token_counts, passes), strict=True)))


def _without_passes(counted: Sighting, others: list[UsagePass]) -> Sighting:
    left = [whole - other for whole, other in zip(_token_counts(counted), _sum_passes(others), strict=True)]
    return _with_counts(counted, left)


def _pass_as_sighting(counted: Sighting, usage_pass: UsagePass) -> Sighting:
    made = _with_counts(counted, _token_counts(usage_pass))
    made.model = usage_pass.model or counted.model
    return made


def _with_counts(counted: Sighting, counts: Iterable[int]) -> Sighting:
    uncached, output, five, hour, read = counts
    return replace(
        counted,
        input=uncached,
        output=output,
        cache_write=five + hour,
        cache_write_5m=five,
        cache_write_1h=hour,
        cache_read=read,
    )


def _utc_day(time: str) -> str:
    """The day in UTC, for a rate's period, of a time that is not written as usual."""
    moment = parse_timestamp(time)
    return moment.date().isoformat() if moment is not None else ""
