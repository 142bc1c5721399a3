"""`threadline usage`: totals by every key, in every format, in the reader's time zone."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import COMMAND, CliRunner, control_characters, run_in_subprocess, subprocess_environment
from tests.cli.test_cli_hostile import TEXTS, hostile_home
from tests.transcripts import MODEL, Pen, Row, call, prompt, reply, transcript, write

from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS
from threadline.find import look
from threadline.render import display_width
from threadline.summary import read_session_titles

KEYS = (*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS)
NESTS = (
    "project,model",
    "day,tool",
    "month,week,day,hour",
    "session,thread,model",
    "tool,skill",
    "home,part,agent-type",
)
FIGURES = (
    "charges",
    "input",
    "output",
    "cache_write",
    "cache_write_1h",
    "cache_read",
    "web_searches",
    "amount",
    "unpriced",
    "lower_bound",
)
OPUS = "claude-opus-4-5-20251101"


def session_id(number: int) -> str:
    """A session's id."""
    return f"5e55{number:04d}-0000-4000-8000-000000000001"


def write_session(home: Path, *parts: Any, number: int = 1, folder: str = "-work-app", **defaults: Any) -> Path:
    """Adds a session to the home, with a prompt and these parts. Returns the home."""
    pen = Pen(session_id(number), **defaults)
    rows = transcript(prompt(f"task {number}"), *parts, pen=pen)
    write(home / "projects" / folder / f"{session_id(number)}.jsonl", *rows)
    return home


def replies_at(*times: str, **fields: Any) -> list[Any]:
    """Replies at these times, ten tokens each."""
    return [reply("done", timestamp=time, **fields) for time in times]


def add_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of the rows, added up."""
    amounts = [Decimal(row["amount"]) for row in rows if row["amount"] is not None]
    return {
        **{name: sum(row[name] for row in rows) for name in FIGURES if name != "amount"},
        "amount": sum(amounts) if amounts else None,
    }


def with_decimal_amount(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures with a Decimal amount."""
    return {**figures, "amount": None if figures["amount"] is None else Decimal(figures["amount"])}


def table_lines(output: str) -> list[str]:
    """The lines of a table, from its heading to its total."""
    lines = output.splitlines()
    return lines[2 : next(number for number, line in enumerate(lines) if line.startswith("  total")) + 1]


@pytest.mark.sample(4)
@pytest.mark.parametrize("by", [*KEYS, *NESTS])
def test_every_key_sums_to_the_same_total(cli: CliRunner, demo_home: Path, by: str) -> None:
    """By any key and nesting, the rows add up exactly to the total, and no row occurs twice."""
    overall = cli("usage", "--home", demo_home, "--json").json["total"]
    report = cli("usage", "--home", demo_home, "--by", by, "--json").json
    names = ["session", "turn"] if by == "turn" else by.split(",")  # a turn is a turn of its session
    assert report["by"] == names
    assert report["total"] == overall
    assert with_decimal_amount(overall) == add_up(report["rows"])
    keys = [*names, "prompt"] if "turn" in names else names
    assert all(list(row) == [*keys, *FIGURES] for row in report["rows"])
    paths = [tuple(row[name] for name in names) for row in report["rows"]]
    assert len(set(paths)) == len(paths) > 0


def test_amount_equals_manual_calculation(cli: CliRunner, tmp_path: Path) -> None:
    """Two models, cache writes of both lifetimes, and reads: each times its price per million."""
    split = {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 800}
    usage = {"input_tokens": 7, "output_tokens": 11, "cache_creation_input_tokens": 1000, "cache_creation": split}
    home = write_session(
        tmp_path,
        reply("a", input=1000, output=50, read=20_000),
        reply("b", message={"model": OPUS, "usage": usage}),
    )
    report = cli("usage", "--home", home, "--by", "model", "--json").json
    by_model = {row["model"]: row for row in report["rows"]}
    sonnet = (1000 * Decimal(3) + 50 * Decimal(15) + 20_000 * Decimal("0.3")) / 1_000_000
    opus = (7 * Decimal(5) + 11 * Decimal(25) + 200 * Decimal("6.25") + 800 * Decimal(10)) / 1_000_000
    assert Decimal(by_model[MODEL]["amount"]) == sonnet
    assert Decimal(by_model[OPUS]["amount"]) == opus
    assert Decimal(report["total"]["amount"]) == sonnet + opus
    assert (by_model[OPUS]["cache_write"], by_model[OPUS]["cache_write_1h"]) == (1000, 800)
    assert "E" not in str(report["total"]["amount"])


def test_json_contains_the_query(cli: CliRunner, demo_home: Path) -> None:
    """Keys, zone, time, prices with their digest, problems and notes are next to the rows."""
    arguments = ("usage", "--home", demo_home, "--by", "week", "--tz", "Europe/Berlin", "--since", "2020-07-01")
    report = cli(*arguments, "--json").json
    assert list(report)[:2] == ["total", "rows"]
    assert (report["by"], report["zone"]) == (["week"], "Europe/Berlin")
    assert (report["since"], report["until"]) == ("2020-06-30T22:00:00Z", None)
    assert re.fullmatch(r"[0-9a-f]{64}", report["prices"]["digest"])
    assert [price_file["name"] for price_file in report["prices"]["files"]] == ["threadline"]
    assert (report["problems"], report["left_out"]) == ([], 0)
    assert report["prices"]["digest"] == cli("prices", "--json").json["digest"]
    assert report["prices"]["digest"][:12] in cli(*arguments).out


@pytest.mark.parametrize("by", ["day", "project,model", "agent-type"])
def test_formats_have_the_same_rows(cli: CliRunner, demo_home: Path, by: str) -> None:
    """`--jsonl` and `--csv` have the leaf rows of the JSON, with the amount as an exact string."""
    arguments = ("usage", "--home", demo_home, "--by", by)
    rows = cli(*arguments, "--json").json["rows"]
    assert cli(*arguments, "--jsonl").jsonl == rows
    cells = cli(*arguments, "--csv").csv
    assert cells == [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


def test_ways_to_give_several_keys(cli: CliRunner, demo_home: Path) -> None:
    """`--by project --by model`, `--by project,model` and `--by project --breakdown` are the same report."""
    arguments = ("usage", "--home", demo_home, "--json")
    report = cli(*arguments, "--by", "project", "--by", "model").json
    assert (
        report
        == cli(*arguments, "--by", "Project, model").json
        == cli(*arguments, "--by", "project", "--breakdown").json
    )
    assert cli(*arguments, "--breakdown", "--apart").json["by"] == ["day", "thread", "model"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("zone", "times", "days"),
    [
        # Berlin: the day of 23 hours is 23:00 to 22:00 in UTC, the day of 25 hours 22:00 to 23:00.
        (
            "Europe/Berlin",
            ["2026-03-28T22:59:59.999Z", "2026-03-28T23:00:00.000Z", "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"],
            ["2026-03-28", "2026-03-29", "2026-03-29", "2026-03-30"],
        ),
        (
            "Europe/Berlin",
            ["2026-10-24T21:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"],
            ["2026-10-24", "2026-10-25", "2026-10-25", "2026-10-26"],
        ),
        (
            "Asia/Kolkata",
            ["2026-06-01T18:29:59Z", "2026-06-01T18:30:00Z", "2026-06-02T18:29:59Z"],
            ["2026-06-01", "2026-06-02", "2026-06-02"],
        ),
        # Lord Howe sets its clocks by half an hour.
        (
            "Australia/Lord_Howe",
            ["2026-04-04T12:59:59Z", "2026-04-04T13:00:00Z", "2026-04-05T13:29:59Z", "2026-04-05T13:30:00Z"],
            ["2026-04-04", "2026-04-05", "2026-04-05", "2026-04-06"],
        ),
    ],
    ids=["23 hours", "25 hours", "half hours", "half an hour of daylight saving"],
)
def test_days_split_at_midnight_in_the_zone(
    cli: CliRunner, tmp_path: Path, zone: str, times: list[str], days: list[str]
) -> None:
    """A charge belongs to the day in its zone, and `--since` and `--until` select exactly that day."""
    home = write_session(tmp_path, *replies_at(*times))
    arguments = ("usage", "--home", home, "--tz", zone)
    rows = cli(*arguments, "--jsonl").jsonl
    assert [(row["day"], row["charges"]) for row in rows] == [(day, days.count(day)) for day in dict.fromkeys(days)]
    for row in rows:
        report = cli(*arguments, "--since", row["day"], "--until", row["day"], "--json").json
        assert report["rows"] == [row]


def test_hours_depend_on_the_zone(cli: CliRunner, tmp_path: Path) -> None:
    """The repeated hour is one row. Half hours belong to the hour that the clock shows."""
    home = write_session(tmp_path, *replies_at("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"))
    hours = {
        zone: [
            (row["hour"], row["charges"])
            for row in cli("usage", "--home", home, "--by", "hour", "--tz", zone, "--jsonl").jsonl
        ]
        for zone in ("Europe/Berlin", "Asia/Kolkata", "UTC")
    }
    assert hours["Europe/Berlin"] == [("02:00", 2), ("03:00", 1)]
    assert hours["Asia/Kolkata"] == [("06:00", 1), ("07:00", 1), ("08:00", 1)]
    assert hours["UTC"] == [("00:00", 1), ("01:00", 1), ("02:00", 1)]


def test_weeks_and_months_depend_on_the_zone(cli: CliRunner, tmp_path: Path) -> None:
    """Sunday night in UTC is Monday in Tokyo: another week, and another month."""
    home = write_session(tmp_path, *replies_at("2026-05-31T20:00:00Z"))
    for zone, week, month in (("UTC", "2026-05-25", "2026-05"), ("Asia/Tokyo", "2026-06-01", "2026-06")):
        (row,) = cli("usage", "--home", home, "--by", "week,month", "--tz", zone, "--jsonl").jsonl
        assert (row["week"], row["month"]) == (week, month)


@pytest.mark.slow
def test_default_zone_is_the_local_one(tmp_path: Path) -> None:
    """Without `--tz`, days are local. `--tz UTC` is UTC."""
    home = write_session(tmp_path, *replies_at("2026-05-31T20:00:00Z"))
    report = run_in_subprocess("usage", "--home", home, "--json", TZ="Asia/Tokyo").json
    assert (report["zone"], report["rows"][0]["day"]) == ("Asia/Tokyo", "2026-06-01")
    assert run_in_subprocess("usage", "--home", home, "--json", "--tz", "utc", TZ="Asia/Tokyo").json["zone"] == "UTC"


def test_invalid_options_are_errors_with_suggestions(cli: CliRunner, demo_home: Path) -> None:
    """Exit code 2, nothing on standard output, and a suggestion."""
    errors = {
        ("--by", "dya"): "Did you mean --by day?",
        ("--by", "daily"): "Did you mean --by day?",
        ("--by", "projects"): "Did you mean --by project?",
        ("--by", "frobnicate"): "Keys: day, week, month",
        ("--tz", "Berlin"): "Did you mean Europe/Berlin?",
        ("--since", "soon"): "is not a time. Write",
        ("--prices", "nowhere.json"): "not found",
        ("--session", ""): "session ids start with ''",
        ("--shape", "ccusage", "--by", "model"): "requires a single --by key: day, week, month, session",
        ("--shape", "ccusage", "--csv"): "cannot be combined with --jsonl, --csv",
    }
    for words, sentence in errors.items():
        result = cli("usage", "--home", demo_home, *words)
        assert (result.code, result.out) == (2, ""), words
        assert sentence in result.err


def test_filters_by_project_model_session_and_time(cli: CliRunner, tmp_path: Path) -> None:
    """A session id may be a prefix, or `last`."""
    write_session(tmp_path, *replies_at("2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"), cwd="/work/app")
    write_session(
        tmp_path,
        *replies_at("2026-01-03T10:00:00Z", message={"model": OPUS}),
        number=2,
        folder="-work-site",
        cwd="/work/site",
    )

    def charges(*words: str) -> int:
        count: int = cli("usage", "--home", tmp_path, "--tz", "UTC", "--json", *words).json["total"]["charges"]
        return count

    assert charges() == 3
    assert (charges("--project", "SITE"), charges("--project", "/work/app")) == (1, 2)
    assert (charges("--model", "opus"), charges("--model", "sonnet-4-5")) == (1, 2)
    assert (charges("--session", "5E550001"), charges("--session", "last")) == (2, 1)
    assert (charges("--since", "2026-01-02"), charges("--until", "2026-01-02")) == (2, 2)
    assert charges("--since", "2026-01-02", "--until", "2026-01-02", "--project", "app") == 1


def test_explains_why_nothing_matches(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 1, and the message lists the projects, models, sessions, or the period with charges."""
    home = write_session(tmp_path / "home", *replies_at("2026-01-01T10:00:00Z"))
    errors = {
        ("--project", "nowhere"): "--project 'nowhere'. Projects: /work/app.",
        ("--model", "gpt"): f"Models: {MODEL}.",
        ("--session", "ffff"): "Sessions: 5e550001.",
        ("--since", "2026-01-02"): "--since. Charges run from 2026-01-01 to 2026-01-01.",
    }
    for words, sentence in errors.items():
        result = cli("usage", "--home", home, *words)
        assert (result.code, result.out) == (1, ""), words
        assert result.err.startswith("threadline: The only charge does not match ")
        assert sentence in result.err
    (tmp_path / "empty/projects").mkdir(parents=True)
    assert "No usage: no model replied in" in cli("usage", "--home", tmp_path / "empty").err
    no_home = cli("usage")
    assert (no_home.code, no_home.out) == (1, "")
    assert "No Claude home found." in no_home.err


def test_unknown_model_has_tokens_and_no_amount(cli: CliRunner, tmp_path: Path) -> None:
    """Its amount is null or an empty cell, a note names it, and a price file gives it a price."""
    home = write_session(tmp_path / "home", reply("a", message={"model": "glm-9"}, input=10, output=5))
    report = cli("usage", "--home", home, "--by", "model", "--json").json
    assert (report["total"]["amount"], report["total"]["unpriced"], report["rows"][0]["output"]) == (None, 1, 5)
    assert "1 charge has no price and is not included in amounts (glm-9)." in report["notes"]
    output = cli("usage", "--home", home, "--by", "model").out
    assert "$" not in output
    assert "1 charge has no price" in output
    assert cli("usage", "--home", home, "--csv").csv[0]["amount"] == ""
    cost = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "litellm_provider": "x", "mode": "chat"}
    prices = tmp_path / "litellm.json"
    prices.write_text(json.dumps({"glm-9": cost}))
    priced = cli("usage", "--home", home, "--prices", prices, "--json").json
    assert (priced["total"]["amount"], priced["total"]["unpriced"]) == (Decimal("0.00002"), 0)
    assert [price_file["name"] for price_file in priced["prices"]["files"]] == ["threadline", str(prices)]
    assert priced["prices"]["digest"] != report["prices"]["digest"]


def test_reports_output_that_is_a_lower_bound(cli: CliRunner, tmp_path: Path) -> None:
    """Old versions did not write the final count. A note says for how many charges."""
    home = write_session(tmp_path, reply("a", message={"stop_reason": None}), reply("b"), version="2.1.20")
    report = cli("usage", "--home", home, "--json").json
    assert report["total"]["lower_bound"] == 1
    assert "Output tokens are a minimum for 1 charge:" in cli("usage", "--home", home).out


@pytest.mark.parametrize(("by", "sentence"), [("tool", "shared equally by the calls"), ("skill", "names as its cause")])
def test_by_tool_and_by_skill_explain_their_method(cli: CliRunner, demo_home: Path, by: str, sentence: str) -> None:
    """One sentence explains how the shares are computed, in the table and in the notes."""
    assert sentence in " ".join(cli("usage", "--home", demo_home, "--by", by).out.split())
    assert sentence in " ".join(cli("usage", "--home", demo_home, "--by", by, "--json").json["notes"])
    assert sentence not in cli("usage", "--home", demo_home, "--by", "model").out


def test_abandoned_branch_is_separate(cli: CliRunner, tmp_path: Path) -> None:
    """Charges before a rewind belong to an abandoned branch, those of agents to the agents, and all to the session."""
    pen = Pen(session_id(1))
    rows: list[Row | bytes] = transcript(prompt("begin"), reply("yes", output=1), pen=pen)
    fork = pen.parent
    rows += transcript(prompt("this way"), reply("left", output=20), pen=pen)
    pen.parent = fork
    rows += transcript(prompt("no, that way"), reply("kept", output=300), pen=pen)
    folder = tmp_path / "projects/-work-app"
    write(folder / f"{session_id(1)}.jsonl", *rows)
    for agent, output in (("a1b2c3d4e5f60718", 4000), ("aside_question-0011223344556677", 50_000)):
        agent_pen = Pen(session_id(1), agentId=agent, isSidechain=True)
        agent_pen._count = output
        write(
            folder / session_id(1) / f"subagents/agent-{agent}.jsonl",
            *transcript(prompt("help"), reply("ok", output=output), pen=agent_pen),
        )
    arguments = ("usage", "--home", tmp_path)
    by_thread = {row["thread"]: row["output"] for row in cli(*arguments, "--by", "thread", "--jsonl").jsonl}
    assert by_thread == {"main thread": 301, "left branch": 20, "agent": 4000, "side agent": 50_000}
    report = cli(*arguments, "--by", "session", "--apart", "--json").json
    assert {(row["session"], row["thread"]): row["output"] for row in report["rows"]} == {
        (session_id(1), name): output for name, output in by_thread.items()
    }
    (session_row,) = cli(*arguments, "--by", "session", "--jsonl").jsonl
    assert session_row["output"] == sum(by_thread.values())


def test_reply_that_another_session_continues_is_on_the_main_thread(cli: CliRunner, tmp_path: Path) -> None:
    """A charge belongs to an abandoned branch only if every copy of it does."""
    pen = Pen(session_id(1))
    rows: list[Row | bytes] = transcript(prompt("begin"), reply("yes", output=1), pen=pen)
    fork = pen.parent
    rows += transcript(prompt("this way"), reply("left", output=20), pen=pen)
    write(tmp_path / f"projects/-work-app/{session_id(2)}.jsonl", *rows)
    pen.parent = fork
    rows += transcript(prompt("no, that way"), reply("kept", output=300), pen=pen)
    write(tmp_path / f"projects/-work-app/{session_id(1)}.jsonl", *rows)
    rows_by_thread = cli("usage", "--home", tmp_path, "--by", "thread", "--jsonl").jsonl
    assert {row["thread"]: row["output"] for row in rows_by_thread} == {"main thread": 321}


def test_reads_agent_type_from_side_file(cli: CliRunner, tmp_path: Path) -> None:
    """If the rows do not contain the agent's type, the file next to the transcript does."""
    write_session(tmp_path, reply("main"))
    folder = tmp_path / "projects/-work-app" / session_id(1) / "subagents"
    for agent in ("a1b2c3d4e5f60718", "affffffffffffffff"):
        agent_pen = Pen(session_id(1), agentId=agent, isSidechain=True)
        agent_pen._count = ord(agent[1])
        write(folder / f"agent-{agent}.jsonl", *transcript(prompt("help"), reply("ok"), pen=agent_pen))
    write(folder / "agent-a1b2c3d4e5f60718.meta.json", b'{"agentType":"Explore"}')
    rows = cli("usage", "--home", tmp_path, "--by", "agent-type", "--jsonl").jsonl
    assert {row["agent-type"]: row["charges"] for row in rows} == {"main": 1, "Explore": 1, "(none)": 1}


def test_limit_does_not_change_the_total(cli: CliRunner, tmp_path: Path) -> None:
    """The newest times or the largest groups are shown. The rest is one row, and in the total."""
    for number in range(1, 6):
        write_session(tmp_path, *replies_at(f"2026-01-0{number}T10:00:00Z", output=100 * number), number=number)
    arguments = ("usage", "--home", tmp_path, "--tz", "UTC", "--limit", "2")
    days = cli(*arguments, "--json").json
    assert [row["day"] for row in days["rows"]] == ["2026-01-04", "2026-01-05"]
    assert (days["left_out"], days["total"]["output"]) == (3, 1500)
    sessions = cli(*arguments, "--by", "session", "--breakdown", "--json").json
    assert [row["session"] for row in sessions["rows"]] == [session_id(5), session_id(4)]
    output = cli(*arguments, "--by", "session").out
    rest = next(line for line in output.splitlines() if "3 more: use --limit N" in line)
    assert "600" in rest.split()
    assert "1.5k" in table_lines(output)[-1]


def test_sorts_by_time_or_amount(cli: CliRunner, tmp_path: Path) -> None:
    """Either order works for any key. Parts of a nest stay together."""
    for number, output in ((1, 50), (2, 900), (3, 400)):
        write_session(tmp_path, *replies_at(f"2026-01-0{number}T10:00:00Z", output=output), number=number)
    write_session(
        tmp_path,
        *replies_at("2026-01-04T10:00:00Z", "2026-01-01T11:00:00Z", message={"model": OPUS}, output=10),
        number=4,
    )
    arguments = ("usage", "--home", tmp_path, "--tz", "UTC", "--jsonl")

    def values(key: str, *words: str) -> list[str]:
        return [row[key] for row in cli(*arguments, *words).jsonl]

    assert values("day", "--sort", "amount") == ["2026-01-02", "2026-01-03", "2026-01-01", "2026-01-04"]
    assert values("session", "--by", "session", "--sort", "time") == [session_id(number) for number in (1, 2, 3, 4)]
    assert values("session", "--by", "session") == [session_id(number) for number in (2, 3, 1, 4)]
    nested = values("model", "--by", "model,day", "--sort", "time")
    assert nested == [MODEL] * 3 + [OPUS] * 2
    assert values("tool", "--by", "tool", "--sort", "time") == ["(no call)"]
    assert values("day", "--order", "amount") == values("day", "--sort", "amount"), "the old name of --sort"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("by", ["day", "session", "project", "model", "tool", "project,session,model", "version"])
def test_table_fits_terminal(
    cli: CliRunner, demo_home: Path, monkeypatch: pytest.MonkeyPatch, width: int, by: str
) -> None:
    """No line is wider than the terminal. The amount is never dropped, and figures are below their headings."""
    monkeypatch.setenv("COLUMNS", str(width))
    result = cli("usage", "--home", demo_home, "--by", by, "--limit", "9")
    assert max(map(display_width, result.out.splitlines())) <= width
    lines = table_lines(result.out)
    assert lines[0].endswith("amount")
    assert {display_width(line) for line in lines if "$" in line} == {display_width(lines[0])}
    assert not set(result.out) & set("▏▎▍▌▋▊▉█▁▂▃▄▅▆▇")


def test_figures_are_short_unless_exact(cli: CliRunner, tmp_path: Path) -> None:
    """`12.3k` and cents by default. `--exact` shows every digit. Less than a cent has two significant digits."""
    home = write_session(
        tmp_path, reply("a", input=12_345, output=1, read=2_000), reply("b", input=1, message={"model": OPUS})
    )
    short = cli("usage", "--home", home, "--by", "model").out
    assert "12.3k" in short
    assert "2.0k" in short
    assert "$0.04" in short
    assert "$0.00026" in short
    exact_output = cli("usage", "--home", home, "--by", "model", "--exact").out
    assert "12,345" in exact_output
    assert "2,000" in exact_output
    assert "$0.03765" in exact_output


def test_sessions_are_shown_with_titles(cli: CliRunner, tmp_path: Path) -> None:
    """A session's row has its id prefix and its title, wherever in the transcript the title is."""
    calls = [call("Bash", "ls", "x" * 3000) for _ in range(250)]
    title = {"type": "custom-title", "customTitle": "The given one", "sessionId": session_id(1)}
    rows = transcript(prompt("a first prompt"), *calls, title, *calls, pen=Pen(session_id(1)))
    write(tmp_path / "projects/-work-app" / f"{session_id(1)}.jsonl", *rows)
    write_session(tmp_path, reply("ok"), number=2)
    output = cli("usage", "--home", tmp_path, "--by", "session").out
    assert "5e550001  The given one " in output
    assert "5e550002  task 2 " in output


def test_session_titles_equal_those_of_list(cli: CliRunner, demo_home: Path) -> None:
    """Every session has the title that `threadline list` shows."""
    listed = {row["session"]: row["title"] for row in cli("list", "--home", demo_home, "--json").json}
    titles = read_session_titles([look(demo_home)], set(listed))
    assert {session: titles.get(session, "") for session in listed} == listed
    assert len(listed) > 10


@pytest.mark.sample(4)
@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "0999-05-05T12:00:00Z", "9999-12-31T23:59:59.999Z", "soon"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_extreme_and_missing_times_have_a_row(cli: CliRunner, tmp_path: Path, when: str, zone: str) -> None:
    """The first and last moments, and an invalid one, are rows of every report by time."""
    home = write_session(tmp_path, *replies_at(when))
    for by in ("day", "week", "month", "hour"):
        for words in ((), ("--sort", "time", "--json")):
            result = cli("usage", "--home", home, "--by", by, "--tz", zone, *words)
            assert (result.code, result.err) == (0, "")
    arguments = ("usage", "--home", home, "--tz", zone)
    everything = cli(*arguments, "--since", "999999w", "--until", "9999-12-31T23:59:59.999999Z")
    assert everything.code == 0  # a row without a time has that of the row before
    # In a zone, the very first day may begin some hours later.
    assert cli(*arguments, "--since", "0001-01-01", "--until", "9999-12-31").code in {0, 1}
    assert cli(*arguments, "--since", "2026-01-01", "--until", "2026-01-02").code == 1


def test_subtotals_are_above_their_parts(cli: CliRunner, tmp_path: Path) -> None:
    """In a nest, each outer value has a line with the sum of the lines indented below it."""
    write_session(
        tmp_path,
        *replies_at("2026-01-01T10:00:00Z", output=1),
        *replies_at("2026-01-01T11:00:00Z", output=2, message={"model": OPUS}),
    )
    write_session(tmp_path, *replies_at("2026-01-02T10:00:00Z", output=4), number=2)
    lines = table_lines(cli("usage", "--home", tmp_path, "--by", "day,model", "--tz", "UTC").out)
    matches = [re.match(r"( +)(\S+)(?: [A-Z][a-z]{2})? +(\d+) +(\d+) +(\d+) ", line) for line in lines[1:-2]]
    assert [(len(match[1]), match[2], match[3], match[5]) for match in matches if match is not None] == [
        (2, "2026-01-01", "2", "3"),
        (4, "opus-4-5", "1", "2"),
        (4, "sonnet-4-5", "1", "1"),
        (2, "2026-01-02", "1", "4"),
        (4, "sonnet-4-5", "1", "4"),
    ]


def test_ccusage_shape(cli: CliRunner, demo_home: Path) -> None:
    """`--shape ccusage` prints its JSON, with our totals, by day, week, month and session."""
    arguments = ("usage", "--home", demo_home, "--tz", "UTC")
    total = cli(*arguments, "--json").json["total"]
    for by, name in (("day", "daily"), ("week", "weekly"), ("month", "monthly"), ("session", "sessions")):
        document = cli(*arguments, "--by", by, "--shape", "ccusage").json
        assert len(document[name]) == len(cli(*arguments, "--by", by, "--jsonl").jsonl)
        assert document["totals"]["outputTokens"] == total["output"]
        assert float(document["totals"]["totalCost"]) == pytest.approx(float(total["amount"]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("by", ["project", "model,session", "tool,version", "branch,skill,agent"])
def test_escapes_hostile_names(cli: CliRunner, tmp_path: Path, by: str, text: str) -> None:
    """Hostile projects, models, tools, branches, versions, titles and sessions are escaped everywhere."""
    home = hostile_home(tmp_path / "home", text)
    for words in (
        (),
        ("--json",),
        ("--project", "nowhere"),
        ("--model", text.encode(errors="ignore").decode()),
    ):
        result = cli("usage", "--home", home, "--by", by, *words)
        assert result.code in {0, 1}
        assert control_characters(result.out + result.err) == set()
        assert b"\x1b" not in result.raw + result.raw_err


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_csv_quotes_formulas(cli: CliRunner, tmp_path: Path, start: str) -> None:
    """A model or project that looks like a formula is quoted in CSV."""
    name = f"{start}SUM(A1)"
    home = write_session(tmp_path, reply("a", message={"model": name}))
    assert cli("usage", "--home", home, "--by", "model", "--csv").csv[0]["model"] == f"'{name}"


def terminal_output(width: int, *arguments: str | Path, **env: str) -> str:
    """What a terminal of that width shows, without the progress bar."""
    child, terminal = pty.fork()
    if not child:
        os.execvpe(COMMAND[0], [*COMMAND, *map(str, arguments)], subprocess_environment(PAGER="cat", **env))  # noqa: S606 - ours
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    output = b""
    try:
        while block := os.read(terminal, 65536):
            output += block
    except OSError:
        pass  # the terminal was closed
    os.close(terminal)
    os.waitpid(child, 0)
    return output.decode().replace("\r\n", "\n").rpartition("\x1b[2K")[2]


@pytest.mark.slow
def test_wide_terminal_has_bars_and_narrow_one_a_sparkline(demo_home: Path) -> None:
    """Bars if there is room, one line of columns if not, and ASCII if blocks cannot be shown."""
    arguments = ("usage", "--home", demo_home, "--no-color")
    utf8_terminal = {"TERM": "xterm", "LANG": "C.UTF-8"}
    wide = terminal_output(140, *arguments, "--by", "month", **utf8_terminal)
    assert re.search(r"\$[\d.,]+  █", wide)
    narrow = terminal_output(70, *arguments, "--by", "month", "--exact", **utf8_terminal)
    assert "█" in narrow.splitlines()[1]
    assert not re.search(r"\$[\d.,]+  █", narrow)
    for ascii_terminal in ({"TERM": "dumb", "LANG": "C.UTF-8"}, {"TERM": "xterm", "LC_ALL": "C"}):
        plain = terminal_output(140, *arguments, "--by", "model", **ascii_terminal)
        assert plain.isascii()
        assert re.search(r"\$[\d.,]+  #", plain)


def test_loads_only_what_is_used(tmp_path: Path) -> None:
    """A report by day in UTC loads no zone database, no threads, no titles and no workers."""
    home = write_session(tmp_path, reply("a"))
    code = "import sys; from threadline.cli import run; run(sys.argv[1:]); print(*sorted(sys.modules), file=sys.stderr)"
    process = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, "usage", "--home", str(home), "--tz", "UTC", "--json"],
        env=subprocess_environment(),
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    loaded = set(process.stderr.split())
    assert json.loads(process.stdout)["total"]["charges"] == 1
    assert not loaded & {
        "zoneinfo",
        "concurrent.futures",
        "multiprocessing",
        "threadline.load",
        "threadline.reports.session_keys",
    }
    assert not {name for name in loaded if name.startswith("threadline.cli.usage_")}


def home_with_reported_costs(tmp_path: Path) -> Path:
    """A home whose session reports its total, and whose statistics contain a deleted day."""
    cost_state = {"type": "cost-state", "sessionId": session_id(1), "totalCostUSD": 0.5, "modelUsage": {}}
    home = write_session(tmp_path / "home", *replies_at("2026-02-01T10:00:00Z", output=100), cost_state)
    write_session(home, *replies_at("2026-02-02T10:00:00Z", output=100), number=2)
    day = {"date": "2026-01-15", "messageCount": 120, "sessionCount": 3, "toolCallCount": 40}
    tokens = {"date": "2026-01-15", "tokensByModel": {"claude-opus-4-5-20251101": 98_765}}
    cache = {"version": 1, "dailyActivity": [day], "dailyModelTokens": [tokens]}
    (home / "stats-cache.json").write_text(json.dumps(cache))
    return home


def test_mode_both_adds_reported_costs(cli: CliRunner, tmp_path: Path) -> None:
    """`--mode both` adds what Claude Code reports, and the difference, below the same table and total."""
    arguments = ("usage", "--home", home_with_reported_costs(tmp_path), "--tz", "UTC")
    computed, both = cli(*arguments, "--json").json, cli(*arguments, "--mode", "both", "--json").json
    assert [day["date"] for day in computed["reported"]["swept"]] == ["2026-01-15"]
    assert set(computed["reported"]) == {"swept", "partly_swept"}
    common_keys = set(computed) - {"reported", "notes"}
    assert {name: both[name] for name in common_keys} == {name: computed[name] for name in common_keys}
    (reported,) = both["reported"]["sessions"]
    assert (reported["session"], reported["reported"], reported["computed"]) == (
        session_id(1),
        Decimal("0.5"),
        Decimal("0.001512"),
    )
    assert Decimal(reported["difference"]) == Decimal("0.498488")
    assert both["reported"]["silent"] == {"sessions": 1, "computed": Decimal("0.001512")}
    output = cli(*arguments, "--mode", "both").out
    assert table_lines(output) == table_lines(cli(*arguments).out)
    assert "1 session reports $0.50. Computed for the same sessions: $0.0015" in output


def test_deleted_days_are_reported_but_not_in_totals(cli: CliRunner, tmp_path: Path) -> None:
    """A day that only the statistics contain is mentioned below the table. It is not a row and not in a sum."""
    arguments = ("usage", "--home", home_with_reported_costs(tmp_path), "--tz", "UTC")
    output = " ".join(cli(*arguments).out.split())
    assert "The transcripts of 2026-01-15 have been deleted." in output
    assert "120 messages and 98.8k tokens for those days, not included here" in output
    report = cli(*arguments, "--mode", "both", "--json").json
    assert [day["date"] for day in report["reported"]["swept"]] == ["2026-01-15"]
    assert (report["total"]["charges"], [row["day"] for row in report["rows"]]) == (2, ["2026-02-01", "2026-02-02"])
    for words in (("--since", "2026-01-16"), ("--project", "app"), ("--by", "model")):
        assert "transcript is gone" not in cli(*arguments, *words).out
    assert cli(*arguments, "--since", "2026-01-16", "--mode", "both", "--json").json["reported"]["swept"] == []


@pytest.mark.parametrize("output", ["--jsonl", "--csv"])
def test_rows_cannot_compare_both_modes(cli: CliRunner, tmp_path: Path, output: str) -> None:
    """The rows of `--mode both` would be those of `--mode computed`."""
    refused = cli("usage", "--home", home_with_reported_costs(tmp_path), "--mode", "both", output)
    assert (refused.code, refused.out) == (2, "")
    assert "--mode reported" in refused.err


@pytest.mark.parametrize("output", ["json", "jsonl", "csv"])
def test_limit_counts_for_reported_costs(cli: CliRunner, demo_home: Path, output: str) -> None:
    """A table, JSON and rows have at most as many sessions; the total has all."""
    arguments = ("usage", "--home", demo_home, "--mode", "reported")
    everything = cli(*arguments, "--json").json
    assert len(everything["rows"]) > 2
    answer = getattr(cli(*arguments, "--limit", "2", f"--{output}"), output)
    assert len(answer["rows"] if output == "json" else answer) == 2
    if output == "json":
        assert answer["total"] == everything["total"]


def test_mode_reported(cli: CliRunner, tmp_path: Path) -> None:
    """`--mode reported` lists the sessions that report an amount, by session, with the usual filters."""
    arguments = ("usage", "--home", home_with_reported_costs(tmp_path), "--mode", "reported")
    report = cli(*arguments, "--json").json
    assert report["total"] == {
        "sessions": 1,
        "reported": Decimal("0.5"),
        "computed": Decimal("0.001512"),
        "difference": Decimal("0.498488"),
    }
    assert cli(*arguments, "--jsonl").jsonl == report["rows"] == report["reported"]["sessions"]
    output = cli(*arguments, "--by", "session").out
    assert re.search(r"5e550001  task 1 +cost-state +\$0\.50 +\$0\.0015 +\+\$0\.50", output)
    silent = cli(*arguments, "--session", "5e550002")
    assert (silent.code, silent.out) == (1, "")
    assert "None of 1 session reports a cost" in silent.err
    refused = cli(*arguments, "--by", "day")
    assert (refused.code, refused.out) == (2, "")
    assert "--mode reported requires --by session" in refused.err


def test_help_lists_every_key(cli: CliRunner) -> None:
    """The help lists exactly the keys that `--by` accepts."""
    keys = cli("usage", "--help").out.split("Keys for --by:")[1].partition(".")[0]
    assert tuple(" ".join(keys.split()).split(", ")) == KEYS


def test_accepts_ccusage_arguments(cli: CliRunner, demo_home: Path) -> None:
    """Its date format, its option for models and its empty results work, and its report names get a suggestion."""
    arguments = ("usage", "--home", demo_home, "--shape", "ccusage")
    rows = cli(*arguments, "--breakdown").json["daily"]
    day = rows[len(rows) // 2]["date"]
    assert [row["date"] for row in cli(*arguments, "--since", day.replace("-", ""), "--until", day).json["daily"]] == [
        day
    ]
    empty = cli(*arguments, "--since", "2099-01-01")
    assert (empty.code, empty.json["daily"]) == (0, [])
    assert "Did you mean `threadline usage --by day`?" in cli("daily").err


def test_limited_hours_are_those_that_cost_most(cli: CliRunner, tmp_path: Path) -> None:
    """No hour of the day is newer than another, so `--limit` keeps the most expensive ones, in their order."""
    times = ("2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T23:00:00Z")
    home = write_session(tmp_path / "home", *replies_at(*times, "2026-01-03T11:00:00Z"))
    rows = cli("usage", "--home", home, "--by", "hour", "--tz", "UTC", "--limit", "2", "--jsonl").jsonl
    assert [row["hour"] for row in rows] == ["09:00", "11:00"]
