"""What each turn and each agent spent: in `usage --by turn`, `show`, `tree`, `context`, `list` and the library."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, START, Pen, call, prompt, reply, transcript, write

import threadline
from threadline.load import read
from threadline.model.places import AgentId

AGENT = "a0000000000000001"
COMPACTION = "acompact-0123456789abcdef"
OTHER = "5e550002-0000-4000-8000-000000000002"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two sessions; the first turn of one starts an agent."""
    home = tmp_path / "home"
    folder = home / "projects" / "-work-app"
    arguments = {"subagent_type": "Explore", "prompt": "look", "description": "look"}
    rows = transcript(
        prompt("first question"),
        call("Agent", arguments, result="done", details={"agentId": AGENT, "status": "completed"}, input=10, output=1),
        prompt("second question"),
        reply("answer", input=1000, output=100),
    )
    write(folder / f"{SESSION}.jsonl", *rows)
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    agent = transcript(prompt("look"), reply("seen", input=500, output=50, message={"id": "msg_of_the_agent"}), pen=pen)
    write(folder / SESSION / f"subagents/agent-{AGENT}.jsonl", *agent)
    other = transcript(prompt("elsewhere"), reply("yes", input=7, output=7, message={"id": "msg_o"}), pen=Pen(OTHER))
    write(folder / f"{OTHER}.jsonl", *other)
    return home


def path(home: Path) -> Path:
    """The session's transcript."""
    return home / "projects" / "-work-app" / f"{SESSION}.jsonl"


def test_an_agents_spending_counts_for_the_turn_that_started_it(home: Path) -> None:
    """The turns add up to the session's total, and the agent's own sum is known, too."""
    session = read(path(home))
    costs = session.costs
    assert {number: (total.charges, total.input) for number, total in costs.turns.items()} == {
        1: (2, 510),
        2: (1, 1000),
    }
    assert {str(agent): total.input for agent, total in costs.agents.items()} == {AGENT: 500}
    assert sum(total.amount or 0 for total in costs.turns.values()) == costs.total.amount == session.ledger.total.amount


def test_what_an_agent_repeats_of_the_main_thread_counts_for_the_turn_that_said_it(home: Path, cli: CliRunner) -> None:
    """A compaction's side agent repeats every row: turns keep their spending, and it has only that of its own reply."""
    rows = [
        row | {"isSidechain": True, "agentId": COMPACTION}
        for row in map(json.loads, path(home).read_bytes().splitlines())
    ]
    own_ids = "5e550003-0000-4000-8000-000000000003"
    pen = Pen(own_ids, START + timedelta(hours=1), sessionId=SESSION, agentId=COMPACTION, isSidechain=True)
    summary = transcript(
        prompt("Sum up"), reply("All.", input=3, output=3, message={"id": "msg_of_a_summary"}), pen=pen
    )
    write(home / f"projects/-work-app/{SESSION}/subagents/agent-{COMPACTION}.jsonl", *rows, *summary)
    costs = read(path(home)).costs
    assert {turn: total.input for turn, total in costs.turns.items()} == {1: 510, 2: 1000, None: 3}
    assert {str(agent): total.input for agent, total in costs.agents.items()} == {AGENT: 500, COMPACTION: 3}
    by_turn = cli("usage", "--home", home, "--by", "turn", "--session", SESSION, "--jsonl").jsonl
    assert {row["turn"]: row["input"] for row in by_turn} == {1: 510, 2: 1000, None: 3}
    with threadline.open(home, index=False) as archive:
        assert {cause.turn for cause in archive.causes().largest(100) if cause.agent == AGENT} == {1}


def test_usage_by_turn(home: Path, cli: CliRunner) -> None:
    """Rows have session, turn, prompt and sums. A limit counts turns if the session is given."""
    rows = cli("usage", "--home", home, "--by", "turn", "--jsonl").jsonl
    assert {(row["session"], row["turn"], row["prompt"]): row["input"] for row in rows} == {
        (SESSION, 1, "first question"): 510,
        (SESSION, 2, "second question"): 1000,
        (OTHER, 1, "elsewhere"): 7,
    }
    total = cli("usage", "--home", home, "--json").json["total"]["amount"]
    assert sum(row["amount"] for row in rows) == total
    (row,) = cli("usage", "--home", home, "--by", "turn", "--session", SESSION[:8], "--limit", "1", "--jsonl").jsonl
    assert (row["turn"], row["prompt"], "session" in row) == (2, "second question", False)
    table = cli("usage", "--home", home, "--by", "turn", "--session", SESSION[:8]).out
    assert "2  second question" in table


def test_usage_by_turn_is_the_same_with_an_index(home: Path, cli: CliRunner) -> None:
    """The index and the files give the same rows."""
    before = cli("usage", "--home", home, "--by", "turn", "--jsonl").jsonl
    cli("index", "refresh", "--home", home)
    assert cli("usage", "--home", home, "--by", "turn", "--jsonl").jsonl == before


def test_show_tree_and_context_have_amounts(home: Path, cli: CliRunner) -> None:
    """Every command has the amount of each turn, for people and for programs."""
    costs = read(path(home)).costs
    first, second = costs.turn(1).amount, costs.turn(2).amount
    shown = cli("show", SESSION, "--home", home, "--json").json
    assert [turn["amount"] for turn in shown["turns"]] == [first, second]
    assert shown["spent"]["amount"] == costs.total.amount
    tree = cli("tree", SESSION, "--home", home, "--json").json
    assert [node["amount"] for node in tree["children"]] == [first, second]
    assert tree["amount"] == costs.total.amount
    assert tree["children"][0]["children"][0]["amount"] == costs.agents[AgentId(AGENT)].amount
    assert {row["turn"]: row["amount"] for row in cli("context", SESSION, "--home", home, "--jsonl").jsonl}[2] == second
    for command in ("show", "tree", "context"):
        assert f"${second:.4f}"[:6] in cli(command, SESSION, "--home", home).out


def test_list_has_amounts_from_the_index(home: Path, cli: CliRunner) -> None:
    """With an index, `list` and `Archive.session_costs` have what each session spent."""
    cli("index", "refresh", "--home", home)
    amounts = {row["session"]: row["amount"] for row in cli("list", "--home", home, "--json").json}
    usage = {row["session"]: row["amount"] for row in cli("usage", "--home", home, "--by", "session", "--jsonl").jsonl}
    assert amounts == usage
    assert all(isinstance(amount, Decimal) for amount in amounts.values())
    with threadline.open(home) as archive:
        costs = archive.session_costs(archive.sessions())
        assert {path.stem: cost.amount for path, cost in costs.items()} == usage
