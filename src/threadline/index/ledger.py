"""The ledger of an index: the same sums and charges as without it, asked for and not read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import overload

from threadline.account.adding import Group, rows_of
from threadline.account.charges import alone, charged
from threadline.account.keys import Key
from threadline.account.ledger import Ledger, moment, ordered
from threadline.account.rates import Rates, shipped
from threadline.account.rule import parted, settled
from threadline.index.chosen import Chosen
from threadline.index.seen import SeenAgain, ranks
from threadline.index.spread import KeptSpread
from threadline.index.summing import KEYS, Summing, instants
from threadline.model.charge import Charge
from threadline.model.problem import Problem
from threadline.model.sum import Rows

_OWN = """(SELECT DISTINCT message_id FROM charged c JOIN origins o USING(origin_id)
LEFT JOIN transcripts t USING(transcript_id) {0})"""


_ALL = Chosen()


class IndexedLedger(Ledger):
    """A ledger whose charges lie in an index. Sums are made of those that it keeps; charges only when asked for.

    Other `rates` than those of the index make it charge everything anew, by what it knows of messages.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        rates: Rates | None = None,
        problems: Iterable[Problem] = (),
        *,
        chosen: Chosen = _ALL,
    ) -> None:
        super().__init__((), rates or shipped(), problems)
        self._connection = connection
        self._chosen = chosen
        self._types: dict[int, str | None] = {}
        self._charges = _Made(self._count, self._make)
        prices = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
        self._has_prices = prices is not None and prices[0] == self.rates.digest

    def where(
        self,
        wanted: Callable[[Charge], bool] | None = None,
        *,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        project: str | None = None,
        model: str | None = None,
        session: str | None = None,
    ) -> Ledger:
        """The ledger of some of the charges: see `Ledger.where`."""
        if wanted is not None:
            some = self.where(since=since, until=until, project=project, model=model, session=session)
            return Ledger(filter(wanted, some), self.rates, self.problems)
        if all(given is None for given in (since, until, project, model, session)):
            return self
        narrowed = self._chosen.narrowed(moment(since), moment(until, end=True), project, model, session)
        return self._of(narrowed)

    def _of(self, chosen: Chosen) -> IndexedLedger:
        made = IndexedLedger(self._connection, self.rates, self.problems, chosen=chosen)
        made._types = self._types
        return made

    def _rows(self, names: Group, zone: tzinfo, extra: Mapping[str, Key]) -> Rows:
        if extra or not self._has_prices or not KEYS.issuperset(names):
            return super()._rows(names, zone, extra)
        sums = Summing(self._connection, self._chosen, self._types).by(names, zone)
        return Rows(names, tuple(ordered(rows_of(sums, names), names)))

    def _count(self) -> int:
        sums = Summing(self._connection, self._chosen, self._types).by((), UTC)
        return sum(counts[0] + counts[-1] for counts in sums.values())

    def _make(self) -> Iterator[Charge]:
        conditions = self._chosen.conditions(self._connection)
        if self._chosen.is_timed:
            first, last = instants(self._chosen)
            conditions.append(f"(c.time BETWEEN {first} AND {last} OR c.time >= '')")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return filter(self._chosen.has, self._made_of(_OWN.format(where)))

    def _made_of(self, messages: str, given: Iterable[object] = ()) -> Iterator[Charge]:
        """The charges of messages that a query names, with every line that tells of them."""
        seen = SeenAgain(self._connection, ranks(self._connection))
        spread = KeptSpread(self._connection, seen.numbers)
        for _number, key, group in seen.groups(messages, given):
            if len(group) == 1:
                yield from alone(group[0], self.rates)
            else:
                for part in parted(key, group):
                    yield from charged(settled(part, spread), self.rates)


class _Made(Sequence[Charge]):
    """Charges that are made when somebody wants to see them, and counted without."""

    def __init__(self, count: Callable[[], int], make: Callable[[], Iterator[Charge]]) -> None:
        self._count = count
        self._make = make
        self._made: tuple[Charge, ...] | None = None

    def __len__(self) -> int:
        return self._count() if self._made is None else len(self._made)

    @overload
    def __getitem__(self, at: int) -> Charge: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Charge]: ...
    def __getitem__(self, at: int | slice) -> Charge | Sequence[Charge]:
        return self._all()[at]

    def __iter__(self) -> Iterator[Charge]:
        return iter(self._all())

    def _all(self) -> tuple[Charge, ...]:
        if self._made is None:
            self._made = tuple(self._make())
        return self._made
