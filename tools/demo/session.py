"""Generate one session turn by turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tools.demo import agents, events, templates
from tools.demo.agents import AgentWork
from tools.demo.tool_calls import HOME, Call, Workspace
from tools.demo.usage import totals
from tools.demo.writer import Clock, Row, TranscriptWriter, uuid

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tools.demo.projects import Project, Task
    from tools.demo.text import Pools
    from tools.demo.versions import VersionFeatures

_RESERVE = 3_500
"""Bytes that the last message and the closing rows take."""
_PACE = 600_000_000_000
_QUICK = 1_000_000
_SEGMENT = 1_400_000
"""Bytes of transcript after which a context is full."""


class Plan(msgspec.Struct):
    """The plan of a session."""

    identity: str
    project: Project
    era: VersionFeatures
    size: int
    start: int
    """Milliseconds."""
    task: Task
    agents: list[int] = []
    """The sizes of the transcripts of its agents."""
    scenes: frozenset[str] = frozenset()
    """What happens in it: keys of `events.SCENES`, or `torn`, `live`, `workflow`."""
    copies: str | None = None
    """The session whose rows it begins with: a resume of the old kind, or a fork."""
    kept: bool = False
    """Whether another session copies this one."""


class SessionResult(msgspec.Struct):
    """What is known about a session once it is written."""

    plan: Plan
    prompts: list[tuple[int, str]]
    end: int
    lines: int
    size: int
    agents: int
    tip: str | None
    rows: list[bytes] | None
    model: str
    calls: int
    messages: int
    todos: list[Row]
    tasks: list[Row]
    edited: dict[str, int]
    slug: str
    sums: dict[str, list[int]]
    searches: int


class Session:
    """Writes one session and the transcripts of its agents."""

    def __init__(self, plan: Plan, root: Path, rng: Random, pools: Pools) -> None:
        self.plan = plan
        self.rng = rng
        self.clock = Clock(plan.start)
        era = plan.era
        self.slug = "-".join((rng.choice(templates.MOODS), rng.choice(templates.MOTIONS), rng.choice(templates.BEINGS)))
        self.facts: dict[str, Any] = {
            "branch": plan.task.branch,
            "slug": self.slug if rng.randrange(4) else None,
            "entrypoint": "claude-desktop" if "\\" in plan.project.path else rng.choice(("cli", "cli", "sdk-cli")),
        }
        path = root / "projects" / plan.project.folder / f"{plan.identity}.jsonl"
        cwd = plan.project.path
        self.writer = TranscriptWriter(
            path, era=era, rng=rng, clock=self.clock, session=plan.identity, cwd=cwd, **self.facts
        )
        self.workspace = Workspace(
            rng=rng, era=era, project=plan.project, pools=pools, session=plan.identity, root=root
        )
        self.work = AgentWork(self.writer, self.workspace, rng.choice(era.models), plan.size - _RESERVE)
        self.prompts: list[tuple[int, str]] = []
        self.tips: list[str | None] = []
        """The parents of earlier prompts: a rewind returns to one of them."""
        self.pause = max(30_000, _PACE // max(plan.size, _QUICK))
        """The longest pause before a prompt, in milliseconds. Long sessions have shorter pauses."""
        self.extra_lines = 0
        self.extra_size = 0
        self.sent = 0
        self.segment = 0
        self.sums: list[dict[str, list[int]]] = []
        self.inherited: dict[str, list[int]] = {}
        """The usage of the session that this one was forked from, which its total includes."""
        self.waiting: list[tuple[agents.AgentTask, agents.Outcome, str]] = []
        if plan.kept:
            self.writer.kept = []

    def write(self, previous: SessionResult | None) -> SessionResult:
        """Write the session and its agents."""
        events.opening(self)
        if previous is not None and previous.rows:
            self._copy(previous)
            self.inherited = previous.sums
            self.workspace.searches = previous.searches
        else:
            self.work.context.start()
        prompt = self.plan.task.prompt if previous is None else self.rng.choice(templates.FEEDBACK)
        scenes = [events.SCENES[name] for name in sorted(self.plan.scenes) if name in events.SCENES]
        self.turn(prompt)
        for scene in scenes:
            scene(self)
            self.turn(self.rng.choice(templates.FEEDBACK))
        if "workflow" in self.plan.scenes:
            events.workflow(self, self.plan.agents[self.sent :])
            self.sent = len(self.plan.agents)
        while self.work.left() > 0:
            events.between(self)
            self.turn(self.rng.choice(templates.FEEDBACK))
        while self.sent < len(self.plan.agents):
            self.turn("please check that with an agent, too")
        torn = "torn" in self.plan.scenes
        if torn:
            self.work.message([self.work.text(600)])
        else:
            events.closing(self)
        self.writer.close(torn=torn)
        return self.result()

    def _copy(self, previous: SessionResult) -> None:
        old = previous.plan.identity.encode()
        new = self.plan.identity.encode()
        for row in previous.rows or []:
            if row.startswith(b'{"parentUuid"'):
                self.writer.raw(row.replace(old, new))
        self.writer.parent = previous.tip

    def turn(self, prompt: str, **more: Any) -> None:
        """Write a prompt and the model's turn."""
        self.clock.tick(self.rng.randrange(20_000, self.pause))
        work = self.work
        self.tips.append(self.writer.parent)
        del self.tips[:-8]
        self.writer.prompt_id = uuid(self.rng)
        self.prompts.append((self.clock.now, prompt))
        began = self.clock.now
        identity = work.user(prompt, **events.prompt_fields(self), **more)
        events.snapshot(self, identity)
        if len(self.prompts) == 1:
            work.context.first(work.model)
        for _ in range(1 + int(self.rng.expovariate(1 / 9))):
            if work.left() <= 0:
                break
            if self._agent_due():
                self._agent()
            else:
                work.step()
        if self._agent_due():
            self._agent()
        blocks = [work.thinking()] if self.workspace.chance(0.3) and work.left() > 0 else []
        self.workspace.room = max(600, min(work.left(), 20_000))
        work.message([*blocks, work.text(450)])
        events.after_turn(self, self.clock.now - began)
        self._notify()
        if self.writer.size - self.segment > _SEGMENT:
            events.compaction(self)

    def _agent_due(self) -> bool:
        expected = len(self.plan.agents)
        if self.sent >= expected or "workflow" in self.plan.scenes:
            return False
        done = self.writer.size / max(self.plan.size, 1)
        return done * expected >= self.sent + 0.3 or self.work.left() <= 0

    def _agent(self) -> None:
        work = self.work
        task = agents.new_task(self.workspace)
        name = "Agent" if work.era.writes("Agent") else "Task"
        input_ = {"description": task.description, "prompt": task.prompt, "subagent_type": task.kind}
        call = Call(name, input_, None)
        block = work.call(call)
        row = work.message([work.say(), block])[-1]
        size = self.plan.agents[self.sent]
        self.sent += 1
        if work.era.writes("inline agents"):
            outcome = agents.inside(work, task, size)
        else:
            outcome = agents.send(work, task, size, self.facts)
            agents.meta(work, task, outcome, block["id"])
            self.extra_lines += outcome.lines
            self.extra_size += outcome.size
        self.sums.append(outcome.sums)
        work.calls += 1
        for shown in outcome.sample:
            self._progress(task, outcome, shown, block["id"], row)
        if work.era.writes("async agents") and self.workspace.chance(0.7):
            self._launched(call, task, outcome, block["id"], row)
            self.waiting.append((task, outcome, block["id"]))
            return
        call.content, call.result = agents.report(work, task, outcome)
        work.result(call, block["id"], row)

    def _progress(self, task: agents.AgentTask, outcome: agents.Outcome, shown: Row, tool: str, row: str) -> None:
        message = {**shown, "timestamp": self.clock.text()}
        data = {
            "message": message,
            "normalizedMessages": [],
            "type": "agent_progress",
            "prompt": task.prompt,
            "agentId": outcome.identity,
        }
        about = "agent_" + str(shown["message"].get("id", tool))
        self.work.context.progress(data, about, row, above=tool)

    def _launched(self, call: Call, task: agents.AgentTask, outcome: agents.Outcome, tool: str, row: str) -> None:
        file = f"{HOME}/jobs/{outcome.identity}.output"
        text = f"Async agent launched successfully.\nagentId: {outcome.identity}\noutput_file: {file}"
        call.content = [{"type": "text", "text": text}]
        call.result = {
            "isAsync": True,
            "status": "async_launched",
            "agentId": outcome.identity,
            "description": task.description,
            "resolvedModel": self.work.model,
            "prompt": task.prompt,
            "outputFile": file,
            "canReadOutputFile": True,
        }
        self.work.result(call, tool, row)

    def _notify(self) -> None:
        while self.waiting:
            task, outcome, tool = self.waiting.pop(0)
            events.notification(self, task, outcome, tool)

    def searches(self) -> int:
        """Web searches so far, those of agents included."""
        return self.workspace.searches

    def result(self) -> SessionResult:
        """What is known about the session, which has been written."""
        return SessionResult(
            plan=self.plan,
            prompts=self.prompts,
            end=self.clock.now,
            lines=self.writer.lines + self.extra_lines,
            size=self.writer.size + self.extra_size,
            agents=0 if self.plan.era.writes("inline agents") else self.sent,
            tip=self.writer.parent,
            rows=self.writer.kept,
            model=self.work.model,
            calls=self.work.calls,
            messages=self.writer.lines,
            todos=self.workspace.todos,
            tasks=self.workspace.tasks,
            edited=self.workspace.edited,
            slug=self.slug,
            sums=totals([self.work.meter.sums, *self.sums]),
            searches=self.workspace.searches,
        )
