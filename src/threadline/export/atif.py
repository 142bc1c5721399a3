"""Write sessions as Harbor trajectories: the Agent Trajectory Interchange Format, version 1.8.

A session is one JSON document. Its subagents are embedded in `subagent_trajectories` of the document, and the results
of the calls that started them refer to them. `final_metrics` of the document is the ledger's total: tokens and cost of
the session and all its agents. Messages that are not steps, such as those on abandoned branches, are counted in
`final_metrics.extra.outside_steps`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from threadline.export.conversations import Conversation, ExportedSession, Step, StepKind, iso_time, without_none
from threadline.export.leak_check import RecordChecker
from threadline.export.output import StagedFile
from threadline.json_values import encode_json
from threadline.model.ledger import Charge, Sum

SCHEMA_VERSION = "ATIF-v1.8"
_SOURCES = {StepKind.PROMPT: "user", StepKind.INJECTED: "system", StepKind.REPLY: "agent"}
_OUTSIDE_NOTE = (
    "final_metrics includes messages that are not among the steps, such as those of abandoned branches:"
    " see final_metrics.extra.outside_steps."
)


class AtifWriter:
    """Writes a trajectory for each session."""

    def __init__(self, folder: Path, checker: RecordChecker) -> None:
        self._folder = folder
        self._check = checker.check
        self._files: list[StagedFile] = []

    def add(self, exported: ExportedSession) -> None:
        """Write the trajectory of a session."""
        name = f"{exported.copy.name}.atif.json"
        document = self._trajectory(exported, exported.main, name)
        children = [self._trajectory(exported, part, name) for part in exported.conversations[1:]]
        if children:
            document["subagent_trajectories"] = children
        path = self._folder / name
        path.write_bytes(encode_json(document) + b"\n")
        self._files.append(StagedFile(path, name, exported.copy.name))

    def finish(self) -> list[StagedFile]:
        """The files that were written."""
        return self._files

    def _trajectory(self, exported: ExportedSession, conversation: Conversation, name: str) -> dict[str, Any]:
        is_main = conversation is exported.main
        steps = [
            self._check(_step(exported, step, number), name)
            for number, step in enumerate(conversation.steps or [_EMPTY_STEP], 1)
        ]
        total = exported.ledger.total if is_main else exported.sum(_charges_below(exported, conversation))
        facts = _session_facts(exported) if is_main else _agent_facts(conversation)
        head = {
            "schema_version": SCHEMA_VERSION,
            "session_id": conversation.session,
            "trajectory_id": conversation.id,
            "agent": without_none(
                {
                    "name": "claude-code" if is_main else conversation.type or "agent",
                    "version": conversation.version or "unknown",
                    "model_name": conversation.model,
                }
            ),
            "notes": _OUTSIDE_NOTE if conversation.outside else None,
            "extra": facts or None,
        }
        return {
            **self._check(without_none(head), name),
            "steps": steps,
            "final_metrics": _final_metrics(total, exported.sum(conversation.outside), len(steps)),
        }


_EMPTY_STEP = Step(StepKind.INJECTED, None, None)  # a trajectory needs a step, even if nothing was said


def _charges_below(exported: ExportedSession, conversation: Conversation) -> list[Charge]:
    """The charges of an agent and of the agents below it. The documents of agents are next to each other."""
    below = {conversation.id: conversation}
    pending = [conversation.id]
    while pending:
        parent = pending.pop()
        for part in exported.conversations[1:]:
            if part.parent == parent and part.id not in below:
                below[part.id] = part
                pending.append(part.id)
    return [charge for part in below.values() for charge in part.charges]


def _session_facts(exported: ExportedSession) -> dict[str, Any]:
    session = exported.session
    return without_none(
        {
            "title": session.title.text or None,
            "project": session.cwds[0] if session.cwds else None,
            "git_branches": list(session.git_branches) or None,
            "started": iso_time(session.started),
            "ended": iso_time(session.ended),
        }
    )


def _agent_facts(conversation: Conversation) -> dict[str, Any]:
    return without_none(
        {"description": conversation.description, "tool_call_id": conversation.call, "parent": conversation.parent}
    )


def _step(exported: ExportedSession, step: Step, number: int) -> dict[str, Any]:
    head = {
        "step_id": number,
        "timestamp": iso_time(step.timestamp),
        "source": _SOURCES[step.kind],
        "message": step.text,
        "is_copied_context": True if step.is_copied else None,
    }
    if step.kind is not StepKind.REPLY:
        return without_none(head)
    is_model = not step.is_synthetic
    thinking = step.thinking if is_model else ""
    calls = [{"tool_call_id": call.id, "function_name": call.tool, "arguments": call.input} for call in step.calls]
    results = [
        without_none(
            {
                "source_call_id": call.id,
                "content": call.output,
                "subagent_trajectory_ref": [
                    {"trajectory_id": agent, "session_id": exported.main.session} for agent in call.agents
                ]
                or None,
                "extra": {"outcome": call.outcome} if call.outcome != "ok" else None,
            }
        )
        for call in step.calls
        if call.output is not None or call.agents
    ]
    reply = {
        "model_name": step.model if is_model else None,
        "reasoning_effort": step.effort,
        "reasoning_content": thinking or None,
        "tool_calls": calls or None,
        "observation": {"results": results} if results else None,
        "metrics": _metrics(exported.sum(step.charges)) if step.charges and is_model else None,
        "llm_call_count": 1 if is_model else 0,
        "extra": without_none({"message_id": step.id, "stop_reason": step.stop_reason}) or None,
    }
    return without_none({**head, **reply})


def _metrics(total: Sum) -> dict[str, Any]:
    return without_none(
        {
            "prompt_tokens": total.tokens - total.output,
            "completion_tokens": total.output,
            "cached_tokens": total.cache_read,
            "cost_usd": float(total.amount) if total.amount is not None else None,
            "extra": {"cache_write_tokens": total.cache_write} if total.cache_write else None,
        }
    )


def _final_metrics(total: Sum, outside: Sum, steps: int) -> dict[str, Any]:
    extra = {
        "total_cache_write_tokens": total.cache_write,
        "charges": total.charges,
        "unpriced_charges": total.unpriced,
        "outside_steps": _metrics(outside) if outside.charges else None,
    }
    return without_none(
        {
            "total_prompt_tokens": total.tokens - total.output,
            "total_completion_tokens": total.output,
            "total_cached_tokens": total.cache_read,
            "total_cost_usd": float(total.amount) if total.amount is not None else None,
            "total_steps": steps,
            "extra": without_none(extra),
        }
    )
