"""The context of an agent: windows, cache breaks, turns, and what fills the window at a place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from threadline.errors import BadQuery, NotFound
from threadline.model.blocks import McpToolUseBlock, ServerToolUseBlock, ToolUseBlock
from threadline.model.context import CacheBreak, Context, ContextWindow, TurnContext
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, ToolResultEntry
from threadline.model.places import AgentId, EntryId, Place
from threadline.model.session import Agent, Branch, Compaction, CompactionKind, Session, items_at
from threadline.model.text import no_such_number
from threadline.thread.context.cache_breaks import find_cache_breaks
from threadline.thread.context.filling import (
    Piece,
    WindowFiller,
    WindowStep,
    is_continued,
    measured_scale,
    split_into_pieces,
    system_pieces,
)
from threadline.thread.context.windows import ContextLimits, SentRequest, find_requests
from threadline.thread.graph import Graph, ParallelReplies
from threadline.thread.threads import thread_to


def analyze_context(
    session: Session, agent: AgentId | str | None = None, at: Place | None = None, turn: int | None = None
) -> Context:
    """Return the context of one agent, the main one by default, and what fills its window.

    That is at a place, at the end of a turn, or else at the end of the conversation. A place in another agent's
    transcript selects that agent.

    Raises:
        NotFound: the agent, turn or place does not exist.
        BadQuery: both a place and a turn are specified.
    """
    if at is not None and turn is not None:
        raise BadQuery("Use a place or a turn, not both.")
    selected = _find_agent(session, agent)
    position = None
    if at is not None:
        selected, position = _agent_and_position(session, selected, at)
    elif turn is not None:
        position = _end_of_turn(selected, turn)
    sent = find_requests(selected.entries, selected.turns)
    windows = [request.window for request in sent]
    limits = ContextLimits(selected, (member.entries for member in (session.main, *session.agents)), windows)
    breaks = find_cache_breaks(selected, sent)
    last, filler = _fill_window(selected, sent, entries_in_window(selected, position))
    filling = filler.filling()
    model = last.model if last is not None else windows[-1].model if windows else None
    return Context(
        agent=selected.id,
        windows=tuple(windows),
        breaks=tuple(breaks),
        turns=tuple(_turn_contexts(selected, windows, breaks, limits)),
        place=last.place if last is not None else None,
        model=model,
        window=last.prompt if last is not None else sum(part.tokens for part in filling),
        measured=last is not None,
        limit=limits.of(model),
        filling=filling,
        dropped=filler.dropped,
    )


def _find_agent(session: Session, id_: AgentId | str | None) -> Agent:
    agent = session.agent(id_)
    if agent is None:
        raise NotFound(f"The session has no agent {id_!r}. `threadline tree SESSION` shows its agents.")
    return agent


def _agent_and_position(session: Session, agent: Agent, place: Place) -> tuple[Agent, int]:
    owner, position = agent_at(session, place)
    if agent.id is not None and owner.id != agent.id:
        raise NotFound(f"Agent {agent.id} has no entry at {place}. It belongs to {owner.id or 'the main agent'}.")
    return owner, position


def _end_of_turn(agent: Agent, number: int) -> int:
    """Return the position of the last entry of a turn: turns tile the entries in order."""
    ends = 0
    for turn in agent.turns:
        ends += len(turn.entries)
        if turn.number == number:
            return ends - 1
    last = agent.turns[-1].number if agent.turns else 0
    raise NotFound(no_such_number("turn", number, last, owner="agent" if agent.id is not None else "session"))


def _fill_window(
    agent: Agent, sent: Sequence[SentRequest], path: Sequence[ChainEntry]
) -> tuple[ContextWindow | None, WindowFiller]:
    """Return the last request on the way to a place whose size is known, and what fills its window."""
    reader = _PathReader(_AgentRows(agent, sent, EntrySplitter(agent)), path)
    reader.read(path)
    steps = reader.steps
    filler = start_window(agent, measured_scale([steps]))
    for step in steps:
        filler.step(step)
    if not steps:
        filler.guess(reader.waiting)
    return steps[-1].window if steps else None, filler


def start_window(agent: Agent, scale: float) -> WindowFiller:
    """Return an empty window for an agent whose pieces are larger than estimated by this factor."""
    return WindowFiller(scale, system_pieces(agent.entries), is_continued=is_continued(agent.entries))


class ContextPath(Struct, frozen=True):
    """The requests of the conversation or of a branch, each with what it added to the window.

    A branch follows the first `shared` requests of the conversation. `before` is the last of these.
    """

    steps: Sequence[WindowStep]
    shared: int = 0
    before: WindowStep | None = None

    @property
    def measurable_steps(self) -> Sequence[WindowStep]:
        """The steps, after the one that the first is compared with."""
        return self.steps if self.before is None else [self.before, *self.steps]


def context_paths(agent: Agent, sent: Sequence[SentRequest], splitter: EntrySplitter) -> Iterator[ContextPath]:
    """Return the conversation of an agent, then its branches. Each request is in one path."""
    rows = _AgentRows(agent, sent, splitter)
    positions = {entry.uuid: at for at, entry in enumerate(agent.conversation)}
    branches: dict[int, list[Branch]] = {}
    for branch in agent.branches:
        fork = positions.get(branch.fork, -1) if branch.fork is not None else -1
        branches.setdefault(fork, []).append(branch)
    trunk = _PathReader(rows, agent.conversation)
    forks: list[tuple[Branch, _PathReader]] = []
    read = 0
    for fork in sorted(branches):
        trunk.read(agent.conversation[read : fork + 1])
        forks += ((branch, trunk.fork(branch.entries)) for branch in branches[fork])
        read = fork + 1
    trunk.read(agent.conversation[read:])
    yield ContextPath(trunk.steps)
    for branch, reader in forks:
        reader.read(branch.entries)
        before = trunk.steps[reader.shared - 1] if reader.shared else None
        yield ContextPath(reader.steps, reader.shared, before)


class _AgentRows:
    """What the rows of an agent mean for its window: pieces, requests, and what compactions preserve."""

    def __init__(self, agent: Agent, sent: Sequence[SentRequest], splitter: EntrySplitter) -> None:
        self.windows = {id(row): request.window for request in sent if request.window.has_usage for row in request.rows}
        self.compactions = {id(row): c for c in agent.compactions if (row := _compaction_start(c)) is not None}
        self.preserved = _entries_by_id(agent, {uuid for c in self.compactions.values() for uuid in c.preserved})
        self.split = splitter.split
        self.started: set[int] = set()
        """The numbers of the requests that a path has."""


class _PathReader:
    """Reads a path through the entries of an agent, and collects its requests that no other path has.

    `waiting` is what was added since the last of them.
    """

    def __init__(self, rows: _AgentRows, path: Sequence[ChainEntry]) -> None:
        self._rows = rows
        self._positions = {entry.uuid: at for at, entry in enumerate(path)} if rows.preserved else {}
        self._position = 0
        self._is_restart = False
        self.shared = 0
        self.steps: list[WindowStep] = []
        self.waiting: list[Piece] = []

    def fork(self, path: Sequence[ChainEntry]) -> _PathReader:
        """Return a reader for a path that continues here."""
        reader = _PathReader(self._rows, path)
        reader.shared = len(self.steps)
        reader.waiting, reader._is_restart = self.waiting.copy(), self._is_restart
        return reader

    def read(self, entries: Sequence[ChainEntry]) -> None:
        """Read the next entries of the path."""
        rows = self._rows
        for entry in entries:
            compaction = rows.compactions.get(id(entry))
            if compaction is not None and (self._position or self.shared):
                self.waiting = [piece for kept in self._preserved(compaction) for piece in rows.split(kept)]
                self._is_restart = True
            window = rows.windows.get(id(entry))
            if window is not None and window.number not in rows.started:
                rows.started.add(window.number)
                self.steps.append(WindowStep(window, self.waiting, self._is_restart))
                self.waiting, self._is_restart = [], False
            self.waiting.extend(rows.split(entry))
            self._position += 1

    def _preserved(self, compaction: Compaction) -> list[ChainEntry]:
        """The entries from before a compaction that stay, unless they follow it as well."""
        ids = {id_ for id_ in compaction.preserved if self._positions.get(id_, -1) < self._position}
        return [entry for id_, entry in self._rows.preserved.items() if id_ in ids] if ids else []


class EntrySplitter:
    """Splits the entries of one agent into pieces of its window. The same entry always has the same pieces."""

    def __init__(self, agent: Agent) -> None:
        self._tools = {str(call.id): call.tool for call in agent.calls}
        self._tools |= {
            str(call.answer.place): call.tool for call in agent.calls if isinstance(call.answer, ToolResultEntry)
        }
        self._acts = {id(act.entry) for act in agent.acts}
        self._is_subagent = agent.id is not None
        self._pieces: dict[int, list[Piece]] = {}

    def split(self, entry: Entry) -> list[Piece]:
        """Return the pieces of an entry."""
        pieces = self._pieces.get(id(entry))
        if pieces is None:
            if isinstance(entry, AssistantEntry):
                self._tools |= _tools_by_call(entry)
            pieces = list(split_into_pieces(entry, self._tools, self._acts, agent=self._is_subagent))
            self._pieces[id(entry)] = pieces
        return pieces


def _tools_by_call(entry: AssistantEntry) -> dict[str, str]:
    blocks = entry.message.blocks if entry.message is not None else ()
    uses = (block for block in blocks if isinstance(block, ToolUseBlock | ServerToolUseBlock | McpToolUseBlock))
    return {str(use.id): use.name for use in uses if use.id is not None}


def _turn_contexts(
    agent: Agent, windows: Sequence[ContextWindow], breaks: Sequence[CacheBreak], limits: ContextLimits
) -> Iterator[TurnContext]:
    by_turn: dict[int, list[ContextWindow]] = {}
    for request_window in windows:
        by_turn.setdefault(request_window.turn, []).append(request_window)
    breaks_by_turn: dict[int, list[CacheBreak]] = {}
    for break_ in breaks:
        breaks_by_turn.setdefault(break_.turn, []).append(break_)
    compacted = {
        id(compaction.boundary or compaction.summary)
        for compaction in agent.compactions
        if compaction.kind is not CompactionKind.MICRO
    }
    before = 0
    for turn in agent.turns:
        turn_windows = by_turn.get(turn.number, [])
        sized = [w for w in turn_windows if w.has_usage]
        window = sized[-1].prompt if sized else None
        yield TurnContext(
            number=turn.number,
            place=turn.entries[0].place if turn.act is None else turn.act.place,
            started=turn.started,
            prompt=turn.act.text if turn.act is not None else "",
            requests=len(turn_windows),
            window=window,
            largest=max((w.prompt for w in sized), default=None),
            growth=window - before if window is not None else None,
            sent=sum(w.prompt for w in turn_windows),
            cache_read=sum(w.cache_read for w in turn_windows),
            limit=limits.of(sized[-1].model) if sized else None,
            breaks=tuple(breaks_by_turn.get(turn.number, ())),
            compactions=sum(id(entry) in compacted for entry in turn.entries),
        )
        before = window if window is not None else before


def agent_at(session: Session, place: Place) -> tuple[Agent, int]:
    """Return the agent with the entry at a place, and its position.

    Raises:
        NotFound: the session has no entry there.
    """
    positions = ((agent, at) for agent in (session.main, *session.agents) for at in range(len(agent.entries)))
    matches = items_at(place, positions, lambda pair: pair[0].entries[pair[1]].line)
    if matches:
        return matches[-1]
    raise NotFound(f"The session has no entry at {place}. `threadline entries SESSION` lists the places.")


def entries_in_window(agent: Agent, at: int | None) -> list[ChainEntry]:
    """Return the entries in the window after an entry, or at the end: those since a compaction, and those it kept."""
    conversation = agent.conversation if at is None else _conversation_to(agent, at)
    return _since_compaction(agent, list(conversation))


def _conversation_to(agent: Agent, at: int) -> Sequence[ChainEntry]:
    """Return the conversation up to the last entry of the graph at or before a position."""
    leaf = next(
        (entry for entry in reversed(agent.entries[: at + 1]) if isinstance(entry, ChainEntry) and entry.uuid), None
    )
    if leaf is None:
        return ()
    position = next((n for n, entry in enumerate(agent.conversation) if entry.uuid == leaf.uuid), None)
    if position is not None:
        earlier = {id(entry) for entry in agent.entries[: at + 1]}
        return [entry for entry in agent.conversation[: position + 1] if id(entry) in earlier]
    listed: list[Entry] = list(agent.entries[: at + 1])
    graph = Graph(listed)
    return thread_to(graph, ParallelReplies(graph), leaf.uuid)


def _since_compaction(agent: Agent, conversation: list[ChainEntry]) -> list[ChainEntry]:
    starts = {id(row): c for c in agent.compactions if (row := _compaction_start(c)) is not None}
    for at in range(len(conversation) - 1, -1, -1):
        compaction = starts.get(id(conversation[at]))
        if compaction is not None:
            following = {entry.uuid for entry in conversation[at:]}
            preserved = _entries_by_id(agent, set(compaction.preserved) - following)
            return [*preserved.values(), *conversation[at:]]
    return conversation


def _compaction_start(compaction: Compaction) -> ChainEntry | None:
    return None if compaction.kind is CompactionKind.MICRO else compaction.boundary or compaction.summary


def _entries_by_id(agent: Agent, ids: Collection[EntryId | None]) -> dict[EntryId | None, ChainEntry]:
    """Return the entries with these ids, in the order of the transcript."""
    if not ids:
        return {}
    return {entry.uuid: entry for entry in agent.entries if isinstance(entry, ChainEntry) and entry.uuid in ids}
