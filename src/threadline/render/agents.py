"""Agents in one line, and under the call that started them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
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


class Places:
    """Where each agent of a session stands, once: under a call, or apart where no way leads to it from the main one.

    Transcripts repeat calls of others: an agent stands under the copy that is the nearest to the main one. Of agents
    that start each other in a circle, the first one stands apart.
    """

    def __init__(self, session: Session) -> None:
        self.apart: list[Agent] = []
        """The agents that no call leads to."""
        self._under: dict[int, list[Agent]] = {}
        started = started_by(session)
        linked = {id(agent) for agents in started.values() for agent in agents}
        placed: set[int] = set()
        self._walk(session.main, started, placed)
        for agent in sorted(session.agents, key=lambda one: id(one) in linked):
            if id(agent) not in placed:
                placed.add(id(agent))
                self.apart.append(agent)
                self._walk(agent, started, placed)

    def _walk(self, start: Agent, started: Mapping[CallId, list[Agent]], placed: set[int]) -> None:
        ahead = deque([start])
        while ahead:
            for call in ahead.popleft().calls:
                new = [agent for agent in started.get(call.id, ()) if id(agent) not in placed]
                if new:
                    self._under[id(call)] = new
                    placed.update(map(id, new))
                    ahead.extend(new)

    def under(self, call: Call) -> list[Agent]:
        """The agents that stand under a call."""
        return self._under.get(id(call), [])

    def below(self, agent: Agent) -> list[Agent]:
        """All agents that stand under an agent's calls, and under theirs."""
        found: list[Agent] = [agent]
        for one in found:  # it grows
            found.extend(other for call in one.calls for other in self.under(call))
        return found[1:]


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
