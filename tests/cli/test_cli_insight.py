"""`threadline outcomes`, `tools` and `waste`: tables, rows for programs, order, and exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.insight import test_outcomes, test_tool_stats
from tests.thread.context_rows import cached_reply
from tests.transcripts import SESSION, prompt, reply, transcript, write

from threadline.model.places import Place


def test_outcomes_are_summed_and_listed(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each session, or with a session every outcome and a sentence."""
    monkeypatch.setenv("COLUMNS", "140")
    home = test_outcomes.make_home(tmp_path)
    result = cli("outcomes", "--home", home)
    assert result.code == 0
    assert "Sort the shelves" in result.out
    result = cli("outcomes", "last", "--home", home)
    assert "amended" in result.out
    assert "1 commit ($0.0013 each); 1 pull request; 1 file changed (+3 -2); 2 lines survive" in result.out
    (row,) = cli("outcomes", "--by", "model", "--json", "--home", home).json
    assert (row["commits"], row["pull_requests"], row["surviving"]) == (1, 1, 2)
    assert len(cli("outcomes", "--list", "--csv", "--home", home).csv) == 7


def test_outcomes_exit_with_1_for_nothing_and_2_for_an_error(cli: CliRunner, tmp_path: Path) -> None:
    """Nothing of a kind or a project is 1; options that exclude each other and a missing repository are 2."""
    home = test_outcomes.make_home(tmp_path)
    assert cli("outcomes", "--kind", "push", "--home", home).code == 1
    assert "elsewhere" in cli("outcomes", "--project", "elsewhere", "--list", "--home", home).err
    assert cli("outcomes", "--by", "day", "--list", "--home", home).code == 2
    assert cli("outcomes", "--repo", tmp_path / "nowhere", "--home", home).code == 2


@pytest.mark.parametrize("command", ["why", "waste", "outcomes"])
def test_place_in_an_agent_names_its_transcript(cli: CliRunner, demo_home: Path, command: str) -> None:
    """A place in the table of all sessions leads to a line of the agent, not to that line of its session."""
    options = {"why": ["--since", "2020"], "waste": ["--since", "2020", "--min", "0"], "outcomes": ["--list"]}[command]
    rows = cli(command, *options, "--home", demo_home, "--limit", "0", "--json").json
    rows = rows["rows"] if command == "why" else rows
    places = {row["places"][0] if command == "waste" else row["place"] for row in rows if row["agent"]} - {None}
    assert places
    cells = cli(command, *options, "--home", demo_home, "--limit", "0").out.split()
    for place in map(Place.parse, sorted(places)):
        assert f"{Path(place.transcript).stem.removeprefix('agent-')[:8]}:{place.line}" in cells


@pytest.mark.parametrize("command", ["outcomes", "tools"])
def test_session_is_named_as_elsewhere(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """A name that is too short or that no session has is an error; a transcript is a name."""
    home = test_outcomes.make_home(tmp_path)
    short, unknown = cli(command, SESSION[:1], "--home", home), cli(command, "nosuch", "--home", home)
    assert (short.code, "too short" in short.err) == (2, True)
    assert (unknown.code, "nosuch" in unknown.err) == (2, True)
    by_path = cli(command, home / f"projects/-work-app/{SESSION}.jsonl", "--json", "--home", home)
    assert by_path.json == cli(command, SESSION[:8], "--json", "--home", home).json != []


@pytest.mark.parametrize("command", ["outcomes", "tools", "why", "waste", "digest", "usage"])
def test_unknown_project_lists_those_that_exist(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """Every command says the same."""
    result = cli(command, "--project", "nosuch", "--home", test_outcomes.make_home(tmp_path))
    assert result.code == 1
    assert "nosuch" in result.err
    assert "/work/app" in result.err


def test_tools_are_a_table_or_rows(cli: CliRunner, tmp_path: Path) -> None:
    """A table, rows for programs, and exit code 1 if there is nothing."""
    home = test_tool_stats.make_home(tmp_path)
    result = cli("tools", "--home", home)
    assert result.code == 0
    assert result.out.splitlines()[0].split()[-1] == "tool"
    assert cli("tools", "--by", "command", "--csv", "--no-cost", "--home", home).csv[0]["command"] == "git"
    assert cli("tools", "--tool", "Nothing", "--home", home).code == 1


def test_tools_are_sorted_by_a_column(cli: CliRunner, tmp_path: Path) -> None:
    """The largest first; of days, the newest."""
    home = test_tool_stats.make_home(tmp_path)
    for name, key in (("failed", "failure_rate"), ("median", "median"), ("p95", "p95"), ("amount", "carried")):
        values = [float(row[key] or 0) for row in cli("tools", "--sort", name, "--json", "--home", home).json]
        assert values == sorted(values, reverse=True)
    assert cli("tools", "--sort", "amount", "--no-cost", "--home", home).code == 2
    days = cli("tools", "--by", "day", "--no-cost", "--json", "--home", home).json
    assert cli("tools", "--by", "day", "--no-cost", "--limit", "1", "--json", "--home", home).json == days[-1:]
    more = cli("tools", "--no-cost", "--limit", "1", "--home", home).out.splitlines()[-1]
    assert re.fullmatch(r"\d+ more tools?: use --limit N\.", more)


def test_waste_suggestions_name_the_cause(cli: CliRunner, tmp_path: Path) -> None:
    """A cache break has its cause; advice that can be followed is before that of an unknown cause."""
    parts = (
        cached_reply(0, 20_000, input_=0, after=1),
        cached_reply(0, 20_000, input_=0, after=1),
        cached_reply(20_000, 10, input_=0, after=1),
        cached_reply(0, 20_000, input_=0, after=90),
    )
    write(tmp_path / f"projects/-a/{SESSION}.jsonl", *transcript(prompt("go"), *parts))
    result = cli("waste", SESSION, "--min", "0", "--home", tmp_path)
    suggestions = [line.split(",")[0] for line in result.out.splitlines() if line.startswith("cache-break (")]
    assert suggestions == ["cache-break (idle)", "cache-break (unknown)"], result


@pytest.mark.parametrize("command", ["why", "waste", "context"])
def test_tables_of_a_session_name_it(cli: CliRunner, demo_home: Path, command: str) -> None:
    """Without an argument they are about the newest session; a heading has its id and title."""
    newest = cli("list", "--home", demo_home, "--json").json[0]
    heading = cli(command, "--home", demo_home).out.splitlines()[0]
    assert heading.startswith(f"{newest['session'][:8]} {newest['title'][:20]}")


@pytest.mark.parametrize("command", ["why", "waste", "context"])
def test_heading_is_bold_on_a_terminal(
    cli: CliRunner, demo_home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The heading has colour codes, which are not escaped as codes from transcripts are."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    newest = cli("list", "--home", demo_home, "--json").json[0]["session"]
    output = cli(command, "last", "--home", demo_home).out
    assert output.startswith(f"\x1b[1m{newest[:8]} ")
    assert r"\x1b" not in output


def test_nothing_says_what_would_help(cli: CliRunner, tmp_path: Path) -> None:
    """`--min 0` is suggested unless it is used, and removing a filter unless a session was named."""
    write(tmp_path / f"projects/-work/{SESSION}.jsonl", *transcript(prompt("hi"), reply("ok")))
    assert "Use --min 0 to see smaller ones" in cli("waste", "last", "--home", tmp_path).err
    assert cli("waste", "last", "--min", "0", "--home", tmp_path).err == "threadline: No avoidable costs found.\n"
    assert cli("waste", "--until", "2020", "--home", tmp_path).err.startswith("threadline: Nothing was spent")
    assert cli("outcomes", "last", "--home", tmp_path).err.endswith("edits in this session.\n")
    assert cli("tools", "last", "--tool", "None", "--home", tmp_path).err.endswith("calls in this session.\n")


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("command", ["why", "why --by kind", "waste --min 0"])
def test_limit_counts_for_every_output(cli: CliRunner, demo_home: Path, command: str, *, across: bool) -> None:
    """`--limit` limits rows for programs, too; without it, they get all."""
    period = ["--since", "2020"] if across else ["a15ab551"]
    arguments = [*command.split(), *period, "--home", str(demo_home)]
    rows, limited = (
        document["rows"] if isinstance(document, dict) else document
        for document in (cli(*arguments, *limit, "--json").json for limit in ((), ("--limit", "1")))
    )
    assert len(rows) > 1
    assert limited == rows[:1]
    assert cli(*arguments, "--limit", "0", "--jsonl").jsonl == rows
    assert len(cli(*arguments, "--limit", "1", "--csv").csv) == 1
