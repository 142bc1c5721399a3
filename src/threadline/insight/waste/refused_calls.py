"""Calls that a person, a rule or a hook refused: edits above all, whose text was written for nothing.

A plan that a person sends back and a question that a person leaves open do not count: they belong to the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from threadline.insight.waste.facts import Detector, Finding, WasteContext, call_label
from threadline.model.calls import Outcome
from threadline.model.insight.waste import WasteLimits

_DIALOGUES = frozenset(("AskUserQuestion", "ExitPlanMode"))
_UNAVAILABLE = "automode-unavailable"
_UNAVAILABLE_ADVICE = "Auto mode could not reach the model that checks calls. Wait, or use another permission mode."


def detect(facts: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each refused call, with the output that the model wrote for it."""
    for call in facts.calls:
        if call.outcome is Outcome.DENIED and call.tool not in _DIALOGUES:
            reason = call.evidence.partition(": ")[2] or call.evidence
            finding = facts.calls_finding([call], label=call_label(call), evidence=f"refused: {reason}")
            yield replace(finding, advice=_UNAVAILABLE_ADVICE) if reason == _UNAVAILABLE else finding


REFUSED_CALLS = Detector(
    "refused-call",
    "Say beforehand what must not be done (CLAUDE.md, permission rules), or use plan mode for larger changes.",
    detect,
)
