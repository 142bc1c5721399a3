"""`threadline explain`: receipts, asked for on the command line."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from tests.account.test_receipts import OTHER, home_with, message
from tests.cli.runner import CliRunner, control_characters, run_in_subprocess
from tests.transcripts import SESSION, Pen, meta, prompt, reply, transcript, write

HOSTILE = "\x1b]0;owned\x07\u202ename\x9b31m"
CORPUS = Path(__file__).parents[3] / "shared/corpus/home"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session of three messages, one of them of a hostile model with a hostile id, and a copy of it."""
    home = tmp_path / "home"
    parts = [
        prompt("go"),
        reply("a", message=message(3, stop_reason=None)),
        reply("b", message=message(412)),
        reply("c", message=message(9, f"msg_{HOSTILE}") | {"model": f"m{HOSTILE}", "stop_reason": HOSTILE}),
        reply("d", message=message(40, "msg_01eeee12d94e55ac0d1e2204", hour=0)),
    ]
    home_with(home, *parts)
    home_with(home, *parts[:3], session=OTHER, forkedFrom={"sessionId": SESSION})
    return home


def test_the_sum_is_that_of_usage(cli: CliRunner, home: Path) -> None:
    """`explain SESSION` and `usage --session` give one amount and the same counts, and so do the parts of it."""
    told = cli("explain", SESSION, "--home", home, "--json").json
    total = cli("usage", "--session", SESSION, "--home", home, "--json").json["total"]
    assert {name: total[name] for name in ("charges", "input", "output", "cache_read", "unpriced")} == {
        name: told["total"][name] for name in ("charges", "input", "output", "cache_read", "unpriced")
    }
    amount = Decimal(told["total"]["amount"])
    assert amount == Decimal(total["amount"]) == sum(Decimal(one["amount"]) for one in told["rates"])
    rows = cli("explain", SESSION, "--home", home, "--csv").csv
    assert sum(Decimal(row["amount"]) for row in rows if row["amount"]) == amount
    assert told["prices"]["digest"] == cli("prices", "--json").json["digest"]


def test_rows_are_the_lines(cli: CliRunner, home: Path) -> None:
    """`--jsonl` and `--csv` have a row for each line that tells of a message, with its place and its own counts."""
    rows = cli("explain", SESSION, "--home", home, "--jsonl").jsonl
    lines = [
        line for one in cli("explain", SESSION, "--home", home, "--json").json["messages"] for line in one["lines"]
    ]
    assert [(row["place"], row["output"], row["why"]) for row in rows] == [
        (line["place"], line["output"], line["why"]) for line in lines
    ]
    assert [row["output"] for row in rows if row["counted"]] == [412, 9, 40]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_page_fits_and_cannot_steer(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Message by message, with its lines and its multiplication, within the page; no id or model steers."""
    monkeypatch.setattr("threadline.cli.output.page_width", lambda: width)
    result = cli("explain", SESSION, "--home", home, "--tz", "UTC")
    assert (result.code, result.err) == (0, "")
    assert not control_characters(result.out)
    assert max(map(len, result.out.splitlines())) <= width
    assert "412 output × 25 = 0.0103" in result.out  # noqa: RUF001 - the sign for times
    flat = " ".join(result.out.split())
    assert "output 3 is a placeholder, the counted line has 412" in flat
    assert "known to be missing" in flat
    assert "1 charge has no price" in flat


def test_few_messages_and_the_whole_sum(cli: CliRunner, home: Path) -> None:
    """`--limit` shows fewer messages, says how many it leaves out, and leaves the sum as it is; `--all` shows them."""
    few, every = (cli("explain", SESSION, "--home", home, *option).out for option in (["--limit", "1"], ["--all"]))
    assert "… and 2 messages more in 2 lines" in few
    assert (
        few.partition("─ sum ─")[2].partition("─ transcripts ─")[0]
        == every.partition("─ sum ─")[2].partition("─ transcripts ─")[0]
    )
    assert "more in" not in every
    assert cli("explain", SESSION, "--home", home, "--all", "--limit", "1").code == 2


def test_a_fork_shows_what_it_does_not_own(cli: CliRunner, home: Path) -> None:
    """A session that holds only copies has a receipt that names the owner, and a sum of nothing."""
    result = cli("explain", OTHER, "--home", home)
    assert result.code == 0
    assert f"Owned by session {SESSION[:8]}, which began before: not counted here." in result.out
    assert "nothing is counted here" in result.out
    assert cli("explain", OTHER, "--home", home, "--json").json["total"]["charges"] == 0


def test_what_can_be_asked_for(cli: CliRunner, home: Path) -> None:
    """A session, a transcript, `last`, a message, a day and a place each have a receipt of their own kind."""
    path = home / f"projects/-work-app/{SESSION}.jsonl"
    wanted = {
        SESSION: "session",
        str(path): "session",
        "last": "session",
        "msg_01b7c1": "message",
        "2026-01-05": "day",
        f"{path}:3": "place",
        f"{SESSION}:3": "place",
        f"{SESSION}.jsonl:3": "place",
    }
    for what, kind in wanted.items():
        result = cli("explain", what, "--home", home, "--tz", "UTC", "--json")
        assert (result.code, result.json["kind"]) == (0, kind), what


def test_what_is_not_there_is_a_sentence(cli: CliRunner, home: Path) -> None:
    """What is nothing or several is told as such, with what to write instead; a day without charges is exit code 1."""
    told = {
        "msg_01zz": (2, "No message has an id that starts with"),
        "msg_": (2, "3 messages have an id that starts with"),
        "abcdef": (2, "is not a session, message, day or place"),
        SESSION[:8]: (2, "2 transcripts have an id that starts with"),
        "2026-02-30": (2, "There is no day"),
        f"{SESSION}:1": (2, "has no usage. The nearest line with usage is 2"),
        str(home / "nothing.jsonl"): (2, "nothing.jsonl"),
        "2020-01-01": (1, "No usage"),
    }
    for what, (code, sentence) in told.items():
        result = cli("explain", what, "--home", home)
        assert (result.code, result.out, sentence in result.err) == (code, "", True), (what, result.err)
    assert cli("explain").code == 2 or "No Claude home" in cli("explain", "today").err


def test_a_transcript_outside_of_homes(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """A transcript that lies in no home is explained by itself."""
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes((home / f"projects/-work-app/{SESSION}.jsonl").read_bytes())
    told = cli("explain", alone, "--home", home, "--json").json
    assert (told["name"], told["total"]["charges"]) == (SESSION, 3)
    assert {line["place"].rpartition(":")[0] for one in told["messages"] for line in one["lines"]} == {str(alone)}


def test_what_claude_code_reports_stands_beside_the_sum(cli: CliRunner, tmp_path: Path) -> None:
    """A session's `cost-state` is compared with the sum, with every reason for a difference; never added to it."""
    home = tmp_path / "home"
    state = meta("cost-state", totalCostUSD=0.045905, modelUsage={"claude-opus-4-5": {"costUSD": 0.045905}})
    home_with(home, prompt("go"), reply("b", message=message(412)), state)
    told = cli("explain", SESSION, "--home", home, "--json").json
    assert (told["total"]["amount"], told["reported"]["reported"]) == ("0.035905", "0.045905")
    assert (told["reported"]["computed"], told["reported"]["difference"]) == ("0.035905", "0.01")
    assert told["reported"]["why"]
    page = " ".join(cli("explain", SESSION, "--home", home).out.split())
    assert "reported by Claude Code" in page
    assert "0.01 USD more is reported" in page


def test_an_agent_alone(cli: CliRunner, tmp_path: Path) -> None:
    """The start of an agent's id gives the receipt of that agent; its session's has it, too."""
    main = home_with(tmp_path, prompt("go"), reply("b", message=message(412)))
    pen = Pen(SESSION, agentId="a1b2c3d4", isSidechain=True)
    rows = transcript(prompt("look"), reply("a", message=message(40, "msg_01eeee12d94e55ac0d1e2204")), pen=pen)
    write(main.with_suffix("") / "subagents/agent-a1b2c3d4.jsonl", *rows)
    alone = cli("explain", "agent-a1b2", "--home", tmp_path, "--json").json
    whole = cli("explain", SESSION, "--home", tmp_path, "--json").json
    assert (alone["kind"], alone["total"]["output"], whole["total"]["output"]) == ("agent", 40, 452)


def test_other_prices(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`--prices` gives a price to what has none, and the digest is another."""
    price = {"input": 1, "output": 2, "cache_write_5m": 3, "cache_write_1h": 4, "cache_read": 5}
    document = json.loads(cli("prices", "--json").raw)
    prices = tmp_path / "prices.json"
    models = {"claude-opus-4-5": {"periods": [price]}}
    prices.write_text(json.dumps({"schema": 1, "unit": "USD per 1,000,000 tokens", "models": models}))
    told = cli("explain", "msg_01b7c1", "--home", home, "--prices", prices, "--json").json
    assert told["prices"]["digest"] != document["digest"]
    assert Decimal(told["total"]["amount"]) == Decimal(3 + 412 * 2 + 2400 * 4 + 3180 * 5) / 10**6


@pytest.mark.real
@pytest.mark.skipif(not CORPUS.is_dir(), reason="there is no corpus here")
@pytest.mark.parametrize("session", ["94fab1a1", "1e0816ef", "fe3ed705"])
def test_real_sessions_sum_up_by_hand(session: str) -> None:
    """Of three real sessions: the receipt's amount is that of a dozen lines of Python over the counted lines alone."""
    told = run_in_subprocess("explain", session, "--home", CORPUS, "--json").json
    by_rate = {one["rate"]: one["products"] for one in told["rates"]}
    amount = Decimal(0)
    for one in told["messages"]:
        if not one["counted_here"]:
            continue
        (place,) = [line["place"] for line in one["lines"] if line["counted"]]
        path, _, number = place.rpartition(":")
        row = json.loads(Path(path).read_bytes().split(b"\n")[int(number) - 1])
        usage = (row["message"] if "message" in row else row["data"]["message"]["message"])["usage"]
        prices = {product["kind"]: Decimal(product["price"]) for product in by_rate[one["rate"]]}
        split = usage.get("cache_creation") or {"ephemeral_5m_input_tokens": usage["cache_creation_input_tokens"]}
        amount += usage["input_tokens"] * prices.get("input", 0)
        amount += usage["output_tokens"] * prices.get("output", 0)
        amount += split.get("ephemeral_5m_input_tokens", 0) * prices.get("cache write 5m", 0)
        amount += split.get("ephemeral_1h_input_tokens", 0) * prices.get("cache write 1h", 0)
        amount += usage["cache_read_input_tokens"] * prices.get("cache read", 0)
    searches = told["total"]["web_searches"]
    assert Decimal(told["total"]["amount"]) == amount / 10**6 + searches * Decimal("0.01")
