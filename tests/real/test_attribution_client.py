"""`why` on sessions of the real Claude Code, compared with an API that knows the size of every block it was sent.

The oracle is the log of the API, not the transcript: each request's blocks in order, with their tokens. The transcript
contains only the totals of each request, from which the attribution has to find the same shares.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.real.client import API, Client, bash, newest, start_client, steps, tool

import threadline
from threadline.account import load_rates

NEWEST = newest() if API.exists() else None
MAX_DIFFERENCE = Decimal("0.02")
DONE = {"text": "All done."}

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client in a fresh home, with an API that counts tokens."""
    assert NEWEST is not None
    metered = Path(__file__).with_name("metered_api.py")
    with start_client(NEWEST, tmp_path, (str(metered), str(tmp_path / "log.jsonl"))) as started:
        yield started


def scripted_costs(log: Path) -> dict[str, Decimal]:
    """What each block cost by the log: its part of each prompt, by position, and of each reply."""
    costs: defaultdict[str, Decimal] = defaultdict(Decimal)
    rates, day = load_rates(), f"{datetime.now(UTC):%Y-%m-%d}"
    for line in log.read_text().splitlines():
        request = json.loads(line)
        usage: dict[str, Any] = request["usage"]
        rate = rates.rate(request["model"], day)
        assert rate is not None
        read = usage["cache_read_input_tokens"]
        written = read + usage["cache_creation_input_tokens"]
        at = 0
        for owner, tokens in request["prompt"]:
            end = at + tokens
            for start, stop, price in (
                (0, read, rate.cache_read),
                (read, written, rate.cache_write_5m),
                (written, end, rate.input),
            ):
                costs[owner] += max(0, min(end, stop) - max(at, start)) * price / 1_000_000
            at = end
        for owner, tokens in request["reply"]:
            costs[owner] += tokens * rate.output / 1_000_000
    return costs


def compare_shares(client: Client, log: Path, name: str) -> None:
    """Compare the shares of a session's cost by the log and by `why`: of each call, each result, each kind of text."""
    costs = scripted_costs(log)
    expected: defaultdict[str, Decimal] = defaultdict(Decimal)
    for owner, cost in costs.items():
        expected[_group_of(owner)] += cost
    with threadline.open(client.claude_home) as archive:
        attribution = archive.attribution(client.sessions[name])
    actual: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in attribution.rows:
        group = f"{row.kind} {row.call}" if row.kind in {"call", "result"} else str(row.kind)
        actual["other" if group in {"injected", "unseen"} else group] += row.amount
    assert sum(costs.values()) == attribution.amount == sum(actual.values())
    differences = {
        group: (actual[group] - expected[group]) / attribution.amount for group in sorted({*expected, *actual})
    }
    assert {group: share for group, share in differences.items() if abs(share) > MAX_DIFFERENCE} == {}
    # What was read or printed, and is a noticeable part of the bill, is nearly exact.
    results = [group for group, cost in expected.items() if group.startswith("result ") and cost > costs_of_note(costs)]
    assert results
    assert {group for group in results if abs(actual[group] / expected[group] - 1) > MAX_DIFFERENCE} == set()


def costs_of_note(costs: dict[str, Decimal]) -> Decimal:
    """A hundredth of everything."""
    return sum(costs.values(), Decimal()) / 100


def _group_of(owner: str) -> str:
    kind, _, text = owner.partition(" ")
    if kind != "text":
        return owner
    return "prompt" if text.startswith("STEPS") else "reply" if text.startswith(("I ", "All done")) else "other"


def write_notes(client: Client, name: str, lines: int) -> str:
    """Write a file for the model to read."""
    path = client.work / name
    path.write_text("".join(f"{name} {number:5} " + "abcdefgh " * 5 + "\n" for number in range(lines)))
    return str(path)


def test_carried_results(client: Client, tmp_path: Path) -> None:
    """Results of different sizes, read early and late, alone and together, with replies, thinking and a second turn."""
    client.say(
        "work",
        steps(
            [{"text": "I read the notes first."}, tool("Read", file_path=write_notes(client, "medium", 330))],
            *[[bash(f"seq {number * 40} {number * 80}")] for number in range(1, 7)],
            [
                {"think": "How should this be done? " * 30},
                tool("Write", file_path=f"{client.work}/a.py", content="a = 1\n" * 400),
            ],
            [tool("Read", file_path=write_notes(client, "small", 50)), bash("seq 1 900"), bash("echo short")],
            *[[{"text": f"I go on with part {number}. " * 20}, bash("date")] for number in range(8)],
            [DONE],
        ),
    )
    compare_shares(client, tmp_path / "log.jsonl", "work")
    large = write_notes(client, "large", 900)
    client.say("work", steps([tool("Read", file_path=large)], *[[bash(f"echo {n}")] for n in range(5)], [DONE]), "-c")
    compare_shares(client, tmp_path / "log.jsonl", "work")


def test_subagents(client: Client, tmp_path: Path) -> None:
    """Two subagents with their own windows, whose answers the main agent carries."""
    notes = write_notes(client, "notes", 200)
    prompt = steps(
        [{"text": "I look."}, tool("Read", file_path=notes)], [bash("seq 1 500")], [{"text": "I found it. " * 50}]
    )
    agent = tool("Agent", description="look", prompt=prompt, subagent_type="general-purpose")
    client.say("work", steps([agent], [bash("seq 1 300")], [agent], [bash("date")], [DONE]))
    compare_shares(client, tmp_path / "log.jsonl", "work")
