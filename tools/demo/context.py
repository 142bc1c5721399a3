"""Rows around the conversation: hooks and progress, attachments, and the requests as they were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tools.demo.sent_messages import hash_json
from tools.demo.text import sentence
from tools.demo.versions import MARKETING
from tools.demo.writer import Row, uuid

if TYPE_CHECKING:
    from tools.demo.tool_calls import Call, Workspace
    from tools.demo.writer import TranscriptWriter

_HOOK = "python3 $CLAUDE_PROJECT_DIR/.claude/hooks/note.py --format json"
# Hashes were random once. They are still drawn, so that a seed gives the same home as before.
_HASH_BITS = 256
_SKILLS = ("review", "release-notes", "bench", "triage", "translate")
_TOOLS = (
    "Agent",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "Read",
    "Skill",
    "TaskCreate",
    "TaskUpdate",
    "WebFetch",
    "Write",
)


class Context:
    """Writes the rows of a transcript that are no messages."""

    def __init__(self, writer: TranscriptWriter, workspace: Workspace, *, side: bool | None) -> None:
        self._writer = writer
        self._workspace = workspace
        self._rng = writer.rng
        self._side = side
        self._hooked = workspace.chance(0.7)
        self._shape: dict[str, Any] | None = None
        self._base: str | None = None
        self._tokens = 15_000_000
        self.hidden = False
        """Whether requests are left out (agents inside a main transcript)."""

    def progress(
        self, data: Row, tool: str, parent: str | None, *, above: str | None = None, move: bool = False
    ) -> str:
        """A progress row beside the chain."""
        writer = self._writer
        if data["type"] == "hook_progress":
            ends = {
                "parentToolUseID": above or tool,
                "toolUseID": tool,
                "timestamp": writer.clock.text(),
                "uuid": uuid(self._rng),
            }
        else:
            ends = {"toolUseID": tool, "parentToolUseID": above or tool, **writer.stamp()}
        return writer.chain({"type": "progress", "data": data, **ends}, parent=parent, side=self._side, move=move)

    def attach(self, attachment: Row, rendered: str | None = None, role: str = "system") -> str:
        """An attachment in the chain; the newest versions record how the model saw it."""
        body: Row = {"attachment": attachment, "type": "attachment", **self._writer.stamp()}
        if rendered is not None and self._writer.era.writes("requests"):
            body |= {
                "rendered": [{"content": f"<system-reminder>\n{rendered}\n</system-reminder>"}],
                "renderedRole": role,
            }
        return self._writer.chain(body, side=self._side)

    def _hook(self, event: str, name: str) -> Row:
        return {"type": "hook_progress", "hookEvent": event, "hookName": f"{event}:{name}", "command": _HOOK}

    def before(self, call: Call, tool: str, row: str) -> None:
        """Rows between a call and its result."""
        if not self._writer.era.writes("progress"):
            return
        if self._hooked and self._workspace.chance(0.6):
            self.progress(self._hook("PreToolUse", call.name), tool, row)
        if not call.wide:
            return
        above: str | None = row
        printed = call.result["stdout"] if isinstance(call.result, dict) else ""
        for second in range(2, 2 + int(self._rng.random() * 12)):
            self._writer.clock.tick(1_000)
            shown = printed[: second * 90]
            data = {
                "type": "bash_progress",
                "output": shown[-400:],
                "fullOutput": shown,
                "elapsedTimeSeconds": second,
                "totalLines": shown.count("\n"),
            }
            above = self.progress(data, f"bash-progress-{second}", above, above=tool)

    def after(self, call: Call, tool: str) -> None:
        """Rows after the results of a message."""
        era = self._writer.era
        if era.writes("progress") and self._hooked:
            for _ in range(1 + (self._workspace.chance(0.4))):
                self.progress(self._hook("PostToolUse", call.name), tool, self._writer.parent, move=True)
        if not era.writes("attachments"):
            return
        if era.writes("total_tokens_reminder") and self._workspace.chance(0.12):
            self._tokens -= 60_000
            text = f"<total_tokens>{self._tokens} tokens left</total_tokens>"
            self.attach({"type": "total_tokens_reminder", "text": text}, text)
        if self._workspace.chance(0.04):
            tasks = self._workspace.tasks
            self.attach(
                {"type": "task_reminder", "content": [dict(task) for task in tasks], "itemCount": len(tasks)},
                "Tasks",
            )
        if self._hooked and self._workspace.chance(0.1):
            self._hooks(call, tool)
        if self._workspace.chance(0.015):
            name = self._workspace.project.at(self._workspace.file())
            snippet = self._workspace.code(600)
            self.attach(
                {"type": "edited_text_file", "filename": name, "snippet": snippet},
                f"{name} was changed:\n{snippet}",
            )

    def _hooks(self, call: Call, tool: str) -> None:
        named = {"hookName": f"PostToolUse:{call.name}", "toolUseID": tool, "hookEvent": "PostToolUse"}
        printed = '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "checked\\n"}}'
        run = {"stdout": printed, "stderr": "", "exitCode": 0, "command": _HOOK, "durationMs": 31}
        self.attach({"type": "hook_success", **named, "content": "", **run})
        self.attach({"type": "hook_additional_context", "content": ["checked"], **named}, "hook: checked")

    def start(self) -> None:
        """Rows before the first prompt: the session's hooks."""
        if not self._hooked:
            return
        if self._writer.era.writes("progress"):
            tool = uuid(self._rng)
            self.progress(self._hook("SessionStart", "startup"), tool, None, move=True)
        elif self._writer.era.writes("attachments"):
            text = self._workspace.pools.words.phrase()
            named = {
                "hookName": "SessionStart:startup",
                "toolUseID": uuid(self._rng),
                "hookEvent": "SessionStart",
            }
            self.attach({"type": "hook_system_message", "content": text, **named})

    def first(self, model: str) -> None:
        """The attachments of the first prompt."""
        era = self._writer.era
        if not era.writes("attachments"):
            return
        words = self._workspace.pools.words
        added = ["WebFetch", "WebSearch", "NotebookEdit", "mcp__tracker__get_issue"]
        delta: Row = {
            "type": "deferred_tools_delta",
            "addedNames": added,
            "addedLines": added,
            "removedNames": [],
        }
        skills = "\n".join(f"- {name}: {words.phrase()}" for name in _SKILLS)
        listing = {"type": "skill_listing", "content": skills, "skillCount": len(_SKILLS), "isInitial": True}
        if era.writes("requests"):
            self._environment(model)
            delta |= {
                "wireHiddenNames": [],
                "readdedNames": [],
                "pendingMcpServers": [],
                "failedMcpServers": [],
            }
            listing |= {
                "names": list(_SKILLS),
                "digests": [f"{self._rng.getrandbits(64):016x}" for _ in _SKILLS],
            }
        self.attach(delta, "More tools:\n" + "\n".join(added))
        self.attach(listing, f"Skills:\n{skills}")

    def _environment(self, model: str) -> None:
        project = self._workspace.project
        snapshot = {
            "workingDirectory": project.path,
            "isWorktree": ".claude/worktrees" in project.path,
            "isGitRepo": True,
            "additionalWorkingDirectories": [],
            "platform": "linux",
            "shell": "zsh",
            "osVersion": "Linux 6.12.9",
        }
        self.attach({"type": "environment", "snapshot": snapshot}, f"# Environment\nWorking directory: {project.path}")
        name = MARKETING.get(model, model)
        identity = {"modelId": model, "marketingName": name, "knowledgeCutoff": "June 2026"}
        text = f"The model is {name} ({model})."
        self.attach({"type": "model", "identity": identity, "text": text}, text)
        rule = self._workspace.pools.words.phrase()
        memory = f"# {project.name}\n\n- run `{project.check}` before a commit\n- {rule}\n"
        files = [{"path": project.at("CLAUDE.md"), "type": "Project", "content": memory}]
        self.attach({"type": "instructions", "files": files}, memory, "user")
        status = f"Current branch: {project.tasks[0].branch}\nStatus:\nM {self._workspace.file()}\n?? notes.md"
        self.attach({"type": "session_context", "context": {"gitStatus": status}}, status, "user")
        today = self._writer.clock.text()[:10]
        self.attach({"type": "date", "date": today}, f"Today is {today}.")

    def request(self, model: str) -> str | None:
        """The request for the next message as it was sent, in the newest versions; returns its id."""
        writer = self._writer
        sent = writer.sent
        if self.hidden or sent is None:
            return None
        head: Row = {"sessionId": writer.session}
        if writer.agent:
            head["agentId"] = writer.agent
        if self._shape is None:
            self._rng.getrandbits(_HASH_BITS)
            self._shape = self._make_shape()
            shape_hash = hash_json(self._shape)
            writer.write(
                {"type": "api-request-shape", **head, "shapeHash": shape_hash, **self._when(), "shape": self._shape}
            )
            text = f"# Environment\n{self._workspace.project.path}\n\n{self._workspace.pools.words.phrase()}"
            blob = {"role": "user", "content": [{"type": "text", "text": text}]}
            writer.write({"type": "api-request-blob", **head, "hash": hash_json(blob), "message": blob})
            sent.add(blob)
        identity = uuid(self._rng)
        row: Row = {
            "type": "api-request",
            **head,
            "id": identity,
            **self._when(),
            "querySource": "repl_main_thread",
        }
        self._rng.getrandbits(3 * _HASH_BITS)
        params = self._params(model)
        row |= {"shapeHash": hash_json(self._shape), "params": params}
        if self._base is not None:
            row["base"] = self._base
        row["keep"] = len(sent.hashes)
        row["tail"], row["cacheControl"], row["requestDigest"] = sent.send(
            params, self._shape, {"type": "ephemeral", "ttl": "1h"}
        )
        writer.write(row)
        self._base = identity
        return identity

    def _when(self) -> Row:
        return {"timestamp": self._writer.clock.text(), "version": self._writer.era.version}

    def _params(self, model: str) -> Row:
        return {
            "model": model,
            "betas": ["claude-code-20250219", "interleaved-thinking-2025-05-14"],
            "max_tokens": 64_000,
            "thinking": {"type": "adaptive", "display": "omitted"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "medium"},
        }

    def _make_shape(self) -> dict[str, Any]:
        words = self._workspace.pools.words
        tools = []
        for name in _TOOLS:
            fields = {
                field: {"description": sentence(words.phrase()), "type": "string"}
                for field in self._rng.sample(self._workspace.project.fields, 3)
            }
            schema = {
                "type": "object",
                "properties": fields,
                "required": list(fields)[:1],
                "additionalProperties": False,
            }
            description = f"{name}: {words.phrase()}.\n\nUsage:\n- {words.phrase()}\n- {words.phrase()}"
            tools.append({"name": name, "description": description, "input_schema": schema})
        system = f"You work on {self._workspace.project.name}.\n\n" + "\n".join(f"- {words.phrase()}" for _ in range(9))
        return {"system": [{"type": "text", "text": system}], "tools": tools}
