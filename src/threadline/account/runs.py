"""The runs of a session: what was charged between one total that Claude Code wrote down and the next."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from threadline.account.model_id import normalise
from threadline.account.rates import Rates
from threadline.model.charge import Charge
from threadline.model.rate import EXACT
from threadline.model.reported import CostState, Tokens
from threadline.model.sum import added

Name = Callable[[str], str]
"""The one name of a model that has many."""


class Run(Struct, frozen=True):
    """One run of the program, as far as totals tell: from the one `before` to `state`, which it closed with.

    `state` is None for what came after the last total. `charges` are in the order of time.
    """

    state: CostState | None
    before: CostState | None
    charges: tuple[Charge, ...]

    @property
    def computed(self) -> Decimal:
        """What its charges cost."""
        return amount_of(self.charges)

    @property
    def span(self) -> tuple[int, float]:
        """Where in the transcript it stands, in bytes."""
        start = self.before.place.offset if self.before is not None else 0
        return start, self.state.place.offset if self.state is not None else float("inf")


def runs(states: Sequence[CostState], charges: Iterable[Charge]) -> list[Run]:
    """A session's charges parted by its totals, which stand in one transcript, in file order.

    The main agent's stand before or after a total. An agent's stand in another file, and belong to the last run whose
    first message is not later.
    """
    transcript = states[-1].place.transcript
    ends = [state.place.offset for state in states]
    parted: list[list[Charge]] = [[] for _ in range(len(states) + 1)]
    elsewhere: list[Charge] = []
    for charge in charges:
        offset = offset_in(charge, transcript)
        if offset is None:
            elsewhere.append(charge)
        else:
            parted[bisect_left(ends, offset)].append(charge)
    begun = [(min(one.owner.time for one in some), at) for at, some in enumerate(parted) if some]
    times = [time for time, _ in begun]
    for charge in elsewhere:
        after = bisect_right(times, charge.owner.time) - 1
        parted[begun[after][1] if after >= 0 else 0].append(charge)
    made = []
    for at, some in enumerate(parted):
        ordered = tuple(sorted(some, key=lambda one: one.owner.time))
        state = states[at] if at < len(states) else None
        made.append(Run(state, states[at - 1] if at else None, ordered))
    return made


def offset_in(charge: Charge, transcript: str) -> int | None:
    """Where a transcript first tells of a charge; None where it does not."""
    found = [one.offsets[0] for one in charge.sightings if one.origin.transcript == transcript]
    return min(found, default=None)


def amount_of(charges: Iterable[Charge]) -> Decimal:
    """What charges cost; those without a price are left out."""
    return added(one.amount for one in charges if one.amount is not None)


def tokens_of(charges: Iterable[Charge], name: Name) -> dict[str, Tokens]:
    """The tokens of charges by model."""
    sums: dict[str, Tokens] = {}
    for one in charges:
        model = name(one.model or "")
        counts = Tokens(model, one.input, one.output, one.cache_write, one.cache_read, one.web_searches)
        sums[model] = plus(sums.get(model), counts)
    return sums


def tokens_said(state: CostState | None, name: Name) -> dict[str, Tokens]:
    """The tokens of a total by model: several names of one model are added up."""
    sums: dict[str, Tokens] = {}
    for one in state.tokens if state is not None else ():
        model = name(one.model)
        sums[model] = plus(sums.get(model), Tokens(model, *one.counts))
    return sums


def more(said: dict[str, Tokens], known: dict[str, Tokens]) -> tuple[Tokens, ...]:
    """How many more tokens were said than are known, by model; only models that differ."""
    names = dict.fromkeys([*said, *known])
    differences = (said.get(model, Tokens(model)).less(known.get(model)) for model in names)
    return tuple(one for one in differences if any(one.counts))


def plus(one: Tokens | None, other: Tokens) -> Tokens:
    """Tokens of one model added up."""
    if one is None:
        return other
    return Tokens(one.model, *(mine + its for mine, its in zip(one.counts, other.counts, strict=True)))


def hours_as_minutes(charges: Iterable[Charge]) -> Decimal:
    """What charges would cost if an hour in the cache were priced as five minutes are, as old versions did."""
    total = Decimal(0)
    for one in charges:
        if one.amount is not None and one.rate is not None:
            dearer = EXACT.subtract(one.rate.cache_write_1h, one.rate.cache_write_5m)
            extra = EXACT.multiply(dearer, one.cache_write_1h)
            total = EXACT.add(total, EXACT.subtract(one.amount, EXACT.scaleb(extra, -6)))
    return total


def long_as_short(charges: Iterable[Charge], rates: Rates) -> Decimal:
    """What charges would cost if a long prompt cost no more than a short one."""
    total = Decimal(0)
    for one in charges:
        counted, rate = one.counted, one.rate
        if rate is not None and rate.long_context is not None:
            mode = {"speed": counted.speed, "geo": counted.geo, "tier": counted.tier}
            rate = rates.rate(counted.model, one.owner.time[:10], 0, **mode)
        total = EXACT.add(total, replace(one, rate=rate).amount or Decimal(0))
    return total


def naming(rates: Rates) -> Name:
    """The one name of each model, by the rates that know it."""
    return lambda model: rates.model(model) or normalise(model)
