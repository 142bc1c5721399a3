"""Find the call that started each agent, and how certain that is.

`AgentEvidence` collects what a session's entries say about its agents: calls, results, progress, notifications. A
notification is how Claude Code reports to the model that a background task ended or has output: an agent, a shell
command, a workflow. It is a `<task-notification>` element, and can be in three rows: in the queue it waited in, and
then in a user row or in an attachment.

The steps are tried in order, each on the agents that no earlier step could link. The first steps look up what names
the agent. The later ones compare prompts and times; a call that started one agent is not used for another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import unescape

from msgspec import Struct

from threadline.model.attachments import QueuedCommand
from threadline.model.calls import Call
from threadline.model.entries import (
    AgentMetadataEntry,
    AgentProgress,
    AttachmentEntry,
    Entry,
    ForkContextRefEntry,
    ProgressEntry,
    QueueOperationEntry,
    SkillProgress,
    UserEntry,
)
from threadline.model.homes import SideAgentKind
from threadline.model.places import AgentId, CallId, EntryId
from threadline.model.results import AgentResult, OutputResult, WorkflowResult
from threadline.model.session import AgentKind, AgentLink, Confidence, LinkEvidence
from threadline.model.side_files import AgentMeta
from threadline.model.text import extract_text
from threadline.thread.acts import tag_text
from threadline.thread.calls import AGENT_STARTING_TOOLS, BACKGROUND_OUTPUT_TOOLS, agent_id_in_result, agent_id_in_text

_OPEN_TAG, _CLOSE_TAG = "<task-notification>", "</task-notification>"
# Bounded: a million letters are not a name, and thousands of digits are not a count.
_USAGE_COUNT = re.compile(r"<(\w{1,40})>\s{0,9}(\d{1,18})\s{0,9}</\1>|\b(\w{1,40}):\s{0,9}(\d{1,18})\b")

Teammate = tuple[str | None, str]
"""The team and name of a teammate."""


class Witness(Struct, frozen=True):
    """An agent whose entries say something about others: its number (0 is the main one), id, entries and calls."""

    number: int
    id: AgentId | None
    entries: Sequence[Entry]
    calls: Sequence[Call]


class CallByAgent(Struct, frozen=True):
    """A call, and the agent that made it."""

    by: Witness
    call: Call


class AgentEvidence:
    """The calls that name agents, by kind of evidence. The first that names an agent counts: later ones resume it."""

    def __init__(self, witnesses: Iterable[Witness]) -> None:
        self.has_main = False
        self.calls: dict[CallId, CallByAgent] = {}
        self.in_meta: dict[AgentId, CallId] = {}
        self.in_result: dict[AgentId, CallId] = {}
        self.in_progress: dict[AgentId, CallId] = {}
        self.in_text: dict[AgentId, CallId] = {}
        self.in_notification: dict[AgentId, CallId] = {}
        self.of_run: dict[str, CallId] = {}
        self.of_teammate: dict[Teammate, CallId] = {}
        self.notifications: dict[str, Notification] = {}
        self.task_status: dict[str, str] = {}
        self.at_entry: dict[EntryId, list[CallByAgent]] = {}
        self.with_prompt: dict[str, list[CallByAgent]] = {}
        self.owner: dict[EntryId, Witness] = {}
        for witness in witnesses:
            self._add_agent(witness)

    def _add_agent(self, witness: Witness) -> None:
        self.has_main |= witness.id is None and bool(witness.entries)
        for call in witness.calls:
            agent_call = CallByAgent(witness, call)
            # Side agents come last: they repeat the calls of the conversation they were given.
            if self.calls.setdefault(call.id, agent_call) is agent_call:
                self._add_call(agent_call)
        for agent, started_by in agents_in_progress(witness.entries).items():
            self.in_progress.setdefault(agent, started_by)
        for entry in witness.entries:
            self._add_entry(entry)
            if entry.uuid is not None:
                self.owner.setdefault(entry.uuid, witness)
        for notification in find_notifications(witness.entries):
            self.notifications[notification.task] = notification
            if notification.call is not None:
                self.in_notification.setdefault(AgentId(notification.task), notification.call)

    def _add_call(self, agent_call: CallByAgent) -> None:
        call = agent_call.call
        result = call.result if call.tool == "Workflow" or call.tool in BACKGROUND_OUTPUT_TOOLS else None
        if isinstance(result, WorkflowResult) and result.run_id:
            self.of_run.setdefault(result.run_id, call.id)
        elif isinstance(result, OutputResult) and result.task is not None:
            self.task_status[result.task.task_id or ""] = result.task.status or ""
        if call.tool not in AGENT_STARTING_TOOLS:
            return
        for uuid in (call.entry.uuid, call.entry.parent_uuid):
            if uuid is not None:
                self.at_entry.setdefault(uuid, []).append(agent_call)
        if (prompt := string_input(call, "prompt")) is not None:
            self.with_prompt.setdefault(prompt.strip(), []).append(agent_call)
        # Only tools that start agents end their text like this: others may print anything.
        if (agent := agent_id_in_text(call.output)) is not None:
            self.in_text.setdefault(agent, call.id)
        for teammate in _spawned_teammates(call):
            self.of_teammate.setdefault(teammate, call.id)

    def _add_entry(self, entry: Entry) -> None:
        match entry:
            case UserEntry():
                agent = agent_id_in_result(entry)
                call = entry.call_id if agent is not None else None
                if agent is not None and call:
                    self.in_result.setdefault(agent, call)
            case AgentMetadataEntry(agent_id=str(id_), tool_use_id=str(call_id)):
                self.in_meta.setdefault(AgentId(id_), CallId(call_id))


def agents_in_progress(entries: Iterable[Entry]) -> dict[AgentId, CallId]:
    """Return the calls that started agents, by agent, according to their progress. The first one counts."""
    calls: dict[AgentId, CallId] = {}
    for entry in entries:
        match entry:
            case ProgressEntry(
                progress=AgentProgress(agent_id=str(agent)) | SkillProgress(agent_id=str(agent)),
                parent_tool_use_id=str(call),
            ):
                calls.setdefault(AgentId(agent), CallId(call))
    return calls


def string_input(call: Call, name: str) -> str | None:
    """Return a text field of a call's input."""
    value = call.input.get(name) if isinstance(call.input, dict) else None
    return value if isinstance(value, str) and value else None


def _spawned_teammates(call: Call) -> Iterator[Teammate]:
    result = call.result
    spawned = result if isinstance(result, AgentResult) and result.status == "teammate_spawned" else None
    name = (spawned.name if spawned is not None else None) or string_input(call, "name")
    if name is not None:
        yield (spawned.team_name if spawned is not None else None) or string_input(call, "team_name"), name
        yield None, name


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
    return (string_input(call.call, "prompt") or "").strip()


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


class Notification(Struct, frozen=True):
    """The end of a background task: an agent, a shell command, a workflow.

    `task` is the agent's id, for agents. `usage` are the counts as they are written: an agent's context, not its cost.
    """

    task: str
    entry: Entry
    call: CallId | None = None
    status: str | None = None
    summary: str | None = None
    result: str | None = None
    output_file: str | None = None
    usage: dict[str, int] = {}


def find_notifications(entries: Iterable[Entry]) -> list[Notification]:
    """Return every notification once. If it was queued and then delivered to the model, the later row counts."""
    entries = list(entries)
    queued: list[tuple[int, str]] = []
    delivered: dict[object, list[tuple[int, str]]] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, QueueOperationEntry):
            queued += ((at, text) for text in _tag_contents(entry.text) if entry.operation == "enqueue")
        elif row_texts := [(at, text) for text in _tag_contents(_program_text(entry))]:
            delivered[entry.uuid or at] = row_texts  # a row that is written again is the same one
    texts = [pair for row_texts in delivered.values() for pair in row_texts]
    counts = Counter(text.strip() for _, text in texts)
    for at, text in queued:
        counts[text.strip()] -= 1
        if counts[text.strip()] < 0:
            texts.append((at, text))
    return [_parse_notification(text, entries[at]) for at, text in sorted(texts, key=lambda pair: pair[0])]


def _program_text(entry: Entry) -> str:
    """Return the text of a row that may contain a notification: Claude Code's own, not a person's who quotes one."""
    if isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, QueuedCommand):
        return extract_text(entry.attachment.prompt)
    if isinstance(entry, UserEntry):
        text = entry.text
        is_program = entry.origin is not None and entry.origin.kind == "task-notification"
        return (
            text
            if is_program or text.lstrip().startswith((_OPEN_TAG, "<system-reminder>", "[SYSTEM NOTIFICATION"))
            else ""
        )
    return ""


def _tag_contents(text: str) -> Iterator[str]:
    """Yield the content of each notification in a text."""
    start = text.find(_OPEN_TAG)
    while start >= 0:
        start += len(_OPEN_TAG)
        end = text.find(_CLOSE_TAG, start)
        if end < 0:
            return
        yield text[start:end]
        start = text.find(_OPEN_TAG, end)


def _parse_notification(text: str, entry: Entry) -> Notification:
    # A result may contain anything, even the other elements: those are searched outside of it.
    before, opened, rest = text.partition("<result>")
    result, _, after = rest.rpartition("</result>") if opened else ("", "", "")
    outside = before + after
    call = tag_text(outside, "tool-use-id")
    return Notification(
        task=tag_text(outside, "task-id") or "",
        entry=entry,
        call=CallId(call) if call else None,
        status=tag_text(outside, "status"),
        summary=unescape(tag_text(outside, "summary") or "") or None,
        result=(result or rest).strip() if opened else None,
        output_file=tag_text(outside, "output-file"),
        usage=_parse_usage(tag_text(outside, "usage") or ""),
    )


def _parse_usage(text: str) -> dict[str, int]:
    return {name or plain: int(count or number) for name, count, plain, number in _USAGE_COUNT.findall(text)}
