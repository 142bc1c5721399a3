"""Render a session as JSON: facts, turns, and what each agent did, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, Entry
from threadline.model.ledger import Sum, sum_fields
from threadline.model.places import Problem
from threadline.model.session import Agent, Session, Turn
from threadline.render.items import PlacedItem, place_items
from threadline.render.outline import (
    BranchItem,
    CallItem,
    CompactionItem,
    Detail,
    PromptItem,
    TaskNotification,
    TaskUpdateItem,
    View,
)
from threadline.render.session_facts import abandoned_turns, agents_in_view, continuation_record, group_by_entry

FORMAT_VERSION = 2
"""The version of the format. The meaning of a key never changes within a version."""


def session_to_json(
    session: Session, view: View | None = None, notifications: Iterable[TaskNotification] = (), total: Sum | None = None
) -> dict[str, Any]:
    """A session as JSON values. `total` is its usage and cost."""
    settings = view or View()
    by_entry = group_by_entry(notifications)
    started, ended = session.span
    duration = session.wall_time
    environment = session.environment
    return {
        "format": FORMAT_VERSION,
        "session": session.id,
        "title": session.title.text,
        "project": session.cwds[0] if session.cwds else None,
        "git_branches": list(session.git_branches),
        "started": _iso_time(started),
        "ended": _iso_time(ended),
        "seconds": duration.total_seconds() if duration is not None else None,
        "spent": {"tokens": total.tokens, **sum_fields(total)} if total is not None else None,
        "models": list(session.models),
        "versions": list(session.versions),
        "slug": session.slug,
        "platform": environment.platform if environment is not None else None,
        "os_version": environment.os_version if environment is not None else None,
        "entries": len(session),
        "continuations": [continuation_record(link) for link in session.continuations],
        "branch": settings.branch,
        "branches": list(_branch_rows(session.main)),
        "turns": [_turn_row(turn) for turn in session.turns if settings.shows_turn(turn.number)],
        "items": [_item_row(item) for item in place_items(session.main, settings, by_entry)],
        "agents": [_agent_row(agent, settings, by_entry) for agent in agents_in_view(session, settings)]
        if settings.agents is not Detail.NONE
        else [],
        "problems": list(map(_problem_row, session.problems)),
    }


def _branch_rows(agent: Agent) -> Iterator[dict[str, Any]]:
    """The abandoned branches, each with the numbers of its turns."""
    turns = abandoned_turns(agent)
    for number, branch in enumerate(agent.branches, 1):
        turn_numbers = [turn.number for turn in turns.get(number, ())]
        yield {"number": number, "entries": len(branch.entries), "turns": turn_numbers}


def _turn_row(turn: Turn) -> dict[str, Any]:
    duration = turn.duration
    return {
        "number": turn.number,
        "act": str(turn.act.kind) if turn.act is not None else None,
        "prompt": turn.act.text if turn.act is not None else None,
        "started": _iso_time(turn.started),
        "seconds": duration.total_seconds() if duration is not None else None,
        "reply": turn.reply,
        "entries": len(turn.entries),
        "line": turn.entries[0].line.number,
    }


def _agent_row(agent: Agent, view: View, notifications: dict[str, list[TaskNotification]]) -> dict[str, Any]:
    return {
        "agent": agent.id,
        "kind": str(agent.kind),
        "type": agent.type,
        "description": agent.description,
        "status": str(agent.status),
        "model": agent.model,
        "call": agent.link.call,
        "sureness": str(agent.link.sureness) if agent.link.sureness is not None else None,
        "items": [_item_row(item) for item in place_items(agent, view.inside, notifications)],
    }


def _item_row(placed_item: PlacedItem) -> dict[str, Any]:
    item = placed_item.item
    entry: Entry = item.entry
    return {
        "anchor": placed_item.anchor,
        "kind": placed_item.kind,
        "turn": placed_item.turn,
        "timestamp": _iso_time(entry.timestamp),
        "uuid": entry.uuid,
        **(_reply_fields(entry) if isinstance(entry, AssistantEntry) else {}),
        **dict(_item_fields(item)),
    }


def _reply_fields(entry: AssistantEntry) -> dict[str, Any]:
    """What an item of a reply has in addition."""
    return {"request": entry.request_id, "stop_reason": entry.stop_reason, "service_tier": entry.service_tier}


def _item_fields(item: Any) -> Iterator[tuple[str, Any]]:
    """The fields of an item, which depend on its kind."""
    if isinstance(item, PromptItem):
        yield from (("act", str(item.act.kind)), ("text", item.act.text), ("images", item.act.images))
    elif isinstance(item, CallItem):
        yield "call", _call_row(item.call)
    elif isinstance(item, CompactionItem):
        compaction = item.compaction
        yield "trigger", compaction.trigger
        yield from (("tokens_before", compaction.tokens_before), ("tokens_after", compaction.tokens_after))
        yield "text", compaction.summary.text if compaction.summary is not None else ""
    elif isinstance(item, BranchItem):
        yield from (("branch", item.number), ("entries", len(item.branch.entries)), ("text", item.text))
    elif isinstance(item, TaskUpdateItem):
        notification = item.notification
        yield from (("call", notification.call), ("task", notification.task), ("status", notification.status))
        yield "text", notification.result or notification.summary or ""
    else:
        if what := getattr(item, "what", None):
            yield "what", what
        yield "text", getattr(item, "text", "")


def _call_row(call: Call) -> dict[str, Any]:
    duration = call.duration
    return {
        "call": call.id,
        "tool": call.tool,
        "input": call.input,
        "output": call.output,
        "outcome": str(call.outcome),
        "evidence": call.evidence,
        "seconds": duration.total_seconds() if duration is not None else None,
        "started_agent": call.started,
        "feedback": call.feedback,
    }


def _problem_row(problem: Problem) -> dict[str, Any]:
    return {"kind": str(problem.kind), "line": problem.place.line, "message": problem.message}


def _iso_time(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None
