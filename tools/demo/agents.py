"""An agent working in one transcript, and the subagents it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tools.demo import tool_calls
from tools.demo.context import Context
from tools.demo.templates import EMOJI
from tools.demo.text import article
from tools.demo.tool_calls import Workspace
from tools.demo.usage import UsageCounter
from tools.demo.writer import Row, TranscriptWriter, identifier, uuid

if TYPE_CHECKING:
    from pathlib import Path

    from tools.demo.tool_calls import Call
    from tools.demo.usage import Count

_HUGE = 2_000_000
"""From this number of remaining bytes on, a single line may take a large part of them."""
_PLACEHOLDERS = (1, 2, 3, 4, 5, 8)


class AgentWork:
    """Writes messages and calls of one agent until its transcript has its planned size."""

    def __init__(
        self, writer: TranscriptWriter, workspace: Workspace, model: str, budget: int, *, side: bool | None = None
    ) -> None:
        self.writer = writer
        self.workspace = workspace
        self.era = writer.era
        self.rng = writer.rng
        self.model = model
        self.budget = budget
        self.side = side
        self.meter = UsageCounter(self.era, self.rng, hour=writer.agent is None)
        self.context = Context(writer, workspace, side=side)
        self.count: Count | None = None
        self.calls = 0
        self.used: dict[str, int] = {}
        self.sample: list[Row] | None = None
        """Rows that a parent may show as the progress of this agent."""
        kinds = [(weight, make) for weight, need, make in tool_calls.CHOICES if need is None or self.era.writes(need)]
        self._weights = [weight for weight, _ in kinds]
        self._makers = [make for _, make in kinds]

    def left(self) -> int:
        """Bytes still to be written."""
        return self.budget - self.writer.size

    def user(self, content: Any, *, parent: Any = ..., prompt: bool = True, **more: Any) -> str:
        """A user row; `more` are the fields after the time."""
        before: Row = {
            name: more.pop(name) for name in ("isMeta", "isVisibleInTranscriptOnly", "isCompactSummary") if name in more
        }
        message = {"role": "user", "content": content}
        body: Row = {"type": "user", "message": message, **before, **self.writer.stamp(), **more}
        start = self.writer.size
        identity = self.writer.chain(body, parent=parent, side=self.side, prompt=prompt)
        self.meter.pending += (self.writer.size - start) // (2 if "toolUseResult" in more else 1)
        return identity

    def message(self, blocks: list[Row]) -> list[str]:
        """Write an assistant message, one row per block; returns the uuids of the rows."""
        writer = self.writer
        era = self.era
        size = sum(len(str(block.get("input") or block.get("text") or block.get("thinking") or "")) for block in blocks)
        count = self.count = self.meter.message(self.model, size)
        request = self.context.request(self.model)
        message_id = identifier(self.rng, "msg")
        request_id = identifier(self.rng, "req", 20)
        stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        final = era.writes("final usage") or self.workspace.chance(0.0 if era.writes("progress") else 0.6)
        placeholder = _PLACEHOLDERS[int(self.rng.random() * len(_PLACEHOLDERS))]
        rows = []
        for index, block in enumerate(blocks):
            writer.clock.tick(int(self.rng.random() * 2_400) + 40)
            ended = era.writes("every row final") or (final and index == len(blocks) - 1)
            usage = self.meter.shape(count, None if ended else placeholder)
            message = self._shape(message_id, block, usage, stop if ended else None)
            body = self._body(message, index, count, request_id, request)
            rows.append(writer.chain(body, side=self.side))
            if self.sample is not None:
                self.sample.append({"type": "assistant", "message": message, "requestId": request_id})
        return rows

    def _shape(self, identity: str, block: Row, usage: Row, stop: str | None) -> Row:
        writes = self.era.writes
        if writes("requests"):
            message: Row = {"id": identity, "type": "message", "role": "assistant", "model": self.model}
            return message | {
                "stop_sequence": None,
                "content": [block],
                "stop_reason": stop,
                "usage": usage,
                "stop_details": None,
            }
        if writes("model first"):
            message = {"model": self.model, "id": identity, "type": "message", "role": "assistant"}
        else:
            message = {"id": identity, "type": "message", "role": "assistant", "model": self.model}
        message |= {"content": [block], "stop_reason": stop, "stop_sequence": None}
        if writes("stop_details"):
            message["stop_details"] = None
        message["usage"] = usage
        if writes("diagnostics"):
            message["diagnostics"] = None
        return message

    def _body(self, message: Row, index: int, count: Count, request_id: str, request: str | None) -> Row:
        writes = self.era.writes
        body: Row = {"message": message}
        if writes("costUSD"):
            cost = self.meter.cost(self.model, count) if index == 0 else 0
            body |= {"costUSD": cost, "durationMs": 900 + count.output * 17}
        if request is not None:
            body["apiBlockIndex"] = index
        if writes("requestId"):
            body["requestId"] = request_id
        if request is not None:
            body |= {"requestRef": request, "requestedModel": self.model, "promptCacheRequested": "1h"}
        body |= {"type": "assistant", **self.writer.stamp()}
        if writes("effort"):
            body["effort"] = "medium"
        return body

    def thinking(self) -> Row:
        """A thinking block; newer versions keep only the signature."""
        text = self.workspace.pools.thought.take(self.rng, self.workspace.length(900, 0.8, copies=2))
        signature = self.workspace.pools.signature(self.rng, self.workspace.length(500 + len(text) // 2, 0.5, copies=3))
        hidden = self.era.writes("empty thinking") and self.workspace.chance(0.8)
        return {"type": "thinking", "thinking": "" if hidden else text, "signature": signature}

    def text(self, median: int = 350) -> Row:
        """A text block."""
        text = self.workspace.pools.reply.take(self.rng, self.workspace.length(median, 0.9, copies=1.2)).strip()
        if self.workspace.chance(0.06):
            text = f"{self.rng.choice(EMOJI)} {text}"
        return {"type": "text", "text": text or "Done."}

    def say(self) -> Row:
        """A sentence or two before a call."""
        if self.workspace.chance(0.3):
            return self.text(500)
        return {"type": "text", "text": self.workspace.pools.narration.take(self.rng, self.workspace.length(120, 0.7))}

    def call(self, call: Call) -> Row:
        """The block that asks for a tool."""
        block = {
            "type": "tool_use",
            "id": identifier(self.rng, "toolu"),
            "name": call.name,
            "input": call.input,
        }
        if self.era.writes("caller"):
            block["caller"] = {"type": "direct"}
        return block

    def choose(self) -> Call:
        """A random tool call."""
        if self.left() > _HUGE and self.workspace.chance(0.0015):
            self.workspace.room = min(self.left() // 2, 1_600_000)
            return tool_calls.dump(self.workspace)
        self.workspace.room = max(700, min(self.left(), 120_000))
        return self.rng.choices(self._makers, self._weights)[0](self.workspace)

    def step(self) -> None:
        """A message that calls tools, and their results."""
        blocks = []
        if self.workspace.chance(0.3):
            blocks.append(self.thinking())
        if self.workspace.chance(0.35):
            blocks.append(self.say())
        many = int(self.rng.random() * 4) if self.workspace.chance(0.18) else 1
        calls = [self.choose() for _ in range(max(1, many))]
        self.run(blocks, calls)

    def run(self, blocks: list[Row], calls: list[Call]) -> list[str]:
        """Write a message with these calls and then their results; returns the tool ids."""
        call_blocks = [self.call(call) for call in calls]
        rows = self.message(blocks + call_blocks)[-len(calls) :]
        for call, block, row in zip(calls, call_blocks, rows, strict=True):
            self.calls += 1
            self.used[call.name] = self.used.get(call.name, 0) + 1
            self.context.before(call, block["id"], row)
            self.writer.clock.tick(int(self.rng.random() * 3_000) + 20)
            self.result(call, block["id"], row)
        self.context.after(calls[-1], call_blocks[-1]["id"])
        return [block["id"] for block in call_blocks]

    def result(self, call: Call, tool: str, row: str) -> str:
        """The row of a result, whose parent is the row of its call."""
        if call.error:
            block: Row = {
                "type": "tool_result",
                "content": call.content,
                "is_error": True,
                "tool_use_id": tool,
            }
        else:
            block = {"tool_use_id": tool, "type": "tool_result", "content": call.content}
            if call.flagged:
                block["is_error"] = False
        more: Row = {}
        bare = self.writer.agent is not None and self.era.writes("agents below")
        if call.result is not None and not (bare and self.workspace.chance(0.9)):
            more["toolUseResult"] = call.result
        if self.era.writes("toolDenialKind") and call.content == DENIED:
            more["toolDenialKind"] = "user-rejected"
        if self.era.writes("sourceToolAssistantUUID"):
            more["sourceToolAssistantUUID"] = row
        if self.sample is not None:
            message = {"role": "user", "content": [block]}
            self.sample.append({"type": "user", "message": message, "uuid": uuid(self.rng)})
        return self.user([block], parent=row, **more)


DENIED = "The user doesn't want to proceed with this tool use. Wait for what they say next."


KINDS = ("general-purpose", "Explore", "code-reviewer", "Plan")


class AgentTask(msgspec.Struct, frozen=True):
    """The task of an agent."""

    kind: str
    description: str
    prompt: str


class Outcome(msgspec.Struct):
    """The result of an agent, as the main transcript reports it."""

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


def new_task(workspace: Workspace) -> AgentTask:
    """A random task for an agent."""
    words = workspace.pools.words
    noun = workspace.rng.choice(workspace.project.nouns)
    verb = workspace.rng.choice(workspace.project.verbs)
    folder = workspace.rng.choice(workspace.project.folders)
    prompt = (
        f"Find every place in `{folder}` that may {verb} {article(noun)} {noun}.\n\n"
        f"Context: {words.phrase()}.\n\nReport back:\n1. file and line\n2. whether {words.phrase()}\n"
        '3. anything that looks like a "special case"\n\nDo not change any file.'
    )
    return AgentTask(workspace.rng.choice(KINDS), f"Find who {verb}s the {noun}", prompt)


def new_id(work: AgentWork) -> str:
    """An agent id of the length that its version uses."""
    if work.era.writes("iterations"):
        return f"a{work.rng.getrandbits(64):016x}"
    return f"{work.rng.getrandbits(28):07x}" if work.era.writes("agents below") else f"{work.rng.getrandbits(32):08x}"


def path_of(work: AgentWork, identity: str, run: str | None = None) -> Path:
    """The path of the agent's transcript."""
    folder = work.writer.path.parent
    if work.era.writes("agents beside"):
        return folder / f"agent-{identity}.jsonl"
    below = folder / work.writer.session / "subagents"
    if run is not None:
        below = below / "workflows" / run
    return below / f"agent-{identity}.jsonl"


def send(parent: AgentWork, task: AgentTask, budget: int, facts: dict[str, Any], *, run: str | None = None) -> Outcome:
    """Let an agent work until its transcript has about that many bytes.

    `facts` are the branch, slug and entrypoint that its rows repeat.
    """
    identity = new_id(parent)
    workspace = parent.workspace
    writer = TranscriptWriter(
        path_of(parent, identity, run),
        era=parent.era,
        rng=parent.rng,
        clock=parent.writer.clock,
        session=parent.writer.session,
        cwd=workspace.project.path,
        agent=identity,
        **facts,
    )
    writer.prompt_id = parent.writer.prompt_id
    own = Workspace(
        rng=workspace.rng,
        era=workspace.era,
        project=workspace.project,
        pools=workspace.pools,
        session=workspace.session,
        root=workspace.root,
    )
    work = AgentWork(writer, own, parent.rng.choice(parent.era.models), budget)
    if parent.era.writes("progress"):
        work.sample = []
    outcome = _work(work, task, identity)
    writer.close()
    parent.workspace.searches += own.searches
    return outcome


def inside(parent: AgentWork, task: AgentTask, budget: int) -> Outcome:
    """Let an agent work inside the main transcript, in its own tree, as all agents did until 2.0.27."""
    writer = parent.writer
    tip = writer.parent
    writer.parent = None
    work = AgentWork(writer, parent.workspace, parent.model, writer.size + budget, side=True)
    outcome = _work(work, task, "")
    writer.parent = tip
    return outcome


def _work(work: AgentWork, task: AgentTask, identity: str) -> Outcome:
    began = work.writer.clock.now
    lines = work.writer.lines
    size = work.writer.size
    work.user(task.prompt, parent=None)
    work.context.first(work.model)
    while work.left() > 0:
        work.step()
    answer = work.text(900)
    work.message([answer])
    return Outcome(
        identity=identity,
        text=answer["text"],
        milliseconds=work.writer.clock.now - began,
        tokens=work.meter.context,
        calls=work.calls,
        usage=work.meter.shape(work.count) if work.count else {},
        sample=(work.sample or [])[:6],
        sums=work.meter.sums,
        used=work.used,
        lines=work.writer.lines - lines,
        size=work.writer.size - size,
    )


def meta(work: AgentWork, task: AgentTask, outcome: Outcome, tool: str, *, run: str | None = None) -> None:
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


def report(work: AgentWork, task: AgentTask, outcome: Outcome) -> tuple[list[Row], Row]:
    """Content and `toolUseResult` of a call that waited for its agent."""
    writes = work.era.writes
    text_blocks = [{"type": "text", "text": outcome.text}]
    content = list(text_blocks)
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
    result |= {"content": text_blocks}
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
