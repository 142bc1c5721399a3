"""Facts about a session that several outputs show: its agents, background tasks and abandoned branches.

Each agent is placed once: under the call that started it, or apart if no call leads to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import timedelta

from threadline.model.calls import AGENT_TOOLS, Call, Outcome
from threadline.model.entries import Entry
from threadline.model.places import CallId
from threadline.model.results import AgentResult
from threadline.model.session import Agent, AgentStatus, Session, Turn
from threadline.model.text import count, format_duration
from threadline.render.outline import TaskNotification, entry_key
from threadline.render.safe_text import one_line
from threadline.render.terminal import Role, Span, Spans, cut_line

NOT_KEPT = "(no transcript kept)"
_STATUS_ROLES: dict[AgentStatus, Role] = {
    AgentStatus.DONE: Role.GOOD,
    AgentStatus.FAILED: Role.BAD,
    AgentStatus.INTERRUPTED: Role.NOTICE,
    AgentStatus.PENDING: Role.NOTICE,
}


def agents_by_call(session: Session) -> dict[CallId, list[Agent]]:
    """The agents that each call started."""
    found: dict[CallId, list[Agent]] = {}
    calls = {call.id for call in session.calls}
    for agent in session.agents:
        if agent.link.call is not None and agent.link.call in calls:
            found.setdefault(agent.link.call, []).append(agent)
    return found


class AgentPlacement:
    """Where each agent of a session stands, once: under a call, or apart where no way leads to it from the main one.

    Transcripts repeat calls of others: an agent stands under the copy that is the nearest to the main one. Of agents
    that start each other in a circle, the first one stands apart.
    """

    def __init__(self, session: Session) -> None:
        self.apart: list[Agent] = []
        """The agents that no call leads to."""
        self._under: dict[int, list[Agent]] = {}
        started = agents_by_call(session)
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


def agents_without_transcript(session: Session) -> dict[CallId, str]:
    """The calls that started an agent of which no transcript was kept: what each agent is called.

    A call that failed or was refused started none; one that woke an agent again is told where that one is.
    """
    started = agents_by_call(session)
    seen = {str(agent.id) for agent in session.agents}
    found: dict[CallId, str] = {}
    for call in session.calls:
        if call.tool not in AGENT_TOOLS or call.outcome in (Outcome.ERROR, Outcome.DENIED) or call.id in started:
            continue
        result = call.result
        id_ = result.agent_id if isinstance(result, AgentResult) else None
        if id_ is None or id_ not in seen:
            found[call.id] = _requested_agent(call)
            seen.update((id_,) if id_ is not None else ())
    return found


def _requested_agent(call: Call) -> str:
    given = call.input if isinstance(call.input, dict) else {}
    kind = given.get("subagent_type")
    what = given.get("description") or given.get("prompt") or call.id
    return f"{kind if isinstance(kind, str) and kind else 'agent'}: {what}"


def agent_title(agent: Agent) -> str:
    """What an agent is called: its kind of work, and what it was to do."""
    what = agent.description or agent.prompt or str(agent.id or "")
    return f"{agent.side or agent.type or 'agent'}: {what}"


def agent_duration(agent: Agent) -> timedelta | None:
    """From its first entry to its last."""
    times = [when for entry in agent.entries if (when := entry.timestamp) is not None]
    return max(times) - min(times) if times else None


def missing_agent_line(what: str, width: int) -> Spans:
    """`↳ Explore: find the parser (no transcript kept)`."""
    room = max(16, width - 3 - len(NOT_KEPT))
    return cut_line((Span(f"↳ {one_line(what, room)}", Role.AGENT), Span(f" {NOT_KEPT}", Role.FAINT)), width)


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
    """What is told of background tasks. `by_entry` is the news that each entry tells, by the entry's name."""

    def __init__(self, whole: Session, news: Iterable[TaskNotification]) -> None:
        self._calls = {call.id: call for call in whole.calls}
        self._started = {str(call.started): call for call in whole.calls if call.started is not None}
        self._ends: dict[str, TaskNotification] = {}
        self.by_entry = group_by_entry(news)
        for told in (one for some in self.by_entry.values() for one in some):
            if (call := self.starting_call(told)) is not None:
                self._ends[call.id] = told

    def starting_call(self, news: TaskNotification) -> Call | None:
        """The call that started the task."""
        return (self._calls.get(news.call) if news.call is not None else None) or self._started.get(news.task)

    def end(self, call: Call) -> TaskNotification | None:
        """What became of the task that a call started."""
        return self._ends.get(call.id)


def group_by_entry(news: Iterable[TaskNotification]) -> dict[str, list[TaskNotification]]:
    """News by the name of the entry that tells it."""
    found: dict[str, list[TaskNotification]] = {}
    for told in news:
        found.setdefault(entry_key(told.entry), []).append(told)
    return found


def task_sentence(news: TaskNotification) -> str:
    """What became of a task, in a line."""
    return news.summary or " ".join(filter(None, (news.task, news.status))) or "ended"


def task_answer(news: TaskNotification) -> str | None:
    """What a task answered, if it said anything."""
    return news.result if news.result and news.result.strip() else None


def branch_numbers(agent: Agent) -> dict[tuple[str, int], int]:
    """The numbers of branches by the places of what they hold; of several with the same entry, the first."""
    found: dict[tuple[str, int], int] = {}
    for number, branch in enumerate(agent.branches, 1):
        for entry in branch.entries:
            found.setdefault(_line_key(entry), number)
    return found


def branch_number(known: Mapping[tuple[str, int], int], entry: Entry) -> int | None:
    """The branch that holds an entry; None where none does."""
    return known.get(_line_key(entry))


def abandoned_turns(agent: Agent) -> dict[int, list[Turn]]:
    """The turns that were left, by the number of their branch."""
    known = branch_numbers(agent)
    found: dict[int, list[Turn]] = {}
    for turn in agent.turns:
        number = branch_number(known, turn.act.entry) if turn.act is not None else None
        if number is not None:
            found.setdefault(number, []).append(turn)
    return dict(sorted(found.items()))


def describe_hidden_branches(agent: Agent, branch: int | None) -> str:
    """What a file that shows the conversation, or one branch, does not show, and the option that has it."""
    many = len(agent.branches)
    if not many:
        return ""
    if branch is not None:
        return f"This is branch {branch} of {many:,}, which was left; an export without --branch has the conversation."
    turns = sum(map(len, abandoned_turns(agent).values()))
    with_turns = f" with {count(turns, 'turn')}" if turns else ""
    if many == 1:
        return f"1 branch{with_turns} that was left is not shown; an export with --branch 1 has it."
    return f"{many:,} branches{with_turns} that were left are not shown; exports with --branch 1 to {many} have them."


def _line_key(entry: Entry) -> tuple[str, int]:
    return entry.line.transcript, entry.line.number
