"""Token counts that messages report, in the shape of each version, and their totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tools.demo.versions import RATES

if TYPE_CHECKING:
    from random import Random

    from tools.demo.versions import VersionFeatures

_BYTES_PER_TOKEN = 4
_MILLION_CENTS = 100_000_000
_PROMPT = 14_000
"""System prompt and tools, in tokens: the size of an empty context."""


class Count:
    """The counters of one message."""

    __slots__ = ("created", "fresh", "output", "read", "thinking")

    def __init__(self, fresh: int, created: int, read: int, output: int) -> None:
        self.fresh = fresh
        self.created = created
        self.read = read
        self.output = output
        self.thinking = output // 3


class UsageCounter:
    """The context of an agent: its growth, caching and compaction."""

    def __init__(self, era: VersionFeatures, rng: Random, *, hour: bool) -> None:
        self._era = era
        self._rng = rng
        self._hour = hour and era.writes("caller")
        self.context = 0
        self.pending = _PROMPT * _BYTES_PER_TOKEN
        """Bytes added since the last message."""
        self.sums: dict[str, list[int]] = {}
        """Per model: input, output, cache read, cache write 5 minutes, cache write 1 hour, thinking."""

    def message(self, model: str, size: int) -> Count:
        """Count a message of that many bytes."""
        created = self.pending // _BYTES_PER_TOKEN
        count = Count(self._rng.randrange(2, 12), created, self.context, size // _BYTES_PER_TOKEN + 8)
        self.context += created + count.output
        self.pending = 0
        sums = self.sums.setdefault(model, [0, 0, 0, 0, 0, 0])
        sums[0] += count.fresh
        sums[1] += count.output
        sums[2] += count.read
        sums[4 if self._hour else 3] += created
        sums[5] += count.thinking
        return count

    def cut(self) -> int:
        """Compact the context; returns the tokens it had before."""
        before = self.context
        self.context = 0
        self.pending = (_PROMPT + 2_500) * _BYTES_PER_TOKEN
        return before

    def shape(self, count: Count, output: int | None = None) -> dict[str, Any]:
        """The `usage` object as this version writes it; `output` stands in for the final output tokens."""
        writes = self._era.writes
        flat = {
            "input_tokens": count.fresh,
            "cache_creation_input_tokens": count.created,
            "cache_read_input_tokens": count.read,
        }
        written = count.output if output is None else output
        split = {
            "ephemeral_5m_input_tokens": 0 if self._hour else count.created,
            "ephemeral_1h_input_tokens": count.created if self._hour else 0,
        }
        if not writes("iterations"):
            usage: dict[str, Any] = {**flat}
            if writes("cache_creation"):
                usage["cache_creation"] = split
            usage |= {"output_tokens": written, "service_tier": "standard"}
            if writes("inference_geo"):
                usage["inference_geo"] = "not_available"
            return usage
        usage = {**flat, "output_tokens": written}
        if writes("output_tokens_details"):
            usage["output_tokens_details"] = {"thinking_tokens": min(count.thinking, written)}
        usage |= {
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": split,
            "inference_geo": "not_available",
            "iterations": [],
        }
        if writes("every row final"):
            usage["iterations"] = [{**flat, "output_tokens": written, "cache_creation": split, "type": "message"}]
        if writes("speed"):
            usage["speed"] = "standard"
        if writes("requests"):
            usage["fallback_credit"] = None
        return usage

    def cost(self, model: str, count: Count) -> float:
        """List price of one message in US dollars, for the versions that record it."""
        fresh, output, write, _, read = RATES[model]
        cents = count.fresh * fresh + count.output * output + count.created * write + count.read * read
        return cents / _MILLION_CENTS


def total_cost(sums: dict[str, list[int]], model: str, searches: int) -> float:
    """List price of everything a model did, and of web searches at one cent each."""
    rates = RATES[model]
    fresh, output, read, five, hour, _ = sums[model]
    cents = fresh * rates[0] + output * rates[1] + five * rates[2] + hour * rates[3] + read * rates[4]
    cents += searches * _MILLION_CENTS // 100
    return cents / _MILLION_CENTS


def totals(many: list[dict[str, list[int]]]) -> dict[str, list[int]]:
    """Sums per model over several agents."""
    whole: dict[str, list[int]] = {}
    for sums in many:
        for model, counts in sums.items():
            mine = whole.setdefault(model, [0] * len(counts))
            for index, count in enumerate(counts):
                mine[index] += count
    return whole
