"""Help, exit codes and the demo command."""

from __future__ import annotations

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


@for_each("command", ["", *COMMANDS, *(f"keep {action}" for action in ACTIONS)])
@for_each("option", ["--help", "-h"])
def test_every_command_has_examples(cli: CliRunner, command: str, option: str) -> None:
    """`--help` and `-h` of every command show how it is used, with examples, and succeed."""
    result = cli(*command.split(), option)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: threadline")
    assert "Examples:" in result.out
    assert result.out.split("Examples:")[1].count("threadline ") >= 3


def test_help_names_every_command(cli: CliRunner) -> None:
    """The help of `threadline` lists every command with a line of what it does."""
    shown = cli("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in shown


@for_each("name", COMMANDS)
def test_the_table_of_commands_is_what_their_help_says(name: str) -> None:
    """The one-line help in the table is how the command's own help begins."""
    command = commands.threadline.get_command(click.Context(commands.threadline), name)
    assert command is not None
    assert (command.help or "").startswith(COMMANDS[name].rstrip("."))


def test_the_version(cli: CliRunner) -> None:
    """`--version` and `-V` say which version this is."""
    for option in ("--version", "-V"):
        assert cli(option).out.split()[-1] == threadline.__version__


@for_each("command", ["", *COMMANDS])
def test_help_fits_a_terminal(cli: CliRunner, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of the help is longer than the 80 columns of a terminal, examples included."""
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, cli(*command.split(), "--help").out.splitlines())) <= 80


def test_a_path_or_a_slip_in_place_of_a_command(cli: CliRunner, demo_home: Path) -> None:
    """A home, a transcript or a misspelt command where a command is due: exit code 2, and what was meant."""
    path = home_counts.main_transcripts(demo_home)[0]
    meant = {
        str(demo_home): f"`threadline --home {demo_home}`",
        str(path): f"`threadline entries {path}`",
        "doctr": "Unknown command 'doctr'. Did you mean `threadline doctor`?",
        "Entries": "`threadline entries`",
        "frobnicate": "Unknown command 'frobnicate'. Commands: list, search, ",
    }
    for word, sentence in meant.items():
        result = cli(word)
        assert (result.code, result.out) == (2, "")
        assert sentence in result.err


@pytest.mark.parametrize(
    "question", [["frobnicate"], ["--frobnicate"], ["entries"], ["doctor", "--jobs", "0"], ["demo"]]
)
def test_a_wrong_word_is_an_error_that_helps(cli: CliRunner, question: list[str]) -> None:
    """What cannot be understood: exit code 2, nothing on standard output, and where help is."""
    result = cli(*question)
    assert (result.code, result.out) == (2, "")
    assert "--help" in result.err
    assert "Traceback" not in result.err


def test_the_demo_says_what_it_wrote(cli: CliRunner, tmp_path: Path) -> None:
    """`demo` writes a home of which every command can tell, and says what to do next; figures are true."""
    result = cli("demo", tmp_path / "a home")
    assert result.code == 0
    assert result.out.rstrip().endswith(f"threadline --home '{tmp_path}/a home'")
    made = cli("demo", tmp_path / "twin", "--json").json
    assert set(made) == {"directory", "transcripts", "agents", "lines", "bytes", "projects"}
    assert made["directory"] == str(tmp_path / "twin")
    seen = cli("doctor", tmp_path / "twin", "--json").json
    overview = cli("--home", tmp_path / "twin", "--json").json
    assert made["transcripts"] == len(home_counts.transcripts(tmp_path / "twin"))
    assert {name: made[name] for name in ("transcripts", "lines", "bytes")} == {
        name: seen[name] for name in ("transcripts", "lines", "bytes")
    }
    assert (made["agents"], made["projects"]) == (overview["agents"], len(overview["projects"]))
    assert seen["round_trip"] is None
    assert seen["drift"] == []
    twins = [[path.read_bytes() for path in home_counts.transcripts(tmp_path / name)] for name in ("a home", "twin")]
    assert twins[0] == twins[1]


def test_a_demo_has_rows_in_every_format(cli: CliRunner, tmp_path: Path) -> None:
    """`--jsonl` and `--csv` print one row, equal to the JSON."""
    whole = cli("demo", tmp_path / "a", "--json").json
    rows = cli("demo", tmp_path / "b", "--jsonl").jsonl
    assert rows == [{**whole, "directory": str(tmp_path / "b")}]
    (cells,) = cli("demo", tmp_path / "c", "--csv").csv
    assert cells == {name: str(one) for name, one in {**whole, "directory": tmp_path / "c"}.items()}
