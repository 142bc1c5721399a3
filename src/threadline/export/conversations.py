"""Split a session into conversations for trajectories, evaluation logs and data sets.

The main agent and each subagent have a conversation. Its steps are what was said, in order: prompts, texts that Claude
Code inserted, and replies. A reply is one API message with its calls, their results, and its charges. A charge whose
message is not in a conversation, because its branch was abandoned or its transcript is not exported, is `outside` the
steps of one. So each charge of the session's ledger is in exactly one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from threadline.account import Ledger
from threadline.export.output import make_unique, safe_name
from threadline.export.redacted_copies import SessionCopy
from threadline.load import Session, SessionCharges
from threadline.model.blocks import (
    DocumentBlock,
    ImageBlock,
    McpToolUseBlock,
    RedactedThinkingBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, AttachmentEntry, ChainEntry, Entry, UserEntry
from threadline.model.ledger import Charge, Sum
from threadline.model.session import Agent
from threadline.model.text import extract_text
from threadline.model.times import time_range
from threadline.render import Detail, View

NO_RESULT = "(no result)"
"""The result of a call that has none: it was interrupted, or its result was lost."""
_TOOL_USES = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_MEDIA: dict[type, str] = {ImageBlock: "[image]", DocumentBlock: "[document]"}


class StepKind(StrEnum):
    """Who wrote a step: the person (or the agent that started this one), Claude Code, or the model."""

    PROMPT = "prompt"
    INJECTED = "injected"
    REPLY = "reply"


class StepCall(Struct, frozen=True):
    """A tool call of a reply. `output` is None if there is no result; `agents` are the conversations it started."""

    id: str
    tool: str
    input: dict[str, Any]
    output: str | None
    is_error: bool
    outcome: str
    agents: tuple[str, ...] = ()


Part = TextBlock | ThinkingBlock | RedactedThinkingBlock | StepCall
"""A part of a reply."""


class Step(Struct):
    """A step of a conversation. Only replies have `parts` and what follows it.

    `is_copied`: the message belongs to another session, which this one repeats. `is_synthetic`: Claude Code wrote the
    reply itself, such as a report of an API error.
    """

    kind: StepKind
    id: str | None
    timestamp: datetime | None
    prompt: str = ""
    parts: list[Part] = field(default_factory=list)
    model: str | None = None
    effort: str | None = None
    stop_reason: str | None = None
    charges: list[Charge] = field(default_factory=list)
    is_copied: bool = False
    is_synthetic: bool = False

    @property
    def text(self) -> str:
        """The text of a prompt or a reply."""
        if self.kind is not StepKind.REPLY:
            return self.prompt
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextBlock) and part.text)

    @property
    def thinking(self) -> str:
        """The thinking that is readable."""
        return "\n\n".join(part.thinking for part in self.parts if isinstance(part, ThinkingBlock) and part.thinking)

    @property
    def calls(self) -> list[StepCall]:
        """The calls of a reply."""
        return [part for part in self.parts if isinstance(part, StepCall)]


class Conversation(Struct):
    """The conversation of one agent. `agent` is None for the main one. `id` is unique, and can be a file name.

    `call` is the call that started it, and `parent` the conversation of that call.
    """

    id: str
    session: str
    agent: str | None
    steps: list[Step]
    outside: list[Charge] = field(default_factory=list)
    type: str | None = None
    description: str | None = None
    model: str | None = None
    version: str | None = None
    call: str | None = None
    parent: str | None = None
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def charges(self) -> list[Charge]:
        """The charges of its steps, and those outside of them."""
        return [*(charge for step in self.steps for charge in step.charges), *self.outside]


class ExportedSession(Struct, frozen=True):
    """A session to export: redacted, with its files, its conversations (the main one first) and its ledger."""

    session: Session
    copy: SessionCopy
    conversations: tuple[Conversation, ...]
    ledger: Ledger

    @property
    def main(self) -> Conversation:
        """The main agent's conversation."""
        return self.conversations[0]

    def sum(self, charges: Iterable[Charge]) -> Sum:
        """The sum of some of its charges."""
        return Ledger(charges, self.ledger.rates).total

    def sums_by_model(self, charges: Iterable[Charge]) -> dict[str, Sum]:
        """The sums of some of its charges by model, in order of appearance."""
        by_model: dict[str, list[Charge]] = {}
        for charge in charges:
            by_model.setdefault(charge.model or "unknown", []).append(charge)
        return {model: self.sum(group) for model, group in by_model.items()}


def split_session(session: Session, copy: SessionCopy, charges: SessionCharges, view: View) -> ExportedSession:
    """Split a session into conversations. `charges` are those of the original transcripts.

    With `view.agents` none, there is only the main conversation. Side agents have one only with `view.everything`.
    """
    agents = [session.main]
    if view.agents is not Detail.NONE:
        agents += [agent for agent in session.agents if agent.conversation and (view.everything or agent.side is None)]
    ids = make_unique([copy.name, *(f"{copy.name}.{safe_name(str(agent.id), 'agent')}" for agent in agents[1:])])
    builder = _Builder(session, view, {str(agent.id): name for agent, name in zip(agents, ids, strict=True)})
    built = [(agent, builder.build(agent, name, copy.name)) for agent, name in zip(agents, ids, strict=True)]
    # What an agent that said nothing spent is outside of the steps of the main one.
    pairs = [(agent, part) for agent, part in built if part.steps or agent is session.main]
    conversations = [part for _agent, part in pairs]
    places = _ChargePlaces(pairs, copy)
    for charge in charges.own:
        place = places.find(charge)
        (place.charges if isinstance(place, Step) else place.outside).append(charge)
    for charge in charges.shared:
        if isinstance(step := places.find(charge), Step):
            step.is_copied = True
    for conversation in conversations:
        _mark_copied_steps(conversation.steps)
    return ExportedSession(session, copy, tuple(conversations), charges.own)


class _Builder:
    """Builds the conversations of a session. `names` are the ids of conversations by agent."""

    def __init__(self, session: Session, view: View, names: Mapping[str, str]) -> None:
        self._view = view
        self._names = names
        self._started: dict[str, list[str]] = {}
        for agent in session.agents:
            if agent.link.call is not None and str(agent.id) in names:
                self._started.setdefault(agent.link.call, []).append(names[str(agent.id)])

    def build(self, agent: Agent, name: str, session: str) -> Conversation:
        first, last = time_range(entry.timestamp_text for entry in agent.entries if isinstance(entry, ChainEntry))
        versions = [entry.version for entry in agent.entries if isinstance(entry, ChainEntry) and entry.version]
        steps = list(self._steps(agent))
        models = [step.model for step in steps if step.model and not step.is_synthetic]
        return Conversation(
            id=name,
            session=session,
            agent=None if agent.id is None else str(agent.id),
            steps=steps,
            type=agent.type,
            description=agent.description,
            model=models[-1] if models else agent.model,
            version=versions[-1] if versions else None,
            call=agent.link.call,
            parent=self._names.get(str(agent.link.agent)) if agent.link.call is not None else None,
            started=first,
            ended=last,
        )

    def _steps(self, agent: Agent) -> Iterator[Step]:
        """The steps of a conversation. Rows of the same message become one step, where the first of them is."""
        calls = {str(call.id): call for call in agent.calls}
        acts = {id(act.entry): act.text for act in agent.acts}
        replies: dict[str, Step] = {}
        called: set[str] = set()
        steps: list[Step] = []
        for entry in agent.conversation:
            if isinstance(entry, AssistantEntry) and entry.message is not None:
                key = str(entry.message.id or entry.uuid or entry.place)
                step = replies.get(key)
                if step is None:
                    step = replies[key] = self._reply(entry)
                    steps.append(step)
                step.stop_reason = entry.stop_reason or step.stop_reason
                step.parts += self._parts(entry, calls, called)
            elif isinstance(entry, UserEntry):
                is_prompt = id(entry) in acts or (agent.id is not None and not steps)
                kind = StepKind.PROMPT if is_prompt else StepKind.INJECTED
                text = self._user_text(entry, calls)
                if text:
                    steps.append(Step(kind, entry.uuid, entry.timestamp, text))
            elif isinstance(entry, AttachmentEntry) and acts.get(id(entry)):  # typed while the model was working
                steps.append(Step(StepKind.PROMPT, entry.uuid, entry.timestamp, acts[id(entry)]))
        return iter(steps)

    @staticmethod
    def _reply(entry: AssistantEntry) -> Step:
        message = entry.message
        return Step(
            StepKind.REPLY,
            (message.id if message is not None else None) or entry.uuid,
            entry.timestamp,
            model=message.model if message is not None else None,
            effort=entry.effort,
            is_synthetic=entry.is_synthetic,
        )

    def _parts(self, entry: AssistantEntry, calls: Mapping[str, Call], called: set[str]) -> Iterator[Part]:
        for block in entry.message.blocks if entry.message is not None else ():
            if isinstance(block, TextBlock):
                yield block
            elif isinstance(block, ThinkingBlock | RedactedThinkingBlock):
                if self._view.thinking is not Detail.NONE:
                    yield block
            elif isinstance(block, _TOOL_USES) and self._view.calls is not Detail.NONE:
                id_ = str(block.id or f"call-{entry.line.number}-{len(called)}")
                if id_ not in called:
                    called.add(id_)
                    yield self._call(id_, block, calls.get(id_))

    def _call(
        self, id_: str, block: ToolUseBlock | ServerToolUseBlock | McpToolUseBlock, call: Call | None
    ) -> StepCall:
        result = call.block if call is not None else None
        return StepCall(
            id=id_,
            tool=block.name or "unknown",
            input=block.input if isinstance(block.input, dict) else {"input": block.input},
            output=_plain_text(result.content) if result is not None else None,
            is_error=call is None or call.outcome is not Outcome.OK,
            outcome=str(call.outcome) if call is not None else str(Outcome.LOST),
            agents=tuple(self._started.get(id_, ())),
        )

    def _user_text(self, entry: UserEntry, calls: Mapping[str, Call]) -> str:
        """The text of a user entry, and results in it whose calls are not in the conversation."""
        content = entry.message.content if entry.message is not None else None
        if not isinstance(content, list):
            return content or ""
        texts = []
        for block in content:
            if not isinstance(block, ToolResultBlock):
                texts.append(_plain_text([block]))
            elif str(block.tool_use_id) not in calls and self._view.calls is not Detail.NONE:
                texts.append(_plain_text(block.content))
        return "\n".join(text for text in texts if text)


def _plain_text(content: Any) -> str:
    """The text of content, with a mark for each image and document."""
    if not isinstance(content, list):
        return extract_text(content)
    texts = (_MEDIA.get(type(item)) or extract_text([item]) for item in content)
    return "\n".join(text for text in texts if text)


def _mark_copied_steps(steps: list[Step]) -> None:
    """Mark everything up to the last copied reply: a copy is the beginning of a conversation."""
    last = max((at for at, step in enumerate(steps) if step.is_copied), default=-1)
    for at, step in enumerate(steps):
        step.is_copied = at <= last and not step.charges


class _ChargePlaces:
    """Finds the step that a charge belongs to, or else the conversation, by the rows of its message."""

    def __init__(self, pairs: list[tuple[Agent, Conversation]], copy: SessionCopy) -> None:
        self._main = pairs[0][1]
        self._copies = {str(source): str(path) for source, (path, _name) in zip(copy.sources, copy.files, strict=True)}
        self._rows: dict[tuple[str, int], Step | Conversation] = {}
        for agent, conversation in pairs:
            self._rows.update((_row(entry), conversation) for entry in agent.entries)
            replies = {step.id: step for step in conversation.steps if step.kind is StepKind.REPLY}
            for entry in agent.conversation:
                if isinstance(entry, AssistantEntry) and entry.message is not None:
                    step = replies.get(entry.message.id or entry.uuid)
                    if step is not None:
                        self._rows[_row(entry)] = step

    def find(self, charge: Charge) -> Step | Conversation:
        """The step, or the conversation if the message is not in its steps: the main one if nothing is known."""
        best: Step | Conversation = self._main
        for sighting in (charge.owner, *charge.sightings):
            transcript = self._copies.get(sighting.origin.transcript, sighting.origin.transcript)
            for line in sighting.lines:
                place = self._rows.get((transcript, line))
                if isinstance(place, Step):
                    return place
                best = place or best
        return best


def _row(entry: Entry) -> tuple[str, int]:
    return entry.line.transcript, entry.line.number


def conversation_facts(exported: ExportedSession, conversation: Conversation) -> dict[str, Any]:
    """What is known about a conversation and its session."""
    session = exported.session
    facts = {
        "session_id": conversation.session,
        "agent_id": conversation.agent,
        "agent_type": conversation.type,
        "description": conversation.description,
        "parent": conversation.parent,
        "tool_call_id": conversation.call,
        "title": session.title.text or None,
        "project": session.cwds[0] if session.cwds else None,
        "version": conversation.version,
    }
    return without_none(facts)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """A dict without the keys whose value is None."""
    return {key: value for key, value in values.items() if value is not None}


def iso_time(moment: datetime | None) -> str | None:
    """A time in ISO 8601, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment is not None else None
