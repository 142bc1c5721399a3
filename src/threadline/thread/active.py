"""The active thread: the one that Claude Code would resume."""

from __future__ import annotations

from threadline.model.entries import AssistantEntry, ChainEntry, Entry, LastPromptEntry, UserEntry
from threadline.model.ids import EntryId
from threadline.model.thread import LeafSource, Thread, is_visible
from threadline.thread.graph import Graph
from threadline.thread.parallel import Parallel


def active_thread(entries: list[Entry], graph: Graph, parallel: Parallel, *, agent: bool = False) -> Thread:
    """The active thread of one agent's entries. `agent`: they are a subagent's, and marked as such throughout.

    The official rule takes the leaf that stands last in the file. Newer versions also write a pointer to the leaf that
    was chosen, which alone tells of a rewind; it counts unless the conversation went on elsewhere after it was written.
    """
    pointer = _last_pointer(entries)
    if pointer is not None:
        at, row = pointer
        if row.leaf_uuid is None:
            if not _went_on(entries, at):
                return Thread(source=LeafSource.REWOUND_TO_START, agent=agent)
        elif row.leaf_uuid in graph.entries:
            below = set(graph.below(row.leaf_uuid))
            later = {entry.uuid for entry in entries[at + 1 :] if isinstance(entry, ChainEntry) and entry.uuid}
            if later <= below:
                leaf = _leaf(graph, below, agent=agent) or _speaker(graph, row.leaf_uuid)
                if leaf is not None:
                    return Thread(tuple(thread_to(graph, parallel, leaf)), leaf, LeafSource.LAST_PROMPT, agent)
    leaf = _leaf(graph, None, agent=agent)
    source = LeafSource.LAST_IN_FILE if leaf else LeafSource.NONE
    return Thread(tuple(thread_to(graph, parallel, leaf)), leaf, source, agent)


def thread_to(graph: Graph, parallel: Parallel, leaf: EntryId | None) -> list[ChainEntry]:
    """The path from the root to an entry, with parallel calls put back."""
    chain = list(graph.walk(leaf))
    chain.reverse()
    return parallel.complete(chain)


def _last_pointer(entries: list[Entry]) -> tuple[int, LastPromptEntry] | None:
    """The last `last-prompt` row that points somewhere: at a leaf, or explicitly at the start."""
    for at in range(len(entries) - 1, -1, -1):
        row = entries[at]
        if isinstance(row, LastPromptEntry) and (row.leaf_uuid is not None or row.explicit):
            return at, row
    return None


def _went_on(entries: list[Entry], at: int) -> bool:
    return any(isinstance(entry, ChainEntry) and entry.uuid is not None for entry in entries[at + 1 :])


def _leaf(graph: Graph, within: set[EntryId] | None, *, agent: bool) -> EntryId | None:
    """The speaking entry nearest above the ends of the graph that stands last, main ones before others.

    What only stands in a cycle counts where there is nothing else.
    """
    nearest = _nearest_speakers(graph)
    speakers: list[EntryId] = []
    for ends in (graph.ends(), graph.leaves()):
        above = (nearest[end] for end in ends if within is None or end in within)
        speakers = speakers or [one for one in above if one is not None and (within is None or one in within)]
    main = [uuid for uuid in speakers if is_visible(graph.entries[uuid], agent=agent)]
    return max(main or speakers, key=graph.position.__getitem__, default=None)


def _nearest_speakers(graph: Graph) -> dict[EntryId, EntryId | None]:
    """Of each entry, itself or the nearest above it that a person or the model said."""
    nearest: dict[EntryId, EntryId | None] = {}
    for uuid in graph.downwards():
        parent = graph.parent(uuid)
        above = nearest.get(parent) if parent is not None else None
        nearest[uuid] = uuid if isinstance(graph.entries[uuid], UserEntry | AssistantEntry) else above
    return nearest


def _speaker(graph: Graph, uuid: EntryId) -> EntryId | None:
    return next((entry.uuid for entry in graph.up(uuid) if isinstance(entry, UserEntry | AssistantEntry)), None)
