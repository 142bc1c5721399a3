"""Select the items that a view shows, and give each its anchor, kind and turn.

An anchor identifies an entry on every page that shows it: `L120` is line 120 of the main transcript and
`a1b2c3.L7` line 7 of an agent's transcript. The anchor of an entry's second item ends with a number (`L120-2`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct

from threadline.model.calls import Outcome
from threadline.model.entries import ChainEntry, Entry
from threadline.model.names import current_tool_name, names_tool
from threadline.model.places import AgentId, CallId
from threadline.model.session import Agent, Branch, Session
from threadline.render.outline import (
    BranchItem,
    CallItem,
    CompactionItem,
    Detail,
    FailureItem,
    Item,
    NoticeItem,
    NotificationsByEntry,
    OutputItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    TaskUpdateItem,
    ThinkingItem,
    View,
    build_outline,
)

_ANCHOR = re.compile(r"(?:(?P<agent>[0-9A-Za-z_-]+)\.)?L(?P<line>[0-9]{1,12})")
_UNSAFE = re.compile(r"[^0-9A-Za-z_-]")


def anchor_of(entry: Entry, agent: AgentId | str | None = None) -> str:
    """`L120` for line 120 of the main transcript, `a1b2c3.L7` for line 7 of an agent's."""
    line = f"L{entry.line.number}"
    return f"{agent_slug(agent)}.{line}" if agent is not None else line


def foreign_transcript_slug(transcript: str) -> str:
    """The slug in anchors of an agent's rows that come from another file, such as a workflow's journal.

    >>> foreign_transcript_slug("/home/projects/-work/5560/subagents/workflows/wf_1/journal.jsonl")
    'wf_1-journal'
    """
    path = PurePath(transcript)
    return agent_slug(f"{path.parent.name}-{path.stem}")


def agent_slug(agent: AgentId | str) -> str:
    """An agent's id in anchors and URLs. Unsafe characters of the file name are replaced."""
    return _UNSAFE.sub("_", str(agent))


def parse_anchor(text: str) -> tuple[str | None, int] | None:
    """Parse an anchor into the agent (None: the main one) and the line; None if it is not an anchor."""
    match = _ANCHOR.fullmatch(text)
    return (match["agent"], int(match["line"])) if match else None


ITEM_KINDS: dict[type[Item], str] = {
    PromptItem: "prompt",
    TaskItem: "task",
    ReplyItem: "reply",
    ThinkingItem: "thinking",
    CallItem: "call",
    OutputItem: "output",
    FailureItem: "failure",
    NoticeItem: "notice",
    TaskUpdateItem: "notice",
    CompactionItem: "compaction",
    BranchItem: "branch",
}
"""The kind of each item: its CSS class, its `kind` in JSON, and the word that a view filters by."""


class PlacedItem(Struct, frozen=True):
    """An item with its anchor, its kind, and the number of its turn."""

    item: Item
    anchor: str
    kind: str
    turn: int | None = None


def place_items(
    agent: Agent, view: View, notifications: NotificationsByEntry | None = None, failing: Collection[CallId] = ()
) -> tuple[PlacedItem, ...]:
    """The items of an agent that a view shows, in order. `failing` are calls whose agents contain a failure."""
    return tuple(
        placed_item for placed_item in _all_items(agent, view, notifications) if _is_visible(placed_item, view, failing)
    )


def _all_items(agent: Agent, view: View, notifications: NotificationsByEntry | None) -> Iterator[PlacedItem]:
    """Every item. The anchor of an entry's second item ends with a number."""
    leading = leading_entries(agent, thread=view.thread, branch=view.branch)
    turns = {id(entry): turn.number for turn in agent.turns for entry in turn.entries}
    own_transcript = agent.entries[0].line.transcript if agent.entries else ""
    counts: dict[str, int] = {}
    turn: int | None = None
    items = build_outline(agent, leading, beside=view.branch is None and not view.thread, notifications=notifications)
    if view.branch is not None:
        items = _branch_items(items, view.branch, agent.branches[view.branch - 1], leading)
    for item in items:
        transcript = item.entry.line.transcript
        anchor = anchor_of(
            item.entry, agent.id if transcript == own_transcript else foreign_transcript_slug(transcript)
        )
        if not isinstance(item, BranchItem) or item.number == view.branch:
            turn = turns.get(id(item.entry), turn)
        if isinstance(item, BranchItem):
            # The entry itself is on the branch. A link to the entry must not lead to this marker.
            yield PlacedItem(item, f"{anchor}-0", ITEM_KINDS[BranchItem], turn)
            continue
        number = counts[anchor] = counts.get(anchor, 0) + 1
        if isinstance(item, PromptItem) and item.turn is not None:
            turn = item.turn
        yield PlacedItem(item, anchor if number == 1 else f"{anchor}-{number}", ITEM_KINDS[type(item)], turn)


def _branch_items(items: Iterable[Item], number: int, branch: Branch, path: Sequence[ChainEntry]) -> Iterator[Item]:
    """The items of a branch and of the path to it, with a marker at its start and without markers elsewhere."""
    branch_entries = {id(entry) for entry in branch.entries}
    uuids = {entry.uuid for entry in path if entry.uuid is not None}
    is_begun = False
    for item in items:
        if isinstance(item, BranchItem):
            if item.number != number and item.branch.fork in uuids:
                yield item
            continue
        if not is_begun and id(item.entry) in branch_entries:
            is_begun = True
            yield BranchItem(item.entry, number, branch, "")
        yield item


def _is_visible(placed_item: PlacedItem, view: View, failing: Collection[CallId]) -> bool:
    item = placed_item.item
    if isinstance(item, NoticeItem) and item.quiet and not view.everything:
        return False
    if isinstance(item, ThinkingItem) and (view.thinking is Detail.NONE or not (item.text.strip() or view.everything)):
        return False
    if isinstance(item, CallItem) and view.calls is Detail.NONE:
        return False
    if view.from_turn is not None and (placed_item.turn is None or placed_item.turn < view.from_turn):
        return False
    if view.to_turn is not None and placed_item.turn is not None and placed_item.turn > view.to_turn:
        return False
    return _matches_filters(placed_item, view, failing)


def _matches_filters(placed_item: PlacedItem, view: View, failing: Collection[CallId]) -> bool:
    """Whether an item matches the view's filters for kind, tool and errors."""
    item = placed_item.item
    if view.kinds and placed_item.kind not in view.kinds:
        return False
    if view.tools and not (
        isinstance(item, CallItem) and names_tool(view.tools, item.call.tool, exact=view.exact_tools)
    ):
        return False
    if not view.errors:
        return True
    failed = isinstance(item, CallItem) and (
        item.call.outcome not in (Outcome.OK, Outcome.PENDING) or item.call.id in failing
    )
    return failed or isinstance(item, FailureItem) or bool(item.entry.problems)


def count_tools(session: Session | Agent, *, exact_tools: bool = False) -> dict[str, int]:
    """The number of calls by tool, most frequent first, to filter by. Old names count under the current one."""
    return _count_names(call.tool if exact_tools else current_tool_name(call.tool) for call in session.calls)


def _count_names(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def leading_entries(agent: Agent, *, thread: bool = False, branch: int | None = None) -> Sequence[ChainEntry]:
    """The leading entries: the conversation, the current thread only, or a branch with the path that leads to it."""
    if branch is not None:
        return _path_to_branch(agent, agent.branches[branch - 1])
    return agent.thread.entries if thread else agent.conversation


def branch_of_turn(agent: Agent, number: int) -> int | None:
    """The number of the abandoned branch that a turn is on, from 1; None if it is not on one."""
    act = next((turn.act for turn in agent.turns if turn.number == number), None)
    branches = (at for at, branch in enumerate(agent.branches, 1) if act is not None and act.entry in branch.entries)
    return next(branches, None)


def _path_to_branch(agent: Agent, branch: Branch) -> list[ChainEntry]:
    before: list[ChainEntry] = []
    for entry in agent.conversation:
        before.append(entry)
        if entry.uuid is not None and entry.uuid == branch.fork:
            return [*before, *branch.entries]
    return list(branch.entries)
