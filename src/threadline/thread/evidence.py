"""What a session's entries tell about which call started which agent, gathered in one walk over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from threadline.model.call import Call
from threadline.model.entries import (
    AgentMetadataEntry,
    AgentProgress,
    Entry,
    ProgressEntry,
    SkillProgress,
    UserEntry,
)
from threadline.model.ids import AgentId, CallId, EntryId
from threadline.model.results import AgentResult, OutputResult, WorkflowResult
from threadline.thread.calls import STARTERS, agent_in_result, agent_in_text
from threadline.thread.notifications import Notification, notifications

_ASKERS = frozenset({"TaskOutput", "AgentOutputTool"})
Teammate = tuple[str | None, str]
"""A teammate's team and name."""


class Speaker(Struct, frozen=True):
    """An agent as a witness: which one (its number in the session), its id, its entries and calls."""

    number: int
    id: AgentId | None
    entries: Sequence[Entry]
    calls: Sequence[Call]


class Made(Struct, frozen=True):
    """A call, and the agent that made it."""

    by: Speaker
    call: Call


class Evidence:
    """What names agents, by how it does. The first to name an agent counts: later ones resume it."""

    def __init__(self, speakers: Iterable[Speaker]) -> None:
        self.has_main = False
        self.calls: dict[CallId, Made] = {}
        self.in_meta: dict[AgentId, CallId] = {}
        self.in_result: dict[AgentId, CallId] = {}
        self.in_progress: dict[AgentId, CallId] = {}
        self.in_text: dict[AgentId, CallId] = {}
        self.in_notification: dict[AgentId, CallId] = {}
        self.of_run: dict[str, CallId] = {}
        self.of_teammate: dict[Teammate, CallId] = {}
        self.notifications: dict[str, Notification] = {}
        self.task_status: dict[str, str] = {}
        self.at_entry: dict[EntryId, list[Made]] = {}
        self.with_prompt: dict[str, list[Made]] = {}
        self.owner: dict[EntryId, Speaker] = {}
        for speaker in speakers:
            self._hear(speaker)

    def _hear(self, speaker: Speaker) -> None:
        self.has_main |= speaker.id is None and bool(speaker.entries)
        for call in speaker.calls:
            made = Made(speaker, call)
            # Side agents come last, and repeat the calls of the conversation they were given.
            if self.calls.setdefault(call.id, made) is made:
                self._made(made)
        for entry in speaker.entries:
            self._read(entry)
            if entry.uuid is not None:
                self.owner.setdefault(entry.uuid, speaker)
        for told in notifications(speaker.entries):
            self.notifications[told.task] = told
            if told.call is not None:
                self.in_notification.setdefault(AgentId(told.task), told.call)

    def _made(self, made: Made) -> None:
        call = made.call
        if call.tool == "Workflow" and isinstance(result := call.result, WorkflowResult) and result.run_id:
            self.of_run.setdefault(result.run_id, call.id)
        if call.tool in _ASKERS and isinstance(asked_for := call.result, OutputResult) and asked_for.task is not None:
            self.task_status[asked_for.task.task_id or ""] = asked_for.task.status or ""
        if call.tool not in STARTERS:
            return
        for uuid in (call.entry.uuid, call.entry.parent_uuid):
            if uuid is not None:
                self.at_entry.setdefault(uuid, []).append(made)
        if (prompt := asked(call, "prompt")) is not None:
            self.with_prompt.setdefault(prompt.strip(), []).append(made)
        # Only a tool that starts agents ends its text so: others may print anything.
        if (agent := agent_in_text(call.output)) is not None:
            self.in_text.setdefault(agent, call.id)
        for teammate in _teammates(call):
            self.of_teammate.setdefault(teammate, call.id)

    def _read(self, entry: Entry) -> None:
        match entry:
            case UserEntry(tool_use_result=dict(raw)):
                agent, call = agent_in_result(raw), entry.call_id
                if agent is not None and call:
                    self.in_result.setdefault(agent, call)
            case ProgressEntry(
                progress=AgentProgress(agent_id=str(id_)) | SkillProgress(agent_id=str(id_)),
                parent_tool_use_id=str(told),
            ):
                self.in_progress.setdefault(AgentId(id_), CallId(told))
            case AgentMetadataEntry(agent_id=str(id_), tool_use_id=str(told)):
                self.in_meta.setdefault(AgentId(id_), CallId(told))


def asked(call: Call, name: str) -> str | None:
    """One of the words a call was made with."""
    value = call.input.get(name) if isinstance(call.input, dict) else None
    return value if isinstance(value, str) and value else None


def _teammates(call: Call) -> Iterator[Teammate]:
    result = call.result
    spawned = result if isinstance(result, AgentResult) and result.status == "teammate_spawned" else None
    name = (spawned.name if spawned is not None else None) or asked(call, "name")
    if name is not None:
        yield (spawned.team_name if spawned is not None else None) or asked(call, "team_name"), name
        yield None, name
