"""What a ledger contains: rates, charges, sums and the rows of a report, and amounts that Claude Code reports itself.

Prices are USD per million tokens. All arithmetic is exact (`EXACT`): nothing is ever rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Any

from msgspec import Struct

from threadline.model.places import AgentId, Place
from threadline.model.tables import Columns, Table
from threadline.model.text import count, format_decimal, plain_decimal
from threadline.model.times import parse_timestamp
from threadline.model.usage import MAX_PLACEHOLDER_OUTPUT, Origin, Sighting, parse_amount

# Wide enough for every price in a price file times every count in JSON: nothing is ever rounded.
EXACT = Context(prec=200)
"""Arithmetic that does not round, whatever context the caller has set."""

_DIVISION = Context(prec=28, rounding=ROUND_HALF_EVEN)
_PER_MILLION = -6  # prices are per million


class Rate(Struct, frozen=True, gc=False, cache_hash=True):
    """The prices of one call: USD per million tokens of each kind, after all multipliers.

    `model` is the key in the price file. `begins` and `ends` are the first day of the period and the day after its
    last (`YYYY-MM-DD`, UTC), or None if it is open. `long_context` is the threshold if these are the prices for
    prompts above it. `multipliers` are those that have been applied, by name. `source` says where the prices are from.
    `web_search` is the fee for one search, in USD.
    """

    model: str
    input: Decimal
    output: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    cache_read: Decimal
    begins: str | None = None
    ends: str | None = None
    long_context: int | None = None
    multipliers: tuple[tuple[str, Decimal], ...] = ()
    source: str = ""
    web_search: Decimal = Decimal("0.01")

    def amount(
        self,
        *,
        input: int = 0,  # noqa: A002 - the word of the usage object
        output: int = 0,
        cache_write_5m: int = 0,
        cache_write_1h: int = 0,
        cache_read: int = 0,
    ) -> Decimal:
        """Return the cost of this many tokens, in USD, exact to the last digit.

        >>> Rate("m", Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.2")).amount(input=3, cache_read=7)
        Decimal('0.0000134')
        """
        total = EXACT.multiply(self.input, input)
        total = EXACT.fma(self.output, output, total)
        total = EXACT.fma(self.cache_write_5m, cache_write_5m, total)
        total = EXACT.fma(self.cache_write_1h, cache_write_1h, total)
        return EXACT.scaleb(EXACT.fma(self.cache_read, cache_read, total), _PER_MILLION)

    def describe(self) -> str:
        """Describe the rate in words, for a receipt.

        >>> Rate("m", Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.2"), ends="2026-03-13").describe()
        'm until 2026-03-13: input 4, output 20, cache write 5m 5, 1h 8, cache read 0.2 per million'
        """
        model_and_period = " ".join(filter(None, (self.model, describe_period(self.begins, self.ends))))
        parts = [model_and_period]
        if self.long_context is not None:
            parts.append(f"long context over {self.long_context:,}")
        parts += [f"{name} ×{format_decimal(by)}" for name, by in self.multipliers]  # noqa: RUF001 - the sign for times
        prices = (
            f"input {format_decimal(self.input)}",
            f"output {format_decimal(self.output)}",
            f"cache write 5m {format_decimal(self.cache_write_5m)}",
            f"1h {format_decimal(self.cache_write_1h)}",
            f"cache read {format_decimal(self.cache_read)} per million",
        )
        return f"{', '.join(parts)}: {', '.join(prices)}"


def describe_period(begins: str | None, ends: str | None) -> str:
    """Describe a period in words; empty if it is open at both ends.

    >>> describe_period("2026-02-07", "2026-03-13")
    'from 2026-02-07 until 2026-03-13'
    """
    return " ".join(f"{word} {day}" for word, day in (("from", begins), ("until", ends)) if day is not None)


class Flag(StrEnum):
    """What is special about a charge.

    `lower-bound`: the final output was never written, so more was spent. `unpriced`: no price is known for the model.
    `copied`: other transcripts contain it, too. `side-agent`: Claude Code spent it for itself (compaction, side
    questions, suggestions). `advisor` and `fallback`: a pass of the message by another model. `timeless`: its rows
    have no time, so it gets that of the row before.
    """

    LOWER_BOUND = "lower-bound"
    UNPRICED = "unpriced"
    COPIED = "copied"
    SIDE_AGENT = "side-agent"
    ADVISOR = "advisor"
    FALLBACK = "fallback"
    TIMELESS = "timeless"


class UncountedReason(StrEnum):
    """Why a line that mentions a message was not counted."""

    LESS = "reports no more than the counted line"
    COPY = "a copy in another transcript"
    REPEATED = "repeated as an agent's progress"
    EMPTY = "its counters are zero: the stream had only begun"


class UncountedLine(Struct, frozen=True):
    """A line that mentions a message and was not counted, and why."""

    place: Place
    reason: UncountedReason


class Charge(Struct, frozen=True, gc=False):
    """One message, counted once.

    `counted` is the sighting whose counts these are. `owner` is the earliest original, which determines when, where and
    by whom it was spent. `sightings` are all of them. `rate` is None if no price is known; then the amount is None,
    too. `part` is empty for the message itself, or names a pass of another model that is charged separately.
    """

    counted: Sighting
    owner: Sighting
    sightings: tuple[Sighting, ...]
    rate: Rate | None
    part: str = ""
    web_searches: int = 0

    def __repr__(self) -> str:
        amount = f"{format_decimal(self.amount)} USD" if self.amount is not None else "no price"
        return f"Charge({self.message!r}, {self.model!r}, {count(self.tokens, 'token')}, {amount})"

    @property
    def message(self) -> str:
        """The message's id; if it has none, the request's or the entry's."""
        return self.counted.key

    @property
    def model(self) -> str | None:
        """The model as the transcript writes it."""
        return self.counted.model

    @property
    def input(self) -> int:
        """Input that was not in the cache."""
        return self.counted.input

    @property
    def output(self) -> int:
        """Output, thinking included."""
        return self.counted.output

    @property
    def cache_write(self) -> int:
        """Tokens written to the cache."""
        return self.counted.cache_write_5m + self.counted.cache_write_1h

    @property
    def cache_write_5m(self) -> int:
        """Tokens written to the cache for five minutes."""
        return self.counted.cache_write_5m

    @property
    def cache_write_1h(self) -> int:
        """Tokens written to the cache for an hour."""
        return self.counted.cache_write_1h

    @property
    def cache_read(self) -> int:
        """Tokens read from the cache."""
        return self.counted.cache_read

    @property
    def prompt_tokens(self) -> int:
        """The size of the prompt."""
        return self.counted.prompt_tokens

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.prompt_tokens + self.output

    @property
    def amount(self) -> Decimal | None:
        """The cost in USD, exact; None if no price is known."""
        if self.rate is None:
            return None
        counted = self.counted
        tokens = self.rate.amount(
            input=counted.input,
            output=counted.output,
            cache_write_5m=counted.cache_write_5m,
            cache_write_1h=counted.cache_write_1h,
            cache_read=counted.cache_read,
        )
        return EXACT.add(tokens, EXACT.multiply(self.rate.web_search, self.web_searches))

    @property
    def reported(self) -> Decimal | None:
        """The cost that Claude Code reported (`costUSD`, up to about 1.0.8): the largest of all copies."""
        most = max(parse_amount(sighting.reported) for sighting in self.sightings)
        return most if most >= 0 else None

    @property
    def origin(self) -> Origin:
        """Where it was spent."""
        origin: Origin = self.owner.origin
        return origin

    @property
    def session(self) -> str | None:
        """The session that spent it; an agent's is that of its main agent."""
        return self.origin.session

    @property
    def agent(self) -> str | None:
        """The agent that spent it; None for the main one."""
        return self.origin.agent

    @property
    def project(self) -> str:
        """The project that it was spent on."""
        return self.origin.project

    @property
    def agent_type(self) -> str | None:
        """The type of the agent that spent it; None for the main one, or if it is unknown.

        Without an index, types that are not in the rows are read when a table or a sum by `agent-type` needs them.
        """
        return self.origin.agent_type

    @property
    def version(self) -> str | None:
        """The version of Claude Code."""
        return self.origin.version

    @property
    def git_branch(self) -> str | None:
        """The git branch it was spent on."""
        return self.origin.git_branch

    @property
    def skill(self) -> str | None:
        """The skill that Claude Code records as the cause."""
        return self.origin.skill

    @property
    def home(self) -> str:
        """The path of the home that has the transcript."""
        return self.origin.home

    @property
    def service_tier(self) -> str:
        """The service tier of the API; `standard` if none is recorded."""
        return self.counted.tier or STANDARD_TIER

    @property
    def timestamp(self) -> datetime | None:
        """When it was spent, in UTC."""
        return parse_timestamp(self.owner.time)

    @property
    def calls(self) -> tuple[str, ...]:
        """The tools that the message calls, one name a call."""
        if len(self.sightings) == 1:
            return tuple([call.partition(" ")[2] for call in self.counted.calls])
        # Each transcript may have a part of the message: calls are distinguished by id, or by position.
        # In the order of paths, because the order of sightings is the one in which files happened to be read.
        ordered = sorted(self.sightings, key=lambda sighting: (sighting.origin.transcript, sighting.offset))
        calls = (enumerate(_call_ids_and_names(sighting)) for sighting in ordered)
        names = {id_ or str(at): name for numbered in calls for at, (id_, name) in numbered}
        return tuple(names.values())

    @property
    def place(self) -> Place:
        """The line that was counted."""
        counted = self.counted
        return _usage_place(counted, counted.line, counted.offset)

    @property
    def set_aside(self) -> tuple[UncountedLine, ...]:
        """Every other line that mentions the message, and why it was not counted."""
        return tuple(self._iter_uncounted())

    def _iter_uncounted(self) -> Iterator[UncountedLine]:
        for sighting in self.sightings:
            reason = self._reason(sighting)
            for offset, line in zip(sighting.offsets, sighting.lines, strict=True):
                if sighting.rows is not self.counted.rows or offset != self.counted.offset:
                    yield UncountedLine(_usage_place(sighting, line, offset), reason)

    def _reason(self, sighting: Sighting) -> UncountedReason:
        if sighting.is_repeat and not self.counted.is_repeat:
            return UncountedReason.REPEATED
        if sighting.origin.transcript != self.counted.origin.transcript:
            return UncountedReason.COPY
        return UncountedReason.LESS if any(sighting.sent) or not any(self.counted.sent) else UncountedReason.EMPTY

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is special about it."""
        return tuple(self._flags())

    def _flags(self) -> Iterator[Flag]:
        if self.is_lower_bound:
            yield Flag.LOWER_BOUND
        if self.rate is None:
            yield Flag.UNPRICED
        if self.is_copied:
            yield Flag.COPIED
        if self.origin.side:
            yield Flag.SIDE_AGENT
        if self.part:
            yield Flag(self.part)
        if self.owner.timeless:
            yield Flag.TIMELESS

    @property
    def is_copied(self) -> bool:
        """Whether several transcripts contain it."""
        return len(self.sightings) > 1 and len({sighting.origin.transcript for sighting in self.sightings}) > 1

    @property
    def is_lower_bound(self) -> bool:
        """Whether the final output was never written: old versions kept the count from the start of the stream."""
        if self.part:
            return False
        counted = self.counted
        return counted.partial or (
            counted.output <= MAX_PLACEHOLDER_OUTPUT and any(sighting.partial for sighting in self.sightings)
        )


CHARGE_COLUMNS: Columns = {
    "timestamp": datetime,
    "session": str,
    "agent": str,
    "agent_type": str,
    "project": str,
    "home": str,
    "model": str,
    "service_tier": str,
    "version": str,
    "git_branch": str,
    "skill": str,
    "message": str,
    "part": str,
    "input": int,
    "output": int,
    "cache_write": int,
    "cache_write_5m": int,
    "cache_write_1h": int,
    "cache_read": int,
    "tokens": int,
    "web_searches": int,
    "amount": Decimal,
    "reported": Decimal,
    "calls": list,
    "flags": list,
    "place": str,
}
"""The columns of a table of charges, each an attribute of a charge."""


def _usage_place(sighting: Sighting, line: int, offset: int) -> Place:
    path = "$.data.message.message.usage" if sighting.is_repeat else "$.message.usage"
    return Place(sighting.origin.transcript, line, offset, json_path=path)


def _call_ids_and_names(sighting: Sighting) -> list[list[str]]:
    return [call.split(" ", 1) for call in sighting.calls]


Key = Callable[[Charge], str]
"""Returns the value of a charge for a key, such as its model."""
GroupKey = tuple[str, ...]
"""The values of the keys of a group of charges; also the names of the keys."""
RatedGroup = tuple[GroupKey, Rate | None]
"""The charges of a group that have the same rate."""
MAIN = "main"
"""The value for the main agent."""
NONE = "(none)"
"""The value of a key that a charge does not have."""
NO_CALL = "(no call)"
"""The tool of messages that call none."""
STANDARD_TIER = "standard"
"""The service tier of charges that record none, or the usual one."""
NO_TIME = "(no time)"
"""The day of charges without a time."""


class Sum(Struct, frozen=True):
    """The sum of charges. `amount` is in USD, without the `unpriced` charges; None if none has a price.

    `lower_bound` is how many charges have an output that is only a minimum.
    """

    charges: int = 0
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    web_searches: int = 0
    amount: Decimal | None = None
    unpriced: int = 0
    lower_bound: int = 0

    @property
    def cache_write_5m(self) -> int:
        """Tokens written to the cache for five minutes."""
        return self.cache_write - self.cache_write_1h

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.output + self.cache_write + self.cache_read

    @staticmethod
    def of(sums: Iterable[Sum]) -> Sum:
        """Add several sums."""
        parts = list(sums)
        amounts = [part.amount for part in parts if part.amount is not None]
        counts: dict[str, Any] = dict(zip(_COUNTS, map(sum, zip(*map(_get_counts, parts), strict=True)), strict=False))
        return Sum(**counts, amount=sum_amounts(amounts) if amounts else None)


# A list adds hundreds of sums: getting all counts of one at once takes a quarter of the time.
_COUNTS = [name for name in Sum.__struct_fields__ if name != "amount"]
_get_counts = attrgetter(*_COUNTS)


class Row(Sum, frozen=True):
    """A row of a report: what its charges have in common, and their sum."""

    keys: dict[str, str] = {}

    def record(self) -> dict[str, Any]:
        """Return the row as a flat record: the keys, then the figures."""
        return {**self.keys, **sum_fields(self)}


class Rows(Table[Row], Struct, frozen=True):
    """The rows of a report by one or more keys, in order. Each charge is in exactly one row."""

    by: tuple[str, ...]
    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> Row:
        return self.rows[at]

    @property
    def total(self) -> Sum:
        """All rows as one sum."""
        return Sum.of(self.rows)

    def subtotals(self, depth: int = 1) -> tuple[Row, ...]:
        """Return the sums by the first `depth` keys only, in the order of the rows."""
        parts: dict[tuple[str, ...], list[Row]] = {}
        names = self.by[:depth]
        for row in self.rows:
            parts.setdefault(tuple(row.keys[name] for name in names), []).append(row)
        return tuple(make_row(dict(zip(names, key, strict=True)), Sum.of(rows)) for key, rows in parts.items())

    @property
    def columns(self) -> Columns:
        """The columns of a table: the keys, then the figures."""
        kinds = {"amount": Decimal}
        return {**dict.fromkeys(self.by, str), **{name: kinds.get(name, int) for name in Sum.__struct_fields__}}

    def to_record(self, row: Row) -> dict[str, Any]:
        """Return a row as a flat record: its keys and figures."""
        return row.record()

    def __repr__(self) -> str:
        return f"Rows({self._describe()})"

    def _describe(self) -> str:
        keys = f" by {', '.join(self.by)}" if self.by else ""
        return f"{count(len(self.rows), 'row')}{keys}, {self.total.amount or 0:.2f} USD"


def sum_amounts(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum of amounts."""
    total = Decimal(0)
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


def share_of(part: Decimal, total: Decimal | None) -> Decimal:
    """Return which share of a total a part is, with 28 digits; 0 if there is no total."""
    return _DIVISION.divide(part, total) if total else Decimal(0)


def sum_fields(sum_: Sum) -> dict[str, Any]:
    """Return the figures of a sum by name, in the order in which reports show them."""
    return {name: getattr(sum_, name) for name in Sum.__struct_fields__}


def make_row(keys: dict[str, str], sum_: Sum) -> Row:
    """Build a row from its keys and its sum."""
    return Row(**sum_fields(sum_), keys=keys)


class SessionCosts(Struct, frozen=True):
    """What a session spent, by turn and by agent.

    What an agent spent is part of the turn in which it was started. The turn None has charges whose turn is not known.
    `shared` is what its transcripts also contain of messages that are counted for other sessions, by their ids. It is
    not in the total.
    """

    total: Sum
    turns: dict[int | None, Sum]
    agents: dict[AgentId, Sum]
    shared: dict[str, Sum] = {}

    def turn(self, number: int | None) -> Sum:
        """What a turn spent."""
        return self.turns.get(number, _NOTHING)

    def agent(self, agent: AgentId | None) -> Sum:
        """What an agent spent, without the agents that it started."""
        return self.agents.get(agent, _NOTHING) if agent is not None else _NOTHING


class MissingAgent(Struct, frozen=True):
    """A subagent whose transcript no longer exists, so that what it spent is not in any total.

    If its parent's transcript repeats some of its messages, those are counted.

    `tokens` is what its result reports, if anything: the tokens in its window at its end, a lower bound of what it
    used. `place` is the call that started it.
    """

    agent: str
    call: str
    session: str | None
    project: str
    timestamp: datetime | None
    tokens: int | None
    place: Place


_NOTHING = Sum()
MILLIONTH, CENT = Decimal("0.000001"), Decimal("0.01")
# Wide enough for any count in JSON divided by a microsecond, whatever context the caller has set.
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)


class BurnRate(Struct, frozen=True):
    """How fast a window is being used up: its sum over the time from its first to its last charge.

    `new_tokens_per_minute` is without the cache, which is what ccusage's indicator uses. Quotients have 28 digits.
    """

    tokens_per_minute: Decimal
    new_tokens_per_minute: Decimal
    amount_per_hour: Decimal | None


class Projection(Struct, frozen=True):
    """The sum of a window at its end if usage continues at the same rate: its sum, plus its burn rate for the rest.

    Minutes and tokens are whole numbers, and the amount is in whole cents: it is an estimate.
    """

    remaining_minutes: int
    tokens: int
    amount: Decimal | None


class WindowLimit(Struct, frozen=True):
    """The limit that windows are compared with: a number of tokens (`is_given`), or the largest finished window."""

    tokens: int
    is_given: bool

    def share(self, tokens: int) -> Decimal:
        """Return the tokens as a share of the limit, to four places."""
        return _ROUNDING.quantize(_ROUNDING.divide(Decimal(tokens), Decimal(self.tokens)), Decimal("0.0001"))

    def status(self, tokens: int) -> str:
        """Return `ok`, `warning` above four fifths of the limit, or `exceeds` above it."""
        return "exceeds" if tokens > self.tokens else "warning" if tokens * 5 > self.tokens * 4 else "ok"


class UsageWindow(Struct, frozen=True):
    """A five-hour usage window, or a gap between two of them.

    It begins with the hour (in UTC) of its first charge. `first` and `last` are the times of its charges. A gap has
    none: it extends from five hours after the last charge to the next charge. Only the active window has `burn` and
    `projection`.
    """

    begins: datetime
    ends: datetime
    first: datetime | None = None
    last: datetime | None = None
    is_active: bool = False
    sum: Sum = Sum()
    models: tuple[str, ...] = ()
    burn: BurnRate | None = None
    projection: Projection | None = None

    @property
    def is_gap(self) -> bool:
        """Whether nothing was spent in it."""
        return self.first is None

    @property
    def duration(self) -> timedelta:
        """From its beginning to its last charge; the length of a gap."""
        return (self.last or self.ends) - self.begins

    def record(self, limit: WindowLimit | None = None) -> dict[str, Any]:
        """Return the window as a flat record. Quotients are rounded: rates to a millionth, shares to four places.

        Only the active window has `limit_remaining`, which is what remains now, and `limit_status`, which compares the
        projection with the limit.
        """
        burn, projection = self.burn, self.projection
        active_limit = limit if self.is_active else None
        return {
            "begins": self.begins,
            "ends": self.ends,
            "first": self.first,
            "last": self.last,
            "is_active": self.is_active,
            "is_gap": self.is_gap,
            "models": self.models,
            **sum_fields(self.sum),
            "tokens": self.sum.tokens,
            "tokens_per_minute": _round_rate(burn.tokens_per_minute) if burn is not None else None,
            "new_tokens_per_minute": _round_rate(burn.new_tokens_per_minute) if burn is not None else None,
            "amount_per_hour": _round_rate(burn.amount_per_hour) if burn is not None else None,
            "remaining_minutes": projection and projection.remaining_minutes,
            "projected_tokens": projection and projection.tokens,
            "projected_amount": projection and projection.amount,
            "share": float(limit.share(self.sum.tokens)) if limit is not None and not self.is_gap else None,
            "limit_remaining": max(0, active_limit.tokens - self.sum.tokens) if active_limit is not None else None,
            "limit_status": active_limit.status(projection.tokens if projection else self.sum.tokens)
            if active_limit
            else None,
        }


def _round_rate(number: Decimal | None) -> Decimal | None:
    return None if number is None else plain_decimal(_ROUNDING.quantize(number, MILLIONTH))
