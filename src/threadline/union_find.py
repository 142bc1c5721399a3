"""Disjoint sets: merge items that belong together, and find the set of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


class UnionFind:
    """Disjoint sets of the numbers 0 to `size` - 1. `add` appends a number.

    >>> sets = UnionFind(3)
    >>> sets.union(0, 2)
    >>> list(sets.groups("abc"))
    [['a', 'c'], ['b']]
    """

    def __init__(self, size: int = 0) -> None:
        self._parents = list(range(size))

    def add(self) -> int:
        """Add a number, in a set of its own, and return it."""
        number = len(self._parents)
        self._parents.append(number)
        return number

    def find(self, number: int) -> int:
        """Return the representative of a number's set."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def union(self, left: int, right: int) -> None:
        """Merge the sets of two numbers; the lower representative stays."""
        low, high = sorted((self.find(left), self.find(right)))
        self._parents[high] = low

    def groups(self, items: Sequence[_Item]) -> Iterator[list[_Item]]:
        """Yield the items of each set, in their order. An item's number is its index."""
        groups: dict[int, list[_Item]] = {}
        for number, item in enumerate(items):
            groups.setdefault(self.find(number), []).append(item)
        yield from groups.values()
