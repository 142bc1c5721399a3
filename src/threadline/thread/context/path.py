"""The way to a place: what was in the window there, in the order in which it came."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.errors import NotFound
from threadline.model.agent import Agent
from threadline.model.entries import ChainEntry, Entry
from threadline.model.ids import EntryId
from threadline.model.place import Place
from threadline.model.session import Session
from threadline.model.thread import Compaction, CompactionKind
from threadline.thread.active import thread_to
from threadline.thread.graph import Graph
from threadline.thread.parallel import Parallel


def agent_at(session: Session, place: Place) -> tuple[Agent, int]:
    """The agent whose entry stands at a place, and where among its entries; the file may be named by its path's end.

    Raises:
        NotFound: no entry of the session stands there.
    """
    near = [
        (agent, at)
        for agent in (session.main, *session.agents)
        for at, entry in enumerate(agent.entries)
        if entry.line.number == place.line and entry.line.transcript.endswith(place.transcript)
    ]
    exact = [one for one in near if one[0].entries[one[1]].line.transcript == place.transcript]
    if near:
        return (exact or near)[-1]
    raise NotFound(f"No entry of the session stands at {place}; threadline entries SESSION lists the places.")


def path_to(agent: Agent, at: int | None) -> list[ChainEntry]:
    """What the window held after the entry at a position, or at the end: all since a compaction, and what that kept."""
    whole = agent.conversation if at is None else _conversation_to(agent, at)
    return _since_compaction(agent, list(whole))


def _conversation_to(agent: Agent, at: int) -> Sequence[ChainEntry]:
    """The conversation up to the last entry of the graph at or before a position."""
    leaf = next((one for one in reversed(agent.entries[: at + 1]) if isinstance(one, ChainEntry) and one.uuid), None)
    if leaf is None:
        return ()
    where = next((n for n, one in enumerate(agent.conversation) if one.uuid == leaf.uuid), None)
    if where is not None:
        earlier = {id(one) for one in agent.entries[: at + 1]}
        return [one for one in agent.conversation[: where + 1] if id(one) in earlier]
    listed: list[Entry] = list(agent.entries[: at + 1])
    graph = Graph(listed)
    return thread_to(graph, Parallel(graph), leaf.uuid)


def _since_compaction(agent: Agent, whole: list[ChainEntry]) -> list[ChainEntry]:
    starts = {id(row): one for one in agent.compactions if (row := _row(one)) is not None}
    for at in range(len(whole) - 1, -1, -1):
        compaction = starts.get(id(whole[at]))
        if compaction is not None:
            return [*_kept(agent, compaction.preserved, whole[at:]), *whole[at:]]
    return whole


def _row(one: Compaction) -> ChainEntry | None:
    return None if one.kind is CompactionKind.MICRO else one.boundary or one.summary


def _kept(agent: Agent, preserved: Sequence[EntryId], after: Sequence[ChainEntry]) -> list[ChainEntry]:
    """The entries from before a compaction that stay, unless they stand after it as well."""
    wanted = set(preserved) - {one.uuid for one in after}
    found = {one.uuid: one for one in agent.entries if isinstance(one, ChainEntry) and one.uuid in wanted}
    return list(found.values())
