"""Branches: what was left when the conversation was edited, retried or rewound.

Nearly every place where the graph parts is structural: progress beside a result, results of parallel calls, hooks. A
fork is real only where two ways on each lead to a person's prompt, or one does and the other is a finished reply.
"""

from __future__ import annotations

from collections.abc import Container

from threadline.model.block import TextBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, ChainEntry
from threadline.model.ids import EntryId
from threadline.model.thread import Branch
from threadline.thread.graph import Graph
from threadline.thread.parallel import message_id

_FINISHED = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})


def branches(graph: Graph, prompts: Container[EntryId], kept: Container[EntryId]) -> list[Branch]:
    """Every branch that was left, in file order.

    `prompts` are the entries that are a person's prompts; `kept` are the entries of the conversation that was kept.
    """
    reach = _Reach(graph, prompts)
    found = [
        _branch(graph, fork, child)
        for fork, children in graph.children.items()
        if len(children) > 1
        for child in _left(graph, reach.ways(fork, children), kept)
    ]
    found.sort(key=lambda branch: graph.position[branch.first.uuid] if branch.first.uuid else 0)
    return _outermost(found)


class _Reach:
    """Where each entry leads: to a prompt, or to a finished reply. One pass from the leaves up."""

    def __init__(self, graph: Graph, prompts: Container[EntryId]) -> None:
        self._graph = graph
        self._to_prompt: set[EntryId] = set()
        self._finished: set[EntryId] = set()
        for uuid in reversed(graph.downwards()):
            below = graph.children.get(uuid, ())
            if uuid in prompts or any(child in self._to_prompt for child in below):
                self._to_prompt.add(uuid)
            if _is_finished(graph.entries[uuid]) or any(child in self._finished for child in below):
                self._finished.add(uuid)

    def ways(self, fork: EntryId, children: list[EntryId]) -> list[EntryId]:
        """The ways on from a fork that a person or a finished reply took; blocks of one reply are one way."""
        entries = self._graph.entries
        prompting = [child for child in children if child in self._to_prompt]
        if not prompting:
            return []
        same = {message_id(entries[child]) for child in [*prompting, fork]} - {None}
        replied = [
            child
            for child in children
            if child not in self._to_prompt
            and child in self._finished
            and isinstance(entries[child], AssistantEntry)
            and message_id(entries[child]) not in same
        ]
        return [*prompting, *replied]


def _left(graph: Graph, ways: list[EntryId], kept: Container[EntryId]) -> list[EntryId]:
    """The ways that were not kept; where none was, the last in the file counts as kept."""
    if len(ways) < 2:  # noqa: PLR2004 - one way on is no fork
        return []
    stays = next((way for way in ways if way in kept), max(ways, key=graph.position.__getitem__))
    return [way for way in ways if way != stays]


def _is_finished(entry: ChainEntry) -> bool:
    """Whether a reply ends here: it says so, or (older versions do not say) it ends with text and not with a call."""
    if not isinstance(entry, AssistantEntry) or entry.message is None or entry.is_made_up:
        return False
    if entry.message.stop_reason is not None:
        return entry.message.stop_reason in _FINISHED
    blocks = list(entry.message.blocks)
    return (
        bool(blocks) and isinstance(blocks[-1], TextBlock) and not any(isinstance(one, ToolUseBlock) for one in blocks)
    )


def _branch(graph: Graph, fork: EntryId, first: EntryId) -> Branch:
    uuids = sorted(graph.below(first), key=graph.position.__getitem__)
    start = graph.entries[first]
    rest = [graph.entries[uuid] for uuid in uuids if uuid != first]
    return Branch(fork, (start, *rest))


def _outermost(found: list[Branch]) -> list[Branch]:
    """Branches of an abandoned branch stay inside it: what was left is told once."""
    told: set[EntryId | None] = set()
    kept: list[Branch] = []
    for branch in sorted(found, key=lambda one: -len(one.entries)):
        if branch.first.uuid not in told:
            told.update(entry.uuid for entry in branch.entries)
            kept.append(branch)
    return [branch for branch in found if branch in kept]
