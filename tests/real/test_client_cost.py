"""Our amounts against those of the real Claude Code: what it prints when it ends, and what it writes.

Claude Code adds floats and we add exact decimals, so its sums differ in the last digits: a total of one model with few
messages was never off by more than 1e-17. Equal means here: off by less than 1e-12, a ten-thousandth of the price of
the cheapest token, with the same tokens of every kind and model.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.real.client import API, Client, bash, newest, start_client, steps, tool

import threadline
from threadline.account import load_rates
from threadline.find import look
from threadline.model.entries import AssistantEntry
from threadline.model.reported_costs import DifferenceCause, ReportedSession, ReportedUsage
from threadline.reports import build_ledger, reconcile

NEWEST = newest() if API.exists() else None
TOLERANCE = Decimal("1e-12")
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
def client(tmp_path: Path) -> Iterator[Client]:
    """A client in a fresh home."""
    assert NEWEST is not None
    with start_client(NEWEST, tmp_path) as started:
        yield started


def reported_usage(client: Client) -> ReportedUsage:
    """What the client wrote, compared with the ledger of its home."""
    assert client.failures == {}
    listings = [look(client.claude_home)]
    return reconcile(listings, build_ledger(listings, load_rates()))


def session_of(answer: ReportedUsage, client: Client, name: str) -> ReportedSession:
    """The session of a run by its name."""
    (session,) = (session for session in answer.sessions if session.session == client.sessions[name])
    return session


def printed_cost(client: Client, name: str) -> Decimal:
    """What the client printed as the session's cost when a run ended."""
    return Decimal(client.results[name]["total_cost_usd"])


def assert_equal(answer: ReportedUsage, client: Client, name: str) -> Decimal:
    """Our total, the printed total and the written total are equal. Returns the tiny difference."""
    session = session_of(answer, client, name)
    assert [why.cause for why in session.why] == [DifferenceCause.AGREES], (name, session.why)
    assert session.tokens == ()
    assert session.reported == printed_cost(client, name)
    assert abs(session.difference) < TOLERANCE
    return abs(session.difference)


def test_plain_sessions_agree(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
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
    agent_prompt = steps([{"text": "I look."}, bash("echo sub")], [{"text": "sub done"}])
    arguments = {"description": "look", "prompt": agent_prompt, "subagent_type": "general-purpose"}
    client.say("agents", steps([tool("Agent", **arguments), tool("Agent", **arguments)], [DONE]))
    session = client.say("begin", steps([bash("echo begin")], [DONE]))
    client.say("continue", steps([bash("echo more")], [DONE]), "-c")
    assert session == client.sessions["continue"]
    answer = reported_usage(client)
    differences = [
        assert_equal(answer, client, name) for name in ("plain", "parallel", "edits", "retry", "agents", "continue")
    ]
    assert session_of(answer, client, "agents").charges >= 6
    assert printed_cost(client, "begin") < printed_cost(client, "continue")
    with capsys.disabled():
        exact = sum(not difference for difference in differences)
        print(  # noqa: T201 - figures are wanted here
            f"\nplain sessions: {len(differences)}, {exact} equal to the last digit,"
            f" the others off by at most {max(differences)}"
        )


def test_every_model_agrees(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Every model's prices are the client's: input, output, both cache writes and cache reads."""
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
    answer = reported_usage(client)
    differences = {
        model: assert_equal(answer, client, model) for model in (*MODELS, "switched") if model != "claude-opus-5"
    }
    with capsys.disabled():
        print(f"\nmodels: {len(differences)}, off by at most {max(differences.values())}")  # noqa: T201 - the same


def test_prices_of_long_prompts(client: Client) -> None:
    """A long prompt of claude-haiku-5-5 costs more in both. For claude-sonnet-4-5 the client does not charge more."""
    (client.work / "CLAUDE.md").write_text("word number thing " * 110_000)
    client.say("haiku", steps([bash("echo m")], [DONE]), "--model", "claude-haiku-5-5")
    client.say("sonnet", steps([bash("echo m")], [DONE]), "--model", "claude-sonnet-4-5")
    answer = reported_usage(client)
    assert_equal(answer, client, "haiku")
    (why,) = session_of(answer, client, "sonnet").why
    assert (why.cause, why.proven) == (DifferenceCause.PRICES, True)
    assert why.words.startswith("Claude Code priced long prompts as short ones")


def test_an_unknown_model_has_no_price(client: Client) -> None:
    """The client guesses the price of an unknown model and says so. We give none."""
    client.say("unknown", steps([bash("echo m")], [DONE]), "--model", "some-unknown-model")
    session = session_of(reported_usage(client), client, "unknown")
    assert (session.computed, session.is_floor, session.tokens) == (Decimal(0), True, ())
    assert [(why.cause, why.amount) for why in session.why] == [
        (DifferenceCause.UNPRICED, printed_cost(client, "unknown"))
    ]


def test_a_rewind_counts_both_branches(client: Client) -> None:
    """Both branches of a rewind were paid for, and both amounts include them."""
    session = client.say("begin", steps([bash("echo begin")], [DONE]))
    client.say("more", "one more", "-c")
    listing = look(client.claude_home)
    (transcript,) = (listed for listed in listing.transcripts if listed.session == session)
    replies = [entry for entry in threadline.read(transcript.path).main.entries if isinstance(entry, AssistantEntry)]
    assert session is not None
    client.say("rewind", "another way", "-r", session, "--resume-session-at", str(replies[0].uuid))
    answer = reported_usage(client)
    assert_equal(answer, client, "rewind")
    assert printed_cost(client, "rewind") > printed_cost(client, "more")


def test_explains_forks_and_compactions(client: Client) -> None:
    """A fork's total starts at its parent's, and a compaction's calls are in no row. Each is explained exactly."""
    parent = client.say("parent", steps([bash("echo begin")], [DONE]))
    assert parent is not None
    fork = client.say("fork", "fork it", "-r", parent, "--fork-session")
    assert fork is not None
    client.say("on", "go on", "-r", fork)
    client.say("compact", "/compact", "-r", parent)
    client.say("after", steps([bash("echo after")], [DONE]), "-r", parent)
    answer = reported_usage(client)
    session = session_of(answer, client, "fork")
    (why,) = session.why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.CONTINUES, printed_cost(client, "parent"), True)
    assert parent in why.words
    assert "--fork-session" in why.words
    assert abs(session.computed - (printed_cost(client, "on") - printed_cost(client, "parent"))) < TOLERANCE
    session = session_of(answer, client, "after")
    (why,) = session.why
    assert why.cause is DifferenceCause.COMPACTION
    assert abs(why.amount - (printed_cost(client, "compact") - printed_cost(client, "parent"))) < TOLERANCE
    assert abs(session.computed - (printed_cost(client, "after") - why.amount)) < TOLERANCE


def test_explains_web_searches(client: Client) -> None:
    """A search makes its own API call, which is in the client's total and in no transcript."""
    tool_search = tool("ToolSearch", query="select:WebSearch", max_results=5)
    client.say("web", steps([tool_search], [tool("WebSearch", query="weather on the moon")], [DONE]))
    session = session_of(reported_usage(client), client, "web")
    (why,) = session.why
    assert (why.cause, why.amount) == (DifferenceCause.WEB, session.difference)
    assert "WebSearch (1)" in why.words
    assert session.difference > 0


def test_explains_a_killed_run(client: Client) -> None:
    """A killed run leaves no total, and the next run's total lacks it. The difference is explained."""
    slow = steps([bash("python3 -c 'import time; time.sleep(60)'")], [DONE])
    client.timeout_seconds = 6
    client.say("killed", slow)
    assert "killed" in client.failures
    client.failures.clear()
    client.timeout_seconds = 90
    client.say("next", "where were we", "-c")
    session = session_of(reported_usage(client), client, "next")
    causes = {why.cause for why in session.why}
    assert causes == {DifferenceCause.UNCLOSED}
    assert session.reported == printed_cost(client, "next")
