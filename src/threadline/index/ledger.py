"""The ledger of an index: the same sums and charges as without it, asked for and not read."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, overload

from threadline.account.adding import Group, rows_of
from threadline.account.calendar import Calendar
from threadline.account.keys import Key
from threadline.account.ledger import Ledger, holds, moment, ordered
from threadline.account.shipped_prices import shipped_digest
from threadline.account.windows import HOURS
from threadline.index.chosen import Chosen
from threadline.index.stamp import stamp
from threadline.index.summing import KEYS, Summing, instants
from threadline.index.texts import as_path, as_text, stored
from threadline.model.charge import Charge
from threadline.model.problem import Problem
from threadline.model.sum import Rows
from threadline.model.time import parse_timestamp
from threadline.model.window import UsageWindow

if TYPE_CHECKING:
    from threadline.account.rates import Rates

_OWN = """(SELECT DISTINCT message_id FROM charged c JOIN origins o USING(origin_id)
LEFT JOIN transcripts t USING(transcript_id) {0})"""


_HELD = """(SELECT DISTINCT s.message_id FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
WHERE o.session = ? OR o.transcript_id IN (SELECT transcript_id FROM transcripts WHERE path IN ({0})))"""
_UNTYPED = """SELECT DISTINCT o.transcript_id, t.path, h.path FROM spent s JOIN origins o USING(origin_id)
JOIN transcripts t USING(transcript_id) JOIN homes h USING(home_id) WHERE {0}"""
_A_DAY = 24 * 60 * 60 * 1000
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
        self.calls = True
        self.problems = tuple(problems)
        self._made = {}
        self._given = rates
        self._connection = connection
        self._chosen = chosen
        self._types: dict[int, str | None] = {}
        self._charges = _Made(self._count, self._make)
        prices = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
        self._has_prices = prices == (rates.digest if rates is not None else shipped_digest(),)

    @property
    def rates(self) -> Rates:
        """The prices that were applied; those that come with threadline are read when somebody wants to see them."""
        if self._given is None:
            from threadline.account.rates import shipped  # noqa: PLC0415 - sums can do without, and it takes a while

            self._given = shipped()
        return self._given

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

    def holding(self, session: str | None = None, transcripts: Collection[str] = ()) -> Sequence[Charge]:
        """The charges that a session or one of some transcripts holds, copies of what others spent included."""
        paths = [stored(one) for one in transcripts]
        asked = _HELD.format(", ".join("?" * len(paths)))
        return [one for one in self._made_of(asked, (as_text(session), *paths)) if holds(one, session, transcripts)]

    def messages(self, start: str) -> list[str]:
        """The ids of messages that start so, in the order of the alphabet."""
        if self._chosen != _ALL:
            return super().messages(start)
        asked = "SELECT message FROM message_ids WHERE message >= ? AND message < ? ORDER BY message"
        named = self._connection.execute(asked, (as_text(start), f"{as_text(start)}{chr(sys.maxunicode)}"))
        return [message for (message,) in named]

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """The charges of messages, by their ids."""
        asked = "(SELECT message_id FROM message_ids WHERE message IN (SELECT value FROM json_each(?)))"
        return list(self._made_of(asked, (json.dumps(list(ids)),)))

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """The charges of sessions, by their whole ids."""
        where = "WHERE o.session IS NULL OR o.session IN (SELECT value FROM json_each(?))"
        return [one for one in self._made_of(_OWN.format(where), (json.dumps(list(ids)),)) if one.session in ids]

    def of_day(self, day: str, zone: tzinfo = UTC) -> Sequence[Charge]:
        """The charges of a day in a time zone."""
        calendar = Calendar(zone)
        begins = stamp(f"{day}T00:00:00.000Z")
        if isinstance(begins, str):
            return super().of_day(day, zone)
        # No zone is further from UTC than a day.
        where = f"WHERE c.time BETWEEN {begins - _A_DAY} AND {begins + 2 * _A_DAY} OR c.time >= ''"
        return [one for one in self._made_of(_OWN.format(where)) if calendar.day(one.owner.time) == day]

    @property
    def sessions(self) -> frozenset[str]:
        """The ids of the sessions that spent anything."""
        if self._chosen != _ALL:
            return super().sessions
        asked = "SELECT DISTINCT session FROM origins WHERE origin_id IN (SELECT origin_id FROM spent)"
        return frozenset(one for (one,) in self._connection.execute(asked) if one is not None)

    @property
    def timeless(self) -> int:
        """How many charges say no time."""
        if self._chosen != _ALL:
            return super().timeless
        rows = self._connection.execute("SELECT quarter, charges + parts FROM spent WHERE quarter >= ''")
        return sum(many for time, many in rows if parse_timestamp(time) is None)

    def windows(self, *, now: datetime, hours: float = HOURS) -> list[UsageWindow]:
        """The windows of five hours that limits count by, and the gaps between them, in the order of time."""
        if not self._has_prices or self._chosen.is_named:
            return super().windows(now=now, hours=hours)
        from threadline.index.windowing import Windowing  # noqa: PLC0415 - few ask for them

        with at_once(self._connection):
            return Windowing(self._connection, self._chosen).windows(now, timedelta(hours=hours))

    def fill_agent_types(self, read: Callable[[str, str], str | None]) -> None:
        """Give agents whose rows do not say it their type: what is read for a transcript and its home."""
        where = " AND ".join(
            ("o.agent IS NOT NULL AND o.agent_type IS NULL", *self._chosen.conditions(self._connection))
        )
        for number, path, home in self._connection.execute(_UNTYPED.format(where)).fetchall():
            if number not in self._types:
                self._types[number] = read(as_path(path), as_path(home))
        self._made.clear()
        self._charges = _Made(self._count, self._make)

    def _rows(self, names: Group, zone: tzinfo, extra: Mapping[str, Key]) -> Rows:
        if extra or not self._has_prices or not KEYS.issuperset(names):
            return super()._rows(names, zone, extra)
        with at_once(self._connection):
            sums = Summing(self._connection, self._chosen, self._types).by(names, zone)
        return Rows(names, tuple(ordered(rows_of(sums, names), names)))

    def _count(self) -> int:
        with at_once(self._connection):
            sums = Summing(self._connection, self._chosen, self._types).by((), UTC)
        return sum(counts[0] + counts[-1] for counts in sums.values())

    def _make(self) -> Iterator[Charge]:
        conditions = self._chosen.conditions(self._connection)
        if self._chosen.is_timed:
            first, last = instants(self._chosen)
            conditions.append(f"(c.time BETWEEN {first} AND {last} OR c.time >= '')")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._made_of(_OWN.format(where))

    def _made_of(self, messages: str, given: Iterable[object] = ()) -> Iterator[Charge]:
        """The chosen charges of messages that a query names, with every line that tells of them."""
        from threadline.index.making import made_of  # noqa: PLC0415 - sums can do without, and it takes a while

        with at_once(self._connection):
            for one in made_of(self._connection, self.rates, self._types, messages, given):
                if self._chosen == _ALL or self._chosen.has(one):
                    yield one


@contextmanager
def at_once(connection: sqlite3.Connection) -> Iterator[None]:
    """Several questions to the index as it is at one moment, though it may be refreshed meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


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
