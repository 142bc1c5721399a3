"""`threadline blocks`."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner, control_characters
from tests.transcripts import SESSION, Pen, Row, reply, write

from threadline.account.windows import usage_windows
from threadline.reports import read_ledger

NOW = "2026-03-05T12:40:14"
OPUS, HAIKU = "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001"


def usage_reply(number: int, time: str, model: str = OPUS, output: int = 100) -> Row:
    """A reply with 10 input tokens, 1,000 written to the cache and 5,000 read from it."""
    pen = Pen(version="2.1.232")
    (row,) = reply("x", output=output, input=10, written=1000, read=5000, message={"model": model})(pen)
    row["message"]["id"] = f"msg_01AAAAbbbbccccdddd111{number}"
    return row | {"timestamp": time, "uuid": f"u{number}", "requestId": f"req_{number}"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a past window, a gap, and a window that is active at NOW."""
    write(
        tmp_path / f"projects/-work-app/{SESSION}.jsonl",
        usage_reply(1, "2026-03-03T10:20:30.123Z"),
        usage_reply(2, "2026-03-03T10:40:30.123Z", output=900),
        usage_reply(3, "2026-03-05T11:10:14.000Z"),
        usage_reply(4, "2026-03-05T12:28:14.000Z", HAIKU, 333),
    )
    return tmp_path


@pytest.fixture
def blocks(cli: CliRunner, home: Path) -> Any:
    """Runs `blocks` on that home, at NOW, in UTC."""
    return lambda *more: cli("blocks", "--home", home, "--now", NOW, "--tz", "UTC", *more)


def test_table_shows_windows_gaps_burn_rate_and_projection(blocks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each window and gap has a line. Burn rate, projection, total and zone follow."""
    monkeypatch.setenv("COLUMNS", "120")
    result = blocks()
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[1].split()[:6] == ["2026-03-03", "10:00", "40m", "opus-4-5", "13.0k", "$0.04"]
    assert lines[2].split() == ["2026-03-03", "15:40", "gap", "1d", "19h"]
    assert "3h 19m left  opus-4-5, haiku-4-5   12.5k   $0.01    96%" in lines[3]
    assert "160 tokens per minute (6 without the cache), $0.01 per hour" in result.out
    assert "44.4k tokens, $0.05 by 16:00" in result.out
    assert "2 windows: 25.5k tokens, $0.06." in result.out
    assert "Times are UTC." in result.out


@pytest.mark.parametrize("width", ["40", "80", "120", "200"])
def test_table_fits_terminal(blocks: Any, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    """No line is wider than the terminal, and the tokens are always shown."""
    monkeypatch.setenv("COLUMNS", width)
    result = blocks("--limit-tokens", "max")
    assert max(map(len, result.out.splitlines())) <= int(width)
    assert int(width) < 80 or "12.5k" in result.out


def test_json_equals_library_windows(blocks: Any, home: Path) -> None:
    """The rows are the library's windows, amounts are strings, and the total is the ledger's."""
    report = blocks("--json").json
    ledger = read_ledger(home, jobs=1)
    windows = usage_windows(ledger, now=datetime.fromisoformat(f"{NOW}+00:00"))
    assert [row["tokens"] for row in report["rows"]] == [window.sum.tokens for window in windows]
    assert Decimal(report["total"]["amount"]) == ledger.total.amount
    assert report["total"]["charges"] == len(ledger) == 4
    assert report["prices"] == {"digest": ledger.rates.digest}
    assert (report["limit"], report["timeless"]) == ({"tokens": 13020, "given": False}, 0)
    last = report["rows"][-1]
    assert (last["amount"], last["tokens_per_minute"], last["share"]) == (
        Decimal("0.014725"),
        Decimal("159.653846"),
        Decimal("0.9565"),
    )
    assert (last["remaining_minutes"], last["projected_tokens"], last["projected_amount"]) == (
        200,
        44384,
        Decimal("0.05"),
    )
    assert (last["begins"], last["first"]) == ("2026-03-05T11:00:00Z", "2026-03-05T11:10:14Z")


def test_formats_have_the_same_rows(blocks: Any) -> None:
    """JSON, JSON Lines and CSV have the same rows."""
    rows = blocks("--json").json["rows"]
    assert blocks("--jsonl").jsonl == rows
    assert [row["tokens"] for row in blocks("--csv").csv] == [str(row["tokens"]) for row in rows]


def test_active_shows_only_the_active_window(blocks: Any, cli: CliRunner, home: Path) -> None:
    """`--active` shows only the active window. Without one, it says when the last ended, with exit code 1."""
    assert [row["is_active"] for row in blocks("--active", "--json").json["rows"]] == [True]
    late = cli("blocks", "--home", home, "--now", "2026-03-06T00:00", "--active")
    assert (late.code, late.out) == (1, "")
    assert late.err == "threadline: No window is active. The last one ended at 2026-03-05 16:00 (UTC).\n"
    result = cli("blocks", "--home", home, "--now", "2026-03-06T00:00", "--active", "--json")
    assert (result.code, result.json["rows"]) == (1, [])


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        (("--since", "2026-03-05"), ["2026-03-05T11"]),
        (("--until", "2026-03-03"), ["2026-03-03T10", "2026-03-03T15"]),
        (("--until", "2026-03-03T12:00"), ["2026-03-03T10"]),
        (("--recent",), ["2026-03-03T10", "2026-03-03T15", "2026-03-05T11"]),
        (("--since", "now"), ["2026-03-05T11"]),
        (("--order", "desc"), ["2026-03-05T11", "2026-03-03T15", "2026-03-03T10"]),
        (("--limit", "2"), ["2026-03-03T10", "2026-03-03T15", "2026-03-05T11"]),
        (("--limit", "1"), ["2026-03-05T11"]),
        (("--limit", "1", "--order", "desc"), ["2026-03-05T11"]),
        (("--hours", "1"), ["2026-03-03T10", "2026-03-03T11", "2026-03-05T11", *["2026-03-05T12"] * 2]),
    ],
)
def test_filters_choose_windows_by_start(blocks: Any, options: tuple[str, ...], begins: list[str]) -> None:
    """Windows are chosen by their start; `--limit` does not count gaps. An active one is in any period not yet over."""
    assert [row["begins"][:13] for row in blocks(*options, "--json").json["rows"]] == begins


def test_share_is_relative_to_largest_window(blocks: Any) -> None:
    """The share is relative to the largest window, even if that one is not shown."""
    assert blocks("--since", "2026-03-05", "--json").json["rows"][0]["share"] == Decimal("0.9565")


def test_time_zone_changes_display_and_filters_only(blocks: Any, cli: CliRunner, home: Path) -> None:
    """`--tz` changes how times are shown and which day `--since` means, but no window."""
    rows = blocks("--json").json["rows"]
    tokyo = cli("blocks", "--home", home, "--now", NOW, "--tz", "Asia/Tokyo")
    assert "2026-03-03 19:00" in tokyo.out
    assert "Times are Asia/Tokyo." in tokyo.out
    assert cli("blocks", "--home", home, "--now", NOW, "--tz", "Asia/Tokyo", "--json").json["rows"] == rows
    result = cli("blocks", "--home", home, "--now", NOW, "--tz", "Asia/Tokyo", "--until", "2026-03-03", "--json")
    assert [row["begins"][:13] for row in result.json["rows"]] == ["2026-03-03T10"]


@pytest.mark.parametrize(
    ("limit", "status", "remaining", "sentence"),
    [
        ("20000", "exceeds", 7547, "7.5k left; this rate exceeds it"),
        ("50,000", "warning", 37547, "37.5k left; this rate comes close to it"),
        ("1_000_000", "ok", 987547, "987.5k left; enough"),
        ("max", "exceeds", 567, "13.0k tokens: 567 left"),
    ],
)
def test_limit_shows_remaining_tokens_and_status(
    blocks: Any, limit: str, status: str, remaining: int, sentence: str
) -> None:
    """`--limit-tokens` shows how many tokens are left and whether the projection exceeds the limit."""
    result = blocks("--limit-tokens", limit, "--json").json
    assert result["limit"]["given"] is True
    last = result["rows"][-1]
    assert (last["limit_status"], last["limit_remaining"]) == (status, remaining)
    assert sentence in blocks("--limit-tokens", limit).out


def test_ccusage_shape_is_its_json(blocks: Any) -> None:
    """`--shape ccusage` prints its JSON, with or without `--json`. The limit status is included if a limit is given."""
    document = blocks("--shape", "ccusage").json
    assert document == blocks("--shape", "ccusage", "--json").json
    assert [block["id"] for block in document["blocks"]] == [
        "2026-03-03T10:00:00.000Z",
        "gap-2026-03-03T15:40:30.123Z",
        "2026-03-05T11:00:00.000Z",
    ]
    assert document["blocks"][-1]["costUSD"] == Decimal("0.014725")
    assert "tokenLimitStatus" not in document["blocks"][-1]
    limited = blocks("--shape", "ccusage", "--limit-tokens", "max", "--active").json["blocks"]
    assert [block["tokenLimitStatus"]["limit"] for block in limited] == [13020]


def test_prices_option_replaces_rates(blocks: Any, tmp_path: Path) -> None:
    """`--prices` replaces the built-in rates with those in a file."""
    price = dict.fromkeys(("input", "output", "cache_write_5m", "cache_write_1h", "cache_read"), 1)
    prices = tmp_path / "own.json"
    prices.write_text(json.dumps({"schema": 1, "models": {"claude-opus-4-5": {"periods": [price]}}}))
    assert blocks("--prices", str(prices), "--json").json["rows"][0]["amount"] == Decimal("0.01302")


def test_reports_charges_without_a_price(cli: CliRunner, tmp_path: Path) -> None:
    """Tokens are shown without an amount, and a line counts the charges without a price."""
    write(tmp_path / f"projects/-p/{SESSION}.jsonl", usage_reply(1, "2026-03-03T10:20:30.123Z", "no\x1b[31m-such"))
    result = cli("blocks", "--home", tmp_path)
    assert result.code == 0
    assert "1 charge without a price: their amount is not included." in result.out
    assert not control_characters(result.out)
    assert cli("blocks", "--home", tmp_path, "--json").json["rows"][0]["amount"] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--limit-tokens", "many"), "not 'many'"),
        (("--limit-tokens", "0"), "not '0'"),
        (("--shape", "ccusage", "--csv"), "cannot be combined with --jsonl or --csv"),
        (("--hours", "0"), "--hours"),
        (("--since", "someday"), "is not a time"),
        (("--tz", "Nowhere/Land"), "Unknown time zone"),
        (("--prices", "/no/such/file"), "no"),
    ],
)
def test_invalid_options_are_errors(cli: CliRunner, home: Path, options: tuple[str, ...], sentence: str) -> None:
    """Invalid options are reported in a sentence, with exit code 2."""
    result = cli("blocks", "--home", home, *options)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_reports_when_no_window_matches(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """If no window matches, or there are none, the exit code is 1 and a sentence says so."""
    result = cli("blocks", "--home", home, "--since", "2030-01-01", "--now", "2030-02-01")
    assert result.code == 1
    assert "None of 2 windows matches. The last one started at 2026-03-05 11:00 (UTC)." in result.err
    (tmp_path / "empty/projects").mkdir(parents=True)
    empty = cli("blocks", "--home", tmp_path / "empty")
    assert (empty.code, empty.err) == (1, "threadline: No windows: there are no charges.\n")


@pytest.mark.sample(4)
@pytest.mark.parametrize("tz", ["local", "UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("command", ["blocks", "usage", "explain"])
def test_extreme_timestamps_are_reported(cli: CliRunner, tmp_path: Path, command: str, tz: str) -> None:
    """Timestamps of the years 1 and 9999 are rows like all others, in every zone."""
    pen = Pen()
    rows = [
        {**row, "timestamp": time}
        for time in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z")
        for row in reply("ok", output=5)(pen)
    ]
    write(tmp_path / f"projects/-work-app/{pen.session}.jsonl", *rows)
    arguments = (command, pen.session) if command == "explain" else (command,)
    result = cli(*arguments, "--home", tmp_path, "--tz", tz)
    assert (result.code, result.err) == (0, "")
    assert "0001-01-0" in result.out
    days = [row["day"] for row in cli("usage", "--home", tmp_path, "--tz", tz, "--json").json["rows"]]
    assert [cli("explain", day, "--home", tmp_path, "--tz", tz).code for day in days] == [0, 0]


def test_demo_windows_contain_all_charges(cli: CliRunner, demo_home: Path) -> None:
    """On the demo home, no gap follows another, and the windows contain all charges."""
    report = cli("blocks", "--home", demo_home, "--json").json
    assert report["total"]["charges"] == read_ledger(demo_home, jobs=1).total.charges
    assert report["timeless"] == 0
    assert not any(
        row["is_gap"] and next_row["is_gap"] for row, next_row in zip(report["rows"], report["rows"][1:], strict=False)
    )


def test_table_is_in_order_of_time(cli: CliRunner, tmp_path: Path) -> None:
    """A window begins on the hour: a gap ends there, and is left out if it would begin later."""
    write(
        tmp_path / f"projects/-work-app/{SESSION}.jsonl",
        usage_reply(1, "2026-03-03T07:43:00.000Z"),
        usage_reply(2, "2026-03-03T12:50:00.000Z"),
        usage_reply(3, "2026-03-03T20:59:00.000Z"),
    )
    result = cli("blocks", "--home", tmp_path, "--now", NOW, "--tz", "UTC")
    rows = [line.split()[1:4] for line in result.out.splitlines() if line.lstrip().startswith("2026")]
    assert [row[0] for row in rows] == ["07:00", "12:00", "17:50", "20:00"]
    assert rows[2] == ["17:50", "gap", "2h"]
