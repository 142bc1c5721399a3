"""Find what a session spent without need: one detector in each file.

A detector is a function that takes the `SessionFacts` of a session and the limits, and yields what it can show. Its
module says what counts, and what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec.structs import replace

from threadline.errors import BadQuery
from threadline.insight.waste import (
    abandoned_branches,
    cache_breaks,
    failed_calls,
    interrupted_calls,
    large_outputs,
    refused_calls,
    repeated_commands,
    unchanged_files,
    unused_agents,
    unused_tools,
)
from threadline.insight.waste.facts import SessionFacts
from threadline.model.waste import Waste, WasteLimits

DETECTORS: dict[str, Callable[[SessionFacts, WasteLimits], Iterator[Waste]]] = {
    "cache-break": cache_breaks.detect,
    "unchanged-file": unchanged_files.detect,
    "repeated-command": repeated_commands.detect,
    "large-output": large_outputs.detect,
    "failed-call": failed_calls.detect,
    "refused-call": refused_calls.detect,
    "interrupted-call": interrupted_calls.detect,
    "abandoned-branch": abandoned_branches.detect,
    "unused-agent": unused_agents.detect,
    "unused-tools": unused_tools.detect,
}
"""Every detector by name."""


def find_waste(facts: SessionFacts, limits: WasteLimits | None = None, detectors: Collection[str] = ()) -> list[Waste]:
    """Return what the detectors find in a session, most expensive first. By default, all detectors run.

    Raises:
        BadQuery: there is no detector of this name.
    """
    limits = limits or WasteLimits()
    unknown = sorted(set(detectors) - DETECTORS.keys())
    if unknown:
        raise BadQuery(f"There is no detector {unknown[0]!r}. Choose from {', '.join(DETECTORS)}.")
    findings = (
        replace(waste, project=facts.project)
        for name, detect in DETECTORS.items()
        if not detectors or name in detectors
        for waste in detect(facts, limits)
    )
    return filter_waste(findings, limits)


def filter_waste(findings: Iterable[Waste], limits: WasteLimits, detectors: Collection[str] = ()) -> list[Waste]:
    """Return the findings of these detectors that are within narrower limits, most expensive first."""
    chosen = [
        waste for waste in findings if _is_within(waste, limits) and (not detectors or waste.detector in detectors)
    ]
    return sorted(chosen, key=lambda waste: (-waste.amount, waste.detector, str(waste.places[:1])))


def _is_within(waste: Waste, limits: WasteLimits) -> bool:
    least_tokens = limits.large_output if waste.detector == "large-output" else 0
    if waste.detector in {"unchanged-file", "repeated-command"} and len(waste.places) + 1 < limits.repeats:
        return False
    return waste.amount >= limits.min_amount and waste.tokens >= max(limits.min_tokens, least_tokens)
