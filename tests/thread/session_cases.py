"""The cases of the session corpus, and what `out.json` can state about a session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from threadline.model.calls import Call
from threadline.model.entries import Entry
from threadline.model.session import Act, Agent, Branch, Compaction, Continuation, Session, Turn

CORPUS = Path(__file__).parents[1] / "sessions"
CASES = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir())


def folder(case: str) -> Path:
    """Return the project folder of a case."""
    return CORPUS / case / "in"


def transcripts(case: str) -> list[Path]:
    """Return every transcript of a case, of any kind."""
    return sorted(folder(case).rglob("*.jsonl"))


def main_transcripts(case: str) -> list[Path]:
    """Return the main transcripts of a case."""
    return sorted(path for path in folder(case).glob("*.jsonl") if not path.name.startswith("agent-"))


def expected(case: str) -> list[dict[str, Any]]:
    """Return what a case states: an object per session, with the parts that the case is about."""
    sessions: list[dict[str, Any]] = json.loads((CORPUS / case / "out.json").read_bytes())
    return sessions


def uuids(entries: Iterable[Entry]) -> list[str | None]:
    """Return the ids of the entries, in order."""
    return [entry.uuid for entry in entries]


def _uuid(entry: Entry | None) -> str | None:
    return entry.uuid if entry is not None else None


def _act(act: Act) -> dict[str, Any]:
    step = act.rule.split(" ", 1)[0]
    step_or_rule = int(step) if step.isdecimal() else act.rule
    return {"kind": act.kind, "text": act.text, "step": step_or_rule, "entry": act.entry.uuid, "images": act.images}


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "act": turn.act.text if turn.act else None,
        "entries": len(turn.entries),
        "uuids": [entry.uuid for entry in turn.entries if entry.uuid],
        "reply": turn.reply,
        "seconds": turn.duration.total_seconds() if turn.duration is not None else None,
    }


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "tool": call.tool,
        "outcome": call.outcome,
        "answer": _uuid(call.answer),
        "agent": call.agent,
        "started": call.started,
        "turn": call.turn,
        "agent_turn": call.agent_turn,
        "feedback": call.feedback,
        "persisted": call.persisted.name if call.persisted else None,
    }


def _branch(branch: Branch) -> dict[str, Any]:
    return {"fork": branch.fork, "entries": uuids(branch.entries)}


def _compaction(compaction: Compaction) -> dict[str, Any]:
    return {
        "kind": compaction.kind,
        "boundary": _uuid(compaction.boundary),
        "summary": _uuid(compaction.summary),
        "before": compaction.before,
        "dangling": compaction.dangling,
        "trigger": compaction.trigger,
        "tokens_before": compaction.tokens_before,
        "tokens_after": compaction.tokens_after,
        "preserved": list(compaction.preserved),
    }


def _agent(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "kind": agent.kind,
        "side": agent.side,
        "step": agent.link.step,
        "call": agent.link.call,
        "sureness": agent.link.sureness,
        "by": agent.link.agent,
        "why": bool(agent.link.why),
        "status": agent.status,
        "type": agent.type,
        "description": agent.description,
        "prompt": agent.prompt,
        "run": agent.run,
        "team": agent.team,
        "depth": agent.depth,
        "entries": len(agent.entries),
        "first": next((entry.uuid for entry in agent.entries if entry.uuid), None),
        "conversation": uuids(agent.conversation),
        "compactions": [_compaction(compaction) for compaction in agent.compactions],
        "acts": [_act(act) for act in agent.acts],
    }


def _continuation(continuation: Continuation) -> dict[str, Any]:
    return {
        "kind": continuation.kind,
        "session": continuation.session,
        "forward": continuation.forward,
        "copies": len(continuation.copies),
    }


SESSION_PARTS: dict[str, Callable[[Session], Any]] = {
    "id": lambda session: session.id,
    "entries": len,
    "span": lambda session: [moment and moment.isoformat() for moment in session.span],
    "thread": lambda session: uuids(session.thread.visible),
    "leaf": lambda session: session.thread.leaf,
    "leaf_source": lambda session: session.thread.source,
    "conversation": lambda session: uuids(session.conversation),
    "texts": lambda session: {entry.uuid: getattr(entry, "text", None) for entry in session.conversation},
    "branches": lambda session: [_branch(branch) for branch in session.branches],
    "compactions": lambda session: [_compaction(compaction) for compaction in session.compactions],
    "acts": lambda session: [_act(act) for act in session.acts],
    "turns": lambda session: [_turn(turn) for turn in session.turns],
    "calls": lambda session: [_call(call) for call in session.calls],
    "agents": lambda session: [_agent(agent) for agent in session.agents],
    "title": lambda session: {"text": session.title.text, "source": session.title.source},
    "tag": lambda session: session.tag,
    "continuations": lambda session: [_continuation(continuation) for continuation in session.continuations],
}
"""What a case can state of a session. An object in it need state only the keys that the case is about."""


def reduce_to(value: Any, stated: Any) -> Any:
    """Reduce a value to the keys that are stated. Lists are never reduced."""
    if isinstance(value, dict) and isinstance(stated, dict):
        return {key: reduce_to(value.get(key, "no such key"), item) for key, item in stated.items()}
    if isinstance(value, list) and isinstance(stated, list) and len(value) == len(stated):
        return [reduce_to(item, stated_item) for item, stated_item in zip(value, stated, strict=True)]
    return value
