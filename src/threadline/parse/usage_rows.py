"""Decode only the parts of a row that accounting needs.

This takes a third of the time that decoding the whole row takes. Lines that do not decode at once go through
`recover`, so that whatever `entries` recovers is counted as well.

Web searches made by the client are counted from their results: the API's own counter is 0 for those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, field

from threadline.model.sightings import Sighting
from threadline.model.times import parse_timestamp
from threadline.model.usage import TokenCount
from threadline.parse.lines import DECODE_ERRORS, MatchingLines, find_lines_in_block, make_lines_decoder
from threadline.parse.recover import split_damaged_line
from threadline.shape import strip_line

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
        from threadline.parse.usage_recovery import rows_from_lenient_entries  # noqa: PLC0415 - it brings all kinds of entries along

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
