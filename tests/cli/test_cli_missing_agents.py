"""Subagents whose transcripts are gone: their spending is in no total, and every report says so, with a lower bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, Pen, Writer, call, prompt, reply, transcript, write

import threadline
from threadline.load import read
from threadline.reports import read_ledger

GONE, RUNNING, PRESENT = "a0000000000000001", "a0000000000000002", "a0000000000000003"


def agent_call(agent: str, **result: object) -> Writer:
    """A call of the tool Agent whose result names an agent."""
    arguments = {"subagent_type": "Explore", "prompt": "look", "description": "look"}
    return call("Agent", arguments, result="done", details={"agentId": agent, **result})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A session that started three agents, of which one left a transcript."""
    home = tmp_path / "home"
    folder = home / "projects" / "-work-app"
    usage = {"input_tokens": 1, "output_tokens": 2}
    rows = transcript(
        prompt("go"),
        agent_call(GONE, status="completed", totalTokens=1500, usage=usage),
        agent_call(RUNNING, status="async_launched", isAsync=True),
        agent_call(PRESENT, status="completed", totalTokens=900, usage=usage),
        reply("done", input=10, output=5),
    )
    write(folder / f"{SESSION}.jsonl", *rows)
    pen = Pen(SESSION, agentId=PRESENT, isSidechain=True)
    write(
        folder / SESSION / f"subagents/agent-{PRESENT}.jsonl",
        *transcript(prompt("look"), reply("seen", input=900, output=1), pen=pen),
    )
    return home


def test_names_each_agent_once_with_what_its_result_reports(home: Path) -> None:
    """The index and the files give the same agents, with call, session, time and place."""
    ledger = read_ledger(home)
    assert [(agent.agent, agent.tokens, agent.session) for agent in ledger.missing_agents] == [
        (GONE, 1500, SESSION),
        (RUNNING, None, SESSION),
    ]
    first = ledger.missing_agents[0]
    assert first.place.line == next(call.place.line for call in read_session(home).calls if call.id == first.call)
    with threadline.open(home) as archive:
        archive.refresh()
        assert archive.ledger().missing_agents == ledger.missing_agents
    assert read_session(home).ledger.missing_agents == ledger.missing_agents


def test_filters_apply_to_missing_agents(home: Path) -> None:
    """They belong to the session, project and time of the call. No filter by model matches them."""
    ledger = read_ledger(home)
    with threadline.open(home) as archive:
        archive.refresh()
        for source in (ledger, archive.ledger()):
            assert len(source.where(session=SESSION[:8]).missing_agents) == 2
            assert len(source.where(project="app").missing_agents) == 2
            assert not source.where(project="elsewhere").missing_agents
            assert not source.where(until="2020-01-01").missing_agents
            assert not source.where(model="sonnet").missing_agents


def test_a_fork_repeats_results(home: Path) -> None:
    """An agent that two transcripts name is missing once, for the first of them."""
    folder = home / "projects" / "-work-app"
    copy = "5e550002-0000-4000-8000-000000000002"
    write(folder / f"{copy}.jsonl", (folder / f"{SESSION}.jsonl").read_bytes())
    with threadline.open(home) as archive:
        archive.refresh()
        for ledger in (read_ledger(home), archive.ledger()):
            assert [agent.agent for agent in ledger.missing_agents] == [GONE, RUNNING]


def test_usage_and_explain_report_them(home: Path, cli: CliRunner) -> None:
    """`usage` has a note and figures, `explain` lists them with their places, and totals do not include them."""
    report = cli("usage", "--home", home, "--json").json
    assert report["missing_agents"] == {"agents": 2, "reporting": 1, "tokens_at_least": 1500}
    note = "2 subagents no longer have a transcript, so their spending is missing or incomplete. 1 of them reports"
    assert any(text.startswith(note) and text.endswith("1.5k tokens, a lower bound.") for text in report["notes"])
    assert report["total"]["charges"] == 5
    assert note in " ".join(cli("usage", "--home", home).out.split())
    receipt = cli("explain", SESSION, "--home", home, "--json").json
    (gap,) = [gap for gap in receipt["missing"] if gap["kind"] == "agents"]
    assert (gap["number"], len(gap["places"])) == (2, 2)
    assert not cli("usage", "--home", home, "--session", "ffffffff", "--json").json["missing_agents"]["agents"]


def test_explain_sorts_by_amount(home: Path, cli: CliRunner) -> None:
    """`--sort amount` lists the most expensive messages first, in every format."""
    rows = cli("explain", SESSION, "--home", home, "--sort", "amount", "--json").json["messages"]
    amounts = [row["amount"] for row in rows]
    assert amounts == sorted(amounts, reverse=True)
    assert len(set(amounts)) > 1
    assert (
        cli("explain", SESSION, "--home", home, "--sort", "amount", "--limit", "1", "--json").json["messages"]
        == rows[:1]
    )
    by_time = cli("explain", SESSION, "--home", home, "--json").json["messages"]
    assert [row["timestamp"] for row in by_time] == sorted(row["timestamp"] for row in by_time)


def read_session(home: Path) -> threadline.Session:
    """The session of the home."""
    return read(home / "projects" / "-work-app" / f"{SESSION}.jsonl")


def test_strange_results_are_read_alike(tmp_path: Path) -> None:
    """Whatever a result contains instead of an id and a number, the index and the files give the same agents."""
    ids: list[object] = ["a1", 7, ["x"], "", None, "a2", "a2", "a3", "a4", "a5"]
    totals: list[object] = [-5, 1, 1, 1, 1, 5, 9, 1.5, 2**63, "12"]
    calls = [
        call("Task", {"prompt": f"{at}"}, result="done", details={"agentId": agent, "totalTokens": total})
        for at, (agent, total) in enumerate(zip(ids, totals, strict=True))
    ]
    home = tmp_path / "home"
    write(home / f"projects/-work-app/{SESSION}.jsonl", *transcript(prompt("go"), *calls))
    found = read_ledger(home).missing_agents
    assert [(agent.agent, agent.tokens) for agent in found] == [
        ("a1", None),
        ("a2", 9),
        ("a3", None),
        ("a4", None),
        ("a5", None),
    ]
    with threadline.open(home) as archive:
        archive.refresh()
        assert archive.ledger().missing_agents == found
