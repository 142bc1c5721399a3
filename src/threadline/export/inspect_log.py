"""Write sessions as an Inspect log (`.eval`), or as a transcript database of Inspect Scout (Parquet).

Each conversation, of a session or of one of its agents, is a sample of the log and a row of the database. Its usage is
what its agent spent, so that those of a session add up to the ledger's total. Neither inspect_ai nor inspect_scout is
needed to write them.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from threadline.export.conversations import (
    NO_RESULT,
    Conversation,
    ExportedSession,
    Step,
    StepCall,
    StepKind,
    conversation_facts,
    iso_time,
    without_none,
)
from threadline.export.leak_check import RecordChecker
from threadline.export.output import StagedFile
from threadline.export.parquet_file import ParquetFile
from threadline.json_values import encode_json
from threadline.model.blocks import RedactedThinkingBlock, TextBlock, ThinkingBlock
from threadline.model.ledger import Sum

_LOG_VERSION = 2
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a file in an archive: the same sessions give the same bytes
_SUMMARY_LENGTH = 1024
_AGENT = "claude-code"


class InspectWriter:
    """Writes a log with a sample for each conversation. Samples are written one after the other."""

    def __init__(self, folder: Path, checker: RecordChecker, name: str) -> None:
        self._name = name
        self._check = checker.check
        self._path = folder / name
        self._archive = zipfile.ZipFile(self._path, "w", zipfile.ZIP_DEFLATED)
        self._summaries: list[dict[str, Any]] = []
        self._usage: dict[str, list[Sum]] = {}
        self._started: list[str] = []
        self._ended: list[str] = []
        self._sessions: list[str] = []

    def add(self, exported: ExportedSession) -> None:
        """Write the samples of a session."""
        self._sessions.append(exported.main.session)
        for conversation in exported.conversations:
            sums = exported.sums_by_model(conversation.charges)
            # The ledger is of the session as it was, not of the redacted copy.
            usage = {self._check({"model": model}, self._name)["model"]: total for model, total in sums.items()}
            for model, total in usage.items():
                self._usage.setdefault(model, []).append(total)
            self._started += filter(None, [iso_time(conversation.started)])
            self._ended += filter(None, [iso_time(conversation.ended)])
            self._write_sample(exported, conversation, {model: _model_usage(total) for model, total in usage.items()})

    def _write_sample(self, exported: ExportedSession, conversation: Conversation, usage: dict[str, Any]) -> None:
        messages = [self._check(message, self._name) for message in chat_messages(conversation)]
        first = next((step.text for step in conversation.steps if step.kind is StepKind.PROMPT), "")
        head = {
            "id": conversation.id,
            "epoch": 1,
            "input": first,
            "target": "",
            "metadata": conversation_facts(exported, conversation),
        }
        head = self._check(head, self._name)
        times = {
            "started_at": iso_time(conversation.started),
            "completed_at": iso_time(conversation.ended),
            "total_time": _seconds(conversation),
        }
        final = next((step for step in reversed(conversation.steps) if step.kind is StepKind.REPLY), None)
        sample = {
            **head,
            "messages": messages,
            "output": {"model": final.model or "" if final is not None else "", "choices": [], "completion": ""},
            "store": {},
            "events": [],
            "model_usage": usage,
            "role_usage": {},
            "attachments": {},
            **without_none(times),
        }
        self._write(f"samples/{conversation.id}_epoch_1.json", sample)
        summary = {
            **head,
            "input": head["input"][:_SUMMARY_LENGTH],
            "model_usage": usage,
            "role_usage": {},
            "completed": True,
            "message_count": len(messages),
            **without_none(times),
        }
        self._summaries.append(summary)

    def finish(self) -> list[StagedFile]:
        """Write the header, and return the file."""
        models = sorted(self._usage, key=lambda model: (-sum(part.tokens for part in self._usage[model]), model))
        ids = [summary["id"] for summary in self._summaries]
        spec = {
            "eval_id": _short_id("eval", *ids),
            "run_id": _short_id("run", *ids),
            "created": max(self._ended, default="1970-01-01T00:00:00Z"),
            "task": "claude-code-sessions",
            "task_id": _short_id("task", *ids),
            "task_version": 0,
            "task_args": {},
            "dataset": {"name": "claude-code-sessions", "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": models[0] if models else "unknown",
            "model_args": {},
            "config": {"epochs": 1},
            "packages": {},
            "metadata": {"source": "threadline", "sessions": len(self._sessions)},
        }
        plan = {"name": "plan", "steps": [], "config": {}}
        stats = {
            "started_at": min(self._started, default=""),
            "completed_at": max(self._ended, default=""),
            "model_usage": {model: _model_usage(Sum.of(self._usage[model])) for model in models},
            "role_usage": {},
        }
        results = {"total_samples": len(ids), "completed_samples": len(ids), "scores": []}
        head = {"version": _LOG_VERSION, "status": "success", "eval": spec, "plan": plan}
        self._write("_journal/start.json", {"version": _LOG_VERSION, "eval": spec, "plan": plan})
        self._write("summaries.json", self._summaries)
        self._write("header.json", {**head, "results": results, "stats": stats})
        self._archive.close()
        return [StagedFile(self._path, self._name)]

    def _write(self, name: str, value: Any) -> None:
        member = zipfile.ZipInfo(name, _EARLIEST)
        member.compress_type = zipfile.ZIP_DEFLATED
        self._archive.writestr(member, encode_json(value))


class ScoutWriter:
    """Writes a transcript database: a folder with a Parquet file that has a row for each conversation."""

    def __init__(self, folder: Path, checker: RecordChecker) -> None:
        self._check = checker.check
        self._name = "transcripts.parquet"
        self._file = ParquetFile(folder / self._name, _SCOUT_COLUMNS)

    def add(self, exported: ExportedSession) -> None:
        """Write the rows of a session."""
        for conversation in exported.conversations:
            messages = [self._check(message, self._name) for message in chat_messages(conversation)]
            total = exported.sum(conversation.charges)
            facts = self._check(conversation_facts(exported, conversation), self._name)
            head = {
                "transcript_id": conversation.id,
                "source_type": "claude_code",
                "source_id": conversation.session,
                "task_set": facts.get("project"),
                "task_id": conversation.session,
                "model": conversation.model,
            }
            text = encode_json(messages).decode()
            self._file.add(
                {
                    **self._check(without_none(head), self._name),
                    "date": iso_time(conversation.started),
                    "task_repeat": 1,
                    "agent": _AGENT,
                    "message_count": len(messages),
                    "total_time": _seconds(conversation),
                    "total_tokens": total.tokens,
                    "trust_content": False,
                    "messages": text,
                    "events": "[]",
                    "total_cost_usd": float(total.amount) if total.amount is not None else None,
                    **{key: facts.get(key) for key in _SCOUT_FACTS},
                },
                len(text),
            )

    def finish(self) -> list[StagedFile]:
        """Complete the file."""
        self._file.close()
        return [StagedFile(self._file.path, self._name)]


_SCOUT_FACTS = ("title", "project", "agent_id", "agent_type", "description", "parent", "version")
_SCOUT_COLUMNS = {
    **dict.fromkeys(
        ("transcript_id", "source_type", "source_id", "date", "task_set", "task_id"),
        "large_string",
    ),
    "task_repeat": "int64",
    "agent": "large_string",
    "model": "large_string",
    "message_count": "int64",
    "total_time": "float64",
    "total_tokens": "int64",
    "trust_content": "bool_",
    "messages": "large_string",
    "events": "large_string",
    "total_cost_usd": "float64",
    **dict.fromkeys(_SCOUT_FACTS, "large_string"),
}


def chat_messages(conversation: Conversation) -> Iterator[dict[str, Any]]:
    """The messages of a conversation in the form of `inspect_ai.model.ChatMessage`. Every call has a result."""
    for number, step in enumerate(conversation.steps):
        id_ = f"{conversation.id}:{number}"
        facts = without_none(
            {
                "timestamp": iso_time(step.timestamp),
                "copied": True if step.is_copied else None,
                "synthetic": True if step.is_synthetic else None,
                "injected": True if step.kind is StepKind.INJECTED else None,
            }
        )
        metadata = {"metadata": facts} if facts else {}
        if step.kind is not StepKind.REPLY:
            yield {"id": id_, "role": "user", "content": step.text, **metadata}
            continue
        calls = [
            {"id": call.id, "function": call.tool, "arguments": call.input, "type": "function"} for call in step.calls
        ]
        reply = {"id": id_, "role": "assistant", "content": list(_content(step)), "model": step.model, **metadata}
        yield without_none({**reply, "tool_calls": calls or None})
        for at, call in enumerate(step.calls):
            yield {"id": f"{id_}.{at}", **_tool_message(call)}


def _content(step: Step) -> Iterator[dict[str, Any]]:
    for part in step.parts:
        if isinstance(part, TextBlock) and part.text:
            yield {"type": "text", "text": part.text}
        elif isinstance(part, ThinkingBlock):
            reasoning = {"type": "reasoning", "reasoning": part.thinking, "redacted": not part.thinking}
            yield without_none({**reasoning, "signature": part.signature})
        elif isinstance(part, RedactedThinkingBlock):
            yield {"type": "reasoning", "reasoning": part.data or "", "redacted": True}


def _tool_message(call: StepCall) -> dict[str, Any]:
    output = call.output if call.output is not None else NO_RESULT
    error = {"type": "unknown", "message": call.outcome} if call.is_error else None
    message = {"role": "tool", "content": output, "tool_call_id": call.id, "function": call.tool, "error": error}
    return without_none(message)


def _model_usage(total: Sum) -> dict[str, Any]:
    return without_none(
        {
            "input_tokens": total.input,
            "output_tokens": total.output,
            "total_tokens": total.tokens,
            "input_tokens_cache_write": total.cache_write,
            "input_tokens_cache_read": total.cache_read,
            "total_cost": float(total.amount) if total.amount is not None else None,
        }
    )


def _seconds(conversation: Conversation) -> float | None:
    if conversation.started is None or conversation.ended is None:
        return None
    return (conversation.ended - conversation.started).total_seconds()


def _short_id(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:22]
