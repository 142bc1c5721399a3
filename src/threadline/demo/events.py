"""What happens in a session besides talk: how it opens and closes, hooks, snapshots, notifications."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from threadline.demo import agents, meter, scenes, words
from threadline.demo.desk import HOME, Call
from threadline.demo.eras import RATES
from threadline.demo.meter import totals
from threadline.demo.scribe import Row, uuid

if TYPE_CHECKING:
    from threadline.demo.session import Session

SCENES = scenes.ALL
_HOOK = "python3 $CLAUDE_PROJECT_DIR/.claude/hooks/note.py --format json"


def opening(session: Session) -> None:
    """Rows before anything is said."""
    writes = session.plan.era.writes
    scribe = session.scribe
    if writes("resume copies") and (session.plan.scenes or session.desk.chance(0.5)):
        for task in session.plan.project.tasks[:2]:
            scribe.write({"type": "summary", "summary": task.title, "leafUuid": uuid(session.rng)})
    if writes("leafUuid"):
        scribe.write({"type": "mode", "mode": "normal", "sessionId": scribe.session})
    elif writes("away_summary"):
        scribe.write({"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": scribe.session})


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
    """Name of the copy of a file before an edit."""
    return f"{hashlib.sha256(path.encode()).hexdigest()[:16]}@v{version}"


def snapshot(session: Session, identity: str) -> None:
    """Copies of the files edited so far, at a prompt."""
    scribe = session.scribe
    now = scribe.clock.text()
    edited = list(session.desk.edited.items())[-12:]
    if session.plan.era.writes("deltas"):
        for path, count in edited[-1:]:
            row: Row = {"type": "file-history-delta", "messageId": identity, "snapshotMessageId": identity}
            saved = {
                "backupFileName": backup(path, count) if count else None,
                "version": max(count, 1),
                "backupTime": now,
            }
            scribe.write({**row, "trackingPath": path, "backup": saved, "timestamp": now})
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
        scribe.write(
            {
                "type": "file-history-snapshot",
                "messageId": identity,
                "snapshot": held,
                "isSnapshotUpdate": False,
            }
        )


def system(session: Session, subtype: str, fields: Row, *, parent: Any = ..., **first: Any) -> str:
    """A system row."""
    return session.scribe.chain({"type": "system", "subtype": subtype, **fields}, parent=parent, **first)


def _times(session: Session) -> Row:
    return {"timestamp": session.clock.text(), "uuid": uuid(session.rng)}


def after_turn(session: Session, milliseconds: int) -> None:
    """What the end of a turn leaves."""
    writes = session.plan.era.writes
    if writes("stop_hook_summary") and session.desk.chance(0.5):
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
    if writes("turn_duration") and session.desk.chance(0.6):
        fields = {"durationMs": milliseconds}
        if writes("attachments"):
            fields["messageCount"] = session.scribe.lines
        system(session, "turn_duration", {**fields, **_times(session), "isMeta": False})
    if writes("away_summary") and session.desk.chance(0.1):
        text = f"You were working on: {session.plan.task.title}. Next: {session.desk.pools.words.phrase()}."
        system(session, "away_summary", {"content": text, **_times(session), "isMeta": False})
    if writes("last-prompt"):
        titles(session)


def titles(session: Session) -> None:
    """Rows that say what the session is about; they are written again and again."""
    scribe = session.scribe
    if session.plan.era.writes("titles") and session.desk.chance(0.3):
        scribe.write({"type": "ai-title", "aiTitle": session.plan.task.title, "sessionId": scribe.session})
    if "named" in session.plan.scenes:
        name = f"{session.plan.project.name}: {session.plan.task.branch}"
        scribe.write({"type": "custom-title", "customTitle": name, "sessionId": scribe.session})
    row: Row = {"type": "last-prompt", "lastPrompt": session.prompts[-1][1][:200]}
    if session.plan.era.writes("leafUuid"):
        row["leafUuid"] = scribe.parent
    scribe.write({**row, "sessionId": scribe.session})


def between(session: Session) -> None:
    """Now and then something happens before the next prompt."""
    kinds = ("rewind", "interrupt", "command", "queue", "error", "refused")
    if session.desk.chance(0.16):
        SCENES[session.rng.choice(kinds)](session)
    if session.plan.era.writes("inline agents") and session.desk.chance(0.06) and session.work.left() > words.PAGE:
        session.plan.agents.append(min(session.work.left() // 4, 60_000))


def compaction(session: Session) -> None:
    """The context is full: it is replaced by a summary."""
    scenes.compact(session)


def notification(session: Session, task: agents.Errand, outcome: agents.Outcome, tool: str) -> None:
    """A background agent has finished: the notice comes through the queue and starts a turn of its own."""
    scribe = session.scribe
    session.clock.tick(4_000)
    text = (
        f"<task-notification>\n<task-id>{outcome.identity}</task-id>\n<tool-use-id>{tool}</tool-use-id>\n"
        f"<output-file>{HOME}/jobs/{outcome.identity}.output</output-file>\n<status>completed</status>\n"
        f'<summary>Agent "{task.description}" finished</summary>\n<result>{outcome.text}</result>\n'
        f"<usage><subagent_tokens>{outcome.tokens}</subagent_tokens><tool_uses>{outcome.calls}</tool_uses>"
        f"<duration_ms>{outcome.milliseconds}</duration_ms></usage>\n</task-notification>"
    )
    queued: Row = {"type": "queue-operation", "operation": "enqueue", "timestamp": session.clock.text()}
    scribe.write({**queued, "sessionId": scribe.session, "content": text})
    queued = {"type": "queue-operation", "operation": "dequeue", "timestamp": session.clock.text()}
    scribe.write({**queued, "sessionId": scribe.session})
    more: Row = {"origin": {"kind": "task-notification"}, "promptSource": "system"}
    session.work.user(text, **more)
    session.work.message([session.work.text(300)])


def workflow(session: Session, sizes: list[int]) -> None:
    """A workflow: a script that starts agents, with a journal of its own."""
    work = session.work
    run = f"wf_{session.rng.getrandbits(40):010x}"
    name = "review-everything"
    below = f"{session.desk.folder()}/subagents/workflows/{run}"
    script = f'export default async (flow) => {{\n  await flow.agents("{session.plan.task.title}");\n}};\n'
    path = session.desk.side(f"workflows/scripts/{name}-{run}.js", script.encode())
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
        task = agents.errand(session.desk)
        outcome = agents.send(work, task, size, session.facts, run=run)
        agents.meta(work, task, outcome, "", run=run)
        session.extra_lines += outcome.lines
        session.extra_size += outcome.size
        session.sums.append(outcome.sums)
        key = f"v2:{hashlib.sha256(task.prompt.encode()).hexdigest()}"
        started = {"type": "started", "key": key, "agentId": outcome.identity}
        ended = {"type": "result", "key": key, "agentId": outcome.identity, "result": outcome.text}
        journal += [scenes.encode(started), scenes.encode(ended)]
    session.desk.side(f"subagents/workflows/{run}/journal.jsonl", b"\n".join(journal) + b"\n")
    ran = {"runId": run, "workflowName": name, "status": "completed", "agentCount": len(sizes)}
    session.desk.side(f"workflows/{run}.json", scenes.encode(ran))


def closing(session: Session) -> None:
    """Rows that close a session."""
    writes = session.plan.era.writes
    scribe = session.scribe
    if writes("titles"):
        scribe.write({"type": "ai-title", "aiTitle": session.plan.task.title, "sessionId": scribe.session})
    if writes("requests"):
        scribe.write({"type": "tools-used", "tools": sorted(session.work.used), "sessionId": scribe.session})
    sums = totals([session.inherited, session.work.meter.sums, *session.sums])
    if writes("cost-state") and all(model in RATES for model in sums):
        _cost(session, sums)
    if writes("last-prompt"):
        titles(session)
    if writes("pr-link") and session.desk.chance(0.1):
        number = session.rng.randrange(10, 400)
        repository = f"mara/{session.plan.project.name}"
        row: Row = {"type": "pr-link", "sessionId": scribe.session, "prNumber": number}
        url = f"https://code.example/{repository}/pull/{number}"
        scribe.write({**row, "prUrl": url, "prRepository": repository, "timestamp": session.clock.text()})


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
            "costUSD": meter.total_cost(sums, model, searches),
        }
    total = session.clock.now - session.plan.start
    session.scribe.write(
        {
            "type": "cost-state",
            "sessionId": session.scribe.session,
            "totalCostUSD": sum(one["costUSD"] for one in used.values()),
            "totalAPIDuration": total // 3,
            "totalAPIDurationWithoutRetries": total // 3,
            "totalToolDuration": total // 6,
            "totalLinesAdded": session.desk.added,
            "totalLinesRemoved": session.desk.removed,
            "totalDuration": total,
            "startTime": session.plan.start,
            "modelUsage": used,
            "hasUnknownModelCost": False,
        }
    )
