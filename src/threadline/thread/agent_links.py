"""Find the call that started each agent, and how certain that is.

The steps are tried in order, each on the agents that no earlier step could link. The first steps look up what names
the agent. The later ones compare prompts and times; a call that started one agent is not used for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from threadline.model.entries import Entry, ForkContextRefEntry
from threadline.model.homes import SideAgentKind
from threadline.model.places import AgentId, CallId, EntryId
from threadline.model.session import AgentKind, AgentLink, Confidence, LinkEvidence
from threadline.model.side_files import AgentMeta
from threadline.thread.agent_evidence import AgentEvidence, CallByAgent, Teammate
from threadline.thread.calls import AGENT_STARTING_TOOLS

_LATEST = datetime.max.replace(tzinfo=UTC)


class UnlinkedAgent(Struct, frozen=True):
    """An agent before it is linked. `number` is its position in the session.

    If `is_single_reply`, its transcript is one reply: no prompt, no call.
    """

    number: int
    id: AgentId
    kind: AgentKind
    entries: Sequence[Entry]
    meta: AgentMeta | None = None
    run: str | None = None
    side: SideAgentKind | None = None
    prompt: str | None = None
    started: datetime | None = None
    teammate: Teammate | None = None
    forked_from: EntryId | None = None
    is_single_reply: bool = False


class _LinkMatch(Struct, frozen=True):
    """The result of a step: the agent, the call, the confidence, and a remark."""

    agent: UnlinkedAgent
    call: CallId | None
    confidence: Confidence
    why: str = ""
    by: AgentId | None = None


class _LinkingState:
    """The agents that are still to be linked, and the calls that are known to have started one."""

    def __init__(self, agents: Sequence[UnlinkedAgent], evidence: AgentEvidence) -> None:
        self.evidence = evidence
        self.left = [agent for agent in agents if agent.side is None]
        self.claimed: set[CallId] = set()

    def is_free(self, call: CallByAgent, agent: UnlinkedAgent) -> bool:
        """Whether a call may have started an agent: it started no other, and the agent itself did not make it."""
        return call.call.id not in self.claimed and call.by.number != agent.number


_StepFunction = Callable[[_LinkingState], Iterator[_LinkMatch]]


def link_agents(agents: Sequence[UnlinkedAgent], evidence: AgentEvidence) -> dict[int, AgentLink]:
    """Return the link of each agent by its number: to a call, or with the reason why there is none."""
    state = _LinkingState(agents, evidence)
    links: dict[int, AgentLink] = {}
    for step, find in _STEPS:
        for match in find(state):
            links[match.agent.number] = _make_link(step, match, evidence)
            if match.call is not None:
                state.claimed.add(match.call)
        state.left = [agent for agent in state.left if agent.number not in links]
    return {agent.number: links.get(agent.number) or AgentLink(why=_why_unlinked(agent, evidence)) for agent in agents}


def fork_point(entries: Sequence[Entry]) -> EntryId | None:
    """Return the entry of another agent that a forked one continues from."""
    return next((entry.parent_last_uuid for entry in entries if isinstance(entry, ForkContextRefEntry)), None)


def _make_link(step: LinkEvidence, match: _LinkMatch, evidence: AgentEvidence) -> AgentLink:
    call = evidence.calls.get(match.call) if match.call is not None else None
    if call is not None:
        return AgentLink(match.call, step, match.confidence, call.by.id, match.why)
    meta = match.agent.meta
    by = match.by or (meta.parent_agent_id if meta is not None else None)
    why = match.why or ("the call is in no available transcript" if match.call is not None else "")
    return AgentLink(match.call, step, match.confidence, by, why)


def _lookup_step(
    find: Callable[[AgentEvidence, UnlinkedAgent], CallId | None], confidence: Confidence
) -> _StepFunction:
    """Make a step that looks up what names the agent."""

    def step(state: _LinkingState) -> Iterator[_LinkMatch]:
        for agent in state.left:
            call = find(state.evidence, agent)
            known_call = state.evidence.calls.get(call) if call is not None else None
            if call is not None and (known_call is None or known_call.by.number != agent.number):
                yield _LinkMatch(agent, call, confidence)

    return step


def _call_in_meta(evidence: AgentEvidence, agent: UnlinkedAgent) -> CallId | None:
    return (agent.meta.tool_use_id if agent.meta is not None else None) or evidence.in_meta.get(agent.id)


def _call_of_run(evidence: AgentEvidence, agent: UnlinkedAgent) -> CallId | None:
    return evidence.of_run.get(agent.run) if agent.run is not None else None


def _call_in_notification(evidence: AgentEvidence, agent: UnlinkedAgent) -> CallId | None:
    """Return the call that a notification names: the one that started the agent last, or a message that resumed it."""
    call = evidence.in_notification.get(agent.id)
    known_call = evidence.calls.get(call) if call is not None else None
    return call if known_call is None or known_call.call.tool in AGENT_STARTING_TOOLS else None


def _call_of_team(evidence: AgentEvidence, agent: UnlinkedAgent) -> CallId | None:
    if agent.teammate is None:
        return None
    _, name = agent.teammate
    return evidence.of_teammate.get(agent.teammate) or evidence.of_teammate.get((None, name))


def _fork_step(state: _LinkingState) -> Iterator[_LinkMatch]:
    """A fork continues from the entry that made the call, or from the one before it."""
    for agent in state.left:
        if agent.forked_from is None:
            continue
        candidates = [
            candidate
            for candidate in state.evidence.at_entry.get(agent.forked_from, ())
            if state.is_free(candidate, agent)
        ]
        same_prompt = [
            candidate
            for candidate in candidates
            if _prompt_of(candidate) and _prompt_of(candidate) in (agent.prompt or "")
        ]
        best = next(iter(same_prompt or candidates), None)
        if best is not None:
            confidence = Confidence.LIKELY if len(same_prompt or candidates) == 1 else Confidence.GUESS
            state.claimed.add(best.call.id)
            yield _LinkMatch(agent, best.call.id, confidence)
        elif (owner := state.evidence.owner.get(agent.forked_from)) is not None:
            yield _LinkMatch(
                agent, None, Confidence.LIKELY, "forked from that entry; no available call started it", owner.id
            )


def _prompt_of(call: CallByAgent) -> str:
    prompt = call.call.input.get("prompt") if isinstance(call.call.input, dict) else None
    return prompt.strip() if isinstance(prompt, str) else ""


def _prompt_step(*, inline: bool) -> _StepFunction:
    """Make a step that compares prompts. Agents and calls with the same prompt are paired in order of time."""

    def step(state: _LinkingState) -> Iterator[_LinkMatch]:
        groups: dict[str, list[UnlinkedAgent]] = {}
        for agent in state.left:
            if agent.prompt is not None and (agent.kind is AgentKind.INLINE) is inline:
                groups.setdefault(agent.prompt.strip(), []).append(agent)
        for prompt, agents in groups.items():
            calls = [call for call in state.evidence.with_prompt.get(prompt, ()) if call.call.id not in state.claimed]
            yield from _pair_by_time(agents, calls)

    return step


def _pair_by_time(agents: list[UnlinkedAgent], calls: list[CallByAgent]) -> Iterator[_LinkMatch]:
    if len(agents) == len(calls) == 1:
        if calls[0].by.number != agents[0].number:
            yield _LinkMatch(agents[0], calls[0].call.id, Confidence.LIKELY)
        return
    waiting = iter(sorted(calls, key=lambda call: call.call.timestamp or _LATEST))
    why = f"one of {len(agents)} agents and {len(calls)} calls with the same prompt, paired in order of time"
    candidate = next(waiting, None)
    for agent in sorted(agents, key=lambda agent: agent.started or _LATEST):
        while candidate is not None and candidate.by.number == agent.number:
            candidate = next(waiting, None)
        # An agent that began before all remaining calls was started by one that is missing.
        if candidate is not None and not _is_earlier(agent, candidate):
            yield _LinkMatch(agent, candidate.call.id, Confidence.GUESS, why)
            candidate = next(waiting, None)


def _is_earlier(agent: UnlinkedAgent, call: CallByAgent) -> bool:
    return agent.started is not None and call.call.timestamp is not None and agent.started < call.call.timestamp


def _why_unlinked(agent: UnlinkedAgent, evidence: AgentEvidence) -> str:
    """Return the first reason that applies."""
    reasons = (
        (agent.side is not None, f"a side agent ({agent.side}): Claude Code started it, not a call"),
        (
            agent.is_single_reply,
            "one reply without a prompt, and nothing names it: a warm-up, as 2.0.x starts each time",
        ),
        (not evidence.has_main, "the transcript of the session that started it is missing"),
        (agent.forked_from is not None, "forked from an entry that is in no available transcript"),
        (agent.run is not None, f"no available call started the run {agent.run}"),
        (agent.teammate is not None, "no available call asked for a teammate of that name"),
        (not agent.prompt, "its transcript contains no prompt, and nothing names it"),
    )
    return next((why for applies, why in reasons if applies), "no available call has its prompt, and nothing names it")


_STEPS: tuple[tuple[LinkEvidence, _StepFunction], ...] = (
    (LinkEvidence.META, _lookup_step(_call_in_meta, Confidence.CERTAIN)),
    (LinkEvidence.RESULT, _lookup_step(lambda evidence, agent: evidence.in_result.get(agent.id), Confidence.CERTAIN)),
    (LinkEvidence.WORKFLOW, _lookup_step(_call_of_run, Confidence.CERTAIN)),
    (
        LinkEvidence.PROGRESS,
        _lookup_step(lambda evidence, agent: evidence.in_progress.get(agent.id), Confidence.CERTAIN),
    ),
    (LinkEvidence.RESULT_TEXT, _lookup_step(lambda evidence, agent: evidence.in_text.get(agent.id), Confidence.LIKELY)),
    (LinkEvidence.NOTIFICATION, _lookup_step(_call_in_notification, Confidence.CERTAIN)),
    (LinkEvidence.FORK, _fork_step),
    (LinkEvidence.PROMPT, _prompt_step(inline=False)),
    (LinkEvidence.TEAM, _lookup_step(_call_of_team, Confidence.LIKELY)),
    (LinkEvidence.INLINE, _prompt_step(inline=True)),
)
