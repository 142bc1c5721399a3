"""Identical commands with identical output.

A command counts if the same agent ran it before with exactly the same output, and no compaction came between the two.
Commands with short output are cheap and often meant (`git status`), so the limit on amounts hides most of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, SessionFacts, call_label
from threadline.insight.waste.repeats import repeated_calls
from threadline.model.waste import WasteLimits

_TOOLS = frozenset(("Bash", "PowerShell", "Grep", "Glob", "LS", "WebFetch", "WebSearch"))


def detect(facts: SessionFacts, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each command with the runs that repeated an earlier one."""
    for calls in repeated_calls(facts, _TOOLS, limits):
        yield facts.calls_finding(
            calls[1:],
            label=f"{call_label(calls[0])}: run {len(calls)} times",
            evidence=f"the same output as at line {calls[0].place.line}, still in the window",
        )


REPEATED_COMMANDS = Detector(
    "repeated-command",
    "Let the assistant run it once after the last change, or limit its output (head, --quiet, a narrower path).",
    detect,
)
