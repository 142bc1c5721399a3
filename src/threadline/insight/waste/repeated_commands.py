"""Identical commands with identical output.

A command counts if the same agent ran it before in the same turn with exactly the same output, and nothing in between
may have changed what it prints: no edit, no command that may write files, no agent or MCP tool, no compaction. So a
build or a test after an edit does not count, and neither does a look after something that a person wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.shell_effects import may_change_git, may_write_files
from threadline.insight.waste.facts import Detector, Finding, WasteContext, call_label
from threadline.insight.waste.repeats import repeated_calls
from threadline.model.calls import Call
from threadline.model.waste import WasteLimits
from threadline.shell_syntax import SHELL_TOOLS, input_command

_SEARCHES = frozenset(("Grep", "Glob", "LS", "WebFetch", "WebSearch"))
_HARMLESS = _SEARCHES | frozenset(
    ("Read", "NotebookRead", "TodoRead", "TodoWrite", "ToolSearch", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet")
)


def detect(facts: WasteContext, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each command with the runs that repeated an earlier one."""
    for calls in repeated_calls(facts, SHELL_TOOLS | _SEARCHES, limits, _may_change):
        for same_turn in _split_by_turn(calls):
            if len(same_turn) >= max(2, limits.repeats):
                yield facts.calls_finding(
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
    detect,
)
