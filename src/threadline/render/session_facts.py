"""Facts about a session that several outputs show: its agents, background tasks and abandoned branches.

Each agent is placed once: under the call that started it, or separately if no call leads to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from threadline.model.calls import Call, Outcome
from threadline.model.entries import Entry
from threadline.model.names import AGENT_TOOLS
from threadline.model.places import CallId
from threadline.model.results import AgentResult
from threadline.model.session import Agent, AgentStatus, Compaction, CompactionKind, Continuation, Session, Turn
from threadline.model.text import count, format_duration, format_token_change
from threadline.render.outline import TaskNotification, View, entry_key
from threadline.render.text import Role, Span, Spans, cut_line, one_line

NO_TRANSCRIPT = "(transcript missing)"
_STATUS_ROLES: dict[AgentStatus, Role] = {
    AgentStatus.DONE: Role.GOOD,
    AgentStatus.FAILED: Role.BAD,
    AgentStatus.INTERRUPTED: Role.NOTICE,
    AgentStatus.PENDING: Role.NOTICE,
}


def describe_platform(session: Session) -> str:
    """The operating system a session ran on, or else the platform; empty if unknown."""
    environment = session.environment
    return (environment.os_version or environment.platform or "") if environment is not None else ""


def agents_by_call(session: Session) -> dict[CallId, list[Agent]]:
    """The agents that each call started."""
    agents: dict[CallId, list[Agent]] = {}
    calls = {call.id for call in session.calls}
    for agent in session.agents:
        if agent.link.call is not None and agent.link.call in calls:
            agents.setdefault(agent.link.call, []).append(agent)
    return agents


class AgentPlacement:
    """Places each agent of a session once: under a call, or in `unlinked` if the main agent does not lead to it.

    Transcripts repeat calls of other transcripts. An agent is placed under the copy nearest to the main transcript. If
    agents start each other in a circle, the first one is unlinked.
    """

    def __init__(self, session: Session) -> None:
        self.unlinked: list[Agent] = []
        """The agents that no call leads to, in order."""
        self._under: dict[int, list[Agent]] = {}
        started = agents_by_call(session)
        linked = {id(agent) for agents in started.values() for agent in agents}
        placed: set[int] = set()
        self._walk(session.main, started, placed)
        for agent in sorted(session.agents, key=lambda candidate: id(candidate) in linked):
            if id(agent) not in placed:
                placed.add(id(agent))
                self.unlinked.append(agent)
                self._walk(agent, started, placed)

    def _walk(self, start: Agent, started: Mapping[CallId, list[Agent]], placed: set[int]) -> None:
        queue = deque([start])
        while queue:
            for call in queue.popleft().calls:
                new = [agent for agent in started.get(call.id, ()) if id(agent) not in placed]
                if new:
                    self._under[id(call)] = new
                    placed.update(map(id, new))
                    queue.extend(new)

    def under(self, call: Call) -> list[Agent]:
        """The agents placed under a call."""
        return self._under.get(id(call), [])

    def below(self, agent: Agent) -> list[Agent]:
        """All agents placed under an agent's calls, directly or indirectly."""
        agents: list[Agent] = [agent]
        for parent in agents:  # the list grows while it is iterated
            agents.extend(child for call in parent.calls for child in self.under(call))
        return agents[1:]


def agents_in_view(session: Session, view: View) -> list[Agent]:
    """The agents that a view shows. If it shows only some turns, those that the turns started, directly or not."""
    agents = [agent for agent in session.agents if agent.side is None or view.everything]
    if not view.has_turn_range:
        return agents
    calls = {call.id for call in session.main.calls if call.turn is not None and view.shows_turn(call.turn)}
    started: list[Agent] = []
    while new := [agent for agent in agents if agent.link.call in calls]:
        agents = [agent for agent in agents if agent not in new]
        started += new
        calls = {call.id for agent in new for call in agent.calls}
    return [agent for agent in session.agents if agent in started]


def agents_without_transcript(session: Session) -> dict[CallId, str]:
    """Titles of agents without a transcript, by the call that started them.

    A failed or denied call started no agent. A call that resumed an agent belongs to that agent's transcript.
    """
    started = agents_by_call(session)
    agent_ids = {str(agent.id) for agent in session.agents}
    missing: dict[CallId, str] = {}
    for call in session.calls:
        if call.tool not in AGENT_TOOLS or call.outcome in (Outcome.ERROR, Outcome.DENIED) or call.id in started:
            continue
        result = call.result
        id_ = result.agent_id if isinstance(result, AgentResult) else None
        if id_ is None or id_ not in agent_ids:
            missing[call.id] = _requested_agent(call)
            agent_ids.update((id_,) if id_ is not None else ())
    return missing


def count_session_agents(session: Session) -> tuple[int, int]:
    """How many agents have a transcript, and how many were started. Side agents do not count."""
    with_transcript = sum(agent.side is None for agent in session.agents)
    return with_transcript, with_transcript + len(agents_without_transcript(session))


def _requested_agent(call: Call) -> str:
    arguments = call.input if isinstance(call.input, dict) else {}
    kind = arguments.get("subagent_type")
    what = arguments.get("description") or arguments.get("prompt") or call.id
    return f"{kind if isinstance(kind, str) and kind else 'agent'}: {what}"


def agent_title(agent: Agent) -> str:
    """The title of an agent: its type and its task."""
    what = agent.description or agent.prompt or str(agent.id or "")
    return f"{agent.side or agent.type or 'agent'}: {what}"


def agent_duration(agent: Agent) -> timedelta | None:
    """The time from an agent's first entry to its last."""
    times = [when for entry in agent.entries if (when := entry.timestamp) is not None]
    return max(times) - min(times) if times else None


def missing_agent_line(what: str, width: int) -> Spans:
    """`↳ Explore: find the parser (transcript missing)`."""
    room = max(16, width - 3 - len(NO_TRANSCRIPT))
    return cut_line((Span(f"↳ {one_line(what, room)}", Role.AGENT), Span(f" {NO_TRANSCRIPT}", Role.FAINT)), width)


def agent_line(agent: Agent, width: int) -> Spans:
    """`↳ Explore: find the parser · 23 calls · 1m 12s · done`."""
    facts = [count(len(agent.calls), "call"), format_duration(agent_duration(agent))]
    after = "".join(f" · {fact}" for fact in facts if fact)
    status = "" if agent.status is AgentStatus.UNKNOWN else f" · {agent.status}"
    room = max(16, width - 2 - len(after) - len(status))
    return cut_line(
        (
            Span("↳ ", Role.AGENT),
            Span(one_line(agent_title(agent), room), Role.AGENT),
            Span(after, Role.FAINT),
            Span(status, _STATUS_ROLES.get(agent.status, Role.FAINT)),
        ),
        width,
    )


class BackgroundTasks:
    """Notifications about background tasks, by entry (`by_entry`) and by the call that started the task."""

    def __init__(self, session: Session, notifications: Iterable[TaskNotification]) -> None:
        self._calls = session.calls_by_id
        self._started = {
            str(call.started): call
            for call in session.calls
            if call.started is not None and call is self._calls[call.id]
        }
        self._ends: dict[str, TaskNotification] = {}
        self.by_entry = group_by_entry(notifications)
        for notification in (item for items in self.by_entry.values() for item in items):
            if (call := self.starting_call(notification)) is not None:
                self._ends[call.id] = notification

    def starting_call(self, notification: TaskNotification) -> Call | None:
        """The call that started the task."""
        return (self._calls.get(notification.call) if notification.call is not None else None) or self._started.get(
            notification.task
        )

    def end(self, call: Call) -> TaskNotification | None:
        """The last notification about the task that a call started."""
        return self._ends.get(call.id)


def group_by_entry(notifications: Iterable[TaskNotification]) -> dict[str, list[TaskNotification]]:
    """Group notifications by the `entry_key` of their entry."""
    by_entry: dict[str, list[TaskNotification]] = {}
    for notification in notifications:
        by_entry.setdefault(entry_key(notification.entry), []).append(notification)
    return by_entry


def task_sentence(notification: TaskNotification) -> str:
    """The outcome of a task as a sentence."""
    return notification.summary or " ".join(filter(None, (notification.task, notification.status))) or "ended"


def task_answer(notification: TaskNotification) -> str | None:
    """The answer of a task; None if it is empty."""
    return notification.result if notification.result and notification.result.strip() else None


def branch_numbers(agent: Agent) -> dict[tuple[str, int], int]:
    """Branch numbers by the lines of their entries. If several branches contain an entry, the first one wins."""
    numbers: dict[tuple[str, int], int] = {}
    for number, branch in enumerate(agent.branches, 1):
        for entry in branch.entries:
            numbers.setdefault(_line_key(entry), number)
    return numbers


def branch_number(numbers: Mapping[tuple[str, int], int], entry: Entry) -> int | None:
    """The number of the branch that contains an entry, or None."""
    return numbers.get(_line_key(entry))


def abandoned_turns(agent: Agent) -> dict[int, list[Turn]]:
    """The turns on abandoned branches, by branch number."""
    numbers = branch_numbers(agent)
    turns: dict[int, list[Turn]] = {}
    for turn in agent.turns:
        number = branch_number(numbers, turn.act.entry) if turn.act is not None else None
        if number is not None:
            turns.setdefault(number, []).append(turn)
    return dict(sorted(turns.items()))


def describe_hidden_branches(agent: Agent, branch: int | None) -> str:
    """A sentence about the branches that an export leaves out, and the option to export them."""
    total = len(agent.branches)
    if not total:
        return ""
    if branch is not None:
        return f"This is abandoned branch {branch} of {total:,}. Export without --branch to get the conversation."
    turns = sum(map(len, abandoned_turns(agent).values()))
    with_turns = f" with {count(turns, 'turn')}" if turns else ""
    if total == 1:
        return f"1 abandoned branch{with_turns} is not shown. Export it with --branch 1."
    return f"{total:,} abandoned branches{with_turns} are not shown. Export them with --branch 1 to --branch {total}."


def _line_key(entry: Entry) -> tuple[str, int]:
    return entry.line.transcript, entry.line.number


def describe_continuation(link: Continuation) -> str:
    """How a session and another one continue each other: `continues from 5e551011 (fork)`."""
    label = "continues in" if link.forward else "continues from"
    return f"{label} {link.session or 'another session'} ({link.kind})"


def describe_compaction(compaction: Compaction) -> str:
    """What a compaction did: `compacted (auto) · 998.7k → 18.1k tokens`."""
    action = "old results cleared" if compaction.kind is CompactionKind.MICRO else "compacted"
    trigger = f" ({compaction.trigger})" if compaction.trigger else ""
    sizes = format_token_change(compaction.tokens_before, compaction.tokens_after)
    return f"{action}{trigger}{f' · {sizes}' if sizes else ''}"


def continuation_record(link: Continuation) -> dict[str, Any]:
    """A continuation as JSON values."""
    return {"kind": str(link.kind), "session": link.session, "forward": link.forward}
