"""A session of fifty thousand entries: prompts, replies, calls, thinking, compactions, branches, agents."""

from __future__ import annotations

from pathlib import Path
from random import Random
from unittest.mock import patch

from tools.demo import projects, tool_calls, versions
from tools.demo.session import Plan, Session, SessionResult
from tools.demo.text import Pools

LONG = "50000000-0000-4000-8000-000000000001"
ENTRIES = 50_000
SHORTENED = 1_200
"""The maximum length of shortened texts: half the bytes, and as many entries, items and sections."""
_BYTES = {True: 1_460, False: 2_560}
"""The average bytes of an entry, with shortened texts and with realistic ones."""
_START = 1_793_000_000_000
_SCENES = frozenset(
    {"plan", "question", "named", "list", "rewind", "picture", "command", "error", "interrupt", "refused"}
)


def write(home: Path, *, shortened: bool, identity: str = LONG, entries: int = ENTRIES) -> SessionResult:
    """Write the session and its agents into a home."""
    version = {era.version: era for era in versions.ERAS}["2.1.81"]
    project = projects.choose(1)[0]
    plan = Plan(
        identity=identity,
        project=project,
        era=version,
        size=entries * _BYTES[shortened],
        start=_START,
        task=project.tasks[0],
        agents=[40_000] * 20,
        scenes=_SCENES,
    )
    pools = Pools(project, Random(f"{identity} pools"), 400_000)  # noqa: S311 - seeded, for made-up text
    with patch.object(tool_calls, "LONGEST", SHORTENED if shortened else tool_calls.LONGEST):
        return Session(plan, home, Random(identity), pools).write(None)  # noqa: S311 - the same
