"""The home for the golden files: the demo home, and a session with what it lacks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests import transcripts
from tests.interfaces import entry_points
from tests.interfaces.cases import MTIME

PLANTED = "90000000-0000-4000-8000-000000000001"
BRANCHED, REQUESTED, LISTED, DAMAGED = "86518386", "ea8b5cfd", "a15ab551", "cad26697"
"""Sessions of the demo home: with a branch, a compaction and agents; with requests; with todos; with a damaged line."""
MEGABYTES = 1
_KEY = "AKIAIOSFODNN7REDWOOD"
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def write(home: Path) -> Path:
    """Write it, with the same bytes and times every time."""
    entry_points.write_demo(home, megabytes=MEGABYTES)
    transcripts.write(home / "projects" / "-work-app" / f"{PLANTED}.jsonl", *_planted_rows())
    for path in home.rglob("*"):
        if path.stat().st_mtime > entry_points.NOW.timestamp():
            os.utime(path, (MTIME, MTIME))
    return home


def change(home: Path) -> None:
    """Change the home as time does: a session grows, one is deleted, and files are deleted after 30 days again."""
    (home / "settings.json").write_text('{"cleanupPeriodDays": 30}\n')
    (grown,) = home.glob(f"projects/*/{LISTED}*.jsonl")
    (deleted,) = home.glob(f"projects/*/{BRANCHED}*.jsonl")
    written = grown.stat().st_mtime
    with grown.open("ab") as file:
        file.write(b'{"type":"custom-title","customTitle":"Grown","sessionId":"%s"}\n' % grown.stem.encode())
    os.utime(grown, (written, written))
    os.utime(home / "settings.json", (MTIME, MTIME))
    deleted.unlink()
    shutil.rmtree(deleted.with_suffix(""))


def _planted_rows() -> list[transcripts.Row | bytes]:
    """An image, a secret, calls with every outcome, a file, and an agent whose transcript is missing."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL}}
    wrote = {"type": "create", "filePath": "/work/app/shelf.py", "content": "shelf = 1\n", "structuredPatch": []}
    task = {"description": "count shelves", "prompt": "Count the shelves", "subagent_type": "Explore"}
    return transcripts.transcript(
        transcripts.prompt([{"type": "text", "text": "Look at this picture"}, picture]),
        transcripts.reply("It is **one** pixel.", output=5, read=900),
        transcripts.call("Bash", "ls shelves", result="north\nsouth"),
        transcripts.call("Bash", f"export AWS_ACCESS_KEY_ID={_KEY}", result="Exit code 1", error=True),
        transcripts.call(
            "Write", {"file_path": "/work/app/shelf.py", "content": "shelf = 1\n"}, "File created", details=wrote
        ),
        transcripts.call("Agent", task, result="Two shelves", details={"agentId": "a1b2c3d4e", "status": "completed"}),
        transcripts.reply("There are two.", output=7, read=1200),
        transcripts.prompt("Sort the north shelf"),
        transcripts.reply("Sorted: crème brûlée.", output=9, read=1300),
        pen=transcripts.Pen(PLANTED),
    )
