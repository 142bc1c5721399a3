"""What leads to a session that is not there leads to those of its agents that are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.client import Client

_AGENTS = ("a1b2c3d4e", "b1b2c3d4e")


def _home(home: Path, *agents: str) -> Client:
    for agent in agents:
        pen = Pen(SESSION, agentId=agent, isSidechain=True)
        path = home / "projects" / "-work" / SESSION / "subagents" / f"agent-{agent}.jsonl"
        write(path, *transcript(prompt("Count the shelves"), reply(f"Counted by {agent}"), pen=pen))
    return Client(home)


def test_the_only_one_is_shown_itself(tmp_path: Path) -> None:
    """There is nothing to choose."""
    answer = _home(tmp_path, _AGENTS[0]).get(f"/session/{SESSION}")
    assert answer.headers["location"] == f"/session/agent-{_AGENTS[0]}"


def test_of_several_one_can_choose(tmp_path: Path) -> None:
    """A page says what became of the session, and leads to each."""
    client = _home(tmp_path, *_AGENTS)
    answer = client.get(f"/session/{SESSION}")
    assert answer.status_code == 200
    assert "no longer exists" in answer.text
    for agent in _AGENTS:
        assert f'href="/session/agent-{agent}"' in answer.text
        assert f"Counted by {agent}" in client.get(f"/session/agent-{agent}").text
    assert client.get(f"/session/{SESSION}.json").json()["agents"] == list(_AGENTS)


def test_an_entry_of_an_agent_is_found_in_its_page(tmp_path: Path) -> None:
    """Hits of searches and rows of calls lead there: to the same line."""
    client = _home(tmp_path, *_AGENTS)
    answer = client.get(f"/session/{SESSION}/agent/{_AGENTS[1]}?at={_AGENTS[1]}.L2")
    assert answer.headers["location"] == f"/session/agent-{_AGENTS[1]}?at=L2#L2"
    shown = client.get(answer.headers["location"].partition("#")[0])
    assert shown.status_code == 200
    assert 'id="L2"' in shown.text


@pytest.mark.parametrize("path", [SESSION.replace("0", "f"), f"{SESSION}/agent/none", f"{SESSION}/entry/L1"])
def test_what_is_not_there_at_all_is_not_found(tmp_path: Path, path: str) -> None:
    """Another session, another agent, and what would lie below the session."""
    assert _home(tmp_path, *_AGENTS).get(f"/session/{path}").status_code == 404


def test_a_session_that_is_there_is_not_left_for_its_agents(client: Client) -> None:
    """An agent that it does not have is not found."""
    assert client.get(f"/session/{SESSION}").status_code == 200
    assert client.get(f"/session/{SESSION}/agent/none").status_code == 404
