"""Nested agents: each is shown once, however calls are copied and whichever agent started another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.cli.runner import run_in_subprocess
from tests.render.sessions import session, text_lines
from tests.transcripts import SESSION, Part, Pen, Row, prompt, reply, transcript

from threadline.model.session import Session
from threadline.render import AgentPlacement, Detail, TreeNode, build_tree, draw_tree


def agent_call(call: str, agent: str) -> Part:
    """A call that starts an agent."""

    def part(pen: Pen) -> Iterator[Row]:
        arguments = {"description": agent, "prompt": agent}
        yield from reply({"type": "tool_use", "id": call, "name": "Agent", "input": arguments})(pen)
        block = {"type": "tool_result", "tool_use_id": call, "content": f"agentId: {agent}"}
        details = {"status": "completed", "agentId": agent, "content": []}
        yield pen.chain("user", message={"role": "user", "content": [block]}, toolUseResult=details)

    return part


def nested_session(
    folder: Path, main: Sequence[tuple[str, str]], agents: Mapping[str, Sequence[tuple[str, str]]]
) -> Session:
    """A session whose agents make these calls, each of which starts an agent."""
    rows = {
        name: transcript(
            prompt(f"Do {name}!"),
            *(agent_call(call, agent) for call, agent in calls),
            reply(f"Did {name}."),
            pen=Pen(f"{SESSION[:-12]}{at:012d}", sessionId=SESSION, agentId=name, isSidechain=True),
        )
        for at, (name, calls) in enumerate(agents.items(), 2)
    }
    return session(folder, prompt("go"), *(agent_call(call, agent) for call, agent in main), reply("ok"), agents=rows)


def nodes(root: TreeNode) -> Iterator[TreeNode]:
    """All nodes of a tree."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += node.children


def shown_agents(nested: Session) -> list[str]:
    """The agents in the full text, by their last words."""
    lines = text_lines(nested, agents=Detail.FULL, width=200)
    return sorted(line.split("Did ")[1].rstrip(".") for line in lines if "Did " in line)


def test_shows_an_agent_once_if_its_call_is_copied(tmp_path: Path) -> None:
    """Agents that repeat the calls that started them, twice each, are shown once, under the first copy."""
    calls = [(f"t{number}", f"a{number}") for number in range(6)]
    nested = nested_session(tmp_path, calls, {agent: [*calls, *calls] for _, agent in calls})
    assert shown_agents(nested) == [agent for _, agent in calls]
    agents = [node for node in nodes(build_tree(nested)) if node.kind == "agent"]
    assert sorted(node.figures["agent"] for node in agents) == [agent for _, agent in calls]
    assert {len(node.children) for node in agents} == {0}


@pytest.mark.parametrize("size", [2, 3, 30])
def test_shows_agents_that_start_each_other_in_a_cycle(tmp_path: Path, size: int) -> None:
    """A cycle that nothing leads into is opened at one of its agents, which is shown separately."""
    names = [f"a{number:02d}" for number in range(size)]
    nested = nested_session(tmp_path, [], {name: [(f"t{at}", names[(at + 1) % size])] for at, name in enumerate(names)})
    assert [agent.link.call is not None for agent in nested.agents] == [True] * size
    placement = AgentPlacement(nested)
    assert len(placement.unlinked) == 1
    assert len(placement.below(placement.unlinked[0])) == size - 1
    assert any("agents without a call" in line for line in text_lines(nested))
    deeper = [node.figures["agents"] for node in nodes(build_tree(nested)) if node.kind == "deeper"]
    assert sum(node.kind == "agent" for node in nodes(build_tree(nested))) + sum(deeper) == size


@pytest.mark.slow
def test_counts_agents_that_are_nested_too_deeply(tmp_path: Path) -> None:
    """Seven hundred nested agents are shown to a limited depth, and the others are counted."""
    size = 700
    agents = {f"a{at}": [(f"t{at + 1}", f"a{at + 1}")] if at < size - 1 else [] for at in range(size)}
    nested = nested_session(tmp_path, [("t0", "a0")], agents)
    root = build_tree(nested)
    shown = sum(node.kind == "agent" for node in nodes(root))
    assert f"… {size - shown} nested agents not shown" in "\n".join(draw_tree(root, 200))
    assert f"… {size - len(shown_agents(nested)) - 1} nested agents not shown" in "\n".join(
        text_lines(nested, agents=Detail.FULL, width=200)
    )
    for output in ([], ["--json"], ["--jsonl"], ["--csv"]):
        assert run_in_subprocess("tree", tmp_path / f"{SESSION}.jsonl", *output).code == 0
