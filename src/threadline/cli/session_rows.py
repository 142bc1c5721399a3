"""Turns, calls, entries and agents of a session as rows: the same keys in every command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadline.cli.entry_text import entry_text
from threadline.model.act import Turn
from threadline.model.call import Call
from threadline.model.entries import Entry
from threadline.render.telling import about


def thread_row(entry: Entry) -> dict[str, Any]:
    """An entry of the active thread, as it can be compared from outside."""
    return {"uuid": entry.uuid, "kind": entry.kind, "place": str(entry.place)}


def entry_row(entry: Entry, turn: int | None, agent: str | None = None) -> dict[str, Any]:
    """An entry of the conversation."""
    return {
        **thread_row(entry),
        "turn": turn,
        "agent": agent,
        "timestamp": entry.timestamp,
        "text": entry_text(entry),
    }


def call_row(call: Call) -> dict[str, Any]:
    """A call, with its input whole and not its output: that can be huge, and its place leads there."""
    took = call.duration
    return {
        "timestamp": call.timestamp,
        "tool": call.tool,
        "input": about(call.tool, call.input),
        "outcome": str(call.outcome),
        "evidence": call.evidence,
        "seconds": took.total_seconds() if took is not None else None,
        "agent": call.agent,
        "turn": call.turn,
        "call": call.id,
        "place": str(call.place),
    }


def turn_row(turn: Turn, calls: Iterable[Call]) -> dict[str, Any]:
    """A turn: what was asked, what was said, and the calls that were made."""
    act = turn.act
    took = turn.duration
    return {
        "number": turn.number,
        "act": str(act.kind) if act is not None else None,
        "prompt": act.text if act is not None else None,
        "started": turn.started,
        "seconds": took.total_seconds() if took is not None else None,
        "reply": turn.reply,
        "calls": [call_row(call) for call in calls],
        "entries": len(turn.entries),
        "place": str(turn.entries[0].place),
    }
