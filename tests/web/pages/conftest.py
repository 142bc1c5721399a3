"""A made-up home, and one full of hostile text, each with an archive to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import make
from tests.once import made_once
from tools.demo import write

import threadline
from threadline.archive import Archive

HOSTILE = "\"'></title><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with all that homes have, at 3 MB."""
    return made_once(tmp_path_factory, "demo-home-3", lambda home: write(home, megabytes=3))


@pytest.fixture
def demo(demo_home: Path) -> Iterator[Archive]:
    """Its archive."""
    with Archive(threadline.open(demo_home).homes, stale_ok=True) as archive:
        yield archive


@pytest.fixture(scope="session")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which every name that a list shows is hostile."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    pen = make.Pen(cwd=f"/work/{HOSTILE}", gitBranch=HOSTILE)
    rows = make.transcript(
        make.prompt(f"find the {HOSTILE}"),
        make.reply(HOSTILE, message={"model": HOSTILE}),
        make.call(HOSTILE, {"file_path": HOSTILE, "command": HOSTILE}, HOSTILE),
        make.call(
            "Read",
            {"file_path": f"/work/{HOSTILE}.py"},
            "words",
            own={"type": "text", "file": {"filePath": f"/work/{HOSTILE}.py", "content": "words", "numLines": 1}},
        ),
        pen=pen,
    )
    make.write(home / "projects" / "-work" / f"{pen.session}.jsonl", *rows)
    return home


@pytest.fixture
def hostile(hostile_home: Path) -> Iterator[Archive]:
    """Its archive."""
    with Archive(threadline.open(hostile_home).homes, stale_ok=True) as archive:
        yield archive
