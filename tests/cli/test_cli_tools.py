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


def test_order(cli: CliRunner, tmp_path: Path) -> None:
    """The largest first; of days, the newest."""
    home = make_home(tmp_path)
    for name, key in (("failed", "failure_rate"), ("median", "median"), ("p95", "p95"), ("amount", "carried")):
        values = [float(row[key] or 0) for row in cli("tools", "--sort", name, "--json", "--home", home).json]
        assert values == sorted(values, reverse=True)
    assert cli("tools", "--sort", "amount", "--no-cost", "--home", home).code == 2
    days = cli("tools", "--by", "day", "--no-cost", "--json", "--home", home).json
    assert cli("tools", "--by", "day", "--no-cost", "--limit", "1", "--json", "--home", home).json == days[-1:]
