"""`stats-cache.json`: the statistics that Claude Code keeps for itself."""

from __future__ import annotations

from typing import Any

from threadline.model.model_usage import ModelUsage
from threadline.shape import Shape


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
