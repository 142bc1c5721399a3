"""Reports in ccusage's shape: key for key what it prints, and where it is installed, number for number."""

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
    """A reply of 10 input, 100 output, 1,000 written, 5,000 read."""
    usage = {
        "input_tokens": 10,
        "output_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 5000,
        **fields.pop("usage", {}),
    }
    said = {"id": f"msg_01AAAAbbbbccccdddd111{number}", "role": "assistant", "model": model, "usage": usage}
    said |= {"type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}
    return {
        "type": "assistant",
        "uuid": f"u{number}",
        "timestamp": time,
        "sessionId": session,
        "cwd": "/home/u/app",
        "version": "2.1.232",
        "isSidechain": False,
        "requestId": f"req_{number}",
        "message": said,
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
def made(home: Path) -> Ledger:
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
def test_rows_of_time(made: Ledger, report: Any, name: str, values: list[str]) -> None:
    """Rows have exactly the keys of both spellings, and both name the same period."""
    told = ccusage_report(made, report)
    assert set(told) == {report, "totals"}
    for one in told[report]:
        assert set(one) == UNIFIED | PLAIN | {name}
        assert (one["agent"], one["metadata"]) == ("all", {"agents": ["claude"]})
    assert [one[name] for one in told[report]] == [one["period"] for one in told[report]] == values
    assert [one[name] for one in ccusage_report(made, report, order="desc")[report]] == values[::-1]


def test_a_day_in_full(made: Ledger) -> None:
    """A row as ccusage has it: tokens, cost, models by name, breakdowns by cost."""
    first = ccusage_report(made, "daily")["daily"][0]
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


def test_totals(made: Ledger) -> None:
    """Every report but blocks has the same totals; a model without a price costs 0 and is named."""
    for report in ("daily", "weekly", "monthly", "session"):
        assert ccusage_report(made, report)["totals"] == {
            "inputTokens": 50,
            "outputTokens": 500,
            "cacheCreationTokens": 5000,
            "cacheReadTokens": 25000,
            "totalCost": 0.03616,
            "totalTokens": 30550,
            "unpricedModels": [UNKNOWN],
        }
    second = ccusage_report(made, "daily")["daily"][1]
    assert [(one["cost"], one["missingPricing"]) for one in second["modelBreakdowns"]] == [(0.0, True)]
    assert "missingPricing" not in ccusage_report(made, "daily")["daily"][0]["modelBreakdowns"][0]


def test_no_unpriced_models_no_key(made: Ledger) -> None:
    """Where every model has a price, the key is not there, as in ccusage."""
    assert set(ccusage_report(made.where(model="opus"), "daily")["totals"]) == {*TOKENS, "totalCost", "totalTokens"}


def test_sessions(made: Ledger) -> None:
    """Agents belong to their session; the greatest cost comes first; both names lead to the same rows."""
    told = ccusage_report(made, "session")
    assert set(told) == {"session", "sessions", "totals"}
    assert told["session"] == told["sessions"]
    for one in told["session"]:
        assert set(one) == UNIFIED | PLAIN | SESSION
        assert one["metadata"] == {"lastActivity": one["lastActivity"]}
    first, second = told["session"]
    assert (first["sessionId"], first["period"], first["agent"]) == (APP, APP, "claude")
    assert (first["projectPath"], first["totalTokens"], first["totalCost"]) == ("-home-u-app", 18330, 0.02486)
    assert (first["firstActivity"], first["lastActivity"]) == ("2026-03-01T10:20:30.123Z", "2026-03-01T23:50:00.000Z")
    assert (second["sessionId"], second["projectPath"]) == (LIB, "-home-u-lib")


def test_projects_apart(made: Ledger) -> None:
    """By project, each has its own rows under its folder's name, as `--instances` has it."""
    told = ccusage_report(made, "daily", by_project=True)
    assert set(told) == {"projects", "totals"}
    assert {name: [row["date"] for row in rows] for name, rows in told["projects"].items()} == {
        "-home-u-app": ["2026-03-01"],
        "-home-u-lib": ["2026-03-03", "2026-03-09"],
    }
    assert {one["project"] for one in told["projects"]["-home-u-lib"]} == {"-home-u-lib"}


def test_days_of_a_zone(made: Ledger) -> None:
    """Days are those of the zone."""
    rows = ccusage_report(made, "daily", zone=ZoneInfo("Asia/Tokyo"))["daily"]
    assert [(row["date"], row["totalTokens"]) for row in rows][:2] == [("2026-03-01", 12220), ("2026-03-02", 6110)]


@pytest.mark.parametrize(
    ("start", "weeks"),
    [("sunday", ["2026-03-01", "2026-03-08"]), ("wednesday", ["2026-02-25", "2026-03-04"])],
)
def test_weeks_that_begin_otherwise(made: Ledger, start: str, weeks: list[str]) -> None:
    """A week may begin on any day."""
    assert [one["week"] for one in ccusage_report(made, "weekly", start_of_week=start)["weekly"]] == weeks


def test_fast_mode_is_a_model_of_its_own(tmp_path: Path) -> None:
    """Fast mode has the model's name with `-fast`, as in ccusage."""
    one = row(1, "2026-03-01T10:00:00.000Z", APP, "claude-opus-4-6", usage={"speed": "fast"})
    transcripts.write(tmp_path / f"projects/-p/{APP}.jsonl", one)
    assert ccusage_report(read_ledger(tmp_path, jobs=1), "daily")["daily"][0]["modelsUsed"] == ["claude-opus-4-6-fast"]


def test_blocks(made: Ledger) -> None:
    """Blocks and gaps have exactly its keys and ids."""
    told = ccusage_report(made, "blocks", now=datetime(2026, 11, 15, tzinfo=UTC))
    assert set(told) == {"blocks"}
    assert all(set(one) == BLOCK for one in told["blocks"])
    assert [one["id"] for one in told["blocks"]] == [
        "2026-03-01T10:00:00.000Z",
        "gap-2026-03-01T15:40:30.123Z",
        "2026-03-01T23:00:00.000Z",
        "gap-2026-03-02T04:50:00.000Z",
        "2026-03-03T04:00:00.000Z",
        "gap-2026-03-03T09:00:00.000Z",
        "2026-03-09T04:00:00.000Z",
    ]
    assert told["blocks"][0] == {
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
    gap = told["blocks"][1]
    assert (gap["isGap"], gap["endTime"], gap["actualEndTime"]) == (True, "2026-03-01T23:50:00.000Z", None)
    assert (gap["entries"], gap["totalTokens"], gap["costUSD"], gap["models"]) == (0, 0, 0.0, [])


def test_the_active_block(made: Ledger) -> None:
    """The active block has a burn rate and a projection, and with a limit its status."""
    some = usage_windows(made, now=datetime(2026, 3, 1, 11, 40, tzinfo=UTC))
    one = ccusage_blocks(some)["blocks"][0]
    assert one["isActive"]
    assert set(one) == BLOCK
    assert one["burnRate"] == {
        "tokensPerMinute": 611.0,
        "tokensPerMinuteForIndicator": 11.0,
        "costPerHour": 0.0678,
    }
    assert one["projection"] == {"totalTokens": 12220 + 611 * 200, "totalCost": 0.25, "remainingMinutes": 200}
    limited = ccusage_blocks(some, limit=window_limit(some, 200_000))["blocks"]
    assert limited[0]["tokenLimitStatus"] == {
        "limit": 200_000,
        "projectedUsage": 134_420,
        "percentUsed": pytest.approx(67.21),
        "status": "ok",
    }
    assert all("tokenLimitStatus" not in other for other in limited[1:])


def test_nothing(tmp_path: Path) -> None:
    """An empty home has empty lists and zeros."""
    (tmp_path / "projects").mkdir()
    empty = read_ledger(tmp_path, jobs=1)
    assert ccusage_report(empty, "daily") == {
        "daily": [],
        "totals": {**dict.fromkeys(TOKENS, 0), "totalCost": 0.0, "totalTokens": 0},
    }
    assert ccusage_report(empty, "blocks") == {"blocks": []}
    assert ccusage_report(empty, "session")["sessions"] == []


def test_what_is_not_there(made: Ledger) -> None:
    """An unknown report or weekday is an error that names those that are."""
    with pytest.raises(BadQuery, match="daily, weekly"):
        ccusage_report(made, "hourly")  # type: ignore[arg-type]
    with pytest.raises(BadQuery, match="monday, tuesday"):
        ccusage_report(made, "weekly", start_of_week="someday")


def test_costs_are_exact_sums_made_numbers_last(made: Ledger) -> None:
    """A total is the number nearest to the exact amount, not a sum of numbers."""
    exact = made.total.amount
    assert exact == Decimal("0.03616")
    assert ccusage_report(made, "monthly")["monthly"][0]["totalCost"] == float(exact)


CCUSAGE = os.environ.get("THREADLINE_CCUSAGE") or shutil.which("ccusage")
CORPUS = Path(__file__).parents[3] / "shared/corpus/home"
needs_ccusage = pytest.mark.skipif(CCUSAGE is None, reason="ccusage is not installed; name it in THREADLINE_CCUSAGE")


def rival(home: Path, *report: str) -> Any:
    """What ccusage itself prints."""
    done = subprocess.run(  # noqa: S603 - the rival that the developer named
        [str(CCUSAGE), *report, "--json", "--offline", "--timezone", "UTC"],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)},
        capture_output=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def tokens(rows: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    """The tokens of each row, by its period."""
    return {row["period"]: tuple(row[name] for name in sorted(TOKENS)) for row in rows}


@pytest.mark.real
@needs_ccusage
def test_its_keys_are_ours(home: Path, made: Ledger) -> None:
    """Whatever key the installed version prints on this home, our rows have, with the same value."""
    for report in ("daily", "weekly", "monthly", "session"):
        ours = ccusage_report(made, report)
        theirs = rival(home, report)
        assert set(theirs) <= set(ours)
        for one, other in zip(theirs[report], ours[report], strict=True):
            same = {name: pytest.approx(value) if isinstance(value, float) else value for name, value in one.items()}
            same |= {name: other[name] for name in ("modelsUsed", "modelBreakdowns") if name in other}
            assert same == {name: other[name] for name in one}
            assert sorted(one["modelsUsed"]) == other["modelsUsed"]
    now = datetime.now(UTC)
    assert [(one["id"], one["totalTokens"]) for one in rival(home, "blocks")["blocks"]] == [
        (one["id"], one["totalTokens"]) for one in ccusage_report(made, "blocks", now=now)["blocks"]
    ]


@pytest.mark.real
@needs_ccusage
@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus is not there")
def test_the_corpus_day_by_day() -> None:
    """On the corpus, both count the same tokens every day, week and month."""
    ours = read_ledger(CORPUS)
    for report in ("daily", "weekly", "monthly"):
        assert tokens(rival(CORPUS, report)[report]) == tokens(ccusage_report(ours, report)[report])


@pytest.mark.real
@needs_ccusage
def test_a_demo_home_window_by_window(tmp_path: Path) -> None:
    """On a made-up home, both have the same windows, with the same tokens in each; so have all sessions together."""
    write(tmp_path / "home")
    ours = read_ledger(tmp_path / "home")
    theirs = rival(tmp_path / "home", "blocks")["blocks"]
    told = ccusage_report(ours, "blocks")["blocks"]
    assert [(their["startTime"], their["totalTokens"]) for their in theirs if not their["isGap"]] == [
        (one["startTime"], one["totalTokens"]) for one in told if not one["isGap"]
    ]
    totals = rival(tmp_path / "home", "session")["totals"]
    assert {name: totals[name] for name in TOKENS} == {
        name: ccusage_report(ours, "session")["totals"][name] for name in TOKENS
    }
