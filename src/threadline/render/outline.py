"""Turn an agent's transcript into the ordered items that every output format renders.

The conversation determines the order. Other entries of the file (prompts typed while the model worked, failed requests,
rows whose parent is lost) are inserted where they were written. A branch abandoned by an edit or a rewind becomes a
marker; its content is not shown.

A `View` selects the items to show: agents, thinking, calls, branches, turns, filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from threadline.model.blocks import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    McpToolResultBlock,
    McpToolUseBlock,
    RedactedThinkingBlock,
    ServerResultBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.call_summary import summarize_input
from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, SystemEntry, ToolUseEntry, UserEntry, kind_label
from threadline.model.places import CallId
from threadline.model.session import Act, Agent, Branch, Compaction
from threadline.model.text import extract_text


class Detail(StrEnum):
    """How much of something is shown: everything, a folded version, or nothing."""

    FULL = "full"
    FOLD = "fold"
    NONE = "none"


class TextOptions(Struct, frozen=True):
    """Options for a session as text.

    `everything` shows outputs and thinking in full, side agents, and Claude Code's own entries. `branch` and `turn` are
    numbers from 1. `thread` shows what Claude Code would resume instead of the full conversation. `from_turn` and
    `to_turn` are the first and the last turn. `uncut` does not cut long prompts. Times are in `zone`.
    """

    width: int = 100
    colour: bool = False
    agents: Detail = Detail.FOLD
    everything: bool = False
    branch: int | None = None
    turn: int | None = None
    thread: bool = False
    thinking: Detail = Detail.FOLD
    calls: Detail = Detail.FOLD
    from_turn: int | None = None
    to_turn: int | None = None
    uncut: bool = False
    zone: tzinfo = UTC


class View(Struct, frozen=True):
    """What is shown. The names are the same in the page's URLs and in the options of `threadline export`.

    `branch` is a number from 1. `thread` shows what Claude Code would resume. `from_turn` and `to_turn` are the first
    and the last turn. `kinds` are kinds of items (prompt, reply, thinking, call, notice …), `tools` names of tools, and
    `errors` selects failures; an item must match all of these. A renamed tool matches by either name, unless
    `exact_tools`. `everything` adds Claude Code's own entries. Files show times in `zone`: UTC by default, so that an
    exported file is the same on every machine.
    """

    thinking: Detail = Detail.FOLD
    calls: Detail = Detail.FOLD
    agents: Detail = Detail.FOLD
    images: bool = True
    everything: bool = False
    branch: int | None = None
    thread: bool = False
    from_turn: int | None = None
    to_turn: int | None = None
    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    exact_tools: bool = False
    errors: bool = False
    zone: tzinfo = UTC

    @property
    def has_turn_range(self) -> bool:
        """Whether only some turns are shown."""
        return self.from_turn is not None or self.to_turn is not None

    def shows_turn(self, number: int) -> bool:
        """Whether a turn is in the range."""
        return (self.from_turn is None or number >= self.from_turn) and (self.to_turn is None or number <= self.to_turn)

    @property
    def inside(self) -> View:
        """The view for an agent inside the shown one, which has its own turns and branches."""
        return replace(self, branch=None, thread=False, from_turn=None, to_turn=None)


class TaskNotification(Protocol):
    """The outcome of a background task, as found by `threadline.thread.find_notifications`."""

    @property
    def entry(self) -> Entry:
        """The entry that reports the outcome."""

    @property
    def call(self) -> CallId | None:
        """The call that started the task."""

    @property
    def task(self) -> str:
        """The task's id."""

    @property
    def summary(self) -> str | None:
        """A sentence about the outcome."""

    @property
    def status(self) -> str | None:
        """The outcome in one word."""

    @property
    def result(self) -> str | None:
        """The answer, if the task was an agent."""


NotificationsByEntry = Mapping[str, Sequence[TaskNotification]]
"""Notifications by the `entry_key` of the entry that reports them."""


def entry_key(entry: Entry) -> str:
    """A key for an entry. Copies of the entry have the same key."""
    return entry.uuid or str(entry.place)


class Item(Struct, frozen=True):
    """One thing to show to a reader, with the entry that contains it."""

    entry: Entry


class PromptItem(Item, frozen=True):
    """An act of the person. `turn` is the number of the turn that it starts, if it starts one."""

    act: Act
    turn: int | None = None


class TaskItem(Item, frozen=True):
    """The task of an agent."""

    text: str


class ReplyItem(Item, frozen=True):
    """Text of a reply by the model."""

    text: str


class ThinkingItem(Item, frozen=True):
    """Thinking by the model. The text is empty if the transcript contains only its signature."""

    text: str


class CallItem(Item, frozen=True):
    """A tool call."""

    call: Call


class OutputItem(Item, frozen=True):
    """Output of a local command, such as a slash command or `!` shell command."""

    text: str


class FailureItem(Item, frozen=True):
    """A failed API request."""

    text: str


class NoticeItem(Item, frozen=True):
    """Text inserted by Claude Code; `what` is its label. `quiet` notices are shown only if everything is shown."""

    what: str
    text: str
    quiet: bool = False


class TaskUpdateItem(Item, frozen=True):
    """A notification about a background task."""

    notification: TaskNotification


class CompactionItem(Item, frozen=True):
    """A compaction."""

    compaction: Compaction


class BranchItem(Item, frozen=True):
    """The place where the conversation left a branch: the branch's number, from 1, and how the branch begins."""

    number: int
    branch: Branch
    text: str


def build_outline(
    agent: Agent,
    leading: Sequence[ChainEntry] | None = None,
    *,
    beside: bool = True,
    within: Iterable[Entry] | None = None,
    notifications: NotificationsByEntry | None = None,
) -> Iterator[Item]:
    """Yield the items of an agent in reading order.

    Args:
        agent: the agent.
        leading: the entries that determine the order. Default: the conversation.
        beside: whether to include other entries of the file, each at the position where it was written.
        within: if given, only items of these entries.
        notifications: those about background tasks.
    """
    selected = {id(entry) for entry in within} if within is not None else None
    builder = _OutlineBuilder(agent, notifications or {})
    yielded: set[str] = set()
    for entry in _interleave_entries(agent, agent.conversation if leading is None else leading, beside=beside):
        if selected is None or id(entry) in selected:
            if entry.uuid is not None and entry.uuid in yielded:
                continue  # a copy of an entry that was already yielded
            yielded.add(entry.uuid or "")
            yield from builder.items(entry)
            yield from builder.branches_at(entry)
    if selected is None:
        yield from builder.remaining_branches()


def _interleave_entries(agent: Agent, leading: Sequence[ChainEntry], *, beside: bool) -> Iterator[Entry]:
    """Merge the leading entries with the other entries of the file, in the order of the file."""
    leading_ids = {id(entry) for entry in leading}
    uuids = {entry.uuid for entry in leading if entry.uuid is not None}
    branch_uuids = {entry.uuid for branch in agent.branches for entry in branch.entries}
    position = {id(entry): at for at, entry in enumerate(agent.entries)}
    start = position.get(id(leading[0]), 0) if leading and leading[0] is not _first_entry(agent) else 0
    others = [
        entry
        for entry in (agent.entries[start:] if beside else ())
        if id(entry) not in leading_ids
        and (entry.uuid is None or (entry.uuid not in uuids and entry.uuid not in branch_uuids))
    ]
    at = 0
    for entry in leading:
        index = position.get(id(entry), -1)
        while at < len(others) and position[id(others[at])] < index:
            yield others[at]
            at += 1
        yield entry
    yield from others[at:]


def _first_entry(agent: Agent) -> ChainEntry | None:
    return agent.conversation[0] if agent.conversation else None


_USUAL_STOPS = frozenset({None, "", "end_turn", "tool_use"})
_STOP_SENTENCES = {
    "max_tokens": "The reply is incomplete: it reached the output limit (max_tokens).",
    "model_context_window_exceeded": "The reply is incomplete: the context window was full"
    " (model_context_window_exceeded).",
    "stop_sequence": "The reply ended at a stop sequence (stop_sequence).",
    "refusal": "The model refused to continue (refusal).",
    "pause_turn": "The reply was paused to be continued (pause_turn).",
}


def describe_stop(entry: AssistantEntry) -> str:
    """Why a reply stopped, as a sentence; empty if it ended as usual."""
    reason = entry.stop_reason
    if reason is None or reason in _USUAL_STOPS or entry.is_synthetic:
        return ""
    sentence = _STOP_SENTENCES.get(reason, f"The reply stopped: {reason}.")
    sequence = entry.message.stop_sequence if entry.message is not None else None
    return f"{sentence[:-1]}: {sequence}" if reason == "stop_sequence" and sequence else sentence


def _stopped_replies(entries: Iterable[Entry]) -> frozenset[str]:
    """The last entry of each reply that stopped in an unusual way, by `entry_key`: its entries repeat the reason."""
    last: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, AssistantEntry) and entry.stop_reason not in _USUAL_STOPS and not entry.is_synthetic:
            message = entry.message.id if entry.message is not None else None
            last[message or entry_key(entry)] = entry_key(entry)
    return frozenset(last.values())


class _OutlineBuilder:
    """Converts entries to items, using the agent's acts, calls, compactions and branches."""

    def __init__(self, agent: Agent, notifications: NotificationsByEntry) -> None:
        self._notifications = notifications
        self._acts = {id(act.entry): act for act in agent.acts}
        self._turns = {id(turn.act.entry): turn.number for turn in agent.turns if turn.act is not None}
        self._calls = {call.id: call for call in agent.calls}
        self._answers = {id(call.block) for call in agent.calls}
        self._compactions = {
            id(start): compaction
            for compaction in agent.compactions
            if (start := compaction.boundary or compaction.summary) is not None
        }
        self._summaries = {
            id(compaction.summary)
            for compaction in agent.compactions
            if compaction.boundary is not None and compaction.summary
        }
        self._branches: dict[str | None, list[tuple[int, Branch]]] = {}
        for number, branch in enumerate(agent.branches, 1):
            self._branches.setdefault(branch.fork, []).append((number, branch))
        self._awaits_task = agent.id is not None or agent.kind != "main"
        self._stopped = _stopped_replies(agent.entries)

    def branches_at(self, entry: Entry) -> Iterator[Item]:
        """Markers of the branches that fork at an entry."""
        for number, branch in self._branches.pop(entry.uuid, ()) if entry.uuid is not None else ():
            yield BranchItem(branch.first, number, branch, self._opening_text(branch))

    def remaining_branches(self) -> Iterator[Item]:
        """Markers of the branches that fork at no entry in the outline."""
        for number, branch in sorted(
            (numbered for branches in self._branches.values() for numbered in branches),
            key=lambda numbered: numbered[0],
        ):
            yield BranchItem(branch.first, number, branch, self._opening_text(branch))

    def _opening_text(self, branch: Branch) -> str:
        """The beginning of a branch: its first prompt, or else its first text."""
        acts = (act.text for entry in branch.entries if (act := self._acts.get(id(entry))) is not None)
        texts = (str(getattr(entry, "text", None) or "").strip() for entry in branch.entries)
        return next(acts, None) or next(filter(None, texts), "")

    def items(self, entry: Entry) -> Iterator[Item]:
        """Yield the items of one entry. A message from a hook to the person may be on any of them."""
        yield from self._content_items(entry)
        if isinstance(entry, ChainEntry) and entry.system_message:
            yield NoticeItem(entry, "system message", entry.system_message)

    def _content_items(self, entry: Entry) -> Iterator[Item]:
        act = self._acts.get(id(entry))
        compaction = self._compactions.get(id(entry))
        if act is not None:
            yield PromptItem(entry, act, self._turns.get(id(entry)))
        elif self._notifications and (notifications := self._notifications.get(entry_key(entry))):
            yield from (TaskUpdateItem(entry, notification) for notification in notifications)
        elif compaction is not None:
            yield CompactionItem(entry, compaction)
        elif id(entry) in self._summaries:
            return
        elif isinstance(entry, AssistantEntry):
            yield from self._assistant_items(entry)
        elif isinstance(entry, UserEntry):
            yield from self._user_items(entry)
        elif isinstance(entry, SystemEntry):
            yield from _system_items(entry)
        else:
            yield NoticeItem(entry, kind_label(entry), _entry_text(entry), quiet=True)

    def _assistant_items(self, entry: AssistantEntry) -> Iterator[Item]:
        if entry.is_api_error_message:
            yield FailureItem(entry, entry.text or str(entry.error or ""))
            return
        if entry.is_synthetic:
            yield NoticeItem(entry, "no reply", entry.text, quiet=True)
            return
        for index, block in enumerate(entry.message.blocks if entry.message is not None else ()):
            yield from self._block_items(entry, block, index)
        if entry_key(entry) in self._stopped:
            yield NoticeItem(entry, "stopped", describe_stop(entry))

    def _block_items(self, entry: AssistantEntry, block: ContentBlock, index: int) -> Iterator[Item]:
        match block:
            case TextBlock():
                if block.text.strip() and block.text != "(no content)":
                    yield ReplyItem(entry, block.text)
            case ThinkingBlock():
                yield ThinkingItem(entry, block.thinking)
            case RedactedThinkingBlock():
                yield ThinkingItem(entry, "")
            case ToolUseBlock() | ServerToolUseBlock() | McpToolUseBlock():
                # A tool use without an id is still a call. Its id is the position of the block.
                call = self._calls.get(block.id or CallId(f"{entry.uuid or entry.place}#{index}"))
                if isinstance(entry, ToolUseEntry) and (call is None or call.entry is not entry):
                    return  # it repeats a call of the message before
                if call is not None:
                    yield CallItem(entry, call)
                else:
                    yield NoticeItem(entry, block.name or "call", summarize_input(block.name, block.input))
            case ServerResultBlock() | McpToolResultBlock():
                return  # the call shows it
            case _:
                yield NoticeItem(entry, block.type, "", quiet=not isinstance(block, ImageBlock | DocumentBlock))

    def _user_items(self, entry: UserEntry) -> Iterator[Item]:
        blocks = list(entry.message.blocks) if entry.message is not None else []
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        for result in results:
            if result.tool_use_id not in self._calls and id(result) not in self._answers:
                yield NoticeItem(entry, "result without its call", extract_text(result.content))
        text = extract_text([block for block in blocks if not isinstance(block, ToolResultBlock)])
        if not text.strip():
            return
        if self._awaits_task and not results and not entry.is_meta:
            self._awaits_task = False  # the first text in an agent's transcript is its task
            yield TaskItem(entry, text)
        elif entry.is_compact_summary:
            yield NoticeItem(entry, "summary", text)
        else:
            yield from _program_text_items(entry, text, quiet=bool(entry.is_meta))


# Labels of text that Claude Code writes as a user message, by its first tag. None: shown as command output.
_TAG_LABELS: dict[str, str | None] = {
    "local-command-stdout": None,
    "local-command-stderr": None,
    "bash-stdout": None,
    "bash-stderr": None,
    "task-notification": "background task",
    "teammate-message": "teammate",
    "cross-session-message": "another session",
    "agent-message": "agent",
    "command-name": "command",
    "command-message": "command",
}
_TAG = re.compile(r"<(?P<name>[a-z][a-z_-]*+)[^<>]*+>")
_ANY_TAG = re.compile(r"</?[a-z][a-z_-]*(?: [^<>]*)?>")


def _program_text_items(entry: Entry, text: str, *, quiet: bool) -> Iterator[Item]:
    tag = _TAG.match(text.lstrip())
    name = tag["name"] if tag else ""
    label = _TAG_LABELS.get(name, name.replace("-", " ") or "note")
    if label is None:
        inner = _ANY_TAG.sub("", text).strip("\n")
        if inner.strip() and inner.strip() != "(no content)":
            yield OutputItem(entry, inner)
        return
    if "<command-name>" in text:
        text = _remove_tags(text, "command-message")  # it repeats the command's name
    summary = next(_find_tags(text, "summary"), None)
    body = text[summary[1] : summary[2]] if summary is not None else _ANY_TAG.sub(" ", text)
    yield NoticeItem(entry, label, body, quiet=quiet)


def _find_tags(text: str, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield (start, inner start, inner end, end) of each `<name>…</name>`. An unclosed tag is ignored."""
    opening, closing = f"<{name}>", f"</{name}>"
    end = 0
    while (start := text.find(opening, end)) >= 0:
        inner = start + len(opening)
        stop = text.find(closing, inner)
        if stop < 0:
            return
        end = stop + len(closing)
        yield start, inner, stop, end


def _remove_tags(text: str, name: str) -> str:
    parts, at = [], 0
    for start, _, _, end in _find_tags(text, name):
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])


def _system_items(entry: SystemEntry) -> Iterator[Item]:
    make_items = _SYSTEM_SUBTYPES.get(entry.subtype or "")
    if make_items is None:
        yield NoticeItem(entry, _notice_label(entry), _entry_text(entry), quiet=not entry.text)
    else:
        yield from make_items(entry)


def _quiet_notice(entry: SystemEntry) -> Iterator[Item]:
    yield NoticeItem(entry, _notice_label(entry), _entry_text(entry), quiet=True)


def _notice_label(entry: SystemEntry) -> str:
    subtype = entry.subtype or "notice"
    return _NOTICE_LABELS.get(subtype, subtype.replace("_", " "))


def _local_command_items(entry: SystemEntry) -> Iterator[Item]:
    yield from _program_text_items(entry, entry.text, quiet=False)


def _api_error_items(entry: SystemEntry) -> Iterator[Item]:
    yield FailureItem(entry, entry.api_error_text)


_NOTICE_LABELS = {"bridge_status": "Remote control", "informational": "Notice"}
_SYSTEM_SUBTYPES: dict[str, Callable[[SystemEntry], Iterator[Item]]] = {
    "api_error": _api_error_items,
    "local_command": _local_command_items,
    "turn_duration": _quiet_notice,
    "stop_hook_summary": _quiet_notice,
    "compact_boundary": _quiet_notice,
    "microcompact_boundary": _quiet_notice,
}


def _entry_text(entry: Entry) -> str:
    """Any text of an entry that is not part of the conversation."""
    for holder in (entry, getattr(entry, "attachment", None), getattr(entry, "progress", None)):
        for name in ("content", "prompt", "text", "filename", "output", "summary", "message"):
            value = getattr(holder, name, None)
            if isinstance(value, str | list) and (text := extract_text(value)):
                return text
    return ""
