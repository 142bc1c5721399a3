"""Assemble a session's agents: the main one and all others, with their links, status and turns.

Up to version 2.0.27 the rows of agents were written into the main transcript itself. `split_inline_agents` separates
them.

Side agents are those that Claude Code starts for itself. They are not counted as work. Most are recognised by their
ids. A warm-up is recognised by its task, the word `Warmup`. Version 2.0.60 does not write the task into an agent's
transcript; there, a warm-up is a single reply and nothing else, and no call started it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.model.blocks import TextBlock
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, FailedEntry, ResultEntry, UserEntry
from threadline.model.homes import WARM_UP_PROMPT, SideAgentKind, side_agent_kind_by_id
from threadline.model.places import NOWHERE, AgentId, CallId, EntryId
from threadline.model.program_texts import INTERRUPT_MESSAGES
from threadline.model.results import AgentResult
from threadline.model.session import Agent, AgentKind, AgentLink, AgentStatus
from threadline.model.side_files import AgentMeta
from threadline.thread.agent_links import (
    AgentEvidence,
    Teammate,
    UnlinkedAgent,
    Witness,
    fork_point,
    link_agents,
    string_input,
)
from threadline.thread.calls import CallResult, find_calls, result_blocks, results_by_call
from threadline.thread.graph import call_ids
from threadline.thread.threads import AgentHistory, build_history


class SideAgentFold(Struct, array_like=True):
    """Decides from an agent's entries, added one by one, whether it is a warm-up. The index stores it."""

    has_task: bool = False
    is_warm_up: bool = False
    is_bare: bool = True
    reply: str | None = None

    def add(self, entry: Entry) -> None:
        """Add the agent's next entry."""
        if isinstance(entry, UserEntry):
            self.is_bare = False
            if not self.has_task and not entry.is_meta:
                is_result = next(result_blocks(entry), None) is not None
                self.has_task = is_result or bool(entry.text)
                self.is_warm_up = not is_result and entry.text.strip() == WARM_UP_PROMPT
        elif self.is_bare and isinstance(entry, AssistantEntry):
            message = (entry.message.id or "") if entry.message is not None else self.reply
            self.is_bare = self.reply in (None, message) and next(call_ids(entry), None) is None
            self.reply = message

    @property
    def is_single_reply(self) -> bool:
        """Whether the transcript is one reply and nothing else: no task, no calls."""
        return self.is_bare and self.reply is not None

    @property
    def is_decided(self) -> bool:
        """Whether later entries cannot change the answer."""
        return self.has_task

    def kind(self, agent: str, *, is_started: bool) -> SideAgentKind | None:
        """Return the kind of side agent, or None for an agent that works for the model.

        `is_started` says whether a call is known that started it.
        """
        kind = side_agent_kind_by_id(agent)
        if kind is None and (self.is_warm_up or (self.is_single_reply and not is_started)):
            return SideAgentKind.WARM_UP
        return kind


def fold_agent(entries: Iterable[Entry]) -> SideAgentFold:
    """Return the decision for an agent's entries; stops reading when it is clear."""
    fold = SideAgentFold()
    for entry in entries:
        fold.add(entry)
        if fold.is_decided:
            break
    return fold


TEAMMATE_TAG = "<teammate-message"
"""How the first prompt of an agent begins that is part of a team."""
_TEAMMATE_ID = re.compile(r"a(.+)-[0-9a-f]{16}")
_LATEST = datetime.max.replace(tzinfo=UTC)


class AgentFile(Struct, frozen=True):
    """An agent's own transcript: what its path and its side file say, and its entries."""

    path: Path
    id: AgentId
    kind: AgentKind
    run: str | None = None
    meta: AgentMeta | None = None
    entries: tuple[Entry, ...] = ()


class _AgentDraft(Struct, frozen=True):
    """An agent before it is linked: everything that its own entries contain."""

    agent: UnlinkedAgent
    history: AgentHistory
    calls: tuple[Call, ...]
    transcript: Path | None
    side_fold: SideAgentFold


def assemble_agents(
    main: Sequence[Entry], files: Sequence[AgentFile], journal: Sequence[Entry] = ()
) -> tuple[Agent, tuple[Agent, ...]]:
    """Return the main agent and all others, in order of their start, each linked to the call that started it.

    Every entry is in exactly one agent's `entries`. `journal` are the rows of workflow journals, which belong to no
    agent: they are appended to those of the main one.
    """
    main_entries, inline = split_inline_agents(main, {file.id for file in files})
    path = _transcript_path(main)
    inline_files = [AgentFile(path or Path(), split.id, AgentKind.INLINE, entries=split.entries) for split in inline]
    # Of several results for one call the main agent's counts, so it comes last.
    elsewhere = results_by_call(chain(*(file.entries for file in (*files, *inline_files)), main_entries))
    drafts = [_draft_agent(number, file, elsewhere) for number, file in enumerate([*inline_files, *files], 1)]
    # If all rows are marked as an agent's, an agent's transcript is read as if it were a session's.
    history = build_history(main_entries, agent=_is_agent_transcript(main_entries), transcript=main if inline else None)
    main_agent = Agent(
        id=None,
        kind=AgentKind.MAIN,
        entries=(*history.entries, *journal),
        thread=history.thread,
        conversation=history.conversation,
        branches=history.branches,
        compactions=history.compactions,
        acts=history.acts,
        turns=history.turns,
        calls=tuple(find_calls(main_entries, turns=history.turns, elsewhere=elsewhere)),
        transcript=path,
        model=_most_used_model(main_entries),
    )
    evidence = AgentEvidence(_witnesses(main_agent, main_entries, drafts))
    links = link_agents([draft.agent for draft in drafts], evidence)
    statuses = journal_statuses(journal)
    depths = _depths(drafts, links)
    turns = _starting_turns(drafts, links, evidence)

    def make_agent(draft: _AgentDraft) -> Agent:
        number = draft.agent.number
        return _make_agent(_with_turn(draft, turns[number]), links[number], depths[number], evidence, statuses)

    return main_agent, tuple(map(make_agent, sorted(drafts, key=lambda draft: draft.agent.started or _LATEST)))


def _draft_agent(number: int, file: AgentFile, elsewhere: Mapping[CallId, CallResult]) -> _AgentDraft:
    history = build_history(file.entries, agent=True)
    prompt = _first_prompt(file.entries)
    fold = fold_agent(file.entries)
    agent = UnlinkedAgent(
        number=number,
        id=file.id,
        kind=file.kind,
        entries=file.entries,
        meta=file.meta,
        run=file.run,
        side=fold.kind(file.id, is_started=True),
        prompt=prompt,
        started=next((moment for entry in file.entries if (moment := entry.timestamp) is not None), None),
        teammate=_find_teammate(file, prompt),
        forked_from=fork_point(file.entries),
        is_single_reply=fold.is_single_reply,
    )
    calls = find_calls(file.entries, agent=file.id, turns=history.turns, elsewhere=elsewhere)
    return _AgentDraft(agent, history, tuple(calls), file.path, fold)


def _witnesses(main: Agent, main_entries: Sequence[Entry], drafts: Sequence[_AgentDraft]) -> list[Witness]:
    """Return all agents as witnesses, side agents last: they repeat what the others say."""
    ordered = sorted(drafts, key=lambda draft: draft.agent.side is not None)
    others = [Witness(draft.agent.number, draft.agent.id, draft.agent.entries, draft.calls) for draft in ordered]
    return [Witness(0, None, main_entries, main.calls), *others]


def _make_agent(
    draft: _AgentDraft, link: AgentLink, depth: int, evidence: AgentEvidence, statuses: dict[AgentId, AgentStatus]
) -> Agent:
    agent, meta = draft.agent, draft.agent.meta
    known_call = evidence.calls.get(link.call) if link.call is not None else None
    call = known_call.call if known_call is not None else None
    details = _AgentDetails(agent, call)
    return Agent(
        id=agent.id,
        kind=agent.kind,
        entries=draft.history.entries,
        thread=draft.history.thread,
        conversation=draft.history.conversation,
        branches=draft.history.branches,
        compactions=draft.history.compactions,
        acts=draft.history.acts,
        turns=draft.history.turns,
        calls=draft.calls,
        side=draft.side_fold.kind(agent.id, is_started=link.step is not None),
        transcript=draft.transcript,
        meta=meta,
        link=link,
        status=statuses.get(agent.id) or agent_status(agent.id, agent.entries, meta, call, evidence),
        type=details.text_field("agent_type", "subagent_type") or _attributed_type(agent.entries),
        description=details.text_field("description", "description"),
        prompt=agent.prompt or details.text_field("", "prompt"),
        model=_most_used_model(agent.entries) or details.text_field("model", "model"),
        run=agent.run,
        team=(agent.teammate[0] if agent.teammate else None) or details.text_field("", "team_name"),
        depth=depth,
    )


class _AgentDetails:
    """What is known about an agent from elsewhere: its side file, its call and the call's result."""

    def __init__(self, agent: UnlinkedAgent, call: Call | None) -> None:
        # The call of a workflow describes the run, not its agents.
        agent_call = call if call is not None and call.tool != "Workflow" else None
        result = agent_call.result if agent_call is not None else None
        self._meta = agent.meta
        self._call = agent_call
        self._result = result if isinstance(result, AgentResult) else None

    def text_field(self, in_meta: str, in_call: str) -> str | None:
        """Return a text field, by its name in the side file and in the call."""
        text = getattr(self._meta, in_meta, None) or (
            string_input(self._call, in_call) if self._call is not None else None
        )
        text = text or getattr(self._result, in_meta or in_call, None)
        return text if isinstance(text, str) else None


def _depths(drafts: Sequence[_AgentDraft], links: dict[int, AgentLink]) -> dict[int, int]:
    """Return how far each agent is from the main one: what the main one starts is at depth 1."""
    numbers: dict[AgentId | None, int] = {draft.agent.id: draft.agent.number for draft in reversed(drafts)}
    depths = {0: 0}
    for draft in drafts:
        path: dict[int, None] = {}
        here = draft.agent.number
        while here not in depths and here not in path:
            path[here] = None
            here = numbers.get(links[here].agent, 0)
        above = depths.get(here, 0)
        for steps, number in enumerate(reversed(path), 1):
            depths[number] = above + steps
    return depths


def _starting_turns(
    drafts: Sequence[_AgentDraft], links: dict[int, AgentLink], evidence: AgentEvidence
) -> dict[int, int | None]:
    """Return the session's turn in which each agent was started, through agents that start agents."""
    turns: dict[int, int | None] = {}
    for draft in drafts:
        path: dict[int, None] = {}
        here, turn = draft.agent.number, None
        while here not in turns and here not in path:
            path[here] = None
            call = links[here].call
            known_call = evidence.calls.get(call) if call is not None else None
            if known_call is None or known_call.by.number == 0:
                turn = known_call.call.turn if known_call is not None else None
                break
            here = known_call.by.number
        else:
            turn = turns.get(here)
        turns.update(dict.fromkeys(path, turn))
    return turns


def _with_turn(draft: _AgentDraft, turn: int | None) -> _AgentDraft:
    """Return the draft with its calls in the session's turn."""
    return replace(draft, calls=tuple(replace(call, turn=turn) for call in draft.calls))


def _first_prompt(entries: Sequence[Entry]) -> str | None:
    """Return an agent's task: the first text in its transcript that is a prompt."""
    for entry in entries:
        if (
            isinstance(entry, UserEntry)
            and not entry.is_meta
            and next(result_blocks(entry), None) is None
            and entry.text
        ):
            return entry.text
    return None


def _find_teammate(file: AgentFile, prompt: str | None) -> Teammate | None:
    """Return the team and name of an agent that is part of a team."""
    rows = [entry for entry in file.entries if isinstance(entry, ChainEntry)]
    team = next((entry.team_name for entry in rows if entry.team_name), None)
    if team is None and not (prompt or "").lstrip().startswith(TEAMMATE_TAG):
        return None
    name = next((entry.agent_name for entry in rows if entry.agent_name), None) or (
        file.meta.name if file.meta else None
    )
    name = name or teammate_name(file.id)
    return (team, name) if name else None


def teammate_name(agent: str) -> str | None:
    """Return the name in the id of an agent that is part of a team: `scout` in `ascout-0123456789abcdef`."""
    match = _TEAMMATE_ID.fullmatch(agent)
    return match[1] if match else None


def _attributed_type(entries: Sequence[Entry]) -> str | None:
    """Return the type that an agent's own replies name."""
    types = (entry.attribution_agent for entry in entries if isinstance(entry, AssistantEntry))
    return next(filter(None, types), None)


def _most_used_model(entries: Sequence[Entry]) -> str | None:
    """Return the model that replied most often. Rows of one message count once."""
    answered = {
        entry.message.id or id(entry): entry.message.model
        for entry in entries
        if isinstance(entry, AssistantEntry)
        and entry.message is not None
        and entry.message.model
        and not entry.is_synthetic
    }
    return next((model for model, _ in Counter(answered.values()).most_common(1)), None)


def _is_agent_transcript(entries: Sequence[Entry]) -> bool:
    rows = [entry for entry in entries if isinstance(entry, ChainEntry)]
    return bool(rows) and all(entry.is_agent for entry in rows)


def _transcript_path(entries: Sequence[Entry]) -> Path | None:
    line = entries[0].line if entries else NOWHERE
    return Path(line.transcript) if line is not NOWHERE else None


# Status words in notifications and results. Other words say nothing.
_STATUS_WORDS = {
    "completed": AgentStatus.DONE,
    "success": AgentStatus.DONE,
    "failed": AgentStatus.FAILED,
    "error": AgentStatus.FAILED,
    "killed": AgentStatus.INTERRUPTED,
    "stopped": AgentStatus.INTERRUPTED,
    "cancelled": AgentStatus.INTERRUPTED,
}
_STATUS_OF_OUTCOME = {
    Outcome.OK: AgentStatus.DONE,
    Outcome.ERROR: AgentStatus.FAILED,
    Outcome.DENIED: AgentStatus.INTERRUPTED,
    Outcome.INTERRUPTED: AgentStatus.INTERRUPTED,
    Outcome.PENDING: AgentStatus.PENDING,
}
# With these, the result only says that the agent was started.
_LAUNCHED = frozenset({"async_launched", "teammate_spawned", "remote_launched"})


def journal_statuses(journal: Sequence[Entry]) -> dict[AgentId, AgentStatus]:
    """Return how the agents of workflows ended, by their journals."""
    ended: dict[AgentId, AgentStatus] = {}
    for entry in journal:
        if isinstance(entry, ResultEntry | FailedEntry) and entry.agent_id is not None:
            ended[entry.agent_id] = AgentStatus.DONE if isinstance(entry, ResultEntry) else AgentStatus.FAILED
    return ended


def agent_status(
    id_: AgentId, entries: Sequence[Entry], meta: AgentMeta | None, call: Call | None, evidence: AgentEvidence
) -> AgentStatus:
    """Return how an agent ended: by later notifications, by its call, or by its own last message."""
    notification = evidence.notifications.get(id_)
    if notification is not None and notification.status in _STATUS_WORDS:
        return _STATUS_WORDS[notification.status]
    if (status := evidence.task_status.get(id_)) in _STATUS_WORDS:
        return _STATUS_WORDS[status]
    if meta is not None and meta.finished:
        return AgentStatus.DONE
    end = status_by_last_message(entries)
    if call is None or call.tool == "Workflow":
        return end
    result = call.result
    if isinstance(result, AgentResult) and result.status in _LAUNCHED:
        return end if end is AgentStatus.INTERRUPTED else AgentStatus.PENDING
    return _STATUS_OF_OUTCOME.get(call.outcome, end)


def status_by_last_message(entries: Sequence[Entry]) -> AgentStatus:
    """Return how an agent ended, by the last message in its own transcript."""
    last = next((entry for entry in reversed(entries) if isinstance(entry, UserEntry | AssistantEntry)), None)
    if isinstance(last, UserEntry):
        return AgentStatus.INTERRUPTED if last.text.lstrip().startswith(INTERRUPT_MESSAGES) else AgentStatus.UNKNOWN
    if last is None or last.message is None:
        return AgentStatus.UNKNOWN
    if last.is_api_error_message:
        return AgentStatus.FAILED
    blocks = list(last.message.blocks)
    finished = last.message.stop_reason in (None, "end_turn", "stop_sequence")
    return AgentStatus.DONE if finished and blocks and isinstance(blocks[-1], TextBlock) else AgentStatus.UNKNOWN


class InlineAgent(Struct, frozen=True):
    """An agent inside a main transcript: an id derived from its first row, and its entries in file order."""

    id: AgentId
    entries: tuple[Entry, ...]


def split_inline_agents(
    entries: Sequence[Entry], reserved: Container[str] = ()
) -> tuple[list[Entry], list[InlineAgent]]:
    """Split a main transcript into the main agent's entries and those of each agent inside it.

    Agents that work in parallel interleave; each is a tree of its own. `reserved` are ids that must not be used again.
    """
    rows = [entry for entry in entries if isinstance(entry, ChainEntry) and entry.is_agent]
    has_others = any(isinstance(entry, ChainEntry) and not entry.is_agent for entry in entries)
    if not rows or not has_others:
        # If every row is marked, the transcript is an agent's own, whatever its name.
        return list(entries), []
    roots = _find_roots(rows)
    main: list[Entry] = []
    trees: dict[object, list[ChainEntry]] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, ChainEntry) and entry.is_agent:
            trees.setdefault(_tree_key(entry, at, roots), []).append(entry)
        else:
            main.append(entry)
    used_ids: set[str] = set()
    return main, [InlineAgent(_make_agent_id(tree[0], reserved, used_ids), tuple(tree)) for tree in trees.values()]


def _tree_key(entry: ChainEntry, at: int, roots: dict[EntryId, EntryId]) -> object:
    """Return what the rows of one agent have in common: the agent's id, or else the root they descend from."""
    if entry.author_agent_id is not None:
        return ("agent", entry.author_agent_id)
    nearest = entry.uuid if entry.uuid in roots else entry.parent_uuid
    root = roots.get(nearest) if nearest is not None else None
    return ("root", root) if root is not None else ("alone", at)


def _find_roots(rows: list[ChainEntry]) -> dict[EntryId, EntryId]:
    """Return the root of each entry. Every entry is visited once; the root of a cycle is its first entry."""
    parents = {entry.uuid: entry.parent_uuid for entry in rows if entry.uuid is not None}
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


def _make_agent_id(first: ChainEntry, reserved: Container[str], used_ids: set[str]) -> AgentId:
    """Make an id for an agent that has none, from its first row: the same each time."""
    if first.author_agent_id is not None and first.author_agent_id not in reserved:
        names = [str(first.author_agent_id)]
    else:
        full_id = str(first.author_agent_id or first.uuid or f"line{first.line.number}")
        names = [f"inline-{full_id[:8]}", f"inline-{full_id}"]
    numbered = (f"{names[-1]}-{number}" for number in count(len(used_ids)))
    name = next(name for name in chain(names, numbered) if name not in used_ids and name not in reserved)
    used_ids.add(name)
    return AgentId(name)
