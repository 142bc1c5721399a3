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


def _put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))


def per_session(root: Path, told: SessionResult, rng: Random, pools: Pools) -> None:
    """Todo lists, tasks and copies of edited files."""
    identity = told.plan.identity
    writes = told.plan.era.writes
    if told.todos:
        _put(root / "todos" / f"{identity}-agent-{identity}.json", told.todos)
    if told.tasks and writes("tasks"):
        for task in told.tasks:
            _put(root / "tasks" / identity / f"{task['id']}.json", task)
        (root / "tasks" / identity / ".highwatermark").write_text(str(len(told.tasks)))
    if writes("snapshots") or writes("deltas"):
        for path, count in list(told.edited.items())[-_COPIES:]:
            if count:
                file = root / "file-history" / identity / backup(path, count)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(pools.code.take(rng, 1_200).encode())


def _iso(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03}Z"


def whole(root: Path, told: list[SessionResult], rng: Random) -> None:
    """What there is once per home or per project."""
    _history(root, told)
    _indexes(root, told)
    _stats(root, told)
    for one in told:
        if "live" in one.plan.scenes:
            _put(root / "sessions" / "48213.json", _alive(one, rng))
    _put(root / "settings.json", {"cleanupPeriodDays": 99_999, "includeCoAuthoredBy": True})


def _history(root: Path, told: list[SessionResult]) -> None:
    rows = []
    for one in told:
        for when, prompt in one.prompts:
            row: Row = {
                "display": prompt,
                "pastedContents": {},
                "timestamp": when,
                "project": one.plan.project.path,
            }
            if one.plan.era.writes("snapshots") or one.plan.era.writes("deltas"):
                row["sessionId"] = one.plan.identity
            rows.append((when, msgspec.json.encode(row)))
    rows.sort()
    (root / "history.jsonl").write_bytes(b"".join(row + b"\n" for _, row in rows))


def _indexes(root: Path, told: list[SessionResult]) -> None:
    folders: dict[str, list[Row]] = {}
    paths = {}
    for one in told:
        plan = one.plan
        if not plan.era.writes("sessions-index"):
            continue
        paths[plan.project.folder] = plan.project.path
        folders.setdefault(plan.project.folder, []).append(
            {
                "sessionId": plan.identity,
                "fullPath": f"{HOME}/projects/{plan.project.folder}/{plan.identity}.jsonl",
                "fileMtime": one.end,
                "firstPrompt": one.prompts[0][1][:200],
                "summary": plan.task.title,
                "messageCount": one.messages,
                "created": _iso(plan.start),
                "modified": _iso(one.end),
                "gitBranch": plan.task.branch,
                "projectPath": plan.project.path,
                "isSidechain": False,
            }
        )
    for folder, entries in folders.items():
        index = {"version": 1, "entries": entries, "originalPath": paths[folder]}
        _put(root / "projects" / folder / "sessions-index.json", index)


def _stats(root: Path, told: list[SessionResult]) -> None:
    messages: Counter[str] = Counter()
    sessions: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    hours: Counter[str] = Counter()
    models: dict[str, list[int]] = {}
    for one in told:
        day = _iso(one.plan.start)[:10]
        sessions[day] += 1
        messages[day] += one.messages
        calls[day] += one.calls
        hours[str(int(_iso(one.plan.start)[11:13]))] += 1
        for model, counts in one.sums.items():
            mine = models.setdefault(model, [0] * len(counts))
            for index, count in enumerate(counts):
                mine[index] += count
    longest = max(told, key=lambda one: one.end - one.plan.start)
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
        "totalSessions": len(told),
        "totalMessages": sum(messages.values()),
        "longestSession": {
            "sessionId": longest.plan.identity,
            "duration": longest.end - longest.plan.start,
            "messageCount": longest.messages,
            "timestamp": _iso(longest.plan.start),
        },
        "firstSessionDate": _iso(min(one.plan.start for one in told)),
        "hourCounts": dict(sorted(hours.items())),
        "totalSpeculationTimeSavedMs": 0,
    }
    _put(root / "stats-cache.json", stats)


def _alive(told: SessionResult, rng: Random) -> Row:
    return {
        "pid": 48_213,
        "sessionId": told.plan.identity,
        "cwd": told.plan.project.path,
        "startedAt": told.plan.start,
        "procStart": str(rng.randrange(10**7, 10**8)),
        "version": told.plan.era.version,
        "peerProtocol": 1,
        "kind": "interactive",
        "entrypoint": "cli",
        "status": "idle",
        "updatedAt": told.end,
    }
