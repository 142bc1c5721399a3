"""`cost-state`: the session's total as Claude Code itself counts it."""

from __future__ import annotations

from msgspec import field

from threadline.model.entries.entry import Entry
from threadline.model.model_usage import ModelUsage


class CostStateEntry(Entry, frozen=True, tag="cost-state"):
    """The session's total so far, written when it closes; with calls that are nowhere else in the transcript."""

    total_cost_usd: float | None = field(default=None, name="totalCostUSD")
    total_api_duration: float | None = field(default=None, name="totalAPIDuration")
    total_api_duration_without_retries: float | None = field(default=None, name="totalAPIDurationWithoutRetries")
    total_tool_duration: float | None = None
    total_duration: float | None = None
    total_lines_added: int | None = None
    total_lines_removed: int | None = None
    has_unknown_model_cost: bool | None = None
    start_time: float | str | None = None
    model_usage: dict[str, ModelUsage] | None = None
