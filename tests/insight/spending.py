"""Writes homes in which a known amount was spent at known times."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.transcripts import SESSION, START, Pen, prompt, reply, transcript, write

REPLY_COST = Decimal("1.5")
"""What 100,000 tokens of output cost."""
NOW = START + timedelta(minutes=10)
OTHER = "5e551011-0000-4000-8000-000000000002"


def spend(home: Path, *starts: datetime, session: str = SESSION, cwd: str = "/work/app") -> Path:
    """Write a session that spends 1.50 USD a second after each of these times."""
    rows: list[Any] = []
    for number, start in enumerate(starts):
        pen = Pen(session, start, cwd=cwd)
        pen.parent = rows[-1]["uuid"] if rows else None
        message = {"id": f"msg_{session[-2:]}_{number}"}
        rows += transcript(prompt("go"), reply("done", input=0, output=100_000, message=message), pen=pen)
    folder = cwd.replace("/", "-")
    write(home / f"projects/{folder}/{session}.jsonl", *rows)
    return home
