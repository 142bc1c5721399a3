"""Help, exit codes and the demo command."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from tests.claims import for_each
from tests.cli import counting
from tests.cli.asking import Asker

import threadline
from threadline.cli import commands
from threadline.cli.commands import COMMANDS
from threadline.cli.keep.group import ACTIONS


@for_each("command", ["", *COMMANDS, *(f"keep {action}" for action in ACTIONS)])
@for_each("option", ["--help", "-h"])
def test_every_command_has_examples(ask: Asker, command: str, option: str) -> None:
    """`--help` and `-h` of every command show how it is used, with examples, and succeed."""
    answer = ask(*command.split(), option)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("Usage: threadline")
    assert "Examples:" in answer.out
    assert answer.out.split("Examples:")[1].count("threadline ") >= 3


def test_help_names_every_command(ask: Asker) -> None:
    """The help of `threadline` lists every command with a line of what it does."""
    shown = ask("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in shown


@for_each("name", COMMANDS)
def test_the_table_of_commands_is_what_their_help_says(name: str) -> None:
    """The one-line help in the table is how the command's own help begins."""
    command = commands.threadline.get_command(click.Context(commands.threadline), name)
    assert command is not None
    assert (command.help or "").startswith(COMMANDS[name].rstrip("."))


def test_the_version(ask: Asker) -> None:
    """`--version` and `-V` say which version this is."""
    for option in ("--version", "-V"):
        assert ask(option).out.split()[-1] == threadline.__version__


@for_each("command", ["", *COMMANDS])
def test_help_fits_a_terminal(ask: Asker, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of the help is longer than the 80 columns of a terminal, examples included."""
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, ask(*command.split(), "--help").out.splitlines())) <= 80


def test_a_path_or_a_slip_in_place_of_a_command(ask: Asker, demo_home: Path) -> None:
    """A home, a transcript or a misspelt command where a command is due: exit code 2, and what was meant."""
    path = counting.mains(demo_home)[0]
    meant = {
        str(demo_home): f"`threadline --home {demo_home}`",
        str(path): f"`threadline entries {path}`",
        "doctr": "Unknown command 'doctr'. Did you mean `threadline doctor`?",
        "Entries": "`threadline entries`",
        "frobnicate": "Unknown command 'frobnicate'. Commands: list, search, ",
    }
    for word, sentence in meant.items():
        answer = ask(word)
        assert (answer.code, answer.out) == (2, "")
        assert sentence in answer.err


@pytest.mark.parametrize(
    "question", [["frobnicate"], ["--frobnicate"], ["entries"], ["doctor", "--jobs", "0"], ["demo"]]
)
def test_a_wrong_word_is_an_error_that_helps(ask: Asker, question: list[str]) -> None:
    """What cannot be understood: exit code 2, nothing on standard output, and where help is."""
    answer = ask(*question)
    assert (answer.code, answer.out) == (2, "")
    assert "--help" in answer.err
    assert "Traceback" not in answer.err


def test_the_demo_says_what_it_wrote(ask: Asker, tmp_path: Path) -> None:
    """`demo` writes a home of which every command can tell, and says what to do next; figures are true."""
    answer = ask("demo", tmp_path / "a home")
    assert answer.code == 0
    assert answer.out.rstrip().endswith(f"threadline --home '{tmp_path}/a home'")
    made = ask("demo", tmp_path / "twin", "--json").json
    assert set(made) == {"directory", "transcripts", "agents", "lines", "bytes", "projects"}
    assert made["directory"] == str(tmp_path / "twin")
    seen = ask("doctor", tmp_path / "twin", "--json").json
    overview = ask("--home", tmp_path / "twin", "--json").json
    assert made["transcripts"] == len(counting.transcripts(tmp_path / "twin"))
    assert {name: made[name] for name in ("transcripts", "lines", "bytes")} == {
        name: seen[name] for name in ("transcripts", "lines", "bytes")
    }
    assert (made["agents"], made["projects"]) == (overview["agents"], len(overview["projects"]))
    assert seen["round_trip"] is None
    assert seen["drift"] == []
    twins = [[path.read_bytes() for path in counting.transcripts(tmp_path / name)] for name in ("a home", "twin")]
    assert twins[0] == twins[1]


def test_a_demo_has_rows_in_every_format(ask: Asker, tmp_path: Path) -> None:
    """`--jsonl` and `--csv` print one row, equal to the JSON."""
    whole = ask("demo", tmp_path / "a", "--json").json
    rows = ask("demo", tmp_path / "b", "--jsonl").jsonl
    assert rows == [{**whole, "directory": str(tmp_path / "b")}]
    (cells,) = ask("demo", tmp_path / "c", "--csv").csv
    assert cells == {name: str(one) for name, one in {**whole, "directory": tmp_path / "c"}.items()}
