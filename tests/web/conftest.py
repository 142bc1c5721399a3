"""A made-up home and a client that has the token, shared by the tests of the web server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, Row, call, prompt, reply, transcript, write
from tests.web.client import Client

AGENT = "a1b2c3d4e"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def session_rows(turns: int = 3) -> list[Row | bytes]:
    """A session with a picture, successful and failed calls, an agent, and the given number of turns."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    svg = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="}}
    task = {"description": "count shelves", "prompt": "Count the shelves", "subagent_type": "Explore"}
    parts = [
        prompt([{"type": "text", "text": "Look at this <b>picture</b>"}, picture, svg]),
        reply("It is **one** pixel.", output=5, read=900),
        call("Bash", "ls shelves", result="north\nsouth"),
        call("Bash", "false", result="Exit code 1", error=True),
        call("Agent", task, result="Two shelves", details={"agentId": AGENT, "status": "completed"}),
        reply("There are two.", output=7, read=1200),
    ]
    for number in range(2, turns + 1):
        parts += [prompt(f"Sort shelf {number}"), reply(f"Sorted shelf {number}: crème brûlée.", read=1000 + number)]
    return transcript(*parts)


def write_home(home: Path, rows: list[Row | bytes], session: str = SESSION) -> Path:
    """Write a home with one session and the agent that it started."""
    folder = home / "projects" / "-work-app"
    write(folder / f"{session}.jsonl", *rows)
    pen = Pen(session, agentId=AGENT, isSidechain=True)
    agent_rows = transcript(prompt("Count the shelves"), reply("I counted: Two shelves"), pen=pen)
    write(folder / session / "subagents" / f"agent-{AGENT}.jsonl", *agent_rows)
    return home


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client for a home with one session."""
    return Client(write_home(tmp_path / "home", session_rows()))
