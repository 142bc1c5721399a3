"""Homes in which ids, names, times and copies are not what Claude Code writes: one per case, and random ones.

Each session `N` of a case spends 10^N tokens or so, so that an amount says which messages are in it.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
FIRST = "5eed0000-0000-4000-8000-00000000000a"
SECOND = "5eed0000-0000-4000-8000-00000000000b"
NOWHERE = "5eed0000-0000-4000-8000-00000000000f"
UPPER = FIRST.upper()
_PROJECT = "projects/-work-app"


def conversation(tag: str, tokens: int, *, session: str | None = None, day: int = 1, **fields: Any) -> list[Row]:
    """A prompt and a reply that spends `tokens`; `tag` makes ids unique."""
    stamp = f"2026-03-{day:02}T10:00:{{:02}}.000Z"
    ids: Row = {"sessionId": session} if session is not None else {}
    shared: Row = {"cwd": "/work/app", "version": "2.1.100", **ids, **fields}
    message = {
        "id": f"msg_01{tag:0>4}XYabcdefgh12345",
        "model": "claude-sonnet-4-5",
        "role": "assistant",
        "type": "message",
        "content": [{"type": "text", "text": f"Reply {tag}."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": tokens - 1, "output_tokens": 1},
    }
    return [
        {
            "type": "user",
            "uuid": f"{tag}-u",
            "parentUuid": None,
            "timestamp": stamp.format(0),
            "message": {"role": "user", "content": f"prompt {tag}"},
            **shared,
        },
        {
            "type": "assistant",
            "uuid": f"{tag}-a",
            "parentUuid": f"{tag}-u",
            "timestamp": stamp.format(5),
            "message": message,
            "requestId": f"req_{tag}",
            **shared,
        },
    ]


def agent_rows(tag: str, tokens: int, agent: str, *, session: str | None = None, day: int = 1) -> list[Row]:
    """What an agent's transcript contains."""
    return conversation(tag, tokens, session=session, day=day, isSidechain=True, agentId=agent)


def write(path: Path, rows: Iterable[Row]) -> Path:
    """Write a transcript."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_775_000_000, 1_775_000_000))
    return path


def _copy_under_another_id(root: Path) -> list[Path]:
    rows = conversation("a", 1_000, session=FIRST)
    write(root / _PROJECT / f"{FIRST}.jsonl", rows)
    write(root / _PROJECT / f"{SECOND}.jsonl", rows)
    return [root]


def _copy_that_sorts_first(root: Path) -> list[Path]:
    rows = conversation("a", 1_000, session=SECOND)
    agent = agent_rows("b", 20, "a1", session=SECOND, day=2)
    for name in (FIRST, SECOND):
        write(root / _PROJECT / f"{name}.jsonl", rows)
        write(root / _PROJECT / name / "subagents/agent-a1.jsonl", agent)
    return [root]


def _foreign_rows(root: Path) -> list[Path]:
    rows = conversation("a", 1_000, session=FIRST)
    write(root / _PROJECT / f"{FIRST}.jsonl", rows)
    write(root / _PROJECT / f"{SECOND}.jsonl", [*rows, *conversation("b", 55, session=FIRST, day=2)])
    return [root]


def _foreign_rows_without_spending(root: Path) -> list[Path]:
    write(root / _PROJECT / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / _PROJECT / f"{SECOND}.jsonl", conversation("b", 55, session=FIRST, day=2)[:1])
    return [root]


def _foreign_rows_alone(root: Path) -> list[Path]:
    write(root / _PROJECT / f"{SECOND}.jsonl", conversation("b", 55, session=NOWHERE, day=2))
    return [root]


def _hard_link(root: Path) -> list[Path]:
    path = write(root / _PROJECT / f"{FIRST}.jsonl", conversation("a", 77, session=FIRST))
    path.with_name(f"{SECOND}.jsonl").hardlink_to(path)
    return [root]


def _hard_link_that_sorts_first(root: Path) -> list[Path]:
    path = write(root / _PROJECT / f"{SECOND}.jsonl", conversation("a", 77, session=SECOND))
    path.with_name(f"{FIRST}.jsonl").hardlink_to(path)
    return [root]


def _continued_copy(root: Path) -> list[Path]:
    rows = conversation("a", 1_000, session=SECOND)
    write(root / _PROJECT / f"{FIRST}.jsonl", [*rows, *conversation("b", 20, session=FIRST, day=2)])
    write(root / _PROJECT / f"{SECOND}.jsonl", [*rows, *conversation("c", 300, session=SECOND, day=3)])
    return [root]


def _two_folders(root: Path) -> list[Path]:
    write(root / _PROJECT / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / f"projects/-work-other/{FIRST}.jsonl", conversation("b", 20, session=FIRST, day=2))
    return [root]


def _two_folders_with_a_copy(root: Path) -> list[Path]:
    rows = conversation("a", 1_000, session=FIRST)
    write(root / _PROJECT / f"{FIRST}.jsonl", rows)
    write(root / f"projects/-work-other/{FIRST}.jsonl", [*rows, *conversation("b", 20, session=FIRST, day=2)])
    return [root]


def _agent_apart_from_two_folders(root: Path) -> list[Path]:
    write(root / f"projects/-work/{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / f"projects/-work-app/{FIRST}.jsonl", conversation("b", 20, session=FIRST, day=2))
    write(
        root / f"projects/-work-zoo/{FIRST}/subagents/agent-a1.jsonl", agent_rows("c", 300, "a1", session=FIRST, day=3)
    )
    return [root]


def _two_homes(root: Path) -> list[Path]:
    rows = conversation("a", 1_000, session=FIRST)
    write(root / "one" / _PROJECT / f"{FIRST}.jsonl", rows)
    write(root / "one" / _PROJECT / f"{SECOND}.jsonl", conversation("b", 20, session=SECOND, day=2))
    more = conversation("c", 300, session=FIRST, day=3)
    write(root / "two" / _PROJECT / f"{FIRST}.jsonl", [*rows, *more])
    return [root / "one", root / "two"]


def _odd_names(root: Path) -> list[Path]:
    write(root / _PROJECT / "notes.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / _PROJECT / "helper.jsonl", agent_rows("b", 20, "x1", session=FIRST, day=2))
    write(root / _PROJECT / f"{SECOND}.jsonl", agent_rows("c", 300, "x2", session=SECOND, day=3))
    write(root / _PROJECT / f"._{FIRST}.jsonl", conversation("d", 4_000, session=FIRST))
    write(root / _PROJECT / "agent-.jsonl", conversation("e", 50_000, session=FIRST))
    write(root / _PROJECT / "folder/deep.jsonl", conversation("f", 600_000, session=FIRST))
    return [root]


def _foreign_agent(root: Path) -> list[Path]:
    write(root / _PROJECT / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / _PROJECT / FIRST / "subagents/agent-a1.jsonl", agent_rows("b", 20, "a1", session=NOWHERE, day=2))
    write(root / _PROJECT / "agent-a2.jsonl", agent_rows("c", 300, "a2", session=NOWHERE, day=3))
    return [root]


def _agents_without_a_session(root: Path) -> list[Path]:
    write(root / _PROJECT / NOWHERE / "subagents/agent-a1.jsonl", agent_rows("b", 20, "a1", session=NOWHERE, day=2))
    write(root / _PROJECT / "agent-a2.jsonl", agent_rows("c", 300, "a2", day=3))
    return [root]


def _case_twins(root: Path) -> list[Path]:
    write(root / _PROJECT / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / _PROJECT / f"{UPPER}.jsonl", conversation("b", 20, session=UPPER, day=2))
    write(root / _PROJECT / "Notes.jsonl", conversation("c", 300, day=3))
    write(root / _PROJECT / "notes.jsonl", conversation("d", 4_000, day=4))
    return [root]


def _impossible_times(root: Path) -> list[Path]:
    old, late = conversation("a", 1_000, session=FIRST), conversation("b", 20, session=SECOND)
    for row in old:
        row["timestamp"] = "1999-01-01T00:00:00.000Z"
    for row, stamp in zip(late, ("2026-03-01T10:00:00.000Z", "99999-01-01T00:00:00.000Z"), strict=True):
        row["timestamp"] = stamp
    write(root / _PROJECT / f"{FIRST}.jsonl", old)
    write(root / _PROJECT / f"{SECOND}.jsonl", late)
    return [root]


def _folder_that_is_no_text(root: Path) -> list[Path]:
    folder = root / os.fsdecode(b"projects/-work-\xff-caf\xc3\xa9")
    write(folder / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(folder / os.fsdecode(b"n\xfe.jsonl"), conversation("b", 20, day=2))
    return [root]


def _agents_of_the_same_name(root: Path) -> list[Path]:
    for number, folder in enumerate(("-work-app", "-work-other"), 1):
        write(root / f"projects/{folder}/notes.jsonl", conversation(f"m{number}", number))
        agents = root / f"projects/{folder}/notes/subagents"
        write(agents / "agent-a1.jsonl", agent_rows(f"x{number}", 10 * number, "a1", day=number + 1))
    write(root / "projects/-work-other/notes/subagents/agent-a2.jsonl", agent_rows("y", 400, "a2", day=4))
    return [root]


def _agent_in_two_files(root: Path) -> list[Path]:
    write(root / _PROJECT / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    rows = agent_rows("b", 20, "a1", session=FIRST, day=2)
    write(root / _PROJECT / FIRST / "subagents/agent-a1.jsonl", rows)
    write(root / _PROJECT / "agent-a1.jsonl", rows)
    return [root]


def _shared_projects(root: Path) -> list[Path]:
    write(root / "one" / _PROJECT / f"{FIRST}.jsonl", conversation("a", 1_000, session=FIRST))
    write(root / "one" / _PROJECT / FIRST / "subagents/agent-a1.jsonl", agent_rows("b", 20, "a1", session=FIRST))
    (root / "two").mkdir()
    (root / "two/projects").symlink_to(root / "one/projects")
    return [root / "one", root / "two"]


SEVERAL_HOMES = "two homes with copies"
CASES: dict[str, Callable[[Path], list[Path]]] = {
    "copy under another id": _copy_under_another_id,
    "copy under an id that sorts first": _copy_that_sorts_first,
    "copy that continues before its original": _continued_copy,
    "rows of another session, and own spending": _foreign_rows,
    "rows of another session, without spending": _foreign_rows_without_spending,
    "rows of a session that is nowhere": _foreign_rows_alone,
    "hard link under another id": _hard_link,
    "hard link under an id that sorts first": _hard_link_that_sorts_first,
    "the same id in two folders": _two_folders,
    "the same id in two folders, with a copy": _two_folders_with_a_copy,
    "the same id in two folders, with an agent in a third": _agent_apart_from_two_folders,
    SEVERAL_HOMES: _two_homes,
    "two homes with the same projects": _shared_projects,
    "names that are no UUID": _odd_names,
    "agent that names another session": _foreign_agent,
    "agents without a session": _agents_without_a_session,
    "ids that differ in case": _case_twins,
    "impossible times": _impossible_times,
    "folder that is no text": _folder_that_is_no_text,
    "agents of sessions of the same name": _agents_of_the_same_name,
    "an agent in two files": _agent_in_two_files,
}
"""A function that writes each case below a folder and returns its homes."""


def write_random(root: Path, seed: int) -> list[Path]:
    """Write one or two homes with copies, forks, links, foreign ids, twins and odd names."""
    pick = random.Random(seed)  # noqa: S311 - not for secrets
    homes = [root / f"home{number}" for number in range(pick.choice((1, 1, 2)))]
    pieces = [(f"p{number}", 3 * number + 1, pick.randint(1, 9)) for number in range(12)]
    names = [FIRST, SECOND, UPPER, NOWHERE, "notes", "Notes", "draft 2"]
    written: list[Path] = []
    for number in range(pick.randint(2, 9)):
        home, folder = pick.choice(homes), pick.choice(("-work-app", "-work-other"))
        name = pick.choice(names)
        kind = pick.choice(("main", "main", "main", "copy", "link", "below", "beside", "sidechain", "other"))
        base = home / "projects" / folder
        path = base / {
            "below": f"{name}/subagents/agent-a{number % 3}.jsonl",
            "beside": f"agent-a{number % 3}.jsonl",
            "other": f"{name}/deep/{number}.jsonl",
        }.get(kind, f"{name}.jsonl")
        if path.exists():
            continue
        session = pick.choice((name, name, *names, None))
        rows: list[Row] = []
        for tag, tokens, day in pick.sample(pieces, pick.randint(1, 4)):
            agent: Row = {"isSidechain": True, "agentId": f"a{number % 3}"} if kind in {"below", "beside"} else {}
            side: Row = {"isSidechain": True} if kind == "sidechain" else {}
            rows += conversation(tag, tokens, session=session, day=day, **agent, **side)
        if kind in {"copy", "link"} and written:
            source = pick.choice(written)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read_bytes()) if kind == "copy" else path.hardlink_to(source)
        else:
            write(path, rows)
        written.append(path)
    for home in homes:
        (home / "projects").mkdir(parents=True, exist_ok=True)
    return homes
