"""Calls that a person, a rule or a hook refused: edits above all, whose text was written for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import SessionFacts, waste_of_calls
from threadline.model.calls import Outcome
from threadline.model.waste import Waste, WasteLimits
from threadline.render import one_line, summarize_call

_MAX_LABEL = 60
_ADVICE = "Say beforehand what must not be done (CLAUDE.md, permission rules), or use plan mode for larger changes."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each refused call, with the output that the model wrote for it."""
    for agent in facts.agents:
        for call in agent.calls:
            if call.outcome is not Outcome.DENIED:
                continue
            waste = waste_of_calls(
                "refused-call",
                facts,
                [call],
                label=one_line(f"{call.tool} {summarize_call(call.tool, call.input)}", _MAX_LABEL),
                evidence=f"refused: {call.evidence}",
                advice=_ADVICE,
            )
            if waste is not None:
                yield waste
