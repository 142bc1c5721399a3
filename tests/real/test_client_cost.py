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
from threadline.account.rates import rates
from threadline.find import look
from threadline.model.entries import AssistantEntry
from threadline.model.reported import Cause, Reported, ReportedSession
from threadline.survey.ledger import ledger_of
from threadline.survey.reported import reported

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


def told(one: Client) -> Reported:
    """What the client wrote down, held against the ledger of its home."""
    assert one.failed == {}
    found = [look(one.claude_home)]
    return reported(found, ledger_of(found, rates()))


def of(answer: Reported, one: Client, name: str) -> ReportedSession:
    """The session of a run by its name."""
    (session,) = (session for session in answer.sessions if session.session == one.sessions[name])
    return session


def printed(one: Client, name: str) -> Decimal:
    """What the client printed as the session's cost when a run ended."""
    return Decimal(one.results[name]["total_cost_usd"])


def assert_equal(answer: Reported, one: Client, name: str) -> Decimal:
    """Ours, the total printed and the total written down are the same; gives by how little they are off."""
    session = of(answer, one, name)
    assert [why.cause for why in session.why] == [Cause.AGREES], (name, session.why)
    assert session.tokens == ()
    assert session.reported == printed(one, name)
    assert abs(session.difference) < LEAST
    return abs(session.difference)


def test_plain_sessions(one: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Turns, parallel calls, edits, errors, a retry, agents, a rewind: the client's amount is ours."""
    path = str(one.work / "made.py")
    one.say("plain", steps([{"think": "Let me look."}, {"text": "I look."}, bash("echo one")], [DONE]))
    one.say("parallel", steps([bash("echo 1"), bash("echo 2"), bash("echo 3")], [DONE]))
    edits = (
        [tool("Write", file_path=path, content="a = 1\n")],
        [tool("Edit", file_path=path, old_string="1", new_string="2")],
    )
    one.say("edits", steps(*edits, [tool("Read", file_path=f"{path}.none"), bash("exit 3")], [DONE]))
    one.say("retry", steps([{"status": 529}, {"text": "ok after all"}]))
    errand = steps([{"text": "I look."}, bash("echo sub")], [{"text": "sub done"}])
    given = {"description": "look", "prompt": errand, "subagent_type": "general-purpose"}
    one.say("agents", steps([tool("Agent", **given), tool("Agent", **given)], [DONE]))
    begun = one.say("begin", steps([bash("echo begin")], [DONE]))
    one.say("continue", steps([bash("echo more")], [DONE]), "-c")
    assert begun == one.sessions["continue"]
    answer = told(one)
    off = [assert_equal(answer, one, name) for name in ("plain", "parallel", "edits", "retry", "agents", "continue")]
    assert of(answer, one, "agents").charges >= 6
    assert printed(one, "begin") < printed(one, "continue")
    with capsys.disabled():
        exact = sum(not each for each in off)
        print(f"\nplain sessions: {len(off)}, {exact} equal to the last digit, the others off by at most {max(off)}")  # noqa: T201 - figures are wanted here


def test_every_model(one: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Every model's prices are the client's own: input, output, both cache writes and cache reads."""
    for model in MODELS:
        one.say(model, steps([bash("echo m")], [DONE]), "--model", model)
    one.say(
        "switched", steps([bash("echo m")], [DONE]), "-r", one.sessions["claude-opus-5"], "--model", "claude-sonnet-5"
    )
    answer = told(one)
    off = {model: assert_equal(answer, one, model) for model in (*MODELS, "switched") if model != "claude-opus-5"}
    with capsys.disabled():
        print(f"\nmodels: {len(off)}, off by at most {max(off.values())}")  # noqa: T201 - the same


def test_long_prompts(one: Client) -> None:
    """A long prompt of claude-haiku-5-5 costs more, as the client says; for claude-sonnet-4-5 it does not say so."""
    (one.work / "CLAUDE.md").write_text("word number thing " * 110_000)
    one.say("haiku", steps([bash("echo m")], [DONE]), "--model", "claude-haiku-5-5")
    one.say("sonnet", steps([bash("echo m")], [DONE]), "--model", "claude-sonnet-4-5")
    answer = told(one)
    assert_equal(answer, one, "haiku")
    (why,) = of(answer, one, "sonnet").why
    assert (why.cause, why.proven) == (Cause.PRICES, True)
    assert why.words.startswith("Claude Code priced long prompts as short ones")


def test_an_unknown_model(one: Client) -> None:
    """The client guesses the price of a model it does not know and says so; we give none."""
    one.say("unknown", steps([bash("echo m")], [DONE]), "--model", "some-unknown-model")
    session = of(told(one), one, "unknown")
    assert (session.computed, session.is_floor, session.tokens) == (Decimal(0), True, ())
    assert [(why.cause, why.amount) for why in session.why] == [(Cause.UNPRICED, printed(one, "unknown"))]


def test_rewind(one: Client) -> None:
    """Both branches of a rewind were paid for: the client's amount has both, and so has ours."""
    session = one.say("begin", steps([bash("echo begin")], [DONE]))
    one.say("more", "one more", "-c")
    found = look(one.claude_home)
    (transcript,) = (each for each in found.transcripts if each.session == session)
    replies = [entry for entry in threadline.read(transcript.path).main.entries if isinstance(entry, AssistantEntry)]
    assert session is not None
    one.say("rewind", "another way", "-r", session, "--resume-session-at", str(replies[0].uuid))
    answer = told(one)
    assert_equal(answer, one, "rewind")
    assert printed(one, "rewind") > printed(one, "more")


def test_fork_and_compact(one: Client) -> None:
    """A fork's total begins at its parent's; a compaction's calls are in no row: each is named, to the last digit."""
    parent = one.say("parent", steps([bash("echo begin")], [DONE]))
    assert parent is not None
    fork = one.say("fork", "fork it", "-r", parent, "--fork-session")
    assert fork is not None
    one.say("on", "go on", "-r", fork)
    one.say("compact", "/compact", "-r", parent)
    one.say("after", steps([bash("echo after")], [DONE]), "-r", parent)
    answer = told(one)
    session = of(answer, one, "fork")
    (why,) = session.why
    assert (why.cause, why.amount, why.proven) == (Cause.CONTINUES, printed(one, "parent"), True)
    assert parent in why.words
    assert "--fork-session" in why.words
    assert abs(session.computed - (printed(one, "on") - printed(one, "parent"))) < LEAST
    session = of(answer, one, "after")
    (why,) = session.why
    assert why.cause is Cause.COMPACTION
    assert abs(why.amount - (printed(one, "compact") - printed(one, "parent"))) < LEAST
    assert abs(session.computed - (printed(one, "after") - why.amount)) < LEAST


def test_web_search(one: Client) -> None:
    """A search is made by a call of its own, which is in the client's total and in no transcript."""
    found = tool("ToolSearch", query="select:WebSearch", max_results=5)
    one.say("web", steps([found], [tool("WebSearch", query="weather on the moon")], [DONE]))
    session = of(told(one), one, "web")
    (why,) = session.why
    assert (why.cause, why.amount) == (Cause.WEB, session.difference)
    assert "WebSearch (1)" in why.words
    assert session.difference > 0


def test_a_run_that_is_ended(one: Client) -> None:
    """A run that is ended leaves no total, and the next run's lacks it: that much is named as such."""
    slow = steps([bash("python3 -c 'import time; time.sleep(60)'")], [DONE])
    one.patience = 6
    one.say("killed", slow)
    assert "killed" in one.failed
    one.failed.clear()
    one.patience = 90
    one.say("next", "where were we", "-c")
    session = of(told(one), one, "next")
    causes = {why.cause for why in session.why}
    assert causes == {Cause.UNCLOSED}
    assert session.reported == printed(one, "next")
