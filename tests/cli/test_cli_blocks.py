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


def said(number: int, time: str, model: str = OPUS, output: int = 100) -> Row:
    """A reply of 10 input, 1,000 written and 5,000 read."""
    pen = Pen(version="2.1.232")
    (row,) = reply("x", output=output, input=10, written=1000, read=5000, message={"model": model})(pen)
    row["message"]["id"] = f"msg_01AAAAbbbbccccdddd111{number}"
    return row | {"timestamp": time, "uuid": f"u{number}", "requestId": f"req_{number}"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a window that is over, a gap, and one that is active at NOW."""
    write(
        tmp_path / f"projects/-work-app/{SESSION}.jsonl",
        said(1, "2026-03-03T10:20:30.123Z"),
        said(2, "2026-03-03T10:40:30.123Z", output=900),
        said(3, "2026-03-05T11:10:14.000Z"),
        said(4, "2026-03-05T12:28:14.000Z", HAIKU, 333),
    )
    return tmp_path


@pytest.fixture
def tell(cli: CliRunner, home: Path) -> Any:
    """Asks for the windows of that home, at NOW, in UTC."""
    return lambda *more: cli("blocks", "--home", home, "--now", NOW, "--tz", "UTC", *more)


def test_the_table(tell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows, the gap and the active one have a line each; burn, projection, total and zone follow."""
    monkeypatch.setenv("COLUMNS", "120")
    result = tell()
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[1].split()[:6] == ["2026-03-03", "10:00", "40m", "opus-4-5", "13,020", "0.04"]
    assert lines[2].split() == ["2026-03-03", "15:40", "gap", "43h"]
    assert "3h 19m left  opus-4-5, haiku-4-5  12,453  0.01    96%" in lines[3]
    assert "160 tokens per minute (6 without the cache), 0.01 USD per hour" in result.out
    assert "44,384 tokens, 0.05 USD by 16:00" in result.out
    assert "2 windows: 25,473 tokens, 0.06 USD." in result.out
    assert "Times are UTC." in result.out


@pytest.mark.parametrize("width", ["40", "80", "120", "200"])
def test_it_fits(tell: Any, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    """No line is wider than the terminal, and the tokens are on every one of them."""
    monkeypatch.setenv("COLUMNS", width)
    result = tell("--limit-tokens", "max")
    assert max(map(len, result.out.splitlines())) <= int(width)
    assert int(width) < 80 or "12k" in result.out or "12,453" in result.out


def test_json_is_exact(tell: Any, home: Path) -> None:
    """Every window of the library is a row with its figures; amounts are text, and the total is that of the ledger."""
    told = tell("--json").json
    counted = read_ledger(home, jobs=1)
    made = usage_windows(counted, now=datetime.fromisoformat(f"{NOW}+00:00"))
    assert [row["tokens"] for row in told["rows"]] == [one.sum.tokens for one in made]
    assert Decimal(told["total"]["amount"]) == counted.total.amount
    assert told["total"]["charges"] == len(counted) == 4
    assert told["prices"] == {"digest": counted.rates.digest}
    assert (told["limit"], told["timeless"]) == ({"tokens": 13020, "given": False}, 0)
    last = told["rows"][-1]
    assert (last["amount"], last["tokens_per_minute"], last["share"]) == ("0.014725", "159.653846", 0.9565)
    assert (last["remaining_minutes"], last["projected_tokens"], last["projected_amount"]) == (200, 44384, "0.05")
    assert (last["begins"], last["first"]) == ("2026-03-05T11:00:00Z", "2026-03-05T11:10:14Z")


def test_rows_are_the_same_everywhere(tell: Any) -> None:
    """JSON, JSON Lines and CSV have the same rows."""
    rows = tell("--json").json["rows"]
    assert tell("--jsonl").jsonl == rows
    assert [row["tokens"] for row in tell("--csv").csv] == [str(row["tokens"]) for row in rows]


def test_the_active_one(tell: Any, cli: CliRunner, home: Path) -> None:
    """`--active` shows it alone; where there is none, it says since when, and the code is 1."""
    assert [row["is_active"] for row in tell("--active", "--json").json["rows"]] == [True]
    late = cli("blocks", "--home", home, "--now", "2026-03-06T00:00", "--active")
    assert (late.code, late.out) == (1, "")
    assert late.err == "threadline: No window is active. The last one ended at 2026-03-05 16:00 UTC.\n"
    result = cli("blocks", "--home", home, "--now", "2026-03-06T00:00", "--active", "--json")
    assert (result.code, result.json["rows"]) == (1, [])


@pytest.mark.parametrize(
    ("given", "begins"),
    [
        (("--since", "2026-03-05"), ["2026-03-05T11"]),
        (("--until", "2026-03-03"), ["2026-03-03T10", "2026-03-03T15"]),
        (("--until", "2026-03-03T12:00"), ["2026-03-03T10"]),
        (("--recent",), ["2026-03-03T10", "2026-03-03T15", "2026-03-05T11"]),
        (("--since", "now"), ["2026-03-05T11"]),
        (("--order", "desc"), ["2026-03-05T11", "2026-03-03T15", "2026-03-03T10"]),
        (("--hours", "1"), ["2026-03-03T10", "2026-03-03T11", "2026-03-05T11", *["2026-03-05T12"] * 2]),
    ],
)
def test_which_are_shown(tell: Any, given: tuple[str, ...], begins: list[str]) -> None:
    """Windows are chosen by when they began; the active one belongs to every time that is not over."""
    assert [row["begins"][:13] for row in tell(*given, "--json").json["rows"]] == begins


def test_what_is_left_out_still_measures(tell: Any) -> None:
    """The share is of the biggest window there is, whichever are shown."""
    assert tell("--since", "2026-03-05", "--json").json["rows"][0]["share"] == 0.9565


def test_a_zone_moves_no_window(tell: Any, cli: CliRunner, home: Path) -> None:
    """`--tz` changes how times are shown and which day `--since` means, and no window."""
    rows = tell("--json").json["rows"]
    tokyo = cli("blocks", "--home", home, "--now", NOW, "--tz", "Asia/Tokyo")
    assert "2026-03-03 19:00" in tokyo.out
    assert "Times are Asia/Tokyo." in tokyo.out
    assert cli("blocks", "--home", home, "--now", NOW, "--tz", "Asia/Tokyo", "--json").json["rows"] == rows
    result = cli("blocks", "--home", home, "--now", NOW, "--tz", "Asia/Tokyo", "--until", "2026-03-03", "--json")
    assert [row["begins"][:13] for row in result.json["rows"]] == ["2026-03-03T10"]


@pytest.mark.parametrize(
    ("limit", "status", "left", "said_so"),
    [
        ("20000", "exceeds", 7547, "7,547 left; this rate exceeds it"),
        ("50,000", "warning", 37547, "37,547 left; this rate comes close to it"),
        ("1_000_000", "ok", 987547, "987,547 left; enough"),
        ("max", "exceeds", 567, "13,020 tokens: 567 left"),
    ],
)
def test_a_limit(tell: Any, limit: str, status: str, left: int, said_so: str) -> None:
    """A limit says what is left of it, and where the projection leads."""
    result = tell("--limit-tokens", limit, "--json").json
    assert result["limit"]["given"] is True
    last = result["rows"][-1]
    assert (last["limit_status"], last["limit_remaining"]) == (status, left)
    assert said_so in tell("--limit-tokens", limit).out


def test_ccusage_shape(tell: Any) -> None:
    """`--shape ccusage` is its JSON, with or without --json; the limit's status is there when a limit was given."""
    told = tell("--shape", "ccusage").json
    assert told == tell("--shape", "ccusage", "--json").json
    assert [one["id"] for one in told["blocks"]] == [
        "2026-03-03T10:00:00.000Z",
        "gap-2026-03-03T15:40:30.123Z",
        "2026-03-05T11:00:00.000Z",
    ]
    assert told["blocks"][-1]["costUSD"] == 0.014725
    assert "tokenLimitStatus" not in told["blocks"][-1]
    limited = tell("--shape", "ccusage", "--limit-tokens", "max", "--active").json["blocks"]
    assert [one["tokenLimitStatus"]["limit"] for one in limited] == [13020]


def test_prices_of_your_own(tell: Any, tmp_path: Path) -> None:
    """`--prices` puts a file's rates in the place of ours."""
    five = dict.fromkeys(("input", "output", "cache_write_5m", "cache_write_1h", "cache_read"), 1)
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"schema": 1, "models": {"claude-opus-4-5": {"periods": [five]}}}))
    assert tell("--prices", str(own), "--json").json["rows"][0]["amount"] == "0.01302"


def test_models_without_a_price_are_said(cli: CliRunner, tmp_path: Path) -> None:
    """Tokens are shown without an amount, and a line says how many charges have none."""
    write(tmp_path / f"projects/-p/{SESSION}.jsonl", said(1, "2026-03-03T10:20:30.123Z", "no\x1b[31m-such"))
    result = cli("blocks", "--home", tmp_path)
    assert result.code == 0
    assert "1 charge without a price: their amount is not included." in result.out
    assert not control_characters(result.out)
    assert cli("blocks", "--home", tmp_path, "--json").json["rows"][0]["amount"] is None


@pytest.mark.parametrize(
    ("given", "sentence"),
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
def test_errors_say_what_to_do(cli: CliRunner, home: Path, given: tuple[str, ...], sentence: str) -> None:
    """What makes no sense is an error with a sentence, and the code is 2."""
    result = cli("blocks", "--home", home, *given)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_nothing_to_show(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """No window in a time, or none at all, is the code 1 and a sentence."""
    result = cli("blocks", "--home", home, "--since", "2030-01-01", "--now", "2030-02-01")
    assert result.code == 1
    assert "None of 2 windows matches. The last one started at 2026-03-05 11:00 UTC." in result.err
    (tmp_path / "empty/projects").mkdir(parents=True)
    none = cli("blocks", "--home", tmp_path / "empty")
    assert (none.code, none.err) == (1, "threadline: No windows: there are no charges.\n")


@pytest.mark.sample(4)
@pytest.mark.parametrize("tz", ["local", "UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("command", ["blocks", "usage", "explain"])
def test_times_of_the_first_and_last_day_end_no_report(cli: CliRunner, tmp_path: Path, command: str, tz: str) -> None:
    """A line may say any time there is: it is in a row like all others, in every zone."""
    pen = Pen()
    rows = [
        {**row, "timestamp": time}
        for time in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z")
        for row in reply("ok", output=5)(pen)
    ]
    write(tmp_path / f"projects/-work-app/{pen.session}.jsonl", *rows)
    asked = (command, pen.session) if command == "explain" else (command,)
    result = cli(*asked, "--home", tmp_path, "--tz", tz)
    assert (result.code, result.err) == (0, "")
    assert "0001-01-0" in result.out
    days = [row["day"] for row in cli("usage", "--home", tmp_path, "--tz", tz, "--json").json["rows"]]
    assert [cli("explain", day, "--home", tmp_path, "--tz", tz).code for day in days] == [0, 0]


def test_the_demo(cli: CliRunner, demo_home: Path) -> None:
    """On the demo home, windows and gaps take turns or touch, and all charges are in them."""
    told = cli("blocks", "--home", demo_home, "--json").json
    assert told["total"]["charges"] == read_ledger(demo_home, jobs=1).total.charges
    assert told["timeless"] == 0
    assert not any(
        one["is_gap"] and other["is_gap"] for one, other in zip(told["rows"], told["rows"][1:], strict=False)
    )
