"""Sessions as JSON."""

from __future__ import annotations

from pathlib import Path

from tests.render.sessions import session
from tests.transcripts import SESSION, Pen, call, prompt, reply, transcript

from threadline.render import View, session_to_json

AGENT = "a1b2c3d4e"


def test_turns_and_branches_are_those_of_the_main_agent(tmp_path: Path) -> None:
    """An agent has turns and branches of its own: a view of some turns, or of a branch, shows all of its items."""
    parts = transcript(
        prompt("one"),
        reply("1"),
        call("Agent", {"prompt": "count"}, result="2", details={"agentId": AGENT}),
        prompt("two"),
        reply("2"),
    )
    rewound = {**next(row for row in parts if isinstance(row, dict) and "two" in str(row.get("message")))}
    rewound |= {"uuid": "99999999-0000-4000-8000-000000000001", "timestamp": "2026-01-05T10:00:00.000Z"}
    agent = transcript(prompt("count"), reply("2"), pen=Pen(SESSION, agentId=AGENT, isSidechain=True))
    sample = session(tmp_path, *parts, rewound, agents={AGENT: agent})
    assert len(sample.branches) == 1
    for view in (View(), View(branch=1), View(to_turn=1)):
        (row,) = session_to_json(sample, view)["agents"]
        assert [item["kind"] for item in row["items"]] == ["task", "reply"]
