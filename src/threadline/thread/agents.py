"""All agents of a session: the main one and those it started, wherever their entries lie."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.model.agent import Agent, AgentKind, AgentStatus, Link
from threadline.model.call import Call
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, UserEntry
from threadline.model.ids import AgentId, CallId
from threadline.model.line import NOWHERE
from threadline.model.results import AgentResult
from threadline.model.side import AgentMeta
from threadline.model.side_agent import SideKind, side_kind
from threadline.thread.calls import Result, calls, results, results_of
from threadline.thread.evidence import Evidence, Speaker, Teammate, asked
from threadline.thread.inline import separate
from threadline.thread.links import Known, fork_point, links
from threadline.thread.loop import Loop, loop
from threadline.thread.side import is_bare
from threadline.thread.status import journal_status, status

_TEAMMATE = "<teammate-message"
_NAMED_ID = re.compile(r"a(.+)-[0-9a-f]{16}")
_LATEST = datetime.max.replace(tzinfo=UTC)


class AgentFile(Struct, frozen=True):
    """An agent's own transcript: what its path and its side file say, and its entries."""

    path: Path
    id: AgentId
    kind: AgentKind
    run: str | None = None
    meta: AgentMeta | None = None
    entries: tuple[Entry, ...] = ()


class _Draft(Struct, frozen=True):
    """An agent in the making: all that its own entries tell."""

    known: Known
    loop: Loop
    calls: tuple[Call, ...]
    transcript: Path | None


def assemble(
    main: Sequence[Entry], files: Sequence[AgentFile], journal: Sequence[Entry] = ()
) -> tuple[Agent, tuple[Agent, ...]]:
    """The main agent and all others, in order of their start, each linked to the call that started it.

    Every entry given stands in exactly one agent's `entries`. `journal` are the rows of workflows' journals: they are
    no agent's own, and stand after those of the main one.
    """
    own, inside = separate(main, {file.id for file in files})
    path = _path_of(main)
    made = [AgentFile(path or Path(), one.id, AgentKind.INLINE, entries=one.entries) for one in inside]
    # Of several results for one call the main agent's counts, which therefore comes last.
    elsewhere = results(chain(*(file.entries for file in (*files, *made)), own))
    drafts = [_draft(number, file, elsewhere) for number, file in enumerate([*made, *files], 1)]
    # A transcript that is an agent's own throughout was read as if it were a session's.
    whole = loop(own, agent=_is_agents(own), transcript=main if inside else None)
    first = Agent(
        id=None,
        kind=AgentKind.MAIN,
        entries=(*whole.entries, *journal),
        thread=whole.thread,
        conversation=whole.conversation,
        branches=whole.branches,
        compactions=whole.compactions,
        acts=whole.acts,
        turns=whole.turns,
        calls=tuple(calls(own, turns=whole.turns, elsewhere=elsewhere)),
        transcript=path,
        model=_model(own),
    )
    evidence = Evidence(_speakers(first, own, drafts))
    found = links([draft.known for draft in drafts], evidence)
    ended = journal_status(journal)
    depths = _depths(drafts, found)
    within = _turns_of_start(drafts, found, evidence)
    agents = [
        _agent(_in_turn(draft, within[number]), found[number], depths[number], evidence, ended)
        for draft in drafts
        for number in [draft.known.number]
    ]
    order = sorted(zip(drafts, agents, strict=True), key=lambda both: both[0].known.started or _LATEST)
    return first, tuple(agent for _, agent in order)


def _draft(number: int, file: AgentFile, elsewhere: Mapping[CallId, Result]) -> _Draft:
    whole = loop(file.entries, agent=True)
    prompt = _first_words(file.entries)
    known = Known(
        number=number,
        id=file.id,
        kind=file.kind,
        entries=file.entries,
        meta=file.meta,
        run=file.run,
        side=side_kind(file.id, prompt),
        prompt=prompt,
        started=next((moment for entry in file.entries if (moment := entry.timestamp) is not None), None),
        teammate=_teammate(file, prompt),
        forked_from=fork_point(file.entries),
        bare=is_bare(file.entries),
    )
    made = calls(file.entries, agent=file.id, turns=whole.turns, elsewhere=elsewhere)
    return _Draft(known, whole, tuple(made), file.path)


def _speakers(first: Agent, own: Sequence[Entry], drafts: Sequence[_Draft]) -> list[Speaker]:
    """All agents as witnesses, side agents last: they repeat what the others say."""
    ordered = sorted(drafts, key=lambda draft: draft.known.side is not None)
    others = [Speaker(one.known.number, one.known.id, one.known.entries, one.calls) for one in ordered]
    return [Speaker(0, None, own, first.calls), *others]


def _agent(draft: _Draft, link: Link, depth: int, evidence: Evidence, ended: dict[AgentId, AgentStatus]) -> Agent:
    known, meta = draft.known, draft.known.meta
    made = evidence.calls.get(link.call) if link.call is not None else None
    call = made.call if made is not None else None
    told = _Told(known, call)
    return Agent(
        id=known.id,
        kind=known.kind,
        entries=draft.loop.entries,
        thread=draft.loop.thread,
        conversation=draft.loop.conversation,
        branches=draft.loop.branches,
        compactions=draft.loop.compactions,
        acts=draft.loop.acts,
        turns=draft.loop.turns,
        calls=draft.calls,
        side=known.side or (SideKind.WARM_UP if known.bare and link.step is None else None),
        transcript=draft.transcript,
        meta=meta,
        link=link,
        status=ended.get(known.id) or status(known.id, known.entries, meta, call, evidence),
        type=told.word("agent_type", "subagent_type"),
        description=told.word("description", "description"),
        prompt=known.prompt or told.word("", "prompt"),
        model=_model(known.entries) or told.word("model", "model"),
        run=known.run,
        team=(known.teammate[0] if known.teammate else None) or told.word("", "team_name"),
        depth=depth,
    )


class _Told:
    """What is told of an agent elsewhere than in its entries: in its side file, its call, the call's result."""

    def __init__(self, known: Known, call: Call | None) -> None:
        # The call of a workflow says what the run is for, not what its agents are.
        own = call if call is not None and call.tool != "Workflow" else None
        result = own.result if own is not None else None
        self._meta = known.meta
        self._call = own
        self._result = result if isinstance(result, AgentResult) else None

    def word(self, in_meta: str, in_call: str) -> str | None:
        """One word of it, by its name in the side file and in the call."""
        found = getattr(self._meta, in_meta, None) or (asked(self._call, in_call) if self._call is not None else None)
        found = found or getattr(self._result, in_meta or in_call, None)
        return found if isinstance(found, str) else None


def _depths(drafts: Sequence[_Draft], found: dict[int, Link]) -> dict[int, int]:
    """How far each agent is from the main one: what the main one starts is at depth 1."""
    numbers: dict[AgentId | None, int] = {draft.known.id: draft.known.number for draft in reversed(drafts)}
    depths = {0: 0}
    for draft in drafts:
        path: dict[int, None] = {}
        here = draft.known.number
        while here not in depths and here not in path:
            path[here] = None
            here = numbers.get(found[here].agent, 0)
        above = depths.get(here, 0)
        for further, number in enumerate(reversed(path), 1):
            depths[number] = above + further
    return depths


def _turns_of_start(drafts: Sequence[_Draft], found: dict[int, Link], evidence: Evidence) -> dict[int, int | None]:
    """The session's turn in which each agent was started: by the call that did it, through agents that start agents."""
    turns: dict[int, int | None] = {}
    for draft in drafts:
        path: dict[int, None] = {}
        here, turn = draft.known.number, None
        while here not in turns and here not in path:
            path[here] = None
            call = found[here].call
            made = evidence.calls.get(call) if call is not None else None
            if made is None or made.by.number == 0:
                turn = made.call.turn if made is not None else None
                break
            here = made.by.number
        else:
            turn = turns.get(here)
        turns.update(dict.fromkeys(path, turn))
    return turns


def _in_turn(draft: _Draft, turn: int | None) -> _Draft:
    """The draft with its calls in the session's turn."""
    return replace(draft, calls=tuple(replace(call, turn=turn) for call in draft.calls))


def _first_words(entries: Sequence[Entry]) -> str | None:
    """The first text that was put to an agent: the task it was given."""
    for entry in entries:
        if isinstance(entry, UserEntry) and not entry.is_meta and next(results_of(entry), None) is None and entry.text:
            return entry.text
    return None


def _teammate(file: AgentFile, prompt: str | None) -> Teammate | None:
    """The team and name of an agent that is one of a team."""
    rows = [entry for entry in file.entries if isinstance(entry, ChainEntry)]
    team = next((entry.team_name for entry in rows if entry.team_name), None)
    if team is None and not (prompt or "").lstrip().startswith(_TEAMMATE):
        return None
    match = _NAMED_ID.fullmatch(file.id)
    name = next((entry.agent_name for entry in rows if entry.agent_name), None) or (
        file.meta.name if file.meta else None
    )
    name = name or (match[1] if match else None)
    return (team, name) if name else None


def _model(entries: Sequence[Entry]) -> str | None:
    """The model that answered most often; of rows that are one message, one counts."""
    answered = {
        entry.message.id or id(entry): entry.message.model
        for entry in entries
        if isinstance(entry, AssistantEntry)
        and entry.message is not None
        and entry.message.model
        and not entry.is_made_up
    }
    return next((model for model, _ in Counter(answered.values()).most_common(1)), None)


def _is_agents(entries: Sequence[Entry]) -> bool:
    rows = [entry for entry in entries if isinstance(entry, ChainEntry)]
    return bool(rows) and all(entry.is_agent for entry in rows)


def _path_of(entries: Sequence[Entry]) -> Path | None:
    line = entries[0].line if entries else NOWHERE
    return Path(line.transcript) if line is not NOWHERE else None
