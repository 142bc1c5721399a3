"""Turn entries into outline items as they arrive, without knowing what comes later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from threadline.model.blocks import McpToolUseBlock, ServerToolUseBlock, ToolUseBlock
from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, AttachmentEntry, Entry, SystemEntry, UserEntry
from threadline.model.homes import Transcript
from threadline.model.places import AgentId
from threadline.model.session import ActKind, Agent, AgentKind, Compaction, Thread
from threadline.render import (
    CallItem,
    Item,
    NoticeItem,
    NotificationsByEntry,
    PromptItem,
    ThinkingItem,
    build_outline,
    entry_key,
)
from threadline.thread import Graph, act_of, find_calls, find_compactions, find_notifications, result_blocks

# How many calls without a result are remembered. The result of an older one is shown without its call.
_MAX_PENDING_CALLS = 2048
_MAX_BOUNDARIES = 256
_TOOL_USE_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_NO_THREAD = Thread()


class LiveOutline:
    """Makes outline items from entries, and remembers the calls that have no result yet."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, AssistantEntry] = OrderedDict()
        self._boundaries: OrderedDict[str, None] = OrderedDict()

    def items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        """Return the items of an entry; a result is shown as its call, which is then no longer pending."""
        is_agents = transcript.agent is not None
        act = act_of(entry, agent=is_agents)
        answered = self._answer_calls(entry) if isinstance(entry, UserEntry) else []
        started = self._start_calls(entry) if isinstance(entry, AssistantEntry) else []
        shown = [CallItem(entry, call) for call in answered]
        if act is not None:
            # The words of a person who refused a call are shown with the call.
            return [*shown, *([] if act.kind is ActKind.FEEDBACK and shown else [PromptItem(entry, act)])]
        agent = Agent(
            id=AgentId(transcript.agent) if transcript.agent is not None else None,
            kind=AgentKind.BELOW if is_agents else AgentKind.MAIN,
            entries=(entry,),
            thread=_NO_THREAD,
            conversation=(),
            calls=(*started, *answered),
            compactions=tuple(self._compactions(entry)),
        )
        return [*shown, *build_outline(agent, news=_task_notifications(entry))]

    def _start_calls(self, entry: AssistantEntry) -> list[Call]:
        blocks = entry.message.blocks if entry.message is not None else ()
        uses = [block for block in blocks if isinstance(block, _TOOL_USE_BLOCKS)]
        for use in uses:
            if use.id:
                self._calls[use.id] = entry
        while len(self._calls) > _MAX_PENDING_CALLS:
            self._calls.popitem(last=False)
        return find_calls((entry,)) if uses else []

    def _answer_calls(self, entry: UserEntry) -> list[Call]:
        calls: list[Call] = []
        for block in result_blocks(entry):
            use = self._calls.pop(block.tool_use_id or "", None)
            if use is not None:
                calls += (call for call in find_calls((use, entry)) if call.id == block.tool_use_id)
        return calls

    def _compactions(self, entry: Entry) -> Iterator[Compaction]:
        """Yield a compaction at its boundary, or at its summary if there was no boundary before it."""
        if isinstance(entry, SystemEntry) and entry.subtype in {"compact_boundary", "microcompact_boundary"}:
            self._boundaries[entry.uuid or ""] = None
            while len(self._boundaries) > _MAX_BOUNDARIES:
                self._boundaries.popitem(last=False)
        elif not (isinstance(entry, UserEntry) and entry.is_compact_summary) or entry.parent_uuid in self._boundaries:
            return
        yield from find_compactions(Graph((entry,)))


def _task_notifications(entry: Entry) -> NotificationsByEntry | None:
    """Return the notifications about background tasks in an entry that the model sees, not in those only queued."""
    if not isinstance(entry, UserEntry | AttachmentEntry):
        return None
    notifications = find_notifications((entry,))
    return {entry_key(entry): notifications} if notifications else None


def is_quiet(item: Item) -> bool:
    """Whether an item is shown only with `--all`."""
    return (isinstance(item, NoticeItem) and item.quiet) or (isinstance(item, ThinkingItem) and not item.text.strip())


def item_tools(item: Item) -> set[str]:
    """Return the tool of an item that is a call, else an empty set."""
    return {item.call.tool} if isinstance(item, CallItem) else set()
