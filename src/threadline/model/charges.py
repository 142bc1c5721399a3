"""Charges and rates: each message's usage counted once, priced, and traceable to every line that mentions it.

Prices are USD per million tokens. All arithmetic is exact (`EXACT`): nothing is ever rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Context, Decimal
from enum import StrEnum

from msgspec import Struct

from threadline.model.places import Place
from threadline.model.sightings import MAX_PLACEHOLDER_OUTPUT, Origin, Sighting, parse_amount
from threadline.model.times import parse_timestamp

# Wide enough for every price that a file may hold times every count that JSON may: nothing is ever rounded.
EXACT = Context(prec=200)
"""Arithmetic that does not round, whatever context the caller has set."""

_PER_MILLION = -6  # prices are per million


class Rate(Struct, frozen=True, gc=False, cache_hash=True):
    """What one call is charged by: USD per million tokens of each kind, after all multipliers.

    `model` is the key in the price file. `begins` and `ends` are the first day of the period and the day after its
    last (`YYYY-MM-DD`, UTC), None where it is open. `long_context` is the threshold when these are the prices for
    prompts above it. `multipliers` are those that have been applied, by name. `source` says where the prices are from;
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
        """What so many tokens cost, in USD, exact to the last digit.

        >>> Rate("m", Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.2")).amount(input=3, cache_read=7)
        Decimal('0.0000134')
        """
        total = EXACT.multiply(self.input, input)
        total = EXACT.fma(self.output, output, total)
        total = EXACT.fma(self.cache_write_5m, cache_write_5m, total)
        total = EXACT.fma(self.cache_write_1h, cache_write_1h, total)
        return EXACT.scaleb(EXACT.fma(self.cache_read, cache_read, total), _PER_MILLION)

    def describe(self) -> str:
        """The row in words, for a receipt.

        >>> Rate("m", Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.2"), ends="2026-03-13").describe()
        'm until 2026-03-13: input 4, output 20, cache write 5m 5, 1h 8, cache read 0.2 per million'
        """
        which = " ".join(filter(None, (self.model, describe_period(self.begins, self.ends))))
        told = [which]
        if self.long_context is not None:
            told.append(f"long context over {self.long_context:,}")
        told += [f"{name} ×{format_decimal(by)}" for name, by in self.multipliers]  # noqa: RUF001 - the sign for times
        prices = (
            f"input {format_decimal(self.input)}",
            f"output {format_decimal(self.output)}",
            f"cache write 5m {format_decimal(self.cache_write_5m)}",
            f"1h {format_decimal(self.cache_write_1h)}",
            f"cache read {format_decimal(self.cache_read)} per million",
        )
        return f"{', '.join(told)}: {', '.join(prices)}"


def describe_period(begins: str | None, ends: str | None) -> str:
    """A period in words; nothing where it is open at both ends.

    >>> describe_period("2026-02-07", "2026-03-13")
    'from 2026-02-07 until 2026-03-13'
    """
    return " ".join(f"{word} {day}" for word, day in (("from", begins), ("until", ends)) if day is not None)


def format_decimal(number: Decimal) -> str:
    """A number without exponent and without zeros at its end.

    >>> format_decimal(Decimal("1E+1")), format_decimal(Decimal("0.50"))
    ('10', '0.5')
    """
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class Flag(StrEnum):
    """What is special about a charge.

    `lower-bound`: the final output was never written, so that more was spent. `unpriced`: no price is known for the
    model. `copied`: other transcripts hold it, too. `side-agent`: the program spent it for itself (compaction, side
    questions, suggestions). `advisor` and `fallback`: a pass of the message by another model. `timeless`: its rows
    say no time, so that it stands at that of the row before.
    """

    LOWER_BOUND = "lower-bound"
    UNPRICED = "unpriced"
    COPIED = "copied"
    SIDE_AGENT = "side-agent"
    ADVISOR = "advisor"
    FALLBACK = "fallback"
    TIMELESS = "timeless"


class UncountedReason(StrEnum):
    """Why a line that tells of a message was not counted."""

    LESS = "tells no more than the line that counted"
    COPY = "a copy in another transcript"
    REPEATED = "repeated as an agent's progress"
    EMPTY = "its counters are zero: the stream had only begun"


class UncountedLine(Struct, frozen=True):
    """A line that tells of a message and was not counted, and why."""

    place: Place
    reason: UncountedReason


class Charge(Struct, frozen=True, gc=False):
    """One message, counted once.

    `counted` is the sighting whose counts these are; `owner` is the earliest original, which says when, where and by
    whom it was spent; `sightings` are all of them. `rate` is None where no price is known: then the amount is, too.
    `part` is empty for the message itself, and names a pass of another model that is charged on its own.
    """

    counted: Sighting
    owner: Sighting
    sightings: tuple[Sighting, ...]
    rate: Rate | None
    part: str = ""
    web_searches: int = 0

    @property
    def message(self) -> str:
        """The message's id; where it has none, the request's or the entry's."""
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
        """All that was written to the cache."""
        return self.counted.cache_write_5m + self.counted.cache_write_1h

    @property
    def cache_write_5m(self) -> int:
        """What was written to the cache for five minutes."""
        return self.counted.cache_write_5m

    @property
    def cache_write_1h(self) -> int:
        """What was written to the cache for an hour."""
        return self.counted.cache_write_1h

    @property
    def cache_read(self) -> int:
        """What was read from the cache."""
        return self.counted.cache_read

    @property
    def prompt_tokens(self) -> int:
        """The size of what was sent."""
        return self.counted.prompt_tokens

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.prompt_tokens + self.output

    @property
    def amount(self) -> Decimal | None:
        """What it costs in USD, exact; None where no price is known."""
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
        """What Claude Code said that it costs (`costUSD`, up to about 1.0.8): the greatest, over all copies."""
        most = max(parse_amount(sighting.reported) for sighting in self.sightings)
        return most if most >= 0 else None

    @property
    def origin(self) -> Origin:
        """Where it was spent."""
        found: Origin = self.owner.origin
        return found

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
    def timestamp(self) -> datetime | None:
        """When it was spent, in UTC."""
        return parse_timestamp(self.owner.time)

    @property
    def calls(self) -> tuple[str, ...]:
        """The tools that the message calls, one name a call."""
        if len(self.sightings) == 1:
            return tuple([call.partition(" ")[2] for call in self.counted.calls])
        # Transcripts may each hold a part of the message: calls are told apart by id, or where they stand.
        # In the order of paths: that of sightings is the one in which files happened to be read.
        some = sorted(self.sightings, key=lambda sighting: (sighting.origin.transcript, sighting.offset))
        told = {id_ or str(at): name for one in some for at, (id_, name) in enumerate(_call_ids_and_names(one))}
        return tuple(told.values())

    @property
    def place(self) -> Place:
        """The line that was counted."""
        counted = self.counted
        return _usage_place(counted, counted.line, counted.offset)

    @property
    def set_aside(self) -> tuple[UncountedLine, ...]:
        """Every other line that tells of the message, and why it was not counted."""
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
        """Whether several transcripts hold it."""
        return len(self.sightings) > 1 and len({sighting.origin.transcript for sighting in self.sightings}) > 1

    @property
    def is_lower_bound(self) -> bool:
        """Whether the final output was never written: old versions kept what the stream began with."""
        if self.part:
            return False
        counted = self.counted
        return counted.partial or (
            counted.output <= MAX_PLACEHOLDER_OUTPUT and any(sighting.partial for sighting in self.sightings)
        )


def _usage_place(sighting: Sighting, line: int, offset: int) -> Place:
    path = "$.data.message.message.usage" if sighting.is_repeat else "$.message.usage"
    return Place(sighting.origin.transcript, line, offset, json_path=path)


def _call_ids_and_names(sighting: Sighting) -> list[list[str]]:
    return [call.split(" ", 1) for call in sighting.calls]
