"""Tests of `threadline outcomes`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.insight.test_outcomes import make_home
from tests.transcripts import SESSION


def test_sums_and_lists(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each session, or with a session every outcome and a sentence."""
    monkeypatch.setenv("COLUMNS", "140")
    home = make_home(tmp_path)
    result = cli("outcomes", "--home", home)
    assert result.code == 0
    assert "Sort the shelves" in result.out
    result = cli("outcomes", "last", "--home", home)
    assert "amended" in result.out
    assert "1 commit ($0.0013 each); 1 pull request; 1 file changed (+3 -2); 2 lines survive" in result.out
    (row,) = cli("outcomes", "--by", "model", "--json", "--home", home).json
    assert (row["commits"], row["pull_requests"], row["surviving"]) == (1, 1, 2)
    assert len(cli("outcomes", "--list", "--csv", "--home", home).csv) == 7


def test_nothing_and_wrong_options(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 1 if there is nothing, 2 for an error."""
    home = make_home(tmp_path)
    assert cli("outcomes", "--kind", "push", "--home", home).code == 1
    assert "elsewhere" in cli("outcomes", "--project", "elsewhere", "--list", "--home", home).err
    assert cli("outcomes", "--by", "day", "--list", "--home", home).code == 2
    assert cli("outcomes", "--repo", tmp_path / "nowhere", "--home", home).code == 2


@pytest.mark.parametrize("command", ["outcomes", "tools"])
def test_session_is_named_as_elsewhere(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """A name that is too short or that no session has is an error; a transcript is a name."""
    home = make_home(tmp_path)
    short, unknown = cli(command, SESSION[:1], "--home", home), cli(command, "nosuch", "--home", home)
    assert (short.code, "too short" in short.err) == (2, True)
    assert (unknown.code, "nosuch" in unknown.err) == (2, True)
    by_path = cli(command, home / f"projects/-work-app/{SESSION}.jsonl", "--json", "--home", home)
    assert by_path.json == cli(command, SESSION[:8], "--json", "--home", home).json != []


@pytest.mark.parametrize("command", ["outcomes", "tools", "why", "waste", "digest", "usage"])
def test_unknown_project_lists_those_that_exist(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """Every command says the same."""
    result = cli(command, "--project", "nosuch", "--home", make_home(tmp_path))
    assert result.code == 1
    assert "nosuch" in result.err
    assert "/work/app" in result.err
