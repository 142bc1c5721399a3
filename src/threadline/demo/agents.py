"""Subagents: a transcript of their own where their version puts it, or rows inside the main one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from threadline.demo.desk import Desk
from threadline.demo.scribe import Row, Scribe
from threadline.demo.work import Work

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("general-purpose", "Explore", "code-reviewer", "Plan")


class Errand(msgspec.Struct, frozen=True):
    """What an agent was sent for."""

    kind: str
    description: str
    prompt: str


class Outcome(msgspec.Struct):
    """What came of it, as the main transcript reports it."""

    identity: str
    text: str
    milliseconds: int
    tokens: int
    calls: int
    usage: Row
    sample: list[Row]
    sums: dict[str, list[int]]
    used: dict[str, int]
    lines: int
    size: int


def errand(desk: Desk) -> Errand:
    """Something to send an agent for."""
    words = desk.pools.words
    noun = desk.rng.choice(desk.project.nouns)
    verb = desk.rng.choice(desk.project.verbs)
    prompt = (
        f"Find every place in `{desk.rng.choice(desk.project.folders)}` that may {verb} a {noun}.\n\n"
        f"Context: {words.phrase()}.\n\nReport back:\n1. file and line\n2. whether {words.phrase()}\n"
        '3. anything that looks like a "special case"\n\nDo not change any file.'
    )
    return Errand(desk.rng.choice(KINDS), f"Find who {verb}s the {noun}", prompt)


def new_id(work: Work) -> str:
    """An agent id as long as its version made them."""
    if work.era.writes("iterations"):
        return f"a{work.rng.getrandbits(64):016x}"
    return f"{work.rng.getrandbits(28):07x}" if work.era.writes("agents below") else f"{work.rng.getrandbits(32):08x}"


def path_of(work: Work, identity: str, run: str | None = None) -> Path:
    """Where the agent's transcript goes."""
    folder = work.scribe.path.parent
    if work.era.writes("agents beside"):
        return folder / f"agent-{identity}.jsonl"
    below = folder / work.scribe.session / "subagents"
    if run is not None:
        below = below / "workflows" / run
    return below / f"agent-{identity}.jsonl"


def send(parent: Work, task: Errand, budget: int, facts: dict[str, Any], *, run: str | None = None) -> Outcome:
    """Let an agent work until its transcript has about so many bytes.

    `facts` are the branch, slug and entrypoint that its rows repeat.
    """
    identity = new_id(parent)
    desk = parent.desk
    scribe = Scribe(
        path_of(parent, identity, run),
        era=parent.era,
        rng=parent.rng,
        clock=parent.scribe.clock,
        session=parent.scribe.session,
        cwd=desk.project.path,
        agent=identity,
        **facts,
    )
    scribe.prompt_id = parent.scribe.prompt_id
    own = Desk(
        rng=desk.rng,
        era=desk.era,
        project=desk.project,
        pools=desk.pools,
        session=desk.session,
        root=desk.root,
    )
    work = Work(scribe, own, parent.rng.choice(parent.era.models), budget)
    if parent.era.writes("progress"):
        work.sample = []
    outcome = _work(work, task, identity)
    scribe.close()
    parent.desk.searches += own.searches
    return outcome


def inside(parent: Work, task: Errand, budget: int) -> Outcome:
    """Let an agent work inside the main transcript, as all did until 2.0.27: a tree of its own."""
    scribe = parent.scribe
    tip = scribe.parent
    scribe.parent = None
    work = Work(scribe, parent.desk, parent.model, scribe.size + budget, side=True)
    outcome = _work(work, task, "")
    scribe.parent = tip
    return outcome


def _work(work: Work, task: Errand, identity: str) -> Outcome:
    began = work.scribe.clock.now
    lines = work.scribe.lines
    size = work.scribe.size
    work.user(task.prompt, parent=None)
    work.context.first(work.model)
    while work.left() > 0:
        work.step()
    answer = work.text(900)
    work.message([answer])
    return Outcome(
        identity=identity,
        text=answer["text"],
        milliseconds=work.scribe.clock.now - began,
        tokens=work.meter.context,
        calls=work.calls,
        usage=work.meter.shape(work.count) if work.count else {},
        sample=(work.sample or [])[:6],
        sums=work.meter.sums,
        used=work.used,
        lines=work.scribe.lines - lines,
        size=work.scribe.size - size,
    )


def meta(work: Work, task: Errand, outcome: Outcome, tool: str, *, run: str | None = None) -> None:
    """The sidecar of an agent's transcript."""
    if not work.era.writes("meta.json"):
        return
    facts: Row = {"agentType": task.kind, "description": task.description}
    if work.era.writes("requests"):
        facts = {
            "agentType": task.kind,
            "isBuiltIn": True,
            "launchedWithDefaults": True,
            "description": task.description,
        }
    if work.era.writes("toolUseId in meta"):
        facts |= {"toolUseId": tool, "spawnDepth": 1}
    if work.era.writes("requests"):
        facts |= {"requestShape": "background", "requestNonInteractive": False, "finished": True}
    path = path_of(work, outcome.identity, run).with_suffix(".meta.json")
    path.write_bytes(msgspec.json.encode(facts))


def report(work: Work, task: Errand, outcome: Outcome) -> tuple[list[Row], Row]:
    """Content and `toolUseResult` of a call that waited for its agent."""
    writes = work.era.writes
    said = [{"type": "text", "text": outcome.text}]
    content = list(said)
    result: Row = {}
    if outcome.identity:
        tail = (
            f"agentId: {outcome.identity} (for resuming to continue this agent's work if needed)\n<usage>"
            f"total_tokens: {outcome.tokens}\ntool_uses: {outcome.calls}\n"
            f"duration_ms: {outcome.milliseconds}</usage>"
        )
        content.append({"type": "text", "text": tail})
        result = {"status": "completed", "prompt": task.prompt, "agentId": outcome.identity}
        if writes("toolStats"):
            result["agentType"] = task.kind
    result |= {"content": said}
    if writes("resolvedModel"):
        result["resolvedModel"] = work.model
    result |= {
        "totalDurationMs": outcome.milliseconds,
        "totalTokens": outcome.tokens,
        "totalToolUseCount": outcome.calls,
        "usage": outcome.usage,
    }
    if not outcome.identity:
        result["wasInterrupted"] = False
    if writes("toolStats"):
        result["toolStats"] = {
            "readCount": outcome.used.get("Read", 0),
            "searchCount": outcome.used.get("Grep", 0) + outcome.used.get("Glob", 0),
            "bashCount": outcome.used.get("Bash", 0),
            "editFileCount": outcome.used.get("Edit", 0),
            "linesAdded": 0,
            "linesRemoved": 0,
            "otherToolCount": 0,
        }
    return content, result
