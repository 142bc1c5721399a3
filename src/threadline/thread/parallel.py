"""Parallel calls, put back where they belong.

A reply with several calls is several entries that share a message id, and each result hangs off its own call. A path
from root to leaf passes through one of them only; the others belong to the conversation all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.model.block import ToolResultBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, ChainEntry, UserEntry
from threadline.model.ids import CallId, EntryId, MessageId
from threadline.thread.graph import Graph


def calls_of(entry: ChainEntry) -> Iterator[CallId]:
    """The calls that an entry makes."""
    for block in _blocks(entry):
        if isinstance(block, ToolUseBlock) and block.id is not None:
            yield block.id


def answers_of(entry: ChainEntry) -> Iterator[CallId]:
    """The calls that an entry gives the results of."""
    for block in _blocks(entry):
        if isinstance(block, ToolResultBlock) and block.tool_use_id is not None:
            yield block.tool_use_id


def _blocks(entry: ChainEntry) -> list[object]:
    message = entry.message if isinstance(entry, UserEntry | AssistantEntry) else None
    return list(message.content) if message is not None and isinstance(message.content, list) else []


def message_id(entry: ChainEntry) -> MessageId | None:
    """The id of the reply that an entry is part of."""
    return (entry.message.id or None) if isinstance(entry, AssistantEntry) and entry.message is not None else None


class Parallel:
    """Which entries belong to each reply, and which results to each of those. Made once for a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.replies: dict[MessageId, list[AssistantEntry]] = {}
        self._owner: dict[CallId, AssistantEntry | None] = {}
        results: list[UserEntry] = []
        for entry in graph.entries.values():
            reply = message_id(entry)
            if reply is not None and isinstance(entry, AssistantEntry):
                self.replies.setdefault(reply, []).append(entry)
                self._own(entry, reply)
            elif isinstance(entry, UserEntry) and entry.parent_uuid and next(answers_of(entry), None) is not None:
                results.append(entry)
        self._results: dict[EntryId, list[UserEntry]] = {}
        for result in results:
            for owner in self._owners(result):
                self._results.setdefault(owner, []).append(result)

    def _own(self, entry: AssistantEntry, reply: MessageId) -> None:
        """Remember who made a call; one that two replies claim belongs to neither."""
        for call in calls_of(entry):
            other = self._owner.get(call)
            taken = call in self._owner and (other is None or message_id(other) != reply)
            self._owner[call] = None if taken else entry

    def _owners(self, result: UserEntry) -> Iterator[EntryId]:
        """The entries a result may belong to: its parent, its named source, those whose calls it answers."""
        if result.parent_uuid is not None:
            yield result.parent_uuid
        source = result.source_tool_assistant_uuid
        if source is not None and source in self._graph.entries and _same_agent(result, self._graph.entries[source]):
            yield source
        for call in answers_of(result):
            owner = self._owner.get(call)
            if owner is not None and owner.uuid is not None and _same_agent(result, owner):
                yield owner.uuid

    def complete(self, chain: list[ChainEntry]) -> list[ChainEntry]:
        """The chain with, after the last entry of each reply on it, the entries and results of that reply it missed."""
        there = {entry.uuid for entry in chain}
        last = {reply: entry.uuid for entry in chain if (reply := message_id(entry)) is not None}
        answered: set[CallId] = {call for entry in chain for call in answers_of(entry)}
        missed: dict[EntryId | None, list[ChainEntry]] = {}
        for reply, anchor in last.items():
            found = self._missed(reply, there, answered)
            there.update(entry.uuid for entry in found)
            missed[anchor] = found
        return [both for entry in chain for both in (entry, *missed.get(entry.uuid, ()))]

    def _missed(self, reply: MessageId, there: set[EntryId | None], answered: set[CallId]) -> list[ChainEntry]:
        members = self.replies.get(reply, [])
        own = {member.uuid for member in members}
        siblings: list[ChainEntry] = [member for member in members if member.uuid not in there]
        results: list[ChainEntry] = []
        strays: list[ChainEntry] = []
        taken: set[EntryId | None] = set()
        for member in members:
            for result in self._results.get(member.uuid, ()) if member.uuid is not None else ():
                if result.uuid not in there and result.uuid not in taken:
                    taken.add(result.uuid)
                    (results if result.parent_uuid in own else strays).append(result)
        closed = {call for result in results for call in answers_of(result)}
        # A result that hangs elsewhere counts only where it answers a call that nothing else answers.
        for stray in sorted(strays, key=lambda one: self._graph.position[one.uuid] if one.uuid else 0):
            calls = list(answers_of(stray))
            if any(call not in closed and call not in answered and self._is_own(call, own) for call in calls):
                closed.update(calls)
                results.append(stray)
        return [*sorted(siblings, key=_when), *sorted(results, key=_when)]

    def _is_own(self, call: CallId, own: set[EntryId | None]) -> bool:
        owner = self._owner.get(call)
        return owner is not None and owner.uuid in own


def _same_agent(one: ChainEntry, other: ChainEntry) -> bool:
    return bool(one.is_agent) == bool(other.is_agent) and one.agent_id == other.agent_id


def _when(entry: ChainEntry) -> str:
    return entry.timestamp_text if isinstance(entry.timestamp_text, str) else ""
