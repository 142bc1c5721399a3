"""Agent: the main model loop or a subagent, with its own thread and the call that started it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from threadline.model.act import Act, Turn
from threadline.model.call import Call
from threadline.model.entries import AssistantEntry, ChainEntry, Entry
from threadline.model.ids import AgentId, CallId
from threadline.model.side import AgentMeta
from threadline.model.side_agent import SideKind
from threadline.model.thread import Branch, Compaction, Thread


class AgentKind(StrEnum):
    """Which of the layouts an agent lies in."""

    MAIN = "main"
    INLINE = "inline"
    BESIDE = "beside"
    BELOW = "below"
    WORKFLOW = "workflow"


class LinkStep(StrEnum):
    """Which evidence links an agent to the call that started it, best first.

    The agent's own side file names the call; the call's result names the agent; a workflow's result names the run the
    agent belongs to; progress of the call names the agent; the text of the result does; a notification that it ended
    does; the agent was forked off at the call; the call has the agent's prompt; it asked for a teammate of that name;
    (agents inside the main transcript) it has the agent's prompt and stands before it.
    """

    META = "meta"
    RESULT = "result"
    WORKFLOW = "workflow"
    PROGRESS = "progress"
    RESULT_TEXT = "result-text"
    NOTIFICATION = "notification"
    FORK = "fork"
    PROMPT = "prompt"
    TEAM = "team"
    INLINE = "inline"


class Sureness(StrEnum):
    """How sure a link is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


class Link(Struct, frozen=True):
    """The call that started an agent and how that is known, or why it is not.

    `call` is None where no call was found; `agent` is the agent that made the call (None: the main one).
    """

    call: CallId | None = None
    step: LinkStep | None = None
    sureness: Sureness | None = None
    agent: AgentId | None = None
    why: str = ""


class AgentStatus(StrEnum):
    """How an agent ended."""

    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"


class Agent(Struct, frozen=True):
    """One model loop: its entries, each once and in file order, and what they make.

    `id` is None for the main one. `conversation` is the whole of what was said, across compactions; `thread` is what
    would be resumed.
    """

    id: AgentId | None
    kind: AgentKind
    entries: tuple[Entry, ...]
    thread: Thread
    conversation: tuple[ChainEntry, ...]
    branches: tuple[Branch, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    acts: tuple[Act, ...] = ()
    turns: tuple[Turn, ...] = ()
    calls: tuple[Call, ...] = ()
    side: SideKind | None = None
    transcript: Path | None = None
    meta: AgentMeta | None = None
    link: Link = Link()
    status: AgentStatus = AgentStatus.UNKNOWN
    type: str | None = None
    description: str | None = None
    prompt: str | None = None
    model: str | None = None
    run: str | None = None
    team: str | None = None
    depth: int = 0

    @property
    def result(self) -> str:
        """What it said last: the text of its final reply. Empty where it said nothing."""
        replies = [one for one in self.conversation if isinstance(one, AssistantEntry) and one.text.strip()]
        if not replies:
            return ""
        last = replies[-1].message.id if replies[-1].message is not None else None
        same = [one for one in replies if last is not None and one.message is not None and one.message.id == last]
        return "\n\n".join(one.text for one in same or replies[-1:])

    def __repr__(self) -> str:
        name = self.id or "main"
        what = f", side={str(self.side)!r}" if self.side else f", type={self.type!r}" if self.type else ""
        return f"Agent({name!r}{what}, {len(self.entries)} entries, {len(self.calls)} calls)"
