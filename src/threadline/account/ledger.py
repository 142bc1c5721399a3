"""The ledger: charges, and their sums by whatever they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from threadline.account.calendar import Calendar
from threadline.account.keys import TIMES, WHAT_KEYS_MEAN, Key, key, shares
from threadline.account.rates import Rates
from threadline.errors import BadQuery
from threadline.model.charge import WEB_SEARCH_FEE, Charge
from threadline.model.problem import Problem
from threadline.model.rate import EXACT, Rate
from threadline.model.sum import Row, Rows, Sum, added, summed

_Group = tuple[str, ...]
# What is added up for each group and rate; the fee for searches does not depend on the rate.
_CHARGES, _INPUT, _OUTPUT, _FIVE, _HOUR, _READ, _SEARCHES, _LOWER = range(8)


class Ledger:
    """Charges and their sums. Every charge leads back to the lines that it was counted from.

    Iterating gives the charges. `problems` are transcripts that could not be read; `rates` are the prices applied.
    """

    def __init__(self, charges: Iterable[Charge], rates: Rates, problems: Iterable[Problem] = ()) -> None:
        self.charges = tuple(charges)
        self.rates = rates
        self.problems = tuple(problems)

    def __iter__(self) -> Iterator[Charge]:
        return iter(self.charges)

    def __len__(self) -> int:
        return len(self.charges)

    def __repr__(self) -> str:
        return f"Ledger({len(self.charges):,} charges, {self.total.amount or 0:.2f} USD)"

    @property
    def total(self) -> Sum:
        """All charges as one sum."""
        return self.by().total

    def where(
        self,
        wanted: Callable[[Charge], bool] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        project: str | None = None,
        model: str | None = None,
        session: str | None = None,
    ) -> Ledger:
        """The ledger of some of the charges: of a time, of projects and models whose names hold a text, of a session.

        `since` and `until` both belong to the time. What is left out was still counted against copies: a message that
        another session owns does not come back when that session is left out.
        """
        chosen: Iterable[Charge] = self.charges
        if wanted is not None:
            chosen = filter(wanted, chosen)
        if session is not None:
            chosen = (one for one in chosen if one.session == session)
        if project is not None:
            chosen = (one for one in chosen if project.casefold() in one.project.casefold())
        if model is not None:
            chosen = (one for one in chosen if model.casefold() in (one.model or "").casefold())
        if since is not None or until is not None:
            chosen = (one for one in chosen if _within(one, since, until))
        return Ledger(chosen, self.rates, self.problems)

    def by(self, *names: str, zone: tzinfo = UTC, extra: Mapping[str, Key] | None = None) -> Rows:
        """The charges summed by keys: `ledger.by("project", "model")`. Every charge is in exactly one row.

        Days are days in `zone`. Rows are in the order of time, or of what they cost. By `tool`, a charge is shared
        equally by the calls that its message makes. `extra` are keys of your own: what each gives for a charge.

        Raises:
            BadQuery: there is no such key.
        """
        own = extra or {}
        for name in names:
            if name not in WHAT_KEYS_MEAN and name not in own:
                raise BadQuery(f"There is no key {name!r}; group by {', '.join((*WHAT_KEYS_MEAN, *own))}.")
        if len(set(names)) < len(names):
            raise BadQuery("A key is given twice; give each once.")
        made = _Adding(names, Calendar(zone), own).over(self.charges)
        return Rows(names, tuple(_ordered(made, names)))


def _within(charge: Charge, since: datetime | None, until: datetime | None) -> bool:
    when = charge.timestamp
    return when is not None and (since is None or when >= since) and (until is None or when <= until)


class _Adding:
    """Adds charges up by group and rate, so that each price is multiplied once."""

    def __init__(self, names: _Group, calendar: Calendar, extra: Mapping[str, Key]) -> None:
        self._names = names
        self._keys = [extra.get(name) or key(name, calendar) for name in names if name != "tool"]
        self._tool = names.index("tool") if "tool" in names else None
        self._sums: dict[tuple[_Group, Rate | None], list[int]] = {}

    def over(self, charges: Iterable[Charge]) -> list[Row]:
        if self._tool is not None:
            for charge in charges:
                self._share(charge, self._tool)
        else:
            for charge in charges:
                self._add(tuple([key(charge) for key in self._keys]), charge)
        return self._rows()

    def _add(self, group: _Group, charge: Charge) -> None:
        counted = charge.counted
        sums = self._sums.get((group, charge.rate))
        if sums is None:
            sums = self._sums[group, charge.rate] = [0] * 8
        if not charge.part:
            sums[_CHARGES] += 1
        sums[_INPUT] += counted.input
        sums[_OUTPUT] += counted.output
        sums[_FIVE] += counted.cache_write_5m
        sums[_HOUR] += counted.cache_write_1h
        sums[_READ] += counted.cache_read
        if charge.web_searches:
            sums[_SEARCHES] += charge.web_searches
        if charge.is_lower_bound:
            sums[_LOWER] += 1

    def _share(self, charge: Charge, at: int) -> None:
        """A charge in equal shares; what does not divide goes to the first ones, so that nothing is lost."""
        others = [key(charge) for key in self._keys]
        tools = shares(charge)
        whole = _Adding((), Calendar(), {})
        whole._add((), charge)
        (counts,) = whole._sums.values()
        for number, tool in enumerate(tools):
            group = (*others[:at], tool, *others[at:])
            sums = self._sums.setdefault((group, charge.rate), [0] * 8)
            for what, count in enumerate(counts):
                sums[what] += count // len(tools) + (number < count % len(tools))

    def _rows(self) -> list[Row]:
        groups: dict[_Group, list[tuple[Rate | None, list[int]]]] = {}
        for (group, rate), sums in self._sums.items():
            groups.setdefault(group, []).append((rate, sums))
        return [summed(dict(zip(self._names, group, strict=True)), _sum(some)) for group, some in groups.items()]


def _sum(some: list[tuple[Rate | None, list[int]]]) -> Sum:
    whole = [sum(column) for column in zip(*(sums for _rate, sums in some), strict=True)]
    amounts = [_amount(rate, sums) for rate, sums in some if rate is not None]
    return Sum(
        charges=whole[_CHARGES],
        input=whole[_INPUT],
        output=whole[_OUTPUT],
        cache_write=whole[_FIVE] + whole[_HOUR],
        cache_write_1h=whole[_HOUR],
        cache_read=whole[_READ],
        web_searches=whole[_SEARCHES],
        amount=added(amounts) if amounts else None,
        unpriced=sum(sums[_CHARGES] for rate, sums in some if rate is None),
        lower_bound=whole[_LOWER],
    )


def _amount(rate: Rate, sums: list[int]) -> Decimal:
    tokens = rate.amount(
        input=sums[_INPUT],
        output=sums[_OUTPUT],
        cache_write_5m=sums[_FIVE],
        cache_write_1h=sums[_HOUR],
        cache_read=sums[_READ],
    )
    return EXACT.add(tokens, sums[_SEARCHES] * WEB_SEARCH_FEE)


def _ordered(rows: list[Row], names: _Group) -> list[Row]:
    """Rows in order, key by key: parts of a nested report stay together."""
    if not names:
        return rows
    name, *rest = names
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.keys[name], []).append(row)
    if name in TIMES:
        order = sorted(parts)
    else:
        weights = {value: Sum.of(some) for value, some in parts.items()}
        order = sorted(parts, key=lambda value: (-(weights[value].amount or Decimal(0)), -weights[value].tokens, value))
    return [row for value in order for row in _ordered(parts[value], tuple(rest))]
