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

# So many calls without a result are remembered; of older ones, the result says less.
_MAX_PENDING_CALLS = 2048
_MAX_BOUNDARIES = 256
_TOOL_USE_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_NO_THREAD = Thread()


class LiveOutline:
    """Makes items of entries, remembering the calls that have no result yet."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, AssistantEntry] = OrderedDict()
        self._boundaries: OrderedDict[str, None] = OrderedDict()

    def items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        """What an entry tells of; a result comes as its call, which is not pending any more."""
        is_agents = transcript.agent is not None
        act = act_of(entry, agent=is_agents)
        answered = self._answered(entry) if isinstance(entry, UserEntry) else []
        made = self._made(entry) if isinstance(entry, AssistantEntry) else []
        shown = [CallItem(entry, call) for call in answered]
        if act is not None:
            # What was said in refusing a call stands with the call.
            return [*shown, *([] if act.kind is ActKind.FEEDBACK and shown else [PromptItem(entry, act)])]
        agent = Agent(
            id=AgentId(transcript.agent) if transcript.agent is not None else None,
            kind=AgentKind.BELOW if is_agents else AgentKind.MAIN,
            entries=(entry,),
            thread=_NO_THREAD,
            conversation=(),
            calls=(*made, *answered),
            compactions=tuple(self._compactions(entry)),
        )
        return [*shown, *build_outline(agent, news=_task_notifications(entry))]

    def _made(self, entry: AssistantEntry) -> list[Call]:
        blocks = entry.message.blocks if entry.message is not None else ()
        uses = [block for block in blocks if isinstance(block, _TOOL_USE_BLOCKS)]
        for use in uses:
            if use.id:
                self._calls[use.id] = entry
        while len(self._calls) > _MAX_PENDING_CALLS:
            self._calls.popitem(last=False)
        return find_calls((entry,)) if uses else []

    def _answered(self, entry: UserEntry) -> list[Call]:
        found: list[Call] = []
        for block in result_blocks(entry):
            use = self._calls.pop(block.tool_use_id or "", None)
            if use is not None:
                found += (call for call in find_calls((use, entry)) if call.id == block.tool_use_id)
        return found

    def _compactions(self, entry: Entry) -> Iterator[Compaction]:
        """A compaction is told by its boundary; by its summary only where none came before."""
        if isinstance(entry, SystemEntry) and entry.subtype in {"compact_boundary", "microcompact_boundary"}:
            self._boundaries[entry.uuid or ""] = None
            while len(self._boundaries) > _MAX_BOUNDARIES:
                self._boundaries.popitem(last=False)
        elif not (isinstance(entry, UserEntry) and entry.is_compact_summary) or entry.parent_uuid in self._boundaries:
            return
        yield from find_compactions(Graph((entry,)))


def _task_notifications(entry: Entry) -> NotificationsByEntry | None:
    """What an entry tells of background tasks. What is only queued will be told again by the row the model sees."""
    if not isinstance(entry, UserEntry | AttachmentEntry):
        return None
    told = find_notifications((entry,))
    return {entry_key(entry): told} if told else None


def is_quiet(item: Item) -> bool:
    """Whether an item is only for who wants to see everything."""
    return (isinstance(item, NoticeItem) and item.quiet) or (isinstance(item, ThinkingItem) and not item.text.strip())


def item_tools(item: Item) -> set[str]:
    """The tool that an item tells of, if it is a call."""
    return {item.call.tool} if isinstance(item, CallItem) else set()
