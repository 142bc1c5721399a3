"""Collect what a session's entries say about its agents: calls, results, progress and task notifications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from threadline.model.calls import Call
from threadline.model.entries import (
    AgentMetadataEntry,
    AgentProgress,
    Entry,
    ProgressEntry,
    SkillProgress,
    UserEntry,
)
from threadline.model.places import AgentId, CallId, EntryId
from threadline.model.results import AgentResult, OutputResult, WorkflowResult
from threadline.thread.calls import AGENT_STARTING_TOOLS, BACKGROUND_OUTPUT_TOOLS, agent_id_in_result, agent_id_in_text
from threadline.thread.notifications import Notification, find_notifications

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
        self.in_progress = agents_in_progress(witness.entries) | self.in_progress
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
