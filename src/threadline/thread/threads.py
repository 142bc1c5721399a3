"""Thread one agent's entries: the active thread, the whole conversation, compactions and abandoned branches.

Nearly every fork in the graph is structural: progress beside a result, results of parallel calls, hooks. A fork is a
branch only if two of its paths each lead to a person's prompt, or one does and the other is a finished reply. An
abandoned root is a branch, too: the conversation was started over. Commands that nobody replied to (`/exit`, then a
resume) are not a branch.

Rows that Claude Code did not write may have no id, or not say what is before them. If no row of a file does, the
conversation is all rows in file order. Otherwise such a row continues what is before it in the file.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from msgspec import Struct

from threadline.model.blocks import TextBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, LastPromptEntry, SystemEntry, UserEntry
from threadline.model.places import EntryId
from threadline.model.session import (
    Act,
    ActKind,
    Branch,
    Compaction,
    CompactionKind,
    LeafSource,
    Thread,
    Turn,
    is_visible,
)
from threadline.thread.acts import find_acts
from threadline.thread.graph import Graph, ParallelReplies, has_graph_position, message_id, names_parent
from threadline.thread.turns import split_into_turns


def active_thread(entries: list[Entry], graph: Graph, parallel: ParallelReplies, *, agent: bool = False) -> Thread:
    """Return the active thread of one agent's entries. `agent` says that all of them are marked as a subagent's.

    The official rule takes the last leaf in the file. Newer versions also write a pointer to the chosen leaf, which is
    the only sign of a rewind. It counts unless the conversation continued elsewhere after it was written.
    """
    if _is_unlinked(graph):
        unlinked = tuple(entry for entry in entries if isinstance(entry, ChainEntry))
        speaker = next((entry for entry in reversed(unlinked) if isinstance(entry, UserEntry | AssistantEntry)), None)
        if speaker is not None:
            return Thread(unlinked, speaker.uuid, LeafSource.FILE_ORDER, agent)
    pointer = _last_pointer(entries)
    if pointer is not None:
        at, row = pointer
        if row.leaf_uuid is None:
            if not _has_later_entries(entries, at):
                return Thread(source=LeafSource.REWOUND_TO_START, agent=agent)
        elif row.leaf_uuid in graph.entries:
            below = set(graph.subtree(row.leaf_uuid))
            later = {entry.uuid for entry in entries[at + 1 :] if isinstance(entry, ChainEntry) and entry.uuid}
            if later <= below:
                leaf = _last_leaf(graph, below, agent=agent) or _nearest_speaker(graph, row.leaf_uuid)
                if leaf is not None:
                    return Thread(tuple(thread_to(graph, parallel, leaf)), leaf, LeafSource.LAST_PROMPT, agent)
    leaf = _last_leaf(graph, None, agent=agent)
    source = LeafSource.LAST_IN_FILE if leaf else LeafSource.NONE
    return Thread(tuple(thread_to(graph, parallel, leaf)), leaf, source, agent)


def _is_unlinked(graph: Graph) -> bool:
    """Whether no entry says which entry is before it."""
    return not any(names_parent(entry) for entry in graph.entries.values())


def thread_to(graph: Graph, parallel: ParallelReplies, leaf: EntryId | None) -> list[ChainEntry]:
    """Return the path from the root to an entry, with parallel calls added."""
    chain = list(graph.walk_parents(leaf))
    chain.reverse()
    return parallel.complete(chain)


def _last_pointer(entries: list[Entry]) -> tuple[int, LastPromptEntry] | None:
    """Return the last `last-prompt` row that points to a leaf, or explicitly to the start."""
    for at in range(len(entries) - 1, -1, -1):
        row = entries[at]
        if isinstance(row, LastPromptEntry) and (row.leaf_uuid is not None or row.explicit):
            return at, row
    return None


def _has_later_entries(entries: list[Entry], at: int) -> bool:
    return any(isinstance(entry, ChainEntry) and entry.uuid is not None for entry in entries[at + 1 :])


def _last_leaf(graph: Graph, within: set[EntryId] | None, *, agent: bool) -> EntryId | None:
    """Return the last speaking entry nearest to the ends of the graph, main ones before others.

    Entries that are only in a cycle count if there is nothing else.
    """
    nearest = _nearest_speakers(graph)
    speakers: list[EntryId] = []
    for ends in (graph.unreferenced(), graph.leaves()):
        above = (nearest[end] for end in ends if within is None or end in within)
        speakers = speakers or [
            speaker for speaker in above if speaker is not None and (within is None or speaker in within)
        ]
    main = [uuid for uuid in speakers if is_visible(graph.entries[uuid], agent=agent)]
    return max(main or speakers, key=graph.position.__getitem__, default=None)


def _nearest_speakers(graph: Graph) -> dict[EntryId, EntryId | None]:
    """Map each entry to itself or its nearest ancestor that a person or the model wrote."""
    nearest: dict[EntryId, EntryId | None] = {}
    for uuid in graph.topological_order():
        parent = graph.parent(uuid)
        above = nearest.get(parent) if parent is not None else None
        nearest[uuid] = uuid if isinstance(graph.entries[uuid], UserEntry | AssistantEntry) else above
    return nearest


def _nearest_speaker(graph: Graph, uuid: EntryId) -> EntryId | None:
    return next(
        (entry.uuid for entry in graph.path_to_root(uuid) if isinstance(entry, UserEntry | AssistantEntry)), None
    )


_MAX_PRESERVED = 2000
"""Only the last few messages stay after a compaction. A pointer further back is damage, and slow to follow."""


def find_compactions(graph: Graph) -> list[Compaction]:
    """Return every compaction of one agent's entries, in file order."""
    compactions: list[Compaction] = []
    for uuid, entry in graph.entries.items():
        if isinstance(entry, SystemEntry) and entry.subtype == "compact_boundary":
            compactions.append(_boundary_compaction(entry, uuid, graph))
        elif isinstance(entry, SystemEntry) and entry.subtype == "microcompact_boundary":
            compactions.append(_micro_compaction(entry))
        elif isinstance(entry, UserEntry) and entry.is_compact_summary and not _follows_boundary(entry, graph):
            before = graph.last_speaker_before(graph.first_position[uuid])
            compactions.append(Compaction(CompactionKind.SUMMARY, entry.place, summary=entry, before=before))
    return sorted(compactions, key=lambda compaction: compaction.place.offset)


def find_resumptions(graph: Graph, *, agent: bool = False) -> dict[EntryId, EntryId | None]:
    """Return where a conversation continues without a link: each such root with the last entry before it.

    An entry whose parent is missing, or that does not name one, continues what is before it. `agent`: a subagent that
    is resumed has a new root each time, while a person's new root is a new beginning.
    """
    roots = (root for root in graph.roots if agent or graph.is_orphan(root))
    return {root: graph.last_speaker_before(graph.first_position[root]) for root in roots}


def whole_conversation(
    thread: Thread,
    compactions: list[Compaction],
    graph: Graph,
    parallel: ParallelReplies,
    resumed: Mapping[EntryId, EntryId | None] = MappingProxyType({}),
) -> list[ChainEntry]:
    """Return the whole conversation as the person saw it: every segment before a compaction, then the thread itself.

    `resumed` are roots that continue another entry without a compaction.
    """
    before: dict[EntryId | None, EntryId | None] = dict(resumed.items())
    before |= {
        _start_id(compaction): compaction.before
        for compaction in compactions
        if compaction.kind is not CompactionKind.MICRO
    }
    segments = [list(thread.entries)]
    starts: set[EntryId | None] = set()
    while segments[-1] and segments[-1][0].uuid not in starts:
        first = segments[-1][0].uuid
        starts.add(first)
        segments.append(thread_to(graph, parallel, before.get(first)))
    segments.pop()  # nothing, or a tree that was walked already
    included: set[EntryId | None] = set()
    conversation: list[ChainEntry] = []
    for entry in (member for segment in reversed(segments) for member in segment):
        if entry.uuid not in included:
            included.add(entry.uuid)
            conversation.append(entry)
    return conversation


def _start_id(compaction: Compaction) -> EntryId | None:
    start = compaction.boundary or compaction.summary
    return start.uuid if start is not None else None


def _boundary_compaction(entry: SystemEntry, uuid: EntryId, graph: Graph) -> Compaction:
    metadata = entry.compact_metadata
    logical = entry.logical_parent_uuid
    # A pointer to a later entry, or to the boundary itself, is dangling as well.
    dangling = (
        logical is None or logical not in graph.entries or graph.first_position[logical] >= graph.first_position[uuid]
    )
    summary = next(
        (child_entry for child in graph.children.get(uuid, ()) if _is_summary(child_entry := graph.entries[child])),
        None,
    )
    return Compaction(
        CompactionKind.BOUNDARY,
        entry.place,
        boundary=entry,
        summary=summary if isinstance(summary, UserEntry) else None,
        before=graph.last_speaker_before(graph.first_position[uuid]) if dangling else logical,
        dangling=dangling,
        trigger=metadata.trigger if metadata else None,
        tokens_before=metadata.pre_tokens if metadata else None,
        tokens_after=metadata.post_tokens if metadata else None,
        preserved=tuple(_preserved_ids(entry, graph)),
    )


def _micro_compaction(entry: SystemEntry) -> Compaction:
    metadata = entry.microcompact_metadata
    before = metadata.pre_tokens if metadata else None
    after = before - (metadata.tokens_saved or 0) if metadata and before is not None else None
    return Compaction(
        CompactionKind.MICRO,
        entry.place,
        boundary=entry,
        before=entry.parent_uuid,
        trigger=metadata.trigger if metadata else None,
        tokens_before=before,
        tokens_after=after,
    )


def _preserved_ids(entry: SystemEntry, graph: Graph) -> list[EntryId]:
    """Return the entries from before a boundary that stay: a list of them, or a stretch from head to tail."""
    metadata = entry.compact_metadata
    if metadata is None:
        return []
    if metadata.preserved_messages is not None and metadata.preserved_messages.uuids:
        return [uuid for uuid in metadata.preserved_messages.uuids if uuid in graph.entries]
    segment = metadata.preserved_segment
    if segment is None or segment.tail_uuid is None:
        return []
    kept: list[EntryId] = []
    limit = _MAX_PRESERVED if segment.head_uuid in graph.entries else 0
    for ancestor in islice(graph.path_to_root(segment.tail_uuid), limit):
        if ancestor.uuid is not None:
            kept.append(ancestor.uuid)
        if ancestor.uuid == segment.head_uuid:
            return kept[::-1]
    return []


def _is_summary(entry: ChainEntry) -> bool:
    return isinstance(entry, UserEntry) and bool(entry.is_compact_summary)


def _follows_boundary(entry: UserEntry, graph: Graph) -> bool:
    parent = graph.entries.get(entry.parent_uuid) if entry.parent_uuid is not None else None
    return isinstance(parent, SystemEntry) and parent.subtype == "compact_boundary"


_FINAL_STOP_REASONS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})


def find_branches(
    graph: Graph, prompts: Container[EntryId], kept: Container[EntryId], commands: Container[EntryId] = ()
) -> list[Branch]:
    """Return every abandoned branch, in file order. Branches inside an abandoned one are part of it.

    `prompts` are the entries that are a person's prompts, `commands` those of them that are commands. `kept` are the
    entries of the conversation that was kept.
    """
    reach = _Reachability(graph, prompts, commands, kept)
    abandoned = {root for root in graph.roots if root not in kept and reach.is_exchange(root)}
    for fork, children in graph.children.items():
        if len(children) > 1:
            abandoned.update(filter(reach.has_content, reach.abandoned(reach.significant(fork, children))))
    branch_of: dict[EntryId, EntryId] = {}
    branches: dict[EntryId, list[EntryId]] = {}
    inside: set[EntryId] = set()
    for uuid in graph.topological_order():
        above = graph.parent(uuid)
        if uuid in kept:
            # The results of parallel calls are kept, whatever their parent: a branch continues from there.
            if uuid in abandoned or above in inside or above in branch_of:
                inside.add(uuid)
        elif above in branch_of or above in inside or uuid in abandoned:
            first = branch_of.get(above, uuid) if above is not None else uuid
            branch_of[uuid] = first
            branches.setdefault(first, []).append(uuid)
    return [
        _make_branch(graph, first, branches[first]) for first in sorted(branches, key=graph.first_position.__getitem__)
    ]


class _Reachability:
    """What each entry leads to: a prompt, a finished reply, any content. Computed in one pass from the leaves up."""

    def __init__(
        self, graph: Graph, prompts: Container[EntryId], commands: Container[EntryId], kept: Container[EntryId]
    ) -> None:
        self._graph = graph
        self._kept = kept
        self._to_kept_prompt: set[EntryId] = set()
        self._to_prompt: set[EntryId] = set()
        self._finished: set[EntryId] = set()
        self._with_content: set[EntryId] = set()
        for uuid in reversed(graph.topological_order()):
            below = graph.children.get(uuid, ())
            if uuid in prompts or any(child in self._to_prompt for child in below):
                self._to_prompt.add(uuid)
            if (uuid in prompts and uuid in kept) or any(child in self._to_kept_prompt for child in below):
                self._to_kept_prompt.add(uuid)
            if _is_finished(graph.entries[uuid]) or any(child in self._finished for child in below):
                self._finished.add(uuid)
            is_content = (uuid in prompts and uuid not in commands) or _is_reply(graph.entries[uuid])
            if is_content or any(child in self._with_content for child in below):
                self._with_content.add(uuid)

    def has_content(self, uuid: EntryId) -> bool:
        """Whether anything was said there, other than commands that nobody replied to."""
        return uuid in self._with_content

    def is_exchange(self, uuid: EntryId) -> bool:
        """Whether it leads to a prompt and a finished reply.

        A command before the first prompt is not a beginning.
        """
        return uuid in self._to_prompt and uuid in self._finished

    def significant(self, fork: EntryId, children: list[EntryId]) -> list[EntryId]:
        """Return the children of a fork that lead to a prompt or a finished reply. Blocks of one reply count once."""
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

    def abandoned(self, children: list[EntryId]) -> list[EntryId]:
        """Return the children that were not kept. If none was kept, the last in the file counts as kept.

        A child was kept if it leads to a prompt that was kept. If the conversation was rewound into a reply, its blocks
        are kept with the rest of the reply, and what followed it is still abandoned.
        """
        if len(children) < 2:  # noqa: PLR2004 - a single child is not a fork
            return []
        last = max(children, key=self._graph.position.__getitem__)
        kept = [child for child in children if child in self._to_kept_prompt]
        kept = kept or [child for child in children if child in self._kept]
        active = kept[0] if kept else last
        return [child for child in children if child != active]


def _is_reply(entry: ChainEntry) -> bool:
    return isinstance(entry, AssistantEntry) and not entry.is_synthetic


def _is_finished(entry: ChainEntry) -> bool:
    """Whether a reply ends here: it says so, or (in older versions) it ends with text and not with a call."""
    if not isinstance(entry, AssistantEntry) or entry.message is None or entry.is_synthetic:
        return False
    if entry.message.stop_reason is not None:
        return entry.message.stop_reason in _FINAL_STOP_REASONS
    blocks = list(entry.message.blocks)
    return (
        bool(blocks)
        and isinstance(blocks[-1], TextBlock)
        and not any(isinstance(block, ToolUseBlock) for block in blocks)
    )


def _make_branch(graph: Graph, first: EntryId, uuids: list[EntryId]) -> Branch:
    rest = sorted((uuid for uuid in uuids if uuid != first), key=graph.first_position.__getitem__)
    return Branch(graph.parent(first), tuple(graph.entries[uuid] for uuid in (first, *rest)))


_PROMPT_KINDS = frozenset({ActKind.PROMPT, ActKind.COMMAND, ActKind.SHELL, ActKind.PROGRAMMATIC, ActKind.STEERING})


class AgentHistory(Struct, frozen=True):
    """One agent's entries, threaded, without its calls and links."""

    entries: tuple[Entry, ...]
    thread: Thread
    conversation: tuple[ChainEntry, ...]
    branches: tuple[Branch, ...]
    compactions: tuple[Compaction, ...]
    acts: tuple[Act, ...]
    turns: tuple[Turn, ...]


def build_history(
    entries: Sequence[Entry], *, agent: bool = False, transcript: Sequence[Entry] | None = None
) -> AgentHistory:
    """Thread one agent's entries. `agent` says that they are a subagent's, so that no act in them is a person's.

    `transcript` is the complete file, if it also contains rows of other agents: the active thread may lead through
    them.
    """
    entries = list(entries)
    graph = Graph(entries)
    parallel = ParallelReplies(graph)
    thread = active_thread(entries, graph, parallel, agent=agent)
    if transcript is not None:
        thread = _thread_through(transcript, thread)
    compactions = find_compactions(graph)
    conversation = (
        list(thread.entries)
        if thread.source is LeafSource.FILE_ORDER
        else whole_conversation(thread, compactions, graph, parallel, find_resumptions(graph, agent=agent))
    )
    acts = find_acts(entries, agent=agent)
    prompts = {act.entry.uuid for act in acts if act.kind in _PROMPT_KINDS and act.entry.uuid is not None}
    commands = {act.entry.uuid for act in acts if act.kind is ActKind.COMMAND and act.entry.uuid is not None}
    kept = {entry.uuid for entry in conversation if entry.uuid is not None}
    branches = find_branches(graph, prompts, kept, commands)
    return AgentHistory(
        entries=tuple(entries),
        thread=thread,
        conversation=tuple(_with_unplaced_rows(conversation, branches, entries)),
        branches=tuple(branches),
        compactions=tuple(compactions),
        acts=tuple(acts),
        turns=tuple(split_into_turns(entries, acts)),
    )


def _with_unplaced_rows(
    conversation: list[ChainEntry], branches: list[Branch], entries: list[Entry]
) -> list[ChainEntry]:
    """Return the conversation with the rows that have no position in the graph: each follows the row before it.

    Rows after a row of an abandoned branch are left out, as the branch is.
    """
    included = {id(entry) for entry in conversation}
    unplaced = [entry for entry in entries if isinstance(entry, ChainEntry) and not has_graph_position(entry)]
    if all(id(entry) in included for entry in unplaced):
        return conversation
    abandoned = {entry.uuid for branch in branches for entry in branch.entries}
    kept = {entry.uuid for entry in conversation if entry.uuid is not None}
    following: dict[EntryId | None, list[ChainEntry]] = {}
    before: EntryId | None = None
    for entry in entries:
        if not isinstance(entry, ChainEntry):
            continue
        if not has_graph_position(entry):
            following.setdefault(before, []).append(entry)
        elif entry.uuid in kept or entry.uuid in abandoned:
            before = entry.uuid
    return [
        *following.get(None, ()),
        *(row for entry in conversation for row in (entry, *following.get(entry.uuid, ()))),
    ]


def _thread_through(transcript: Sequence[Entry], separate: Thread) -> Thread:
    """Return the active thread of a complete transcript, without the rows of other agents on it."""
    transcript = list(transcript)
    graph = Graph(transcript)
    thread = active_thread(transcript, graph, ParallelReplies(graph))
    entries = tuple(entry for entry in thread.entries if not entry.is_agent)
    return Thread(entries, thread.leaf, thread.source) if entries else separate
