"""The whole context of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from threadline.errors import BadQuery, NotFound
from threadline.model.agent import Agent
from threadline.model.block import McpToolUseBlock, ServerToolUseBlock, ToolUseBlock
from threadline.model.context import CacheBreak, Context, TurnContext, Window
from threadline.model.entries import AssistantEntry, ChainEntry
from threadline.model.ids import AgentId
from threadline.model.place import Place
from threadline.model.session import Session
from threadline.model.thread import CompactionKind
from threadline.thread.context.breaks import breaks
from threadline.thread.context.filling import Filler, Step, scale_of
from threadline.thread.context.limits import Limits
from threadline.thread.context.path import agent_at, path_to
from threadline.thread.context.pieces import Piece, pieces
from threadline.thread.context.windows import Sent, requests


def context(
    session: Session, agent: AgentId | str | None = None, at: Place | None = None, turn: int | None = None
) -> Context:
    """The context of one agent, the main one by default; what filled the window, at a place or when a turn ended.

    Without either, at the end of the conversation. A place in another agent's transcript is that agent's.

    Raises:
        NotFound: there is no such agent, turn or place.
        BadQuery: both a place and a turn were given.
    """
    if at is not None and turn is not None:
        raise BadQuery("Give a place or a turn, not both.")
    found = _agent(session, agent)
    position = None
    if at is not None:
        found, position = _placed(session, found, at)
    elif turn is not None:
        position = _end_of(found, turn)
    sent = requests(found.entries, found.turns)
    windows = [one.window for one in sent]
    limits = Limits(found, (one.entries for one in (session.main, *session.agents)), windows)
    broken = breaks(found, sent)
    last, filler = _fill(found, sent, path_to(found, position))
    filling = filler.filling()
    model = last.model if last is not None else windows[-1].model if windows else None
    return Context(
        agent=found.id,
        windows=tuple(windows),
        breaks=tuple(broken),
        turns=tuple(_turns(found, windows, broken, limits)),
        place=last.place if last is not None else None,
        model=model,
        window=last.prompt if last is not None else sum(one.tokens for one in filling),
        measured=last is not None,
        limit=limits.of(model),
        filling=filling,
        dropped=filler.dropped,
    )


def _agent(session: Session, id_: AgentId | str | None) -> Agent:
    found = session.agent(id_)
    if found is None:
        raise NotFound(f"The session has no agent {id_!r}; threadline tree SESSION shows them.")
    return found


def _placed(session: Session, asked: Agent, place: Place) -> tuple[Agent, int]:
    found, position = agent_at(session, place)
    if asked.id is not None and found.id != asked.id:
        raise NotFound(f"No entry of agent {asked.id} stands at {place}; it is {found.id or 'the main agent'}'s.")
    return found, position


def _end_of(agent: Agent, number: int) -> int:
    """Where the last entry of a turn stands: turns tile the entries in order."""
    ends = 0
    for turn in agent.turns:
        ends += len(turn.entries)
        if turn.number == number:
            return ends - 1
    last = agent.turns[-1].number if agent.turns else None
    there = f"its turns are {agent.turns[0].number} to {last}" if last is not None else "it has none"
    raise NotFound(f"There is no turn {number}; {there}.")


def _fill(agent: Agent, sent: Sequence[Sent], path: Sequence[ChainEntry]) -> tuple[Window | None, Filler]:
    """The last request on the way to a place whose size is told, and what filled its window."""
    steps, after = _steps(agent, sent, path)
    filler = Filler(scale_of(steps))
    for step in steps:
        filler.step(step)
    if not steps:
        filler.guess(after)
    return steps[-1].window if steps else None, filler


def _steps(agent: Agent, sent: Sequence[Sent], path: Sequence[ChainEntry]) -> tuple[list[Step], list[Piece]]:
    """The requests on the way, each with what came since the one before; and what came after the last."""
    by_row = {id(row): one.window for one in sent if one.window.told for row in one.rows}
    tools = {str(call.id): call.tool for call in agent.calls}
    acts = {id(act.entry) for act in agent.acts}
    asked: set[int] = set()
    steps: list[Step] = []
    waiting: list[Piece] = []
    for entry in path:
        if isinstance(entry, AssistantEntry):
            window = by_row.get(id(entry))
            if window is not None and window.number not in asked:
                asked.add(window.number)
                steps.append(Step(window, waiting))
                waiting = []
            tools |= _tools_of(entry)
        waiting.extend(pieces(entry, tools, acts, agent=agent.id is not None))
    return steps, waiting


def _tools_of(entry: AssistantEntry) -> dict[str, str]:
    blocks = entry.message.blocks if entry.message is not None else ()
    uses = (one for one in blocks if isinstance(one, ToolUseBlock | ServerToolUseBlock | McpToolUseBlock))
    return {str(one.id): one.name for one in uses if one.id is not None}


def _turns(
    agent: Agent, windows: Sequence[Window], broken: Sequence[CacheBreak], limits: Limits
) -> Iterator[TurnContext]:
    by_turn: dict[int, list[Window]] = {}
    for one in windows:
        by_turn.setdefault(one.turn, []).append(one)
    breaks_by_turn: dict[int, list[CacheBreak]] = {}
    for each in broken:
        breaks_by_turn.setdefault(each.turn, []).append(each)
    compacted = {id(one.boundary or one.summary) for one in agent.compactions if one.kind is not CompactionKind.MICRO}
    before = 0
    for turn in agent.turns:
        own = by_turn.get(turn.number, [])
        told = [one for one in own if one.told]
        window = told[-1].prompt if told else None
        yield TurnContext(
            number=turn.number,
            place=turn.entries[0].place if turn.act is None else turn.act.place,
            started=turn.started,
            prompt=turn.act.text if turn.act is not None else "",
            requests=len(own),
            window=window,
            largest=max((one.prompt for one in told), default=None),
            growth=window - before if window is not None else None,
            sent=sum(one.prompt for one in own),
            cache_read=sum(one.cache_read for one in own),
            limit=limits.of(told[-1].model) if told else None,
            breaks=tuple(breaks_by_turn.get(turn.number, ())),
            compactions=sum(id(entry) in compacted for entry in turn.entries),
        )
        before = window if window is not None else before
