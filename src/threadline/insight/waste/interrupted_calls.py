"""Calls that were interrupted, and calls whose result never came because the session ended or was killed."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, WasteContext, call_label
from threadline.model.calls import Outcome
from threadline.model.insight.waste import WasteLimits


def detect(facts: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each interrupted call."""
    for call in facts.calls:
        if call.outcome in {Outcome.INTERRUPTED, Outcome.LOST}:
            yield facts.calls_finding([call], label=call_label(call), evidence=call.evidence)


INTERRUPTED_CALLS = Detector(
    "interrupted-call",
    "Interrupt early: everything sent before the interruption is paid for and stays in the window.",
    detect,
)
