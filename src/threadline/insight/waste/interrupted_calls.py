"""Calls that were interrupted, and calls whose result never came because the session ended or was killed."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import SessionFacts, waste_of_calls
from threadline.model.calls import Outcome
from threadline.model.waste import Waste, WasteLimits
from threadline.render import one_line, summarize_call

_MAX_LABEL = 60
_ADVICE = "Interrupt early: everything sent before the interruption is paid for and stays in the window."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each interrupted call."""
    for agent in facts.agents:
        for call in agent.calls:
            if call.outcome not in {Outcome.INTERRUPTED, Outcome.LOST}:
                continue
            waste = waste_of_calls(
                "interrupted-call",
                facts,
                [call],
                label=one_line(f"{call.tool} {summarize_call(call.tool, call.input)}", _MAX_LABEL),
                evidence=call.evidence,
                advice=_ADVICE,
            )
            if waste is not None:
                yield waste
