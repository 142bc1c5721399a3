"""The parent graph of one agent's entries, as sound as it can be made.

Files hold orphans, cycles, repeated ids, children before their parents, and several roots. Here every entry has a
parent that is there or none, no walk goes round in circles, and everything takes time in proportion to the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.model.entries import ChainEntry, Entry
from threadline.model.ids import EntryId


class Graph:
    """Entries by id, their parents and children.

    Of entries that share an id the last one counts, at the position of the first, as Claude Code itself has it.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: dict[EntryId, ChainEntry] = {}
        self.position: dict[EntryId, int] = {}
        for at, entry in enumerate(entries):
            if isinstance(entry, ChainEntry) and entry.uuid is not None:
                self.entries[entry.uuid] = entry
                self.position[entry.uuid] = at
        self.children: dict[EntryId, list[EntryId]] = {}
        self.roots: list[EntryId] = []
        for uuid, entry in self.entries.items():
            parent = entry.parent_uuid
            if parent is None or parent == uuid or parent not in self.entries:
                self.roots.append(uuid)
            else:
                self.children.setdefault(parent, []).append(uuid)
        self._break_cycles()

    def parent(self, uuid: EntryId) -> EntryId | None:
        """The entry before it, if it is there."""
        parent = self.entries[uuid].parent_uuid
        return parent if parent is not None and parent in self.entries and parent != uuid else None

    def up(self, uuid: EntryId | None) -> Iterator[ChainEntry]:
        """From an entry to its root; a cycle ends where it would begin again."""
        seen: set[EntryId] = set()
        while uuid is not None and uuid in self.entries and uuid not in seen:
            seen.add(uuid)
            yield self.entries[uuid]
            uuid = self.parent(uuid)

    def below(self, uuid: EntryId) -> Iterator[EntryId]:
        """An entry and all that descends from it, in no particular order."""
        waiting = [uuid]
        seen = {uuid}
        while waiting:
            here = waiting.pop()
            yield here
            for child in self.children.get(here, ()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)

    def leaves(self) -> Iterator[EntryId]:
        """Entries that no entry names as its parent, in file order."""
        return (uuid for uuid in self.entries if uuid not in self.children)

    def downwards(self) -> list[EntryId]:
        """Every entry, each after its parent."""
        ordered: list[EntryId] = []
        waiting = list(reversed(self.roots))
        while waiting:
            here = waiting.pop()
            ordered.append(here)
            waiting.extend(reversed(self.children.get(here, ())))
        return ordered

    def _break_cycles(self) -> None:
        """Make the first entry of each cycle a root: entries in a cycle hang from no root at all."""
        reached: set[EntryId] = set()
        for root in self.roots:
            reached.update(self.below(root))
        for uuid in self.entries:
            if uuid in reached:
                continue
            self.roots.append(uuid)
            parent = self.entries[uuid].parent_uuid
            if parent is not None and parent in self.children:
                self.children[parent].remove(uuid)
                if not self.children[parent]:
                    del self.children[parent]
            reached.update(self.below(uuid))
