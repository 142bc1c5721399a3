"""Turn API calls into charges: the rate that applies, and the passes of other models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from threadline.account.dedupe import ApiCall, CopyEvidence, resolve_calls, resolve_owner
from threadline.account.ledger import Ledger
from threadline.account.rates import Rates, Tiers
from threadline.model.ledger import Charge, MissingAgent, Rate
from threadline.model.places import Problem
from threadline.model.times import parse_timestamp
from threadline.model.usage import Sighting, UsagePass

_ADVISOR, _FALLBACK = "advisor_message", "fallback_message"
_DAY_LENGTH = 10


def ledger_from_sightings(
    sightings: Iterable[Sighting],
    rates: Rates,
    problems: Iterable[Problem] = (),
    *,
    missing: Iterable[MissingAgent] = (),
    calls: bool = True,
) -> Ledger:
    """Return the ledger of sightings that were read from transcripts. `Index.ledger` returns that of an index.

    `problems` and `missing` may be filled while the sightings are consumed.
    """
    return Ledger(compute_charges(sightings, rates), rates, problems, missing=missing, calls=calls)


def compute_charges(sightings: Iterable[Sighting], rates: Rates) -> Iterator[Charge]:
    """Charge every API call once, by the rate of its day.

    Each sighting is charged as it comes, as if there were no other with its key: nine of ten are the only one. Only
    keys with several sightings are held until all have been read, and then deduplicated.
    """
    first_charges: dict[str, Charge] = {}
    shared: dict[str, list[Sighting]] = {}
    tiers_by_day: dict[tuple[str | None, str], Tiers] = {}
    for sighting in sightings:
        first = first_charges.get(sighting.key)
        if first is not None:
            shared.setdefault(sighting.key, [first.owner]).append(sighting)
            continue
        model_and_day = (sighting.model, sighting.time[:_DAY_LENGTH])
        tiers = tiers_by_day.get(model_and_day)
        if tiers is None:
            tiers = tiers_by_day[model_and_day] = rates.tiers(*model_and_day)
        threshold, short, long = tiers
        rate = long if sighting.input + sighting.cache_write + sighting.cache_read > threshold else short
        first_charges[sighting.key] = Charge(sighting, sighting, (sighting,), rate, "", sighting.web_searches)
    calls = resolve_calls(shared, (charge.owner for key, charge in first_charges.items() if key not in shared))
    for key, charge in first_charges.items():
        sighting = charge.owner
        if key in calls:
            for call in calls[key]:
                yield from charge_call(call, rates)
        elif has_special_pricing(sighting):
            yield from charge_call(ApiCall(sighting, sighting, (sighting,)), rates)
        else:
            yield charge


def charge_single(sighting: Sighting, rates: Rates) -> Iterator[Charge]:
    """Charge a message that has only one sighting."""
    if has_special_pricing(sighting):
        yield from charge_call(ApiCall(sighting, sighting, (sighting,)), rates)
        return
    threshold, short, long = rates.tiers(sighting.model, sighting.time[:_DAY_LENGTH])
    rate = long if sighting.prompt_tokens > threshold else short
    yield Charge(sighting, sighting, (sighting,), rate, "", sighting.web_searches)


def charge_groups(groups: Iterable[list[Sighting]], evidence: CopyEvidence, rates: Rates) -> Iterator[Charge]:
    """Charge API calls with several sightings. Each group is one call, as `group_by_call` returns them."""
    for sightings in groups:
        yield from charge_call(resolve_owner(sightings, evidence), rates)


def has_special_pricing(sighting: Sighting) -> bool:
    """Whether something about a message has a price of its own."""
    return bool(
        sighting.speed or sighting.geo or sighting.tier or sighting.passes is not None or sighting.time[-1:] != "Z"
    )


def charge_call(call: ApiCall, rates: Rates) -> Iterator[Charge]:
    """Charge a call, and what other models did for it."""
    if call.counted.passes is not None:
        yield from _charge_passes(call, rates)
    else:
        yield _make_charge(call, call.counted, rates)


def _rate_for(counted: Sighting, time: str, rates: Rates) -> Rate | None:
    return rates.rate(
        counted.model,
        time[:_DAY_LENGTH] if time[-1:] == "Z" and time[4:5] == "-" and time[10:11] == "T" else _utc_day(time),
        counted.prompt_tokens,
        speed=counted.speed,
        geo=counted.geo,
        tier=counted.tier,
    )


def _make_charge(call: ApiCall, counted: Sighting, rates: Rates, part: str = "") -> Charge:
    searches = 0 if part else max(sighting.web_searches for sighting in call.sightings)
    return Charge(counted, call.owner, call.sightings, _rate_for(counted, call.owner.time, rates), part, searches)


def _charge_passes(call: ApiCall, rates: Rates) -> Iterator[Charge]:
    """Charge each pass of a message by its own model. An advisor's pass comes on top of the message's counts."""
    counted = call.counted
    passes = counted.passes or []
    included = [usage_pass for usage_pass in passes if usage_pass.type != _ADVISOR]
    others = [
        usage_pass for usage_pass in included if usage_pass.model is not None and usage_pass.model != counted.model
    ]
    if others and _sum_passes(included) == _token_counts(counted):
        rest = _without_passes(counted, others)
        yield _make_charge(call, rest, rates)
        for usage_pass in others:
            yield _make_charge(call, _pass_as_sighting(counted, usage_pass), rates, "fallback")
    else:
        serving = [usage_pass.model for usage_pass in included if usage_pass.type == _FALLBACK and usage_pass.model]
        yield _make_charge(call, replace(counted, model=serving[-1]) if serving else counted, rates)
    for usage_pass in passes:
        if usage_pass.type == _ADVISOR:
            yield _make_charge(call, _pass_as_sighting(counted, usage_pass), rates, "advisor")


def _token_counts(sighting: Sighting | UsagePass) -> tuple[int, ...]:
    return sighting.input, sighting.output, sighting.cache_write_5m, sighting.cache_write_1h, sighting.cache_read


def _sum_passes(passes: list[UsagePass]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*map(_token_counts, passes), strict=True)))


def _without_passes(counted: Sighting, others: list[UsagePass]) -> Sighting:
    counts = [total - other for total, other in zip(_token_counts(counted), _sum_passes(others), strict=True)]
    return _with_counts(counted, counts)


def _pass_as_sighting(counted: Sighting, usage_pass: UsagePass) -> Sighting:
    sighting = _with_counts(counted, _token_counts(usage_pass))
    sighting.model = usage_pass.model or counted.model
    return sighting


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
    """Return the day in UTC of a time that is not written the usual way; rates have periods of days."""
    moment = parse_timestamp(time)
    return moment.date().isoformat() if moment is not None else ""
