"""Model usage: what one model used, as Claude Code itself counts it."""

from __future__ import annotations

from msgspec import field

from threadline.shape import Shape


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
