"""Placed items: what a reader is shown of an agent, as a view wants it, each with its anchor, its kind and its turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from threadline.model.agent import Agent
from threadline.model.call import Outcome
from threadline.model.entries import ChainEntry
from threadline.model.ids import CallId
from threadline.model.session import Session
from threadline.model.thread import Branch
from threadline.render.html.anchor import anchor, elsewhere
from threadline.render.html.view import Amount, View
from threadline.render.outline import (
    Called,
    Compacted,
    Ended,
    Failed,
    Item,
    Left,
    NewsOf,
    Notice,
    Output,
    Reply,
    Said,
    Thought,
    Told,
    outline,
)
from threadline.render.text import leading

KINDS: dict[type[Item], str] = {
    Said: "prompt",
    Told: "task",
    Reply: "reply",
    Thought: "thinking",
    Called: "call",
    Output: "output",
    Failed: "failure",
    Notice: "notice",
    Ended: "notice",
    Compacted: "compaction",
    Left: "branch",
}
"""What each item is called: its class in the page, and the word that a view filters by."""


class Placed(Struct, frozen=True):
    """An item, the anchor it has in its page, its kind, and the number of the turn it is part of."""

    item: Item
    anchor: str
    kind: str
    turn: int | None = None


def placed(
    agent: Agent, view: View, news: NewsOf | None = None, failing: Collection[CallId] = ()
) -> tuple[Placed, ...]:
    """The items of an agent that a view wants, in order; `failing` are calls whose agents hold what failed."""
    return tuple(one for one in _all(agent, view, news) if _wanted(one, view, failing))


def _all(agent: Agent, view: View, news: NewsOf | None) -> Iterator[Placed]:
    """Every item; the second of an entry's is told from the first by a number."""
    chosen = leading(agent, thread=view.thread, branch=view.branch)
    turns = {id(entry): turn.number for turn in agent.turns for entry in turn.entries}
    own = agent.entries[0].line.transcript if agent.entries else ""
    seen: dict[str, int] = {}
    turn: int | None = None
    made = outline(agent, chosen, beside=view.branch is None and not view.thread, news=news)
    if view.branch is not None:
        made = _on_branch(made, view.branch, agent.branches[view.branch - 1], chosen)
    for item in made:
        there = item.entry.line.transcript
        name = anchor(item.entry, agent.id if there == own else elsewhere(there))
        if not isinstance(item, Left) or item.number == view.branch:
            turn = turns.get(id(item.entry), turn)
        if isinstance(item, Left):
            # The entry itself stands on the branch; a link to it is not to end at the mark of where it was left.
            yield Placed(item, f"{name}-0", KINDS[Left], turn)
            continue
        so_many = seen[name] = seen.get(name, 0) + 1
        if isinstance(item, Said) and item.turn is not None:
            turn = item.turn
        yield Placed(item, name if so_many == 1 else f"{name}-{so_many}", KINDS[type(item)], turn)


def _on_branch(items: Iterable[Item], number: int, branch: Branch, way: Sequence[ChainEntry]) -> Iterator[Item]:
    """The items of a branch and of the way to it, with a mark where it begins, and none of branches elsewhere."""
    own = {id(entry) for entry in branch.entries}
    known = {entry.uuid for entry in way if entry.uuid is not None}
    is_begun = False
    for item in items:
        if isinstance(item, Left):
            if item.number != number and item.branch.fork in known:
                yield item
            continue
        if not is_begun and id(item.entry) in own:
            is_begun = True
            yield Left(item.entry, number, branch, "")
        yield item


def _wanted(one: Placed, view: View, failing: Collection[CallId]) -> bool:
    item = one.item
    if isinstance(item, Notice) and item.quiet and not view.everything:
        return False
    if isinstance(item, Thought) and (view.thinking is Amount.NONE or not (item.text.strip() or view.everything)):
        return False
    if isinstance(item, Called) and view.calls is Amount.NONE:
        return False
    if view.from_turn is not None and (one.turn is None or one.turn < view.from_turn):
        return False
    if view.to_turn is not None and one.turn is not None and one.turn > view.to_turn:
        return False
    return _fits(one, view, failing)


def _fits(one: Placed, view: View, failing: Collection[CallId]) -> bool:
    """Whether it is of a kind, a tool and an outcome that were asked for."""
    item = one.item
    if view.kinds and one.kind not in view.kinds:
        return False
    if view.tools and not (isinstance(item, Called) and item.call.tool in view.tools):
        return False
    if not view.errors:
        return True
    failed = isinstance(item, Called) and (
        item.call.outcome not in (Outcome.OK, Outcome.PENDING) or item.call.id in failing
    )
    return failed or isinstance(item, Failed) or bool(item.entry.problems)


def tools_of(session: Session | Agent) -> dict[str, int]:
    """The tools that were called and how often, most first: what can be filtered by."""
    return _counted(call.tool for call in session.calls)


def _counted(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))
