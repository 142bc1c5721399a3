"""Token counts as the transcript and Claude Code's statistics report them, and `Head`, an entry without content.

Every row of a message repeats its usage, early rows with placeholders. `stats-cache.json` holds the statistics that
Claude Code keeps for itself: a lower bound for history that is already deleted.

Decoding a `Head` takes a third of the time that the whole entry takes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, field

from threadline.model.places import AgentId, EntryId, MessageId, SessionId
from threadline.model.times import parse_timestamp
from threadline.shape import Shape

TokenCount = Annotated[int, Meta(ge=0, le=2**53)]
"""A count of tokens. Less than nothing, or more than a double can hold, is damage and not a count."""


class CacheCreation(Shape, frozen=True, rename=None):
    """Cache writes by how long they are kept."""

    ephemeral_5m_input_tokens: TokenCount | None = None
    ephemeral_1h_input_tokens: TokenCount | None = None


class ServerToolUse(Shape, frozen=True, rename=None):
    """Requests to the API's own tools."""

    web_search_requests: TokenCount | None = None
    web_fetch_requests: TokenCount | None = None
    code_execution_requests: TokenCount | None = None
    tool_search_requests: TokenCount | None = None


class OutputTokensDetails(Shape, frozen=True, rename=None):
    """What the output was made of."""

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
        """The size of what was sent: uncached input, cache writes and cache reads."""
        return (self.input_tokens or 0) + (self.cache_creation_input_tokens or 0) + (self.cache_read_input_tokens or 0)

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

    Of a line that is no entry there is a head, too: its kind is `blank`, `damaged`, `pending` or `untyped`.
    """

    kind: str = field(default="", name="type")
    parent_uuid: EntryId | None = None
    logical_parent_uuid: EntryId | None = None
    is_agent: bool | None = field(default=None, name="isSidechain")
    session_id: SessionId | None = None
    version: str | None = None
    agent_id: AgentId | None = None
    subtype: str | None = None
    message: MessageHead | None = None
    uuid: EntryId | None = None
    timestamp_text: str | int | float | None = field(default=None, name="timestamp")
    is_compact_summary: bool | None = None
    leaf_uuid: EntryId | None = None
    line: int = field(default=0, name="threadline:line")

    @property
    def timestamp(self) -> datetime | None:
        """When the entry was written, in UTC; None when the line does not say."""
        return parse_timestamp(self.timestamp_text)

    @property
    def usage(self) -> Usage | None:
        """The token counts, where the entry is a reply's."""
        return self.message.usage if self.kind == "assistant" and self.message is not None else None


class ModelUsage(Shape, frozen=True):
    """What one model used, as the program counts it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation_ephemeral_5m_input_tokens: int | None = field(
        default=None, name="cacheCreationEphemeral5mInputTokens"
    )
    cache_creation_ephemeral_1h_input_tokens: int | None = field(
        default=None, name="cacheCreationEphemeral1hInputTokens"
    )
    web_search_requests: int | None = None
    cost_usd: float | None = field(default=None, name="costUSD")
    context_window: int | None = None
    max_output_tokens: int | None = None


class DayActivity(Shape, frozen=True):
    """What happened on one day."""

    date: str | None = None
    message_count: int | None = None
    session_count: int | None = None
    tool_call_count: int | None = None


class DayTokens(Shape, frozen=True):
    """What was used on one day, by model."""

    date: str | None = None
    tokens_by_model: dict[str, int | float] | None = None


class StatsCache(Shape, frozen=True):
    """`stats-cache.json`: Claude Code's own statistics. A floor for history that is already gone."""

    version: int | None = None
    last_computed_date: str | None = None
    daily_activity: list[DayActivity] | None = None
    daily_model_tokens: list[DayTokens] | None = None
    model_usage: dict[str, ModelUsage] | None = None
    total_sessions: int | None = None
    total_messages: int | None = None
    longest_session: Any = None
    first_session_date: str | None = None
    hour_counts: dict[str, int] | None = None
    total_speculation_time_saved_ms: int | float | None = None
    shot_distribution: Any = None
