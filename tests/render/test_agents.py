"""Agents within agents: each is told once, however calls are copied and whoever started whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.cli.runner import run_in_subprocess
from tests.render.reading import session, shown
from tests.transcripts import SESSION, Part, Pen, Row, prompt, reply, transcript

from threadline.model.session import Session
from threadline.render import AgentDetail, AgentPlacement, TreeNode
from threadline.render.tree import build_tree, draw_tree


def starts(call: str, agent: str) -> Part:
    """A call that starts an agent."""

    def part(pen: Pen) -> Iterator[Row]:
        given = {"description": agent, "prompt": agent}
        yield from reply({"type": "tool_use", "id": call, "name": "Agent", "input": given})(pen)
        block = {"type": "tool_result", "tool_use_id": call, "content": f"agentId: {agent}"}
        own = {"status": "completed", "agentId": agent, "content": []}
        yield pen.chain("user", message={"role": "user", "content": [block]}, toolUseResult=own)

    return part


def nested(folder: Path, main: Sequence[tuple[str, str]], agents: Mapping[str, Sequence[tuple[str, str]]]) -> Session:
    """A session whose agents make these calls, each of which starts an agent."""
    rows = {
        name: transcript(
            prompt(f"Do {name}!"),
            *(starts(call, agent) for call, agent in calls),
            reply(f"Did {name}."),
            pen=Pen(f"{SESSION[:-12]}{at:012d}", sessionId=SESSION, agentId=name, isSidechain=True),
        )
        for at, (name, calls) in enumerate(agents.items(), 2)
    }
    return session(folder, prompt("go"), *(starts(call, agent) for call, agent in main), reply("ok"), agents=rows)


def nodes(root: TreeNode) -> Iterator[TreeNode]:
    """All nodes of a tree."""
    ahead = [root]
    while ahead:
        node = ahead.pop()
        yield node
        ahead += node.children


def told(whole: Session) -> list[str]:
    """The agents that the whole text tells, by their last words."""
    lines = shown(whole, agents=AgentDetail.FULL, width=200)
    return sorted(line.split("Did ")[1].rstrip(".") for line in lines if "Did " in line)


def test_each_agent_is_drawn_once_however_often_its_call_is_copied(tmp_path: Path) -> None:
    """Agents that repeat the calls that started them, twice each, are told once, under the first copy."""
    every = [(f"t{number}", f"a{number}") for number in range(6)]
    whole = nested(tmp_path, every, {agent: [*every, *every] for _, agent in every})
    assert told(whole) == [agent for _, agent in every]
    agents = [node for node in nodes(build_tree(whole)) if node.kind == "agent"]
    assert sorted(node.figures["agent"] for node in agents) == [agent for _, agent in every]
    assert {len(node.children) for node in agents} == {0}


@pytest.mark.parametrize("size", [2, 3, 30])
def test_agents_that_start_each_other_in_a_circle_are_told(tmp_path: Path, size: int) -> None:
    """A circle that nothing leads into is opened at one of its agents, which stands apart."""
    names = [f"a{number:02d}" for number in range(size)]
    whole = nested(tmp_path, [], {name: [(f"t{at}", names[(at + 1) % size])] for at, name in enumerate(names)})
    assert [agent.link.call is not None for agent in whole.agents] == [True] * size
    places = AgentPlacement(whole)
    assert len(places.unlinked) == 1
    assert len(places.below(places.unlinked[0])) == size - 1
    assert any("agents without a call" in line for line in shown(whole))
    deeper = [node.figures["agents"] for node in nodes(build_tree(whole)) if node.kind == "deeper"]
    assert sum(node.kind == "agent" for node in nodes(build_tree(whole))) + sum(deeper) == size


@pytest.mark.slow
def test_agents_nested_beyond_reading_are_counted(tmp_path: Path) -> None:
    """Seven hundred agents within each other are drawn to a depth, and the others are told as a number."""
    size = 700
    agents = {f"a{at}": [(f"t{at + 1}", f"a{at + 1}")] if at < size - 1 else [] for at in range(size)}
    whole = nested(tmp_path, [("t0", "a0")], agents)
    root = build_tree(whole)
    drawn = sum(node.kind == "agent" for node in nodes(root))
    assert f"… {size - drawn} nested agents not shown" in "\n".join(draw_tree(root, 200))
    assert f"… {size - len(told(whole)) - 1} nested agents not shown" in "\n".join(
        shown(whole, agents=AgentDetail.FULL, width=200)
    )
    for output in ([], ["--json"], ["--jsonl"], ["--csv"]):
        assert run_in_subprocess("tree", tmp_path / f"{SESSION}.jsonl", *output).code == 0
