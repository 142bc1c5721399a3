"""Files that were read again although the same content was still in the window.

A read counts if an earlier read of the same path and range by the same agent had exactly the same result, and no
compaction of this agent came between the two. What counts is the result, until it left the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.insight.waste.facts import SessionFacts, waste_of_calls
from threadline.model.calls import Call, Outcome
from threadline.model.session import Agent, CompactionKind
from threadline.model.waste import Waste, WasteLimits

_READ_TOOLS = frozenset(("Read", "NotebookRead"))
_ADVICE = "Ask for the part that is needed, or refer to what was read; a shorter session forgets less."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each file with the reads that repeated an earlier one."""
    for agent in facts.agents:
        for repeats in repeated_calls(agent, _READ_TOOLS):
            path = _path(repeats[0].input)
            waste = waste_of_calls(
                "unchanged-file",
                facts,
                repeats[1:],
                label=f"{path} read {len(repeats)} times, unchanged",
                evidence=f"the same result as at line {repeats[0].place.line}, still in the window",
                advice=_ADVICE,
                results_only=True,
            )
            if waste is not None:
                yield waste


def _path(tool_input: Any) -> str:
    inputs = tool_input if isinstance(tool_input, dict) else {}
    return str(inputs.get("file_path") or inputs.get("notebook_path") or "a file")


def repeated_calls(agent: Agent, tools: frozenset[str]) -> list[list[Call]]:
    """Return calls of these tools that have the same input and the same result, without a compaction between them.

    Each list begins with the first of the calls.
    """
    boundaries = sorted(
        compaction.place.line for compaction in agent.compactions if compaction.kind is not CompactionKind.MICRO
    )
    groups: dict[tuple[Any, ...], list[Call]] = {}
    for call in agent.calls:
        if call.tool not in tools or call.outcome is not Outcome.OK or not call.output.strip():
            continue
        window = sum(line < call.place.line for line in boundaries)
        groups.setdefault((window, call.tool, _frozen(call.input), call.output), []).append(call)
    return [group for group in groups.values() if len(group) > 1]


def _frozen(value: Any) -> str:
    """An input in a form that can be compared, without what only describes it."""
    inputs = {name: item for name, item in value.items() if name != "description"} if isinstance(value, dict) else value
    return repr(sorted(inputs.items()) if isinstance(inputs, dict) else inputs)
