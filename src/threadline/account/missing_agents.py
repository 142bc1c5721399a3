"""Find subagents whose transcripts are gone: their spending is in no total, and only their results say what they used.

The result of a call names the agent it started. If there is no transcript of that agent and no row marked as the
agent's, then what it spent is missing, except for messages that its parent's transcript repeats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from threadline.model.homes import Transcript
from threadline.model.ledger import MissingAgent
from threadline.model.places import Place
from threadline.model.times import parse_timestamp
from threadline.model.usage import AgentResultUsage, TranscriptSightings

_LAST = datetime.max.replace(tzinfo=UTC)


class _NamedAgent(NamedTuple):
    """A result that names an agent, and where it was read."""

    result: AgentResultUsage
    transcript: Transcript
    project: str
    line_at: Callable[[int], int]

    def as_missing(self) -> MissingAgent:
        """The agent, if it left nothing. To know the line of its call, the lines before it are counted."""
        result = self.result
        place = Place(os.fspath(self.transcript.path), self.line_at(result.offset))
        timestamp = parse_timestamp(result.time)
        return MissingAgent(
            result.agent, result.call, self.transcript.session, self.project, timestamp, result.tokens, place
        )


class AgentResults:
    """Collects the agents that results name and the agents that left rows, transcript by transcript."""

    def __init__(self) -> None:
        self._named: list[_NamedAgent] = []
        self._present: set[str] = set()

    def add(
        self, read: TranscriptSightings, transcript: Transcript, project: str, line_at: Callable[[int], int]
    ) -> None:
        """Add a transcript. `line_at` returns the number of the line that begins at an offset."""
        if transcript.agent is not None:
            self._present.add(transcript.agent)
        agents = {read.origins[s.origin_number].agent for s in read.sightings if not s.is_repeat}
        self._present.update(agent for agent in agents if agent is not None)
        self._named.extend(_NamedAgent(result, transcript, project, line_at) for result in read.agents)

    def __iter__(self) -> Iterator[MissingAgent]:
        """Iterate over the agents that left nothing, oldest first, once all transcripts have been added."""
        missing = (named.as_missing() for named in self._named if named.result.agent not in self._present)
        return iter(merge_missing_agents(missing))


def merge_missing_agents(agents: Iterable[MissingAgent]) -> tuple[MissingAgent, ...]:
    """Combine the results that name the same agent: the first call counts, with the most tokens that any reports.

    Forks repeat results, and an agent that was resumed has several.
    """
    first: dict[str, MissingAgent] = {}
    tokens: dict[str, int] = {}
    for agent in sorted(agents, key=_order):
        first.setdefault(agent.agent, agent)
        if agent.tokens is not None:
            tokens[agent.agent] = max(agent.tokens, tokens.get(agent.agent, 0))
    return tuple(
        MissingAgent(
            agent.agent, agent.call, agent.session, agent.project, agent.timestamp, tokens.get(name), agent.place
        )
        for name, agent in first.items()
    )


def _order(agent: MissingAgent) -> tuple[datetime, str, int, str]:
    return agent.timestamp or _LAST, agent.place.transcript, agent.place.line, agent.agent
