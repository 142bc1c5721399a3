"""Requests on branches that a rewind, a retry or an edited prompt abandoned.

Counts all that these requests cost. What they wrote to files may have been kept, and a branch may have been an
experiment that taught something, so this is what trying cost, not necessarily a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, WasteContext, charges_finding
from threadline.model.insight.waste import WasteLimits
from threadline.model.text import count


def detect(facts: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each abandoned branch with at least one request."""
    for agent in facts.agents:
        charges = facts.requests.charges(agent.id)
        kept = {id(entry) for entry in agent.conversation}
        for branch in agent.branches:
            rows = {id(entry) for entry in branch.entries} - kept
            own = [request for request in facts.requests.of_agent(agent.id) if id(request.rows[0]) in rows]
            if own:
                yield charges_finding(
                    [charge for request in own for charge in charges.get(request.window.number, ())],
                    label=f"Branch with {count(len(own), 'request')}",
                    evidence="the conversation goes on elsewhere; "
                    f"the branch begins at line {branch.first.place.line:,}",
                    place=branch.first.place,
                    agent=agent.id,
                    turn=own[0].window.turn if agent.id is None else None,
                )


ABANDONED_BRANCHES = Detector(
    "abandoned-branch",
    "Use plan mode to agree on the way first, and rewind as soon as the direction is wrong.",
    detect,
)
