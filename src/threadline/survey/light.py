"""One light pass over a main transcript: what a list of sessions shows of it, and no more kept in memory than that."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct

from threadline.errors import Error
from threadline.model.act import Act
from threadline.model.block import ToolResultBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, AttachmentEntry, ChainEntry, Entry, QueueOperationEntry, UserEntry
from threadline.model.found import Transcript
from threadline.model.ids import AgentId
from threadline.model.side_agent import side_kind
from threadline.model.title import short
from threadline.parse import entries
from threadline.render.agents import AGENT_TOOLS
from threadline.survey.glance import ISO
from threadline.survey.light_state import Light, LightState, light_of
from threadline.thread.acts import act_of, acts, are_told_twice, may_be_unrecorded, normal, version_numbers
from threadline.thread.titles import first_words, given_title
from threadline.thread.turns import begins_turn

_MADE_UP = "<synthetic>"


def light(transcript: Transcript) -> Light:
    """One pass over a main transcript. Refusals of the machine become a problem."""
    try:
        return passed(entries(transcript.path)).light()
    except Error as error:
        return Light(problem=str(error), spoken=1)


def passed(found: Iterable[Entry]) -> Lighting:
    """A pass over all entries of a transcript."""
    lighting = Lighting()
    for entry in found:
        lighting.add(entry)
    return lighting


class Prompt(Struct, frozen=True, array_like=True):
    """What a person typed, the line that tells of it, and the number of its turn, or of the one it joins."""

    line: int
    turn: int
    kind: str
    text: str


class Lighting:
    """A pass over the entries of a transcript, from its first one or from where another pass stood.

    `prompts` are those of this pass alone. Up to 2.1.97, what was typed while the model worked is told by the whole
    transcript only: a pass that began later `is_sure` of nothing then, and has to be made from the first entry.
    """

    def __init__(self, state: LightState | None = None) -> None:
        self.state = state or LightState()
        self.prompts: list[Prompt] = []
        self._kept: list[Entry] | None = [] if state is None else None

    @property
    def is_sure(self) -> bool:
        """Whether what it tells of turns and titles is so."""
        return self._kept is not None or not self._is_told_by_the_whole

    @property
    def _is_told_by_the_whole(self) -> bool:
        return self.state.unqueued and may_be_unrecorded(self.state.newest)

    def light(self) -> Light:
        """What the entries so far tell."""
        state = self.state
        if self._is_told_by_the_whole and self._kept is not None:
            self._act_anew(self._kept)
        return light_of(state)

    def add(self, entry: Entry) -> None:
        """One more entry."""
        state = self.state
        state.count += 1
        if not isinstance(entry, ChainEntry):
            self._keep(entry)
            state.unqueued = state.unqueued or (isinstance(entry, QueueOperationEntry) and entry.operation == "remove")
            titled = given_title(entry)
            if titled is not None:
                state.titles[titled[0]] = short(titled[1])
        elif entry.is_agent:
            self._agent(entry)
        else:
            self._main(entry)

    def _keep(self, entry: Entry) -> None:
        if self._kept is not None:
            self._kept.append(entry)

    def _agent(self, entry: ChainEntry) -> None:
        """An agent's entry among the main ones: each root is an agent, unless the program ran it for itself."""
        if isinstance(entry, UserEntry) and entry.parent_uuid is None:
            name = AgentId(entry.agent_id or entry.uuid or str(entry.line.number))
            if side_kind(name, entry.text) is None and name not in self.state.inline:
                self.state.inline.append(name)

    def _main(self, entry: ChainEntry) -> None:
        state = self.state
        state.spoken += 1
        state.cwd = state.cwd or entry.cwd
        written = entry.timestamp_text
        # Times are ISO 8601 in UTC, so that text sorts as time does; other shapes are not counted here.
        if isinstance(written, str) and ISO.match(written):
            state.first = written if state.first is None or written < state.first else state.first
            state.last = written if state.last is None or written > state.last else state.last
        if isinstance(entry, AssistantEntry):
            self._reply(entry)
            return
        if isinstance(entry, UserEntry) and state.asked:
            self._answers(entry)
        if isinstance(entry, AttachmentEntry) or (isinstance(entry, UserEntry) and entry.tool_use_result is None):
            self._keep(entry)
            if entry.version:
                state.newest = max(state.newest, version_numbers(entry.version))
            act = act_of(entry)
            if act is not None:
                self._act(act)

    def _act(self, act: Act) -> None:
        """One more act, unless the one before told of it already."""
        state = self.state
        words = _mark(act.text)
        if words == state.act_text and are_told_twice(state.act_kind, act.kind):
            return
        state.act_kind, state.act_text = str(act.kind), words
        state.turns += begins_turn(act)
        for source, text in first_words(act):
            state.words.setdefault(source, short(text))
        self.prompts.append(Prompt(act.place.line, state.turns, str(act.kind), act.text))

    def _act_anew(self, kept: list[Entry]) -> None:
        """All acts of the transcript, with those that only queue operations tell of."""
        state = self.state
        self.prompts = []
        state.words, state.turns, state.act_kind, state.act_text = {}, 0, "", b""
        for act in acts(kept):
            self._act(act)

    def _reply(self, entry: AssistantEntry) -> None:
        message, state = entry.message, self.state
        if message is None:
            return
        if message.model is not None and message.model != _MADE_UP:
            state.model = message.model
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, ToolUseBlock) and block.name in AGENT_TOOLS and isinstance(block.input, dict):
                kind = block.input.get("subagent_type")
                if block.id is not None and block.id not in state.asked:
                    state.asked[block.id] = kind if isinstance(kind, str) else None
                    self._count(kind, 1)

    def _answers(self, entry: UserEntry) -> None:
        """What came of calls for agents: one that failed or was refused started none."""
        state = self.state
        for block in entry.message.blocks if entry.message is not None else ():
            if not isinstance(block, ToolResultBlock) or block.tool_use_id not in state.asked:
                continue
            given = entry.tool_use_result
            name = given.get("agentId") if isinstance(given, dict) else None
            if block.is_error:
                self._count(state.asked.pop(block.tool_use_id), -1)
            elif isinstance(name, str):
                del state.asked[block.tool_use_id]
                if name not in state.named:
                    state.named.append(name)

    def _count(self, kind: object, number: int) -> None:
        if isinstance(kind, str):
            self.state.types[kind] = self.state.types.get(kind, 0) + number


def _mark(text: str) -> bytes:
    """What an act's words are known by again."""
    return blake2b(normal(text).encode(errors="surrogatepass"), digest_size=12).digest()
