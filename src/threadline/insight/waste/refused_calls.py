"""Calls that a person, a rule or a hook refused: edits above all, whose text was written for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, WasteContext, call_label
from threadline.model.calls import Outcome
from threadline.model.waste import WasteLimits


def detect(facts: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each refused call, with the output that the model wrote for it."""
    for call in facts.calls:
        if call.outcome is Outcome.DENIED:
            yield facts.calls_finding([call], label=call_label(call), evidence=f"refused: {call.evidence}")


REFUSED_CALLS = Detector(
    "refused-call",
    "Say beforehand what must not be done (CLAUDE.md, permission rules), or use plan mode for larger changes.",
    detect,
)
