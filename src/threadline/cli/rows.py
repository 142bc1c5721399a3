"""Rows for programs: turns, calls and entries of a session, with the same keys in every command.

Imports the entry model, which is slow: `list`, `usage` and the overview must not import this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from threadline.cli import output as out
from threadline.model.blocks import (
    ContentBlock,
    ImageBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.call_summary import summarize_call
from threadline.model.calls import Call, call_record
from threadline.model.entries import AssistantEntry, Entry, OtherEntry, UserEntry, entry_subtype
from threadline.model.entry_filter import AttributedEntry
from threadline.model.ledger import Sum
from threadline.model.places import SessionId
from threadline.model.session import Turn
from threadline.model.text import extract_text
from threadline.thread import exit_code


def thread_row(entry: Entry) -> dict[str, Any]:
    """An entry of the active thread: enough to compare it with other tools."""
    return {"uuid": entry.uuid, "kind": entry.kind, "place": str(entry.place)}


def conversation_row(entry: Entry, turn: int | None, agent: str | None = None) -> dict[str, Any]:
    """An entry of the conversation."""
    return {
        **thread_row(entry),
        "turn": turn,
        "agent": agent,
        "timestamp": entry.timestamp,
        "text": entry_text(entry),
        **_reply_fields(entry),
    }


def call_row(call: Call, session: SessionId | None, project: str | None) -> dict[str, Any]:
    """A call without its output, which can be huge. `result_place` is where to find it."""
    return call_record(
        session=session,
        project=project,
        timestamp=call.timestamp,
        turn=call.turn,
        agent=call.agent,
        tool=call.tool,
        input_=summarize_call(call.tool, call.input),
        outcome=call.outcome,
        evidence=call.evidence,
        exit_code=exit_code(call),
        duration=call.duration,
        started_agent=call.started,
        call=call.id,
        place=call.place,
        result_place=call.answer.place if call.answer is not None else None,
    )


def turn_row(
    turn: Turn, calls: Iterable[Call], session: SessionId | None, project: str | None, cost: Sum
) -> dict[str, Any]:
    """A turn: its prompt, reply and calls, and what it spent, including the agents that it started."""
    act = turn.act
    duration = turn.duration
    return {
        "number": turn.number,
        "act": str(act.kind) if act is not None else None,
        "prompt": act.text if act is not None else None,
        "started": turn.started,
        "seconds": duration.total_seconds() if duration is not None else None,
        "reply": turn.reply,
        "stop_reason": _last_stop_reason(turn),
        "calls": [call_row(call, session, project) for call in calls],
        "entries": len(turn.entries),
        "tokens": cost.tokens,
        "amount": cost.amount,
        "place": str(turn.entries[0].place),
    }


def _last_stop_reason(turn: Turn) -> str | None:
    """Why the model stopped at the end of a turn."""
    reasons = (entry.stop_reason for entry in reversed(turn.entries) if isinstance(entry, AssistantEntry))
    return next((reason for reason in reasons if reason is not None), None)


def entry_row(attributed: AttributedEntry, *, data: bool = False) -> dict[str, Any]:
    """An entry of a transcript; with `data`, including its own JSON."""
    entry = attributed.entry
    row: dict[str, Any] = {
        "place": str(entry.place),
        "line": entry.line.number,
        "offset": entry.line.offset,
        "length": len(entry.raw),
        "kind": entry.kind,
        "subtype": entry_subtype(entry),
        "uuid": entry.uuid,
        "parent_uuid": getattr(entry, "parent_uuid", None),
        "session": attributed.session,
        "agent": attributed.agent,
        "is_agent": attributed.is_agent,
        "timestamp": entry.timestamp,
        "version": getattr(entry, "version", None),
        "slug": getattr(entry, "slug", None),
        **_reply_fields(entry),
        "text": entry_text(entry),
        "problems": [
            {"kind": str(problem.kind), "place": str(problem.place), "message": problem.message}
            for problem in attributed.problems
        ],
    }
    if data:
        row["data"] = _entry_data(entry)
    return row


def _reply_fields(entry: Entry) -> dict[str, Any]:
    """The request that an entry belongs to; of a reply, why it stopped, and the service tier."""
    return {
        "request": getattr(entry, "request_id", None),
        "stop_reason": entry.stop_reason if isinstance(entry, AssistantEntry) else None,
        "service_tier": entry.service_tier if isinstance(entry, AssistantEntry) else None,
    }


def _entry_data(entry: Entry) -> Any:
    """The entry's JSON; its text if that is nested too deeply to be encoded again."""
    try:
        out.json_text([entry.data])
    except RecursionError:
        return entry.raw.decode(errors="replace")
    return entry.data


# An entry that could not be parsed may have gigabytes; this much is enough to recognise it.
_MAX_RAW_BYTES = 4096
# The most descriptive field of each kind without a message, in order of preference.
_DESCRIPTIVE_FIELDS = (
    "ai_title",
    "custom_title",
    "summary",
    "last_prompt",
    "tag",
    "agent_name",
    "agent_color",
    "agent_setting",
    "mode",
    "permission_mode",
    "pr_url",
    "frame_url",
    "relocated_cwd",
    "continued_in_session_id",
    "tracking_path",
    "total_cost_usd",
    "query_source",
    "shape_hash",
    "hash",
    "key",
)
_INPUT_FIELDS = ("command", "file_path", "pattern", "query", "url", "description", "prompt", "subject", "skill", "path")


def entry_text(entry: Entry) -> str:
    """An entry's text, calls and results, or its most descriptive field."""
    if isinstance(entry, UserEntry | AssistantEntry):
        blocks = entry.message.blocks if entry.message is not None else ()
        return "\n".join(text for block in blocks for text in _block_texts(block))
    if isinstance(entry, OtherEntry):
        problem = entry.problems[0].message if entry.problems else ""
        return problem or entry.raw[:_MAX_RAW_BYTES].decode(errors="replace").strip("\0 \t\r\n")
    return _content_text(entry) or _descriptive_text(entry)


def _block_texts(block: ContentBlock) -> Iterator[str]:
    match block:
        case TextBlock():
            yield block.text
        case ThinkingBlock():
            yield f"(thinking) {block.thinking}"
        case ToolUseBlock() | ServerToolUseBlock():
            yield f"{block.name}({_input_text(block.input)})"
        case ToolResultBlock():
            yield f"{'error' if block.is_error else 'result'}: {extract_text(block.content)}"
        case ImageBlock():
            yield "(image)"
        case _:
            yield f"({block.type})"


def _input_text(value: Any) -> str:
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    values = (value[name] for name in _INPUT_FIELDS if isinstance(value.get(name), str))
    return next(values, ", ".join(map(str, value)))


def _content_text(entry: Entry) -> str:
    attachment = getattr(entry, "attachment", None)
    progress = getattr(entry, "progress", None)
    holders = (entry, attachment, progress)
    for holder in holders:
        for name in ("content", "prompt", "text", "command", "filename", "output", "query", "operation"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value:
                return value
            if isinstance(value, list) and (text := extract_text(value)):
                return text
    return ""


def _descriptive_text(entry: Entry) -> str:
    values = (getattr(entry, name, None) for name in _DESCRIPTIVE_FIELDS)
    return next((str(value) for value in values if value is not None), "")
