"""Adding up: charges to rows, by group and rate, so that each price is multiplied once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter

from threadline.account.calendar import HOUR, Calendar
from threadline.account.keys import TIMES, Key, key, shares
from threadline.model.charge import Charge
from threadline.model.rate import EXACT, Rate
from threadline.model.sum import Row, added

Group = tuple[str, ...]
Priced = tuple[Group, Rate | None]
COUNTS = (
    "charges",
    "input",
    "output",
    "cache_write_5m",
    "cache_write_1h",
    "cache_read",
    "web_searches",
    "lower_bound",
    "parts",
)
"""What is added up of charges, in this order; `parts` are those that are a pass of another model, and no `charges`."""
_CHARGES, _INPUT, _OUTPUT, _FIVE, _HOUR, _READ, _SEARCHES, _PARTIAL, _PARTS = range(9)
_OF_COUNTED = tuple(map(attrgetter, ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")))
_counted, _part, _sightings = attrgetter("counted"), attrgetter("part"), attrgetter("sightings")
_searches, _partial = attrgetter("web_searches"), attrgetter("partial")


def add_up(charges: Iterable[Charge], names: Group, calendar: Calendar, extra: Mapping[str, Key]) -> list[Row]:
    """One row for each group of charges that agree in all keys; `tool` shares a charge among its calls."""
    keys = [extra.get(name) or key(name, calendar) for name in names if name != "tool"]
    if "tool" in names:
        sums = _shared(charges, keys, names.index("tool"))
    elif len(names) == 1 and names[0] in TIMES:
        sums = _by_time(charges, keys[0], calendar)
    else:
        sums = {priced: _counts(some) for priced, some in _grouped(charges, keys).items()}
    return rows_of(sums, names)


def rows_of(sums: Mapping[Priced, Sequence[int]], names: Group) -> list[Row]:
    """Rows of counts that were added up by group and rate: see `COUNTS` for what the counts are."""
    groups: dict[Group, list[tuple[Rate | None, Sequence[int]]]] = {}
    for (group, rate), counts in sums.items():
        groups.setdefault(group, []).append((rate, counts))
    return [_row(dict(zip(names, group, strict=True)), some) for group, some in groups.items()]


def _grouped(charges: Iterable[Charge], keys: list[Key]) -> dict[Priced, list[Charge]]:
    groups: defaultdict[Priced, list[Charge]] = defaultdict(list)
    for charge in charges:
        groups[tuple([key(charge) for key in keys]), charge.rate].append(charge)
    return groups


def _by_time(charges: Iterable[Charge], key: Key, calendar: Calendar) -> dict[Priced, list[int]]:
    """The same by one key that is a time, which nearly every report is by: it is asked for once an hour."""
    hours: defaultdict[tuple[str, Rate | None], list[Charge]] = defaultdict(list)
    for charge in charges:
        hours[charge.owner.time[:HOUR], charge.rate].append(charge)
    groups: defaultdict[Priced, list[Charge]] = defaultdict(list)
    for (hour, rate), some in hours.items():
        if calendar.is_whole(hour):
            groups[(key(some[0]),), rate] += some
        else:
            for charge in some:
                groups[(key(charge),), rate].append(charge)
    return {priced: _counts(some) for priced, some in groups.items()}


def _counts(charges: list[Charge]) -> list[int]:
    """The counts of some charges, each added up without a step of the interpreter's own for each."""
    counted = list(map(_counted, charges))
    parts = sum(map(bool, map(_part, charges)))
    # Of passes, and where several sightings tell of a message, what was counted does not say it alone.
    is_plain = not parts and sum(map(len, map(_sightings, charges))) == len(charges)
    return [
        len(charges) - parts,
        *(sum(map(of, counted)) for of in _OF_COUNTED),
        sum(map(_searches, charges)),
        sum(map(_partial, counted)) if is_plain else sum(one.is_lower_bound for one in charges),
        parts,
    ]


def _shared(charges: Iterable[Charge], keys: list[Key], at: int) -> dict[Priced, list[int]]:
    """Charges in equal shares; what does not divide goes to the first ones, so that nothing is lost."""
    sums: dict[Priced, list[int]] = {}
    for charge in charges:
        others = [key(charge) for key in keys]
        tools = shares(charge)
        counts = _counts([charge])
        if len(set(tools)) == 1:
            tools = tools[:1]
        for number, tool in enumerate(tools):
            group = (*others[:at], tool, *others[at:])
            held = sums.setdefault((group, charge.rate), [0] * 9)
            for what, count in enumerate(counts):
                held[what] += count // len(tools) + (number < count % len(tools))
    return sums


def _row(keys: dict[str, str], some: list[tuple[Rate | None, Sequence[int]]]) -> Row:
    whole = (
        some[0][1] if len(some) == 1 else [sum(column) for column in zip(*[counts for _, counts in some], strict=True)]
    )
    amounts = [_amount(rate, counts) for rate, counts in some if rate is not None]
    return Row(
        charges=whole[_CHARGES],
        input=whole[_INPUT],
        output=whole[_OUTPUT],
        cache_write=whole[_FIVE] + whole[_HOUR],
        cache_write_1h=whole[_HOUR],
        cache_read=whole[_READ],
        web_searches=whole[_SEARCHES],
        amount=added(amounts) if amounts else None,
        unpriced=sum([counts[_CHARGES] + counts[_PARTS] for rate, counts in some if rate is None]),
        lower_bound=whole[_PARTIAL],
        keys=keys,
    )


def _amount(rate: Rate, counts: Sequence[int]) -> Decimal:
    tokens = rate.amount(
        input=counts[_INPUT],
        output=counts[_OUTPUT],
        cache_write_5m=counts[_FIVE],
        cache_write_1h=counts[_HOUR],
        cache_read=counts[_READ],
    )
    return EXACT.add(tokens, EXACT.multiply(rate.web_search, counts[_SEARCHES]))
