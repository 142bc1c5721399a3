"""Collect what a session's entries say about its agents: calls, results, progress and task notifications.

Claude Code reports to the model in a `<task-notification>` element that a background task ended or has output. The
element can be in three rows: in the queue it waited in, and then in a user row or in an attachment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from msgspec import Struct

from threadline.model.attachments import QueuedCommand
from threadline.model.calls import Call
from threadline.model.entries import (
    AgentMetadataEntry,
    AgentProgress,
    AttachmentEntry,
    Entry,
    ProgressEntry,
    QueueOperationEntry,
    SkillProgress,
    UserEntry,
)
from threadline.model.places import AgentId, CallId, EntryId
from threadline.model.results import AgentResult, OutputResult, WorkflowResult
from threadline.model.text import extract_text
from threadline.thread.acts import tag_text
from threadline.thread.calls import AGENT_STARTING_TOOLS, agent_id_in_result, agent_id_in_text

_STATUS_TOOLS = frozenset({"TaskOutput", "AgentOutputTool"})
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
        if call.tool == "Workflow" and isinstance(result := call.result, WorkflowResult) and result.run_id:
            self.of_run.setdefault(result.run_id, call.id)
        if call.tool in _STATUS_TOOLS and isinstance(output := call.result, OutputResult) and output.task is not None:
            self.task_status[output.task.task_id or ""] = output.task.status or ""
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


_OPEN_TAG, _CLOSE_TAG = "<task-notification>", "</task-notification>"
# Bounded: a million letters are not a name, and thousands of digits are not a count.
_USAGE_COUNT = re.compile(r"<(\w{1,40})>\s{0,9}(\d{1,18})\s{0,9}</\1>|\b(\w{1,40}):\s{0,9}(\d{1,18})\b")


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
