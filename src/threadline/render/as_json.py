"""A session as data: facts, turns, and what each agent did, item by item, under the glossary's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from threadline.model.agent import Agent
from threadline.model.call import Call
from threadline.model.entries import Entry
from threadline.model.session import Session
from threadline.model.sum import Sum, figures
from threadline.render.html.placed import Placed, placed
from threadline.render.html.view import View
from threadline.render.lasting import ends, lasted
from threadline.render.left import left_turns
from threadline.render.options import Agents
from threadline.render.outline import Called, Compacted, Ended, Left, News, Said
from threadline.render.tasks import by_entry

FORMAT = 1
"""Which edition of this form it is; a key's meaning does not change within one."""


def session_value(
    whole: Session, view: View | None = None, news: Iterable[News] = (), total: Sum | None = None
) -> dict[str, Any]:
    """A session as a tree of JSON values; `total` is what it spent."""
    chosen = view or View()
    told = by_entry(news)
    started, ended = ends(whole)
    took = lasted(whole)
    agents = [agent for agent in whole.agents if agent.side is None or chosen.everything]
    return {
        "format": FORMAT,
        "session": whole.id,
        "title": whole.title.text,
        "project": whole.cwds[0] if whole.cwds else None,
        "git_branches": list(whole.git_branches),
        "started": _moment(started),
        "ended": _moment(ended),
        "seconds": took.total_seconds() if took is not None else None,
        "spent": {"tokens": total.tokens, **figures(total)} if total is not None else None,
        "models": list(whole.models),
        "versions": list(whole.versions),
        "entries": len(whole),
        "continuations": [
            {"kind": str(link.kind), "session": link.session, "forward": link.forward} for link in whole.continuations
        ],
        "branch": chosen.branch,
        "branches": list(_branches(whole.main)),
        "turns": [_turn(turn) for turn in whole.turns if _within(turn.number, chosen)],
        "items": [_item(item) for item in placed(whole.main, chosen, told)],
        "agents": [_agent(agent, chosen, told) for agent in agents] if chosen.agents is not Agents.NONE else [],
        "problems": [_problem(problem.kind, problem.place.line, problem.message) for problem in whole.problems],
    }


def _branches(agent: Agent) -> Iterator[dict[str, Any]]:
    """The branches that were left, each with the numbers of the turns on it."""
    turns = left_turns(agent)
    for number, branch in enumerate(agent.branches, 1):
        on_it = [turn.number for turn in turns.get(number, ())]
        yield {"number": number, "entries": len(branch.entries), "turns": on_it}


def _within(number: int, view: View) -> bool:
    return (view.from_turn is None or number >= view.from_turn) and (view.to_turn is None or number <= view.to_turn)


def _turn(turn: Any) -> dict[str, Any]:
    took = turn.duration
    return {
        "number": turn.number,
        "act": str(turn.act.kind) if turn.act is not None else None,
        "prompt": turn.act.text if turn.act is not None else None,
        "started": _moment(turn.started),
        "seconds": took.total_seconds() if took is not None else None,
        "reply": turn.reply,
        "entries": len(turn.entries),
        "line": turn.entries[0].line.number,
    }


def _agent(agent: Agent, view: View, told: dict[str, list[News]]) -> dict[str, Any]:
    return {
        "agent": agent.id,
        "kind": str(agent.kind),
        "type": agent.type,
        "description": agent.description,
        "status": str(agent.status),
        "model": agent.model,
        "call": agent.link.call,
        "sureness": str(agent.link.sureness) if agent.link.sureness is not None else None,
        "items": [_item(item) for item in placed(agent, view, told)],
    }


def _item(placed_: Placed) -> dict[str, Any]:
    item = placed_.item
    entry: Entry = item.entry
    return {
        "anchor": placed_.anchor,
        "kind": placed_.kind,
        "turn": placed_.turn,
        "timestamp": _moment(entry.timestamp),
        "uuid": entry.uuid,
        **dict(_says(item)),
    }


def _says(item: Any) -> Iterator[tuple[str, Any]]:
    """What an item says, under the names that its kind has."""
    if isinstance(item, Said):
        yield from (("act", str(item.act.kind)), ("text", item.act.text), ("images", item.act.images))
    elif isinstance(item, Called):
        yield "call", _call(item.call)
    elif isinstance(item, Compacted):
        made = item.compaction
        yield "trigger", made.trigger
        yield from (("tokens_before", made.tokens_before), ("tokens_after", made.tokens_after))
        yield "text", made.summary.text if made.summary is not None else ""
    elif isinstance(item, Left):
        yield from (("branch", item.number), ("entries", len(item.branch.entries)), ("text", item.text))
    elif isinstance(item, Ended):
        news = item.news
        yield from (("call", news.call), ("task", news.task), ("status", news.status))
        yield "text", news.result or news.summary or ""
    else:
        if what := getattr(item, "what", None):
            yield "what", what
        yield "text", getattr(item, "text", "")


def _call(call: Call) -> dict[str, Any]:
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


def _problem(kind: Any, line: int | None, message: str) -> dict[str, Any]:
    return {"kind": str(kind), "line": line, "message": message}


def _moment(value: Any) -> str | None:
    return value.isoformat() if value is not None else None
