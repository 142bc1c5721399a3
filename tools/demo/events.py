"""Events of a session other than messages: opening, hooks, snapshots, rewinds, commands, compactions, closing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from tools.demo import agents, templates, tool_calls, usage
from tools.demo.agents import DENIED
from tools.demo.tool_calls import HOME, Call, persisted
from tools.demo.usage import totals
from tools.demo.versions import RATES
from tools.demo.writer import Row, uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.demo.session import Session

_HOOK = "python3 $CLAUDE_PROJECT_DIR/.claude/hooks/note.py --format json"


def opening(session: Session) -> None:
    """Rows before the first prompt."""
    writes = session.plan.era.writes
    writer = session.writer
    if writes("resume copies") and (session.plan.scenes or session.workspace.chance(0.5)):
        for task in session.plan.project.tasks[:2]:
            writer.write({"type": "summary", "summary": task.title, "leafUuid": uuid(session.rng)})
    if writes("leafUuid"):
        writer.write({"type": "mode", "mode": "normal", "sessionId": writer.session})
    elif writes("away_summary"):
        writer.write({"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": writer.session})


def prompt_fields(session: Session) -> Row:
    """The fields that a prompt's row has in this version, after its time."""
    writes = session.plan.era.writes
    fields: Row = {}
    if writes("thinkingMetadata"):
        fields["thinkingMetadata"] = {"level": "high", "disabled": False, "triggers": []}
        if writes("agents below"):
            fields["thinkingMetadata"] = {"maxThinkingTokens": 31_999}
    if writes("todos"):
        fields["todos"] = []
    if writes("permissionMode"):
        fields["permissionMode"] = session.rng.choice(("default", "acceptEdits", "acceptEdits", "plan"))
    if writes("promptSource"):
        if not writes("requests"):
            fields["origin"] = {"kind": "human"}
        fields["promptSource"] = "typed"
    if writes("requests"):
        position = {"promptIndex": len(session.prompts) - 1, "turnIndex": len(session.prompts)}
        fields |= {"turnOrigin": "human", "turnPosition": position}
    return fields


def backup(path: str, version: int) -> str:
    """The name of the backup of a file before an edit."""
    return f"{hashlib.sha256(path.encode()).hexdigest()[:16]}@v{version}"


def snapshot(session: Session, identity: str) -> None:
    """The backups of the files edited so far, at a prompt."""
    writer = session.writer
    now = writer.clock.text()
    edited = list(session.workspace.edited.items())[-12:]
    if session.plan.era.writes("deltas"):
        for path, count in edited[-1:]:
            row: Row = {"type": "file-history-delta", "messageId": identity, "snapshotMessageId": identity}
            saved = {
                "backupFileName": backup(path, count) if count else None,
                "version": max(count, 1),
                "backupTime": now,
            }
            writer.write({**row, "trackingPath": path, "backup": saved, "timestamp": now})
    elif session.plan.era.writes("snapshots"):
        tracked = {
            path: {
                "backupFileName": backup(path, count) if count else None,
                "version": max(count, 1),
                "backupTime": now,
            }
            for path, count in edited
        }
        held = {"messageId": identity, "trackedFileBackups": tracked, "timestamp": now}
        writer.write(
            {
                "type": "file-history-snapshot",
                "messageId": identity,
                "snapshot": held,
                "isSnapshotUpdate": False,
            }
        )


def system(session: Session, subtype: str, fields: Row, *, parent: Any = ..., **first: Any) -> str:
    """A system row."""
    return session.writer.chain({"type": "system", "subtype": subtype, **fields}, parent=parent, **first)


def _times(session: Session) -> Row:
    return {"timestamp": session.clock.text(), "uuid": uuid(session.rng)}


def after_turn(session: Session, milliseconds: int) -> None:
    """Rows at the end of a turn."""
    writes = session.plan.era.writes
    if writes("stop_hook_summary") and session.workspace.chance(0.5):
        fields: Row = {
            "hookCount": 1,
            "hookInfos": [{"command": _HOOK, "durationMs": 42}],
            "hookErrors": [],
            "preventedContinuation": False,
            "stopReason": "",
            "hasOutput": True,
            "level": "suggestion",
        }
        system(session, "stop_hook_summary", {**fields, **_times(session), "toolUseID": uuid(session.rng)})
    if writes("turn_duration") and session.workspace.chance(0.6):
        fields = {"durationMs": milliseconds}
        if writes("attachments"):
            fields["messageCount"] = session.writer.lines
        system(session, "turn_duration", {**fields, **_times(session), "isMeta": False})
    if writes("away_summary") and session.workspace.chance(0.1):
        text = f"You were working on: {session.plan.task.title}. Next: {session.workspace.pools.words.phrase()}."
        system(session, "away_summary", {"content": text, **_times(session), "isMeta": False})
    if writes("last-prompt"):
        titles(session)


def titles(session: Session) -> None:
    """Rows about the session, such as its title, which are repeated."""
    writer = session.writer
    if session.plan.era.writes("titles") and session.workspace.chance(0.3):
        writer.write({"type": "ai-title", "aiTitle": session.plan.task.title, "sessionId": writer.session})
    if "named" in session.plan.scenes:
        name = f"{session.plan.project.name}: {session.plan.task.branch}"
        writer.write({"type": "custom-title", "customTitle": name, "sessionId": writer.session})
    row: Row = {"type": "last-prompt", "lastPrompt": session.prompts[-1][1][:200]}
    if session.plan.era.writes("leafUuid"):
        row["leafUuid"] = writer.parent
    writer.write({**row, "sessionId": writer.session})


def between(session: Session) -> None:
    """Events that sometimes happen before the next prompt."""
    kinds = ("rewind", "interrupt", "command", "queue", "error", "refused")
    if session.workspace.chance(0.16):
        SCENES[session.rng.choice(kinds)](session)
    if (
        session.plan.era.writes("inline agents")
        and session.workspace.chance(0.06)
        and session.work.left() > templates.PAGE
    ):
        session.plan.agents.append(min(session.work.left() // 4, 60_000))


def compaction(session: Session) -> None:
    """The context is full: it is replaced by a summary."""
    compact(session)


def notification(session: Session, task: agents.AgentTask, outcome: agents.Outcome, tool: str) -> None:
    """A background agent has finished: its notification comes through the queue and starts a turn."""
    writer = session.writer
    session.clock.tick(4_000)
    text = (
        f"<task-notification>\n<task-id>{outcome.identity}</task-id>\n<tool-use-id>{tool}</tool-use-id>\n"
        f"<output-file>{HOME}/jobs/{outcome.identity}.output</output-file>\n<status>completed</status>\n"
        f'<summary>Agent "{task.description}" finished</summary>\n<result>{outcome.text}</result>\n'
        f"<usage><subagent_tokens>{outcome.tokens}</subagent_tokens><tool_uses>{outcome.calls}</tool_uses>"
        f"<duration_ms>{outcome.milliseconds}</duration_ms></usage>\n</task-notification>"
    )
    queued: Row = {"type": "queue-operation", "operation": "enqueue", "timestamp": session.clock.text()}
    writer.write({**queued, "sessionId": writer.session, "content": text})
    queued = {"type": "queue-operation", "operation": "dequeue", "timestamp": session.clock.text()}
    writer.write({**queued, "sessionId": writer.session})
    more: Row = {"origin": {"kind": "task-notification"}, "promptSource": "system"}
    session.work.user(text, **more)
    session.work.message([session.work.text(300)])


def workflow(session: Session, sizes: list[int]) -> None:
    """A workflow: a script that starts agents, and has a journal."""
    work = session.work
    run = f"wf_{session.rng.getrandbits(40):010x}"
    name = "review-everything"
    below = f"{session.workspace.folder()}/subagents/workflows/{run}"
    script = f'export default async (flow) => {{\n  await flow.agents("{session.plan.task.title}");\n}};\n'
    path = session.workspace.side(f"workflows/scripts/{name}-{run}.js", script.encode())
    text = f"Workflow {name} started in the background ({run})."
    result = {
        "status": "async_launched",
        "taskId": f"w{session.rng.getrandbits(32):08x}",
        "runId": run,
        "taskType": "local_workflow",
        "workflowName": name,
        "summary": session.plan.task.title,
        "transcriptDir": below,
        "scriptPath": path,
    }
    work.run([work.say()], [Call("Workflow", {"name": name, "args": session.plan.task.title}, text, result)])
    journal: list[bytes] = []
    for size in sizes:
        task = agents.new_task(session.workspace)
        outcome = agents.send(work, task, size, session.facts, run=run)
        agents.meta(work, task, outcome, "", run=run)
        session.extra_lines += outcome.lines
        session.extra_size += outcome.size
        session.sums.append(outcome.sums)
        key = f"v2:{hashlib.sha256(task.prompt.encode()).hexdigest()}"
        started = {"type": "started", "key": key, "agentId": outcome.identity}
        ended = {"type": "result", "key": key, "agentId": outcome.identity, "result": outcome.text}
        journal += [encode(started), encode(ended)]
    session.workspace.side(f"subagents/workflows/{run}/journal.jsonl", b"\n".join(journal) + b"\n")
    ran = {"runId": run, "workflowName": name, "status": "completed", "agentCount": len(sizes)}
    session.workspace.side(f"workflows/{run}.json", encode(ran))


def closing(session: Session) -> None:
    """Rows that close a session."""
    writes = session.plan.era.writes
    writer = session.writer
    if writes("titles"):
        writer.write({"type": "ai-title", "aiTitle": session.plan.task.title, "sessionId": writer.session})
    if writes("requests"):
        writer.write({"type": "tools-used", "tools": sorted(session.work.used), "sessionId": writer.session})
    sums = totals([session.inherited, session.work.meter.sums, *session.sums])
    if writes("cost-state") and all(model in RATES for model in sums):
        _cost(session, sums)
    if writes("last-prompt"):
        titles(session)
    if writes("pr-link") and session.workspace.chance(0.1):
        number = session.rng.randrange(10, 400)
        repository = f"mara/{session.plan.project.name}"
        row: Row = {"type": "pr-link", "sessionId": writer.session, "prNumber": number}
        url = f"https://code.example/{repository}/pull/{number}"
        writer.write({**row, "prUrl": url, "prRepository": repository, "timestamp": session.clock.text()})


def _cost(session: Session, sums: dict[str, list[int]]) -> None:
    used = {}
    for model, (fresh, output, read, five, hour, thinking) in sums.items():
        searches = session.searches() if model == session.work.model else 0
        used[model] = {
            "inputTokens": fresh,
            "outputTokens": output,
            "thinkingTokens": thinking,
            "cacheReadInputTokens": read,
            "cacheCreationInputTokens": five + hour,
            "cacheCreationEphemeral5mInputTokens": five,
            "cacheCreationEphemeral1hInputTokens": hour,
            "webSearchRequests": searches,
            "costUSD": usage.total_cost(sums, model, searches),
        }
    total = session.clock.now - session.plan.start
    session.writer.write(
        {
            "type": "cost-state",
            "sessionId": session.writer.session,
            "totalCostUSD": sum(usage["costUSD"] for usage in used.values()),
            "totalAPIDuration": total // 3,
            "totalAPIDurationWithoutRetries": total // 3,
            "totalToolDuration": total // 6,
            "totalLinesAdded": session.workspace.added,
            "totalLinesRemoved": session.workspace.removed,
            "totalDuration": total,
            "startTime": session.plan.start,
            "modelUsage": used,
            "hasUnknownModelCost": False,
        }
    )


encode = msgspec.json.Encoder().encode

_ZERO = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def rewind(session: Session) -> None:
    """The parent of the next prompt is an older row, so the rows after that one become a branch."""
    older = [tip for tip in session.tips[:-1] if tip is not None]
    if older:
        session.writer.parent = session.rng.choice(older)


def interrupt(session: Session) -> None:
    """The user interrupts the model."""
    session.work.step()
    session.work.user([{"type": "text", "text": "[Request interrupted by user]"}])


def refused(session: Session) -> None:
    """A call is refused, so it has no other result."""
    command = f"rm -rf {session.plan.project.folders[0]}/build"
    arguments = {"command": command, "description": "Remove the build folder"}
    call = Call("Bash", arguments, DENIED, "User rejected tool use", error=True)
    session.work.run([session.work.say()], [call])
    session.work.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])


def command(session: Session) -> None:
    """A slash command of the client itself."""
    name = session.rng.choice(templates.COMMANDS)
    text = (
        f"<command-name>{name}</command-name>\n<command-message>{name[1:]}</command-message>\n"
        "<command-args></command-args>"
    )
    printed = f"<local-command-stdout>Set to \x1b[1m{session.work.model}\x1b[22m</local-command-stdout>"
    if session.plan.era.writes("tasks"):
        for content in (text, printed):
            times = {"timestamp": session.clock.text(), "uuid": uuid(session.rng)}
            row: Row = {"type": "system", "subtype": "local_command", "content": content, "level": "info"}
            session.writer.chain({**row, **times, "isMeta": False})
        return
    session.work.user(
        "Caveat: The messages below were generated by the user while running local commands.",
        isMeta=True,
    )
    session.work.user(text)
    session.work.user(printed)


def shell(session: Session) -> None:
    """A command that the user ran with `!`."""
    session.work.user("<bash-input>git status --short</bash-input>")
    printed = session.workspace.pools.git.take(session.rng, 300)
    session.work.user(f"<bash-stdout>{printed}</bash-stdout><bash-stderr></bash-stderr>")


def queue(session: Session) -> None:
    """A prompt that is typed while the model works."""
    if not session.plan.era.writes("queue"):
        return
    writer = session.writer
    text = session.rng.choice(templates.FEEDBACK)
    queued: Row = {"type": "queue-operation", "operation": "enqueue", "timestamp": session.clock.text()}
    writer.write({**queued, "sessionId": writer.session, "content": text})
    session.work.step()
    if session.plan.era.writes("attachments"):
        queued = {"type": "queue-operation", "operation": "remove", "timestamp": session.clock.text()}
        writer.write({**queued, "sessionId": writer.session})
        attachment = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        session.work.context.attach(attachment, f"The user sent a message while you were working:\n{text}", "user")
    else:
        queued = {"type": "queue-operation", "operation": "remove", "timestamp": session.clock.text()}
        writer.write({**queued, "sessionId": writer.session})
    session.work.step()


def error(session: Session) -> None:
    """The API fails; newer versions record each attempt, older ones only the failure."""
    if session.plan.era.writes("snapshots") or session.plan.era.writes("deltas"):
        for attempt in (1, 2):
            times = {"timestamp": session.clock.text(), "uuid": uuid(session.rng)}
            failed: Row = {
                "status": 529,
                "type": "error",
                "error": {"type": "overloaded_error", "message": "Overloaded"},
            }
            row: Row = {"type": "system", "subtype": "api_error", "level": "error", "error": failed}
            row |= {"retryInMs": 540.25 * attempt, "retryAttempt": attempt, "maxRetries": 10}
            session.writer.chain({**row, **times})
            session.clock.tick(600 * attempt)
        return
    text = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    message = {
        "id": uuid(session.rng),
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "usage": {**_ZERO, "server_tool_use": {"web_search_requests": 0}, "service_tier": None},
    }
    body = {"type": "assistant", **session.writer.stamp(), "message": message, "isApiErrorMessage": True}
    session.writer.chain(body)


def picture(session: Session) -> None:
    """A prompt with a pasted screenshot."""
    session.workspace.room = max(3_000, min(session.work.left(), 200_000))
    data = session.workspace.pools.signature(session.rng, session.workspace.length(40_000, 0.8))
    source = {"type": "base64", "media_type": "image/png", "data": data}
    blocks: list[Row] = [
        {"type": "text", "text": "[Image #1] it looks like this now. The button should be on the left"},
        {"type": "image", "source": source},
    ]
    more: Row = {"imagePasteIds": [1]} if session.plan.era.writes("tasks") else {}
    session.work.user(blocks, **more)
    session.work.message([session.work.text(200)])


def planned(session: Session) -> None:
    """Plan mode: a plan is written down and approved."""
    if not session.plan.era.writes("model first"):
        return
    plan = f"# {session.plan.task.title}\n\n" + session.workspace.pools.reply.take(session.rng, 900)
    path = f"{HOME}/plans/{session.slug}.md"
    file = session.workspace.root / "plans" / f"{session.slug}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(plan, encoding="utf-8", newline="\n")
    content = f"The plan was approved:\n\n{plan}"
    result = {"plan": plan, "isAgent": False, "filePath": path}
    session.work.run([], [Call("ExitPlanMode", {"plan": plan}, content, result)])


def question(session: Session) -> None:
    """The model asks a question, and the user chooses an answer."""
    if not session.plan.era.writes("tasks"):
        return
    text = f"What should happen when {session.workspace.pools.words.phrase()}?"
    options = [
        {"label": "Refuse it", "description": "With an error"},
        {"label": "Keep it", "description": "As today"},
    ]
    questions = [{"question": text, "header": "Behaviour", "options": options, "multiSelect": False}]
    content = f'User has answered your questions: "{text}"="Keep it".'
    result = {"questions": questions, "answers": {text: "Keep it"}}
    session.work.run([], [Call("AskUserQuestion", {"questions": questions}, content, result)])


def listed(session: Session) -> None:
    """The model keeps a todo list."""
    make = tool_calls.task if session.plan.era.writes("tasks") else tool_calls.todo
    for _ in range(5):
        session.work.run([], [make(session.workspace)])


def long_output(session: Session) -> None:
    """The output of a command is so long that the client writes it to a file."""
    printed = session.workspace.pools.tests.take(session.rng, 64_000)
    result: Row = {
        "stdout": printed,
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }
    content = persisted(session.workspace, printed, result)
    result["stdout"] = printed[:2_000]
    arguments = {"command": session.plan.project.check + " -v", "description": "Run all tests, with names"}
    session.work.run([], [Call("Bash", arguments, content, result, flagged=True)])


def compact(session: Session) -> None:
    """The context is replaced by a summary, as this version does it."""
    writes = session.plan.era.writes
    writer = session.writer
    tip = writer.parent
    before = session.work.meter.cut()
    session.segment = writer.size
    session.clock.tick(45_000)
    text = session.workspace.pools.words.fill(templates.SUMMARY) + session.workspace.pools.reply.take(
        session.rng, 2_000
    )
    if not writes("compact_boundary"):
        if writes("summary root"):
            session.work.user(text, parent=None, isCompactSummary=True)
        return
    metadata: Row = {"trigger": session.rng.choice(("auto", "manual")), "preTokens": before}
    summary = uuid(session.rng)
    if writes("last-prompt") and tip is not None:
        metadata |= {
            "durationMs": 45_000,
            "preservedSegment": {"headUuid": tip, "anchorUuid": summary, "tailUuid": tip},
            "postTokens": 2_500,
            "cumulativeDroppedTokens": before,
        }
    times = {"timestamp": session.clock.text(), "uuid": uuid(session.rng)}
    row: Row = {
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
    }
    row |= {**times, "level": "info", "compactMetadata": metadata}
    writer.chain(row, parent=None, logicalParentUuid=tip)
    message = {"role": "user", "content": text}
    body: Row = {
        "type": "user",
        "message": message,
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
    }
    writer.chain({**body, "uuid": summary, "timestamp": session.clock.text()}, prompt=True)


SCENES: dict[str, Callable[[Session], Any]] = {
    "rewind": rewind,
    "interrupt": interrupt,
    "refused": refused,
    "command": command,
    "shell": shell,
    "queue": queue,
    "error": error,
    "picture": picture,
    "plan": planned,
    "question": question,
    "list": listed,
    "long output": long_output,
    "compaction": compact,
}
