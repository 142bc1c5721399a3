"""A session with one of everything that a person looks for in one: branch, failures, agents, edits, commit, breaks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.transcripts import Pen, Row, call, chain, meta, prompt, reply, transcript, write

REVIEWED = "50000000-0000-4000-8000-000000000005"
AGENT = "a5e1ec7ed00000001"
FILE = "/work/app/shelf.py"
TURNS = 40
"""The last of them has no reply."""
ABANDONED = "Sort the shelves by colour instead."
HOME = "/home/rosalindfranklin/shelves"
"""A folder in the home directory of a person."""
_DETAILS = {"status": "completed", "totalDurationMs": 61_000, "totalTokens": 4_321, "totalToolUseCount": 3}
_TASK = {"subagent_type": "Explore", "description": "count <b>shelves</b>", "prompt": "Count the shelves"}
_LOST_TASK = {"subagent_type": "Plan", "description": "plan the shelves", "prompt": f"Plan {HOME}"}


def make(folder: Path) -> None:
    """Write the session and the transcript of one of its agents."""
    write(folder / f"{REVIEWED}.jsonl", *_rows())
    pen = Pen(REVIEWED, agentId=AGENT, isSidechain=True)
    rows = transcript(
        prompt("Count the shelves"),
        *(
            part
            for at in range(25)
            for part in (call("Bash", f"ls {at}", result=str(at)), reply(f"Shelf {at} counted."))
        ),
        reply("There are twenty-five shelves.", output=900),
        pen=pen,
    )
    write(folder / REVIEWED / "subagents" / f"agent-{AGENT}.jsonl", *rows)


def _rows() -> list[Row | bytes]:
    parts: list[Any] = [meta("custom-title", customTitle="Shelves, reviewed"), prompt("Look at the shelves.", **_HUMAN)]
    parts += [
        call("Agent", _TASK, result="Twenty-five", details={**_DETAILS, "agentId": AGENT}),
        call("Agent", _LOST_TASK, result="A plan", details={**_DETAILS, "agentId": "a10570000"}),
        reply("Looked at them.", output=50, written=20_000),
    ]
    for turn in range(2, TURNS):
        parts += [prompt(f"Sort shelf {turn}"), *_work(turn)]
        if turn == 20:
            parts += [_remember_fork, prompt(ABANDONED), reply("By colour, then."), _rewind]
        if turn == 30:
            parts += [_idle]
    parts += [prompt("And the last one?")]
    return transcript(*parts, pen=Pen(REVIEWED))


_HUMAN = {"promptSource": "sdk", "origin": {"kind": "human"}}


def _work(turn: int) -> list[Any]:
    old, new = f"shelf_{turn - 1} = 1", f"shelf_{turn} = 1"
    patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": [f"-{old}", f"+{new}"]}]
    edit = {"file_path": FILE, "old_string": old, "new_string": new}
    details = {
        "filePath": FILE,
        "oldString": old,
        "newString": new,
        "originalFile": f"{old}\n",
        "structuredPatch": patch,
        "userModified": False,
        "replaceAll": False,
    }
    # After the pause, the cache has expired.
    cache: dict[str, Any] = {"read": 0, "written": 20_300} if turn == 31 else {"read": 20_000 + turn, "written": 300}
    parts = [
        call("Edit", edit, result="The file has been updated.", details=details, **cache),
        call("Bash", f"test -f {turn}", result="Exit code 1", error=True, read=20_300 + turn)
        if turn % 4 == 0
        else call("Bash", f"echo {turn}", result=f"{turn}\n", read=20_300 + turn),
        reply(f"Shelf {turn} is sorted: breathing room.", output=80, read=20_300 + turn, written=100),
    ]
    if turn == 12:
        commit = "[main 1a2b3c4] Sort <script>alert(1)</script> shelves\n 1 file changed, 1 insertion(+), 1 deletion(-)"
        parts.insert(2, call("Bash", 'git commit -m "Sort shelves"', result=commit, details={"stdout": commit}))
    if turn == 25:
        parts.insert(
            0,
            chain(
                "system",
                subtype="compact_boundary",
                content="Conversation compacted",
                compactMetadata={"trigger": "auto", "preTokens": 20_000},
            ),
        )
    return parts


def _remember_fork(pen: Pen) -> Iterator[Row]:
    pen.fork = pen.parent  # type: ignore[attr-defined]
    return iter(())


def _rewind(pen: Pen) -> Iterator[Row]:
    pen.parent = pen.fork  # type: ignore[attr-defined]
    return iter(())


def _idle(pen: Pen) -> Iterator[Row]:
    pen._start += timedelta(hours=2)
    return iter(())
