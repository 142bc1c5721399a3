"""Sum charges by any combination of keys, in the calendar of a time zone.

Counts are added up per group and rate, so each price is multiplied only once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import product
from operator import attrgetter

from msgspec.structs import asdict, replace

from threadline.model.ledger import (
    EXACT,
    MAIN,
    NO_CALL,
    NO_TIME,
    NONE,
    STANDARD_TIER,
    Charge,
    GroupKey,
    Key,
    Rate,
    RatedGroup,
    Row,
    Sum,
    sum_amounts,
)
from threadline.model.names import current_tool_name
from threadline.model.times import parse_timestamp

TIME_KEYS = ("day", "week", "month", "hour")
"""Keys whose rows are sorted by time. Rows by any other key are sorted by cost."""

KEY_DESCRIPTIONS = {
    "day": "the day it was spent, in the reader's time zone",
    "week": "the week, named by its Monday",
    "month": "the month",
    "hour": "the hour of the day",
    "session": "the session, including its agents",
    "transcript": "the file that the message was counted in; of a copied message, the original's",
    "project": "the directory the session was started in, also for its agents",
    "model": "the model, as in the transcript",
    "agent": "the agent's id; `main` for the main agent",
    "agent-type": "the type of agent, as `threadline tree` shows it; `main` for the main agent, `(none)` if it is"
    " not known",
    "tool": "the tools that the message calls, with an equal share for each call, under their current names;"
    " `(no call)` if it calls none",
    "skill": "the skill that Claude Code records as the cause (from 2.1.123 on); `(none)` otherwise",
    "branch": "the git branch",
    "version": "the version of Claude Code",
    "home": "the home of the transcript",
    "machine": "the machine the transcript was written on: this one, or another whose sessions are in the keep",
    "part": "main, agents, or side agents (which Claude Code runs itself)",
    "service-tier": "the service tier of the API; `standard` if none is recorded",
}
SESSION_KEY_DESCRIPTIONS = {
    "turn": "the turn of the session; an agent's spending counts for the turn that started it",
    "thread": "the main thread, its abandoned branches, agents, or side agents",
}
"""Keys that need more than charges: the caller reads the sessions and passes a key function to `Ledger.by`."""


def key_function(name: str, calendar: Calendar) -> Key:
    """Return the function that computes a charge's value for a key. `tool` has none, because it shares charges out.

    Raises:
        KeyError: there is no such key.
    """
    times: dict[str, Callable[[str], str]] = {
        "day": calendar.day,
        "week": calendar.week,
        "month": calendar.month,
        "hour": calendar.hour,
    }
    if name in times:
        when = times[name]
        return lambda charge: when(charge.owner.time)
    return _KEY_FUNCTIONS[name]


def group_function(
    names: GroupKey, zone: tzinfo, extra: Mapping[str, Key], *, exact_tools: bool = False
) -> Callable[[Charge], set[GroupKey]]:
    """Return a function that returns the groups of a charge by these keys: one, or one for each tool."""
    calendar = Calendar(zone)
    keys = [extra.get(name) or key_function(name, calendar) if name != "tool" else None for name in names]

    def groups(charge: Charge) -> set[GroupKey]:
        tools = tool_shares(charge) if exact_tools else tuple(map(current_tool_name, tool_shares(charge)))
        return set(product(*[(key(charge),) if key is not None else tools for key in keys]))

    return groups


def tool_shares(charge: Charge) -> tuple[str, ...]:
    """Return the tools that share a charge, one share a call, by the names in the transcript."""
    return charge.calls or (NO_CALL,)


def merge_renamed_tools(rows: Iterable[Row]) -> list[Row]:
    """Merge the rows of tools that were renamed into those of the current name."""
    groups: dict[GroupKey, list[Row]] = {}
    for row in rows:
        keys = {**row.keys, "tool": current_tool_name(row.keys["tool"])}
        groups.setdefault(tuple(keys.values()), []).append(replace(row, keys=keys))
    return [group[0] if len(group) == 1 else replace(group[0], **asdict(Sum.of(group))) for group in groups.values()]


def _part_of(charge: Charge) -> str:
    origin = charge.origin
    return "side agents" if origin.side else "agents" if origin.agent else MAIN


_KEY_FUNCTIONS: dict[str, Key] = {
    "session": lambda charge: charge.origin.session or NONE,
    "transcript": lambda charge: charge.origin.transcript or NONE,
    "project": lambda charge: charge.origin.project or NONE,
    "model": lambda charge: charge.counted.model or NONE,
    "agent": lambda charge: charge.origin.agent or MAIN,
    "agent-type": lambda charge: charge.origin.agent_type or (charge.origin.agent and NONE) or MAIN,
    "skill": lambda charge: charge.origin.skill or NONE,
    "branch": lambda charge: charge.origin.git_branch or NONE,
    "version": lambda charge: charge.origin.version or NONE,
    "home": lambda charge: charge.origin.home_name or NONE,
    "machine": lambda charge: charge.origin.machine or NONE,
    "part": _part_of,
    "service-tier": lambda charge: charge.counted.tier or STANDARD_TIER,
}


HOUR_LENGTH = 13
"""The length of a timestamp up to its hour."""
_ONE_HOUR = timedelta(hours=1)


class Calendar:
    """Days and hours in a time zone, for times as transcripts write them."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self.zone = zone
        self._hours: dict[str, tuple[str, str] | None] = {}
        self._weeks: dict[str, str] = {}

    def day(self, time: str) -> str:
        """The day, such as `2026-11-15`."""
        return self._day_and_hour(time)[0]

    def hour(self, time: str) -> str:
        """The hour of the day, such as `14:00`."""
        return self._day_and_hour(time)[1]

    def month(self, time: str) -> str:
        """The month, such as `2026-11`."""
        day = self.day(time)
        return day if day == NO_TIME else day[:7]

    def week(self, time: str) -> str:
        """The week, as the day of its Monday."""
        day = self.day(time)
        if day == NO_TIME:
            return day
        week = self._weeks.get(day)
        if week is None:
            date = datetime.fromisoformat(day).date()
            week = self._weeks[day] = (date - timedelta(days=date.weekday())).isoformat()
        return week

    def is_whole(self, hour: str) -> bool:
        """Whether an hour of UTC (`2026-11-15T14`) falls into one day and hour here."""
        return self._hour(hour) is not None

    def _hour(self, hour: str) -> tuple[str, str] | None:
        if hour not in self._hours:
            self._hours[hour] = self._whole_hour(hour)
        return self._hours[hour]

    def _day_and_hour(self, time: str) -> tuple[str, str]:
        # An hour of UTC is nearly always within one local hour, so it is computed once. It is not if the zone is
        # shifted by part of an hour, or if the clock changes within it.
        if time.endswith("Z") and time[10:11] == "T":
            day_and_hour = self._hour(time[:HOUR_LENGTH])
            if day_and_hour is not None:
                return day_and_hour
        moment = parse_timestamp(time)
        return self._local(moment) if moment is not None else (NO_TIME, NO_TIME)

    def _whole_hour(self, hour: str) -> tuple[str, str] | None:
        start = parse_timestamp(f"{hour}:00:00Z")
        if start is None or start > datetime.max.replace(tzinfo=UTC) - _ONE_HOUR:
            return None
        first, last = self._local(start), self._local(start + _ONE_HOUR - timedelta(microseconds=1))
        return first if first == last else None

    def _local(self, moment: datetime) -> tuple[str, str]:
        try:
            local = moment.astimezone(self.zone)
        except OverflowError:  # the first or last day of the calendar
            local = moment
        return local.date().isoformat(), f"{local:%H}:00"


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
            totals = sums.setdefault((group, charge.rate), [0] * len(COUNTS))
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
