"""Subagents whose result never reached the agent that started them.

An agent counts if it failed or was interrupted, or if the call that started it was. What counts is all that it spent.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import SessionFacts, add_amounts
from threadline.model.calls import Outcome
from threadline.model.session import AgentStatus
from threadline.model.waste import Waste, WasteLimits
from threadline.render import one_line

_MAX_LABEL = 60
_BAD_OUTCOMES = frozenset((Outcome.ERROR, Outcome.INTERRUPTED, Outcome.DENIED, Outcome.LOST))
_BAD_STATES = frozenset((AgentStatus.FAILED, AgentStatus.INTERRUPTED))
_ADVICE = "Give agents small tasks with a clear end, and let them report early."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each agent without a delivered result."""
    calls = {call.id: call for call in facts.session.calls}
    for agent in facts.session.agents:
        call = calls.get(agent.link.call) if agent.link.call is not None else None
        is_lost = call is not None and call.outcome in _BAD_OUTCOMES
        if agent.id is None or not (is_lost or agent.status in _BAD_STATES):
            continue
        charges = facts.charges_of_agent(agent.id)
        amount = add_amounts(charge.amount for charge in charges)
        if amount:
            yield Waste(
                detector="unused-agent",
                session=facts.session.id,
                label=one_line(agent.description or agent.prompt or f"Agent {agent.id}", _MAX_LABEL),
                evidence=f"its call ended as {call.outcome}"
                if is_lost and call is not None
                else f"it ended as {agent.status}",
                places=(call.place,) if call is not None else (agent.entries[0].place,),
                tokens=sum(charge.tokens for charge in charges),
                amount=amount,
                estimated=False,
                advice=_ADVICE,
                agent=agent.id,
                turn=call.turn if call is not None else None,
            )
