"""Calls that were repeated with the same input and the same result, while the first result was in the window.

- A file counts if an earlier read of the same path and range by the same agent had exactly the same result, and no
  compaction of this agent came between the two. What counts is the result, until it left the window.
- A command counts if the same agent ran it before in the same turn with exactly the same output, and nothing in between
  may have changed what it prints: no edit, no command that may write files, no agent or MCP tool, no compaction. So a
  build or a test after an edit does not count, and neither does a look after something that a person wrote.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from threadline.insight.shell_effects import may_change_git, may_write_files
from threadline.insight.waste.detector import Detector, Finding, WasteContext, call_label
from threadline.model.calls import Call, Outcome
from threadline.model.insight.waste import WasteLimits
from threadline.model.session import Agent, CompactionKind
from threadline.shell_syntax import SHELL_TOOLS, input_command

_READ_TOOLS = frozenset(("Read", "NotebookRead"))
_SEARCHES = frozenset(("Grep", "Glob", "LS", "WebFetch", "WebSearch"))
_HARMLESS = _SEARCHES | frozenset(
    ("Read", "NotebookRead", "TodoRead", "TodoWrite", "ToolSearch", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet")
)


def _repeated_calls(
    context: WasteContext,
    tools: frozenset[str],
    limits: WasteLimits,
    may_change: Callable[[Call], bool] = lambda _call: False,
) -> Iterator[list[Call]]:
    """Yield calls of these tools that are equal, without a compaction between them. The first of them comes first.

    Another call between them that `may_change` what they return also separates them.
    """
    for agent in context.agents:
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


def _detect_unchanged_files(context: WasteContext, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each file with the reads that repeated an earlier one."""
    for calls in _repeated_calls(context, _READ_TOOLS, limits):
        inputs = calls[0].input if isinstance(calls[0].input, dict) else {}
        path = inputs.get("file_path") or inputs.get("notebook_path") or "a file"
        yield context.calls_finding(
            calls[1:],
            label=f"{path} read {len(calls)} times, unchanged",
            evidence=f"the same result as at line {calls[0].place.line}, still in the window",
            results_only=True,
        )


UNCHANGED_FILES = Detector(
    "unchanged-file",
    "Ask for the part that is needed, or refer to what was read; a shorter session forgets less.",
    _detect_unchanged_files,
)


def _detect_repeated_commands(context: WasteContext, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each command with the runs that repeated an earlier one."""
    for calls in _repeated_calls(context, SHELL_TOOLS | _SEARCHES, limits, _may_change):
        for same_turn in _split_by_turn(calls):
            if len(same_turn) >= max(2, limits.repeats):
                yield context.calls_finding(
                    same_turn[1:],
                    label=f"{call_label(same_turn[0])}: run {len(same_turn)} times",
                    evidence=f"the same output as at line {same_turn[0].place.line}, and nothing changed in between",
                )


def _may_change(call: Call) -> bool:
    if call.tool not in SHELL_TOOLS:
        return call.tool not in _HARMLESS
    command = input_command(call.input)
    return command is None or may_write_files(command) or may_change_git(command)


def _split_by_turn(calls: list[Call]) -> Iterator[list[Call]]:
    turns: dict[int | None, list[Call]] = {}
    for call in calls:
        turns.setdefault(call.turn, []).append(call)
    yield from turns.values()


REPEATED_COMMANDS = Detector(
    "repeated-command",
    "Let the assistant run it once after the last change, or limit its output (head, --quiet, a narrower path).",
    _detect_repeated_commands,
)
