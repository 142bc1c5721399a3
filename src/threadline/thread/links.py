"""Which call started an agent, and how that is known.

The steps are tried in order, each over all agents that none before it could link. The first ones look up what names the
agent; the later ones compare, and a call that started one agent is not taken for the start of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from threadline.model.agent import AgentKind, Link, LinkStep, Sureness
from threadline.model.entries import Entry, ForkContextRefEntry
from threadline.model.ids import AgentId, CallId, EntryId
from threadline.model.side import AgentMeta
from threadline.model.side_agent import SideKind
from threadline.thread.calls import STARTERS
from threadline.thread.evidence import Evidence, Made, Teammate

_LATEST = datetime.max.replace(tzinfo=UTC)


class Known(Struct, frozen=True):
    """What is known of an agent before it is linked; `number` is its place in the session.

    A `bare` one has a single reply and nothing else: no prompt, no call.
    """

    number: int
    id: AgentId
    kind: AgentKind
    entries: Sequence[Entry]
    meta: AgentMeta | None = None
    run: str | None = None
    side: SideKind | None = None
    prompt: str | None = None
    started: datetime | None = None
    teammate: Teammate | None = None
    forked_from: EntryId | None = None
    bare: bool = False


class _Found(Struct, frozen=True):
    """What one step found: the agent, the call, how sure, and anything worth saying."""

    agent: Known
    call: CallId | None
    sureness: Sureness
    why: str = ""
    by: AgentId | None = None


class _State:
    """The agents that are still to be linked, and the calls that are already known to have started one."""

    def __init__(self, known: Sequence[Known], evidence: Evidence) -> None:
        self.evidence = evidence
        self.left = [agent for agent in known if agent.side is None]
        self.claimed: set[CallId] = set()

    def is_free(self, made: Made, agent: Known) -> bool:
        """Whether a call may have started an agent: no other's, and not made by the agent itself."""
        return made.call.id not in self.claimed and made.by.number != agent.number


_Step = Callable[[_State], Iterator[_Found]]


def links(known: Sequence[Known], evidence: Evidence) -> dict[int, Link]:
    """The link of each agent, by its number: to a call, or with the reason why there is none."""
    state = _State(known, evidence)
    made: dict[int, Link] = {}
    for step, find in _STEPS:
        for found in find(state):
            made[found.agent.number] = _link(step, found, evidence)
            if found.call is not None:
                state.claimed.add(found.call)
        state.left = [agent for agent in state.left if agent.number not in made]
    return {agent.number: made.get(agent.number) or Link(why=_why_not(agent, evidence)) for agent in known}


def fork_point(entries: Sequence[Entry]) -> EntryId | None:
    """The entry of another agent that a forked one goes on from."""
    return next((entry.parent_last_uuid for entry in entries if isinstance(entry, ForkContextRefEntry)), None)


def _link(step: LinkStep, found: _Found, evidence: Evidence) -> Link:
    made = evidence.calls.get(found.call) if found.call is not None else None
    if made is not None:
        return Link(found.call, step, found.sureness, made.by.id, found.why)
    meta = found.agent.meta
    by = found.by or (meta.parent_agent_id if meta is not None else None)
    why = found.why or ("the call is in no transcript that is there" if found.call is not None else "")
    return Link(found.call, step, found.sureness, by, why)


def _named(find: Callable[[Evidence, Known], CallId | None], sureness: Sureness) -> _Step:
    """A step that looks up what names the agent."""

    def step(state: _State) -> Iterator[_Found]:
        for agent in state.left:
            call = find(state.evidence, agent)
            made = state.evidence.calls.get(call) if call is not None else None
            if call is not None and (made is None or made.by.number != agent.number):
                yield _Found(agent, call, sureness)

    return step


def _in_meta(evidence: Evidence, agent: Known) -> CallId | None:
    return (agent.meta.tool_use_id if agent.meta is not None else None) or evidence.in_meta.get(agent.id)


def _of_run(evidence: Evidence, agent: Known) -> CallId | None:
    return evidence.of_run.get(agent.run) if agent.run is not None else None


def _in_notification(evidence: Evidence, agent: Known) -> CallId | None:
    """A notification names the call that set the agent going last, which may be a message that took it up again."""
    call = evidence.in_notification.get(agent.id)
    made = evidence.calls.get(call) if call is not None else None
    return call if made is None or made.call.tool in STARTERS else None


def _of_team(evidence: Evidence, agent: Known) -> CallId | None:
    if agent.teammate is None:
        return None
    _, name = agent.teammate
    return evidence.of_teammate.get(agent.teammate) or evidence.of_teammate.get((None, name))


def _forked(state: _State) -> Iterator[_Found]:
    """A fork goes on from the entry that made the call, or from the one before it."""
    for agent in state.left:
        if agent.forked_from is None:
            continue
        here = [made for made in state.evidence.at_entry.get(agent.forked_from, ()) if state.is_free(made, agent)]
        same = [made for made in here if _prompt(made) and _prompt(made) in (agent.prompt or "")]
        chosen = next(iter(same or here), None)
        if chosen is not None:
            sureness = Sureness.LIKELY if len(same or here) == 1 else Sureness.GUESS
            state.claimed.add(chosen.call.id)
            yield _Found(agent, chosen.call.id, sureness)
        elif (owner := state.evidence.owner.get(agent.forked_from)) is not None:
            yield _Found(agent, None, Sureness.LIKELY, "forked off there, by no call that is there", owner.id)


def _prompt(made: Made) -> str:
    prompt = made.call.input.get("prompt") if isinstance(made.call.input, dict) else None
    return prompt.strip() if isinstance(prompt, str) else ""


def _same_prompt(*, inline: bool) -> _Step:
    """A step that compares prompts; where several are the same, agents and calls are paired in order of time."""

    def step(state: _State) -> Iterator[_Found]:
        groups: dict[str, list[Known]] = {}
        for agent in state.left:
            if agent.prompt is not None and (agent.kind is AgentKind.INLINE) is inline:
                groups.setdefault(agent.prompt.strip(), []).append(agent)
        for prompt, agents in groups.items():
            made = [one for one in state.evidence.with_prompt.get(prompt, ()) if one.call.id not in state.claimed]
            yield from _paired(agents, made)

    return step


def _paired(agents: list[Known], made: list[Made]) -> Iterator[_Found]:
    if len(agents) == len(made) == 1:
        if made[0].by.number != agents[0].number:
            yield _Found(agents[0], made[0].call.id, Sureness.LIKELY)
        return
    waiting = iter(sorted(made, key=lambda one: one.call.timestamp or _LATEST))
    why = f"one of {len(agents)} agents and {len(made)} calls with the same prompt, paired in order of time"
    held = next(waiting, None)
    for agent in sorted(agents, key=lambda one: one.started or _LATEST):
        while held is not None and held.by.number == agent.number:
            held = next(waiting, None)
        # An agent that began before any call that is left was started by one that is not there.
        if held is not None and not _is_before(agent, held):
            yield _Found(agent, held.call.id, Sureness.GUESS, why)
            held = next(waiting, None)


def _is_before(agent: Known, made: Made) -> bool:
    return agent.started is not None and made.call.timestamp is not None and agent.started < made.call.timestamp


def _why_not(agent: Known, evidence: Evidence) -> str:
    """The first reason that holds."""
    reasons = (
        (agent.side is not None, f"a side agent ({agent.side}): the program started it, no call did"),
        (agent.bare, "one reply without a prompt, and nothing names it: a warm-up, such as 2.0.x makes at each start"),
        (not evidence.has_main, "the transcript of the session that started it is not there"),
        (agent.forked_from is not None, "forked from an entry that is in no transcript that is there"),
        (agent.run is not None, f"no call that is there started the run {agent.run}"),
        (agent.teammate is not None, "no call that is there asked for a teammate of that name"),
        (not agent.prompt, "its transcript holds no prompt, and nothing that is there names it"),
    )
    return next((why for holds, why in reasons if holds), "no call that is there has its prompt, and nothing names it")


_STEPS: tuple[tuple[LinkStep, _Step], ...] = (
    (LinkStep.META, _named(_in_meta, Sureness.CERTAIN)),
    (LinkStep.RESULT, _named(lambda evidence, agent: evidence.in_result.get(agent.id), Sureness.CERTAIN)),
    (LinkStep.WORKFLOW, _named(_of_run, Sureness.CERTAIN)),
    (LinkStep.PROGRESS, _named(lambda evidence, agent: evidence.in_progress.get(agent.id), Sureness.CERTAIN)),
    (LinkStep.RESULT_TEXT, _named(lambda evidence, agent: evidence.in_text.get(agent.id), Sureness.LIKELY)),
    (LinkStep.NOTIFICATION, _named(_in_notification, Sureness.CERTAIN)),
    (LinkStep.FORK, _forked),
    (LinkStep.PROMPT, _same_prompt(inline=False)),
    (LinkStep.TEAM, _named(_of_team, Sureness.LIKELY)),
    (LinkStep.INLINE, _same_prompt(inline=True)),
)
