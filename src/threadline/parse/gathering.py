"""Gathering: the sightings of one transcript, while its rows are gone through."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from threadline.model.found import Transcript
from threadline.model.sighting import (
    LONGER,
    PLACEHOLDER,
    SYNTHETIC,
    Origin,
    Pass,
    Seen,
    Sighting,
    is_before_final,
    number_of,
    split_writes,
    tie,
)
from threadline.parse.lines_with import Lines
from threadline.parse.run import REFUSALS
from threadline.parse.searches import searched
from threadline.parse.usage_rows import Counts, MessageRow, Row, UsageRow, Writes, Written, first_time, rows, text_of

SEARCH = "WebSearch"
_decode_passes = msgspec.json.Decoder(list[Counts] | None).decode
_Group = tuple[str, str | None, str | None, int, int, int, bool]
# Text grows by being copied: an id that is on every row of a long transcript would have it copied for minutes.
_MOST_ROWS = 8 * 1024
_MANY_CALLS = 64
# What nearly every row says of speed, place and tier, and what changes no price: not kept a hundred thousand times.
_USUAL: dict[str | None, None] = dict.fromkeys(("standard", "default", "not_available", "global", ""))


class Gathering:
    """The sightings of one transcript, while its rows are gone through."""

    def __init__(self, transcript: Transcript, *, calls: bool = True) -> None:
        self.transcript = transcript
        self._with_calls = calls
        self.found: dict[_Group, Sighting] = {}
        self.origins: list[Origin] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._full: list[Sighting] = []
        self._searches: set[tuple[str, str]] = set()
        self._searching: dict[str, Sighting] = {}
        self._searched: dict[str, int] = {}
        self._telling: set[int] = set()
        self._many_calls: dict[int, set[str]] = {}
        self._time = ""

    def add(self, found: Lines) -> None:
        """One more block of the transcript."""
        for offsets, some in rows(self.transcript.path, found):
            self._rows(offsets, some)
        if self._searching:
            self._count_searches(found)

    def seen(self, first: Iterable[bytes]) -> Seen:
        """All that was gathered; `first` are the first lines of the transcript, which tell when it began."""
        every = self.sightings
        self._mark_partial(every)
        began = (first_time(first) or next((one.time for one in every if one.time), "")) if every else ""
        return Seen(began, self.origins, every)

    @property
    def sightings(self) -> list[Sighting]:
        """Every sighting so far."""
        return [*self._full, *self.found.values()]

    def tells(self, known: Sighting) -> bool:
        """Whether a row of a sighting says more than the few tokens that it counts can hold."""
        return id(known) in self._telling

    @property
    def waiting(self) -> list[str]:
        """The calls for a web search whose results have not come yet."""
        return list(self._searching)

    def _rows(self, offsets: list[int], some: list[Row]) -> None:
        """The rows of one block. Half of all rows only repeat the row before, so the way to those is short."""
        found, owner = self.found, self.transcript.agent
        for offset, given in zip(offsets, some, strict=True):
            row, message, repeated = given, given.message, False
            if row.kind != "assistant":
                if row.data is None or row.kind != "progress":
                    continue
                row, message, repeated = *_told_again(row), True
            if message is None or (usage := message.usage) is None or message.model == SYNTHETIC:
                continue
            split, flat = usage.cache_creation, usage.cache_creation_input_tokens or 0
            five, hour = (flat, 0) if split is None else _split(flat, split)
            sent, read = usage.input_tokens or 0, usage.cache_read_input_tokens or 0
            if not (sent or read or usage.output_tokens) and not _counts_anything(usage):
                continue
            key = message.id or row.request_id or row.uuid or f"{self.transcript.path}@{offset}"
            agent = row.agent_id or owner or ("inline" if row.is_agent else None)
            group = (key, row.session_id, agent, sent, five + hour, read, repeated)
            known = found.get(group)
            if known is None or len(known.rows) > _MOST_ROWS:
                known = self._new(offset, row, message, usage, group, five, hour)
            else:
                _improve(known, offset, row, message, usage, five, hour)
            if message.content:
                self._content(known, message.content)

    def _new(  # noqa: PLR0917 - on the path of every message, where naming arguments takes as long as the rest
        self, offset: int, row: Row, message: MessageRow, usage: UsageRow, group: _Group, five: int, hour: int
    ) -> Sighting:
        if group in self.found:
            self._full.append(self.found[group])
        key, named, agent, sent, writes, read, repeated = group
        session = named or self.transcript.session
        time = text_of(row.timestamp)
        if time:
            self._time = time
        forked = row.forked_from
        shared = (
            session,
            agent,
            row.version,
            row.git_branch,
            row.is_agent,
            bool(forked) and bytes(forked) != b"null",
            row.attribution_skill,
            row.attribution_agent,
        )
        origin = self._numbers.get(shared)
        if origin is None:
            origin = self._numbers[shared] = len(self.origins)
            self.origins.append(Origin(*shared))
        served = usage.server_tool_use
        # In the order of the fields: naming them would take as long as all the rest.
        made = self.found[group] = Sighting(
            key,
            origin,
            message.model,
            self._time,
            offset,
            sent,
            usage.output_tokens or 0,
            writes,
            five,
            hour,
            read,
            message.stop_reason is not None,
            f"{offset} {row.uuid if row.uuid and ' ' not in row.uuid else _word(row.uuid)}",
            [],
            False,
            (served.web_search_requests or 0) if served is not None else 0,
            _USUAL.get(usage.speed, usage.speed),
            _USUAL.get(usage.inference_geo, usage.inference_geo),
            _USUAL.get(usage.service_tier, usage.service_tier),
            repeated,
            _reported(row) if row.cost_usd else None,
            _passes(usage) if usage.iterations else None,
            not time,
        )
        return made

    def _content(self, known: Sighting, content: list[Written] | str) -> None:
        if known.output <= PLACEHOLDER and id(known) not in self._telling and _length(content) > LONGER:
            self._telling.add(id(known))
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use" and (self._with_calls or block.name == SEARCH):
                self._call(known, block)

    def _call(self, known: Sighting, block: Written) -> None:
        call = f"{_word(block.id)} {block.name or ''}"
        if not block.id or not self._is_known(call, known):
            known.calls.append(call)
        if block.name == SEARCH and block.id and (known.key, block.id) not in self._searches:
            self._searches.add((known.key, block.id))
            self._searching[block.id] = known

    def _is_known(self, call: str, known: Sighting) -> bool:
        """Whether a call of a message was told before; where it has many, the next one is not held against each."""
        if len(known.calls) < _MANY_CALLS:
            return call in known.calls
        told = self._many_calls.get(id(known))
        if told is None:
            told = self._many_calls[id(known)] = set(known.calls)
        if call in told:
            return True
        told.add(call)
        return False

    def _mark_partial(self, every: list[Sighting]) -> None:
        """Mark the messages whose final output was never written."""
        early = [is_before_final(origin.version) for origin in self.origins]
        for known in every:
            if not known.stopped and early[known.origin_number]:
                known.partial = True
            elif known.output <= PLACEHOLDER:
                known.partial = id(known) in self._telling

    def _count_searches(self, found: Lines) -> None:
        """Web searches that the client makes are known from their results alone; those come after the call."""
        for call, number in searched(found, self._searching):
            known = self._searching.pop(call)
            self._searched[known.key] = self._searched.get(known.key, 0) + number
            known.web_searches = max(known.web_searches, self._searched[known.key])


def _word(id_: str | None) -> str:
    """An id as one word, for rows and calls are kept as words: one that somebody made up with spaces loses them."""
    return id_.replace(" ", "_") if id_ else ""


def _length(content: list[Written] | str) -> int:
    """How much a row says, of what output counts: its longest text or call."""
    if isinstance(content, str):
        return len(content)
    return max(len(memoryview(block.text if block.type == "text" else block.input)) for block in content)


def _told_again(row: Row) -> tuple[Row, MessageRow | None]:
    """The agent's row that a progress row repeats, with the time and the session of the progress."""
    data = row.data
    told = data.message if data is not None else None
    if data is None or told is None or data.type != "agent_progress":
        return row, None
    again = replace(
        row,
        agent_id=data.agent_id,
        uuid=told.uuid or row.uuid,
        request_id=told.request_id,
        timestamp=told.timestamp or row.timestamp,
        is_agent=True,
    )
    return again, told.message


def _counts_anything(usage: UsageRow) -> bool:
    return not (
        usage.output_tokens is None
        and usage.input_tokens is None
        and usage.cache_creation_input_tokens is None
        and usage.cache_read_input_tokens is None
        and (usage.cache_creation is None or usage.cache_creation == Writes())
    )


def _split(flat: int, split: Writes) -> tuple[int, int]:
    return split_writes(flat, split.ephemeral_5m_input_tokens or 0, split.ephemeral_1h_input_tokens or 0)


def _improve(  # noqa: PLR0917 - as above
    known: Sighting, offset: int, row: Row, message: MessageRow, usage: UsageRow, five: int, hour: int
) -> None:
    """One more row of a message: its counts are taken if they tell more, for the output grows while it is written."""
    known.rows += f" {offset} {row.uuid if row.uuid and ' ' not in row.uuid else _word(row.uuid)}"
    served, output = usage.server_tool_use, usage.output_tokens or 0
    if served is not None and served.web_search_requests:
        known.web_searches = max(known.web_searches, served.web_search_requests)
    if row.cost_usd:
        known.reported = max(known.reported, _reported(row), key=number_of)
    if output < known.output:
        return
    stopped, model = message.stop_reason is not None, message.model
    speed, tier = _USUAL.get(usage.speed, usage.speed), _USUAL.get(usage.service_tier, usage.service_tier)
    geo = _USUAL.get(usage.inference_geo, usage.inference_geo)
    passes = _passes(usage) if usage.iterations else None
    if output == known.output:
        told = (stopped, hour, model, speed, geo, tier, passes)
        held = (known.stopped, known.cache_write_1h, known.model, known.speed, known.geo, known.tier, known.passes)
        if told == held:  # as nearly always
            known.offset = offset
            return
        if tie(*told) < tie(*held):
            return
    known.output, known.stopped, known.offset, known.model, known.passes = output, stopped, offset, model, passes
    known.cache_write_5m, known.cache_write_1h = five, hour
    known.speed, known.geo, known.tier = speed, geo, tier


def _passes(usage: UsageRow) -> list[Pass] | None:
    """The passes that the totals alone do not tell: an advisor's, and those of another model."""
    raw = bytes(usage.iterations)
    if b"advisor" not in raw and b"model" not in raw:  # nearly all repeat the totals, and are not worth decoding
        return None
    try:
        told = _decode_passes(raw) or []
    except REFUSALS:
        return None
    if not any(one.type == "advisor_message" or one.model is not None for one in told):
        return None
    return [
        Pass(
            one.type,
            one.model,
            one.input_tokens or 0,
            one.output_tokens or 0,
            *_split(one.cache_creation_input_tokens or 0, one.cache_creation or Writes()),
            one.cache_read_input_tokens or 0,
        )
        for one in told
    ]


def _reported(row: Row) -> str | None:
    told = bytes(row.cost_usd)
    return told.decode("ascii", "replace") if told not in (b"", b"null") else None
