"""Tests of `threadline tools`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.runner import CliRunner
from tests.insight.test_tool_stats import make_home


def test_tables_and_rows(cli: CliRunner, tmp_path: Path) -> None:
    """A table, rows for programs, and exit code 1 if there is nothing."""
    home = make_home(tmp_path)
    result = cli("tools", "--home", home)
    assert result.code == 0
    assert result.out.splitlines()[0].split()[-1] == "tool"
    assert cli("tools", "--by", "command", "--csv", "--no-cost", "--home", home).csv[0]["command"] == "git"
    assert cli("tools", "--tool", "Nothing", "--home", home).code == 1
