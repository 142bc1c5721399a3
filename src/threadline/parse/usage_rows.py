"""The part of a row that accounting needs, decoded alone: a third of the time that the whole row takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, field

from threadline.model.time import parse_timestamp
from threadline.model.usage import Count
from threadline.parse.lines_with import Lines
from threadline.parse.run import REFUSALS, lines_decoder

_NOTHING = Raw()


class Written(Struct, gc=False):
    """A block of a reply: its kind, the call that it is, and what it says without being made into text."""

    type: str | None = None
    name: str | None = None
    id: str | None = None
    text: Raw = _NOTHING
    input: Raw = _NOTHING


class Writes(Struct, gc=False):
    """Cache writes by lifetime."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class Served(Struct, gc=False):
    """Requests to the API's own tools."""

    web_search_requests: Count | None = None


class Counts(Struct, gc=False):
    """The token counts of one pass."""

    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: Writes | None = None
    output_tokens: Count | None = None
    type: str | None = None
    model: str | None = None


class UsageRow(Counts, gc=False):
    """A row's `usage`."""

    service_tier: str | None = None
    inference_geo: str | None = None
    server_tool_use: Served | None = None
    iterations: Raw = _NOTHING
    speed: str | None = None


class MessageRow(Struct, gc=False):
    """A row's `message`."""

    model: str | None = None
    id: str | None = None
    content: list[Written] | str | None = None
    stop_reason: str | None = None
    usage: UsageRow | None = None


class Repeated(Struct, gc=False, rename="camel"):
    """An agent's row as progress repeats it."""

    type: str | None = None
    message: MessageRow | None = None
    timestamp: str | None = None
    request_id: str | None = None
    uuid: str | None = None


class Progress(Struct, gc=False, rename="camel"):
    """What a progress row tells."""

    type: str | None = None
    agent_id: str | None = None
    message: Repeated | None = None


class Row(Struct, gc=False, rename="camel"):
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
    data: Progress | None = None
    forked_from: Raw = _NOTHING
    attribution_skill: str | None = None
    attribution_agent: str | None = None
    cost_usd: Raw = field(default=_NOTHING, name="costUSD")


class _Time(Struct, gc=False):
    timestamp: str | float | None = None


# Whatever else ends with a Z may be no time at all, or sort as none does.
_USUAL_TIME = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9]T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z"
).fullmatch
_decode = lines_decoder(Row)
_decode_one = msgspec.json.Decoder(Row).decode
_decode_time = msgspec.json.Decoder(_Time).decode


def rows(path: Path, found: Lines) -> Iterator[tuple[list[int], list[Row]]]:
    """The rows that lines hold, with their offsets; line by line where they do not decode at once."""
    decoded = _decode(found.lines) if found.lines else []
    if decoded is not None:
        yield found.offsets, decoded
        return
    for offset, line in zip(found.offsets, found.lines, strict=True):
        closer = list(_closely(path, offset, line))
        yield [offset] * len(closer), closer


def first_time(lines: Iterable[bytes]) -> str:
    """The first time that lines name; empty where they name none."""
    for line in lines:
        try:
            written = _decode_time(line).timestamp
        except REFUSALS:
            continue
        if told := text_of(written):
            return told
    return ""


def text_of(written: str | float | None) -> str:
    """A time as text that sorts as time does; empty where it is none."""
    if isinstance(written, str) and _USUAL_TIME(written):
        return written
    moment = parse_timestamp(written)
    return moment.isoformat() if moment is not None else ""


def _closely(path: Path, offset: int, line: bytes) -> Iterator[Row]:
    """The rows of a line that did not decode with its neighbours: one as a rule, more where lines were glued."""
    try:
        yield _decode_one(line)
    except REFUSALS:
        from threadline.parse.forgiven_rows import forgiven_rows  # noqa: PLC0415 - few homes need it, and it is heavy

        yield from forgiven_rows(path, offset, line)
