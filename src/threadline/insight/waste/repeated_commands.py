"""Identical commands with identical output.

A command counts if the same agent ran it before with exactly the same output, and no compaction came between the two.
Commands with short output are cheap and often meant (`git status`), so the limit on amounts hides most of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import SessionFacts, waste_of_calls
from threadline.insight.waste.unchanged_files import repeated_calls
from threadline.model.waste import Waste, WasteLimits
from threadline.render import one_line, summarize_call

_TOOLS = frozenset(("Bash", "PowerShell", "Grep", "Glob", "LS", "WebFetch", "WebSearch"))
_MAX_LABEL = 60
_ADVICE = "Let the assistant run it once after the last change, or limit its output (head, --quiet, a narrower path)."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each command with the runs that repeated an earlier one."""
    for agent in facts.agents:
        for repeats in repeated_calls(agent, _TOOLS):
            first = repeats[0]
            command = one_line(f"{first.tool} {summarize_call(first.tool, first.input)}", _MAX_LABEL)
            waste = waste_of_calls(
                "repeated-command",
                facts,
                repeats[1:],
                label=f"{command}: run {len(repeats)} times",
                evidence=f"the same output as at line {first.place.line}, still in the window",
                advice=_ADVICE,
            )
            if waste is not None:
                yield waste
