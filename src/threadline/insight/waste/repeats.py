"""Find calls that were repeated with the same input and the same result, while the first result was in the window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from threadline.insight.waste.facts import WasteContext
from threadline.model.calls import Call, Outcome
from threadline.model.session import Agent, CompactionKind
from threadline.model.waste import WasteLimits


def repeated_calls(
    facts: WasteContext,
    tools: frozenset[str],
    limits: WasteLimits,
    may_change: Callable[[Call], bool] = lambda _call: False,
) -> Iterator[list[Call]]:
    """Yield calls of these tools that are equal, without a compaction between them. The first of them comes first.

    Another call between them that `may_change` what they return also separates them.
    """
    for agent in facts.agents:
        for calls in _group_equal(agent, tools, may_change):
            if len(calls) >= max(2, limits.repeats):
                yield calls


def _group_equal(agent: Agent, tools: frozenset[str], may_change: Callable[[Call], bool]) -> Iterator[list[Call]]:
    boundaries = sorted(
        compaction.place.line for compaction in agent.compactions if compaction.kind is not CompactionKind.MICRO
    )
    positions: dict[tuple[Any, ...], list[int]] = {}
    for at, call in enumerate(agent.calls):
        if call.tool in tools and call.outcome is Outcome.OK and call.output.strip():
            window = bisect_left(boundaries, call.place.line)
            positions.setdefault((window, call.tool, _frozen(call.input), call.output), []).append(at)
    changing = cache(lambda at: may_change(agent.calls[at]))  # few calls are between equal ones
    for equal in positions.values():
        group = [agent.calls[equal[0]]]
        for before, at in pairwise(equal):
            if any(map(changing, range(before + 1, at))):
                yield group
                group = []
            group.append(agent.calls[at])
        yield group


def _frozen(value: Any) -> str:
    """An input in a form that can be compared, without what only describes it."""
    inputs = {name: item for name, item in value.items() if name != "description"} if isinstance(value, dict) else value
    return repr(sorted(inputs.items()) if isinstance(inputs, dict) else inputs)
