"""A transcript as sightings of messages: what accounting needs, at the speed of looking for bytes.

Only lines that hold a token count are decoded, and of those only what counts. Such a line holds `put_tokens"`, for
every count's key ends so (`input_tokens`, `output_tokens`, `cache_read_input_tokens` and the rest), and no writer of
JSON escapes letters in a key. A line that does not decode at once is read by the forgiving reader, so that what
`entries` recovers is counted, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import msgspec
from msgspec.structs import replace

from threadline.errors import Error
from threadline.model.found import Transcript
from threadline.model.sighting import SYNTHETIC, Origin, Pass, Seen, Sighting, split_writes
from threadline.model.time import parse_timestamp
from threadline.parse.lines_with import Lines, first_lines, lines_with
from threadline.parse.run import REFUSALS, lines_decoder
from threadline.parse.searches import searches
from threadline.parse.usage_rows import MessageRow, Row, UsageRow, Writes, Written

NEEDLE = b'put_tokens"'
"""What every line with a token count holds."""
SEARCH = "WebSearch"
PLACEHOLDER = 8
"""An output no greater than this may be what the stream began with, not what it came to."""

_decode = lines_decoder(Row)
_decode_one = msgspec.json.Decoder(Row).decode
_ABSENT = (b"", b"null")
_Group = tuple[str, str | None, str | None, int, int, int, bool]


class _Time(msgspec.Struct, gc=False):
    timestamp: str | None = None


_decode_time = msgspec.json.Decoder(_Time).decode


def sightings(transcript: Transcript) -> Seen:
    """Every message that a transcript tells the usage of. Refusals of the machine become a problem."""
    gathering = _Gathering(transcript)
    try:
        for found in lines_with(transcript.path, NEEDLE):
            for offsets, some in rows(transcript.path, found):
                gathering.add_all(offsets, some)
            gathering.count_searches(found.block)
        began = first_time(transcript.path) if gathering.found else ""
    except Error as error:
        return Seen("", gathering.origins, list(gathering.found.values()), str(error))
    return Seen(began, gathering.origins, list(gathering.found.values()))


def rows(path: Path, found: Lines) -> Iterator[tuple[list[int], list[Row]]]:
    """The rows that lines hold, with their offsets; line by line where they do not decode at once."""
    decoded = _decode(found.lines) if found.lines else []
    if decoded is not None:
        yield found.offsets, decoded
        return
    for offset, line in zip(found.offsets, found.lines, strict=True):
        closer = list(_closely(path, offset, line))
        yield [offset] * len(closer), closer


def first_time(path: str | Path) -> str:
    """The first time that a transcript names; empty where its first lines name none."""
    for line in first_lines(path):
        try:
            written = _decode_time(line).timestamp
        except REFUSALS:
            continue
        if written:
            return written
    return ""


def _closely(path: Path, offset: int, line: bytes) -> Iterator[Row]:
    """The rows of a line that did not decode with its neighbours: one as a rule, more where lines were glued."""
    try:
        yield _decode_one(line)
    except REFUSALS:
        from threadline.parse.forgiven_rows import forgiven_rows  # noqa: PLC0415 - few homes need it, and it is heavy

        yield from forgiven_rows(path, offset, line)


class _Gathering:
    """The sightings of one transcript, while its rows are gone through."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.found: dict[_Group, Sighting] = {}
        self.origins: list[Origin] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._calls: set[str] = set()
        self._searching: dict[str, Sighting] = {}
        self._searched: dict[str, int] = {}
        self._time = ""

    def add_all(self, offsets: list[int], rows: list[Row]) -> None:
        """The rows of one block. Half of all rows only repeat the row before, so the way to those is short."""
        found, owner = self.found, self.transcript.agent
        for offset, given in zip(offsets, rows, strict=True):
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
            if known is None:
                known = found[group] = self._new(offset, row, message, usage, group, five, hour)
            else:
                known.rows += f" {offset} {row.uuid or ''}"
                if (usage.output_tokens or 0) >= known.output:
                    _improve(known, offset, message, usage, five, hour)
                if row.cost_usd:
                    known.reported = _reported(row) or known.reported
            content = message.content
            if content.__class__ is list:
                self._content(known, content)

    def _new(  # noqa: PLR0917 - on the path of every message, where naming arguments takes as long as the rest
        self, offset: int, row: Row, message: MessageRow, usage: UsageRow, group: _Group, five: int, hour: int
    ) -> Sighting:
        key, named, agent, sent, writes, read, repeated = group
        session = named or self.transcript.session
        if row.timestamp:
            self._time = row.timestamp if row.timestamp.__class__ is str else _text_of(row.timestamp)
        shared = (
            session,
            agent,
            row.version,
            row.git_branch,
            row.cwd,
            row.is_agent,
            bytes(row.forked_from) not in _ABSENT,
            row.attribution_skill,
            row.attribution_agent,
        )
        origin = self._numbers.get(shared)
        if origin is None:
            origin = self._numbers[shared] = len(self.origins)
            self.origins.append(Origin(*shared))
        served = usage.server_tool_use
        # In the order of the fields: naming them would take as long as all the rest.
        return Sighting(
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
            f"{offset} {row.uuid or ''}",
            [],
            0,
            (served.web_search_requests or 0) if served is not None else 0,
            usage.speed,
            usage.inference_geo,
            usage.service_tier,
            repeated,
            _reported(row) if row.cost_usd else None,
            _passes(usage) if usage.iterations else None,
        )

    def _content(self, known: Sighting, content: list[Written]) -> None:
        for block in content:
            if block.type == "tool_use" and block.id not in self._calls:
                self._calls.add(block.id or "")
                known.calls.append(block.name or "")
                if block.name == SEARCH and block.id:
                    self._searching[block.id] = known
            if known.output <= PLACEHOLDER:
                known.written = max(known.written, _length(block))

    def count_searches(self, block: bytes) -> None:
        """Web searches that the client makes are known from their results alone; those come after the call."""
        for call, known in list(self._searching.items()):
            number = searches(block, call)
            if number is not None:
                del self._searching[call]
                self._searched[known.key] = self._searched.get(known.key, 0) + number
                known.web_searches = max(known.web_searches, self._searched[known.key])


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
        and usage.cache_creation is None
    )


def _split(flat: int, split: Writes) -> tuple[int, int]:
    return split_writes(flat, split.ephemeral_5m_input_tokens or 0, split.ephemeral_1h_input_tokens or 0)


def _improve(  # noqa: PLR0917 - as above
    known: Sighting, offset: int, message: MessageRow, usage: UsageRow, five: int, hour: int
) -> None:
    """Take the counts of a row that tells more than the best so far: the output grows while a reply is written."""
    output = usage.output_tokens or 0
    stopped = message.stop_reason is not None
    if output == known.output and stopped < known.stopped:
        return
    known.output, known.stopped, known.offset = output, stopped, offset
    known.cache_write_5m, known.cache_write_1h = five, hour
    known.speed, known.geo, known.tier = usage.speed, usage.inference_geo, usage.service_tier
    known.model = message.model or known.model
    if usage.iterations:
        known.passes = _passes(usage) or known.passes
    if usage.server_tool_use is not None:
        known.web_searches = max(known.web_searches, usage.server_tool_use.web_search_requests or 0)


def _passes(usage: UsageRow) -> list[Pass] | None:
    """The passes that the totals alone do not tell: an advisor's, and those of another model."""
    told = usage.iterations
    if not told or (len(told) == 1 and told[0].model is None and told[0].type == "message"):
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
    return told.decode("ascii", "replace") if told not in _ABSENT else None


def _text_of(written: str | float | None) -> str:
    """A time as text that sorts as time does."""
    if isinstance(written, str):
        return written
    moment = parse_timestamp(written)
    return moment.astimezone(UTC).isoformat() if moment is not None else ""


def _length(block: Written) -> int:
    """How much a block says, of what output counts: text and calls."""
    return len(bytes(block.text)) if block.type == "text" else len(bytes(block.input))
