"""Calls to charges: the rate of each, and what other models did for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from threadline.account.rates import Rates, Tiers
from threadline.account.rule import Call, calls
from threadline.model.charge import Charge
from threadline.model.rate import Rate
from threadline.model.sighting import Pass, Sighting
from threadline.model.time import parse_timestamp

_ADVISOR, _FALLBACK = "advisor_message", "fallback_message"
_UTC_DAY = 10


def charges(seen: Iterable[Sighting], rates: Rates) -> Iterator[Charge]:
    """Every call that the sightings tell of, charged once by the rate of its day.

    Each is charged as it comes, as if there were no other of its key, while the rest is still being read: nine of ten
    are alone. Only keys with several are gone through by the rule when all have been seen.
    """
    alone: dict[str, Charge] = {}
    several: dict[str, list[Sighting]] = {}
    usual: dict[tuple[str | None, str], Tiers] = {}
    for one in seen:
        known = alone.get(one.key)
        if known is not None:
            several.setdefault(one.key, [known.owner]).append(one)
            continue
        question = (one.model, one.time[:_UTC_DAY])
        tiers = usual.get(question)
        if tiers is None:
            tiers = usual[question] = rates.tiers(*question)
        threshold, short, long = tiers
        rate = long if one.input + one.cache_write + one.cache_read > threshold else short
        alone[one.key] = Charge(one, one, (one,), rate, "", one.web_searches)
    settled = calls(several, (charge.owner for key, charge in alone.items() if key not in several))
    for key, charge in alone.items():
        one = charge.owner
        if key in settled:
            for call in settled[key]:
                yield from charged(call, rates)
        elif is_special(one):
            yield from charged(Call(one, one, (one,)), rates)
        else:
            yield charge


def alone(one: Sighting, rates: Rates) -> Iterator[Charge]:
    """What a message that has one sighting is charged."""
    if is_special(one):
        yield from charged(Call(one, one, (one,)), rates)
        return
    threshold, short, long = rates.tiers(one.model, one.time[:_UTC_DAY])
    rate = long if one.input + one.cache_write + one.cache_read > threshold else short
    yield Charge(one, one, (one,), rate, "", one.web_searches)


def is_special(one: Sighting) -> bool:
    """Whether something about it has a price of its own."""
    return bool(one.speed or one.geo or one.tier or one.passes is not None or one.time[-1:] != "Z")


def charged(call: Call, rates: Rates) -> Iterator[Charge]:
    """What a call is charged, and what other models did for it."""
    if call.counted.passes is not None:
        yield from _by_passes(call, rates)
    else:
        yield _charge(call, call.counted, rates)


def _rate(counted: Sighting, time: str, rates: Rates) -> Rate | None:
    return rates.rate(
        counted.model,
        time[:_UTC_DAY] if time[-1:] == "Z" and time[4:5] == "-" and time[10:11] == "T" else _day(time),
        counted.input + counted.cache_write + counted.cache_read,
        speed=counted.speed,
        geo=counted.geo,
        tier=counted.tier,
    )


def _charge(call: Call, counted: Sighting, rates: Rates, part: str = "") -> Charge:
    searches = 0 if part else max(one.web_searches for one in call.sightings)
    return Charge(counted, call.owner, call.sightings, _rate(counted, call.owner.time, rates), part, searches)


def _by_passes(call: Call, rates: Rates) -> Iterator[Charge]:
    """A message that took passes of several models: each is charged by its own model, an advisor's on top."""
    counted = call.counted
    told = counted.passes or []
    own = [one for one in told if one.type != _ADVISOR]
    others = [one for one in own if one.model is not None and one.model != counted.model]
    if others and _sum(own) == _counts(counted):
        rest = _less(counted, others)
        yield _charge(call, rest, rates)
        for one in others:
            yield _charge(call, _as_sighting(counted, one), rates, "fallback")
    else:
        serving = [one.model for one in own if one.type == _FALLBACK and one.model]
        yield _charge(call, replace(counted, model=serving[-1]) if serving else counted, rates)
    for one in told:
        if one.type == _ADVISOR:
            yield _charge(call, _as_sighting(counted, one), rates, "advisor")


def _counts(one: Sighting | Pass) -> tuple[int, ...]:
    return one.input, one.output, one.cache_write_5m, one.cache_write_1h, one.cache_read


def _sum(passes: list[Pass]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*map(_counts, passes), strict=True)))


def _less(counted: Sighting, others: list[Pass]) -> Sighting:
    left = [whole - other for whole, other in zip(_counts(counted), _sum(others), strict=True)]
    return _with_counts(counted, left)


def _as_sighting(counted: Sighting, one: Pass) -> Sighting:
    made = _with_counts(counted, _counts(one))
    made.model = one.model or counted.model
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


def _day(time: str) -> str:
    """The day in UTC, for a rate's period, of a time that is not written as usual."""
    moment = parse_timestamp(time)
    return moment.date().isoformat() if moment is not None else ""
