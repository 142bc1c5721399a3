"""`threadline usage`: what was spent, by every key, in every format, in the reader's days."""

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


def session(number: int) -> str:
    """A session's id."""
    return f"5e55{number:04d}-0000-4000-8000-000000000001"


def spend(home: Path, *parts: Any, number: int = 1, folder: str = "-work-app", **defaults: Any) -> Path:
    """A home with one more session, of these parts after a prompt."""
    pen = Pen(session(number), **defaults)
    rows = transcript(prompt(f"task {number}"), *parts, pen=pen)
    write(home / "projects" / folder / f"{session(number)}.jsonl", *rows)
    return home


def at(*times: str, **of: Any) -> list[Any]:
    """Replies at these times, each of ten tokens."""
    return [reply("done", timestamp=when, **of) for when in times]


def total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of rows, added up."""
    amounts = [Decimal(row["amount"]) for row in rows if row["amount"] is not None]
    return {
        **{name: sum(row[name] for row in rows) for name in FIGURES if name != "amount"},
        "amount": sum(amounts) if amounts else None,
    }


def exact(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures whose amount can be compared."""
    return {**figures, "amount": None if figures["amount"] is None else Decimal(figures["amount"])}


def table(shown: str) -> list[str]:
    """The lines of a table, from its heading to its total."""
    lines = shown.splitlines()
    return lines[2 : next(at for at, line in enumerate(lines) if line.startswith("  total")) + 1]


@pytest.mark.sample(4)
@pytest.mark.parametrize("by", [*KEYS, *NESTS])
def test_every_key_sums_to_the_same_total(cli: CliRunner, demo_home: Path, by: str) -> None:
    """By any key and any nest, the rows add up to the total of all, to the last digit; none is listed twice."""
    plain = cli("usage", "--home", demo_home, "--json").json["total"]
    seen = cli("usage", "--home", demo_home, "--by", by, "--json").json
    names = by.split(",")
    assert seen["by"] == names
    assert seen["total"] == plain
    assert exact(plain) == total(seen["rows"])
    assert all(list(row) == [*names, *FIGURES] for row in seen["rows"])
    paths = [tuple(row[name] for name in names) for row in seen["rows"]]
    assert len(set(paths)) == len(paths) > 0


def test_the_amount_is_the_price_applied_by_hand(cli: CliRunner, tmp_path: Path) -> None:
    """Two models, cache writes of both lifetimes, and reads: each times its price per million."""
    split = {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 800}
    usage = {"input_tokens": 7, "output_tokens": 11, "cache_creation_input_tokens": 1000, "cache_creation": split}
    home = spend(
        tmp_path,
        reply("a", input=1000, output=50, read=20_000),
        reply("b", message={"model": OPUS, "usage": usage}),
    )
    seen = cli("usage", "--home", home, "--by", "model", "--json").json
    by_model = {row["model"]: row for row in seen["rows"]}
    sonnet = (1000 * Decimal(3) + 50 * Decimal(15) + 20_000 * Decimal("0.3")) / 1_000_000
    opus = (7 * Decimal(5) + 11 * Decimal(25) + 200 * Decimal("6.25") + 800 * Decimal(10)) / 1_000_000
    assert Decimal(by_model[MODEL]["amount"]) == sonnet
    assert Decimal(by_model[OPUS]["amount"]) == opus
    assert Decimal(seen["total"]["amount"]) == sonnet + opus
    assert (by_model[OPUS]["cache_write"], by_model[OPUS]["cache_write_1h"]) == (1000, 800)
    assert "E" not in json.dumps(seen["total"]["amount"])


def test_the_document_says_what_was_asked(cli: CliRunner, demo_home: Path) -> None:
    """Keys, zone, time, prices with their digest, problems and notes stand beside the rows."""
    asked = ("usage", "--home", demo_home, "--by", "week", "--tz", "Europe/Berlin", "--since", "2020-07-01")
    seen = cli(*asked, "--json").json
    assert list(seen)[:2] == ["total", "rows"]
    assert (seen["by"], seen["zone"]) == (["week"], "Europe/Berlin")
    assert (seen["since"], seen["until"]) == ("2020-06-30T22:00:00Z", None)
    assert re.fullmatch(r"[0-9a-f]{64}", seen["prices"]["digest"])
    assert [one["name"] for one in seen["prices"]["files"]] == ["threadline"]
    assert (seen["problems"], seen["left_out"]) == ([], 0)
    assert seen["prices"]["digest"] == cli("prices", "--json").json["digest"]
    assert seen["prices"]["digest"][:12] in cli(*asked).out


@pytest.mark.parametrize("by", ["day", "project,model", "agent-type"])
def test_rows_are_the_same_in_every_format(cli: CliRunner, demo_home: Path, by: str) -> None:
    """`--jsonl` and `--csv` have the leaf rows of the document, the amount as exact text."""
    question = ("usage", "--home", demo_home, "--by", by)
    rows = cli(*question, "--json").json["rows"]
    assert cli(*question, "--jsonl").jsonl == rows
    cells = cli(*question, "--csv").csv
    assert cells == [{name: "" if one is None else str(one) for name, one in row.items()} for row in rows]


def test_keys_may_be_given_one_by_one(cli: CliRunner, demo_home: Path) -> None:
    """`--by project --by model`, `--by project,model` and `--by project --breakdown` are one report."""
    home = ("usage", "--home", demo_home, "--json")
    several = cli(*home, "--by", "project", "--by", "model").json
    assert several == cli(*home, "--by", "Project, model").json == cli(*home, "--by", "project", "--breakdown").json
    assert cli(*home, "--breakdown", "--apart").json["by"] == ["day", "thread", "model"]


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
def test_days_split_at_the_readers_midnight(
    cli: CliRunner, tmp_path: Path, zone: str, times: list[str], days: list[str]
) -> None:
    """A charge belongs to the day that it is there, and `--since` and `--until` take exactly that day."""
    home = spend(tmp_path, *at(*times))
    question = ("usage", "--home", home, "--tz", zone)
    rows = cli(*question, "--jsonl").jsonl
    assert [(row["day"], row["charges"]) for row in rows] == [(day, days.count(day)) for day in dict.fromkeys(days)]
    for row in rows:
        alone = cli(*question, "--since", row["day"], "--until", row["day"], "--json").json
        assert alone["rows"] == [row]


def test_hours_are_the_readers_too(cli: CliRunner, tmp_path: Path) -> None:
    """The hour that comes twice is one row; half hours fall into the hour that the clock shows."""
    home = spend(tmp_path, *at("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"))
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


def test_weeks_and_months_begin_where_the_reader_is(cli: CliRunner, tmp_path: Path) -> None:
    """Sunday night in UTC is Monday in Tokyo: another week, and another month."""
    home = spend(tmp_path, *at("2026-05-31T20:00:00Z"))
    for zone, week, month in (("UTC", "2026-05-25", "2026-05"), ("Asia/Tokyo", "2026-06-01", "2026-06")):
        (row,) = cli("usage", "--home", home, "--by", "week,month", "--tz", zone, "--jsonl").jsonl
        assert (row["week"], row["month"]) == (week, month)


def test_the_default_zone_is_this_machines(tmp_path: Path) -> None:
    """Without `--tz`, days are those of the machine; `--tz UTC` is UTC all the same."""
    home = spend(tmp_path, *at("2026-05-31T20:00:00Z"))
    here = run_in_subprocess("usage", "--home", home, "--json", TZ="Asia/Tokyo").json
    assert (here["zone"], here["rows"][0]["day"]) == ("Asia/Tokyo", "2026-06-01")
    assert run_in_subprocess("usage", "--home", home, "--json", "--tz", "utc", TZ="Asia/Tokyo").json["zone"] == "UTC"


def test_a_wrong_key_zone_time_or_price_file_is_an_error_that_helps(cli: CliRunner, demo_home: Path) -> None:
    """What cannot be understood: exit code 2, nothing on standard output, and what was meant."""
    wrong = {
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
    for words, sentence in wrong.items():
        result = cli("usage", "--home", demo_home, *words)
        assert (result.code, result.out) == (2, ""), words
        assert sentence in result.err


def test_what_is_asked_for_is_what_is_summed(cli: CliRunner, tmp_path: Path) -> None:
    """Project, model, session and time each narrow the report; a session's id may be its start, or `last`."""
    spend(tmp_path, *at("2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"), cwd="/work/app")
    spend(
        tmp_path, *at("2026-01-03T10:00:00Z", message={"model": OPUS}), number=2, folder="-work-site", cwd="/work/site"
    )

    def charges(*words: str) -> int:
        seen: int = cli("usage", "--home", tmp_path, "--tz", "UTC", "--json", *words).json["total"]["charges"]
        return seen

    assert charges() == 3
    assert (charges("--project", "SITE"), charges("--project", "/work/app")) == (1, 2)
    assert (charges("--model", "opus"), charges("--model", "sonnet-4-5")) == (1, 2)
    assert (charges("--session", "5E550001"), charges("--session", "last")) == (2, 1)
    assert (charges("--since", "2026-01-02"), charges("--until", "2026-01-02")) == (2, 2)
    assert charges("--since", "2026-01-02", "--until", "2026-01-02", "--project", "app") == 1


def test_nothing_found_says_what_there_is(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 1 and a sentence: which projects, models, sessions, or what time there is."""
    home = spend(tmp_path / "home", *at("2026-01-01T10:00:00Z"))
    told = {
        ("--project", "nowhere"): "--project 'nowhere'. Projects: /work/app.",
        ("--model", "gpt"): f"Models: {MODEL}.",
        ("--session", "ffff"): "Sessions: 5e550001.",
        ("--since", "2026-01-02"): "--since. Other charges are from 2026-01-01 to 2026-01-01.",
    }
    for words, sentence in told.items():
        result = cli("usage", "--home", home, *words)
        assert (result.code, result.out) == (1, ""), words
        assert result.err.startswith("threadline: The only charge does not match ")
        assert sentence in result.err
    (tmp_path / "empty/projects").mkdir(parents=True)
    assert "No usage: no model replied in" in cli("usage", "--home", tmp_path / "empty").err
    none = cli("usage")
    assert (none.code, none.out) == (1, "")
    assert "No Claude home found." in none.err


def test_an_unknown_model_has_tokens_and_no_amount(cli: CliRunner, tmp_path: Path) -> None:
    """Its amount is null and an empty cell, a line names it, and a price file gives it one."""
    home = spend(tmp_path / "home", reply("a", message={"model": "glm-9"}, input=10, output=5))
    seen = cli("usage", "--home", home, "--by", "model", "--json").json
    assert (seen["total"]["amount"], seen["total"]["unpriced"], seen["rows"][0]["output"]) == (None, 1, 5)
    assert "1 charge has no price and is not included in amounts (glm-9)." in seen["notes"]
    shown = cli("usage", "--home", home, "--by", "model").out
    assert "$" not in shown
    assert "1 charge has no price" in shown
    assert cli("usage", "--home", home, "--csv").csv[0]["amount"] == ""
    cost = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "litellm_provider": "x", "mode": "chat"}
    prices = tmp_path / "litellm.json"
    prices.write_text(json.dumps({"glm-9": cost}))
    priced = cli("usage", "--home", home, "--prices", prices, "--json").json
    assert (priced["total"]["amount"], priced["total"]["unpriced"]) == ("0.00002", 0)
    assert [one["name"] for one in priced["prices"]["files"]] == ["threadline", str(prices)]
    assert priced["prices"]["digest"] != seen["prices"]["digest"]


def test_an_output_that_is_a_lower_bound_is_told(cli: CliRunner, tmp_path: Path) -> None:
    """Old versions did not write the final count: a line says of how many charges."""
    home = spend(tmp_path, reply("a", message={"stop_reason": None}), reply("b"), version="2.1.20")
    seen = cli("usage", "--home", home, "--json").json
    assert seen["total"]["lower_bound"] == 1
    assert "Output is a lower bound for 1 charge:" in cli("usage", "--home", home).out


@pytest.mark.parametrize(("by", "sentence"), [("tool", "shared equally by the calls"), ("skill", "names as its cause")])
def test_by_tool_and_by_skill_state_their_method(cli: CliRunner, demo_home: Path, by: str, sentence: str) -> None:
    """One sentence says how the shares come about, in the table and in the notes."""
    assert sentence in " ".join(cli("usage", "--home", demo_home, "--by", by).out.split())
    assert sentence in " ".join(cli("usage", "--home", demo_home, "--by", by, "--json").json["notes"])
    assert sentence not in cli("usage", "--home", demo_home, "--by", "model").out


def test_a_left_branch_is_told_apart(cli: CliRunner, tmp_path: Path) -> None:
    """What was spent before a rewind is a left branch's, what agents spent theirs; all of it is the session's."""
    pen = Pen(session(1))
    rows: list[Row | bytes] = transcript(prompt("begin"), reply("yes", output=1), pen=pen)
    fork = pen.parent
    rows += transcript(prompt("this way"), reply("left", output=20), pen=pen)
    pen.parent = fork
    rows += transcript(prompt("no, that way"), reply("kept", output=300), pen=pen)
    folder = tmp_path / "projects/-work-app"
    write(folder / f"{session(1)}.jsonl", *rows)
    for agent, output in (("a1b2c3d4e5f60718", 4000), ("aside_question-0011223344556677", 50_000)):
        own = Pen(session(1), agentId=agent, isSidechain=True)
        own._count = output
        write(
            folder / session(1) / f"subagents/agent-{agent}.jsonl",
            *transcript(prompt("help"), reply("ok", output=output), pen=own),
        )
    question = ("usage", "--home", tmp_path)
    by_thread = {row["thread"]: row["output"] for row in cli(*question, "--by", "thread", "--jsonl").jsonl}
    assert by_thread == {"main thread": 301, "left branch": 20, "agent": 4000, "side agent": 50_000}
    apart = cli(*question, "--by", "session", "--apart", "--json").json
    assert {(row["session"], row["thread"]): row["output"] for row in apart["rows"]} == {
        (session(1), name): output for name, output in by_thread.items()
    }
    (whole,) = cli(*question, "--by", "session", "--jsonl").jsonl
    assert whole["output"] == sum(by_thread.values())


def test_an_agents_type_is_read_from_its_side_file(cli: CliRunner, tmp_path: Path) -> None:
    """Rows that do not say the type of their agent have it in the file beside the transcript."""
    spend(tmp_path, reply("main"))
    folder = tmp_path / "projects/-work-app" / session(1) / "subagents"
    for agent in ("a1b2c3d4e5f60718", "affffffffffffffff"):
        own = Pen(session(1), agentId=agent, isSidechain=True)
        own._count = ord(agent[1])
        write(folder / f"agent-{agent}.jsonl", *transcript(prompt("help"), reply("ok"), pen=own))
    write(folder / "agent-a1b2c3d4e5f60718.meta.json", b'{"agentType":"Explore"}')
    rows = cli("usage", "--home", tmp_path, "--by", "agent-type", "--jsonl").jsonl
    assert {row["agent-type"]: row["charges"] for row in rows} == {"main": 1, "Explore": 1, "(none)": 1}


def test_a_limit_leaves_the_total_as_it_is(cli: CliRunner, tmp_path: Path) -> None:
    """Of times the newest are kept, of all else the greatest; what is left out is one row, and in the total."""
    for number in range(1, 6):
        spend(tmp_path, *at(f"2026-01-0{number}T10:00:00Z", output=100 * number), number=number)
    question = ("usage", "--home", tmp_path, "--tz", "UTC", "--limit", "2")
    days = cli(*question, "--json").json
    assert [row["day"] for row in days["rows"]] == ["2026-01-04", "2026-01-05"]
    assert (days["left_out"], days["total"]["output"]) == (3, 1500)
    sessions = cli(*question, "--by", "session", "--breakdown", "--json").json
    assert [row["session"] for row in sessions["rows"]] == [session(5), session(4)]
    shown = cli(*question, "--by", "session").out
    rest = next(line for line in shown.splitlines() if "3 more: see --limit" in line)
    assert "600" in rest.split()
    assert "1.5 k" in table(shown)[-1]


def test_order_is_by_time_or_by_amount(cli: CliRunner, tmp_path: Path) -> None:
    """Either order for any key; parts of a nest stay together."""
    for number, output in ((1, 50), (2, 900), (3, 400)):
        spend(tmp_path, *at(f"2026-01-0{number}T10:00:00Z", output=output), number=number)
    spend(
        tmp_path,
        *at("2026-01-04T10:00:00Z", "2026-01-01T11:00:00Z", message={"model": OPUS}, output=10),
        number=4,
    )
    home = ("usage", "--home", tmp_path, "--tz", "UTC", "--jsonl")

    def values(key: str, *words: str) -> list[str]:
        return [row[key] for row in cli(*home, *words).jsonl]

    assert values("day", "--sort", "amount") == ["2026-01-02", "2026-01-03", "2026-01-01", "2026-01-04"]
    assert values("session", "--by", "session", "--sort", "time") == [session(number) for number in (1, 2, 3, 4)]
    assert values("session", "--by", "session") == [session(number) for number in (2, 3, 1, 4)]
    nested = values("model", "--by", "model,day", "--sort", "time")
    assert nested == [MODEL] * 3 + [OPUS] * 2
    assert values("tool", "--by", "tool", "--sort", "time") == ["(no call)"]
    assert values("day", "--order", "amount") == values("day", "--sort", "amount"), "the old name of --sort"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("by", ["day", "session", "project", "model", "tool", "project,session,model", "version"])
def test_a_table_fits_its_page(
    cli: CliRunner, demo_home: Path, monkeypatch: pytest.MonkeyPatch, width: int, by: str
) -> None:
    """No line is wider than the page; the amount is never dropped, and figures stand below their headings."""
    monkeypatch.setenv("COLUMNS", str(width))
    result = cli("usage", "--home", demo_home, "--by", by, "--limit", "9")
    assert max(map(display_width, result.out.splitlines())) <= width
    lines = table(result.out)
    assert lines[0].endswith("amount")
    assert {display_width(line) for line in lines if "$" in line} == {display_width(lines[0])}
    assert not set(result.out) & set("▏▎▍▌▋▊▉█▁▂▃▄▅▆▇")


def test_figures_are_short_for_people_and_whole_on_request(cli: CliRunner, tmp_path: Path) -> None:
    """`12.3 k` and cents by default; `--exact` shows every digit; less than a cent is said to be so."""
    home = spend(tmp_path, reply("a", input=12_345, output=1, read=2_000), reply("b", input=1, message={"model": OPUS}))
    short = cli("usage", "--home", home, "--by", "model").out
    assert "12.3 k" in short
    assert "2.0 k" in short
    assert "$0.04" in short
    assert "<$0.01" in short
    whole = cli("usage", "--home", home, "--by", "model", "--exact").out
    assert "12,345" in whole
    assert "2,000" in whole
    assert "$0.03765" in whole


def test_sessions_are_named_by_their_titles(cli: CliRunner, tmp_path: Path) -> None:
    """A session's row has the start of its id and its title, wherever in the transcript that stands."""
    calls = [call("Bash", "ls", "x" * 3000) for _ in range(250)]
    given = {"type": "custom-title", "customTitle": "The given one", "sessionId": session(1)}
    rows = transcript(prompt("a first prompt"), *calls, given, *calls, pen=Pen(session(1)))
    write(tmp_path / "projects/-work-app" / f"{session(1)}.jsonl", *rows)
    spend(tmp_path, reply("ok"), number=2)
    shown = cli("usage", "--home", tmp_path, "--by", "session").out
    assert "5e550001  The given one " in shown
    assert "5e550002  task 2 " in shown


def test_sessions_have_the_titles_of_the_list(cli: CliRunner, demo_home: Path) -> None:
    """Every session of a report is called as `threadline list` calls it."""
    listed = {one["id"]: one["title"] for one in cli("list", "--home", demo_home, "--json").json}
    named = read_session_titles([look(demo_home)], set(listed))
    assert {one: named.get(one, "") for one in listed} == listed
    assert len(listed) > 10


@pytest.mark.sample(4)
@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "0999-05-05T12:00:00Z", "9999-12-31T23:59:59.999Z", "soon"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_any_time_has_a_row(cli: CliRunner, tmp_path: Path, when: str, zone: str) -> None:
    """The first and the last moments of all time, and what is none, are rows of every report by time."""
    home = spend(tmp_path, *at(when))
    for by in ("day", "week", "month", "hour"):
        for words in ((), ("--sort", "time", "--json")):
            result = cli("usage", "--home", home, "--by", by, "--tz", zone, *words)
            assert (result.code, result.err) == (0, "")
    question = ("usage", "--home", home, "--tz", zone)
    always = cli(*question, "--since", "999999w", "--until", "9999-12-31T23:59:59.999999Z")
    assert always.code == 0  # what names no time has that of the row before
    # In a zone, the first day of all time may begin some hours later.
    assert cli(*question, "--since", "0001-01-01", "--until", "9999-12-31").code in {0, 1}
    assert cli(*question, "--since", "2026-01-01", "--until", "2026-01-02").code == 1


def test_subtotals_stand_above_what_they_sum(cli: CliRunner, tmp_path: Path) -> None:
    """In a nest, each outer value has a line with the sum of the lines indented below it."""
    spend(
        tmp_path, *at("2026-01-01T10:00:00Z", output=1), *at("2026-01-01T11:00:00Z", output=2, message={"model": OPUS})
    )
    spend(tmp_path, *at("2026-01-02T10:00:00Z", output=4), number=2)
    lines = table(cli("usage", "--home", tmp_path, "--by", "day,model", "--tz", "UTC").out)
    shown = [re.match(r"( +)(\S+)(?: [A-Z][a-z]{2})? +(\d+) +(\d+) +(\d+) ", line) for line in lines[1:-2]]
    assert [(len(one[1]), one[2], one[3], one[5]) for one in shown if one is not None] == [
        (2, "2026-01-01", "2", "3"),
        (4, "opus-4-5", "1", "2"),
        (4, "sonnet-4-5", "1", "1"),
        (2, "2026-01-02", "1", "4"),
        (4, "sonnet-4-5", "1", "4"),
    ]


def test_the_shape_of_ccusage(cli: CliRunner, demo_home: Path) -> None:
    """`--shape ccusage` prints its document, with our totals, by day, week, month and session."""
    home = ("usage", "--home", demo_home, "--tz", "UTC")
    ours = cli(*home, "--json").json["total"]
    for by, name in (("day", "daily"), ("week", "weekly"), ("month", "monthly"), ("session", "sessions")):
        theirs = cli(*home, "--by", by, "--shape", "ccusage").json
        assert len(theirs[name]) == len(cli(*home, "--by", by, "--jsonl").jsonl)
        assert theirs["totals"]["outputTokens"] == ours["output"]
        assert theirs["totals"]["totalCost"] == pytest.approx(float(ours["amount"]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("by", ["project", "model,session", "tool,version", "branch,skill,agent"])
def test_no_name_steers_the_terminal(cli: CliRunner, tmp_path: Path, by: str, text: str) -> None:
    """Hostile projects, models, tools, branches, versions, titles and sessions reach no table and no sentence raw."""
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
def test_no_cell_is_a_formula(cli: CliRunner, tmp_path: Path, start: str) -> None:
    """A model or project that looks like a formula is quoted in CSV."""
    name = f"{start}SUM(A1)"
    home = spend(tmp_path, reply("a", message={"model": name}))
    assert cli("usage", "--home", home, "--by", "model", "--csv").csv[0]["model"] == f"'{name}"


def on_a_terminal(width: int, *arguments: str | Path, **env: str) -> str:
    """What a terminal of that width shows, the progress left out."""
    child, terminal = pty.fork()
    if not child:
        os.execvpe(COMMAND[0], [*COMMAND, *map(str, arguments)], subprocess_environment(PAGER="cat", **env))  # noqa: S606 - ours
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    shown = b""
    try:
        while block := os.read(terminal, 65536):
            shown += block
    except OSError:
        pass  # how a terminal says that it was closed
    os.close(terminal)
    os.waitpid(child, 0)
    return shown.decode().replace("\r\n", "\n").rpartition("\x1b[2K")[2]


def test_a_wide_terminal_has_bars_and_a_narrow_one_a_curve(demo_home: Path) -> None:
    """Blocks where there is room, one line of columns where there is not; letters where blocks cannot be shown."""
    question = ("usage", "--home", demo_home, "--no-color")
    good = {"TERM": "xterm", "LANG": "C.UTF-8"}
    wide = on_a_terminal(140, *question, "--by", "month", **good)
    assert re.search(r"\$[\d.,]+  █", wide)
    narrow = on_a_terminal(70, *question, "--by", "month", "--exact", **good)
    assert "█" in narrow.splitlines()[1]
    assert not re.search(r"\$[\d.,]+  █", narrow)
    for poor in ({"TERM": "dumb", "LANG": "C.UTF-8"}, {"TERM": "xterm", "LC_ALL": "C"}):
        plain = on_a_terminal(140, *question, "--by", "model", **poor)
        assert plain.isascii()
        assert re.search(r"\$[\d.,]+  #", plain)


def test_start_up_loads_only_what_is_used(tmp_path: Path) -> None:
    """A report by day in UTC loads no zone database, no threads, no titles and no workers."""
    home = spend(tmp_path, reply("a"))
    code = "import sys; from threadline.cli import run; run(sys.argv[1:]); print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, "usage", "--home", str(home), "--tz", "UTC", "--json"],
        env=subprocess_environment(),
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    loaded = set(done.stderr.split())
    assert json.loads(done.stdout)["total"]["charges"] == 1
    assert not loaded & {
        "zoneinfo",
        "concurrent.futures",
        "multiprocessing",
        "threadline.load",
        "threadline.reports.branches",
    }
    assert not {name for name in loaded if name.startswith("threadline.cli.usage_")}


def told_home(tmp_path: Path) -> Path:
    """A home whose one session reports its total, and whose statistics know a day that is gone."""
    total = {"type": "cost-state", "sessionId": session(1), "totalCostUSD": 0.5, "modelUsage": {}}
    home = spend(tmp_path / "home", *at("2026-02-01T10:00:00Z", output=100), total)
    spend(home, *at("2026-02-02T10:00:00Z", output=100), number=2)
    day = {"date": "2026-01-15", "messageCount": 120, "sessionCount": 3, "toolCallCount": 40}
    tokens = {"date": "2026-01-15", "tokensByModel": {"claude-opus-4-5-20251101": 98_765}}
    cache = {"version": 1, "dailyActivity": [day], "dailyModelTokens": [tokens]}
    (home / "stats-cache.json").write_text(json.dumps(cache))
    return home


def test_what_is_reported_stands_apart(cli: CliRunner, tmp_path: Path) -> None:
    """`--mode both` adds what Claude Code reports, and by what it differs, below the same table and the same total."""
    home = ("usage", "--home", told_home(tmp_path), "--tz", "UTC")
    computed, both = cli(*home, "--json").json, cli(*home, "--mode", "both", "--json").json
    assert [day["date"] for day in computed["reported"]["swept"]] == ["2026-01-15"]
    assert set(computed["reported"]) == {"swept", "partly_swept"}
    same = set(computed) - {"reported", "notes"}
    assert {name: both[name] for name in same} == {name: computed[name] for name in same}
    (one,) = both["reported"]["sessions"]
    assert (one["session"], one["reported"], one["computed"]) == (session(1), "0.5", "0.001512")
    assert Decimal(one["difference"]) == Decimal("0.498488")
    assert both["reported"]["silent"] == {"sessions": 1, "computed": "0.001512"}
    shown = cli(*home, "--mode", "both").out
    assert table(shown) == table(cli(*home).out)
    assert "1 session reports 0.50 USD; computed for the same: 0.001512 USD" in shown


def test_days_that_are_gone_are_reported_and_in_no_total(cli: CliRunner, tmp_path: Path) -> None:
    """A day that only the statistics know is told below the table, and neither a row nor in a sum."""
    home = ("usage", "--home", told_home(tmp_path), "--tz", "UTC")
    shown = " ".join(cli(*home).out.split())
    assert "Transcripts for 1 day (2026-01-15 to 2026-01-15) have been deleted." in shown
    assert "120 messages and 98,765 tokens for those days, not included here" in shown
    seen = cli(*home, "--mode", "both", "--json").json
    assert [day["date"] for day in seen["reported"]["swept"]] == ["2026-01-15"]
    assert (seen["total"]["charges"], [row["day"] for row in seen["rows"]]) == (2, ["2026-02-01", "2026-02-02"])
    for words in (("--since", "2026-01-16"), ("--project", "app"), ("--by", "model")):
        assert "transcript is gone" not in cli(*home, *words).out
    assert cli(*home, "--since", "2026-01-16", "--mode", "both", "--json").json["reported"]["swept"] == []


def test_what_is_reported_alone(cli: CliRunner, tmp_path: Path) -> None:
    """`--mode reported` lists the sessions that report an amount; it goes by session, and narrows as others do."""
    home = ("usage", "--home", told_home(tmp_path), "--mode", "reported")
    seen = cli(*home, "--json").json
    assert seen["total"] == {"sessions": 1, "reported": "0.5", "computed": "0.001512", "difference": "0.498488"}
    assert cli(*home, "--jsonl").jsonl == seen["rows"] == seen["reported"]["sessions"]
    shown = cli(*home, "--by", "session").out
    assert re.search(r"5e550001  task 1 +cost-state +\$0\.5000 +\$0\.0015 +\+\$0\.4985", shown)
    silent = cli(*home, "--session", "5e550002")
    assert (silent.code, silent.out) == (1, "")
    assert "None of 1 session reports a cost" in silent.err
    refused = cli(*home, "--by", "day")
    assert (refused.code, refused.out) == (2, "")
    assert "--mode reported requires --by session" in refused.err


def test_the_help_names_every_key(cli: CliRunner) -> None:
    """All keys that `--by` takes stand in the help, and no other."""
    told = cli("usage", "--help").out.split("Keys for --by:")[1].partition(".")[0]
    assert tuple(" ".join(told.split()).split(", ")) == KEYS


def test_what_scripts_for_ccusage_say_is_understood(cli: CliRunner, demo_home: Path) -> None:
    """Its form of dates, its option for models and its empty answers; and the names of its reports lead to ours."""
    home = ("usage", "--home", demo_home, "--shape", "ccusage")
    rows = cli(*home, "--breakdown").json["daily"]
    day = rows[len(rows) // 2]["date"]
    assert [row["date"] for row in cli(*home, "--since", day.replace("-", ""), "--until", day).json["daily"]] == [day]
    nothing = cli(*home, "--since", "2099-01-01")
    assert (nothing.code, nothing.json["daily"]) == (0, [])
    assert "Did you mean `threadline usage --by day`?" in cli("daily").err
