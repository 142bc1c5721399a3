"""Files of a home that are not transcripts."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from tools.demo.events import backup
from tools.demo.tool_calls import HOME

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tools.demo.session import SessionResult
    from tools.demo.text import Pools
    from tools.demo.writer import Row

_COPIES = 3


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))


def write_session_files(root: Path, result: SessionResult, rng: Random, pools: Pools) -> None:
    """Write todo lists, tasks and backups of edited files."""
    identity = result.plan.identity
    writes = result.plan.era.writes
    if result.todos:
        _write_json(root / "todos" / f"{identity}-agent-{identity}.json", result.todos)
    if result.tasks and writes("tasks"):
        for task in result.tasks:
            _write_json(root / "tasks" / identity / f"{task['id']}.json", task)
        (root / "tasks" / identity / ".highwatermark").write_text(str(len(result.tasks)))
    if writes("snapshots") or writes("deltas"):
        for path, count in list(result.edited.items())[-_COPIES:]:
            if count:
                file = root / "file-history" / identity / backup(path, count)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(pools.code.take(rng, 1_200).encode())


def _iso(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03}Z"


def write_home_files(root: Path, results: list[SessionResult], rng: Random) -> None:
    """Write the files of which a home or a project has one."""
    _history(root, results)
    _indexes(root, results)
    _stats(root, results)
    for result in results:
        if "live" in result.plan.scenes:
            _write_json(root / "sessions" / "48213.json", _live_session(result, rng))
    _write_json(root / "settings.json", {"cleanupPeriodDays": 99_999, "includeCoAuthoredBy": True})


def _history(root: Path, results: list[SessionResult]) -> None:
    rows = []
    for result in results:
        for when, prompt in result.prompts:
            row: Row = {
                "display": prompt,
                "pastedContents": {},
                "timestamp": when,
                "project": result.plan.project.path,
            }
            if result.plan.era.writes("snapshots") or result.plan.era.writes("deltas"):
                row["sessionId"] = result.plan.identity
            rows.append((when, msgspec.json.encode(row)))
    rows.sort()
    (root / "history.jsonl").write_bytes(b"".join(row + b"\n" for _, row in rows))


def _indexes(root: Path, results: list[SessionResult]) -> None:
    folders: dict[str, list[Row]] = {}
    paths = {}
    for result in results:
        plan = result.plan
        if not plan.era.writes("sessions-index"):
            continue
        paths[plan.project.folder] = plan.project.path
        folders.setdefault(plan.project.folder, []).append(
            {
                "sessionId": plan.identity,
                "fullPath": f"{HOME}/projects/{plan.project.folder}/{plan.identity}.jsonl",
                "fileMtime": result.end,
                "firstPrompt": result.prompts[0][1][:200],
                "summary": plan.task.title,
                "messageCount": result.messages,
                "created": _iso(plan.start),
                "modified": _iso(result.end),
                "gitBranch": plan.task.branch,
                "projectPath": plan.project.path,
                "isSidechain": False,
            }
        )
    for folder, entries in folders.items():
        index = {"version": 1, "entries": entries, "originalPath": paths[folder]}
        _write_json(root / "projects" / folder / "sessions-index.json", index)


def _stats(root: Path, results: list[SessionResult]) -> None:
    messages: Counter[str] = Counter()
    sessions: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    hours: Counter[str] = Counter()
    models: dict[str, list[int]] = {}
    for result in results:
        day = _iso(result.plan.start)[:10]
        sessions[day] += 1
        messages[day] += result.messages
        calls[day] += result.calls
        hours[str(int(_iso(result.plan.start)[11:13]))] += 1
        for model, counts in result.sums.items():
            sums = models.setdefault(model, [0] * len(counts))
            for index, count in enumerate(counts):
                sums[index] += count
    longest = max(results, key=lambda result: result.end - result.plan.start)
    used = {
        model: {
            "inputTokens": fresh,
            "outputTokens": output,
            "cacheReadInputTokens": read,
            "cacheCreationInputTokens": five + hour,
            "webSearchRequests": 0,
            "costUSD": 0,
            "contextWindow": 0,
            "maxOutputTokens": 0,
        }
        for model, (fresh, output, read, five, hour, _) in sorted(models.items())
    }
    days = sorted(sessions)
    daily = [
        {
            "date": day,
            "messageCount": messages[day],
            "sessionCount": sessions[day],
            "toolCallCount": calls[day],
        }
        for day in days
    ]
    stats = {
        "version": 2,
        "lastComputedDate": days[-1],
        "dailyActivity": daily,
        "dailyModelTokens": [],
        "modelUsage": used,
        "totalSessions": len(results),
        "totalMessages": sum(messages.values()),
        "longestSession": {
            "sessionId": longest.plan.identity,
            "duration": longest.end - longest.plan.start,
            "messageCount": longest.messages,
            "timestamp": _iso(longest.plan.start),
        },
        "firstSessionDate": _iso(min(result.plan.start for result in results)),
        "hourCounts": dict(sorted(hours.items())),
        "totalSpeculationTimeSavedMs": 0,
    }
    _write_json(root / "stats-cache.json", stats)


def _live_session(result: SessionResult, rng: Random) -> Row:
    return {
        "pid": 48_213,
        "sessionId": result.plan.identity,
        "cwd": result.plan.project.path,
        "startedAt": result.plan.start,
        "procStart": str(rng.randrange(10**7, 10**8)),
        "version": result.plan.era.version,
        "peerProtocol": 1,
        "kind": "interactive",
        "entrypoint": "cli",
        "status": "idle",
        "updatedAt": result.end,
    }
