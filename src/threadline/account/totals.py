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
"""What is added up for each group, in this order. `parts` counts passes of other models, which `charges` does not."""
_CHARGES, _INPUT, _OUTPUT, _CACHE_WRITE_5M, _CACHE_WRITE_1H, _CACHE_READ, _SEARCHES, _PARTIAL, _PARTS = range(9)
_TOKEN_GETTERS = tuple(map(attrgetter, ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")))
_counted, _part, _sightings = attrgetter("counted"), attrgetter("part"), attrgetter("sightings")
_searches, _partial = attrgetter("web_searches"), attrgetter("partial")


def sum_charges(charges: Iterable[Charge], names: GroupKey, calendar: Calendar, extra: Mapping[str, Key]) -> list[Row]:
    """Return one row for each group of charges that agree in all keys. `tool` shares a charge among its calls."""
    keys = [extra.get(name) or key_function(name, calendar) for name in names if name != "tool"]
    if "tool" in names:
        sums = _sum_by_tool(charges, keys, names.index("tool"))
    elif len(names) == 1 and names[0] in TIME_KEYS:
        sums = _sum_by_time(charges, keys[0], calendar)
    else:
        sums = {rated: _sum_counts(group) for rated, group in _group_charges(charges, keys).items()}
    return rows_from_counts(sums, names)


def rows_from_counts(sums: Mapping[RatedGroup, Sequence[int]], names: GroupKey) -> list[Row]:
    """Return rows for counts that were added up by group and rate. See `COUNTS` for their order."""
    groups: dict[GroupKey, list[tuple[Rate | None, Sequence[int]]]] = {}
    for (group, rate), counts in sums.items():
        groups.setdefault(group, []).append((rate, counts))
    return [_make_row(dict(zip(names, group, strict=True)), priced) for group, priced in groups.items()]


def _group_charges(charges: Iterable[Charge], keys: list[Key]) -> dict[RatedGroup, list[Charge]]:
    groups: defaultdict[RatedGroup, list[Charge]] = defaultdict(list)
    for charge in charges:
        groups[tuple([key(charge) for key in keys]), charge.rate].append(charge)
    return groups


def _sum_by_time(charges: Iterable[Charge], key: Key, calendar: Calendar) -> dict[RatedGroup, list[int]]:
    """Sum by one key that is a time, as nearly every report does: the key is computed once an hour."""
    hours: defaultdict[tuple[str, Rate | None], list[Charge]] = defaultdict(list)
    for charge in charges:
        hours[charge.owner.time[:HOUR_LENGTH], charge.rate].append(charge)
    groups: defaultdict[RatedGroup, list[Charge]] = defaultdict(list)
    for (hour, rate), same_hour in hours.items():
        if calendar.is_whole(hour):
            groups[(key(same_hour[0]),), rate] += same_hour
        else:
            for charge in same_hour:
                groups[(key(charge),), rate].append(charge)
    return {rated: _sum_counts(group) for rated, group in groups.items()}


def _sum_counts(charges: list[Charge]) -> list[int]:
    """Add up the counts of charges, without an interpreter step for each."""
    counted = list(map(_counted, charges))
    parts = sum(map(bool, map(_part, charges)))
    # For passes, and for messages with several sightings, the counted sighting alone does not decide.
    is_plain = not parts and sum(map(len, map(_sightings, charges))) == len(charges)
    return [
        len(charges) - parts,
        *(sum(map(getter, counted)) for getter in _TOKEN_GETTERS),
        sum(map(_searches, charges)),
        sum(map(_partial, counted)) if is_plain else sum(charge.is_lower_bound for charge in charges),
        parts,
    ]


def _sum_by_tool(charges: Iterable[Charge], keys: list[Key], position: int) -> dict[RatedGroup, list[int]]:
    """Share charges equally among tools. A remainder goes to the first ones, so that nothing is lost."""
    sums: dict[RatedGroup, list[int]] = {}
    for charge in charges:
        others = [key(charge) for key in keys]
        tools = tool_shares(charge)
        counts = _sum_counts([charge])
        if len(set(tools)) == 1:
            tools = tools[:1]
        for number, tool in enumerate(tools):
            group = (*others[:position], tool, *others[position:])
            totals = sums.setdefault((group, charge.rate), [0] * 9)
            for column, count in enumerate(counts):
                totals[column] += count // len(tools) + (number < count % len(tools))
    return sums


def _make_row(keys: dict[str, str], priced: list[tuple[Rate | None, Sequence[int]]]) -> Row:
    totals = (
        priced[0][1]
        if len(priced) == 1
        else [sum(column) for column in zip(*[counts for _, counts in priced], strict=True)]
    )
    amounts = [_amount(rate, counts) for rate, counts in priced if rate is not None]
    return Row(
        charges=totals[_CHARGES],
        input=totals[_INPUT],
        output=totals[_OUTPUT],
        cache_write=totals[_CACHE_WRITE_5M] + totals[_CACHE_WRITE_1H],
        cache_write_1h=totals[_CACHE_WRITE_1H],
        cache_read=totals[_CACHE_READ],
        web_searches=totals[_SEARCHES],
        amount=sum_amounts(amounts) if amounts else None,
        unpriced=sum([counts[_CHARGES] + counts[_PARTS] for rate, counts in priced if rate is None]),
        lower_bound=totals[_PARTIAL],
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
