"""Render a session as JSON: facts, turns, and what each agent did, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from threadline.model.calls import Call
from threadline.model.entries import Entry
from threadline.model.session import Agent, Session
from threadline.model.totals import Sum, sum_fields
from threadline.render.items import PlacedItem, place_items
from threadline.render.outline import BranchItem, CallItem, CompactionItem, PromptItem, TaskNotification, TaskUpdateItem
from threadline.render.session_facts import abandoned_turns, group_by_entry
from threadline.render.view import AgentDetail, View

FORMAT_VERSION = 1
"""Which edition of this form it is; a key's meaning does not change within one."""


def session_to_json(
    whole: Session, view: View | None = None, news: Iterable[TaskNotification] = (), total: Sum | None = None
) -> dict[str, Any]:
    """A session as a tree of JSON values; `total` is what it spent."""
    chosen = view or View()
    told = group_by_entry(news)
    started, ended = whole.span
    took = whole.wall_time
    agents = [agent for agent in whole.agents if agent.side is None or chosen.everything]
    return {
        "format": FORMAT_VERSION,
        "session": whole.id,
        "title": whole.title.text,
        "project": whole.cwds[0] if whole.cwds else None,
        "git_branches": list(whole.git_branches),
        "started": _iso_time(started),
        "ended": _iso_time(ended),
        "seconds": took.total_seconds() if took is not None else None,
        "spent": {"tokens": total.tokens, **sum_fields(total)} if total is not None else None,
        "models": list(whole.models),
        "versions": list(whole.versions),
        "entries": len(whole),
        "continuations": [
            {"kind": str(link.kind), "session": link.session, "forward": link.forward} for link in whole.continuations
        ],
        "branch": chosen.branch,
        "branches": list(_branch_rows(whole.main)),
        "turns": [_turn_row(turn) for turn in whole.turns if _is_turn_shown(turn.number, chosen)],
        "items": [_item_row(item) for item in place_items(whole.main, chosen, told)],
        "agents": [_agent_row(agent, chosen, told) for agent in agents]
        if chosen.agents is not AgentDetail.NONE
        else [],
        "problems": [_problem_row(problem.kind, problem.place.line, problem.message) for problem in whole.problems],
    }


def _branch_rows(agent: Agent) -> Iterator[dict[str, Any]]:
    """The branches that were left, each with the numbers of the turns on it."""
    turns = abandoned_turns(agent)
    for number, branch in enumerate(agent.branches, 1):
        on_it = [turn.number for turn in turns.get(number, ())]
        yield {"number": number, "entries": len(branch.entries), "turns": on_it}


def _is_turn_shown(number: int, view: View) -> bool:
    return (view.from_turn is None or number >= view.from_turn) and (view.to_turn is None or number <= view.to_turn)


def _turn_row(turn: Any) -> dict[str, Any]:
    took = turn.duration
    return {
        "number": turn.number,
        "act": str(turn.act.kind) if turn.act is not None else None,
        "prompt": turn.act.text if turn.act is not None else None,
        "started": _iso_time(turn.started),
        "seconds": took.total_seconds() if took is not None else None,
        "reply": turn.reply,
        "entries": len(turn.entries),
        "line": turn.entries[0].line.number,
    }


def _agent_row(agent: Agent, view: View, told: dict[str, list[TaskNotification]]) -> dict[str, Any]:
    return {
        "agent": agent.id,
        "kind": str(agent.kind),
        "type": agent.type,
        "description": agent.description,
        "status": str(agent.status),
        "model": agent.model,
        "call": agent.link.call,
        "sureness": str(agent.link.sureness) if agent.link.sureness is not None else None,
        "items": [_item_row(item) for item in place_items(agent, view, told)],
    }


def _item_row(placed_: PlacedItem) -> dict[str, Any]:
    item = placed_.item
    entry: Entry = item.entry
    return {
        "anchor": placed_.anchor,
        "kind": placed_.kind,
        "turn": placed_.turn,
        "timestamp": _iso_time(entry.timestamp),
        "uuid": entry.uuid,
        **dict(_item_fields(item)),
    }


def _item_fields(item: Any) -> Iterator[tuple[str, Any]]:
    """What an item says, under the names that its kind has."""
    if isinstance(item, PromptItem):
        yield from (("act", str(item.act.kind)), ("text", item.act.text), ("images", item.act.images))
    elif isinstance(item, CallItem):
        yield "call", _call_row(item.call)
    elif isinstance(item, CompactionItem):
        made = item.compaction
        yield "trigger", made.trigger
        yield from (("tokens_before", made.tokens_before), ("tokens_after", made.tokens_after))
        yield "text", made.summary.text if made.summary is not None else ""
    elif isinstance(item, BranchItem):
        yield from (("branch", item.number), ("entries", len(item.branch.entries)), ("text", item.text))
    elif isinstance(item, TaskUpdateItem):
        news = item.news
        yield from (("call", news.call), ("task", news.task), ("status", news.status))
        yield "text", news.result or news.summary or ""
    else:
        if what := getattr(item, "what", None):
            yield "what", what
        yield "text", getattr(item, "text", "")


def _call_row(call: Call) -> dict[str, Any]:
    took = call.duration
    return {
        "id": call.id,
        "tool": call.tool,
        "input": call.input,
        "output": call.output,
        "outcome": str(call.outcome),
        "evidence": call.evidence,
        "seconds": took.total_seconds() if took is not None else None,
        "started": call.started,
        "feedback": call.feedback,
    }


def _problem_row(kind: Any, line: int | None, message: str) -> dict[str, Any]:
    return {"kind": str(kind), "line": line, "message": message}


def _iso_time(value: Any) -> str | None:
    return value.isoformat() if value is not None else None
