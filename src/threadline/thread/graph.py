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

    Of entries that share an id the last one counts. `position` is where that one stands, by which Claude Code itself
    tells which leaf is the last; `first` is where the id stood first, which is when it was said.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: dict[EntryId, ChainEntry] = {}
        self.position: dict[EntryId, int] = {}
        self.first: dict[EntryId, int] = {}
        for at, entry in enumerate(entries):
            if isinstance(entry, ChainEntry) and entry.uuid is not None:
                self.entries[entry.uuid] = entry
                self.position[entry.uuid] = at
                self.first.setdefault(entry.uuid, at)
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
        """The parent that an entry names, if it is there; an empty name is none."""
        parent = self.entries[uuid].parent_uuid or None
        return parent if parent in self.entries else None

    def parent(self, uuid: EntryId) -> EntryId | None:
        """The entry before it, if it is there; none before the entry at which a cycle was opened."""
        parent = self._named_parent(uuid)
        return parent if parent != uuid and uuid not in self._opened else None

    def is_orphan(self, uuid: EntryId) -> bool:
        """Whether it names a parent that is not there."""
        return bool(self.entries[uuid].parent_uuid) and self._named_parent(uuid) is None

    def up(self, uuid: EntryId | None) -> Iterator[ChainEntry]:
        """From an entry to its root."""
        while uuid is not None and uuid in self.entries:
            yield self.entries[uuid]
            uuid = self.parent(uuid)

    def walk(self, uuid: EntryId | None) -> Iterator[ChainEntry]:
        """From an entry along the parents as they are named, once round a cycle: as Claude Code itself walks."""
        seen: set[EntryId] = set()
        while uuid is not None and uuid in self.entries and uuid not in seen:
            seen.add(uuid)
            yield self.entries[uuid]
            uuid = self._named_parent(uuid)

    def ends(self) -> list[EntryId]:
        """Entries that no entry names as its parent, itself and cycles included, in file order."""
        named = {entry.parent_uuid for entry in self.entries.values()}
        return [uuid for uuid in self.entries if uuid not in named]

    def below(self, uuid: EntryId) -> Iterator[EntryId]:
        """An entry and all that descends from it, in no particular order."""
        waiting = [uuid]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(self.children.get(here, ()))

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

    def _open_cycles(self) -> None:
        """Make the first entry of each cycle a root: entries in a cycle, or below one, hang from no root at all."""
        reached: set[EntryId] = set()
        for root in self.roots:
            reached.update(self.below(root))
        for uuid in self.entries:
            if uuid not in reached:
                first = self._first_of_cycle(uuid)
                above = self._named_parent(first) or first
                self.children[above].remove(first)
                if not self.children[above]:
                    del self.children[above]
                self._opened.add(first)
                self.roots.append(first)
                reached.update(self.below(first))

    def _first_of_cycle(self, uuid: EntryId) -> EntryId:
        """The entry that stands first in the cycle that an entry is in, or hangs from."""
        path: dict[EntryId, None] = {}
        here: EntryId | None = uuid
        while here is not None and here not in path:
            path[here] = None
            here = self.parent(here)
        ring = list(path)
        return min(ring[ring.index(here or uuid) :], key=self.first.__getitem__)
