"""Requests on branches that a rewind, a retry or an edited prompt abandoned.

Counts all that these requests cost. What they wrote to files may have been kept, and a branch may have been an
experiment that taught something, so this is what trying cost, not necessarily a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import SessionFacts, add_amounts
from threadline.model.text import count
from threadline.model.waste import Waste, WasteLimits

_ADVICE = "Use plan mode to agree on the way first, and rewind as soon as the direction is wrong."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each abandoned branch with at least one request."""
    for agent in facts.agents:
        requests = facts.requests.of_agent(agent.id)
        charges = facts.requests.charges(agent.id)
        kept = {id(entry) for entry in agent.conversation}
        for branch in agent.branches:
            rows = {id(entry) for entry in branch.entries} - kept
            own = [request for request in requests if id(request.rows[0]) in rows]
            spent = [charge for request in own for charge in charges.get(request.window.number, ())]
            amount = add_amounts(charge.amount for charge in spent)
            if not amount:
                continue
            yield Waste(
                detector="abandoned-branch",
                session=facts.session.id,
                label=f"Branch with {count(len(own), 'request')}",
                evidence=f"the conversation continues elsewhere; the branch begins at line {branch.first.place.line}",
                places=(branch.first.place,),
                tokens=sum(charge.tokens for charge in spent),
                amount=amount,
                estimated=False,
                advice=_ADVICE,
                agent=agent.id,
                turn=own[0].window.turn if agent.id is None else None,
            )
