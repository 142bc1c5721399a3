"""Agents of the oldest layout: their rows stand among the main transcript's own (up to 2.0.27)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain, count

from msgspec import Struct

from threadline.model.entries import ChainEntry, Entry
from threadline.model.ids import AgentId, EntryId


class Inline(Struct, frozen=True):
    """One such agent: the id made for it, and its entries in file order."""

    id: AgentId
    entries: tuple[Entry, ...]


def separate(entries: Sequence[Entry], taken: Container[str] = ()) -> tuple[list[Entry], list[Inline]]:
    """Part a main transcript: the main agent's entries, and those of each agent inside it.

    Several agents at work at once interleave; each is a tree of its own. `taken` are ids that may not be given again.
    """
    marked = [entry for entry in entries if isinstance(entry, ChainEntry) and entry.is_agent]
    others = any(isinstance(entry, ChainEntry) and not entry.is_agent for entry in entries)
    if not marked or not others:
        # A transcript in which every row is marked is an agent's own, whatever its name.
        return list(entries), []
    roots = _roots(marked)
    main: list[Entry] = []
    trees: dict[object, list[ChainEntry]] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, ChainEntry) and entry.is_agent:
            trees.setdefault(_tree(entry, at, roots), []).append(entry)
        else:
            main.append(entry)
    given: set[str] = set()
    return main, [Inline(_id(tree[0], taken, given), tuple(tree)) for tree in trees.values()]


def _tree(entry: ChainEntry, at: int, roots: dict[EntryId, EntryId]) -> object:
    """What the rows of one agent have in common: the agent's id where rows tell it, else the root they descend from."""
    if entry.agent_id is not None:
        return ("agent", entry.agent_id)
    near = entry.uuid if entry.uuid in roots else entry.parent_uuid
    root = roots.get(near) if near is not None else None
    return ("root", root) if root is not None else ("alone", at)


def _roots(marked: list[ChainEntry]) -> dict[EntryId, EntryId]:
    """The root of each entry. Every entry is walked over once; a cycle has its first entry for a root."""
    parents = {entry.uuid: entry.parent_uuid for entry in marked if entry.uuid is not None}
    roots: dict[EntryId, EntryId] = {}
    for uuid in parents:
        path: dict[EntryId, None] = {}
        here: EntryId | None = uuid
        while here is not None and here in parents and here not in roots and here not in path:
            path[here] = None
            here = parents[here]
        if here is not None and here in roots:
            root = roots[here]
        else:
            root = here if here is not None and here in path else next(reversed(path), uuid)
        roots.update(dict.fromkeys(path, root))
    return roots


def _id(first: ChainEntry, taken: Container[str], given: set[str]) -> AgentId:
    """An id for an agent that has none: made from its first row, the same each time."""
    if first.agent_id is not None and first.agent_id not in taken:
        names = [str(first.agent_id)]
    else:
        whole = str(first.agent_id or first.uuid or f"line{first.line.number}")
        names = [f"inline-{whole[:8]}", f"inline-{whole}"]
    numbered = (f"{names[-1]}-{number}" for number in count(len(given)))
    name = next(name for name in chain(names, numbered) if name not in given and name not in taken)
    given.add(name)
    return AgentId(name)
