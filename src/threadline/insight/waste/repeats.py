"""Find calls that were repeated with the same input and the same result, while the first result was in the window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from threadline.insight.waste.facts import SessionFacts
from threadline.model.calls import Call, Outcome
from threadline.model.session import Agent, CompactionKind
from threadline.model.waste import WasteLimits


def repeated_calls(facts: SessionFacts, tools: frozenset[str], limits: WasteLimits) -> Iterator[list[Call]]:
    """Yield calls of these tools that are equal, without a compaction between them. The first of them comes first."""
    for agent in facts.agents:
        for calls in _group_equal(agent, tools):
            if len(calls) >= max(2, limits.repeats):
                yield calls


def _group_equal(agent: Agent, tools: frozenset[str]) -> list[list[Call]]:
    boundaries = sorted(
        compaction.place.line for compaction in agent.compactions if compaction.kind is not CompactionKind.MICRO
    )
    groups: dict[tuple[Any, ...], list[Call]] = {}
    for call in agent.calls:
        if call.tool in tools and call.outcome is Outcome.OK and call.output.strip():
            window = bisect_left(boundaries, call.place.line)
            groups.setdefault((window, call.tool, _frozen(call.input), call.output), []).append(call)
    return list(groups.values())


def _frozen(value: Any) -> str:
    """An input in a form that can be compared, without what only describes it."""
    inputs = {name: item for name, item in value.items() if name != "description"} if isinstance(value, dict) else value
    return repr(sorted(inputs.items()) if isinstance(inputs, dict) else inputs)
