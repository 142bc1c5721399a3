"""Agents in one line, and under the call that started them."""

from __future__ import annotations

from datetime import timedelta

from threadline.model.agent import Agent, AgentStatus
from threadline.model.call import Call, Outcome
from threadline.model.ids import CallId
from threadline.model.results import AgentResult
from threadline.model.session import Session
from threadline.render.figures import count, span_of_time
from threadline.render.layout import cut
from threadline.render.style import Role, Span, Spans
from threadline.render.terminal_text import one_line

AGENT_TOOLS = frozenset({"Task", "Agent"})
"""The tools that start an agent."""
NOT_KEPT = "(no transcript kept)"
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


def not_kept(session: Session) -> dict[CallId, str]:
    """The calls that started an agent of which no transcript was kept: what each agent is called.

    A call that failed or was refused started none; one that woke an agent again is told where that one is.
    """
    started = started_by(session)
    seen = {str(agent.id) for agent in session.agents}
    found: dict[CallId, str] = {}
    for call in session.calls:
        if call.tool not in AGENT_TOOLS or call.outcome in (Outcome.ERROR, Outcome.DENIED) or call.id in started:
            continue
        result = call.result
        id_ = result.agent_id if isinstance(result, AgentResult) else None
        if id_ is None or id_ not in seen:
            found[call.id] = _asked_for(call)
            seen.update((id_,) if id_ is not None else ())
    return found


def _asked_for(call: Call) -> str:
    given = call.input if isinstance(call.input, dict) else {}
    kind = given.get("subagent_type")
    what = given.get("description") or given.get("prompt") or call.id
    return f"{kind if isinstance(kind, str) and kind else 'agent'}: {what}"


def counted(kept: int, started: int) -> str:
    """`3 agents`, `26 agents, none kept`, `5 agents, 3 kept`; nothing where there was none."""
    if started <= kept:
        return count(kept, "agent") if kept else ""
    return f"{count(started, 'agent')}, {kept or 'none'} kept"


def name(agent: Agent) -> str:
    """What an agent is called: its kind of work, and what it was to do."""
    what = agent.description or agent.prompt or str(agent.id or "")
    return f"{agent.side or agent.type or 'agent'}: {what}"


def duration(agent: Agent) -> timedelta | None:
    """From its first entry to its last."""
    times = [when for entry in agent.entries if (when := entry.timestamp) is not None]
    return max(times) - min(times) if times else None


def absent(what: str, width: int) -> Spans:
    """`↳ Explore: find the parser (no transcript kept)`."""
    room = max(16, width - 3 - len(NOT_KEPT))
    return cut((Span(f"↳ {one_line(what, room)}", Role.AGENT), Span(f" {NOT_KEPT}", Role.FAINT)), width)


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
