"""Money is the same whatever decimal context the caller has set, and however much was said to be spent."""

from __future__ import annotations

import decimal
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import START, Pen, Row, write

from threadline.account import Ledger, load_rates, window_limit
from threadline.account.charges import compute_charges
from threadline.account.windows import usage_windows
from threadline.find import look
from threadline.model.usage import Origin, Sighting
from threadline.reports import build_receipt, ccusage_report, read_ledger, receipts, reconcile, reconciliation_record

MODEL = "claude-sonnet-4-5-20250929"
NOW = START + timedelta(hours=1)
CONTEXTS = {
    "few digits": decimal.Context(prec=3),
    "small numbers": decimal.Context(prec=5, Emax=9, Emin=-3),
    "rounding refused": decimal.Context(traps=[decimal.Inexact, decimal.Rounded]),
    "floats refused": decimal.Context(traps=[decimal.FloatOperation]),
}


def _reply(pen: Pen, number: int, **more: Any) -> Row:
    searches = {"web_search_requests": 12345 + number}
    usage = {"input_tokens": 123457 + number, "output_tokens": 54321, "server_tool_use": searches, **more}
    return pen.chain("assistant", message={"id": pen.id("msg_01", number), "model": MODEL, "usage": usage})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session that searched much, wrote a total, and went on."""
    pen = Pen()
    cost = 7000.123456789
    total = {
        "type": "cost-state",
        "sessionId": pen.session,
        "totalCostUSD": cost,
        "modelUsage": {MODEL: {"costUSD": cost}},
    }
    rows: list[Row | bytes] = [
        *(_reply(pen, at) for at in range(20)),
        total,
        *(_reply(pen, at) for at in range(20, 30)),
    ]
    write(tmp_path / f"projects/-work-app/{pen.session}.jsonl", *rows)
    return tmp_path


def _everything(home: Path) -> dict[str, str]:
    book, found = read_ledger(home), [look(home)]
    whole = build_receipt(book, receipts.query_session(book, Pen().session, ()), found)
    made = usage_windows(book, now=NOW)
    return {
        "charges": str([charge.amount for charge in book]),
        "rows": str(book.by("model", "tool").records()),
        "windows": str([one.record(window_limit(made, 7)) for one in made]),
        "ccusage": json.dumps([ccusage_report(book, one, now=NOW) for one in ("daily", "session", "blocks")]),
        "reported": str(reconciliation_record(reconcile(found, book))),
        "receipt": str((whole.total, whole.rates, [item.products for item in whole.items])),
    }


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_context_of_the_callers_changes_no_amount(home: Path, context: str) -> None:
    """Neither its digits nor what it traps reach any sum, receipt, window or difference."""
    expected = _everything(home)
    with decimal.localcontext(CONTEXTS[context]):
        found = _everything(home)
    assert found == expected


def test_the_most_that_counts_can_say_within_a_microsecond_is_a_window_like_any_other() -> None:
    """Burn, projection and share are told: 28 digits of a quotient, whatever its size."""
    most = 2**53
    times = ("2026-01-05T09:00:00.000000Z", "2026-01-05T09:00:00.000001Z")
    seen = [
        Sighting(
            f"msg_01XFDUDYJgAACzvnptvVoY{at}",
            0,
            MODEL,
            time,
            at,
            most,
            most,
            most,
            most,
            0,
            most,
            stopped=True,
            rows=f"{at} u{at}",
            origin=Origin("s1", transcript="/a.jsonl"),
        )
        for at, time in enumerate(times)
    ]
    book = Ledger(compute_charges(seen, load_rates()), load_rates())
    (one,) = usage_windows(book, now=datetime(2026, 1, 5, 9, 30, tzinfo=UTC))
    told = one.record(window_limit([one], 1))
    assert round(told["tokens_per_minute"]) == 8 * most * 60_000_000
    assert told["projected_tokens"] // 10**6 == (8 * most + 8 * most * 60_000_000 * 270) // 10**6
    assert told["share"] == float(8 * most)
