"""One agent's entries to all they make: its thread, conversation, branches, compactions, acts, turns and calls."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from threadline.model.act import Act, ActKind, Turn
from threadline.model.entries import ChainEntry, Entry
from threadline.model.thread import Branch, Compaction, Thread
from threadline.thread.active import active_thread
from threadline.thread.acts import acts
from threadline.thread.branches import branches
from threadline.thread.compactions import compactions, conversation, resumptions
from threadline.thread.graph import Graph
from threadline.thread.parallel import Parallel
from threadline.thread.turns import turns

_PROMPTS = frozenset({ActKind.PROMPT, ActKind.COMMAND, ActKind.SHELL, ActKind.PROGRAMMATIC, ActKind.STEERING})


class Loop(Struct, frozen=True):
    """What one agent's entries make, without its calls and links."""

    entries: tuple[Entry, ...]
    thread: Thread
    conversation: tuple[ChainEntry, ...]
    branches: tuple[Branch, ...]
    compactions: tuple[Compaction, ...]
    acts: tuple[Act, ...]
    turns: tuple[Turn, ...]


def loop(entries: Sequence[Entry], *, agent: bool = False, transcript: Sequence[Entry] | None = None) -> Loop:
    """Thread one agent's entries. `agent`: they are a subagent's, so that no act in them is a person's.

    `transcript` is all that stands in the file, where rows of other agents stand among this one's: the active thread
    may lead through them.
    """
    listed = list(entries)
    graph = Graph(listed)
    parallel = Parallel(graph)
    thread = active_thread(listed, graph, parallel, agent=agent)
    if transcript is not None:
        thread = _through(transcript, thread)
    found = compactions(graph)
    whole = conversation(thread, found, graph, parallel, resumptions(graph, agent=agent))
    done = acts(listed, agent=agent)
    prompts = {act.entry.uuid for act in done if act.kind in _PROMPTS and act.entry.uuid is not None}
    commands = {act.entry.uuid for act in done if act.kind is ActKind.COMMAND and act.entry.uuid is not None}
    kept = {entry.uuid for entry in whole if entry.uuid is not None}
    return Loop(
        entries=tuple(listed),
        thread=thread,
        conversation=tuple(whole),
        branches=tuple(branches(graph, prompts, kept, commands)),
        compactions=tuple(found),
        acts=tuple(done),
        turns=tuple(turns(listed, done)),
    )


def _through(transcript: Sequence[Entry], alone: Thread) -> Thread:
    """The active thread of a whole transcript, without the rows of others that it leads through."""
    listed = list(transcript)
    graph = Graph(listed)
    whole = active_thread(listed, graph, Parallel(graph))
    own = tuple(entry for entry in whole.entries if not entry.is_agent)
    return Thread(own, whole.leaf, whole.source) if own else alone
