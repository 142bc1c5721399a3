"""The parent graph of one agent's entries, and the parallel calls that a path through it misses.

Transcripts contain orphans, cycles, repeated ids, children before their parents, and several roots. In the graph
every entry has an existing parent or none, no walk loops, and everything takes time linear in the number of entries.

A reply with several calls is written as several entries that share a message id, and each result is a child of its own
call. A path from root to leaf passes through only one of them; `ParallelReplies` adds the others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property

from threadline.model.blocks import ToolResultBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, ToolResultEntry, ToolUseEntry, UserEntry
from threadline.model.places import CallId, EntryId, MessageId

_CALL_ROWS = (ToolUseEntry, ToolResultEntry)


def has_graph_position(entry: ChainEntry) -> bool:
    """Whether an entry is part of the parent graph: it has an id, and Claude Code writes entries of its kind."""
    return entry.uuid is not None and not isinstance(entry, _CALL_ROWS)


class Graph:
    """Entries by id, with their parents and children.

    If entries share an id, the last one counts. `position` is its position, by which Claude Code decides which leaf is
    the last. `first_position` is where the id first occurs, which is when the entry was written.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: dict[EntryId, ChainEntry] = {}
        self.position: dict[EntryId, int] = {}
        self.first_position: dict[EntryId, int] = {}
        for at, entry in enumerate(entries):
            if isinstance(entry, ChainEntry) and entry.uuid is not None and has_graph_position(entry):
                self.entries[entry.uuid] = entry
                self.position[entry.uuid] = at
                self.first_position.setdefault(entry.uuid, at)
        self.children: dict[EntryId, list[EntryId]] = {}
        self._opened: set[EntryId] = set()
        self.roots: list[EntryId] = []
        for uuid in self.entries:
            parent = self._named_parent(uuid)
            if parent is None or parent == uuid:
                self.roots.append(uuid)
            else:
                self.children.setdefault(parent, []).append(uuid)
        self._open_cycles()

    def _named_parent(self, uuid: EntryId) -> EntryId | None:
        """Return the parent that an entry names, if it exists; an empty name counts as none."""
        parent = self.entries[uuid].parent_uuid or None
        return parent if parent in self.entries else None

    def parent(self, uuid: EntryId) -> EntryId | None:
        """Return the entry before it, if it exists; None for the entry at which a cycle was opened."""
        parent = self._named_parent(uuid)
        return parent if parent != uuid and uuid not in self._opened else None

    def is_orphan(self, uuid: EntryId) -> bool:
        """Whether it names a parent that does not exist, or does not say at all whether it has one."""
        entry = self.entries[uuid]
        return self._named_parent(uuid) is None if entry.parent_uuid else not names_parent(entry)

    def path_to_root(self, uuid: EntryId | None) -> Iterator[ChainEntry]:
        """Yield the entries from this one to its root."""
        while uuid is not None and uuid in self.entries:
            yield self.entries[uuid]
            uuid = self.parent(uuid)

    def walk_parents(self, uuid: EntryId | None) -> Iterator[ChainEntry]:
        """Follow the parents as they are named, once round a cycle, as Claude Code does."""
        visited: set[EntryId] = set()
        while uuid is not None and uuid in self.entries and uuid not in visited:
            visited.add(uuid)
            yield self.entries[uuid]
            uuid = self._named_parent(uuid)

    def unreferenced(self) -> list[EntryId]:
        """Return the entries that no entry names as its parent, in file order. Entries in a cycle are named."""
        parent_ids = {entry.parent_uuid for entry in self.entries.values()}
        return [uuid for uuid in self.entries if uuid not in parent_ids]

    def subtree(self, uuid: EntryId) -> Iterator[EntryId]:
        """Yield an entry and all its descendants, in no particular order."""
        waiting = [uuid]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(self.children.get(here, ()))

    def leaves(self) -> Iterator[EntryId]:
        """Yield the entries without children, in file order; opened cycles have one, too."""
        return (uuid for uuid in self.entries if uuid not in self.children)

    def topological_order(self) -> list[EntryId]:
        """Return every entry, each after its parent."""
        ordered: list[EntryId] = []
        waiting = list(reversed(self.roots))
        while waiting:
            here = waiting.pop()
            ordered.append(here)
            waiting.extend(reversed(self.children.get(here, ())))
        return ordered

    def last_speaker_before(self, position: int) -> EntryId | None:
        """Return the last entry before a position in the file that a person or the model wrote."""
        at = bisect_left(self._speakers, (position, EntryId("")))
        return self._speakers[at - 1][1] if at else None

    @cached_property
    def _speakers(self) -> list[tuple[int, EntryId]]:
        return [
            (self.first_position[uuid], uuid)
            for uuid, entry in self.entries.items()
            if isinstance(entry, UserEntry | AssistantEntry) and not entry.is_meta
        ]

    def _open_cycles(self) -> None:
        """Make the first entry of each cycle a root: entries in a cycle, or below one, have no root."""
        reached: set[EntryId] = set()
        for root in self.roots:
            reached.update(self.subtree(root))
        for uuid in self.entries:
            if uuid not in reached:
                first = self._first_of_cycle(uuid)
                above = self._named_parent(first) or first
                self.children[above].remove(first)
                if not self.children[above]:
                    del self.children[above]
                self._opened.add(first)
                self.roots.append(first)
                reached.update(self.subtree(first))

    def _first_of_cycle(self, uuid: EntryId) -> EntryId:
        """Return the first entry of the cycle that an entry is in, or descends from."""
        path: dict[EntryId, None] = {}
        here: EntryId | None = uuid
        while here is not None and here not in path:
            path[here] = None
            here = self.parent(here)
        ring = list(path)
        return min(ring[ring.index(here or uuid) :], key=self.first_position.__getitem__)


_PARENT_KEY = b'"parentUuid"'


def names_parent(entry: ChainEntry) -> bool:
    """Whether an entry says which entry is before it, or that there is none (`"parentUuid":null`)."""
    return entry.parent_uuid is not None or _PARENT_KEY in entry.line.raw


def call_ids(entry: ChainEntry) -> Iterator[CallId]:
    """Yield the ids of the calls that an entry makes."""
    for block in _content_blocks(entry):
        if isinstance(block, ToolUseBlock) and block.id is not None:
            yield block.id


def answered_call_ids(entry: ChainEntry) -> Iterator[CallId]:
    """Yield the ids of the calls that an entry answers."""
    for block in _content_blocks(entry):
        if isinstance(block, ToolResultBlock) and block.tool_use_id is not None:
            yield block.tool_use_id


def _content_blocks(entry: ChainEntry) -> list[object]:
    message = entry.message if isinstance(entry, UserEntry | AssistantEntry) else None
    return list(message.content) if message is not None and isinstance(message.content, list) else []


def message_id(entry: ChainEntry) -> MessageId | None:
    """Return the id of the reply that an entry is part of."""
    return (entry.message.id or None) if isinstance(entry, AssistantEntry) and entry.message is not None else None


class ParallelReplies:
    """The entries of each reply, and the results of each entry. Built once for a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.replies: dict[MessageId, list[AssistantEntry]] = {}
        self._owner: dict[CallId, AssistantEntry | None] = {}
        results: list[UserEntry] = []
        for entry in graph.entries.values():
            reply = message_id(entry)
            if reply is not None and isinstance(entry, AssistantEntry):
                self.replies.setdefault(reply, []).append(entry)
                self._claim_calls(entry, reply)
            elif (
                isinstance(entry, UserEntry) and entry.parent_uuid and next(answered_call_ids(entry), None) is not None
            ):
                results.append(entry)
        self._results: dict[EntryId, list[UserEntry]] = {}
        for result in results:
            for owner in self._owners(result):
                self._results.setdefault(owner, []).append(result)

    def _claim_calls(self, entry: AssistantEntry, reply: MessageId) -> None:
        """Remember which entry made a call. A call that two replies claim belongs to neither."""
        for call in call_ids(entry):
            other = self._owner.get(call)
            taken = call in self._owner and (other is None or message_id(other) != reply)
            self._owner[call] = None if taken else entry

    def _owners(self, result: UserEntry) -> Iterator[EntryId]:
        """Return the entries a result may belong to: its parent, its named source, those whose calls it answers."""
        if result.parent_uuid is not None:
            yield result.parent_uuid
        source = result.source_tool_assistant_uuid
        if source is not None and source in self._graph.entries and _is_same_agent(result, self._graph.entries[source]):
            yield source
        for call in answered_call_ids(result):
            owner = self._owner.get(call)
            if owner is not None and owner.uuid is not None and _is_same_agent(result, owner):
                yield owner.uuid

    def complete(self, chain: list[ChainEntry]) -> list[ChainEntry]:
        """Return the chain with the missing entries and results of each reply, after the last entry of the reply."""
        present = {entry.uuid for entry in chain}
        last = {reply: entry.uuid for entry in chain if (reply := message_id(entry)) is not None}
        answered: set[CallId] = {call for entry in chain for call in answered_call_ids(entry)}
        missing: dict[EntryId | None, list[ChainEntry]] = {}
        for reply, anchor in last.items():
            added = self._missing_entries(reply, present, answered)
            present.update(entry.uuid for entry in added)
            missing[anchor] = added
        return [member for entry in chain for member in (entry, *missing.get(entry.uuid, ()))]

    def _missing_entries(
        self, reply: MessageId, present: set[EntryId | None], answered: set[CallId]
    ) -> list[ChainEntry]:
        members = self.replies.get(reply, [])
        member_ids = {member.uuid for member in members}
        siblings: list[ChainEntry] = [member for member in members if member.uuid not in present]
        results: list[ChainEntry] = []
        strays: list[ChainEntry] = []
        taken: set[EntryId | None] = set()
        for member in members:
            for result in self._results.get(member.uuid, ()) if member.uuid is not None else ():
                if result.uuid not in present and result.uuid not in taken:
                    taken.add(result.uuid)
                    (results if result.parent_uuid in member_ids else strays).append(result)
        answered_here = {call for result in results for call in answered_call_ids(result)}
        # A result with another parent counts only if it answers a call that nothing else answers.
        for stray in sorted(strays, key=lambda entry: self._graph.position[entry.uuid] if entry.uuid else 0):
            calls = list(answered_call_ids(stray))
            if any(
                call not in answered_here and call not in answered and self._is_call_of(call, member_ids)
                for call in calls
            ):
                answered_here.update(calls)
                results.append(stray)
        return [*sorted(siblings, key=_time_key), *sorted(results, key=_time_key)]

    def _is_call_of(self, call: CallId, member_ids: set[EntryId | None]) -> bool:
        owner = self._owner.get(call)
        return owner is not None and owner.uuid in member_ids


def _is_same_agent(entry: ChainEntry, other: ChainEntry) -> bool:
    return bool(entry.is_agent) == bool(other.is_agent) and entry.author_agent_id == other.author_agent_id


def _time_key(entry: ChainEntry) -> str:
    return entry.timestamp_text if isinstance(entry.timestamp_text, str) else ""
