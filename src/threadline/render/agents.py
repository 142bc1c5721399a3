"""Agents in one line, and under the call that started them."""

from __future__ import annotations

from datetime import timedelta

from threadline.model.agent import Agent, AgentStatus
from threadline.model.ids import CallId
from threadline.model.session import Session
from threadline.render.figures import count, span_of_time
from threadline.render.layout import cut
from threadline.render.style import Role, Span, Spans
from threadline.render.terminal_text import one_line

_STATUS: dict[AgentStatus, Role] = {
    AgentStatus.DONE: Role.GOOD,
    AgentStatus.FAILED: Role.BAD,
    AgentStatus.INTERRUPTED: Role.NOTICE,
    AgentStatus.PENDING: Role.NOTICE,
}


def started_by(session: Session) -> dict[CallId, list[Agent]]:
    """The agents that each call started."""
    found: dict[CallId, list[Agent]] = {}
    calls = {call.id for call in session.calls}
    for agent in session.agents:
        if agent.link.call is not None and agent.link.call in calls:
            found.setdefault(agent.link.call, []).append(agent)
    return found


def unlinked(session: Session) -> list[Agent]:
    """The agents that no call of the session leads to."""
    linked = {id(agent) for agents in started_by(session).values() for agent in agents}
    return [agent for agent in session.agents if id(agent) not in linked]


def name(agent: Agent) -> str:
    """What an agent is called: its kind of work, and what it was to do."""
    what = agent.description or agent.prompt or str(agent.id or "")
    return f"{agent.side or agent.type or 'agent'}: {what}"


def duration(agent: Agent) -> timedelta | None:
    """From its first entry to its last."""
    times = [when for entry in agent.entries if (when := entry.timestamp) is not None]
    return max(times) - min(times) if times else None


def headline(agent: Agent, width: int) -> Spans:
    """`↳ Explore: find the parser · 23 calls · 1m 12s · done`."""
    facts = [count(len(agent.calls), "call"), span_of_time(duration(agent))]
    after = "".join(f" · {fact}" for fact in facts if fact)
    status = "" if agent.status is AgentStatus.UNKNOWN else f" · {agent.status}"
    room = max(16, width - 2 - len(after) - len(status))
    return cut(
        (
            Span("↳ ", Role.AGENT),
            Span(one_line(name(agent), room), Role.AGENT),
            Span(after, Role.FAINT),
            Span(status, _STATUS.get(agent.status, Role.FAINT)),
        ),
        width,
    )
