"""Subagents whose result never reached the agent that started them.

An agent counts if it failed or was interrupted, or if the call that started it was. What counts is all that it spent.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, WasteContext, charges_finding
from threadline.model.calls import Outcome
from threadline.model.insight.waste import WasteLimits
from threadline.model.session import AgentStatus
from threadline.model.text import fold_line

_MAX_LABEL = 60
_BAD_OUTCOMES = frozenset((Outcome.ERROR, Outcome.INTERRUPTED, Outcome.DENIED, Outcome.LOST))
_BAD_STATES = frozenset((AgentStatus.FAILED, AgentStatus.INTERRUPTED))


def detect(facts: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each agent without a delivered result."""
    calls = {call.id: call for call in facts.calls}
    for agent in facts.session.agents:
        call = calls.get(agent.link.call) if agent.link.call is not None else None
        lost = call if call is not None and call.outcome in _BAD_OUTCOMES else None
        if agent.id is not None and (lost is not None or agent.status in _BAD_STATES):
            yield charges_finding(
                facts.charges_of_agent(agent.id),
                label=fold_line(agent.description or agent.prompt or f"Agent {agent.id}", _MAX_LABEL),
                evidence=f"its call ended as {lost.outcome}" if lost is not None else f"it ended as {agent.status}",
                place=call.place if call is not None else agent.entries[0].place,
                agent=agent.id,
                turn=call.turn if call is not None else None,
            )


UNUSED_AGENTS = Detector("unused-agent", "Give agents small tasks with a clear end, and let them report early.", detect)
