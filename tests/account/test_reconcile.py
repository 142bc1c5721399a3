"""What Claude Code reports, held against the ledger: each reason for a difference, and the days that are gone."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import MODEL, START, Part, Pen, Writer, call, chain, meta, prompt, reply, transcript, write

from threadline.account import load_rates
from threadline.find import look
from threadline.model.ledger import TOLERANCE, DifferenceCause, ReportedSession, ReportedUsage
from threadline.parse import read_cost_states
from threadline.render import reconciliation_lines
from threadline.render.reconciliation import reported_session_lines
from threadline.reports import build_ledger, reconcile, reconciliation_record

FIRST, SECOND = (f"5e551011-0000-4000-8000-00000000000{number}" for number in (1, 2))
# 1,000 tokens in and 100 out, by the prices of claude-sonnet-4-5.
ONE = Decimal("0.0045")


def said(text: str = "ok", **more: Any) -> Writer:
    """A reply that costs `ONE`."""
    return reply(text, input=1000, output=100, **more)


def total(amount: float, messages: int = 0, *, model: str = MODEL, unseen: int = 0, **more: Any) -> Writer:
    """The session's total so far, for so many messages of `said`; `unseen` is output that is in no row."""
    used = {"inputTokens": 1000 * messages, "outputTokens": 100 * messages + unseen, "costUSD": amount}
    fields = {"totalCostUSD": amount, "hasUnknownModelCost": False, "startTime": 1794735966889}
    return meta("cost-state", **{**fields, "modelUsage": {model: used}, **more})


def home(folder: Path, *parts: Part, session: str = FIRST) -> Path:
    """Write a session into a home."""
    write(folder / f"projects/-work-app/{session}.jsonl", *transcript(*parts, pen=Pen(session)))
    return folder


def told(folder: Path) -> ReportedUsage:
    """What is reported in a home."""
    found = [look(folder)]
    return reconcile(found, build_ledger(found, load_rates()))


def only(folder: Path) -> ReportedSession:
    """The one session that reports an amount."""
    (one,) = told(folder).sessions
    return one


def adds_up(session: ReportedSession) -> bool:
    """Whether the reasons come to the difference."""
    return abs(sum((why.amount for why in session.why), Decimal()) - session.difference) <= TOLERANCE


def test_a_total_that_agrees(tmp_path: Path) -> None:
    """The last total of a transcript is the session's, and floats' last digits are no difference."""
    home(tmp_path, prompt("a"), said(), total(0.0045, 1), prompt("b"), said(), total(0.009000000000000001, 2))
    one = only(tmp_path)
    assert (one.reported, one.computed) == (Decimal("0.009000000000000001"), 2 * ONE)
    assert one.agrees
    assert [why.cause for why in one.why] == [DifferenceCause.AGREES]
    assert one.tokens == ()
    assert one.place.line == 6
    assert reported_session_lines(one)[0].endswith("computed is the same, to the last digit.")


def test_money_is_kept_to_the_last_digit(tmp_path: Path) -> None:
    """A total is read as it is written, not as a float."""
    row = b'{"type":"cost-state","sessionId":"s","totalCostUSD":0.1234567890123456789012345,"modelUsage":{}}\n'
    (state,) = read_cost_states(write(tmp_path / "a.jsonl", row)).states
    assert str(state.amount) == "0.1234567890123456789012345"


@pytest.mark.parametrize("bad", ['"much"', "null", "-1", "1e400", "NaN", "{}", "[1]"])
def test_a_total_that_is_no_amount(tmp_path: Path, bad: str) -> None:
    """A total that is no amount is a problem with its place, and the one before it counts."""
    damaged = b'{"type":"cost-state","sessionId":"%s","totalCostUSD":%s}\n' % (FIRST.encode(), bad.encode())
    home(tmp_path, prompt("a"), said(), total(0.0045, 1), damaged)
    found = told(tmp_path)
    assert found.reported == ONE
    assert [problem.place.line for problem in found.problems] == [4]
    assert any(line.startswith("Not read: ") for line in reconciliation_lines(found))


def test_words_are_not_a_total(tmp_path: Path) -> None:
    """Text that speaks of a cost-state is not one."""
    home(tmp_path, prompt('{"type":"cost-state","totalCostUSD":5}'), said('"cost-state"'))
    found = told(tmp_path)
    assert (found.sessions, found.silent, found.silent_computed) == ((), 1, ONE)


def test_side_calls(tmp_path: Path) -> None:
    """What is reported above the computed amount is named with the tokens that are in no transcript."""
    used = {
        MODEL: {"inputTokens": 1000, "outputTokens": 100},
        "claude-haiku-4-5": {"inputTokens": 500, "outputTokens": 15},
    }
    home(tmp_path, prompt("a"), said(), total(0.005075, modelUsage=used))
    one = only(tmp_path)
    (why,) = one.why
    assert (why.cause, why.amount) == (DifferenceCause.SIDE_CALLS, Decimal("0.000575"))
    assert "claude-haiku-4-5 +500 input, +15 output" in why.words
    assert [tokens.model for tokens in one.tokens] == ["claude-haiku-4-5"]


def test_a_compaction(tmp_path: Path) -> None:
    """What a run's total has more than its messages is laid to the compaction that stands in that run, not before."""
    boundary = chain("system", subtype="compact_boundary", content="Conversation compacted")
    before = home(
        tmp_path / "before", prompt("a"), said(), boundary, total(0.0045, 1), said(), total(0.01, 2, unseen=9)
    )
    within = home(
        tmp_path / "within", prompt("a"), said(), total(0.0045, 1), boundary, said(), total(0.01, 2, unseen=9)
    )
    assert [why.cause for why in only(before).why] == [DifferenceCause.SIDE_CALLS]
    (why,) = only(within).why
    assert (why.cause, why.amount) == (DifferenceCause.COMPACTION, Decimal("0.0010"))
    assert "/compact" in why.words


def test_a_fork_continues_its_parent(tmp_path: Path) -> None:
    """A fork's total begins at its parent's, which is proven by that total and not added to what is computed."""
    rows = transcript(prompt("a"), said(), pen=Pen(FIRST))
    state = transcript(total(0.0050, 1, unseen=9), pen=Pen(FIRST))
    write(tmp_path / f"projects/-work-app/{FIRST}.jsonl", *rows, *state)
    pen = Pen(SECOND)
    copies = [{**row, "sessionId": SECOND, "forkedFrom": {"sessionId": FIRST}} for row in rows if isinstance(row, dict)]
    own = transcript(prompt("b"), said(), total(0.0095, 2, unseen=9), pen=pen)
    write(tmp_path / f"projects/-work-app/{SECOND}.jsonl", *copies, *own)
    sessions = {session.session: session for session in told(tmp_path).sessions}
    (why,) = sessions[SECOND].why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.CONTINUES, Decimal("0.005"), True)
    assert FIRST in why.words
    assert "--fork-session" in why.words
    assert sessions[SECOND].computed == ONE
    assert [why.cause for why in sessions[FIRST].why] == [DifferenceCause.SIDE_CALLS]


def test_a_fork_of_what_is_gone(tmp_path: Path) -> None:
    """Without the parent's total, the copied messages prove what a fork's total goes on from."""
    rows = transcript(prompt("a"), said(), pen=Pen(FIRST))
    write(tmp_path / f"projects/-work-app/{FIRST}.jsonl", *rows)
    copies = [{**row, "sessionId": SECOND, "forkedFrom": {"sessionId": FIRST}} for row in rows if isinstance(row, dict)]
    own = transcript(prompt("b"), said(), total(0.009, 2), pen=Pen(SECOND))
    write(tmp_path / f"projects/-work-app/{SECOND}.jsonl", *copies, *own)
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.CONTINUES, ONE, True)


def test_a_run_that_was_ended(tmp_path: Path) -> None:
    """Messages of a run that never wrote its total are found as the first ones that the next total lacks."""
    used = {MODEL: {"inputTokens": 10, "outputTokens": 1}}
    last = reply("c", input=10, output=1)
    home(tmp_path, prompt("a"), said(), said(), prompt("b"), last, total(0.000045, modelUsage=used))
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.UNCLOSED, -2 * ONE, True)
    assert why.words.startswith("2 messages of a run that ended without writing its total")


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    """Messages after the last total are not yet in it."""
    home(tmp_path, prompt("a"), said(), total(0.0045, 1), prompt("b"), said())
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount) == (DifferenceCause.UNCLOSED, -ONE)
    assert "after the last total" in why.words


def test_a_total_that_began_again(tmp_path: Path) -> None:
    """A total that is lower than the one before it began again, and lacks what came before."""
    home(tmp_path, prompt("a"), said(), said(), total(0.009, 2), prompt("b"), said(), total(0.0045, 1))
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.RESTARTED, -2 * ONE, True)


def test_a_reply_that_broke_off(tmp_path: Path) -> None:
    """Claude Code counts nothing of a reply whose stream broke off; what was sent is in the computed amount."""
    home(tmp_path, prompt("a"), said(message={"stop_reason": None}), said(), total(0.0045, 1))
    assert [why.cause for why in only(tmp_path).why] == [DifferenceCause.CUT]


def test_other_prices(tmp_path: Path) -> None:
    """Where the tokens agree and the amount does not, the prices are the reason, and the models are named."""
    home(tmp_path, prompt("a"), said(), total(0.009, 1))
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount) == (DifferenceCause.PRICES, ONE)
    assert "claude-sonnet-4-5 0.009 USD reported, 0.0045 USD computed" in why.words


def test_a_long_prompt_priced_as_a_short_one(tmp_path: Path) -> None:
    """Claude Code 2.1.325 does not know that long prompts cost more with some models; that is recognised."""
    used = {MODEL: {"inputTokens": 4, "outputTokens": 10, "cacheReadInputTokens": 300_000}}
    home(tmp_path, prompt("a"), reply("b", read=300_000), total(0.090162, modelUsage=used))
    (why,) = only(tmp_path).why
    assert why.cause is DifferenceCause.PRICES
    assert why.words.startswith("Claude Code priced long prompts as short ones")


def test_a_model_without_a_price(tmp_path: Path) -> None:
    """Claude Code guesses the price of a model that nobody knows; we do not, and say so."""
    model = "some-unknown-model"
    home(tmp_path, prompt("a"), said(message={"model": model}), total(0.01, 1, model=model, hasUnknownModelCost=True))
    one = only(tmp_path)
    assert (one.computed, one.is_floor) == (Decimal(0), True)
    assert [(why.cause, why.amount) for why in one.why] == [(DifferenceCause.UNPRICED, Decimal("0.01"))]
    assert any("only the least" in line for line in reconciliation_lines(told(tmp_path)))


def test_web_calls(tmp_path: Path) -> None:
    """Where a run called the web, what it costs more is laid to the calls that make its summaries."""
    fetched = call("WebFetch", {"url": "u", "prompt": "p"}, "text", input=1000, output=100)
    home(tmp_path, prompt("a"), fetched, total(0.01, 1, unseen=9))
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount) == (DifferenceCause.WEB, Decimal("0.0055"))
    assert "WebFetch (1)" in why.words


def test_a_search_that_only_we_count(tmp_path: Path) -> None:
    """The fee for a search that the total lacks is named as such."""
    usage = {"input_tokens": 1000, "output_tokens": 100, "server_tool_use": {"web_search_requests": 2}}
    home(tmp_path, prompt("a"), said(message={"usage": usage}), total(0.0045, 1))
    (why,) = only(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.WEB, Decimal("-0.02"), True)


def test_more_computed_than_reported_is_never_passed_over(tmp_path: Path) -> None:
    """What nothing explains is called what it is: counting may have gone wrong."""
    home(tmp_path, prompt("a"), said(), said(), total(0.0001, 0))
    found = told(tmp_path)
    assert [why.cause for why in found.sessions[0].why] == [DifferenceCause.LARGER]
    assert not found.sessions[0].is_explained
    assert any("please report this" in line for line in reconciliation_lines(found))


def test_an_agent_belongs_to_the_run_that_started_it(tmp_path: Path) -> None:
    """What agents spent is in the total of their session, in the run that they ran in."""
    home(tmp_path, prompt("a"), said(), total(0.009, 2), prompt("b"), said(), total(0.0135, 3))
    first = tmp_path / f"projects/-work-app/{FIRST}.jsonl"
    pen = Pen(FIRST, START + timedelta(seconds=1.5), isSidechain=True, agentId="a1b2c3d")
    agent = transcript(prompt("c"), said(message={"id": "msg_01aaaabbbbccccdddd1234"}), pen=pen)
    write(first.with_suffix("") / "subagents/agent-a1b2c3d.jsonl", *agent)
    one = only(tmp_path)
    assert one.charges == 3
    assert [why.cause for why in one.why] == [DifferenceCause.AGREES]


def test_amounts_on_rows(tmp_path: Path) -> None:
    """Old versions wrote what a message cost on its rows: it counts once, however many rows the message has."""
    said_so = reply("b", "c", input=1000, output=100, costUSD=0.0045, version="1.0.3")
    home(tmp_path, prompt("a", version="1.0.3"), said_so, said(version="1.0.3"))
    one = only(tmp_path)
    assert (one.source.value, one.reported, one.computed) == ("costUSD", ONE, 2 * ONE)
    assert [(why.cause, why.amount) for why in one.why] == [(DifferenceCause.SILENT, -ONE)]


def test_reasons_add_up(tmp_path: Path) -> None:
    """Whatever the reasons are, their amounts come to the difference."""
    boundary = chain("system", subtype="compact_boundary", content="Conversation compacted")
    cut = said(message={"stop_reason": None})
    parts = (prompt("a"), said(), total(0.006, 1, unseen=9), boundary, said())
    ends = (total(0.02, 2, unseen=99), cut, total(0.02, 2, unseen=99), said())
    home(tmp_path, *parts, *ends)
    one = only(tmp_path)
    assert [why.cause for why in one.why] == [
        DifferenceCause.SIDE_CALLS,
        DifferenceCause.COMPACTION,
        DifferenceCause.CUT,
        DifferenceCause.UNCLOSED,
    ]
    assert adds_up(one)


def cache(folder: Path, *days: tuple[str, int, int], usage: int = 0) -> None:
    """Claude Code's statistics: date, sessions and tokens of days."""
    stats = {
        "version": 2,
        "dailyActivity": [
            {"date": date, "messageCount": 7, "sessionCount": sessions, "toolCallCount": 3}
            for date, sessions, _ in days
        ],
        "dailyModelTokens": [{"date": date, "tokensByModel": {MODEL: tokens}} for date, _, tokens in days],
        "modelUsage": {MODEL: {"inputTokens": usage or 5000, "outputTokens": 0, "cacheReadInputTokens": 10**9}},
    }
    write(folder / "stats-cache.json", json.dumps(stats).encode())


def test_days_that_are_gone(tmp_path: Path) -> None:
    """A day that only the statistics know is reported apart, and in no total."""
    home(tmp_path, prompt("a"), said())
    cache(tmp_path, ("2025-12-01", 2, 4000), ("2026-01-05", 1, 1100))
    found = told(tmp_path)
    (day,) = found.swept
    assert (day.date, day.messages, day.sessions, day.calls, day.total_tokens) == ("2025-12-01", 7, 2, 3, 4000)
    assert not day.is_partly
    assert not day.with_cache
    assert (found.reported, found.computed, found.silent_computed) == (Decimal(0), Decimal(0), ONE)
    assert any(
        line.startswith("2025-12-01: 7 messages, 2 sessions, 3 calls, 4,000 tokens")
        for line in reconciliation_lines(found)
    )


def test_a_day_that_is_partly_gone(tmp_path: Path) -> None:
    """A day of which less is left than the statistics say is given with both figures."""
    home(tmp_path, prompt("a"), said())
    cache(tmp_path, ("2026-01-05", 3, 4000))
    (day,) = told(tmp_path).swept
    assert (day.is_partly, day.total_tokens) == (True, 4000)
    assert (day.left_charges, day.left_sessions, day.left_tokens) == (1, 1, 1100)


def test_statistics_that_are_damaged(tmp_path: Path) -> None:
    """A day that is no date is a problem, and the others are still told."""
    home(tmp_path, prompt("a"), said())
    cache(tmp_path, ("yesterday", 1, 10), ("2025-12-01", 1, 10))
    found = told(tmp_path)
    assert [day.date for day in found.swept] == ["2025-12-01"]
    assert "not a date" in found.problems[0].message
    write(tmp_path / "stats-cache.json", b"{")
    assert [problem.kind.value for problem in told(tmp_path).problems] == ["foreign-bytes"]


def test_a_record_for_programs(tmp_path: Path) -> None:
    """The record is JSON, with amounts as exact text."""
    home(tmp_path, prompt("a"), said(), total(0.0045, 1))
    cache(tmp_path, ("2025-12-01", 2, 4000), ("2026-01-05", 3, 4000))
    made = json.loads(json.dumps(reconciliation_record(told(tmp_path))))
    assert (made["reported"], made["computed"], made["difference"]) == ("0.0045", "0.0045", "0")
    (one,) = made["sessions"]
    assert one["why"] == [{"cause": "agrees", "amount": "0", "words": "agrees to the last digit", "proven": True}]
    assert [day["tokens"] for day in made["swept"]] == [{MODEL: 4000}]
    assert [day["left"] for day in made["partly_swept"]] == [{"charges": 1, "sessions": 1, "tokens": 1100}]


@pytest.mark.parametrize("cost", ["1e400", "1e9999999", "-5", '"free"', "null", "1e-4000"])
def test_an_amount_on_a_row_that_is_none(tmp_path: Path, cost: str) -> None:
    """An impossible amount on a row breaks nothing."""
    home(tmp_path, prompt("a"), said(costUSD="COST"))
    path = tmp_path / f"projects/-work-app/{FIRST}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"COST"', cost.encode()))
    found = told(tmp_path)
    assert found.computed + found.silent_computed == ONE
    json.dumps(reconciliation_record(found))
    assert reconciliation_lines(found)
