"""Help, exit codes and the demo command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faces import counting
from tests.faces.asking import Asker

import threadline
from threadline.cli.start import COMMANDS


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.parametrize("option", ["--help", "-h"])
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


def test_the_version(ask: Asker) -> None:
    """`--version` says which version this is."""
    assert ask("--version").out.split()[-1] == threadline.__version__


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
    answer = ask("demo", tmp_path / "a home", "--seed", "7", "--megabytes", "0.2")
    assert answer.code == 0
    assert answer.out.rstrip().endswith(f"threadline --home '{tmp_path}/a home'")
    made = ask("demo", tmp_path / "twin", "--seed", "7", "--megabytes", "0.2", "--json").json
    assert set(made) == {"transcripts", "agents", "lines", "bytes", "projects"}
    seen = ask("doctor", tmp_path / "twin", "--json").json
    paths = [path for path in counting.transcripts(tmp_path / "twin") if path.name != "journal.jsonl"]
    assert made["transcripts"] == len(paths)
    assert seen["round_trip"] is None
    assert seen["drift"] == []
    twins = [[path.read_bytes() for path in counting.transcripts(tmp_path / name)] for name in ("a home", "twin")]
    assert twins[0] == twins[1]


def test_a_demo_has_rows_in_every_format(ask: Asker, tmp_path: Path) -> None:
    """`--jsonl` and `--csv` print one row, equal to the JSON."""
    options = ("--megabytes", "0.1", "--transcripts", "2")
    whole = ask("demo", tmp_path / "a", *options, "--json").json
    assert ask("demo", tmp_path / "b", *options, "--jsonl").jsonl == [whole]
    assert ask("demo", tmp_path / "c", *options, "--csv").csv == [{name: str(one) for name, one in whole.items()}]
