"""`threadline explain`: receipts on the command line."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters, run_in_subprocess
from tests.reports.test_receipts import OTHER, add_session, message
from tests.transcripts import SESSION, Pen, meta, prompt, reply, transcript, write

HOSTILE = "\x1b]0;owned\x07\u202ename\x9b31m"
CORPUS = Path(__file__).parents[3] / "shared/corpus/home"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session of three messages, one of them with a hostile model and id, and a fork of it."""
    home = tmp_path / "home"
    parts = [
        prompt("go"),
        reply("a", message=message(3, stop_reason=None)),
        reply("b", message=message(412)),
        reply("c", message=message(9, f"msg_{HOSTILE}") | {"model": f"m{HOSTILE}", "stop_reason": HOSTILE}),
        reply("d", message=message(40, "msg_01eeee12d94e55ac0d1e2204", hour=0)),
    ]
    add_session(home, *parts)
    add_session(home, *parts[:3], session=OTHER, forkedFrom={"sessionId": SESSION})
    return home


def test_sum_equals_usage(cli: CliRunner, home: Path) -> None:
    """`explain SESSION` and `usage --session` report the same amount and counts, and the parts add up to it."""
    receipt = cli("explain", SESSION, "--home", home, "--json").json
    total = cli("usage", "--session", SESSION, "--home", home, "--json").json["total"]
    assert {name: total[name] for name in ("charges", "input", "output", "cache_read", "unpriced")} == {
        name: receipt["total"][name] for name in ("charges", "input", "output", "cache_read", "unpriced")
    }
    amount = Decimal(receipt["total"]["amount"])
    assert amount == Decimal(total["amount"]) == sum(Decimal(rate["amount"]) for rate in receipt["rates"])
    rows = cli("explain", SESSION, "--home", home, "--csv").csv
    assert sum(Decimal(row["amount"]) for row in rows if row["amount"]) == amount
    assert receipt["prices"]["digest"] == cli("prices", "--json").json["digest"]


def test_rows_are_the_lines_of_messages(cli: CliRunner, home: Path) -> None:
    """`--jsonl` and `--csv` print one row per line of a message, with its place and counts."""
    rows = cli("explain", SESSION, "--home", home, "--jsonl").jsonl
    lines = [
        line
        for receipt_message in cli("explain", SESSION, "--home", home, "--json").json["messages"]
        for line in receipt_message["lines"]
    ]
    assert [(row["place"], row["output"], row["why"]) for row in rows] == [
        (line["place"], line["output"], line["why"]) for line in lines
    ]
    assert [row["output"] for row in rows if row["counted"]] == [412, 9, 40]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_page_fits_terminal_and_escapes_names(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Each message is shown with its lines and its multiplication, within the width. Hostile names are escaped."""
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


def test_limit_does_not_change_the_sum(cli: CliRunner, home: Path) -> None:
    """`--limit` shows fewer messages, says how many it omits, and keeps the sum. `--all` shows all of them."""
    limited, full = (cli("explain", SESSION, "--home", home, *option).out for option in (["--limit", "1"], ["--all"]))
    assert "… 2 more messages (2 lines)" in limited
    assert (
        limited.partition("─ sum ─")[2].partition("─ transcripts ─")[0]
        == full.partition("─ sum ─")[2].partition("─ transcripts ─")[0]
    )
    assert "more in" not in full
    assert cli("explain", SESSION, "--home", home, "--all", "--limit", "1").code == 2


def test_fork_names_the_owner_of_copies(cli: CliRunner, home: Path) -> None:
    """A session that contains only copies has a receipt that names the owner, and an empty sum."""
    result = cli("explain", OTHER, "--home", home)
    assert result.code == 0
    assert f"Owned by session {SESSION[:8]}, which began earlier. Not counted here." in result.out
    assert "nothing is counted here" in result.out
    assert cli("explain", OTHER, "--home", home, "--json").json["total"]["charges"] == 0


def test_explains_sessions_messages_days_and_places(cli: CliRunner, home: Path) -> None:
    """A session, a transcript, `last`, a message, a day and a place each have their kind of receipt."""
    path = home / f"projects/-work-app/{SESSION}.jsonl"
    kinds = {
        SESSION: "session",
        str(path): "session",
        "last": "session",
        "msg_01b7c1": "message",
        "2026-01-05": "day",
        f"{path}:3": "place",
        f"{SESSION}:3": "place",
        f"{SESSION}.jsonl:3": "place",
    }
    for name, kind in kinds.items():
        result = cli("explain", name, "--home", home, "--tz", "UTC", "--json")
        assert (result.code, result.json["kind"]) == (0, kind), name


def test_unknown_and_ambiguous_names_are_errors(cli: CliRunner, home: Path) -> None:
    """The message says what to write instead. A day without charges exits with 1."""
    errors = {
        "msg_01zz": (2, "No message has an id that starts with"),
        "msg_": (2, "3 messages have an id that starts with"),
        "abcdef": (2, "is not a session, message, day or place"),
        SESSION[:8]: (2, "2 transcripts have an id that starts with"),
        "2026-02-30": (2, "There is no day"),
        f"{SESSION}:1": (2, "has no usage. The nearest line with usage is 2"),
        str(home / "nothing.jsonl"): (2, "nothing.jsonl"),
        "2020-01-01": (1, "No usage"),
    }
    for name, (code, sentence) in errors.items():
        result = cli("explain", name, "--home", home)
        assert (result.code, result.out, sentence in result.err) == (code, "", True), (name, result.err)
    assert cli("explain").code == 2 or "No Claude home" in cli("explain", "today").err


def test_explains_transcript_outside_a_home(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """A transcript outside every home is explained by itself."""
    path = tmp_path / "alone.jsonl"
    path.write_bytes((home / f"projects/-work-app/{SESSION}.jsonl").read_bytes())
    receipt = cli("explain", path, "--home", home, "--json").json
    assert (receipt["name"], receipt["total"]["charges"]) == ("alone", 3)
    assert {line["place"].rpartition(":")[0] for entry in receipt["messages"] for line in entry["lines"]} == {str(path)}


def test_compares_sum_with_claude_codes_cost_state(cli: CliRunner, tmp_path: Path) -> None:
    """A session's `cost-state` is compared with the sum, with the reasons for a difference, and never added to it."""
    home = tmp_path / "home"
    state = meta("cost-state", totalCostUSD=0.045905, modelUsage={"claude-opus-4-5": {"costUSD": 0.045905}})
    add_session(home, prompt("go"), reply("b", message=message(412)), state)
    receipt = cli("explain", SESSION, "--home", home, "--json").json
    assert (receipt["total"]["amount"], receipt["reported"]["reported"]) == (Decimal("0.035905"), Decimal("0.045905"))
    assert (receipt["reported"]["computed"], receipt["reported"]["difference"]) == (
        Decimal("0.035905"),
        Decimal("0.01"),
    )
    assert receipt["reported"]["why"]
    page = " ".join(cli("explain", SESSION, "--home", home).out.split())
    assert "reported by Claude Code" in page
    assert "The reported amount is $0.01 more" in page


def test_explains_a_single_agent(cli: CliRunner, tmp_path: Path) -> None:
    """The prefix of an agent id selects the receipt of that agent. The session's receipt includes it, too."""
    main = add_session(tmp_path, prompt("go"), reply("b", message=message(412)))
    pen = Pen(SESSION, agentId="a1b2c3d4", isSidechain=True)
    rows = transcript(prompt("look"), reply("a", message=message(40, "msg_01eeee12d94e55ac0d1e2204")), pen=pen)
    write(main.with_suffix("") / "subagents/agent-a1b2c3d4.jsonl", *rows)
    agent = cli("explain", "agent-a1b2", "--home", tmp_path, "--json").json
    session = cli("explain", SESSION, "--home", tmp_path, "--json").json
    assert (agent["kind"], agent["total"]["output"], session["total"]["output"]) == ("agent", 40, 452)


def test_prices_option_changes_amount_and_digest(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`--prices` prices a model, and the digest changes."""
    price = {"input": 1, "output": 2, "cache_write_5m": 3, "cache_write_1h": 4, "cache_read": 5}
    document = json.loads(cli("prices", "--json").raw)
    prices = tmp_path / "prices.json"
    models = {"claude-opus-4-5": {"periods": [price]}}
    prices.write_text(json.dumps({"schema": 1, "unit": "USD per 1,000,000 tokens", "models": models}))
    receipt = cli("explain", "msg_01b7c1", "--home", home, "--prices", prices, "--json").json
    assert receipt["prices"]["digest"] != document["digest"]
    assert Decimal(receipt["total"]["amount"]) == Decimal(3 + 412 * 2 + 2400 * 4 + 3180 * 5) / 10**6


@pytest.mark.real
@pytest.mark.skipif(not CORPUS.is_dir(), reason="there is no corpus here")
@pytest.mark.parametrize("session", ["94fab1a1", "1e0816ef", "fe3ed705"])
def test_real_sessions_equal_a_manual_sum(session: str) -> None:
    """For three real sessions, the amount equals a dozen lines of Python over the counted lines."""
    receipt = run_in_subprocess("explain", session, "--home", CORPUS, "--json").json
    by_rate = {rate["rate"]: rate["products"] for rate in receipt["rates"]}
    amount = Decimal(0)
    for charge in receipt["messages"]:
        if not charge["counted_here"]:
            continue
        (place,) = [line["place"] for line in charge["lines"] if line["counted"]]
        path, _, number = place.rpartition(":")
        row = json.loads(Path(path).read_bytes().split(b"\n")[int(number) - 1])
        usage = (row["message"] if "message" in row else row["data"]["message"]["message"])["usage"]
        prices = {product["kind"]: Decimal(product["price"]) for product in by_rate[charge["rate"]]}
        split = usage.get("cache_creation") or {"ephemeral_5m_input_tokens": usage["cache_creation_input_tokens"]}
        amount += usage["input_tokens"] * prices.get("input", 0)
        amount += usage["output_tokens"] * prices.get("output", 0)
        amount += split.get("ephemeral_5m_input_tokens", 0) * prices.get("cache write 5m", 0)
        amount += split.get("ephemeral_1h_input_tokens", 0) * prices.get("cache write 1h", 0)
        amount += usage["cache_read_input_tokens"] * prices.get("cache read", 0)
    searches = receipt["total"]["web_searches"]
    assert Decimal(receipt["total"]["amount"]) == amount / 10**6 + searches * Decimal("0.01")
