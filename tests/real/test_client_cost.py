"""Our amounts against those of the real Claude Code: what it prints when it ends, and what it writes down.

Claude Code adds up in floats, we exactly, so that sums of theirs are off in the last digits of a float: a total of one
model with few messages was never off by more than 1e-17. Equal means here: off by less than 1e-12, a ten-thousandth of
what the cheapest token costs, with the same tokens of every kind and model.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.real.client import API, Client, bash, client, newest, steps, tool

import threadline
from threadline.account import load_rates
from threadline.find import look
from threadline.model.entries import AssistantEntry
from threadline.model.ledger import DifferenceCause, ReportedSession, ReportedUsage
from threadline.reports import build_ledger, reconcile

NEWEST = newest() if API.exists() else None
LEAST = Decimal("1e-12")
MODELS = (
    "claude-opus-5-5",
    "claude-opus-5",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-opus-4-5",
    "claude-sonnet-5-5",
    "claude-sonnet-5",
    "claude-sonnet-4-6",
    "claude-sonnet-4-5",
    "claude-haiku-5-5",
    "claude-haiku-4-5",
    "claude-fable-5-1",
    "claude-fable-5",
    "claude-mythos-5-1",
    "claude-mythos-5",
    "claude-3-7-sonnet-20250219",
    "claude-3-5-haiku-20241022",
)
DONE = {"text": "All done."}

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Client]:
    """A client in a fresh home."""
    assert NEWEST is not None
    with client(NEWEST, tmp_path) as made:
        yield made


def told(client: Client) -> ReportedUsage:
    """What the client wrote down, held against the ledger of its home."""
    assert client.failed == {}
    found = [look(client.claude_home)]
    return reconcile(found, build_ledger(found, load_rates()))


def of(answer: ReportedUsage, client: Client, name: str) -> ReportedSession:
    """The session of a run by its name."""
    (session,) = (session for session in answer.sessions if session.session == client.sessions[name])
    return session


def printed(client: Client, name: str) -> Decimal:
    """What the client printed as the session's cost when a run ended."""
    return Decimal(client.results[name]["total_cost_usd"])


def assert_equal(answer: ReportedUsage, client: Client, name: str) -> Decimal:
    """Ours, the total printed and the total written down are the same; gives by how little they are off."""
    session = of(answer, client, name)
    assert [why.cause for why in session.why] == [DifferenceCause.AGREES], (name, session.why)
    assert session.tokens == ()
    assert session.reported == printed(client, name)
    assert abs(session.difference) < LEAST
    return abs(session.difference)


def test_plain_sessions(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Turns, parallel calls, edits, errors, a retry, agents, a rewind: the client's amount is ours."""
    path = str(client.work / "made.py")
    client.say("plain", steps([{"think": "Let me look."}, {"text": "I look."}, bash("echo one")], [DONE]))
    client.say("parallel", steps([bash("echo 1"), bash("echo 2"), bash("echo 3")], [DONE]))
    edits = (
        [tool("Write", file_path=path, content="a = 1\n")],
        [tool("Edit", file_path=path, old_string="1", new_string="2")],
    )
    client.say("edits", steps(*edits, [tool("Read", file_path=f"{path}.none"), bash("exit 3")], [DONE]))
    client.say("retry", steps([{"status": 529}, {"text": "ok after all"}]))
    errand = steps([{"text": "I look."}, bash("echo sub")], [{"text": "sub done"}])
    given = {"description": "look", "prompt": errand, "subagent_type": "general-purpose"}
    client.say("agents", steps([tool("Agent", **given), tool("Agent", **given)], [DONE]))
    begun = client.say("begin", steps([bash("echo begin")], [DONE]))
    client.say("continue", steps([bash("echo more")], [DONE]), "-c")
    assert begun == client.sessions["continue"]
    answer = told(client)
    off = [assert_equal(answer, client, name) for name in ("plain", "parallel", "edits", "retry", "agents", "continue")]
    assert of(answer, client, "agents").charges >= 6
    assert printed(client, "begin") < printed(client, "continue")
    with capsys.disabled():
        exact = sum(not each for each in off)
        print(f"\nplain sessions: {len(off)}, {exact} equal to the last digit, the others off by at most {max(off)}")  # noqa: T201 - figures are wanted here


def test_every_model(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Every model's prices are the client's own: input, output, both cache writes and cache reads."""
    for model in MODELS:
        client.say(model, steps([bash("echo m")], [DONE]), "--model", model)
    client.say(
        "switched",
        steps([bash("echo m")], [DONE]),
        "-r",
        client.sessions["claude-opus-5"],
        "--model",
        "claude-sonnet-5",
    )
    answer = told(client)
    off = {model: assert_equal(answer, client, model) for model in (*MODELS, "switched") if model != "claude-opus-5"}
    with capsys.disabled():
        print(f"\nmodels: {len(off)}, off by at most {max(off.values())}")  # noqa: T201 - the same


def test_long_prompts(client: Client) -> None:
    """A long prompt of claude-haiku-5-5 costs more, as the client says; for claude-sonnet-4-5 it does not say so."""
    (client.work / "CLAUDE.md").write_text("word number thing " * 110_000)
    client.say("haiku", steps([bash("echo m")], [DONE]), "--model", "claude-haiku-5-5")
    client.say("sonnet", steps([bash("echo m")], [DONE]), "--model", "claude-sonnet-4-5")
    answer = told(client)
    assert_equal(answer, client, "haiku")
    (why,) = of(answer, client, "sonnet").why
    assert (why.cause, why.proven) == (DifferenceCause.PRICES, True)
    assert why.words.startswith("Claude Code priced long prompts as short ones")


def test_an_unknown_model(client: Client) -> None:
    """The client guesses the price of a model it does not know and says so; we give none."""
    client.say("unknown", steps([bash("echo m")], [DONE]), "--model", "some-unknown-model")
    session = of(told(client), client, "unknown")
    assert (session.computed, session.is_floor, session.tokens) == (Decimal(0), True, ())
    assert [(why.cause, why.amount) for why in session.why] == [(DifferenceCause.UNPRICED, printed(client, "unknown"))]


def test_rewind(client: Client) -> None:
    """Both branches of a rewind were paid for: the client's amount has both, and so has ours."""
    session = client.say("begin", steps([bash("echo begin")], [DONE]))
    client.say("more", "one more", "-c")
    found = look(client.claude_home)
    (transcript,) = (each for each in found.transcripts if each.session == session)
    replies = [entry for entry in threadline.read(transcript.path).main.entries if isinstance(entry, AssistantEntry)]
    assert session is not None
    client.say("rewind", "another way", "-r", session, "--resume-session-at", str(replies[0].uuid))
    answer = told(client)
    assert_equal(answer, client, "rewind")
    assert printed(client, "rewind") > printed(client, "more")


def test_fork_and_compact(client: Client) -> None:
    """A fork's total begins at its parent's; a compaction's calls are in no row: each is named, to the last digit."""
    parent = client.say("parent", steps([bash("echo begin")], [DONE]))
    assert parent is not None
    fork = client.say("fork", "fork it", "-r", parent, "--fork-session")
    assert fork is not None
    client.say("on", "go on", "-r", fork)
    client.say("compact", "/compact", "-r", parent)
    client.say("after", steps([bash("echo after")], [DONE]), "-r", parent)
    answer = told(client)
    session = of(answer, client, "fork")
    (why,) = session.why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.CONTINUES, printed(client, "parent"), True)
    assert parent in why.words
    assert "--fork-session" in why.words
    assert abs(session.computed - (printed(client, "on") - printed(client, "parent"))) < LEAST
    session = of(answer, client, "after")
    (why,) = session.why
    assert why.cause is DifferenceCause.COMPACTION
    assert abs(why.amount - (printed(client, "compact") - printed(client, "parent"))) < LEAST
    assert abs(session.computed - (printed(client, "after") - why.amount)) < LEAST


def test_web_search(client: Client) -> None:
    """A search is made by a call of its own, which is in the client's total and in no transcript."""
    found = tool("ToolSearch", query="select:WebSearch", max_results=5)
    client.say("web", steps([found], [tool("WebSearch", query="weather on the moon")], [DONE]))
    session = of(told(client), client, "web")
    (why,) = session.why
    assert (why.cause, why.amount) == (DifferenceCause.WEB, session.difference)
    assert "WebSearch (1)" in why.words
    assert session.difference > 0


def test_a_run_that_is_ended(client: Client) -> None:
    """A run that is ended leaves no total, and the next run's lacks it: that much is named as such."""
    slow = steps([bash("python3 -c 'import time; time.sleep(60)'")], [DONE])
    client.patience = 6
    client.say("killed", slow)
    assert "killed" in client.failed
    client.failed.clear()
    client.patience = 90
    client.say("next", "where were we", "-c")
    session = of(told(client), client, "next")
    causes = {why.cause for why in session.why}
    assert causes == {DifferenceCause.UNCLOSED}
    assert session.reported == printed(client, "next")
