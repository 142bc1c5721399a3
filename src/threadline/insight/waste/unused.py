"""What was paid for and not used: abandoned branches, results of subagents, and definitions of tools.

- A branch counts if a rewind, a retry or an edited prompt abandoned it, with all that its requests cost. What they
  wrote to files may have been kept, and a branch may have been an experiment that taught something. So this is what
  trying cost, not necessarily a mistake.
- A subagent counts if its result never reached the agent that started it: it failed or was interrupted, or the call
  that started it was. What counts is all that it spent.
- The tools of an MCP server count if they were sent with every request and never called. Only transcripts that contain
  the tools as they were sent (from 2.1.325 on) show this. The size of the definitions is their share of the measured
  system prompt.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.detector import Detector, Finding, WasteContext, charges_finding
from threadline.model.calls import Outcome
from threadline.model.insight.attribution import CauseKind
from threadline.model.insight.waste import WasteLimits
from threadline.model.names import mcp_server
from threadline.model.session import AgentStatus
from threadline.model.text import count, fold_line

_MAX_LABEL = 60
_BAD_OUTCOMES = frozenset((Outcome.ERROR, Outcome.INTERRUPTED, Outcome.DENIED, Outcome.LOST))
_BAD_STATES = frozenset((AgentStatus.FAILED, AgentStatus.INTERRUPTED))
_PREFIX = "tools of "


def _detect_agents(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each agent without a delivered result."""
    calls = {call.id: call for call in context.calls}
    for agent in context.session.agents:
        call = calls.get(agent.link.call) if agent.link.call is not None else None
        lost = call if call is not None and call.outcome in _BAD_OUTCOMES else None
        if agent.id is not None and (lost is not None or agent.status in _BAD_STATES):
            yield charges_finding(
                context.charges_of_agent(agent.id),
                label=fold_line(agent.description or agent.prompt or f"Agent {agent.id}", _MAX_LABEL),
                evidence=f"its call ended as {lost.outcome}" if lost is not None else f"it ended as {agent.status}",
                place=call.place if call is not None else agent.entries[0].place,
                agent=agent.id,
                turn=call.turn if call is not None else None,
            )


UNUSED_AGENTS = Detector(
    "unused-agent", "Give agents small tasks with a clear end, and let them report early.", _detect_agents
)


def _detect_tools(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each server without a call, by agent."""
    used = {(call.agent, mcp_server(call.tool)) for call in context.calls}
    for row in context.attribution.rows:
        server = row.name.removeprefix(_PREFIX) if row.name is not None and row.name.startswith(_PREFIX) else None
        if row.kind is not CauseKind.SYSTEM or server is None or (row.agent, server) in used:
            continue
        agent = context.session.agent(row.agent)
        yield Finding(
            f"MCP server {server}",
            f"its tools were sent with {row.requests:,} requests, and none was called",
            (agent.entries[0].place,) if agent is not None and agent.entries else (),
            row.tokens,
            row.amount,
            row.estimated,
            row.agent,
        )


UNUSED_TOOLS = Detector(
    "unused-tools", "Disable the server for this project, or connect it only when it is needed.", _detect_tools
)


def _detect_branches(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each abandoned branch with at least one request."""
    for agent in context.agents:
        charges = context.requests.charges(agent.id)
        kept = {id(entry) for entry in agent.conversation}
        for branch in agent.branches:
            rows = {id(entry) for entry in branch.entries} - kept
            own = [request for request in context.requests.of_agent(agent.id) if id(request.rows[0]) in rows]
            if own:
                yield charges_finding(
                    [charge for request in own for charge in charges.get(request.window.number, ())],
                    label=f"Branch with {count(len(own), 'request')}",
                    evidence=f"the conversation goes on elsewhere; the branch begins at line {branch.first.place.line}",
                    place=branch.first.place,
                    agent=agent.id,
                    turn=own[0].window.turn if agent.id is None else None,
                )


ABANDONED_BRANCHES = Detector(
    "abandoned-branch",
    "Use plan mode to agree on the way first, and rewind as soon as the direction is wrong.",
    _detect_branches,
)
