"""Fields that one description puts on rows: `systemMessage`, `agent_id`, `agent_transcript_path`, `modelUsage`."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.entry_points import WebClient, isolated, run_command
from tests.transcripts import SESSION, Pen, call, prompt, reply, transcript, write

import threadline
from threadline.home_files import open_transcript

AGENT = "a1b2c3d4"
OTHER = "07e40000-0000-4000-8000-000000000002"


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path) -> Iterator[None]:
    with isolated(tmp_path / "isolated", frozen=False):
        yield


def write_home(home: Path, *rows: Any) -> Path:
    """Write a home with one session."""
    return write(home / "projects/-work-app" / f"{SESSION}.jsonl", *rows)


def agent_rows(session: str = SESSION, **fields: Any) -> list[Any]:
    """Return the rows of an agent's transcript."""
    pen = Pen(session, isSidechain=True, **fields)
    return transcript(prompt("Count the shelves"), reply("Two", output=7), reply("Shelves", output=8), pen=pen)


@pytest.mark.parametrize("kind", ["user", "assistant", "system", "attachment"])
def test_system_message_is_shown_and_searched(tmp_path: Path, kind: str) -> None:
    """On rows of any kind."""
    rows: list[Any] = transcript(prompt("Sort"), reply("Sorted"))
    others = {
        "system": {**rows[0], "type": "system", "subtype": "informational", "content": "note", "uuid": "s1"},
        "attachment": {**rows[0], "type": "attachment", "attachment": {"type": "date_change"}, "uuid": "x1"},
    }
    row = others.get(kind) or next(row for row in rows if row["type"] == kind)
    row["systemMessage"] = "The zebra hook ran"
    path = write_home(tmp_path, *rows, *([row] if kind in others else []))
    for command in (("show", path), ("export", path, "--format", "md", "--out", "-")):
        assert "The zebra hook ran" in run_command(*command, "--home", tmp_path).out.decode()
    (hit,) = run_command("search", "zebra", "--json", "--home", tmp_path).json
    assert hit["session"] == SESSION
    server = WebClient(tmp_path)
    try:
        assert "The zebra hook ran" in server.json(f"/session/{SESSION}")["text"]
    finally:
        server.close()


def test_agent_id_is_used_like_agentid(tmp_path: Path) -> None:
    """Interleaved agents inside a main transcript are told apart, and their spending is theirs."""
    first, second = (agent_rows(agent_id=agent) for agent in ("one", "two"))
    for row in second:
        row["uuid"], row["parentUuid"] = f"b{row['uuid']}", None
    mixed = [row for pair in zip(first, second, strict=True) for row in pair]
    for number, row in enumerate(mixed):
        if "id" in row["message"]:
            row["message"]["id"] = f"msg_{number}"
    path = write_home(tmp_path, *transcript(prompt("Sort")), *mixed)
    assert sorted(str(agent.id) for agent in threadline.read(path).agents) == ["one", "two"]
    for index in (True, False):
        with threadline.open(tmp_path, index=index, keep=False) as archive:
            rows = archive.ledger().by("agent")
            assert {row.keys["agent"]: row.output for row in rows} == {"one": 15, "two": 15}


def test_named_transcript_is_read_as_an_agent(tmp_path: Path) -> None:
    """The transcript is in the folder of another project, where it would not be looked for."""
    agent = write(tmp_path / "projects/-other-tree" / f"agent-{AGENT}.jsonl", *agent_rows())
    rows: list[Any] = transcript(prompt("Sort"), reply("Sorted"))
    path = write_home(tmp_path, *rows)
    assert not threadline.read(path).agents
    rows[-1]["agent_transcript_path"] = str(agent)
    write_home(tmp_path, *rows)
    session = threadline.read(path)
    assert [(str(found.id), len(found.entries)) for found in session.agents] == [(AGENT, 3)]
    for options in ((), ("--no-redact",)):
        command = ("export", path, "--agents", "full", "--format", "md", "--out", "-", *options)
        assert "Count the shelves" in run_command(*command, "--home", tmp_path).out.decode()
    with threadline.open(tmp_path, index=False, keep=False) as archive:
        assert archive.ledger().by("session")[0].output == session.ledger.total.output
        assert [row.agents for row in archive.sessions().sessions] == [1]


@pytest.mark.parametrize("name", [{"agent_id": AGENT}, {}])
def test_named_transcript_links_the_agent_to_its_call(tmp_path: Path, name: dict[str, str]) -> None:
    """On the result of a call, it names the agent that the call started. The row is not the agent's."""
    agent = write(tmp_path / "projects/-other-tree" / f"agent-{AGENT}.jsonl", *agent_rows())
    rows: list[Any] = transcript(prompt("Sort"), call("Agent", {"prompt": "Other words"}, result="Done"))
    for row in rows:
        row |= {**name, "agent_transcript_path": str(agent)}
    session = threadline.read(write_home(tmp_path, *rows))
    assert [(found.id, str(found.link.step)) for found in session.agents] == [(AGENT, "result")]
    assert len(session.turns) == 1
    with threadline.open(tmp_path, keep=False) as archive:
        (row,) = archive.sql("SELECT agent, call FROM agents")
    assert (row["agent"], row["call"]) == (AGENT, session.calls[0].id)


def test_named_transcript_is_read_only_inside_the_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not elsewhere, not through a link, and not if it belongs to another session or is not an agent's."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    secret = write(outside / f"agent-{AGENT}.jsonl", *agent_rows())
    link = home / "projects/-work-app" / "agent-11111111.jsonl"
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    (home / f"agent-{AGENT}.jsonl").write_bytes(secret.read_bytes())
    below_other = write(home / f"projects/-x/{OTHER}/subagents/agent-{AGENT}.jsonl", *agent_rows())
    names_other = write(home / "projects/-x/agent-22222222.jsonl", *agent_rows(OTHER))
    no_agent = write(home / "projects/-x/notes.jsonl", *agent_rows())
    names = [
        secret,
        home / f"agent-{AGENT}.jsonl",
        below_other,
        names_other,
        no_agent,
        f"{link.parent}/../../../x",
        "\0",
        f"/HALF/agent-{AGENT}.jsonl",
        f"{link.parent}/HALF/agent-{AGENT}.jsonl",
    ]
    rows = transcript(prompt("Sort"), *({**row, "uuid": f"r{at}"} for at, row in enumerate(_naming(names))))
    path = write_home(home, *rows)
    path.write_bytes(path.read_bytes().replace(b"HALF", rb"\ud800"))  # half of a surrogate pair
    opened: list[str] = []

    def open_and_remember(path: str | Path) -> int:
        opened.append(str(path))
        return open_transcript(path)

    monkeypatch.setattr("threadline.parse.lines.open_transcript", open_and_remember)
    assert [agent.id for agent in threadline.read(path, continued=False).agents if agent.id != "11111111"] == []
    assert not [name for name in opened if "outside" in name]


def _naming(names: list[Any]) -> list[Any]:
    base: Any = transcript(prompt("Next"))[0]
    return [{**base, "agent_transcript_path": str(name)} for name in names]


def test_model_usage_is_a_reported_cost(tmp_path: Path) -> None:
    """The last one of a session counts, and only if there is no `cost-state`."""
    rows: list[Any] = transcript(prompt("Sort"), reply("Sorted", input=1000, output=500))
    rows[0]["modelUsage"] = {"claude-sonnet-4-5": {"inputTokens": 1, "costUSD": 0.001}}
    rows[-1]["modelUsage"] = {
        "claude-sonnet-4-5": {"inputTokens": 1000, "outputTokens": 500, "costUSD": 0.0105},
        "claude-haiku-4-5": {"inputTokens": 10, "costUSD": 0.25},
    }
    write_home(tmp_path, *rows)
    data = run_command("usage", "--mode", "both", "--json", "--home", tmp_path).json
    (session,) = data["reported"]["sessions"]
    assert (session["session"], session["source"]) == (SESSION, "modelUsage")
    assert Decimal(str(session["reported"])) == Decimal("0.2605")
    assert Decimal(str(session["computed"])) == Decimal("0.0105")
    total = {"type": "cost-state", "sessionId": SESSION, "totalCostUSD": 0.0105, "modelUsage": {}}
    write_home(tmp_path, *rows, total)
    data = run_command("usage", "--mode", "both", "--json", "--home", tmp_path).json
    assert [session["source"] for session in data["reported"]["sessions"]] == ["cost-state"]
