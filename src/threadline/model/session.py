"""Sessions: agents, threads, branches, compactions, turns and acts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from threadline.model.attachments import Environment, EnvironmentSnapshot
from threadline.model.blocks import ToolResultBlock
from threadline.model.calls import Call
from threadline.model.entries import (
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    FileHistorySnapshotEntry,
    PrLinkEntry,
    SystemEntry,
    UserEntry,
)
from threadline.model.homes import NO_HOMES, Homes, SideAgentKind
from threadline.model.places import AgentId, CallId, EntryId, Line, Place, Problem, SessionId
from threadline.model.side_files import AgentMeta
from threadline.model.tables import html_table
from threadline.model.text import is_path_or_end
from threadline.model.times import time_range
from threadline.model.titles import Title
from threadline.model.usage import SYNTHETIC_MODEL

_HTML_TURNS = 20
_Item = TypeVar("_Item")


def is_visible(entry: ChainEntry, *, agent: bool = False) -> bool:
    """Whether Claude Code itself would show the entry as part of the conversation.

    `agent` is for a subagent's own conversation, where every entry is marked as a subagent's or a team's.
    """
    if not isinstance(entry, UserEntry | AssistantEntry) or entry.is_meta:
        return False
    return agent or not (entry.is_agent or entry.team_name)


class LeafSource(StrEnum):
    """How the leaf of the active thread was determined."""

    LAST_IN_FILE = "last-in-file"
    LAST_PROMPT = "last-prompt"
    REWOUND_TO_START = "rewound-to-start"
    FILE_ORDER = "file-order"
    NONE = "none"


class Thread(Struct, frozen=True):
    """A path from a root to a leaf, including the parallel calls that are not on the path itself.

    `agent` says that it is a subagent's.
    """

    entries: tuple[ChainEntry, ...] = ()
    leaf: EntryId | None = None
    source: LeafSource = LeafSource.NONE
    agent: bool = False

    @property
    def visible(self) -> tuple[ChainEntry, ...]:
        """The entries that Claude Code itself would show."""
        return tuple(entry for entry in self.entries if is_visible(entry, agent=self.agent))

    def __repr__(self) -> str:
        return f"Thread({len(self.entries)} entries, leaf={self.leaf!r}, source={str(self.source)!r})"


class Branch(Struct, frozen=True):
    """An abandoned path: an edit, a retry or a rewind started another.

    `fork` is the last entry that it shares with the path that was kept (None if it starts a new conversation).
    `entries` is everything that was abandoned, in file order.
    """

    fork: EntryId | None
    entries: tuple[ChainEntry, ...]

    @property
    def first(self) -> ChainEntry:
        """The entry it begins with."""
        return self.entries[0]

    def __repr__(self) -> str:
        return f"Branch({len(self.entries)} entries from {self.first.place}, fork={self.fork!r})"


class CompactionKind(StrEnum):
    """The three ways to shorten a conversation."""

    BOUNDARY = "boundary"
    SUMMARY = "summary"
    MICRO = "micro"


class Compaction(Struct, frozen=True):
    """A point where earlier entries were replaced by a summary, or (micro) old results were blanked.

    `before` is the last entry of the conversation before it. If the boundary's own pointer leads nowhere (`dangling`),
    it is the last entry before it in the file. `preserved` are earlier entries that stay in the conversation.
    """

    kind: CompactionKind
    place: Place
    boundary: SystemEntry | None = None
    summary: UserEntry | None = None
    before: EntryId | None = None
    dangling: bool = False
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    preserved: tuple[EntryId, ...] = ()

    def __repr__(self) -> str:
        tokens = f"{self.tokens_before} -> {self.tokens_after}" if self.tokens_before is not None else "unknown"
        trigger = f", trigger={self.trigger!r}" if self.trigger else ""
        return f"Compaction({str(self.kind)!r}{trigger}, tokens {tokens}, line {self.place.line})"


class ActKind(StrEnum):
    """What a person can do in a session."""

    PROMPT = "prompt"
    COMMAND = "command"
    SHELL = "shell"
    MEMORY = "memory"
    INTERRUPT = "interrupt"
    STEERING = "steering"
    PROGRAMMATIC = "programmatic"
    FEEDBACK = "feedback"
    PLAN = "plan"


UNTYPED_ACTS = frozenset({ActKind.INTERRUPT, ActKind.PLAN})
"""Acts that nobody typed. They are not prompts, wherever prompts are listed or counted."""


class Act(Struct, frozen=True):
    """Something a person did: its kind, its clean text, and the entry that records it.

    `rule` is the step of the rule that decided. A `steering` act was typed while the model was working. A
    `programmatic` one was written by a person or a script; the transcript does not say which. `feedback` is the reason
    for refusing a call; its entry is the call's result. A `plan` was approved, not typed: Claude Code sent it to the
    model, which begins a turn.
    """

    kind: ActKind
    text: str
    entry: Entry
    rule: str
    images: int = 0

    @property
    def place(self) -> Place:
        """Where it is recorded."""
        return self.entry.place

    @property
    def timestamp(self) -> datetime | None:
        """When it was done."""
        return self.entry.timestamp

    def __repr__(self) -> str:
        return f"Act({str(self.kind)!r}, {self.text[:60]!r}, line {self.place.line})"


_TURN_END_SUBTYPES = frozenset({"turn_duration", "stop_hook_summary"})


def _is_turn_work(entry: Entry) -> bool:
    """Whether it counts for the duration of a turn: a reply, a tool's result, or the note that the turn ended."""
    if isinstance(entry, SystemEntry):
        return entry.subtype in _TURN_END_SUBTYPES
    if isinstance(entry, UserEntry):
        content = entry.message.content if entry.message is not None else None
        return isinstance(content, list) and any(isinstance(block, ToolResultBlock) for block in content)
    return isinstance(entry, AssistantEntry)


class Turn(Struct, frozen=True):
    """An act and everything until the next. Turn 0, if it exists, is what came before the first act.

    Rows that Claude Code wrote just before the act, and because of it, are part of the turn.
    """

    number: int
    act: Act | None
    entries: tuple[Entry, ...]

    @property
    def started(self) -> datetime | None:
        """When its act was done; if that is unknown, the first time in the turn."""
        acted = self.act.timestamp if self.act is not None else None
        return acted or min((moment for entry in self.entries if (moment := entry.timestamp)), default=None)

    @property
    def ended(self) -> datetime | None:
        """The time of the last reply, result or end note; if there is none, the last time in the turn."""
        times = [moment for entry in self.entries if _is_turn_work(entry) and (moment := entry.timestamp)]
        return max(times or (moment for entry in self.entries if (moment := entry.timestamp)), default=None)

    @property
    def duration(self) -> timedelta | None:
        """How long it took, from its act to its end; None if there was no reply, as for local commands.

        The times are those of the rows in every version. `turn_duration` rows are not used: old versions write none,
        and a turn that continued after a notification has several.
        """
        start, end = self.started, self.ended
        has_reply = any(isinstance(entry, AssistantEntry) and not entry.is_synthetic for entry in self.entries)
        return end - start if has_reply and start and end and end >= start else None

    @property
    def reply(self) -> str:
        """The text of the model's replies in the turn."""
        texts = (entry.text for entry in self.entries if isinstance(entry, AssistantEntry))
        return "\n\n".join(text for text in texts if text.strip())

    def __repr__(self) -> str:
        act = f"{self.act.kind}: {self.act.text[:60]!r}" if self.act else "no act"
        return f"Turn({self.number}, {act}, {len(self.entries)} entries)"


class AgentKind(StrEnum):
    """Where an agent's entries are stored."""

    MAIN = "main"
    INLINE = "inline"
    BESIDE = "beside"
    BELOW = "below"
    WORKFLOW = "workflow"


class LinkEvidence(StrEnum):
    """Which evidence links an agent to the call that started it, best first.

    `meta`: the agent's side file names the call. `result`: the call's result names the agent. `workflow`: a workflow's
    result names the run the agent belongs to. `progress`: progress of the call names the agent. `result-text`: the text
    of the result does. `notification`: a notification that the agent ended does. `fork`: the agent was forked at the
    call. `prompt`: the call has the agent's prompt. `team`: the call asked for a teammate of that name. `inline` (for
    agents inside the main transcript): the call has the agent's prompt and comes before it.
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


class Confidence(StrEnum):
    """How certain a link is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


class AgentLink(Struct, frozen=True):
    """The call that started an agent and the evidence, or why none is known.

    `call` is None if no call was found. `agent` is the agent that made the call (None for the main one).
    """

    call: CallId | None = None
    step: LinkEvidence | None = None
    sureness: Confidence | None = None
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
    """One model loop: its entries, each once and in file order, and what they form.

    `id` is None for the main one. `conversation` is everything that was said, across compactions. `thread` is what
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
    side: SideAgentKind | None = None
    transcript: Path | None = None
    meta: AgentMeta | None = None
    link: AgentLink = AgentLink()
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
        """The text of its final reply; empty if there is none."""
        replies = [entry for entry in self.conversation if isinstance(entry, AssistantEntry) and entry.text.strip()]
        if not replies:
            return ""
        last = replies[-1].message.id if replies[-1].message is not None else None
        same = [
            reply for reply in replies if last is not None and reply.message is not None and reply.message.id == last
        ]
        return "\n\n".join(reply.text for reply in same or replies[-1:])

    def __repr__(self) -> str:
        name = self.id or "main"
        kind = f", side={str(self.side)!r}" if self.side else f", type={self.type!r}" if self.type else ""
        return f"Agent({name!r}{kind}, {len(self.entries)} entries, {len(self.calls)} calls)"


class ContinuationKind(StrEnum):
    """How one session continues another."""

    RESUMED_COPY = "resumed-copy"
    FORK = "fork"
    BRANCH = "branch"
    BACKGROUND = "background"
    CLEARED = "cleared"
    RELOCATED = "relocated"
    TELEPORTED = "teleported"
    SUMMARY = "summary"


class Continuation(Struct, frozen=True):
    """A link between sessions: this one continues another, or (`forward`) another continues this one.

    `session` is the other one, if known. `copies` maps each entry that is a copy to its original.
    """

    kind: ContinuationKind
    session: SessionId | None
    evidence: str
    forward: bool = False
    copies: dict[EntryId, EntryId] = {}


class Session(Struct, frozen=True):
    """One session: the main agent and the others, each with its own entries, and facts about the whole session.

    Every entry of every transcript is in exactly one agent's `entries`. `sharing` are the paths of other transcripts
    that contain some of its messages, if they are known.
    """

    id: SessionId | None
    path: Path | None
    main: Agent
    agents: tuple[Agent, ...] = ()
    title: Title = Title()
    tag: str | None = None
    continuations: tuple[Continuation, ...] = ()
    pr_links: tuple[PrLinkEntry, ...] = ()
    file_problems: tuple[Problem, ...] = ()
    homes: Homes = NO_HOMES
    sharing: tuple[str, ...] | None = None

    @property
    def kept(self) -> bool:
        """Whether Claude Code has deleted it, and it was read from the keep."""
        return self.path is not None and self.homes.is_kept(self.path)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of the session, the main agent's first, each agent's in file order."""
        return tuple(self)

    def __iter__(self) -> Iterator[Entry]:
        for agent in (self.main, *self.agents):
            yield from agent.entries

    def __len__(self) -> int:
        return sum(len(agent.entries) for agent in (self.main, *self.agents))

    @property
    def continues(self) -> tuple[Continuation, ...]:
        """The sessions that this one continues."""
        return tuple(continuation for continuation in self.continuations if not continuation.forward)

    @property
    def continued_by(self) -> tuple[Continuation, ...]:
        """The sessions that continue this one."""
        return tuple(continuation for continuation in self.continuations if continuation.forward)

    @property
    def thread(self) -> Thread:
        """The main thread that Claude Code would resume."""
        return self.main.thread

    @property
    def conversation(self) -> tuple[ChainEntry, ...]:
        """The whole main conversation as the person saw it, across compactions."""
        return self.main.conversation

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches of the main conversation that edits, retries and rewinds abandoned."""
        return self.main.branches

    @property
    def compactions(self) -> tuple[Compaction, ...]:
        """The compactions of the main conversation."""
        return self.main.compactions

    @property
    def acts(self) -> tuple[Act, ...]:
        """What the person did."""
        return self.main.acts

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the main conversation."""
        return self.main.turns

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of every agent, the main agent's first."""
        return tuple(call for agent in (self.main, *self.agents) for call in agent.calls)

    @property
    def calls_by_id(self) -> dict[CallId, Call]:
        """Every call by its id. One that agents repeat is the main agent's, or else that of the first working agent."""
        others = sorted(self.agents, key=lambda agent: agent.side is not None)
        return {call.id: call for agent in reversed((self.main, *others)) for call in reversed(agent.calls)}

    def calls_of(self, turn: Turn | int) -> tuple[Call, ...]:
        """Return the calls of a turn (or of its number): the main agent's, and those of the agents started in it."""
        number = turn if isinstance(turn, int) else turn.number
        return tuple(call for call in self.calls if call.turn == number)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the session's files and entries."""
        return (*self.file_problems, *(problem for entry in self for problem in entry.all_problems))

    def agent(self, id_: AgentId | str | None) -> Agent | None:
        """Return the agent with this id; None is the main one."""
        return next((agent for agent in (self.main, *self.agents) if agent.id == id_), None)

    def find(self, place: Place) -> Entry | None:
        """Return the entry at a place."""
        return next(iter(items_at(place, self, lambda entry: entry.line)), None)

    @property
    def span(self) -> tuple[datetime | None, datetime | None]:
        """The first and the last time of the main conversation, snapshots of files included.

        Agents do not count: one that continues in the background, or whose transcript was copied from an older session,
        does not make the session longer. Their times are used only if the main conversation has none.
        """
        main_span = _time_range(self.main.entries)
        return main_span if main_span[0] is not None else _time_range(self)

    @property
    def started(self) -> datetime | None:
        """When the main conversation began."""
        return self.span[0]

    @property
    def ended(self) -> datetime | None:
        """When the main conversation ended, or the time of its last entry so far."""
        return self.span[1]

    @property
    def wall_time(self) -> timedelta | None:
        """How long it took from `started` to `ended`, pauses included."""
        started, ended = self.span
        return ended - started if started is not None and ended is not None else None

    @property
    def active_time(self) -> timedelta:
        """The time its turns took, without the pauses between them."""
        return sum((turn.duration for turn in self.turns if turn.duration), timedelta())

    @property
    def models(self) -> tuple[str, ...]:
        """The models that answered in the main conversation, in order of appearance."""
        names = (getattr(getattr(entry, "message", None), "model", None) for entry in self.main.entries)
        return tuple(dict.fromkeys(name for name in names if name and name != SYNTHETIC_MODEL))

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of Claude Code that wrote it, in order of appearance."""
        return tuple(dict.fromkeys(e.version for e in self if isinstance(e, ChainEntry) and e.version))

    @property
    def slug(self) -> str | None:
        """Its nickname of three words, which also names its plan file; None if it has none."""
        return next((entry.slug for entry in self.main.entries if isinstance(entry, ChainEntry) and entry.slug), None)

    @property
    def environment(self) -> Environment | None:
        """The machine and directory it ran in last, with platform and OS; None before version 2.1.280."""
        snapshots = (
            entry.attachment.snapshot
            for entry in reversed(self.main.entries)
            if isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, EnvironmentSnapshot)
        )
        return next((snapshot for snapshot in snapshots if snapshot is not None and snapshot.platform), None)

    @property
    def cwds(self) -> tuple[str, ...]:
        """The directories it worked in, in order of appearance; the first is its project."""
        return tuple(dict.fromkeys(e.cwd for e in self.main.entries if isinstance(e, ChainEntry) and e.cwd))

    @property
    def git_branches(self) -> tuple[str, ...]:
        """The git branches it worked on, in order of appearance."""
        names = (e.git_branch for e in self.main.entries if isinstance(e, ChainEntry))
        return tuple(dict.fromkeys(name for name in names if name))

    def __repr__(self) -> str:
        turns = sum(turn.act is not None for turn in self.turns)
        counts = f"{turns} turns, {len(self.agents)} agents, {len(self.calls)} calls, {len(self)} entries"
        return f"Session({str(self.id)!r}, {self.title.text[:50]!r}, {counts})"

    def _repr_html_(self) -> str:
        """Return the first turns as a table, for notebooks."""
        records = [
            {
                "turn": turn.number,
                "started": turn.started,
                "prompt": turn.act.text if turn.act is not None else "",
                "reply": turn.reply,
                "calls": len(self.calls_of(turn)),
            }
            for turn in self.turns[:_HTML_TURNS]
        ]
        return html_table(repr(self), ("turn", "started", "prompt", "reply", "calls"), records)


def _time_range(entries: Iterable[Entry]) -> tuple[datetime | None, datetime | None]:
    return time_range(map(conversation_time, entries))


def conversation_time(entry: Entry) -> str | int | float | None:
    """Return the time of an entry as it is written, if it counts for the start and end of a session.

    The entries of the conversation count, and snapshots of files, which are taken for a prompt. Titles and other notes
    may be written long after the conversation ended.
    """
    if isinstance(entry, ChainEntry):
        return entry.timestamp_text
    if isinstance(entry, FileHistorySnapshotEntry) and entry.snapshot is not None:
        return entry.snapshot.timestamp
    return None


def items_at(place: Place, items: Iterable[_Item], line_of: Callable[[_Item], Line]) -> list[_Item]:
    """Return the items whose line is at a place.

    The transcript may be named by its path, or else by the end of it: by whole names.
    """
    near = [
        item
        for item in items
        if (line := line_of(item)).number == place.line and is_path_or_end(line.transcript, place.transcript)
    ]
    return [item for item in near if line_of(item).transcript == place.transcript] or near
