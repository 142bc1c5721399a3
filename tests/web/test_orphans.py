"""Links to a deleted session lead to its remaining agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, call, prompt, reply, transcript, write
from tests.web.client import Client

_AGENTS = ("a1b2c3d4e", "b1b2c3d4e")


def _client(home: Path, *agents: str) -> Client:
    for number, agent in enumerate(agents):
        pen = Pen(SESSION, agentId=agent, isSidechain=True)
        path = home / "projects" / "-work" / SESSION / "subagents" / f"agent-{agent}.jsonl"
        edit = call("Write", {"file_path": f"/work/{agent}.txt", "content": "7"}, "ok")
        parts = (prompt("Count the shelves"), *[edit] * number, reply(f"Counted by {agent}"))
        write(path, *transcript(*parts, pen=pen))
    return Client(home)


def test_redirects_to_the_only_agent(tmp_path: Path) -> None:
    """With a single agent there is nothing to choose."""
    answer = _client(tmp_path, _AGENTS[0]).get(f"/session/{SESSION}")
    assert answer.headers["location"] == f"/session/agent-{_AGENTS[0]}"


def test_lists_several_agents(tmp_path: Path) -> None:
    """A page says that the session no longer exists, and links to each agent."""
    client = _client(tmp_path, *_AGENTS)
    answer = client.get(f"/session/{SESSION}")
    assert answer.status_code == 200
    assert "no longer exists" in answer.text
    for agent in _AGENTS:
        assert f'href="/session/agent-{agent}"' in answer.text
        assert f"Counted by {agent}" in client.get(f"/session/agent-{agent}").text
    assert client.get(f"/session/{SESSION}.json").json()["agents"] == list(_AGENTS)


def test_redirects_an_agents_entry_to_the_agents_page(tmp_path: Path) -> None:
    """Search hits and rows of calls lead to the same line on the agent's page."""
    client = _client(tmp_path, *_AGENTS)
    answer = client.get(f"/session/{SESSION}/agent/{_AGENTS[1]}?at={_AGENTS[1]}.L2")
    assert answer.headers["location"] == f"/session/agent-{_AGENTS[1]}?at=L2#L2"
    page = client.get(answer.headers["location"].partition("#")[0])
    assert page.status_code == 200
    assert 'id="L2"' in page.text


@pytest.mark.parametrize("path", [SESSION.replace("0", "f"), f"{SESSION}/agent/none", f"{SESSION}/entry/L1"])
def test_unknown_sessions_agents_and_entries_are_not_found(tmp_path: Path, path: str) -> None:
    """Another session, another agent, and entries of the deleted session give 404."""
    assert _client(tmp_path, *_AGENTS).get(f"/session/{path}").status_code == 404


@pytest.mark.parametrize("milliseconds", [1e300, -1e300, 10**30, -5, 0])
def test_an_impossible_duration_of_an_agent_is_ignored(tmp_path: Path, milliseconds: float) -> None:
    """The list of agents shows an agent without a transcript, whatever its result says about the time it took."""
    *before, row, last = transcript(prompt("Sort"), call("Agent", {"description": "Count"}, "7"), reply("Done"))
    assert isinstance(row, dict)
    row["toolUseResult"] = {"status": "completed", "agentId": _AGENTS[0], "totalDurationMs": milliseconds}
    write(tmp_path / f"projects/-work/{SESSION}.jsonl", *before, row, last)
    client = Client(tmp_path)
    assert client.get(f"/session/{SESSION}/agents").status_code == 200
    (agent,) = client.get(f"/session/{SESSION}/agents.json").json()
    assert (agent["missing"], agent["duration"]) == (True, "PT1S")


def test_an_existing_session_is_shown_instead_of_its_agents(client: Client) -> None:
    """An agent that an existing session does not have is not found."""
    assert client.get(f"/session/{SESSION}").status_code == 200
    assert client.get(f"/session/{SESSION}/agent/none").status_code == 404


def test_what_was_spent_without_a_session_is_not_counted_as_one(tmp_path: Path) -> None:
    """The last page of the list also shows what was spent in no session, but counts only sessions."""
    client = _client(tmp_path, _AGENTS[0])
    for number in (2, 3):
        pen = Pen(f"{SESSION[:-1]}{number}")
        write(tmp_path / "projects" / "-work" / f"{pen.session}.jsonl", *transcript(prompt("Hi"), reply("Hi"), pen=pen))
    text = client.get("/sessions?limit=1&after=1").text
    assert "Not a session" in text
    assert "2 to 2 of 2" in text


def test_an_agent_without_its_session_can_be_compared(tmp_path: Path) -> None:
    """Lists do not show it, but its page does, with the same figures."""
    client = _client(tmp_path, *_AGENTS)
    name = f"agent-{_AGENTS[0]}"
    first, second = client.get(f"/compare.json?a={name}&b=agent-{_AGENTS[1]}").json()
    row = first["row"]
    head = client.get(f"/session/{name}.json").json()
    assert (row["address"], row["turns"], row["calls"]) == (f"/session/{name}", head["turns"], head["calls"])
    assert row["tokens"] == head["tokens"] > 0
    assert row["amount"] == head["amount"]
    assert row["last"] == head["ended"]
    assert (first["tools"], first["files"]) == ({}, [])
    assert (second["tools"], second["files"]) == ({"Write": 1}, [f"/work/{_AGENTS[1]}.txt"])


def test_sessions_with_the_same_id_can_be_compared(tmp_path: Path) -> None:
    """Each has its own calls and files, although another folder has a session with its id."""
    for number, folder in enumerate(("a", "b"), 1):
        edits = [call("Write", {"file_path": f"/work/{folder}/{at}", "content": "7"}, "ok") for at in range(number)]
        rows = transcript(prompt("Count"), *edits, reply("Counted"), pen=Pen(cwd=f"/work/{folder}"))
        write(tmp_path / f"projects/-work-{folder}/{SESSION}.jsonl", *rows)
    sessions = Client(tmp_path).get(f"/compare.json?a=-work-a/{SESSION}&b=-work-b/{SESSION}").json()
    assert [session["tools"] for session in sessions] == [{"Write": 1}, {"Write": 2}]
    assert [session["files"] for session in sessions] == [["/work/a/0"], ["/work/b/0", "/work/b/1"]]
