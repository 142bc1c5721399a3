"""Help, exit codes and the demo command."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner
from tests.subtests import for_each

import threadline
from threadline.cli import commands
from threadline.cli.commands import COMMANDS
from threadline.cli.keep.group import ACTIONS


def _actions(group: str) -> list[str]:
    context = click.Context(commands.threadline)
    command = commands.threadline.get_command(context, group)
    assert isinstance(command, click.Group)
    return [f"{group} {action}" for action in command.list_commands(context)]


ALL_COMMANDS = ["", *COMMANDS, *_actions("keep"), *_actions("budget"), *_actions("lake")]


@for_each("command", ALL_COMMANDS)
@for_each("option", ["--help", "-h"])
def test_every_command_has_examples(cli: CliRunner, command: str, option: str) -> None:
    """`--help` and `-h` of every command show usage and examples, and succeed."""
    result = cli(*command.split(), option)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: threadline")
    assert "Examples:" in result.out
    assert result.out.split("Examples:")[1].count("threadline ") >= 3


def test_help_lists_every_command(cli: CliRunner) -> None:
    """The help of `threadline` lists every command with one line of description."""
    text = cli("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in text


@for_each("name", COMMANDS)
def test_command_table_matches_command_help(name: str) -> None:
    """The one-line help in the table is the beginning of the command's help."""
    command = commands.threadline.get_command(click.Context(commands.threadline), name)
    assert command is not None
    assert (command.help or "").startswith(COMMANDS[name].rstrip("."))


def test_group_without_an_action_prints_its_help(cli: CliRunner) -> None:
    """The same lines as `--help`, as an error."""
    result = cli("lake")
    assert (result.code, result.out, result.err) == (2, "", cli("lake", "--help").out)


def test_prints_version(cli: CliRunner) -> None:
    """`--version` and `-V` print the version."""
    for option in ("--version", "-V"):
        assert cli(option).out.split()[-1] == threadline.__version__


@for_each("command", ALL_COMMANDS)
def test_help_fits_80_columns(cli: CliRunner, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of the help is longer than 80 columns, including examples, and none is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*command.split(), "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines[1:] if line.endswith("...")] == []


@for_each("command", ALL_COMMANDS)
def test_help_is_uniform(cli: CliRunner, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults are written as `Default: …`, and the comments of examples start in one column."""
    monkeypatch.setenv("COLUMNS", "80")
    text = cli(*command.split(), "--help").out
    assert "[default" not in text
    examples = text.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    columns = {match.end() for line in examples if (match := re.match(r"    \S+(?: \S+)*  +(?=\S)", line))}
    assert len(columns) <= 1, examples


@pytest.mark.parametrize("group", ["", "keep"])
def test_help_shows_complete_sentences(cli: CliRunner, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description of each command is shown completely, also on a narrow terminal."""
    descriptions = list(COMMANDS.values()) if not group else [text for _, text in ACTIONS.values()]
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        text = " ".join(cli(*group.split(), "--help").out.split())
        assert [description for description in descriptions if description not in text] == []


def test_suggests_command_for_path_or_typo(cli: CliRunner, demo_home: Path) -> None:
    """A home, a transcript or a misspelt command instead of a command: exit code 2, with a suggestion."""
    path = home_counts.main_transcripts(demo_home)[0]
    suggestions = {
        str(demo_home): f"`threadline --home {demo_home}`",
        str(path): f"`threadline entries {path}`",
        "doctr": "Unknown command 'doctr'. Did you mean `threadline doctor`?",
        "Entries": "`threadline entries`",
        "help": "`threadline --help`",
        "sessions": "`threadline list`",
        "find": "`threadline search`",
        "daily": "`threadline usage --by day`",
        "frobnicate": "Unknown command 'frobnicate'. Commands: list, search, ",
    }
    for word, sentence in suggestions.items():
        result = cli(word)
        assert (result.code, result.out) == (2, "")
        assert sentence in result.err


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], ["--frobnicate"], ["blame"], ["doctor", "--jobs", "0"], ["demo"]]
)
def test_usage_error_points_to_help(cli: CliRunner, arguments: list[str]) -> None:
    """A usage error exits with 2, prints nothing on standard output, and points to the help."""
    result = cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "--help" in result.err
    assert "Traceback" not in result.err


def test_demo_reports_what_it_wrote(cli: CliRunner, tmp_path: Path) -> None:
    """`demo` writes a home that every command can read, says what to do next, and its counts are correct."""
    result = cli("demo", tmp_path / "a home")
    assert result.code == 0
    assert result.out.rstrip().endswith(f"threadline --home '{tmp_path}/a home'")
    report = cli("demo", tmp_path / "twin", "--json").json
    assert set(report) == {"directory", "transcripts", "agents", "lines", "bytes", "projects"}
    assert report["directory"] == str(tmp_path / "twin")
    doctor = cli("doctor", tmp_path / "twin", "--json").json
    overview = cli("--home", tmp_path / "twin", "--json").json
    assert report["transcripts"] == len(home_counts.transcripts(tmp_path / "twin"))
    assert {name: report[name] for name in ("transcripts", "lines", "bytes")} == {
        name: doctor[name] for name in ("transcripts", "lines", "bytes")
    }
    assert (report["agents"], report["projects"]) == (overview["agents"], len(overview["projects"]))
    assert doctor["round_trip"] is None
    assert doctor["drift"] == []
    twins = [[path.read_bytes() for path in home_counts.transcripts(tmp_path / name)] for name in ("a home", "twin")]
    assert twins[0] == twins[1]


def test_demo_prints_the_same_row_in_every_format(cli: CliRunner, tmp_path: Path) -> None:
    """`--jsonl` and `--csv` print one row, equal to the JSON."""
    report = cli("demo", tmp_path / "a", "--json").json
    rows = cli("demo", tmp_path / "b", "--jsonl").jsonl
    assert rows == [{**report, "directory": str(tmp_path / "b")}]
    (cells,) = cli("demo", tmp_path / "c", "--csv").csv
    assert cells == {name: str(value) for name, value in {**report, "directory": tmp_path / "c"}.items()}


LIMITED = [
    "list",
    "search tests",
    "history",
    "calls",
    "errors",
    "files",
    "entries {home}",
    "usage --by session",
    "usage --by hour",
    "blocks",
    "outcomes --by session",
    "tools",
    "explain last",
    "why last",
    "waste --since 2000-01-01",
]


@for_each("command", LIMITED)
def test_limit_of_zero_means_no_limit(cli: CliRunner, demo_home: Path, command: str) -> None:
    """`--limit 0` prints the same table as a limit larger than everything, and more than `--limit 1`."""
    words = command.format(home=demo_home).split()

    def table(limit: int) -> str:
        result = cli(*words, "--home", demo_home, "--limit", str(limit))
        assert result.code in {0, 1}, result.err
        return result.out

    everything = table(0)
    assert everything == table(1_000_000)
    assert len(everything) > len(table(1))


def test_every_limit_accepts_zero(cli: CliRunner) -> None:
    """The help of every command with `--limit` says what 0 means."""
    names = [*COMMANDS, *(f"keep {action}" for action in ACTIONS), "lake usage", "lake search"]
    helps = [" ".join(cli(*name.split(), "--help").out.split()) for name in names]
    limited = [text for text in helps if " --limit N " in text]
    assert len(limited) > 15
    assert [text for text in limited if "0 means no limit" not in text] == []


def test_agents_are_in_the_tree_and_in_usage(cli: CliRunner) -> None:
    """There is no command `agents`; the error names those that show them."""
    result = cli("agents")
    assert result.code == 2
    assert "Did you mean `threadline tree SESSION` or `threadline usage --by agent`?" in result.err


def test_mistakes_have_a_hint(cli: CliRunner, tmp_path: Path) -> None:
    """No session, a folder instead of one, or no number in the range: exit code 2, and what to write."""
    for words, sentence in (
        (
            ["keep", "forget", "--reason", "x"],
            "Missing argument 'SESSION'. Use the start of a session id, or `last` for the newest session.",
        ),
        (
            ["show", str(tmp_path)],
            f"'{tmp_path}' is a folder. Name a transcript, the start of a session id, or `last`.",
        ),
        (["list", "--limit", "x"], "'x' is not a valid whole number."),
        (["waste", "--min", "x"], "'x' is not a valid number."),
        (["waste", "--min", "nan"], "'nan' is not a valid number."),
        (["list", "--limit", "-1"], "-1 is less than 0."),
        (["serve", "--port", "65536"], "65536 is more than 65,535."),
        (["search", "x", "--timeout", "0"], "The time must be longer than 0 seconds."),
    ):
        result = cli(*words)
        assert (result.code, result.out) == (2, "")
        assert result.err.splitlines()[-1].endswith(sentence)
