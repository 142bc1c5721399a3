"""Reports in ccusage's format have the same keys as ccusage, and the same numbers if it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests import transcripts
from tools.demo import write

from threadline.account import Ledger, window_limit
from threadline.account.windows import usage_windows
from threadline.errors import BadQuery
from threadline.reports import ccusage_blocks, ccusage_report, read_ledger

APP, LIB = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
OPUS, HAIKU, UNKNOWN = "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001", "some-unknown-model"
TOKENS = {"inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens"}
FIGURES = {*TOKENS, "totalTokens", "totalCost", "modelsUsed", "modelBreakdowns"}
# What `ccusage daily` and `ccusage claude daily` of 20.0.24 print; 18.0.11 prints the second.
UNIFIED, PLAIN = {*FIGURES, "period", "agent", "metadata"}, FIGURES
SESSION = {"sessionId", "projectPath", "firstActivity", "lastActivity"}
BLOCK = {
    "id",
    "startTime",
    "endTime",
    "actualEndTime",
    "isActive",
    "isGap",
    "entries",
    "tokenCounts",
    "totalTokens",
    "costUSD",
    "models",
    "burnRate",
    "projection",
}


def row(number: int, time: str, session: str, model: str = OPUS, **fields: Any) -> transcripts.Row:
    """Return a reply with 10 input, 100 output, 1,000 cache write and 5,000 cache read tokens."""
    usage = {
        "input_tokens": 10,
        "output_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 5000,
        **fields.pop("usage", {}),
    }
    message = {"id": f"msg_01AAAAbbbbccccdddd111{number}", "role": "assistant", "model": model, "usage": usage}
    message |= {"type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}
    return {
        "type": "assistant",
        "uuid": f"u{number}",
        "timestamp": time,
        "sessionId": session,
        "cwd": "/home/u/app",
        "version": "2.1.232",
        "isSidechain": False,
        "requestId": f"req_{number}",
        "message": message,
        **fields,
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two projects, an agent, a model without a price, and days that differ by time zone."""
    app, lib = tmp_path / "projects/-home-u-app", tmp_path / "projects/-home-u-lib"
    transcripts.write(
        app / f"{APP}.jsonl",
        row(1, "2026-03-01T10:20:30.123Z", APP),
        row(2, "2026-03-01T23:50:00.000Z", APP, HAIKU),
    )
    agent = app / APP / "subagents/agent-a1234567.jsonl"
    transcripts.write(agent, row(9, "2026-03-01T10:40:30.123Z", APP, agentId="a1234567", isSidechain=True))
    transcripts.write(
        lib / f"{LIB}.jsonl",
        row(3, "2026-03-03T04:00:00.000Z", LIB, UNKNOWN),
        row(4, "2026-03-09T04:00:00.000Z", LIB),
    )
    return tmp_path


@pytest.fixture
def ledger(home: Path) -> Ledger:
    """The ledger of that home."""
    return read_ledger(home, jobs=1)


@pytest.mark.parametrize(
    ("report", "name", "values"),
    [
        ("daily", "date", ["2026-03-01", "2026-03-03", "2026-03-09"]),
        ("weekly", "week", ["2026-02-23", "2026-03-02", "2026-03-09"]),
        ("monthly", "month", ["2026-03"]),
    ],
)
def test_rows_by_period(ledger: Ledger, report: Any, name: str, values: list[str]) -> None:
    """Rows have exactly the keys of both spellings, and both name the same period."""
    reported = ccusage_report(ledger, report)
    assert set(reported) == {report, "totals"}
    for row_ in reported[report]:
        assert set(row_) == UNIFIED | PLAIN | {name}
        assert (row_["agent"], row_["metadata"]) == ("all", {"agents": ["claude"]})
    assert [row_[name] for row_ in reported[report]] == [row_["period"] for row_ in reported[report]] == values


def test_daily_row(ledger: Ledger) -> None:
    """A row is equal to ccusage's: tokens, cost, models by name, breakdowns by cost."""
    first = ccusage_report(ledger, "daily")["daily"][0]
    assert first == {
        "date": "2026-03-01",
        "period": "2026-03-01",
        "agent": "all",
        "inputTokens": 30,
        "outputTokens": 300,
        "cacheCreationTokens": 3000,
        "cacheReadTokens": 15000,
        "totalTokens": 18330,
        "totalCost": 0.02486,
        "modelsUsed": [HAIKU, OPUS],
        "modelBreakdowns": [
            {
                "modelName": OPUS,
                "inputTokens": 20,
                "outputTokens": 200,
                "cacheCreationTokens": 2000,
                "cacheReadTokens": 10000,
                "cost": 0.0226,
            },
            {
                "modelName": HAIKU,
                "inputTokens": 10,
                "outputTokens": 100,
                "cacheCreationTokens": 1000,
                "cacheReadTokens": 5000,
                "cost": 0.00226,
            },
        ],
        "metadata": {"agents": ["claude"]},
    }


def test_reports_have_the_same_totals(ledger: Ledger) -> None:
    """Every report except blocks has the same totals. A model without a price costs 0 and is named."""
    for report in ("daily", "weekly", "monthly", "session"):
        assert ccusage_report(ledger, report)["totals"] == {
            "inputTokens": 50,
            "outputTokens": 500,
            "cacheCreationTokens": 5000,
            "cacheReadTokens": 25000,
            "totalCost": 0.03616,
            "totalTokens": 30550,
            "unpricedModels": [UNKNOWN],
        }
    second = ccusage_report(ledger, "daily")["daily"][1]
    assert [(breakdown["cost"], breakdown["missingPricing"]) for breakdown in second["modelBreakdowns"]] == [
        (0.0, True)
    ]
    assert "missingPricing" not in ccusage_report(ledger, "daily")["daily"][0]["modelBreakdowns"][0]


def test_no_unpriced_key_if_every_model_has_a_price(ledger: Ledger) -> None:
    """As in ccusage, the key is missing if every model has a price."""
    assert set(ccusage_report(ledger.where(model="opus"), "daily")["totals"]) == {*TOKENS, "totalCost", "totalTokens"}


def test_session_report(ledger: Ledger) -> None:
    """Agents belong to their session. The most expensive comes first. Both keys contain the same rows."""
    report = ccusage_report(ledger, "session")
    assert set(report) == {"session", "sessions", "totals"}
    assert report["session"] == report["sessions"]
    for session in report["session"]:
        assert set(session) == UNIFIED | PLAIN | SESSION
        assert session["metadata"] == {"lastActivity": session["lastActivity"]}
    first, second = report["session"]
    assert (first["sessionId"], first["period"], first["agent"]) == (APP, APP, "claude")
    assert (first["projectPath"], first["totalTokens"], first["totalCost"]) == ("-home-u-app", 18330, 0.02486)
    assert (first["firstActivity"], first["lastActivity"]) == ("2026-03-01T10:20:30.123Z", "2026-03-01T23:50:00.000Z")
    assert (second["sessionId"], second["projectPath"]) == (LIB, "-home-u-lib")


def test_days_are_in_the_requested_zone(ledger: Ledger) -> None:
    """Days are those of the time zone."""
    rows = ccusage_report(ledger, "daily", zone=ZoneInfo("Asia/Tokyo"))["daily"]
    assert [(row["date"], row["totalTokens"]) for row in rows][:2] == [("2026-03-01", 12220), ("2026-03-02", 6110)]


def test_fast_mode_is_a_separate_model(tmp_path: Path) -> None:
    """The model's name gets the suffix `-fast`, as in ccusage."""
    reply = row(1, "2026-03-01T10:00:00.000Z", APP, "claude-opus-4-6", usage={"speed": "fast"})
    transcripts.write(tmp_path / f"projects/-p/{APP}.jsonl", reply)
    assert ccusage_report(read_ledger(tmp_path, jobs=1), "daily")["daily"][0]["modelsUsed"] == ["claude-opus-4-6-fast"]


def test_blocks_report(ledger: Ledger) -> None:
    """Blocks and gaps have exactly ccusage's keys and ids."""
    report = ccusage_report(ledger, "blocks", now=datetime(2026, 11, 15, tzinfo=UTC))
    assert set(report) == {"blocks"}
    assert all(set(block) == BLOCK for block in report["blocks"])
    assert [block["id"] for block in report["blocks"]] == [
        "2026-03-01T10:00:00.000Z",
        "gap-2026-03-01T15:40:30.123Z",
        "2026-03-01T23:00:00.000Z",
        "gap-2026-03-02T04:50:00.000Z",
        "2026-03-03T04:00:00.000Z",
        "gap-2026-03-03T09:00:00.000Z",
        "2026-03-09T04:00:00.000Z",
    ]
    assert report["blocks"][0] == {
        "id": "2026-03-01T10:00:00.000Z",
        "startTime": "2026-03-01T10:00:00.000Z",
        "endTime": "2026-03-01T15:00:00.000Z",
        "actualEndTime": "2026-03-01T10:40:30.123Z",
        "isActive": False,
        "isGap": False,
        "entries": 2,
        "tokenCounts": {
            "inputTokens": 20,
            "outputTokens": 200,
            "cacheCreationInputTokens": 2000,
            "cacheReadInputTokens": 10000,
        },
        "totalTokens": 12220,
        "costUSD": 0.0226,
        "models": [OPUS],
        "burnRate": None,
        "projection": None,
    }
    gap = report["blocks"][1]
    assert (gap["isGap"], gap["endTime"], gap["actualEndTime"]) == (True, "2026-03-01T23:50:00.000Z", None)
    assert (gap["entries"], gap["totalTokens"], gap["costUSD"], gap["models"]) == (0, 0, 0.0, [])


def test_active_block_has_burn_rate_and_projection(ledger: Ledger) -> None:
    """With a limit, it also has a limit status."""
    windows = usage_windows(ledger, now=datetime(2026, 3, 1, 11, 40, tzinfo=UTC))
    block = ccusage_blocks(windows)["blocks"][0]
    assert block["isActive"]
    assert set(block) == BLOCK
    assert block["burnRate"] == {
        "tokensPerMinute": 611.0,
        "tokensPerMinuteForIndicator": 11.0,
        "costPerHour": 0.0678,
    }
    assert block["projection"] == {"totalTokens": 12220 + 611 * 200, "totalCost": 0.25, "remainingMinutes": 200}
    limited = ccusage_blocks(windows, limit=window_limit(windows, 200_000))["blocks"]
    assert limited[0]["tokenLimitStatus"] == {
        "limit": 200_000,
        "projectedUsage": 134_420,
        "percentUsed": pytest.approx(67.21),
        "status": "ok",
    }
    assert all("tokenLimitStatus" not in block_ for block_ in limited[1:])


def test_empty_home(tmp_path: Path) -> None:
    """An empty home has empty lists and zeros."""
    (tmp_path / "projects").mkdir()
    empty = read_ledger(tmp_path, jobs=1)
    assert ccusage_report(empty, "daily") == {
        "daily": [],
        "totals": {**dict.fromkeys(TOKENS, 0), "totalCost": 0.0, "totalTokens": 0},
    }
    assert ccusage_report(empty, "blocks") == {"blocks": []}
    assert ccusage_report(empty, "session")["sessions"] == []


def test_unknown_report_is_an_error(ledger: Ledger) -> None:
    """The error lists the reports."""
    with pytest.raises(BadQuery, match="daily, weekly"):
        ccusage_report(ledger, "hourly")  # type: ignore[arg-type]


def test_costs_are_converted_to_float_after_summing(ledger: Ledger) -> None:
    """A total is the float nearest to the exact amount, not a sum of floats."""
    exact = ledger.total.amount
    assert exact == Decimal("0.03616")
    assert ccusage_report(ledger, "monthly")["monthly"][0]["totalCost"] == float(exact)


CCUSAGE = os.environ.get("THREADLINE_CCUSAGE") or shutil.which("ccusage")
CORPUS = Path(__file__).parents[3] / "shared/corpus/home"
needs_ccusage = pytest.mark.skipif(CCUSAGE is None, reason="ccusage is not installed; name it in THREADLINE_CCUSAGE")


def run_ccusage(home: Path, *report: str) -> Any:
    """Return the JSON that ccusage prints."""
    process = subprocess.run(  # noqa: S603 - the rival that the developer named
        [str(CCUSAGE), *report, "--json", "--offline", "--timezone", "UTC"],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)},
        capture_output=True,
        check=True,
        timeout=120,
    )
    return json.loads(process.stdout)


def tokens(rows: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    """Return the tokens of each row by period."""
    return {row["period"]: tuple(row[name] for name in sorted(TOKENS)) for row in rows}


@pytest.mark.real
@needs_ccusage
def test_matches_installed_ccusage(home: Path, ledger: Ledger) -> None:
    """Our rows have every key that the installed version prints for this home, with the same value."""
    for report in ("daily", "weekly", "monthly", "session"):
        ours = ccusage_report(ledger, report)
        theirs = run_ccusage(home, report)
        assert set(theirs) <= set(ours)
        for their_row, our_row in zip(theirs[report], ours[report], strict=True):
            expected = {
                name: pytest.approx(value) if isinstance(value, float) else value for name, value in their_row.items()
            }
            expected |= {name: our_row[name] for name in ("modelsUsed", "modelBreakdowns") if name in our_row}
            assert expected == {name: our_row[name] for name in their_row}
            assert sorted(their_row["modelsUsed"]) == our_row["modelsUsed"]
    now = datetime.now(UTC)
    assert [(their_row["id"], their_row["totalTokens"]) for their_row in run_ccusage(home, "blocks")["blocks"]] == [
        (their_row["id"], their_row["totalTokens"]) for their_row in ccusage_report(ledger, "blocks", now=now)["blocks"]
    ]


@pytest.mark.real
@needs_ccusage
@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus is not there")
def test_corpus_matches_ccusage() -> None:
    """On the corpus, both count the same tokens for every day, week and month."""
    ours = read_ledger(CORPUS)
    for report in ("daily", "weekly", "monthly"):
        assert tokens(run_ccusage(CORPUS, report)[report]) == tokens(ccusage_report(ours, report)[report])


@pytest.mark.real
@needs_ccusage
def test_demo_home_matches_ccusage(tmp_path: Path) -> None:
    """On a demo home, both have the same windows with the same tokens, and the same total over all sessions."""
    write(tmp_path / "home")
    ours = read_ledger(tmp_path / "home")
    theirs = run_ccusage(tmp_path / "home", "blocks")["blocks"]
    our_blocks = ccusage_report(ours, "blocks")["blocks"]
    assert [(block_["startTime"], block_["totalTokens"]) for block_ in theirs if not block_["isGap"]] == [
        (block["startTime"], block["totalTokens"]) for block in our_blocks if not block["isGap"]
    ]
    totals = run_ccusage(tmp_path / "home", "session")["totals"]
    assert {name: totals[name] for name in TOKENS} == {
        name: ccusage_report(ours, "session")["totals"][name] for name in TOKENS
    }
