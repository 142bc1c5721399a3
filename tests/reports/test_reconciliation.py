"""Tests of comparing Claude Code's reported amounts with the ledger: each cause of a difference, and deleted days."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import MODEL, START, Part, Pen, Writer, call, chain, meta, prompt, reply, transcript, write

from threadline.account import load_rates
from threadline.find import look
from threadline.json_values import encode_json
from threadline.model.reported_costs import TOLERANCE, DifferenceCause, ReportedSession, ReportedUsage
from threadline.parse import read_cost_states
from threadline.render import reconciliation_lines
from threadline.render.reconciliation import reported_session_lines
from threadline.reports import build_ledger, reconcile, reconciliation_record
from threadline.reports.usage import deleted_days_note

FIRST, SECOND = (f"5e551011-0000-4000-8000-00000000000{number}" for number in (1, 2))
# 1,000 tokens in and 100 out, by the prices of claude-sonnet-4-5.
REPLY_COST = Decimal("0.0045")


def standard_reply(text: str = "ok", **more: Any) -> Writer:
    """Write a reply that costs `REPLY_COST`."""
    return reply(text, input=1000, output=100, **more)


def cost_state(amount: float, messages: int = 0, *, model: str = MODEL, unseen: int = 0, **more: Any) -> Writer:
    """Write the session's total so far, for a number of replies. `unseen` is output that is in no row."""
    used = {"inputTokens": 1000 * messages, "outputTokens": 100 * messages + unseen, "costUSD": amount}
    fields = {"totalCostUSD": amount, "hasUnknownModelCost": False, "startTime": 1794735966889}
    return meta("cost-state", **{**fields, "modelUsage": {model: used}, **more})


def add_session(folder: Path, *parts: Part, session: str = FIRST) -> Path:
    """Add a session to a home."""
    write(folder / f"projects/-work-app/{session}.jsonl", *transcript(*parts, pen=Pen(session)))
    return folder


def reconciled(folder: Path) -> ReportedUsage:
    """Compare the amounts that a home reports with its ledger."""
    listings = [look(folder)]
    return reconcile(listings, build_ledger(listings, load_rates()))


def only_session(folder: Path) -> ReportedSession:
    """Return the only session that reports an amount."""
    (session,) = reconciled(folder).sessions
    return session


def adds_up(session: ReportedSession) -> bool:
    """Whether the amounts of the causes add up to the difference."""
    return abs(sum((why.amount for why in session.why), Decimal()) - session.difference) <= TOLERANCE


def test_total_that_agrees(tmp_path: Path) -> None:
    """The last total of a transcript is the session's. Float noise in the last digits is not a difference."""
    add_session(
        tmp_path,
        prompt("a"),
        standard_reply(),
        cost_state(0.0045, 1),
        prompt("b"),
        standard_reply(),
        cost_state(0.009000000000000001, 2),
    )
    session = only_session(tmp_path)
    assert (session.reported, session.computed) == (Decimal("0.009000000000000001"), 2 * REPLY_COST)
    assert session.agrees
    assert [why.cause for why in session.why] == [DifferenceCause.AGREES]
    assert session.tokens == ()
    assert session.place.line == 6
    assert reported_session_lines(session)[0].endswith("the computed amount is equal to the last digit.")


def test_total_is_read_exactly(tmp_path: Path) -> None:
    """A total is read as a decimal, not as a float."""
    row = b'{"type":"cost-state","sessionId":"s","totalCostUSD":0.1234567890123456789012345,"modelUsage":{}}\n'
    (state,) = read_cost_states(write(tmp_path / "a.jsonl", row)).states
    assert str(state.amount) == "0.1234567890123456789012345"


def test_total_at_the_end_of_a_block_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the blocks end in which a transcript is read: also just before the newline of the row."""
    rows = b'{"type":"user"}\n{"type":"assistant","modelUsage":{"m":{"costUSD":0.5}}}\n{"type":"user"}\n'
    path = write(tmp_path / "a.jsonl", rows)
    for size in range(1, len(rows)):
        monkeypatch.setattr("threadline.parse.lines._BLOCK_SIZE", size)
        assert [state.amount for state in read_cost_states(path).states] == [Decimal("0.5")]


@pytest.mark.parametrize("bad", ['"much"', "null", "-1", "1e400", "NaN", "{}", "[1]"])
def test_invalid_total_is_a_problem(tmp_path: Path, bad: str) -> None:
    """The problem has its place, and the previous total counts."""
    damaged = b'{"type":"cost-state","sessionId":"%s","totalCostUSD":%s}\n' % (FIRST.encode(), bad.encode())
    add_session(tmp_path, prompt("a"), standard_reply(), cost_state(0.0045, 1), damaged)
    result = reconciled(tmp_path)
    assert result.reported == REPLY_COST
    assert [problem.place.line for problem in result.problems] == [4]
    assert any(line.startswith("Cannot read ") for line in reconciliation_lines(result))


def test_text_about_a_cost_state_is_not_a_total(tmp_path: Path) -> None:
    """Only rows of that type count."""
    add_session(tmp_path, prompt('{"type":"cost-state","totalCostUSD":5}'), standard_reply('"cost-state"'))
    result = reconciled(tmp_path)
    assert (result.sessions, result.silent, result.silent_computed) == ((), 1, REPLY_COST)


def test_cause_side_calls(tmp_path: Path) -> None:
    """What is reported above the computed amount is explained by tokens that are in no transcript."""
    used = {
        MODEL: {"inputTokens": 1000, "outputTokens": 100},
        "claude-haiku-4-5": {"inputTokens": 500, "outputTokens": 15},
    }
    add_session(tmp_path, prompt("a"), standard_reply(), cost_state(0.005075, modelUsage=used))
    session = only_session(tmp_path)
    (why,) = session.why
    assert (why.cause, why.amount) == (DifferenceCause.SIDE_CALLS, Decimal("0.000575"))
    assert "claude-haiku-4-5 +500 input, +15 output" in why.words
    assert [tokens.model for tokens in session.tokens] == ["claude-haiku-4-5"]


def test_cause_compaction(tmp_path: Path) -> None:
    """Only a compaction in the same run explains an excess of that run's total."""
    boundary = chain("system", subtype="compact_boundary", content="Conversation compacted")
    before = add_session(
        tmp_path / "before",
        prompt("a"),
        standard_reply(),
        boundary,
        cost_state(0.0045, 1),
        standard_reply(),
        cost_state(0.01, 2, unseen=9),
    )
    within = add_session(
        tmp_path / "within",
        prompt("a"),
        standard_reply(),
        cost_state(0.0045, 1),
        boundary,
        standard_reply(),
        cost_state(0.01, 2, unseen=9),
    )
    assert [why.cause for why in only_session(before).why] == [DifferenceCause.SIDE_CALLS]
    (why,) = only_session(within).why
    assert (why.cause, why.amount) == (DifferenceCause.COMPACTION, Decimal("0.0010"))
    assert "/compact" in why.words


def test_cause_fork_continues_its_parents_total(tmp_path: Path) -> None:
    """The parent's total proves it. The computed amount does not include it."""
    rows = transcript(prompt("a"), standard_reply(), pen=Pen(FIRST))
    state = transcript(cost_state(0.0050, 1, unseen=9), pen=Pen(FIRST))
    write(tmp_path / f"projects/-work-app/{FIRST}.jsonl", *rows, *state)
    pen = Pen(SECOND)
    copies = [{**row, "sessionId": SECOND, "forkedFrom": {"sessionId": FIRST}} for row in rows if isinstance(row, dict)]
    new_rows = transcript(prompt("b"), standard_reply(), cost_state(0.0095, 2, unseen=9), pen=pen)
    write(tmp_path / f"projects/-work-app/{SECOND}.jsonl", *copies, *new_rows)
    sessions = {session.session: session for session in reconciled(tmp_path).sessions}
    (why,) = sessions[SECOND].why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.CONTINUES, Decimal("0.005"), True)
    assert FIRST in why.words
    assert "--fork-session" in why.words
    assert sessions[SECOND].computed == REPLY_COST
    assert [why.cause for why in sessions[FIRST].why] == [DifferenceCause.SIDE_CALLS]


def test_cause_fork_of_a_deleted_parent(tmp_path: Path) -> None:
    """Without the parent's total, the copied messages prove where the fork's total began."""
    rows = transcript(prompt("a"), standard_reply(), pen=Pen(FIRST))
    write(tmp_path / f"projects/-work-app/{FIRST}.jsonl", *rows)
    copies = [{**row, "sessionId": SECOND, "forkedFrom": {"sessionId": FIRST}} for row in rows if isinstance(row, dict)]
    new_rows = transcript(prompt("b"), standard_reply(), cost_state(0.009, 2), pen=Pen(SECOND))
    write(tmp_path / f"projects/-work-app/{SECOND}.jsonl", *copies, *new_rows)
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.CONTINUES, REPLY_COST, True)


def test_cause_run_without_a_total(tmp_path: Path) -> None:
    """Messages of a run that never wrote its total are the first ones that the next total lacks."""
    used = {MODEL: {"inputTokens": 10, "outputTokens": 1}}
    last = reply("c", input=10, output=1)
    add_session(
        tmp_path,
        prompt("a"),
        standard_reply(),
        standard_reply(),
        prompt("b"),
        last,
        cost_state(0.000045, modelUsage=used),
    )
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.UNCLOSED, -2 * REPLY_COST, True)
    assert why.words.startswith("2 messages of a run that ended without writing its total")


def test_cause_run_in_progress(tmp_path: Path) -> None:
    """Messages after the last total are not in it yet."""
    add_session(tmp_path, prompt("a"), standard_reply(), cost_state(0.0045, 1), prompt("b"), standard_reply())
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount) == (DifferenceCause.UNCLOSED, -REPLY_COST)
    assert "after the last total" in why.words


def test_cause_restarted_total(tmp_path: Path) -> None:
    """A total that is lower than the previous one has restarted and lacks what came before."""
    add_session(
        tmp_path,
        prompt("a"),
        standard_reply(),
        standard_reply(),
        cost_state(0.009, 2),
        prompt("b"),
        standard_reply(),
        cost_state(0.0045, 1),
    )
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.RESTARTED, -2 * REPLY_COST, True)


def test_cause_interrupted_reply(tmp_path: Path) -> None:
    """Claude Code does not count a reply whose stream was interrupted. We count what was sent."""
    add_session(
        tmp_path, prompt("a"), standard_reply(message={"stop_reason": None}), standard_reply(), cost_state(0.0045, 1)
    )
    assert [why.cause for why in only_session(tmp_path).why] == [DifferenceCause.CUT]


def test_cause_different_prices(tmp_path: Path) -> None:
    """If the tokens agree and the amounts do not, the prices are the cause, and the models are named."""
    add_session(tmp_path, prompt("a"), standard_reply(), cost_state(0.009, 1))
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount) == (DifferenceCause.PRICES, REPLY_COST)
    assert "claude-sonnet-4-5 $0.009 reported, $0.0045 computed" in why.words


def test_cause_long_prompt_priced_as_short(tmp_path: Path) -> None:
    """Claude Code 2.1.325 does not know that long prompts cost more with some models."""
    used = {MODEL: {"inputTokens": 4, "outputTokens": 10, "cacheReadInputTokens": 300_000}}
    add_session(tmp_path, prompt("a"), reply("b", read=300_000), cost_state(0.090162, modelUsage=used))
    (why,) = only_session(tmp_path).why
    assert why.cause is DifferenceCause.PRICES
    assert why.words.startswith("Claude Code priced long prompts as short ones")


def test_cause_unknown_model(tmp_path: Path) -> None:
    """Claude Code guesses the price of an unknown model. We do not, and report it."""
    model = "some-unknown-model"
    add_session(
        tmp_path,
        prompt("a"),
        standard_reply(message={"model": model}),
        cost_state(0.01, 1, model=model, hasUnknownModelCost=True),
    )
    session = only_session(tmp_path)
    assert (session.computed, session.is_floor) == (Decimal(0), True)
    assert [(why.cause, why.amount) for why in session.why] == [(DifferenceCause.UNPRICED, Decimal("0.01"))]
    assert any("a lower bound" in line for line in reconciliation_lines(reconciled(tmp_path)))


def test_cause_web_calls(tmp_path: Path) -> None:
    """If a run used the web, the excess is explained by the calls that summarise pages."""
    fetched = call("WebFetch", {"url": "u", "prompt": "p"}, "text", input=1000, output=100)
    add_session(tmp_path, prompt("a"), fetched, cost_state(0.01, 1, unseen=9))
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount) == (DifferenceCause.WEB, Decimal("0.0055"))
    assert "WebFetch (1)" in why.words


def test_cause_web_search_fee(tmp_path: Path) -> None:
    """The fee for a search may be missing from the total."""
    usage = {"input_tokens": 1000, "output_tokens": 100, "server_tool_use": {"web_search_requests": 2}}
    add_session(tmp_path, prompt("a"), standard_reply(message={"usage": usage}), cost_state(0.0045, 1))
    (why,) = only_session(tmp_path).why
    assert (why.cause, why.amount, why.proven) == (DifferenceCause.WEB, Decimal("-0.02"), True)


def test_unexplained_excess_is_reported(tmp_path: Path) -> None:
    """If nothing explains why more was computed than reported, the message asks to report it."""
    add_session(tmp_path, prompt("a"), standard_reply(), standard_reply(), cost_state(0.0001, 0))
    result = reconciled(tmp_path)
    assert [why.cause for why in result.sessions[0].why] == [DifferenceCause.LARGER]
    assert any("please report this" in line for line in reconciliation_lines(result))


def test_agents_belong_to_the_run_that_started_them(tmp_path: Path) -> None:
    """Their amounts are in the total of the session."""
    add_session(
        tmp_path,
        prompt("a"),
        standard_reply(),
        cost_state(0.009, 2),
        prompt("b"),
        standard_reply(),
        cost_state(0.0135, 3),
    )
    first = tmp_path / f"projects/-work-app/{FIRST}.jsonl"
    pen = Pen(FIRST, START + timedelta(seconds=1.5), isSidechain=True, agentId="a1b2c3d")
    agent = transcript(prompt("c"), standard_reply(message={"id": "msg_01aaaabbbbccccdddd1234"}), pen=pen)
    write(first.with_suffix("") / "subagents/agent-a1b2c3d.jsonl", *agent)
    session = only_session(tmp_path)
    assert session.charges == 3
    assert [why.cause for why in session.why] == [DifferenceCause.AGREES]


def test_amounts_on_rows_count_once_per_message(tmp_path: Path) -> None:
    """Old versions wrote `costUSD` on every row of a message."""
    priced_reply = reply("b", "c", input=1000, output=100, costUSD=0.0045, version="1.0.3")
    add_session(tmp_path, prompt("a", version="1.0.3"), priced_reply, standard_reply(version="1.0.3"))
    session = only_session(tmp_path)
    assert (session.source.value, session.reported, session.computed) == ("costUSD", REPLY_COST, 2 * REPLY_COST)
    assert [(why.cause, why.amount) for why in session.why] == [(DifferenceCause.SILENT, -REPLY_COST)]


def test_causes_add_up_to_the_difference(tmp_path: Path) -> None:
    """Several causes may apply to one session."""
    boundary = chain("system", subtype="compact_boundary", content="Conversation compacted")
    cut = standard_reply(message={"stop_reason": None})
    parts = (prompt("a"), standard_reply(), cost_state(0.006, 1, unseen=9), boundary, standard_reply())
    ends = (cost_state(0.02, 2, unseen=99), cut, cost_state(0.02, 2, unseen=99), standard_reply())
    add_session(tmp_path, *parts, *ends)
    session = only_session(tmp_path)
    assert [why.cause for why in session.why] == [
        DifferenceCause.SIDE_CALLS,
        DifferenceCause.COMPACTION,
        DifferenceCause.CUT,
        DifferenceCause.UNCLOSED,
    ]
    assert adds_up(session)


def write_statistics(folder: Path, *days: tuple[str, int, int], usage: int = 0) -> None:
    """Write Claude Code's statistics: date, sessions and tokens of days."""
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


def test_deleted_days_are_reported_separately(tmp_path: Path) -> None:
    """A day that only the statistics have is in no total."""
    add_session(tmp_path, prompt("a"), standard_reply())
    write_statistics(tmp_path, ("2025-12-01", 2, 4000), ("2026-01-05", 1, 1100))
    result = reconciled(tmp_path)
    (day,) = result.swept
    assert (day.date, day.messages, day.sessions, day.calls, day.total_tokens) == ("2025-12-01", 7, 2, 3, 4000)
    assert not day.is_partly
    assert not day.with_cache
    assert (result.reported, result.computed, result.silent_computed) == (Decimal(0), Decimal(0), REPLY_COST)
    assert any(
        line.startswith("2025-12-01: 7 messages, 2 sessions, 3 calls, 4,000 tokens")
        for line in reconciliation_lines(result)
    )


def test_partly_deleted_day_has_both_figures(tmp_path: Path) -> None:
    """The statistics have more than the transcripts that are left."""
    add_session(tmp_path, prompt("a"), standard_reply())
    write_statistics(tmp_path, ("2026-01-05", 3, 4000))
    (day,) = reconciled(tmp_path).swept
    assert (day.is_partly, day.total_tokens) == (True, 4000)
    assert (day.left_charges, day.left_sessions, day.left_tokens) == (1, 1, 1100)


@pytest.mark.parametrize(("sessions", "tokens"), [(1, 4000), (3, 1100)])
def test_day_with_all_sessions_or_all_tokens_is_not_deleted(tmp_path: Path, sessions: int, tokens: int) -> None:
    """If the statistics have only more tokens, or only more sessions, that proves nothing."""
    add_session(tmp_path, prompt("a"), standard_reply())
    write_statistics(tmp_path, ("2026-01-05", sessions, tokens))
    assert reconciled(tmp_path).swept == ()


@pytest.mark.parametrize("complete", ["-a", "-z"])
def test_total_of_the_most_complete_transcript_counts(tmp_path: Path, complete: str) -> None:
    """A copy of a session has fewer of its totals, in whatever order the folders are read."""
    parts = [prompt("a"), standard_reply(), cost_state(0.0045, 1), prompt("b"), standard_reply(), cost_state(0.009, 2)]
    rows = transcript(*parts, pen=Pen(FIRST))
    write(tmp_path / f"projects/{complete}/{FIRST}.jsonl", *rows)
    copy = write(tmp_path / f"projects/-m/{FIRST}.jsonl", *rows[:4])
    os.utime(copy, (2**31, 2**31))
    assert only_session(tmp_path).reported == 2 * REPLY_COST


def test_damaged_statistics_are_a_problem(tmp_path: Path) -> None:
    """An invalid date is a problem, and the other days are still reported."""
    add_session(tmp_path, prompt("a"), standard_reply())
    write_statistics(tmp_path, ("yesterday", 1, 10), ("2025-12-01", 1, 10))
    result = reconciled(tmp_path)
    assert [day.date for day in result.swept] == ["2025-12-01"]
    assert "not a date" in result.problems[0].message
    write(tmp_path / "stats-cache.json", b"{")
    assert [problem.kind.value for problem in reconciled(tmp_path).problems] == ["foreign-bytes"]


def test_record_is_json_with_exact_amounts(tmp_path: Path) -> None:
    """Amounts are exact numbers."""
    add_session(tmp_path, prompt("a"), standard_reply(), cost_state(0.0045, 1))
    write_statistics(tmp_path, ("2025-12-01", 2, 4000), ("2026-01-05", 3, 4000))
    record = json.loads(encode_json(reconciliation_record(reconciled(tmp_path))), parse_float=Decimal)
    assert (record["reported"], record["computed"], record["difference"]) == (Decimal("0.0045"), Decimal("0.0045"), 0)
    (session,) = record["sessions"]
    assert session["why"] == [{"cause": "agrees", "amount": 0, "words": "agrees to the last digit", "proven": True}]
    assert [day["tokens"] for day in record["swept"]] == [{MODEL: 4000}]
    assert [day["left"] for day in record["partly_swept"]] == [{"charges": 1, "sessions": 1, "tokens": 1100}]


@pytest.mark.parametrize("cost", ["1e400", "1e9999999", "-5", '"free"', "null", "1e-4000"])
def test_invalid_amount_on_a_row_is_ignored(tmp_path: Path, cost: str) -> None:
    """The ledger and the report still work."""
    add_session(tmp_path, prompt("a"), standard_reply(costUSD="COST"))
    path = tmp_path / f"projects/-work-app/{FIRST}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"COST"', cost.encode()))
    result = reconciled(tmp_path)
    assert result.computed + result.silent_computed == REPLY_COST
    json.loads(encode_json(reconciliation_record(result)), parse_constant=pytest.fail)
    assert reconciliation_lines(result)


def test_impossible_counts_in_the_statistics_are_left_out(tmp_path: Path) -> None:
    """A count that no transcript can have is a problem or nothing; it stops no report."""
    add_session(tmp_path, prompt("a"), standard_reply())
    write_statistics(tmp_path, ("2025-12-01", 1, 10), ("2025-12-02", 10**400, 10**400), usage=10**400)
    path = tmp_path / "stats-cache.json"
    path.write_bytes(path.read_bytes().replace(b'"cacheReadInputTokens": 1000000000', b'"cacheReadInputTokens": 1e308'))
    result = reconciled(tmp_path)
    assert [(day.date, day.sessions, day.total_tokens) for day in result.swept] == [
        ("2025-12-01", 1, 10),
        ("2025-12-02", 0, 0),
    ]
    assert any(line.startswith("2025-12-02: 7 messages") for line in reconciliation_lines(result))
    assert deleted_days_note(result.swept)
    assert result.problems
