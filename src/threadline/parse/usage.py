"""Read a transcript as sightings of messages: the input of accounting, at the speed of a byte search.

Only lines that contain a token count are decoded, and of those only what counts. Such a line contains `put_tokens"`,
because every counter's key ends that way (`input_tokens`, `output_tokens`, `cache_read_input_tokens`, ...) and no
JSON writer escapes letters in a key. A line that does not decode at once is read leniently, so that whatever
`entries` recovers is counted as well.

Decoding only these fields takes a third of the time of decoding whole entries.

`read_sightings_since` reads only the end of a transcript. Lines are almost in order of time: copies keep old times,
and parallel agents write whenever they finish. So it reads backwards until a block contains no time after `since`.

Web searches that the client performs are counted from their results: the API's own counter is 0 for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from threadline.errors import Error, Unreadable
from threadline.files import read_at
from threadline.home_files import open_transcript
from threadline.json_values import DECODE_ERRORS
from threadline.model.homes import Transcript
from threadline.model.names import AGENT_TOOLS
from threadline.model.places import strip_line
from threadline.model.times import parse_timestamp
from threadline.model.usage import (
    INLINE_AGENT,
    MAX_PLACEHOLDER_OUTPUT,
    MAX_PLACEHOLDER_TEXT,
    SYNTHETIC_MODEL,
    AgentResultUsage,
    Origin,
    Sighting,
    TokenCount,
    TranscriptSightings,
    UsagePass,
    lacks_final_usage,
    parse_amount,
    parse_token_count,
    split_cache_writes,
    tie_break_key,
)
from threadline.parse.lines import (
    MatchingLines,
    find_lines,
    find_lines_in_block,
    make_lines_decoder,
    read_first_lines,
)
from threadline.parse.recover import split_damaged_line

_NO_VALUE = Raw()


class ContentRow(Struct, gc=False):
    """A block of a reply: its kind, the tool call if it is one, and its content, not decoded."""

    type: str | None = None
    name: str | None = None
    id: str | None = None
    text: Raw = _NO_VALUE
    input: Raw = _NO_VALUE


class CacheWrites(Struct, gc=False):
    """Cache writes by lifetime."""

    ephemeral_5m_input_tokens: TokenCount | None = None
    ephemeral_1h_input_tokens: TokenCount | None = None


class ServerToolCounts(Struct, gc=False):
    """How often server-side tools were used."""

    web_search_requests: TokenCount | None = None


class UsageCounts(Struct, gc=False):
    """The token counts of one pass."""

    input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None
    cache_read_input_tokens: TokenCount | None = None
    cache_creation: CacheWrites | None = None
    output_tokens: TokenCount | None = None
    type: str | None = None
    model: str | None = None


class UsageRow(UsageCounts, gc=False):
    """A row's `usage`. The `Usage` of a decoded entry can be used instead: it has the same fields."""

    service_tier: str | None = None
    inference_geo: str | None = None
    server_tool_use: ServerToolCounts | None = None
    iterations: Raw = _NO_VALUE
    speed: str | None = None


class MessageRow(Struct, gc=False):
    """A row's `message`."""

    model: str | None = None
    id: str | None = None
    content: list[ContentRow] | str | None = None
    stop_reason: str | None = None
    usage: UsageRow | None = None


class RepeatedRow(Struct, gc=False, rename="camel"):
    """An agent's row inside a progress row."""

    type: str | None = None
    message: MessageRow | None = None
    timestamp: str | None = None
    request_id: str | None = None
    uuid: str | None = None


class ProgressRow(Struct, gc=False, rename="camel"):
    """The `data` of a progress row."""

    type: str | None = None
    agent_id: str | None = None
    message: RepeatedRow | None = None


class EntryRow(Struct, gc=False, rename="camel"):
    """A row with only the fields that accounting needs."""

    kind: str = field(default="", name="type")
    is_agent: bool | None = field(default=None, name="isSidechain")
    agent_id: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    request_id: str | None = None
    uuid: str | None = None
    timestamp: str | float | None = None
    message: MessageRow | None = None
    data: ProgressRow | None = None
    forked_from: Raw = _NO_VALUE
    attribution_skill: str | None = None
    attribution_agent: str | None = None
    cost_usd: Raw = field(default=_NO_VALUE, name="costUSD")
    agent_id_again: str | None = field(default=None, name="agent_id")
    agent_transcript_path: Raw = field(default=_NO_VALUE, name="agent_transcript_path")


class _TimeRow(Struct, gc=False):
    timestamp: str | float | None = None


# Other text that ends with a Z may not be a time, or may not sort like one.
_is_usual_time = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z"
).fullmatch
_LAST_DAY_OF_EACH_MONTH = "28"
_decode_rows_at_once = make_lines_decoder(EntryRow)
_decode_row = msgspec.json.Decoder(EntryRow).decode
_decode_time = msgspec.json.Decoder(_TimeRow).decode


def decode_rows(path: Path, matches: MatchingLines) -> Iterator[tuple[list[int], list[EntryRow]]]:
    """Yield the rows of the lines with their offsets: all at once, or line by line if that fails."""
    rows = _decode_rows_at_once(matches.lines) if matches.lines else []
    if rows is not None:
        yield matches.offsets, rows
        return
    for offset, line in zip(matches.offsets, matches.lines, strict=True):
        line_rows = list(_decode_single_line(path, offset, line))
        yield [offset] * len(line_rows), line_rows


def find_first_time(lines: Iterable[bytes]) -> str:
    """Return the first timestamp in the lines, or an empty string."""
    for line in lines:
        try:
            timestamp = _decode_time(line).timestamp
        except DECODE_ERRORS:
            continue
        if time := normalize_time(timestamp):
            return time
    return ""


def normalize_time(timestamp: str | float | None) -> str:
    """Return a timestamp as text that sorts by time, or an empty string if it is not a time."""
    if (
        isinstance(timestamp, str)
        and _is_usual_time(timestamp)
        and (timestamp[8:10] <= _LAST_DAY_OF_EACH_MONTH or parse_timestamp(timestamp) is not None)
    ):
        return timestamp
    moment = parse_timestamp(timestamp)
    return moment.isoformat() if moment is not None else ""


def _decode_single_line(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """Yield the rows of a line that did not decode with its neighbours: usually one, several if lines were glued."""
    try:
        yield _decode_row(line)
    except DECODE_ERRORS:
        yield from recover_rows(path, offset, line)


def recover_rows(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """Yield the rows of a damaged line: one for each object in it, or else whatever the lenient reader recovers."""
    try:
        yield from [
            _decode_row(strip_line(line[span.start : span.end]))
            for span in split_damaged_line(line)
            if span.lost is None
        ]
    except DECODE_ERRORS:
        from threadline.parse.usage_recovery import rows_from_lenient_entries  # noqa: PLC0415 - loads all entry structs

        yield from rows_from_lenient_entries(path, offset, line)


class _ResultBlock(Struct, gc=False):
    tool_use_id: str | None = None
    is_error: bool | None = None


class _ResultMessage(Struct, gc=False):
    content: list[_ResultBlock] | None = None


class _ResultRow(Struct, gc=False, rename="camel"):
    message: _ResultMessage | None = None
    tool_use_result: Raw = Raw()


class _SearchResult(Struct, gc=False, rename="camel"):
    search_count: TokenCount | None = None


class _AgentResult(Struct, gc=False):
    agent_id: Any = field(default=None, name="agentId")
    other_agent_id: Any = field(default=None, name="agent_id")
    total_tokens: Any = field(default=None, name="totalTokens")


_RESULT_NEEDLE = b'"tool_use_id"'
_MAX_SEPARATE_SEARCHES = 16
_decode_result_row = msgspec.json.Decoder(_ResultRow).decode
_decode_search_result = msgspec.json.Decoder(_SearchResult).decode
_decode_agent_result = msgspec.json.Decoder(_AgentResult).decode


def count_finished_searches(matches: MatchingLines, waiting: Mapping[str, Sighting]) -> Iterator[tuple[str, int]]:
    """Yield the calls whose results are in a block, and the number of searches of each.

    The caller may remove a call from `waiting` once it has been yielded.
    """
    if len(waiting) > _MAX_SEPARATE_SEARCHES:  # one search per call would read the block too often
        for line in find_lines_in_block(matches.block, _RESULT_NEEDLE):
            yield from ((call, number) for call, number in _iter_results(line) if call in waiting)
        return
    for call, sighting in list(waiting.items()):
        number = count_searches(matches.block, call, max(0, sighting.offsets[0] - matches.start))
        if number is not None:
            yield call, number


def count_searches(block: bytes, call: str, start: int = 0) -> int | None:
    """Return how many searches a call made: the number in its result, or 1 if it succeeded without one.

    Returns None if the result is not in the block. `start` is where to begin searching: at the call itself, if that is
    in the block.
    """
    lines = find_lines_in_block(block, call.encode(), start)
    return next((number for line in lines for result_call, number in _iter_results(line) if result_call == call), None)


def find_agent_results(matches: MatchingLines, waiting: Mapping[str, AgentResultUsage]) -> Iterator[str]:
    """Fill in the agents that results in a block name; yield the calls that have a result there."""
    if len(waiting) > _MAX_SEPARATE_SEARCHES:
        lines = find_lines_in_block(matches.block, _RESULT_NEEDLE)
        yield from [call for line in lines for call in _read_agent_result(line, waiting)]
        return
    for call, started in list(waiting.items()):
        lines = find_lines_in_block(matches.block, call.encode(), max(0, started.offset - matches.start))
        yield from next((calls for line in lines if (calls := _read_agent_result(line, {call: started}))), [])


def _read_agent_result(line: bytes, waiting: Mapping[str, AgentResultUsage]) -> list[str]:
    try:
        row = _decode_result_row(line)
        blocks = (row.message.content or ()) if row.message is not None else ()
        calls = [block.tool_use_id for block in blocks if block.tool_use_id in waiting]
        if len(calls) == 1 and bytes(row.tool_use_result)[:1] == b"{":
            result = _decode_agent_result(row.tool_use_result)
            started = waiting[calls[0] or ""]
            agent = result.agent_id or result.other_agent_id
            started.agent, started.tokens = (
                agent if isinstance(agent, str) else "",
                parse_token_count(result.total_tokens),
            )
    except DECODE_ERRORS:
        return []
    return [call for call in calls if call is not None]


def _iter_results(line: bytes) -> Iterator[tuple[str, int]]:
    try:
        row = _decode_result_row(line)
    except DECODE_ERRORS:
        return
    for result in (row.message.content or ()) if row.message is not None else ():
        if result.tool_use_id:
            yield result.tool_use_id, 0 if result.is_error else _read_search_count(row.tool_use_result)


def _read_search_count(result: Raw) -> int:
    if bytes(result)[:1] == b'"':  # a string: an error message; old versions do not set `is_error` for all errors
        return 0
    try:
        count = _decode_search_result(result).search_count if bytes(result) else None
    except DECODE_ERRORS:
        count = None
    return 1 if count is None else count


USAGE_NEEDLE = b'put_tokens"'
"""Every line with a token count contains this."""
_FIRST_LINES_SIZE = 16 * 1024


def _iter_first_lines(block: bytes) -> Iterator[bytes]:
    """Yield the first lines of a block one by one: usually the very first has a timestamp."""
    start = 0
    while start < _FIRST_LINES_SIZE and (end := block.find(b"\n", start) + 1):
        yield block[start:end]
        start = end


def read_sightings(transcript: Transcript, *, calls: bool = True) -> TranscriptSightings:
    """Return every message whose usage a transcript contains. If the file cannot be read, `problem` says why.

    Without `calls`, tool calls are not collected. That saves a tenth of the time, and few reports need them.
    """
    collector = SightingCollector(transcript, calls=calls)
    first: Iterable[bytes] = ()
    skipped = 0
    try:
        for matches in find_lines(transcript.path, USAGE_NEEDLE):
            first = first or _iter_first_lines(matches.block)
            skipped += matches.skipped_bytes
            collector.add(matches)
        sightings = collector.result(first)
    except Error as error:
        return TranscriptSightings("", collector.origins, collector.sightings, str(error))
    if skipped:
        sightings.problem = f"{str(transcript.path)!r} has {skipped:,} bytes in lines that are too long to be read."
    return sightings


WEB_SEARCH_TOOL = "WebSearch"
_decode_iterations = msgspec.json.Decoder(list[UsageCounts] | None).decode
_SightingKey = tuple[str, str | None, str | None, int, int, int, bool]
# Appending to a string copies it. If one id is on every row of a long transcript, that would take minutes.
_MAX_ROWS_TEXT = 8 * 1024
_MANY_CALLS = 64
# The speed, region and tier of nearly every row. They do not change the price, so they are not stored each time.
_DEFAULT_VALUES: dict[str | None, None] = dict.fromkeys(("standard", "default", "not_available", "global", ""))


def _session_in_path(transcript: Transcript) -> str | None:
    """The session that a transcript's path names; None for an agent's transcript beside the sessions.

    Its entries name the session, and whoever found it may have set that. Only the path decides, so that every way to
    find a transcript gives the same answer.
    """
    if not transcript.is_agent:
        return transcript.path.stem
    return transcript.session if transcript.session in transcript.path.parts else None


class SightingCollector:
    """Collects the sightings of one transcript, row by row."""

    def __init__(self, transcript: Transcript, *, calls: bool = True) -> None:
        self.transcript = transcript
        self._path_session = _session_in_path(transcript)
        self._with_calls = calls
        self._by_key: dict[_SightingKey, Sighting] = {}
        self.origins: list[Origin] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._full: list[Sighting] = []
        self._search_calls: set[tuple[str, str]] = set()
        self._waiting_searches: dict[str, Sighting] = {}
        self._search_counts: dict[str, int] = {}
        self._agents: dict[str, AgentResultUsage] = {}
        self._waiting_agents: dict[str, AgentResultUsage] = {}
        self._with_long_content: set[int] = set()
        self._many_calls: dict[int, set[str]] = {}
        self._time = ""

    def add(self, matches: MatchingLines) -> None:
        """Add the next block of the transcript."""
        for offsets, rows in decode_rows(self.transcript.path, matches):
            self.add_rows(offsets, rows)
        self.add_results(matches)

    @property
    def has_waiting_agents(self) -> bool:
        """Whether the result of a call that starts an agent has not been read yet."""
        return bool(self._waiting_agents)

    def add_results(self, matches: MatchingLines) -> None:
        """Add the results in a block of web searches, and of calls that start agents."""
        if self._waiting_searches:
            self.count_searches(matches)
        if self._waiting_agents:
            for call in find_agent_results(matches, self._waiting_agents):
                del self._waiting_agents[call]

    def result(self, first: Iterable[bytes]) -> TranscriptSightings:
        """Return everything collected. `first` are the first lines of the transcript, which contain its start time."""
        sightings = self.sightings
        self._mark_partial(sightings)
        first_time = (find_first_time(first) or next((s.time for s in sightings if s.time), "")) if sightings else ""
        agents = [started for started in self._agents.values() if started.agent]
        return TranscriptSightings(first_time, self.origins, sightings, agents=agents)

    @property
    def sightings(self) -> list[Sighting]:
        """Every sighting so far."""
        return [*self._full, *self._by_key.values()]

    def has_long_content(self, sighting: Sighting) -> bool:
        """Whether a row of a sighting has more text than its output token count could produce."""
        return id(sighting) in self._with_long_content

    @property
    def waiting(self) -> list[str]:
        """The web search calls whose results have not been read yet."""
        return list(self._waiting_searches)

    def add_rows(self, offsets: list[int], rows: list[EntryRow]) -> None:
        """Add rows. Half of all rows only repeat the row before, so that path is kept short."""
        by_key, owner, own_session = self._by_key, self.transcript.agent, self.transcript.session
        for offset, outer in zip(offsets, rows, strict=True):
            row, message, repeated = outer, outer.message, False
            if row.kind != "assistant":
                if row.data is None or row.kind != "progress":
                    continue
                row, message, repeated = *_unwrap_progress(row), True
            if message is None or (usage := message.usage) is None or message.model == SYNTHETIC_MODEL:
                continue
            split, flat = usage.cache_creation, usage.cache_creation_input_tokens or 0
            five, hour = (flat, 0) if split is None else split_writes(flat, split)
            sent, read = usage.input_tokens or 0, usage.cache_read_input_tokens or 0
            if not (sent or read or usage.output_tokens) and not _has_counts(usage):
                continue
            key = message.id or row.request_id or row.uuid or f"{self.transcript.path}@{offset}"
            agent = owner or row.agent_id or (_second_agent_id(row) if row.agent_id_again else None)
            if agent is None and row.is_agent:
                agent = INLINE_AGENT
            if repeated:  # what an agent's transcript repeats is another agent's
                agent = row.agent_id or agent
            group = (key, own_session or row.session_id, agent, sent, five + hour, read, repeated)
            sighting = by_key.get(group)
            if sighting is None or len(sighting.rows) > _MAX_ROWS_TEXT:
                sighting = self._new_sighting(offset, row, message, usage, group, five, hour)
            else:
                _merge_row(sighting, offset, row, message, usage, five, hour)
            if message.content:
                self._add_content(sighting, message.content, offset, row.timestamp)

    def _new_sighting(  # noqa: PLR0917 - called for every message; keyword arguments would double its time
        self,
        offset: int,
        row: EntryRow,
        message: MessageRow,
        usage: UsageRow,
        group: _SightingKey,
        five: int,
        hour: int,
    ) -> Sighting:
        if group in self._by_key:
            self._full.append(self._by_key[group])
        key, session, agent, sent, writes, read, repeated = group
        time = normalize_time(row.timestamp)
        if time:
            self._time = time
        forked_from = row.forked_from
        is_foreign = row.session_id is not None and self._path_session not in {None, row.session_id}
        shared = (
            session,
            agent,
            row.version,
            row.git_branch,
            row.is_agent,
            is_foreign or (bool(forked_from) and bytes(forked_from) != b"null"),
            row.attribution_skill,
            row.attribution_agent,
        )
        origin = self._numbers.get(shared)
        if origin is None:
            origin = self._numbers[shared] = len(self.origins)
            self.origins.append(Origin(*shared))
        served = usage.server_tool_use
        # Positional, in the order of the fields: keyword arguments would double the time.
        sighting = self._by_key[group] = Sighting(
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
            f"{offset} {row.uuid if row.uuid and ' ' not in row.uuid else _as_word(row.uuid)}",
            [],
            False,
            (served.web_search_requests or 0) if served is not None else 0,
            _DEFAULT_VALUES.get(usage.speed, usage.speed),
            _DEFAULT_VALUES.get(usage.inference_geo, usage.inference_geo),
            _DEFAULT_VALUES.get(usage.service_tier, usage.service_tier),
            repeated,
            _reported_cost(row) if row.cost_usd else None,
            _extra_passes(usage) if usage.iterations else None,
            not time,
        )
        return sighting

    def _add_content(
        self, sighting: Sighting, content: list[ContentRow] | str, offset: int, time: str | float | None
    ) -> None:
        if (
            sighting.output <= MAX_PLACEHOLDER_OUTPUT
            and id(sighting) not in self._with_long_content
            and _longest_content(content) > MAX_PLACEHOLDER_TEXT
        ):
            self._with_long_content.add(id(sighting))
        for block in content if isinstance(content, list) else ():
            if block.type != "tool_use":
                continue
            if block.name in AGENT_TOOLS and block.id and block.id not in self._agents:
                started = AgentResultUsage("", block.id, offset, normalize_time(time))
                self._agents[block.id] = self._waiting_agents[block.id] = started
            if self._with_calls or block.name == WEB_SEARCH_TOOL:
                self._add_call(sighting, block)

    def _add_call(self, sighting: Sighting, block: ContentRow) -> None:
        call = f"{_as_word(block.id)} {block.name or ''}"
        if not block.id or not self._has_call(sighting, call):
            sighting.calls.append(call)
        if block.name == WEB_SEARCH_TOOL and block.id and (sighting.key, block.id) not in self._search_calls:
            self._search_calls.add((sighting.key, block.id))
            self._waiting_searches[block.id] = sighting

    def _has_call(self, sighting: Sighting, call: str) -> bool:
        """Whether a sighting has a call already; otherwise remember it. A set is used if there are many calls."""
        if len(sighting.calls) < _MANY_CALLS:
            return call in sighting.calls
        calls = self._many_calls.get(id(sighting))
        if calls is None:
            calls = self._many_calls[id(sighting)] = set(sighting.calls)
        if call in calls:
            return True
        calls.add(call)
        return False

    def _mark_partial(self, sightings: list[Sighting]) -> None:
        """Mark the messages whose final output was never written."""
        lacks_final = [lacks_final_usage(origin.version) for origin in self.origins]
        for sighting in sightings:
            if not sighting.stopped and lacks_final[sighting.origin_number]:
                sighting.partial = True
            elif sighting.output <= MAX_PLACEHOLDER_OUTPUT:
                sighting.partial = id(sighting) in self._with_long_content

    def count_searches(self, matches: MatchingLines) -> None:
        """Count the web searches of the client. Only their results have the number, and those come after the call."""
        for call, number in count_finished_searches(matches, self._waiting_searches):
            sighting = self._waiting_searches.pop(call)
            self._search_counts[sighting.key] = self._search_counts.get(sighting.key, 0) + number
            sighting.web_searches = max(sighting.web_searches, self._search_counts[sighting.key])


def _as_word(id_: str | None) -> str:
    """Return an id without spaces: rows and calls are stored as words separated by spaces."""
    return id_.replace(" ", "_") if id_ else ""


def _longest_content(content: list[ContentRow] | str) -> int:
    """The length of a row's longest text or tool input, which count as output."""
    if isinstance(content, str):
        return len(content)
    return max(len(memoryview(block.text if block.type == "text" else block.input)) for block in content)


def _second_agent_id(row: EntryRow) -> str | None:
    """Return the `agent_id` of a row, unless it names another agent, by its transcript: see `ChainEntry`."""
    names_other = not row.is_agent and bytes(row.agent_transcript_path) not in (b"", b"null")
    return None if names_other else row.agent_id_again


def _unwrap_progress(row: EntryRow) -> tuple[EntryRow, MessageRow | None]:
    """Return the agent's row inside a progress row, with the session of the progress row."""
    data = row.data
    repeated = data.message if data is not None else None
    if data is None or repeated is None or data.type != "agent_progress":
        return row, None
    unwrapped = replace(
        row,
        agent_id=data.agent_id,
        uuid=repeated.uuid or row.uuid,
        request_id=repeated.request_id,
        timestamp=repeated.timestamp or row.timestamp,
        is_agent=True,
    )
    return unwrapped, repeated.message


def _has_counts(usage: UsageRow) -> bool:
    return not (
        usage.output_tokens is None
        and usage.input_tokens is None
        and usage.cache_creation_input_tokens is None
        and usage.cache_read_input_tokens is None
        and (usage.cache_creation is None or usage.cache_creation == CacheWrites())
    )


def split_writes(flat: int, split: CacheWrites) -> tuple[int, int]:
    """Return cache writes by lifetime, as `split_cache_writes` does."""
    return split_cache_writes(flat, split.ephemeral_5m_input_tokens or 0, split.ephemeral_1h_input_tokens or 0)


def _merge_row(  # noqa: PLR0917 - as for `_new_sighting`
    sighting: Sighting, offset: int, row: EntryRow, message: MessageRow, usage: UsageRow, five: int, hour: int
) -> None:
    """Add another row of a message. The output count grows while a message is streamed, so the largest is kept."""
    sighting.rows += f" {offset} {row.uuid if row.uuid and ' ' not in row.uuid else _as_word(row.uuid)}"
    served, output = usage.server_tool_use, usage.output_tokens or 0
    if served is not None and served.web_search_requests:
        sighting.web_searches = max(sighting.web_searches, served.web_search_requests)
    if row.cost_usd:
        sighting.reported = max(sighting.reported, _reported_cost(row), key=parse_amount)
    if output < sighting.output:
        return
    stopped, model = message.stop_reason is not None, message.model
    speed, tier = (
        _DEFAULT_VALUES.get(usage.speed, usage.speed),
        _DEFAULT_VALUES.get(usage.service_tier, usage.service_tier),
    )
    geo = _DEFAULT_VALUES.get(usage.inference_geo, usage.inference_geo)
    passes = _extra_passes(usage) if usage.iterations else None
    if output == sighting.output:
        new = (stopped, hour, model, speed, geo, tier, passes)
        current = (
            sighting.stopped,
            sighting.cache_write_1h,
            sighting.model,
            sighting.speed,
            sighting.geo,
            sighting.tier,
            sighting.passes,
        )
        if new == current:  # as nearly always
            sighting.offset = offset
            return
        if tie_break_key(*new) < tie_break_key(*current):
            return
    sighting.output, sighting.stopped, sighting.offset, sighting.model, sighting.passes = (
        output,
        stopped,
        offset,
        model,
        passes,
    )
    sighting.cache_write_5m, sighting.cache_write_1h = five, hour
    sighting.speed, sighting.geo, sighting.tier = speed, geo, tier


def _extra_passes(usage: UsageRow) -> list[UsagePass] | None:
    """The passes that are not part of the totals: an advisor's, and those of another model."""
    passes: Sequence[UsageCounts]
    if isinstance(usage.iterations, list):
        passes = usage.iterations
    else:
        raw = bytes(usage.iterations)
        if b"advisor" not in raw and b"model" not in raw:  # nearly all only repeat the totals
            return None
        try:
            passes = _decode_iterations(raw) or []
        except DECODE_ERRORS:
            return None
    if not any(pass_.type == "advisor_message" or pass_.model is not None for pass_ in passes):
        return None
    return [
        UsagePass(
            pass_.type,
            pass_.model,
            pass_.input_tokens or 0,
            pass_.output_tokens or 0,
            *split_writes(pass_.cache_creation_input_tokens or 0, pass_.cache_creation or CacheWrites()),
            pass_.cache_read_input_tokens or 0,
        )
        for pass_ in passes
    ]


def _reported_cost(row: EntryRow) -> str | None:
    text = bytes(row.cost_usd)
    return text.decode("ascii", "replace") if text not in (b"", b"null") else None


_TAIL_BLOCK_SIZE = 256 * 1024
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]{1,40})"')
_COMPACT_BOUNDARY = re.compile(rb'"subtype"\s*:\s*"compact_boundary"')
# Up to this size, reading the file takes no longer than searching for where to begin.
_SMALL_FILE_SIZE = 1024 * 1024


def read_sightings_since(transcript: Transcript, since: str) -> TranscriptSightings:
    """Return the messages since a time (`2026-11-15T00:00:00`), and perhaps earlier ones."""
    if transcript.size <= _SMALL_FILE_SIZE:
        return read_sightings(transcript)
    collector = SightingCollector(transcript)
    try:
        for matches in _find_lines_since(transcript.path, since):
            collector.add(matches)
        return collector.result(read_first_lines(transcript.path))
    except Error as error:
        return TranscriptSightings("", collector.origins, collector.sightings, str(error))


def is_compacted_at_end(path: Path) -> bool:
    """Whether a compaction came after the last request: the context is then smaller than that request's prompt."""
    try:
        descriptor = open_transcript(path)
    except Error:
        return False
    try:
        size = os.fstat(descriptor).st_size
        end = read_at(descriptor, max(0, size - _TAIL_BLOCK_SIZE), size)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    *_, last = 0, *(match.end() for match in _COMPACT_BOUNDARY.finditer(end))
    return last > 0 and end.find(USAGE_NEEDLE, last) < 0


def _find_lines_since(path: Path, since: str) -> Iterator[MatchingLines]:
    descriptor = open_transcript(path)
    try:
        start = _find_start(descriptor, since)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)
    yield from find_lines(path, USAGE_NEEDLE, offset=start)


def _find_start(descriptor: int, since: str) -> int:
    """Return the offset of a line before which everything is older than `since`, searching backwards by blocks."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _TAIL_BLOCK_SIZE)
        block = read_at(descriptor, start, end)
        first = block.find(b"\n") + 1
        if start and first and _is_block_before(block, since):
            return start + first
        end = start
    return 0


def _is_block_before(block: bytes, since: str) -> bool:
    """Whether a block contains times, and all are before `since`; a time in an unusual format could be any time."""
    times = {match[1] for match in _TIMESTAMP.finditer(block)}
    limit = since.encode()
    return bool(times) and all(time.endswith(b"Z") and time < limit for time in times)
