"""One light pass over a main transcript: what a list of sessions shows of it, and no more kept in memory than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from threadline.errors import Error
from threadline.model.block import ToolResultBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, AttachmentEntry, ChainEntry, Entry, UserEntry
from threadline.model.found import Transcript
from threadline.model.ids import AgentId
from threadline.model.time import parse_timestamp
from threadline.parse import entries
from threadline.render.agents import AGENT_TOOLS
from threadline.survey.overview import ISO
from threadline.thread.acts import acts
from threadline.thread.side import side_kind
from threadline.thread.titles import title
from threadline.thread.turns import turns

_MADE_UP = "<synthetic>"


class Light(Struct, frozen=True):
    """What one pass tells. `spoken` is how many entries of the main conversation there are: none is no session.

    `inline` are the agents whose entries stand in the main transcript itself; `started` are the agents that its calls
    started, and `unnamed` is how many more of those calls do not name theirs.
    """

    title: str = ""
    title_source: str = ""
    cwd: str | None = None
    first: datetime | None = None
    last: datetime | None = None
    turns: int = 0
    inline: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    unnamed: int = 0
    agent_types: dict[str, int] = {}
    model: str | None = None
    entries: int = 0
    spoken: int = 0
    problem: str | None = None


def light(transcript: Transcript) -> Light:
    """One pass over a main transcript. Refusals of the machine become a problem."""
    try:
        return _Pass().over(entries(transcript.path))
    except Error as error:
        return Light(problem=str(error), spoken=1)


class _Pass:
    """Gathers, entry by entry."""

    def __init__(self) -> None:
        self.kept: list[Entry] = []
        self.inline: dict[str, None] = {}
        self.types: Counter[str] = Counter()
        self.asked: dict[str, str | None] = {}
        self.named: dict[str, None] = {}
        self.first: str | None = None
        self.last: str | None = None
        self.cwd: str | None = None
        self.model: str | None = None
        self.count = self.spoken = 0

    def over(self, found: Iterator[Entry]) -> Light:
        """The answer, when all entries have been seen."""
        for entry in found:
            self.count += 1
            if not isinstance(entry, ChainEntry):
                self.kept.append(entry)
            elif entry.is_agent:
                self._agent(entry)
            else:
                self._main(entry)
        done = acts(self.kept)
        named = title(self.kept, done)
        return Light(
            title=named.text,
            title_source=str(named.source),
            cwd=self.cwd,
            first=parse_timestamp(self.first),
            last=parse_timestamp(self.last),
            turns=sum(turn.act is not None for turn in turns(self.kept, done)),
            inline=tuple(self.inline),
            started=tuple(self.named),
            unnamed=len(self.asked),
            agent_types=dict(+self.types),
            model=self.model,
            entries=self.count,
            spoken=self.spoken,
        )

    def _agent(self, entry: ChainEntry) -> None:
        """An agent's entry among the main ones: each root is an agent, unless the program ran it for itself."""
        if isinstance(entry, UserEntry) and entry.parent_uuid is None:
            name = AgentId(entry.agent_id or entry.uuid or str(entry.line.number))
            if side_kind(name, entry.text) is None:
                self.inline[name] = None

    def _main(self, entry: ChainEntry) -> None:
        self.spoken += 1
        self.cwd = self.cwd or entry.cwd
        written = entry.timestamp_text
        # Times are ISO 8601 in UTC, so that text sorts as time does; other shapes are not counted here.
        if isinstance(written, str) and ISO.match(written):
            self.first = written if self.first is None or written < self.first else self.first
            self.last = written if self.last is None or written > self.last else self.last
        if isinstance(entry, AssistantEntry):
            self._reply(entry)
            return
        if isinstance(entry, UserEntry) and self.asked:
            self._answers(entry)
        if isinstance(entry, AttachmentEntry) or (isinstance(entry, UserEntry) and entry.tool_use_result is None):
            self.kept.append(entry)

    def _reply(self, entry: AssistantEntry) -> None:
        message = entry.message
        if message is None:
            return
        if message.model is not None and message.model != _MADE_UP:
            self.model = message.model
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, ToolUseBlock) and block.name in AGENT_TOOLS and isinstance(block.input, dict):
                kind = block.input.get("subagent_type")
                if block.id is not None and block.id not in self.asked:
                    self.asked[block.id] = kind if isinstance(kind, str) else None
                    self.types.update((kind,) if isinstance(kind, str) else ())

    def _answers(self, entry: UserEntry) -> None:
        """What came of calls for agents: one that failed or was refused started none."""
        for block in entry.message.blocks if entry.message is not None else ():
            if not isinstance(block, ToolResultBlock) or block.tool_use_id not in self.asked:
                continue
            given = entry.tool_use_result
            name = given.get("agentId") if isinstance(given, dict) else None
            if block.is_error:
                kind = self.asked.pop(block.tool_use_id)
                self.types.subtract((kind,) if kind is not None else ())
            elif isinstance(name, str):
                del self.asked[block.tool_use_id]
                self.named[name] = None
