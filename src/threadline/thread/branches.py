"""Branches: what was left when the conversation was edited, retried or rewound.

Nearly every place where the graph parts is structural: progress beside a result, results of parallel calls, hooks. A
fork is real only where two ways on each lead to a person's prompt, or one does and the other is a finished reply. A
root that was left is a branch, too: the conversation was begun anew. What was left is no branch where it is nothing
but commands that nobody replied to: `/exit`, and then the session was taken up again.
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


def branches(
    graph: Graph, prompts: Container[EntryId], kept: Container[EntryId], commands: Container[EntryId] = ()
) -> list[Branch]:
    """Every branch that was left, in file order. Branches inside what was left stay inside it: it is told once.

    `prompts` are the entries that are a person's prompts; `kept` are the entries of the conversation that was kept;
    `commands` are those of the prompts that are commands.
    """
    reach = _Reach(graph, prompts, commands, kept)
    left = {root for root in graph.roots if root not in kept and reach.is_exchange(root)}
    for fork, children in graph.children.items():
        if len(children) > 1:
            left.update(way for way in reach.left(reach.ways(fork, children)) if reach.is_told(way))
    begun: dict[EntryId, EntryId] = {}
    found: dict[EntryId, list[EntryId]] = {}
    passed: set[EntryId] = set()
    for uuid in graph.downwards():
        above = graph.parent(uuid)
        if uuid in kept:
            # The results of parallel calls are kept, wherever they hang: a branch goes on from there.
            if uuid in left or above in passed or above in begun:
                passed.add(uuid)
        elif above in begun or above in passed or uuid in left:
            first = begun.get(above, uuid) if above is not None else uuid
            begun[uuid] = first
            found.setdefault(first, []).append(uuid)
    return [_branch(graph, first, found[first]) for first in sorted(found, key=graph.first.__getitem__)]


class _Reach:
    """Where each entry leads: to a prompt, to a finished reply, to anything said. One pass from the leaves up."""

    def __init__(
        self, graph: Graph, prompts: Container[EntryId], commands: Container[EntryId], kept: Container[EntryId]
    ) -> None:
        self._graph = graph
        self._kept = kept
        self._to_kept_prompt: set[EntryId] = set()
        self._to_prompt: set[EntryId] = set()
        self._finished: set[EntryId] = set()
        self._told: set[EntryId] = set()
        for uuid in reversed(graph.downwards()):
            below = graph.children.get(uuid, ())
            if uuid in prompts or any(child in self._to_prompt for child in below):
                self._to_prompt.add(uuid)
            if (uuid in prompts and uuid in kept) or any(child in self._to_kept_prompt for child in below):
                self._to_kept_prompt.add(uuid)
            if _is_finished(graph.entries[uuid]) or any(child in self._finished for child in below):
                self._finished.add(uuid)
            told = (uuid in prompts and uuid not in commands) or _is_reply(graph.entries[uuid])
            if told or any(child in self._told for child in below):
                self._told.add(uuid)

    def is_told(self, uuid: EntryId) -> bool:
        """Whether anything was said there: more than commands that nobody replied to."""
        return uuid in self._told

    def is_exchange(self, uuid: EntryId) -> bool:
        """Whether a person said something there and was answered: a command before the first prompt is no beginning."""
        return uuid in self._to_prompt and uuid in self._finished

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

    def left(self, ways: list[EntryId]) -> list[EntryId]:
        """The ways that were not kept; where none was, the last in the file counts as kept.

        A way was kept where it leads to a prompt that was: a block of a reply that the conversation was rewound into is
        kept with the rest of its reply, and what followed it is left all the same.
        """
        if len(ways) < 2:  # noqa: PLR2004 - one way on is no fork
            return []
        last = max(ways, key=self._graph.position.__getitem__)
        kept = [way for way in ways if way in self._to_kept_prompt] or [way for way in ways if way in self._kept]
        stays = kept[0] if kept else last
        return [way for way in ways if way != stays]


def _is_reply(entry: ChainEntry) -> bool:
    return isinstance(entry, AssistantEntry) and not entry.is_made_up


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


def _branch(graph: Graph, first: EntryId, uuids: list[EntryId]) -> Branch:
    rest = sorted((uuid for uuid in uuids if uuid != first), key=graph.first.__getitem__)
    return Branch(graph.parent(first), tuple(graph.entries[uuid] for uuid in (first, *rest)))
