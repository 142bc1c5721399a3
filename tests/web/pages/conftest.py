"""A demo home and a home full of hostile text, each with its archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import transcripts
from tests.shared_folders import shared_folder
from tools.demo import write

import threadline
from threadline.archive import Archive

HOSTILE = "\"'></title><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 3 MB home that has everything that homes can have."""
    return shared_folder(tmp_path_factory, "demo-home-3", lambda home: write(home, megabytes=3))


@pytest.fixture
def demo(demo_home: Path) -> Iterator[Archive]:
    """The archive of the demo home."""
    with Archive(threadline.open(demo_home).homes, stale_ok=True) as archive:
        yield archive


@pytest.fixture(scope="session")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which every name that a list shows is hostile."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    pen = transcripts.Pen(cwd=f"/work/{HOSTILE}", gitBranch=HOSTILE)
    rows = transcripts.transcript(
        transcripts.prompt(f"find the {HOSTILE}"),
        transcripts.reply(HOSTILE, message={"model": HOSTILE}),
        transcripts.call(HOSTILE, {"file_path": HOSTILE, "command": HOSTILE}, HOSTILE),
        transcripts.call(
            "Read",
            {"file_path": f"/work/{HOSTILE}.py"},
            "words",
            details={"type": "text", "file": {"filePath": f"/work/{HOSTILE}.py", "content": "words", "numLines": 1}},
        ),
        pen=pen,
    )
    transcripts.write(home / "projects" / "-work" / f"{pen.session}.jsonl", *rows)
    return home


@pytest.fixture
def hostile(hostile_home: Path) -> Iterator[Archive]:
    """The archive of the hostile home."""
    with Archive(threadline.open(hostile_home).homes, stale_ok=True) as archive:
        yield archive
