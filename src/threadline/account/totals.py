"""Sum charges by any combination of keys.

Counts are added up per group and rate, so each price is multiplied only once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter

from threadline.account.keys import HOUR_LENGTH, TIME_KEYS, Calendar, Key, key_function, tool_shares
from threadline.model.charges import EXACT, Charge, Rate
from threadline.model.totals import Row, sum_amounts

GroupKey = tuple[str, ...]
RatedGroup = tuple[GroupKey, Rate | None]
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
_CHARGES, _INPUT, _OUTPUT, _CACHE_WRITE_5M, _CACHE_WRITE_1H, _CACHE_READ, _SEARCHES, _PARTIAL, _PARTS = range(9)
_TOKEN_GETTERS = tuple(map(attrgetter, ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")))
_counted, _part, _sightings = attrgetter("counted"), attrgetter("part"), attrgetter("sightings")
_searches, _partial = attrgetter("web_searches"), attrgetter("partial")


def sum_charges(charges: Iterable[Charge], names: GroupKey, calendar: Calendar, extra: Mapping[str, Key]) -> list[Row]:
    """One row for each group of charges that agree in all keys; `tool` shares a charge among its calls."""
    keys = [extra.get(name) or key_function(name, calendar) for name in names if name != "tool"]
    if "tool" in names:
        sums = _sum_by_tool(charges, keys, names.index("tool"))
    elif len(names) == 1 and names[0] in TIME_KEYS:
        sums = _sum_by_time(charges, keys[0], calendar)
    else:
        sums = {priced: _sum_counts(some) for priced, some in _group_charges(charges, keys).items()}
    return rows_from_counts(sums, names)


def rows_from_counts(sums: Mapping[RatedGroup, Sequence[int]], names: GroupKey) -> list[Row]:
    """Rows of counts that were added up by group and rate: see `COUNTS` for what the counts are."""
    groups: dict[GroupKey, list[tuple[Rate | None, Sequence[int]]]] = {}
    for (group, rate), counts in sums.items():
        groups.setdefault(group, []).append((rate, counts))
    return [_make_row(dict(zip(names, group, strict=True)), some) for group, some in groups.items()]


def _group_charges(charges: Iterable[Charge], keys: list[Key]) -> dict[RatedGroup, list[Charge]]:
    groups: defaultdict[RatedGroup, list[Charge]] = defaultdict(list)
    for charge in charges:
        groups[tuple([key(charge) for key in keys]), charge.rate].append(charge)
    return groups


def _sum_by_time(charges: Iterable[Charge], key: Key, calendar: Calendar) -> dict[RatedGroup, list[int]]:
    """The same by one key that is a time, which nearly every report is by: it is asked for once an hour."""
    hours: defaultdict[tuple[str, Rate | None], list[Charge]] = defaultdict(list)
    for charge in charges:
        hours[charge.owner.time[:HOUR_LENGTH], charge.rate].append(charge)
    groups: defaultdict[RatedGroup, list[Charge]] = defaultdict(list)
    for (hour, rate), some in hours.items():
        if calendar.is_whole(hour):
            groups[(key(some[0]),), rate] += some
        else:
            for charge in some:
                groups[(key(charge),), rate].append(charge)
    return {priced: _sum_counts(some) for priced, some in groups.items()}


def _sum_counts(charges: list[Charge]) -> list[int]:
    """The counts of some charges, each added up without a step of the interpreter's own for each."""
    counted = list(map(_counted, charges))
    parts = sum(map(bool, map(_part, charges)))
    # Of passes, and where several sightings tell of a message, what was counted does not say it alone.
    is_plain = not parts and sum(map(len, map(_sightings, charges))) == len(charges)
    return [
        len(charges) - parts,
        *(sum(map(of, counted)) for of in _TOKEN_GETTERS),
        sum(map(_searches, charges)),
        sum(map(_partial, counted)) if is_plain else sum(charge.is_lower_bound for charge in charges),
        parts,
    ]


def _sum_by_tool(charges: Iterable[Charge], keys: list[Key], at: int) -> dict[RatedGroup, list[int]]:
    """Charges in equal shares; what does not divide goes to the first ones, so that nothing is lost."""
    sums: dict[RatedGroup, list[int]] = {}
    for charge in charges:
        others = [key(charge) for key in keys]
        tools = tool_shares(charge)
        counts = _sum_counts([charge])
        if len(set(tools)) == 1:
            tools = tools[:1]
        for number, tool in enumerate(tools):
            group = (*others[:at], tool, *others[at:])
            held = sums.setdefault((group, charge.rate), [0] * 9)
            for what, count in enumerate(counts):
                held[what] += count // len(tools) + (number < count % len(tools))
    return sums


def _make_row(keys: dict[str, str], some: list[tuple[Rate | None, Sequence[int]]]) -> Row:
    whole = (
        some[0][1] if len(some) == 1 else [sum(column) for column in zip(*[counts for _, counts in some], strict=True)]
    )
    amounts = [_amount(rate, counts) for rate, counts in some if rate is not None]
    return Row(
        charges=whole[_CHARGES],
        input=whole[_INPUT],
        output=whole[_OUTPUT],
        cache_write=whole[_CACHE_WRITE_5M] + whole[_CACHE_WRITE_1H],
        cache_write_1h=whole[_CACHE_WRITE_1H],
        cache_read=whole[_CACHE_READ],
        web_searches=whole[_SEARCHES],
        amount=sum_amounts(amounts) if amounts else None,
        unpriced=sum([counts[_CHARGES] + counts[_PARTS] for rate, counts in some if rate is None]),
        lower_bound=whole[_PARTIAL],
        keys=keys,
    )


def _amount(rate: Rate, counts: Sequence[int]) -> Decimal:
    tokens = rate.amount(
        input=counts[_INPUT],
        output=counts[_OUTPUT],
        cache_write_5m=counts[_CACHE_WRITE_5M],
        cache_write_1h=counts[_CACHE_WRITE_1H],
        cache_read=counts[_CACHE_READ],
    )
    return EXACT.add(tokens, EXACT.multiply(rate.web_search, counts[_SEARCHES]))
