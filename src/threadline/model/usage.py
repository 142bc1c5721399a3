"""Usage: the token counts one message reports."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from threadline.shape import Shape

Count = Annotated[int, Meta(ge=0, le=2**53)]
"""A count of tokens. Less than nothing, or more than a double can hold, is damage and not a count."""


class CacheCreation(Shape, frozen=True, rename=None):
    """Cache writes by how long they are kept."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class ServerToolUse(Shape, frozen=True, rename=None):
    """Requests to the API's own tools."""

    web_search_requests: Count | None = None
    web_fetch_requests: Count | None = None
    code_execution_requests: Count | None = None
    tool_search_requests: Count | None = None


class OutputTokensDetails(Shape, frozen=True, rename=None):
    """What the output was made of."""

    thinking_tokens: Count | None = None


class Iteration(Shape, frozen=True, rename=None):
    """One pass of a message that took several. Only `advisor_message` ones are not in the totals."""

    type: str | None = None
    model: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputTokensDetails | None = None


class Usage(Shape, frozen=True, rename=None):
    """The token counts one message reports. Every row of the message repeats them, early rows with placeholders."""

    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: Count | None = None
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
