"""Compactions of every era, and the conversation as a person lived it: across all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType

from threadline.model.entries import AssistantEntry, ChainEntry, SystemEntry, UserEntry
from threadline.model.ids import EntryId
from threadline.model.thread import Compaction, CompactionKind, Thread
from threadline.thread.active import thread_to
from threadline.thread.graph import Graph
from threadline.thread.parallel import Parallel

# What stays after a compaction is the last few messages; a pointer further back is damage, and walking there for each
# boundary would take forever.
_LONGEST_STRETCH = 2000


def compactions(graph: Graph) -> list[Compaction]:
    """Every compaction of one agent's entries, in file order."""
    speakers = _speakers(graph)
    found: list[Compaction] = []
    for uuid, entry in graph.entries.items():
        if isinstance(entry, SystemEntry) and entry.subtype == "compact_boundary":
            found.append(_boundary(entry, uuid, graph, speakers))
        elif isinstance(entry, SystemEntry) and entry.subtype == "microcompact_boundary":
            found.append(_micro(entry))
        elif isinstance(entry, UserEntry) and entry.is_compact_summary and not _follows_boundary(entry, graph):
            before = _last_before(speakers, graph.first[uuid])
            found.append(Compaction(CompactionKind.SUMMARY, entry.place, summary=entry, before=before))
    return sorted(found, key=lambda one: one.place.offset)


def resumptions(graph: Graph, *, agent: bool = False) -> dict[EntryId, EntryId | None]:
    """Where a conversation goes on without a link: each such root with the entry it had come to before.

    An entry whose parent is missing goes on from what stands before it. `agent`: a subagent that is taken up again has
    a new root each time; a person's new root is a new beginning.
    """
    speakers = _speakers(graph)
    roots = (root for root in graph.roots if agent or graph.is_orphan(root))
    return {root: _last_before(speakers, graph.first[root]) for root in roots}


def conversation(
    thread: Thread,
    found: list[Compaction],
    graph: Graph,
    parallel: Parallel,
    resumed: Mapping[EntryId, EntryId | None] = MappingProxyType({}),
) -> list[ChainEntry]:
    """The whole conversation as a person lived it: every segment before a compaction, then the thread itself.

    `resumed` are roots that go on from another entry without a compaction.
    """
    before: dict[EntryId | None, EntryId | None] = dict(resumed.items())
    before |= {_start(one): one.before for one in found if one.kind is not CompactionKind.MICRO}
    segments = [list(thread.entries)]
    starts: set[EntryId | None] = set()
    while segments[-1] and segments[-1][0].uuid not in starts:
        first = segments[-1][0].uuid
        starts.add(first)
        segments.append(thread_to(graph, parallel, before.get(first)))
    segments.pop()  # nothing, or a tree that was gone through already
    told: set[EntryId | None] = set()
    whole: list[ChainEntry] = []
    for entry in (one for segment in reversed(segments) for one in segment):
        if entry.uuid not in told:
            told.add(entry.uuid)
            whole.append(entry)
    return whole


def _start(compaction: Compaction) -> EntryId | None:
    start = compaction.boundary or compaction.summary
    return start.uuid if start is not None else None


def _boundary(entry: SystemEntry, uuid: EntryId, graph: Graph, speakers: list[tuple[int, EntryId]]) -> Compaction:
    told = entry.compact_metadata
    logical = entry.logical_parent_uuid
    # A pointer to the boundary's own future, or to itself, leads nowhere as well.
    dangling = logical is None or logical not in graph.entries or graph.first[logical] >= graph.first[uuid]
    summary = next((one for child in graph.children.get(uuid, ()) if _is_summary(one := graph.entries[child])), None)
    return Compaction(
        CompactionKind.BOUNDARY,
        entry.place,
        boundary=entry,
        summary=summary if isinstance(summary, UserEntry) else None,
        before=_last_before(speakers, graph.first[uuid]) if dangling else logical,
        dangling=dangling,
        trigger=told.trigger if told else None,
        tokens_before=told.pre_tokens if told else None,
        tokens_after=told.post_tokens if told else None,
        preserved=tuple(_preserved(entry, graph)),
    )


def _micro(entry: SystemEntry) -> Compaction:
    told = entry.microcompact_metadata
    before = told.pre_tokens if told else None
    after = before - (told.tokens_saved or 0) if told and before is not None else None
    return Compaction(
        CompactionKind.MICRO,
        entry.place,
        boundary=entry,
        before=entry.parent_uuid,
        trigger=told.trigger if told else None,
        tokens_before=before,
        tokens_after=after,
    )


def _preserved(entry: SystemEntry, graph: Graph) -> list[EntryId]:
    """The entries from before a boundary that stay: a list of them, or a stretch from head to tail."""
    told = entry.compact_metadata
    if told is None:
        return []
    if told.preserved_messages is not None and told.preserved_messages.uuids:
        return [uuid for uuid in told.preserved_messages.uuids if uuid in graph.entries]
    stretch = told.preserved_segment
    if stretch is None or stretch.tail_uuid is None:
        return []
    kept: list[EntryId] = []
    for one in islice(graph.up(stretch.tail_uuid), _LONGEST_STRETCH if stretch.head_uuid in graph.entries else 0):
        if one.uuid is not None:
            kept.append(one.uuid)
        if one.uuid == stretch.head_uuid:
            return kept[::-1]
    return []


def _is_summary(entry: ChainEntry) -> bool:
    return isinstance(entry, UserEntry) and bool(entry.is_compact_summary)


def _follows_boundary(entry: UserEntry, graph: Graph) -> bool:
    parent = graph.entries.get(entry.parent_uuid) if entry.parent_uuid is not None else None
    return isinstance(parent, SystemEntry) and parent.subtype == "compact_boundary"


def _speakers(graph: Graph) -> list[tuple[int, EntryId]]:
    return [
        (graph.first[uuid], uuid)
        for uuid, entry in graph.entries.items()
        if isinstance(entry, UserEntry | AssistantEntry) and not entry.is_meta
    ]


def _last_before(speakers: list[tuple[int, EntryId]], position: int) -> EntryId | None:
    at = bisect_left(speakers, (position, EntryId("")))
    return speakers[at - 1][1] if at else None
