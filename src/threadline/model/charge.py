"""Charge: one message's usage counted once, with the rate applied, and the way back to every line that tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from threadline.model.place import Place
from threadline.model.rate import EXACT, Rate
from threadline.model.sighting import PLACEHOLDER, Origin, Sighting, number_of
from threadline.model.time import parse_timestamp


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


class Reason(StrEnum):
    """Why a line that tells of a message was not counted."""

    LESS = "tells no more than the line that counted"
    COPY = "a copy in another transcript"
    REPEATED = "repeated as an agent's progress"
    EMPTY = "its counters are zero: the stream had only begun"


class SetAside(Struct, frozen=True):
    """A line that tells of a message and was not counted, and why."""

    place: Place
    reason: Reason


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
        most = max(number_of(one.reported) for one in self.sightings)
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
        some = sorted(self.sightings, key=lambda one: (one.origin.transcript, one.offset))
        told = {id_ or str(at): name for one in some for at, (id_, name) in enumerate(_ids_and_names(one))}
        return tuple(told.values())

    @property
    def place(self) -> Place:
        """The line that was counted."""
        counted = self.counted
        return _place(counted, counted.line, counted.offset)

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """Every other line that tells of the message, and why it was not counted."""
        return tuple(self._set_aside())

    def _set_aside(self) -> Iterator[SetAside]:
        for sighting in self.sightings:
            reason = self._reason(sighting)
            for offset, line in zip(sighting.offsets, sighting.lines, strict=True):
                if sighting.rows is not self.counted.rows or offset != self.counted.offset:
                    yield SetAside(_place(sighting, line, offset), reason)

    def _reason(self, sighting: Sighting) -> Reason:
        if sighting.repeated and not self.counted.repeated:
            return Reason.REPEATED
        if sighting.origin.transcript != self.counted.origin.transcript:
            return Reason.COPY
        return Reason.LESS if any(sighting.sent) or not any(self.counted.sent) else Reason.EMPTY

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
        return len(self.sightings) > 1 and len({one.origin.transcript for one in self.sightings}) > 1

    @property
    def is_lower_bound(self) -> bool:
        """Whether the final output was never written: old versions kept what the stream began with."""
        if self.part:
            return False
        counted = self.counted
        return counted.partial or (counted.output <= PLACEHOLDER and any(one.partial for one in self.sightings))


def _place(sighting: Sighting, line: int, offset: int) -> Place:
    path = "$.data.message.message.usage" if sighting.repeated else "$.message.usage"
    return Place(sighting.origin.transcript, line, offset, json_path=path)


def _ids_and_names(sighting: Sighting) -> list[list[str]]:
    return [call.split(" ", 1) for call in sighting.calls]
