"""Calls and files of all sessions: `threadline calls` and `threadline files` without a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner

import threadline


def test_calls_of_all_sessions_come_newest_first_and_each_once(cli: CliRunner, demo_home: Path) -> None:
    """As many as all sessions have together, copies counted once, in the order of time."""
    rows = cli("calls", "--home", demo_home, "--limit", "100000", "--json").json
    with threadline.open(demo_home, index=False) as archive:
        told = {call.id for session in archive.sessions().sessions for call in threadline.read(session.path).calls}
    assert {row["call"] for row in rows} >= told
    assert len({row["call"] for row in rows}) == len(rows)
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times, reverse=True)


def test_a_listed_call_is_the_sessions_own(cli: CliRunner, demo_home: Path) -> None:
    """Tool, input, outcome and place are those that `threadline calls SESSION` tells."""
    row = cli("calls", "--home", demo_home, "--limit", "1", "--json").json[0]
    own = cli("calls", row["session"], "--home", demo_home, "--json").json
    (same,) = (one for one in own if one["call"] == row["call"])
    assert {key: row[key] for key in ("tool", "input", "outcome", "seconds", "agent", "place")} == {
        key: same[key] for key in ("tool", "input", "outcome", "seconds", "agent", "place")
    }


def test_calls_are_chosen_by_tool_outcome_time_and_project(cli: CliRunner, demo_home: Path) -> None:
    """Each filter leaves those that fit it."""
    every = cli("calls", "--home", demo_home, "--limit", "100000", "--json").json
    failed = cli("calls", "--home", demo_home, "--outcome", "error", "--limit", "100000", "--json").json
    assert failed == [row for row in every if row["outcome"] == "error"]
    bash = cli("calls", "--home", demo_home, "--tool", "Bash", "--limit", "100000", "--json").json
    assert bash == [row for row in every if row["tool"] == "Bash"]
    middle = every[len(every) // 2]["timestamp"]
    newer = cli("calls", "--home", demo_home, "--since", middle, "--limit", "100000", "--json").json
    assert newer == [row for row in every if row["timestamp"] >= middle]
    project = every[0]["project"]
    own = cli("calls", "--home", demo_home, "--project", project, "--limit", "100000", "--json").json
    assert own == [row for row in every if project in row["project"]]


def test_files_tell_the_sessions_that_touched_them(cli: CliRunner, demo_home: Path) -> None:
    """A file by the end of its path, one row a session, those touched last first."""
    every = cli("files", "--home", demo_home, "--limit", "100000", "--json").json
    name = every[0]["path"].rsplit("/", 1)[-1]
    rows = cli("files", "--home", demo_home, "--path", name, "--limit", "100000", "--json").json
    assert rows == [row for row in every if row["path"].endswith(f"/{name}")]
    assert sum(row["reads"] for row in every)
    assert sum(row["writes"] for row in every)
    lasts = [row["last"] for row in every]
    assert lasts == sorted(lasts, reverse=True)


@pytest.mark.parametrize("command", ["calls", "files"])
def test_a_project_is_not_asked_for_beside_a_session(cli: CliRunner, demo_home: Path, command: str) -> None:
    """And nothing that fits is said, with exit code 1."""
    refused = cli(command, "last", "--project", "app", "--home", demo_home)
    assert (refused.code, "--project filters all sessions; omit SESSION to use it." in refused.err) == (2, True)
    none = cli(command, "--project", "no such project", "--home", demo_home)
    assert none.code == 1
    assert none.err.startswith("threadline: No ")


def test_of_one_session_the_last_calls_are_listed_in_its_order(cli: CliRunner, demo_home: Path) -> None:
    """And those of a time; where there are none, it says when there were."""
    every = cli("calls", "last", "--home", demo_home, "--json").json
    assert cli("calls", "last", "--limit", "3", "--home", demo_home, "--json").json == every[-3:]
    middle = every[len(every) // 2]["timestamp"]
    newer = cli("calls", "last", "--since", middle, "--home", demo_home, "--json").json
    assert newer == [row for row in every if row["timestamp"] >= middle]
    none = cli("calls", "last", "--until", "2001-01-01", "--home", demo_home)
    assert (none.code, none.out) == (1, "")
    assert f"The session's calls are from {every[0]['timestamp'][:10]}" in none.err


def test_of_one_session_the_files_touched_last_are_listed(cli: CliRunner, demo_home: Path) -> None:
    """In its order; those of a time are those that were touched in it."""
    session = cli("files", "--home", demo_home, "--limit", "1", "--json").json[0]["session"]
    every = cli("files", session, "--home", demo_home, "--json").json
    last = cli("files", session, "--limit", "1", "--home", demo_home, "--json").json
    assert len(last) == 1
    assert last[0] in every
    assert cli("files", session, "--since", "2001-01-01", "--home", demo_home, "--json").json == every
    none = cli("files", session, "--until", "2001-01-01", "--home", demo_home)
    assert (none.code, none.out) == (1, "")
    assert f"touched {len(every)} in total" in none.err


@pytest.mark.parametrize("command", ["calls", "files"])
def test_programs_get_all_unless_they_ask_for_less(cli: CliRunner, demo_home: Path, command: str) -> None:
    """A page has 50, and says so; a time that ends before it begins is refused."""
    every = cli(command, "--home", demo_home, "--json").json
    assert every == cli(command, "--home", demo_home, "--limit", "100000", "--json").json
    assert cli(command, "--home", demo_home, "--limit", "2", "--jsonl").jsonl == every[:2]
    if len(every) > 50:
        assert "Use --limit N" in cli(command, "--home", demo_home).out
    turned = cli(command, "--since", "2026-02-01", "--until", "2026-01-01", "--home", demo_home)
    assert (turned.code, "--since 2026-02-01 is after --until 2026-01-01." in turned.err) == (2, True)


def test_a_tool_that_was_never_called_has_a_near_one(cli: CliRunner, demo_home: Path) -> None:
    """It was meant, most likely; a time in which nothing was done tells the last one."""
    none = cli("calls", "--tool", "Bsh", "--home", demo_home)
    assert (none.code, "no tool is 'Bsh'; did you mean Bash?" in none.err) == (1, True)
    none = cli("calls", "--since", "2099-01-01", "--home", demo_home)
    assert (none.code, "The newest call is from 20" in none.err) == (1, True)


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_the_page_fits(cli: CliRunner, demo_home: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer than the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    for command in ("calls", "files"):
        assert max(map(len, cli(command, "--home", demo_home).out.splitlines())) <= width
