"""Branches: what was left when the conversation was edited, retried or rewound.

Nearly every place where the graph parts is structural: progress beside a result, results of parallel calls, hooks. A fork
is real only where two ways on each lead to a person's prompt, or one does and the other is a finished reply.
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
    to_prompt, finished = _reach(graph, prompts)
    found: list[Branch] = []
    for fork, children in graph.children.items():
        if len(children) > 1:
            found += _at(graph, fork, children, to_prompt, finished, kept)
    found.sort(key=lambda branch: graph.position[branch.first.uuid] if branch.first.uuid else 0)
    return _outermost(found)


def _reach(graph: Graph, prompts: Container[EntryId]) -> tuple[set[EntryId], set[EntryId]]:
    """The entries from which a prompt is reached, and those from which a finished reply is: one pass from the leaves up."""
    to_prompt: set[EntryId] = set()
    finished: set[EntryId] = set()
    for uuid in reversed(graph.downwards()):
        below = graph.children.get(uuid, ())
        if uuid in prompts or any(child in to_prompt for child in below):
            to_prompt.add(uuid)
        if _is_finished(graph.entries[uuid]) or any(child in finished for child in below):
            finished.add(uuid)
    return to_prompt, finished


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


def _at(
    graph: Graph,
    fork: EntryId,
    children: list[EntryId],
    to_prompt: set[EntryId],
    finished: set[EntryId],
    kept: Container[EntryId],
) -> list[Branch]:
    prompting = [child for child in children if child in to_prompt]
    if not prompting:
        return []
    # Blocks of one reply are one way on, not several.
    same_reply = {message_id(graph.entries[child]) for child in prompting} - {None}
    own_reply = message_id(graph.entries[fork])
    replied = [
        child
        for child in children
        if child not in to_prompt
        and child in finished
        and isinstance(graph.entries[child], AssistantEntry)
        and message_id(graph.entries[child]) not in same_reply | {own_reply}
    ]
    ways = [*prompting, *replied]
    if len(ways) < 2:  # noqa: PLR2004 - one way on is no fork
        return []
    stays = next((child for child in ways if child in kept), max(ways, key=graph.position.__getitem__))
    return [_branch(graph, fork, child) for child in ways if child != stays]


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
