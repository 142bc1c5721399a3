"""Read a transcript as sightings of messages: the input of accounting, at the speed of a byte search.

Only lines that contain a token count are decoded, and of those only what counts. Such a line contains `put_tokens"`,
because every counter's key ends that way (`input_tokens`, `output_tokens`, `cache_read_input_tokens`, ...) and no
JSON writer escapes letters in a key. A line that does not decode at once is read leniently, so that whatever
`entries` recovers is counted as well.

`read_sightings_since` reads only the end of a transcript. Lines are almost in order of time: copies keep old times,
and parallel agents write as they come. So it reads backwards until a whole block names no time after the given one.

This takes a third of the time that decoding the whole row takes. Lines that do not decode at once go through
`recover`, so that whatever `entries` recovers is counted as well.

Web searches made by the client are counted from their results: the API's own counter is 0 for those.
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
from threadline.files import open_transcript
from threadline.model.entries import AssistantEntry, Entry, ProgressEntry
from threadline.model.homes import Transcript
from threadline.model.places import NOWHERE, strip_line
from threadline.model.times import parse_timestamp
from threadline.model.usage import (
    MAX_PLACEHOLDER_OUTPUT,
    MAX_PLACEHOLDER_TEXT,
    SYNTHETIC_MODEL,
    Origin,
    Sighting,
    TokenCount,
    TranscriptSightings,
    UsagePass,
    lacks_final_usage,
    parse_amount,
    split_cache_writes,
    tie_break_key,
)
from threadline.parse.lines import (
    DECODE_ERRORS,
    Chunk,
    MatchingLines,
    find_lines,
    find_lines_in_block,
    make_lines_decoder,
    read_first_lines,
)
from threadline.parse.reader import TranscriptReader
from threadline.parse.recover import split_damaged_line

_NO_VALUE = Raw()


class ContentRow(Struct, gc=False):
    """A block of a reply: its kind, the call that it is, and what it says without being made into text."""

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
    """Requests to the API's own tools."""

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
    """A row's `usage`. The `Usage` of a decoded entry may take its place: it has the same fields."""

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
    """An agent's row as progress repeats it."""

    type: str | None = None
    message: MessageRow | None = None
    timestamp: str | None = None
    request_id: str | None = None
    uuid: str | None = None


class ProgressRow(Struct, gc=False, rename="camel"):
    """What a progress row tells."""

    type: str | None = None
    agent_id: str | None = None
    message: RepeatedRow | None = None


class EntryRow(Struct, gc=False, rename="camel"):
    """A row as accounting sees it."""

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


class _TimeRow(Struct, gc=False):
    timestamp: str | float | None = None


# Whatever else ends with a Z may be no time at all, or sort as none does.
_is_usual_time = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9]T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z"
).fullmatch
_decode_rows_at_once = make_lines_decoder(EntryRow)
_decode_row = msgspec.json.Decoder(EntryRow).decode
_decode_time = msgspec.json.Decoder(_TimeRow).decode


def decode_rows(path: Path, found: MatchingLines) -> Iterator[tuple[list[int], list[EntryRow]]]:
    """The rows that lines hold, with their offsets; line by line where they do not decode at once."""
    decoded = _decode_rows_at_once(found.lines) if found.lines else []
    if decoded is not None:
        yield found.offsets, decoded
        return
    for offset, line in zip(found.offsets, found.lines, strict=True):
        closer = list(_decode_single_line(path, offset, line))
        yield [offset] * len(closer), closer


def find_first_time(lines: Iterable[bytes]) -> str:
    """The first time that lines name; empty where they name none."""
    for line in lines:
        try:
            written = _decode_time(line).timestamp
        except DECODE_ERRORS:
            continue
        if told := normalize_time(written):
            return told
    return ""


def normalize_time(written: str | float | None) -> str:
    """A time as text that sorts as time does; empty where it is none."""
    if isinstance(written, str) and _is_usual_time(written):
        return written
    moment = parse_timestamp(written)
    return moment.isoformat() if moment is not None else ""


def _decode_single_line(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """The rows of a line that did not decode with its neighbours: one as a rule, more where lines were glued."""
    try:
        yield _decode_row(line)
    except DECODE_ERRORS:
        yield from recover_rows(path, offset, line)


_decode_recovered_row = msgspec.json.Decoder(EntryRow).decode


def recover_rows(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """The rows of a line: those of its objects where lines were glued, and else what can be made to fit."""
    try:
        yield from [
            _decode_recovered_row(strip_line(line[span.start : span.end]))
            for span in split_damaged_line(line)
            if span.lost is None
        ]
    except DECODE_ERRORS:
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


_RESULT_NEEDLE = b'"tool_use_id"'
_MAX_SEPARATE_SEARCHES = 16
_decode_result_row = msgspec.json.Decoder(_ResultRow).decode
_decode_search_result = msgspec.json.Decoder(_SearchResult).decode


def count_finished_searches(found: MatchingLines, waiting: Mapping[str, Sighting]) -> Iterator[tuple[str, int]]:
    """Calls whose results are in a block, and how many searches each made; `waiting` may lose those that were given."""
    if len(waiting) > _MAX_SEPARATE_SEARCHES:  # looking for each would take as long as all of them together, each time
        for line in find_lines_in_block(found.block, _RESULT_NEEDLE):
            yield from ((call, number) for call, number in _iter_results(line) if call in waiting)
        return
    for call, known in list(waiting.items()):
        number = count_searches(found.block, call, max(0, known.offsets[0] - found.begins))
        if number is not None:
            yield call, number


def count_searches(block: bytes, call: str, start: int = 0) -> int | None:
    """How many searches a call made: what its result says, or one if it succeeded. None where that is not in the block.

    `start` is where to begin: the call itself, if that is in the block.
    """
    lines = find_lines_in_block(block, call.encode(), start)
    return next((number for line in lines for told, number in _iter_results(line) if told == call), None)


def _iter_results(line: bytes) -> Iterator[tuple[str, int]]:
    try:
        row = _decode_result_row(line)
    except DECODE_ERRORS:
        return
    for result in (row.message.content or ()) if row.message is not None else ():
        if result.tool_use_id:
            yield result.tool_use_id, 0 if result.is_error else _read_search_count(row.tool_use_result)


def _read_search_count(result: Raw) -> int:
    if bytes(result)[:1] == b'"':  # a text: that the call went wrong in a way that old versions do not mark
        return 0
    try:
        told = _decode_search_result(result).search_count if bytes(result) else None
    except DECODE_ERRORS:
        told = None
    return 1 if told is None else told


_usage_recovery_decode_row = msgspec.json.Decoder(EntryRow).decode


def rows_from_lenient_entries(path: Path, offset: int, line: bytes) -> Iterator[EntryRow]:
    """The rows of a line as the forgiving reader makes them."""
    for entry in TranscriptReader(str(path)).decode_line_by_line(Chunk([line], offset), 0):
        row = _row_from_entry(entry)
        if row is not None:
            yield row


def _row_from_entry(entry: Entry) -> EntryRow | None:
    if not isinstance(entry, AssistantEntry | ProgressEntry):
        return None
    try:
        told = _replace_lone_surrogates(msgspec.to_builtins(replace(entry, line=NOWHERE)))
        for message in (told.get("message"), (told.get("data") or {}).get("message", {}).get("message")):
            if message and isinstance(message.get("content"), list):
                message["content"] = [block for block in message["content"] if _is_valid_block(block)]
        return _usage_recovery_decode_row(msgspec.json.encode(told))
    except (*DECODE_ERRORS, TypeError, AttributeError):
        return None


def _is_valid_block(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name, ""), str) for name in ("type", "name", "id"))


def _replace_lone_surrogates(value: Any) -> Any:
    """A value that can be written again: half of a character, which the forgiving reader keeps, cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replace_lone_surrogates(key): _replace_lone_surrogates(one) for key, one in value.items()}
    return [_replace_lone_surrogates(one) for one in value] if isinstance(value, list) else value


USAGE_NEEDLE = b'put_tokens"'
"""What every line with a token count holds."""
_FIRST_LINES_SIZE = 16 * 1024


def _iter_first_lines(block: bytes) -> Iterator[bytes]:
    """The first lines of a block, one by one: the first of all mostly tells what is wanted."""
    start = 0
    while start < _FIRST_LINES_SIZE and (end := block.find(b"\n", start) + 1):
        yield block[start:end]
        start = end


def read_sightings(transcript: Transcript, *, calls: bool = True) -> TranscriptSightings:
    """Every message that a transcript tells the usage of. Refusals of the machine become a problem.

    Without `calls`, it is not told which tools a message calls: a tenth of the time, and few reports ask for it.
    """
    gathering = SightingCollector(transcript, calls=calls)
    first: Iterable[bytes] = ()
    passed = 0
    try:
        for found in find_lines(transcript.path, USAGE_NEEDLE):
            first = first or _iter_first_lines(found.block)
            passed += found.skipped_bytes
            gathering.add(found)
        seen = gathering.seen(first)
    except Error as error:
        return TranscriptSightings("", gathering.origins, gathering.sightings, str(error))
    if passed:
        seen.problem = f"{str(transcript.path)!r} has {passed:,} bytes in lines that are too long to be read."
    return seen


WEB_SEARCH_TOOL = "WebSearch"
_decode_iterations = msgspec.json.Decoder(list[UsageCounts] | None).decode
_SightingKey = tuple[str, str | None, str | None, int, int, int, bool]
# Text grows by being copied: an id that is on every row of a long transcript would have it copied for minutes.
_MAX_ROWS_TEXT = 8 * 1024
_MANY_CALLS = 64
# What nearly every row says of speed, place and tier, and what changes no price: not kept a hundred thousand times.
_DEFAULT_VALUES: dict[str | None, None] = dict.fromkeys(("standard", "default", "not_available", "global", ""))


class SightingCollector:
    """The sightings of one transcript, while its rows are gone through."""

    def __init__(self, transcript: Transcript, *, calls: bool = True) -> None:
        self.transcript = transcript
        self._with_calls = calls
        self.found: dict[_SightingKey, Sighting] = {}
        self.origins: list[Origin] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._full: list[Sighting] = []
        self._searches: set[tuple[str, str]] = set()
        self._searching: dict[str, Sighting] = {}
        self._searched: dict[str, int] = {}
        self._telling: set[int] = set()
        self._many_calls: dict[int, set[str]] = {}
        self._time = ""

    def add(self, found: MatchingLines) -> None:
        """One more block of the transcript."""
        for offsets, rows in decode_rows(self.transcript.path, found):
            self.add_rows(offsets, rows)
        if self._searching:
            self.count_searches(found)

    def seen(self, first: Iterable[bytes]) -> TranscriptSightings:
        """All that was gathered; `first` are the first lines of the transcript, which tell when it began."""
        every = self.sightings
        self._mark_partial(every)
        began = (find_first_time(first) or next((one.time for one in every if one.time), "")) if every else ""
        return TranscriptSightings(began, self.origins, every)

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

    def add_rows(self, offsets: list[int], rows: list[EntryRow]) -> None:
        """Add rows. Half of all rows only repeat the row before, so the way to those is short."""
        found, owner = self.found, self.transcript.agent
        for offset, given in zip(offsets, rows, strict=True):
            row, message, repeated = given, given.message, False
            if row.kind != "assistant":
                if row.data is None or row.kind != "progress":
                    continue
                row, message, repeated = *_unwrap_progress(row), True
            if message is None or (usage := message.usage) is None or message.model == SYNTHETIC_MODEL:
                continue
            split, flat = usage.cache_creation, usage.cache_creation_input_tokens or 0
            five, hour = (flat, 0) if split is None else _split_writes(flat, split)
            sent, read = usage.input_tokens or 0, usage.cache_read_input_tokens or 0
            if not (sent or read or usage.output_tokens) and not _has_counts(usage):
                continue
            key = message.id or row.request_id or row.uuid or f"{self.transcript.path}@{offset}"
            agent = row.agent_id or owner or ("inline" if row.is_agent else None)
            group = (key, row.session_id, agent, sent, five + hour, read, repeated)
            known = found.get(group)
            if known is None or len(known.rows) > _MAX_ROWS_TEXT:
                known = self._new(offset, row, message, usage, group, five, hour)
            else:
                _merge_row(known, offset, row, message, usage, five, hour)
            if message.content:
                self._content(known, message.content)

    def _new(  # noqa: PLR0917 - on the path of every message, where naming arguments takes as long as the rest
        self,
        offset: int,
        row: EntryRow,
        message: MessageRow,
        usage: UsageRow,
        group: _SightingKey,
        five: int,
        hour: int,
    ) -> Sighting:
        if group in self.found:
            self._full.append(self.found[group])
        key, named, agent, sent, writes, read, repeated = group
        session = named or self.transcript.session
        time = normalize_time(row.timestamp)
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
        return made

    def _content(self, known: Sighting, content: list[ContentRow] | str) -> None:
        if (
            known.output <= MAX_PLACEHOLDER_OUTPUT
            and id(known) not in self._telling
            and _longest_content(content) > MAX_PLACEHOLDER_TEXT
        ):
            self._telling.add(id(known))
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use" and (self._with_calls or block.name == WEB_SEARCH_TOOL):
                self._call(known, block)

    def _call(self, known: Sighting, block: ContentRow) -> None:
        call = f"{_as_word(block.id)} {block.name or ''}"
        if not block.id or not self._is_known(call, known):
            known.calls.append(call)
        if block.name == WEB_SEARCH_TOOL and block.id and (known.key, block.id) not in self._searches:
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
        early = [lacks_final_usage(origin.version) for origin in self.origins]
        for known in every:
            if not known.stopped and early[known.origin_number]:
                known.partial = True
            elif known.output <= MAX_PLACEHOLDER_OUTPUT:
                known.partial = id(known) in self._telling

    def count_searches(self, found: MatchingLines) -> None:
        """Web searches that the client makes are known from their results alone; those come after the call."""
        for call, number in count_finished_searches(found, self._searching):
            known = self._searching.pop(call)
            self._searched[known.key] = self._searched.get(known.key, 0) + number
            known.web_searches = max(known.web_searches, self._searched[known.key])


def _as_word(id_: str | None) -> str:
    """An id as one word, for rows and calls are kept as words: one that somebody made up with spaces loses them."""
    return id_.replace(" ", "_") if id_ else ""


def _longest_content(content: list[ContentRow] | str) -> int:
    """How much a row says, of what output counts: its longest text or call."""
    if isinstance(content, str):
        return len(content)
    return max(len(memoryview(block.text if block.type == "text" else block.input)) for block in content)


def _unwrap_progress(row: EntryRow) -> tuple[EntryRow, MessageRow | None]:
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


def _has_counts(usage: UsageRow) -> bool:
    return not (
        usage.output_tokens is None
        and usage.input_tokens is None
        and usage.cache_creation_input_tokens is None
        and usage.cache_read_input_tokens is None
        and (usage.cache_creation is None or usage.cache_creation == CacheWrites())
    )


def _split_writes(flat: int, split: CacheWrites) -> tuple[int, int]:
    return split_cache_writes(flat, split.ephemeral_5m_input_tokens or 0, split.ephemeral_1h_input_tokens or 0)


def _merge_row(  # noqa: PLR0917 - as above
    known: Sighting, offset: int, row: EntryRow, message: MessageRow, usage: UsageRow, five: int, hour: int
) -> None:
    """One more row of a message: its counts are taken if they tell more, for the output grows while it is written."""
    known.rows += f" {offset} {row.uuid if row.uuid and ' ' not in row.uuid else _as_word(row.uuid)}"
    served, output = usage.server_tool_use, usage.output_tokens or 0
    if served is not None and served.web_search_requests:
        known.web_searches = max(known.web_searches, served.web_search_requests)
    if row.cost_usd:
        known.reported = max(known.reported, _reported_cost(row), key=parse_amount)
    if output < known.output:
        return
    stopped, model = message.stop_reason is not None, message.model
    speed, tier = (
        _DEFAULT_VALUES.get(usage.speed, usage.speed),
        _DEFAULT_VALUES.get(usage.service_tier, usage.service_tier),
    )
    geo = _DEFAULT_VALUES.get(usage.inference_geo, usage.inference_geo)
    passes = _extra_passes(usage) if usage.iterations else None
    if output == known.output:
        told = (stopped, hour, model, speed, geo, tier, passes)
        held = (known.stopped, known.cache_write_1h, known.model, known.speed, known.geo, known.tier, known.passes)
        if told == held:  # as nearly always
            known.offset = offset
            return
        if tie_break_key(*told) < tie_break_key(*held):
            return
    known.output, known.stopped, known.offset, known.model, known.passes = output, stopped, offset, model, passes
    known.cache_write_5m, known.cache_write_1h = five, hour
    known.speed, known.geo, known.tier = speed, geo, tier


def _extra_passes(usage: UsageRow) -> list[UsagePass] | None:
    """The passes that the totals alone do not tell: an advisor's, and those of another model."""
    passes: Sequence[UsageCounts]
    if isinstance(usage.iterations, list):
        passes = usage.iterations
    else:
        raw = bytes(usage.iterations)
        if b"advisor" not in raw and b"model" not in raw:  # nearly all repeat the totals, and are not worth decoding
            return None
        try:
            passes = _decode_iterations(raw) or []
        except DECODE_ERRORS:
            return None
    if not any(one.type == "advisor_message" or one.model is not None for one in passes):
        return None
    return [
        UsagePass(
            one.type,
            one.model,
            one.input_tokens or 0,
            one.output_tokens or 0,
            *_split_writes(one.cache_creation_input_tokens or 0, one.cache_creation or CacheWrites()),
            one.cache_read_input_tokens or 0,
        )
        for one in passes
    ]


def _reported_cost(row: EntryRow) -> str | None:
    told = bytes(row.cost_usd)
    return told.decode("ascii", "replace") if told not in (b"", b"null") else None


_TAIL_BLOCK_SIZE = 256 * 1024
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]{1,40})"')
_COMPACT_BOUNDARY = re.compile(rb'"subtype"\s*:\s*"compact_boundary"')
# Up to this size, reading everything takes no longer than looking for where to begin.
_SMALL_FILE_SIZE = 1024 * 1024


def read_sightings_since(transcript: Transcript, since: str) -> TranscriptSightings:
    """What a transcript tells of messages since a time (`2026-11-15T00:00:00`), and perhaps of some before."""
    if transcript.size <= _SMALL_FILE_SIZE:
        return read_sightings(transcript)
    gathering = SightingCollector(transcript)
    try:
        for found in _find_lines_since(transcript.path, since):
            gathering.add(found)
        return gathering.seen(read_first_lines(transcript.path))
    except Error as error:
        return TranscriptSightings("", gathering.origins, list(gathering.found.values()), str(error))


def is_compacted_at_end(path: Path) -> bool:
    """Whether a compaction came after the last request: the window is then smaller than that request's prompt."""
    try:
        descriptor = open_transcript(path)
    except Error:
        return False
    try:
        size = os.fstat(descriptor).st_size
        end = _read_range(descriptor, max(0, size - _TAIL_BLOCK_SIZE), size)
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
    """Where a line begins before which nothing is wanted: blocks are looked at from the last one backwards."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _TAIL_BLOCK_SIZE)
        block = _read_range(descriptor, start, end)
        first = block.find(b"\n") + 1
        if start and first and _is_block_before(block, since):
            return start + first
        end = start
    return 0


def _is_block_before(block: bytes, since: str) -> bool:
    """Whether a block names times, and all of them lie before; one that is not written as usual may lie anywhere."""
    times = {match[1] for match in _TIMESTAMP.finditer(block)}
    wanted = since.encode()
    return bool(times) and all(time.endswith(b"Z") and time < wanted for time in times)


def _read_range(descriptor: int, start: int, end: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    parts = []
    while start < end and (part := os.read(descriptor, end - start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
