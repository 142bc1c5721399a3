"""Amounts do not depend on the caller's decimal context or on the size of the counts."""

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
    """A home with a session that has many searches, a total, and more replies after it."""
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


def _all_amounts(home: Path) -> dict[str, str]:
    book, listings = read_ledger(home), [look(home)]
    receipt = build_receipt(book, receipts.query_session(book, Pen().session, ()), listings)
    windows = usage_windows(book, now=NOW)
    return {
        "charges": str([charge.amount for charge in book]),
        "rows": str(book.by("model", "tool").records()),
        "windows": str([window.record(window_limit(windows, 7)) for window in windows]),
        "ccusage": json.dumps([ccusage_report(book, report, now=NOW) for report in ("daily", "session", "blocks")]),
        "reported": str(reconciliation_record(reconcile(listings, book))),
        "receipt": str((receipt.total, receipt.rates, [item.products for item in receipt.items])),
    }


@pytest.mark.parametrize("context", CONTEXTS)
def test_callers_decimal_context_changes_no_amount(home: Path, context: str) -> None:
    """Its precision and traps affect no sum, receipt, window or difference."""
    expected = _all_amounts(home)
    with decimal.localcontext(CONTEXTS[context]):
        amounts = _all_amounts(home)
    assert amounts == expected


def test_largest_counts_within_a_microsecond_make_a_valid_window() -> None:
    """Burn rate, projection and share have 28 digits, whatever their size."""
    max_count = 2**53
    times = ("2026-01-05T09:00:00.000000Z", "2026-01-05T09:00:00.000001Z")
    sightings = [
        Sighting(
            f"msg_01XFDUDYJgAACzvnptvVoY{at}",
            0,
            MODEL,
            time,
            at,
            max_count,
            max_count,
            max_count,
            max_count,
            0,
            max_count,
            stopped=True,
            rows=f"{at} u{at}",
            origin=Origin("s1", transcript="/a.jsonl"),
        )
        for at, time in enumerate(times)
    ]
    book = Ledger(compute_charges(sightings, load_rates()), load_rates())
    (window,) = usage_windows(book, now=datetime(2026, 1, 5, 9, 30, tzinfo=UTC))
    record = window.record(window_limit([window], 1))
    assert round(record["tokens_per_minute"]) == 8 * max_count * 60_000_000
    assert record["projected_tokens"] // 10**6 == (8 * max_count + 8 * max_count * 60_000_000 * 270) // 10**6
    assert record["share"] == float(8 * max_count)
