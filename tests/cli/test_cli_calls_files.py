"""Calls and files of all sessions: `threadline calls` and `threadline files` without a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, call, prompt, transcript, write

import threadline
from threadline.model.session import Session


def test_calls_of_all_sessions_are_sorted_and_unique(cli: CliRunner, demo_home: Path) -> None:
    """All calls of all sessions, newest first, copies counted once."""
    rows = cli("calls", "--home", demo_home, "--limit", "100000", "--json").json
    with threadline.open(demo_home, index=False) as archive:
        ids = {call.id for session in archive.sessions().sessions for call in threadline.read(session.path).calls}
    assert {row["call"] for row in rows} >= ids
    assert len({row["call"] for row in rows}) == len(rows)
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times, reverse=True)


def test_listed_call_equals_the_sessions_call(cli: CliRunner, demo_home: Path) -> None:
    """Tool, input, outcome and place equal those of `threadline calls SESSION`."""
    row = cli("calls", "--home", demo_home, "--limit", "1", "--json").json[0]
    session_calls = cli("calls", row["session"], "--home", demo_home, "--json").json
    (same,) = (call for call in session_calls if call["call"] == row["call"])
    assert {key: row[key] for key in ("tool", "input", "outcome", "seconds", "agent", "place")} == {
        key: same[key] for key in ("tool", "input", "outcome", "seconds", "agent", "place")
    }


def test_limit_of_a_session_keeps_the_newest_calls(cli: CliRunner, demo_home: Path) -> None:
    """`calls SESSION --limit` selects by time, although the calls of agents are listed after those of the main one."""
    with threadline.open(demo_home, index=False) as archive:
        sessions = [session.id for session in archive.sessions() if session.agents]
    has_mixed = False
    for session in sessions:
        rows = cli("calls", str(session), "--home", demo_home, "--json").json
        newest = sorted(rows, key=lambda row: row["timestamp"])[-3:]
        assert cli("calls", str(session), "--home", demo_home, "--limit", "3", "--json").json == [
            row for row in rows if row in newest
        ]
        has_mixed |= newest != rows[-3:]
    assert has_mixed


@pytest.mark.parametrize("command", ["calls", "show"])
def test_project_of_a_session_is_searched_once(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The rows of calls share the session's project: looking through all entries for each call took quadratic time."""
    searches: list[Session] = []
    find_cwds = cast("Callable[[Session], tuple[str, ...]]", Session.__dict__["cwds"].fget)

    def count_search(session: Session) -> tuple[str, ...]:
        searches.append(session)
        return find_cwds(session)

    monkeypatch.setattr(Session, "cwds", property(count_search))
    counts = []
    for size in (2, 20):
        path = write(
            tmp_path / f"{SESSION}.jsonl", *transcript(prompt("go"), *(call("Bash", "ls") for _ in range(size)))
        )
        searches.clear()
        rows = cli(command, path, "--json").json
        rows = rows if command == "calls" else rows["turns"][0]["calls"]
        assert [row["project"] for row in rows] == [find_cwds(threadline.read(path))[0]] * size
        counts.append(len(searches))
    assert counts[0] == counts[1]


def test_filters_calls_by_tool_outcome_time_and_project(cli: CliRunner, demo_home: Path) -> None:
    """Each filter keeps the calls that match it."""
    calls = cli("calls", "--home", demo_home, "--limit", "100000", "--json").json
    failed = cli("calls", "--home", demo_home, "--outcome", "error", "--limit", "100000", "--json").json
    assert failed == [row for row in calls if row["outcome"] == "error"]
    bash = cli("calls", "--home", demo_home, "--tool", "Bash", "--limit", "100000", "--json").json
    assert bash == [row for row in calls if row["tool"] == "Bash"]
    middle = calls[len(calls) // 2]["timestamp"]
    newer = cli("calls", "--home", demo_home, "--since", middle, "--limit", "100000", "--json").json
    assert newer == [row for row in calls if row["timestamp"] >= middle]
    project = calls[0]["project"]
    project_calls = cli("calls", "--home", demo_home, "--project", project, "--limit", "100000", "--json").json
    assert project_calls == [row for row in calls if project in row["project"]]


def test_files_lists_each_session_that_touched_a_file(cli: CliRunner, demo_home: Path) -> None:
    """`--path` matches the end of a path. There is one row per session, the last touched first."""
    files = cli("files", "--home", demo_home, "--limit", "100000", "--json").json
    name = files[0]["path"].rsplit("/", 1)[-1]
    rows = cli("files", "--home", demo_home, "--path", name, "--limit", "100000", "--json").json
    assert rows == [row for row in files if row["path"].endswith(f"/{name}")]
    assert sum(row["reads"] for row in files)
    assert sum(row["writes"] for row in files)
    lasts = [row["last"] for row in files]
    assert lasts == sorted(lasts, reverse=True)


@pytest.mark.parametrize("command", ["calls", "files"])
def test_project_cannot_be_combined_with_a_session(cli: CliRunner, demo_home: Path, command: str) -> None:
    """`--project` with a session exits with 2. A project without matches exits with 1."""
    refused = cli(command, "last", "--project", "app", "--home", demo_home)
    assert (refused.code, "--project filters all sessions; omit SESSION to use it." in refused.err) == (2, True)
    empty = cli(command, "--project", "no such project", "--home", demo_home)
    assert empty.code == 1
    assert empty.err.startswith("threadline: No ")


def test_limit_and_since_filter_the_calls_of_a_session(cli: CliRunner, demo_home: Path) -> None:
    """They keep the session's order. If none matches, the message says when there were calls."""
    calls = cli("calls", "last", "--home", demo_home, "--json").json
    newest = sorted(calls, key=lambda row: row["timestamp"])[-3:]
    limited = cli("calls", "last", "--limit", "3", "--home", demo_home, "--json").json
    assert limited == [row for row in calls if row in newest]
    middle = calls[len(calls) // 2]["timestamp"]
    newer = cli("calls", "last", "--since", middle, "--home", demo_home, "--json").json
    assert newer == [row for row in calls if row["timestamp"] >= middle]
    empty = cli("calls", "last", "--until", "2001-01-01", "--home", demo_home)
    assert (empty.code, empty.out) == (1, "")
    assert f"The session's calls are from {min(row['timestamp'] for row in calls)[:10]}" in empty.err


def test_limit_and_since_filter_the_files_of_a_session(cli: CliRunner, demo_home: Path) -> None:
    """A period keeps the files touched in it."""
    session = cli("files", "--home", demo_home, "--limit", "1", "--json").json[0]["session"]
    files = cli("files", session, "--home", demo_home, "--json").json
    last = cli("files", session, "--limit", "1", "--home", demo_home, "--json").json
    assert len(last) == 1
    assert last[0] in files
    assert cli("files", session, "--since", "2001-01-01", "--home", demo_home, "--json").json == files
    empty = cli("files", session, "--until", "2001-01-01", "--home", demo_home)
    assert (empty.code, empty.out) == (1, "")
    assert f"touched {len(files)} in total" in empty.err


@pytest.mark.parametrize("command", ["calls", "files"])
def test_machine_formats_are_not_limited(cli: CliRunner, demo_home: Path, command: str) -> None:
    """The table shows 50 rows and says so. `--since` after `--until` is refused."""
    rows = cli(command, "--home", demo_home, "--json").json
    assert rows == cli(command, "--home", demo_home, "--limit", "100000", "--json").json
    assert cli(command, "--home", demo_home, "--limit", "2", "--jsonl").jsonl == rows[:2]
    if len(rows) > 50:
        assert "Use --limit N" in cli(command, "--home", demo_home).out
    reversed_times = cli(command, "--since", "2026-02-01", "--until", "2026-01-01", "--home", demo_home)
    assert (reversed_times.code, "since 2026-02-01, until 2026-01-01." in reversed_times.err) == (2, True)


def test_suggests_a_similar_tool(cli: CliRunner, demo_home: Path) -> None:
    """An unknown tool gets a suggestion. An empty period names the newest call."""
    empty = cli("calls", "--tool", "Bsh", "--home", demo_home)
    assert (empty.code, "no tool matches 'Bsh'; did you mean Bash?" in empty.err) == (1, True)
    empty = cli("calls", "--since", "2099-01-01", "--home", demo_home)
    assert (empty.code, "The newest call is from 20" in empty.err) == (1, True)


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_table_fits_terminal(cli: CliRunner, demo_home: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    for command in ("calls", "files"):
        assert max(map(len, cli(command, "--home", demo_home).out.splitlines())) <= width
