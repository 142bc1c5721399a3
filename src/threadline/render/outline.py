"""Turn an agent's transcript into the ordered items that every output format renders.

The conversation leads. Entries beside it in the file (prompts typed while the model worked, failed requests, rows
whose parent is lost) are inserted where they were written. A branch left by an edit or a rewind becomes a marker; its
content is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

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
from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, SystemEntry, UserEntry
from threadline.model.places import CallId
from threadline.model.session import Act, Agent, Branch, Compaction
from threadline.model.text import extract_text
from threadline.render.call_summary import summarize_input


class TaskNotification(Protocol):
    """What became of a background task, as `threadline.thread.notifications` tells it."""

    @property
    def entry(self) -> Entry:
        """The entry that tells it."""

    @property
    def call(self) -> CallId | None:
        """The call that started the task."""

    @property
    def task(self) -> str:
        """The task's id."""

    @property
    def summary(self) -> str | None:
        """That it ended, in a sentence."""

    @property
    def status(self) -> str | None:
        """How it ended, in a word."""

    @property
    def result(self) -> str | None:
        """What an agent answered."""


NotificationsByEntry = Mapping[str, Sequence[TaskNotification]]
"""News by the entry that tells it, as `named` names entries."""


def entry_key(entry: Entry) -> str:
    """A name for an entry that its copies share."""
    return entry.uuid or str(entry.place)


class Item(Struct, frozen=True):
    """Something a reader is shown: the entry it stands in."""

    entry: Entry


class PromptItem(Item, frozen=True):
    """What a person did; `turn` is the number of the turn it begins, where it begins one."""

    act: Act
    turn: int | None = None


class TaskItem(Item, frozen=True):
    """What an agent was told to do."""

    text: str


class ReplyItem(Item, frozen=True):
    """What the model said."""

    text: str


class ThinkingItem(Item, frozen=True):
    """What the model thought; empty where only its signature was kept."""

    text: str


class CallItem(Item, frozen=True):
    """A call."""

    call: Call


class OutputItem(Item, frozen=True):
    """What a command of the program itself printed."""

    text: str


class FailureItem(Item, frozen=True):
    """A request that failed."""

    text: str


class NoticeItem(Item, frozen=True):
    """What the program wrote in: `what` says what it is. `quiet`: only for who wants to see everything."""

    what: str
    text: str
    quiet: bool = False


class TaskUpdateItem(Item, frozen=True):
    """That a background task ended, or has something to say."""

    news: TaskNotification


class CompactionItem(Item, frozen=True):
    """A compaction."""

    compaction: Compaction


class BranchItem(Item, frozen=True):
    """Where a branch was left: its number, from 1, and how it begins."""

    number: int
    branch: Branch
    text: str


def build_outline(
    agent: Agent,
    chosen: Sequence[ChainEntry] | None = None,
    *,
    beside: bool = True,
    within: Iterable[Entry] = (),
    news: NotificationsByEntry | None = None,
) -> Iterator[Item]:
    """The items of an agent.

    Args:
        agent: whose.
        chosen: the entries that lead, instead of the whole conversation.
        beside: whether what stands beside those in the file is told as well.
        within: only these entries, where any are given.
        news: what became of background tasks.
    """
    only = {id(entry) for entry in within}
    teller = _OutlineBuilder(agent, news or {})
    told: set[str] = set()
    for entry in _interleave_entries(agent, agent.conversation if chosen is None else chosen, beside=beside):
        if not only or id(entry) in only:
            if entry.uuid is not None and entry.uuid in told:
                continue  # a copy of what was already told
            told.add(entry.uuid or "")
            yield from teller.items(entry)
            yield from teller.left_at(entry)
    if not only:
        yield from teller.left_elsewhere()


def _interleave_entries(agent: Agent, chosen: Sequence[ChainEntry], *, beside: bool) -> Iterator[Entry]:
    """The chosen entries, with what was written beside them before each that comes later in the file."""
    leads = {id(entry) for entry in chosen}
    known = {entry.uuid for entry in chosen if entry.uuid is not None}
    left = {entry.uuid for branch in agent.branches for entry in branch.entries}
    position = {id(entry): at for at, entry in enumerate(agent.entries)}
    start = position.get(id(chosen[0]), 0) if chosen and chosen[0] is not _first_entry(agent) else 0
    others = [
        entry
        for entry in (agent.entries[start:] if beside else ())
        if id(entry) not in leads and (entry.uuid is None or (entry.uuid not in known and entry.uuid not in left))
    ]
    at = 0
    for entry in chosen:
        here = position.get(id(entry), -1)
        while at < len(others) and position[id(others[at])] < here:
            yield others[at]
            at += 1
        yield entry
    yield from others[at:]


def _first_entry(agent: Agent) -> ChainEntry | None:
    return agent.conversation[0] if agent.conversation else None


class _OutlineBuilder:
    """Makes items of entries, knowing the acts, calls, compactions and branches they are part of."""

    def __init__(self, agent: Agent, news: NotificationsByEntry) -> None:
        self._news = news
        self._acts = {id(act.entry): act for act in agent.acts}
        self._turns = {id(turn.act.entry): turn.number for turn in agent.turns if turn.act is not None}
        self._calls = {call.id: call for call in agent.calls}
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
        self._to_do = agent.id is not None or agent.kind != "main"

    def left_at(self, entry: Entry) -> Iterator[Item]:
        """The branches that part from an entry."""
        for number, branch in self._branches.pop(entry.uuid, ()) if entry.uuid is not None else ():
            yield BranchItem(branch.first, number, branch, self._first_words(branch))

    def left_elsewhere(self) -> Iterator[Item]:
        """The branches that part from no entry that was told."""
        for number, branch in sorted((one for some in self._branches.values() for one in some), key=lambda one: one[0]):
            yield BranchItem(branch.first, number, branch, self._first_words(branch))

    def _first_words(self, branch: Branch) -> str:
        """How a branch begins: what the person said, or else the first text in it."""
        acts = (act.text for entry in branch.entries if (act := self._acts.get(id(entry))) is not None)
        texts = (str(getattr(entry, "text", None) or "").strip() for entry in branch.entries)
        return next(acts, None) or next(filter(None, texts), "")

    def items(self, entry: Entry) -> Iterator[Item]:
        """The items of one entry."""
        act = self._acts.get(id(entry))
        compaction = self._compactions.get(id(entry))
        if act is not None:
            yield PromptItem(entry, act, self._turns.get(id(entry)))
        elif self._news and (told := self._news.get(entry_key(entry))):
            yield from (TaskUpdateItem(entry, one) for one in told)
        elif compaction is not None:
            yield CompactionItem(entry, compaction)
        elif id(entry) in self._summaries:
            return
        elif isinstance(entry, AssistantEntry):
            yield from self._assistant(entry)
        elif isinstance(entry, UserEntry):
            yield from self._user(entry)
        elif isinstance(entry, SystemEntry):
            yield from _system_items(entry)
        else:
            yield NoticeItem(entry, _entry_kind(entry), _entry_text(entry), quiet=True)

    def _assistant(self, entry: AssistantEntry) -> Iterator[Item]:
        if entry.is_api_error_message:
            yield FailureItem(entry, entry.text or str(entry.error or ""))
            return
        if entry.is_synthetic:
            yield NoticeItem(entry, "no reply", entry.text, quiet=True)
            return
        for index, block in enumerate(entry.message.blocks if entry.message is not None else ()):
            yield from self._block(entry, block, index)

    def _block(self, entry: AssistantEntry, block: ContentBlock, index: int) -> Iterator[Item]:
        match block:
            case TextBlock():
                if block.text.strip() and block.text != "(no content)":
                    yield ReplyItem(entry, block.text)
            case ThinkingBlock():
                yield ThinkingItem(entry, block.thinking)
            case RedactedThinkingBlock():
                yield ThinkingItem(entry, "")
            case ToolUseBlock() | ServerToolUseBlock() | McpToolUseBlock():
                # A use without an id is a call all the same, named by where it stands.
                call = self._calls.get(block.id or CallId(f"{entry.uuid or entry.place}#{index}"))
                if call is not None:
                    yield CallItem(entry, call)
                else:
                    yield NoticeItem(entry, block.name or "call", summarize_input(block.name, block.input))
            case ServerResultBlock() | McpToolResultBlock():
                return  # the call shows it
            case _:
                yield NoticeItem(entry, block.type, "", quiet=not isinstance(block, ImageBlock | DocumentBlock))

    def _user(self, entry: UserEntry) -> Iterator[Item]:
        blocks = list(entry.message.blocks) if entry.message is not None else []
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        for result in results:
            if result.tool_use_id not in self._calls:
                yield NoticeItem(entry, "result without its call", extract_text(result.content))
        text = extract_text([block for block in blocks if not isinstance(block, ToolResultBlock)])
        if not text.strip():
            return
        if self._to_do and not results and not entry.is_meta:
            self._to_do = False  # the first words in an agent's transcript are its task
            yield TaskItem(entry, text)
        elif entry.is_compact_summary:
            yield NoticeItem(entry, "summary", text)
        else:
            yield from _program_text_items(entry, text, quiet=bool(entry.is_meta))


# What the program writes in a person's place, by its first tag: what it is, or None for output that is shown as such.
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
    what = _TAG_LABELS.get(name, name.replace("-", " ") or "note")
    if what is None:
        inner = _ANY_TAG.sub("", text).strip("\n")
        if inner.strip() and inner.strip() != "(no content)":
            yield OutputItem(entry, inner)
        return
    if "<command-name>" in text:
        text = _remove_tags(text, "command-message")  # it says the command's name again
    summary = next(_find_tags(text, "summary"), None)
    told = text[summary[1] : summary[2]] if summary is not None else _ANY_TAG.sub(" ", text)
    yield NoticeItem(entry, what, told, quiet=quiet)


def _find_tags(text: str, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Where each `<name>…</name>` and what is inside it begins and ends; one that is never closed is none."""
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
    kept, at = [], 0
    for start, _, _, end in _find_tags(text, name):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def _system_items(entry: SystemEntry) -> Iterator[Item]:
    draw = _SYSTEM_SUBTYPES.get(entry.subtype or "")
    if draw is None:
        yield NoticeItem(entry, (entry.subtype or "notice").replace("_", " "), _entry_text(entry), quiet=not entry.text)
    else:
        yield from draw(entry)


def _quiet_notice(entry: SystemEntry) -> Iterator[Item]:
    yield NoticeItem(entry, (entry.subtype or "").replace("_", " "), _entry_text(entry), quiet=True)


def _local_command_items(entry: SystemEntry) -> Iterator[Item]:
    yield from _program_text_items(entry, entry.text, quiet=False)


def _api_error_items(entry: SystemEntry) -> Iterator[Item]:
    yield FailureItem(entry, entry.api_error_text)


_SYSTEM_SUBTYPES: dict[str, Callable[[SystemEntry], Iterator[Item]]] = {
    "api_error": _api_error_items,
    "local_command": _local_command_items,
    "turn_duration": _quiet_notice,
    "stop_hook_summary": _quiet_notice,
    "compact_boundary": _quiet_notice,
    "microcompact_boundary": _quiet_notice,
}


def _entry_kind(entry: Entry) -> str:
    subtype = getattr(getattr(entry, "attachment", None), "type", None) or getattr(entry, "subtype", None)
    return f"{entry.kind}/{subtype}" if subtype else entry.kind


def _entry_text(entry: Entry) -> str:
    """Whatever text an entry that says nothing in the conversation has."""
    for holder in (entry, getattr(entry, "attachment", None), getattr(entry, "progress", None)):
        for name in ("content", "prompt", "text", "filename", "output", "summary", "message"):
            value = getattr(holder, name, None)
            if isinstance(value, str | list) and (text := extract_text(value)):
                return text
    return ""
