"""The ledger: all charges of an archive, filtered, looked up and summed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING

from threadline.account.keys import KEY_DESCRIPTIONS, TIME_KEYS, Calendar, Key, time_zone
from threadline.account.totals import GroupKey, sum_charges
from threadline.account.windows import WINDOW_HOURS, usage_windows
from threadline.errors import BadQuery
from threadline.model.charges import Charge
from threadline.model.places import Problem
from threadline.model.times import parse_timestamp
from threadline.model.totals import Row, Rows, Sum, UsageWindow

if TYPE_CHECKING:
    from threadline.account.rates import Rates

_DAY_PATTERN = re.compile(r"\d{4}-\d\d-\d\d")


class Ledger:
    """Charges and their sums. Every charge leads back to the lines that it was counted from.

    Iterating gives the charges. `problems` are transcripts that could not be read; `rates` are the prices applied;
    `calls` says whether the charges know which tools their messages call.
    """

    def __init__(
        self, charges: Iterable[Charge], rates: Rates, problems: Iterable[Problem] = (), *, calls: bool = True
    ) -> None:
        self._charges: Sequence[Charge] = tuple(charges)
        self.calls = calls
        self._rates = rates
        self.problems = tuple(problems)
        self._made: dict[tuple[GroupKey, tzinfo], Rows] = {}

    @property
    def rates(self) -> Rates:
        """The prices that were applied."""
        return self._rates

    @property
    def charges(self) -> Sequence[Charge]:
        """The charges."""
        return self._charges

    def __iter__(self) -> Iterator[Charge]:
        return iter(self.charges)

    def __len__(self) -> int:
        return len(self.charges)

    def __repr__(self) -> str:
        return f"Ledger({len(self.charges):,} charges, {self.total.amount or 0:.2f} USD)"

    @property
    def total(self) -> Sum:
        """All charges as one sum."""
        made = next(iter(self._made.values()), None)  # every grouping has the same total
        return made.total if made is not None else self.by().total

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
        """The ledger of some of the charges: of a time, of projects and models whose names hold a text, of a session.

        `since` and `until` both belong to the time; a time without a zone is UTC, and a day is all of it. A session may
        be named by the start of its id. What is left out was still counted against copies: a message that
        another session owns does not come back when that session is left out.
        """
        if all(given is None for given in (wanted, since, until, project, model, session)):
            return self
        chosen: Iterable[Charge] = self.charges
        if wanted is not None:
            chosen = filter(wanted, chosen)
        if session is not None:
            chosen = (charge for charge in chosen if charge.session is not None and charge.session.startswith(session))
        if project is not None:
            chosen = (charge for charge in chosen if project.casefold() in charge.project.casefold())
        if model is not None:
            chosen = (charge for charge in chosen if model.casefold() in (charge.model or "").casefold())
        if since is not None or until is not None:
            first, last = parse_moment(since), parse_moment(until, end=True)
            chosen = (charge for charge in chosen if is_within(charge.timestamp, first, last))
        return Ledger(chosen, self.rates, self.problems, calls=self.calls)

    def holding(self, session: str | None = None, transcripts: Collection[str] = ()) -> Sequence[Charge]:
        """The charges that a session or one of some transcripts holds, copies of what others spent included."""
        return [one for one in self if has_sighting_in(one, session, transcripts)]

    def messages(self, start: str) -> list[str]:
        """The ids of messages that start so, in the order of the alphabet."""
        return sorted({one.message for one in self if one.message.startswith(start)})

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """The charges of messages, by their ids."""
        return [one for one in self if one.message in ids]

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """The charges of sessions, by their whole ids."""
        return [one for one in self if one.session in ids]

    def of_day(self, day: str, zone: tzinfo = UTC) -> Sequence[Charge]:
        """The charges of a day in a time zone."""
        calendar = Calendar(zone)
        return [one for one in self if calendar.day(one.owner.time) == day]

    @property
    def sessions(self) -> frozenset[str]:
        """The ids of the sessions that spent anything."""
        return frozenset(one.session for one in self if one.session is not None)

    @property
    def timeless(self) -> int:
        """How many charges say no time."""
        return sum(one.timestamp is None for one in self)

    def windows(self, *, now: datetime, hours: float = WINDOW_HOURS) -> list[UsageWindow]:
        """The windows of five hours that limits count by, and the gaps between them, in the order of time."""
        return usage_windows(self, now=now, hours=hours)

    def fill_agent_types(self, read: Callable[[str], str | None]) -> None:
        """Set the type of agents whose rows do not say it. `read` returns the type for an agent's transcript."""
        types: dict[str, str | None] = {}
        for charge in self:
            origin = charge.origin
            if origin.agent is not None and origin.agent_type is None:
                if origin.transcript not in types:
                    types[origin.transcript] = read(origin.transcript)
                origin.agent_type = types[origin.transcript]

    def by(self, *names: str, zone: tzinfo | str = UTC, extra: Mapping[str, Key] | None = None) -> Rows:
        """The charges summed by keys: `ledger.by("project", "model")`. Every charge is in exactly one row.

        Days are days in `zone`. Rows are in the order of time, or of what they cost. By `tool`, a charge is shared
        equally by the calls that its message makes. `extra` are keys of your own: what each gives for a charge.

        Raises:
            BadQuery: there is no such key, or no such zone.
        """
        own = extra or {}
        place = time_zone(zone) if isinstance(zone, str) else zone
        for name in names:
            if name not in KEY_DESCRIPTIONS and name not in own:
                raise BadQuery(f"There is no key {name!r}; group by {', '.join((*KEY_DESCRIPTIONS, *own))}.")
        if "tool" in names and not self.calls:
            raise BadQuery("This ledger was made without calls and cannot be summed by tool; make one with calls.")
        if len(set(names)) < len(names):
            raise BadQuery("A key is given twice; give each once.")
        if own:
            return self._rows(names, place, own)
        if (names, place) not in self._made:  # a report, its total and what stands below it often ask for the same
            self._made[names, place] = self._rows(names, place, own)
        return self._made[names, place]

    def _rows(self, names: GroupKey, zone: tzinfo, extra: Mapping[str, Key]) -> Rows:
        return Rows(names, tuple(sort_rows(sum_charges(self.charges, names, Calendar(zone), extra), names)))


def has_sighting_in(charge: Charge, session: str | None, transcripts: Collection[str]) -> bool:
    """Whether a session or one of some transcripts holds a charge."""
    return any(
        (session is not None and sighting.origin.session == session) or sighting.origin.transcript in transcripts
        for sighting in charge.sightings
    )


def parse_moment(given: datetime | date | str | None, *, end: bool = False) -> datetime | None:
    """A moment as a program may give it; a day is its first moment, or its last."""
    if given is None:
        return None
    if isinstance(given, str):
        told = date.fromisoformat(given) if _DAY_PATTERN.fullmatch(given) else parse_timestamp(given)
        if told is None:
            raise BadQuery(f"{given!r} is no time; give a datetime, or text such as 2026-11-03 or 2026-11-03T14:00.")
        given = told
    if not isinstance(given, datetime):
        return datetime.combine(given, time.max if end else time.min, UTC)
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)


def is_within(when: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """Whether a moment belongs to a time; what says no time belongs to none."""
    return when is not None and (since is None or when >= since) and (until is None or when <= until)


def sort_rows(rows: list[Row], names: GroupKey) -> list[Row]:
    """Rows in order, key by key: parts of a nested report stay together."""
    if not names:
        return rows
    name, *rest = names
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.keys[name], []).append(row)
    if name in TIME_KEYS:
        order = sorted(parts)
    else:
        weights = {value: some[0] if len(some) == 1 else Sum.of(some) for value, some in parts.items()}
        order = sorted(
            parts,
            key=lambda value: ((weights[value].amount or Decimal(0)).copy_negate(), -weights[value].tokens, value),
        )
    return [row for value in order for row in sort_rows(parts[value], tuple(rest))]
