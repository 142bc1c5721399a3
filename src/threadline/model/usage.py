"""Token usage as transcripts report it: counts, heads of entries, and sightings of messages before they are counted."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import astuple

from threadline.model.names import parse_version
from threadline.model.places import AgentId, EntryId, MessageId, SessionId
from threadline.model.times import parse_timestamp
from threadline.shape import Shape

_MAX_TOKENS = 2**53
TokenCount = Annotated[int, Meta(ge=0, le=_MAX_TOKENS)]
"""A count of tokens. A negative number, or one that a double cannot represent, is damage."""


def parse_token_count(value: Any) -> int | None:
    """A count of tokens, or None if a value is not one."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS
    return value if is_count else None


class CacheCreation(Shape, frozen=True, rename=None):
    """Cache writes by how long they are kept."""

    ephemeral_5m_input_tokens: TokenCount | None = None
    ephemeral_1h_input_tokens: TokenCount | None = None


class ServerToolUse(Shape, frozen=True, rename=None):
    """How often server-side tools were used."""

    web_search_requests: TokenCount | None = None
    web_fetch_requests: TokenCount | None = None
    code_execution_requests: TokenCount | None = None
    tool_search_requests: TokenCount | None = None


class OutputTokensDetails(Shape, frozen=True, rename=None):
    """The parts of the output."""

    thinking_tokens: TokenCount | None = None


class Iteration(Shape, frozen=True, rename=None):
    """One pass of a message that took several. Only `advisor_message` ones are not in the totals."""

    type: str | None = None
    model: str | None = None
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None
    cache_read_input_tokens: TokenCount | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputTokensDetails | None = None


class Usage(Shape, frozen=True, rename=None):
    """The token counts one message reports. Every row of the message repeats them, early rows with placeholders."""

    input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None
    cache_read_input_tokens: TokenCount | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: TokenCount | None = None
    service_tier: str | None = None
    inference_geo: str | None = None
    server_tool_use: ServerToolUse | None = None
    iterations: list[Iteration] | None = None
    speed: str | None = None
    output_tokens_details: OutputTokensDetails | None = None
    fallback_credit: Any = None

    @property
    def prompt_tokens(self) -> int:
        """The size of the prompt: uncached input, cache writes and cache reads."""
        return (self.input_tokens or 0) + sum(cache_writes(self)) + (self.cache_read_input_tokens or 0)

    @property
    def total_tokens(self) -> int:
        """All four counts together."""
        return self.prompt_tokens + (self.output_tokens or 0)


class MessageHead(Shape, frozen=True, rename=None):
    """A message without its content."""

    model: str | None = None
    id: MessageId | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Head(Shape, frozen=True):
    """An entry without its content: kind, ids, time, parents, usage, and the number of its line.

    A line that is not an entry has a head, too. Its kind is `blank`, `damaged`, `pending` or `untyped`.
    """

    kind: str = field(default="", name="type")
    parent_uuid: EntryId | None = None
    logical_parent_uuid: EntryId | None = None
    is_agent: bool | None = field(default=None, name="isSidechain")
    session_id: SessionId | None = None
    version: str | None = None
    agent_id: AgentId | None = None
    agent_id_again: AgentId | None = field(default=None, name="agent_id")
    subtype: str | None = None
    message: MessageHead | None = None
    uuid: EntryId | None = None
    timestamp_text: str | int | float | None = field(default=None, name="timestamp")
    is_compact_summary: bool | None = None
    leaf_uuid: EntryId | None = None
    line: int = field(default=0, name="threadline:line")

    @property
    def timestamp(self) -> datetime | None:
        """When the entry was written, in UTC; None if unknown."""
        return parse_timestamp(self.timestamp_text)

    @property
    def usage(self) -> Usage | None:
        """The token counts, if the entry is part of a reply."""
        return self.message.usage if self.kind == "assistant" and self.message is not None else None


class ModelUsage(Shape, frozen=True):
    """The usage of one model, as Claude Code counts it."""

    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    thinking_tokens: TokenCount | None = None
    cache_read_input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None
    cache_creation_ephemeral_5m_input_tokens: TokenCount | None = field(
        default=None, name="cacheCreationEphemeral5mInputTokens"
    )
    cache_creation_ephemeral_1h_input_tokens: TokenCount | None = field(
        default=None, name="cacheCreationEphemeral1hInputTokens"
    )
    web_search_requests: TokenCount | None = None
    cost_usd: float | None = field(default=None, name="costUSD")
    context_window: TokenCount | None = None
    max_output_tokens: TokenCount | None = None


class DayActivity(Shape, frozen=True):
    """What happened on one day."""

    date: str | None = None
    message_count: TokenCount | None = None
    session_count: TokenCount | None = None
    tool_call_count: TokenCount | None = None


class DayTokens(Shape, frozen=True):
    """What was used on one day, by model."""

    date: str | None = None
    tokens_by_model: dict[str, TokenCount | float] | None = None


class StatsCache(Shape, frozen=True):
    """`stats-cache.json`: Claude Code's own statistics. A lower bound for transcripts that were deleted."""

    version: int | None = None
    last_computed_date: str | None = None
    daily_activity: list[DayActivity] | None = None
    daily_model_tokens: list[DayTokens] | None = None
    model_usage: dict[str, ModelUsage] | None = None
    total_sessions: TokenCount | None = None
    total_messages: TokenCount | None = None
    longest_session: Any = None
    first_session_date: str | None = None
    hour_counts: dict[str, int] | None = None
    total_speculation_time_saved_ms: int | float | None = None
    shot_distribution: Any = None


SYNTHETIC_MODEL = "<synthetic>"
"""The model of rows that Claude Code wrote itself; nothing was spent on them."""
MAX_PLACEHOLDER_OUTPUT = 8
"""An output count up to this may be the placeholder from the start of the stream, not the final count."""
MAX_PLACEHOLDER_TEXT = 40
"""A text or tool input longer than this takes more tokens than that."""
_FIRST_FINAL_VERSION = (2, 1, 59)
_MAX_AMOUNT = 10**9


INLINE_AGENT = "inline"
"""The agent of rows that are marked as an agent's in a main transcript, without an id: versions up to 2.0.27."""


class Origin(Struct, array_like=True, gc=False):
    """What the rows of a run of messages have in common: which transcript, session and agent they belong to.

    `agent` is None for the main one. `forked` rows say that they are copies: by `forkedFrom`, or by naming another
    session than the path of their transcript does. The fields after `agent_type` are not in the transcript:
    `account.with_origin` adds them. `home` is the path of the home, `home_name` its name in reports, and `rank` its
    position among the homes of the archive. `lines` returns the number of the line at an offset.
    """

    session: str | None = None
    agent: str | None = None
    version: str | None = None
    git_branch: str | None = None
    is_agent: bool | None = None
    forked: bool = False
    skill: str | None = None
    agent_type: str | None = None
    transcript: str = ""
    project: str = ""
    home: str = ""
    began: str = ""
    side: bool = False
    rank: int = 0
    lines: Any = None
    home_name: str = ""
    machine: str = ""


class UsagePass(Struct, array_like=True, gc=False, frozen=True):
    """One pass of a message that took several, with the usage of that pass."""

    type: str | None = None
    model: str | None = None
    input: int = 0
    output: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0


class Sighting(Struct, array_like=True, gc=False):
    """One message in one transcript: its rows that agree on what was sent, with the most complete counts.

    `key` is the message's id, or else the request's or the row's. `rows` are the offsets and uuids of its rows in file
    order, `"1200 uuid 4711 uuid"`; lines are numbered only on request, since counting lines takes as long as finding
    the usage. `offset` is that of the best row, whose counts these are. `time` is that of the first row, or of the row
    before if that has none (`timeless`). `is_repeat` marks an agent's message that its parent's transcript repeats as
    progress. `calls` are its calls, `"id tool"`; `partial` says that the final output was never written.
    """

    key: str
    origin_number: int
    model: str | None
    time: str
    offset: int
    input: int
    output: int
    cache_write: int
    cache_write_5m: int
    cache_write_1h: int
    cache_read: int
    stopped: bool
    rows: str
    calls: list[str] = []
    partial: bool = False
    web_searches: int = 0
    speed: str | None = None
    geo: str | None = None
    tier: str | None = None
    is_repeat: bool = False
    reported: str | None = None
    passes: list[UsagePass] | None = None
    timeless: bool = False
    origin: Any = None

    @property
    def sent(self) -> tuple[int, int, int]:
        """Uncached input, cache writes and cache reads: rows of one API call agree on them."""
        return self.input, self.cache_write, self.cache_read

    @property
    def tie_break_key(self) -> tuple[Any, ...]:
        """Decides between this sighting and another with equal counts."""
        return tie_break_key(
            self.stopped, self.cache_write_1h, self.model, self.speed, self.geo, self.tier, self.passes
        )

    @property
    def prompt_tokens(self) -> int:
        """The size of the prompt."""
        return self.input + self.cache_write + self.cache_read

    @property
    def offsets(self) -> list[int]:
        """The offsets of the rows that mention the message, in file order."""
        return [int(number) for number in self.rows.split(" ")[::2]]

    @property
    def uuids(self) -> list[str]:
        """The uuids of those rows; an empty string if a row has none."""
        return self.rows.split(" ")[1::2]

    @property
    def line(self) -> int:
        """The line whose counts these are."""
        return self._number(self.offset)

    @property
    def lines(self) -> list[int]:
        """The lines that mention the message, in file order."""
        return [self._number(offset) for offset in self.offsets]

    def _number(self, offset: int) -> int:
        number: int = self.origin.lines(offset) if self.origin.lines is not None else 0
        return number


class AgentResultUsage(Struct, array_like=True, gc=False):
    """The result of a call that names the agent it started, and how many tokens it says that the agent used.

    `offset` and `time` are those of the call. The tokens are those in the agent's window at its end, which is less than
    what it was charged for.
    """

    agent: str
    call: str
    offset: int
    time: str
    tokens: int | None = None


class TranscriptSightings(Struct, array_like=True, gc=False):
    """The sightings of one transcript. `began` is its first time. `problem` says why it could not be read.

    `agents` are the results of calls that name an agent.
    """

    began: str = ""
    origins: list[Origin] = []
    sightings: list[Sighting] = []
    problem: str | None = None
    agents: list[AgentResultUsage] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as msgpack bytes, which workers send many times faster than objects."""
        return decode_sightings, (msgspec.msgpack.encode(self),)


_decode_sightings = msgspec.msgpack.Decoder(TranscriptSightings).decode


def decode_sightings(packed: bytes) -> TranscriptSightings:
    """Decode sightings that were pickled."""
    return _decode_sightings(packed)


@lru_cache(maxsize=4096)
def lacks_final_usage(version: str | None) -> bool:
    """Whether a version did not yet write the final output of every message."""
    if version is None:
        return False
    numbers = parse_version(version)
    return bool(numbers) and numbers < _FIRST_FINAL_VERSION


def split_cache_writes(flat: int, five_minutes: int, one_hour: int) -> tuple[int, int]:
    """Return cache writes by lifetime. The part of the flat total that the split lacks counts as five minutes."""
    return five_minutes + max(0, flat - five_minutes - one_hour), one_hour


def cache_writes(usage: Usage) -> tuple[int, int]:
    """Return the cache writes of a message by lifetime: for five minutes, and for an hour."""
    split = usage.cache_creation or CacheCreation()
    return split_cache_writes(
        usage.cache_creation_input_tokens or 0,
        split.ephemeral_5m_input_tokens or 0,
        split.ephemeral_1h_input_tokens or 0,
    )


def tie_break_key(  # noqa: PLR0917 - called for every row, where building a struct would double the time
    stopped: bool,
    one_hour: int,
    model: str | None,
    speed: str | None,
    geo: str | None,
    tier: str | None,
    passes: list[UsagePass] | None,
) -> tuple[Any, ...]:
    """Sort key that decides between two rows with equal counts: the finished one wins.

    The other fields only make the result independent of the order of rows and files.
    """
    passes_text = repr([astuple(usage_pass) for usage_pass in passes]) if passes else ""
    return stopped, one_hour, passes_text, model or "", speed or "", geo or "", tier or ""


def parse_amount(text: str | None) -> Decimal:
    """Parse an amount in a row. Returns -1 if it is not an amount, or is impossibly large."""
    try:
        number = Decimal(text or "-1")
    except ArithmeticError:
        return Decimal(-1)
    return number if number.is_finite() and 0 <= number < _MAX_AMOUNT else Decimal(-1)
