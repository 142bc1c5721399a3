"""Agents that a transcript holds, and the calls that started others, entry by entry."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from threadline.index.answer import Answered
from threadline.index.texts import as_text
from threadline.model.agent import LinkStep
from threadline.model.entries import (
    AgentMetadataEntry,
    AgentProgress,
    AssistantEntry,
    ChainEntry,
    Entry,
    ProgressEntry,
    SkillProgress,
    UserEntry,
)
from threadline.model.found import Transcript, TranscriptKind
from threadline.thread.calls import STARTERS, agent_in_result

MAIN = ""
"""Stands for the main agent, in a transcript that holds others as well."""

# A message is written in several rows, between which others may stand: so many messages are told apart.
_RECENT = 16
_MOST_ROOTS = 5000


class AgentState(Struct, array_like=True):
    """What is known of an agent so far; `recent` are the messages that were counted last."""

    entries: int = 0
    first: str | None = None
    last: str | None = None
    session: str | None = None
    type: str | None = None
    models: dict[str, int] = {}
    recent: list[str] = []

    def add(self, entry: Entry) -> None:
        """One more entry of the agent."""
        self.entries += 1
        written = entry.timestamp_text
        if type(written) is str:
            self.first = written if self.first is None or written < self.first else self.first
            self.last = written if self.last is None or written > self.last else self.last
        if self.session is None:
            self.session = as_text(entry.session_id)
        if type(entry) is AssistantEntry and entry.message is not None and not entry.is_made_up:
            self._reply(entry, as_text(entry.message.model), as_text(entry.message.id))

    def _reply(self, entry: AssistantEntry, model: str | None, message: str | None) -> None:
        if entry.attribution_agent is not None and self.type is None:
            self.type = as_text(entry.attribution_agent)
        if model and (message is None or message not in self.recent):
            self.models[model] = self.models.get(model, 0) + 1
            if message is not None:
                self.recent = [*self.recent[1 - _RECENT :], message]

    @property
    def model(self) -> str | None:
        """The one that answered most often; of several, the first."""
        return max(self.models, key=lambda name: self.models[name], default=None)


class AgentsState(Struct, array_like=True):
    """The agents of a transcript by id, and (inside a main one) which of them each entry's id belongs to."""

    agents: dict[str, AgentState] = {}
    roots: dict[str, str] = {}


class Start(Struct, array_like=True, gc=False):
    """A call that started an agent, and by what that is known; what type of agent it asked for."""

    agent: str
    call: str
    step: str
    type: str | None = None


class Agents:
    """The agents, while entries are added."""

    def __init__(self, state: AgentsState, transcript: Transcript) -> None:
        self.state = state
        own = transcript.agent if transcript.kind is not TranscriptKind.MAIN else None
        self._own = as_text(own)
        self._is_main = transcript.kind is TranscriptKind.MAIN
        self._changed: set[str] = set()
        self.starts: dict[tuple[str, str], Start] = {}

        self.counts = self._own is not None
        """Whether every entry is one agent's: the transcript's own."""

    def own(self, entry: Entry) -> None:
        """One more entry of the transcript's own agent."""
        self._of(self._own or "").add(entry)

    def inside(self, entry: ChainEntry) -> str | None:
        """One more entry that is marked as an agent's; gives which, where it is not the transcript's own."""
        if not self._is_main:
            return None
        agent = self._inside(entry)
        self._of(agent).add(entry)
        return agent

    def main(self) -> None:
        """There is an entry of the main agent's."""
        if self._is_main and MAIN not in self.state.agents:
            self._of(MAIN).entries = 1

    def _of(self, agent: str) -> AgentState:
        self._changed.add(agent)
        known = self.state.agents.get(agent)
        if known is None:
            known = self.state.agents[agent] = AgentState()
        return known

    def _inside(self, entry: ChainEntry) -> str:
        """Which agent inside a main transcript an entry belongs to: as `threadline.thread.inline` parts them."""
        if entry.agent_id is not None:
            return as_text(entry.agent_id) or ""
        uuid, parent = as_text(entry.uuid), as_text(entry.parent_uuid)
        roots = self.state.roots
        root = roots.get(uuid or "") or roots.get(parent or "") or uuid or parent or f"line{entry.line.number}"
        if uuid is not None and uuid not in roots:
            roots[uuid] = root
        return f"inline-{root[:8]}"

    def answered(self, one: Answered) -> None:
        """A call got its result, which names the agent that it started."""
        if one.ending.started is None:
            return
        raw = one.entry.tool_use_result if isinstance(one.entry, UserEntry) else None
        step = LinkStep.RESULT if agent_in_result(raw) is not None else LinkStep.RESULT_TEXT
        given = one.input if one.tool in STARTERS else None
        kind = given.get("subagent_type") if isinstance(given, dict) else None
        kind = kind or (raw.get("agentType") if isinstance(raw, dict) else None)
        self._start(one.ending.started, one.call, step, as_text(kind))

    def progress(self, entry: ProgressEntry) -> None:
        """Something goes on in a call: an agent, perhaps."""
        match entry:
            case ProgressEntry(
                progress=AgentProgress(agent_id=str(agent)) | SkillProgress(agent_id=str(agent)),
                parent_tool_use_id=str(call),
            ):
                self._start(agent, call, LinkStep.PROGRESS, None)

    def metadata(self, entry: AgentMetadataEntry) -> None:
        """What elsewhere stands in a file beside an agent's transcript."""
        if isinstance(entry.agent_id, str) and isinstance(entry.tool_use_id, str):
            self._start(entry.agent_id, entry.tool_use_id, LinkStep.META, as_text(entry.agent_type))

    def _start(self, agent: str, call: str, step: LinkStep, kind: str | None) -> None:
        made = Start(as_text(agent) or "", as_text(call) or "", str(step), kind)
        self.starts.setdefault((made.agent, made.step), made)

    def done(self) -> AgentRows:
        """The rows, when all entries have been added."""
        roots = self.state.roots
        for uuid in list(roots)[:-_MOST_ROOTS]:
            del roots[uuid]
        known = self.state.agents
        rows = [(name, known[name]) for name in sorted(self._changed)]
        return AgentRows(
            [
                (name, one.session, one.type, one.model, one.entries, as_text(one.first), as_text(one.last))
                for name, one in rows
            ],
            list(self.starts.values()),
        )


class AgentRows(Struct, array_like=True, gc=False):
    """The agents of which something was read, and the starts of others."""

    agents: list[tuple[str, str | None, str | None, str | None, int, str | None, str | None]]
    starts: list[Start]

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write them down for the transcript of that number."""
        connection.executemany(
            "INSERT OR REPLACE INTO agent_rows VALUES(?, ?, ?, ?, ?, ?, ?, ?)", [(number, *row) for row in self.agents]
        )
        connection.executemany(
            "INSERT OR IGNORE INTO start_rows VALUES(?, ?, ?, ?, ?)",
            [(number, one.agent, one.step, one.call, one.type) for one in self.starts],
        )
