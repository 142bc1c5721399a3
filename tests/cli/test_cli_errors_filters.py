"""`threadline errors --tool`, `--project` and `--limit`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import Pen, call, prompt, transcript, write

APP, SITE = "5e551011-0000-4000-8000-000000000001", "5e551011-0000-4000-8000-000000000002"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with failed calls in two projects."""
    for session, project, tools in ((APP, "app", ("Bash", "View", "Bash")), (SITE, "site", ("Edit",))):
        calls = [call(tool, {"command": f"{tool} in {project}"}, result="it failed", error=True) for tool in tools]
        pen = Pen(session, cwd=f"/work/{project}")
        rows = transcript(prompt("go"), *calls, pen=pen)
        write(tmp_path / f"home/projects/-work-{project}/{session}.jsonl", *rows)
    return tmp_path / "home"


def test_tool_is_found_by_any_case_and_by_its_old_name(cli: CliRunner, home: Path) -> None:
    """`--tool bash` matches Bash and `--tool Read` View, unless `--exact-tools`."""

    def tools(*options: str) -> list[str]:
        return [row["tool"] for row in cli("errors", "--home", home, "--json", *options).json]

    assert tools("--tool", "bash") == ["Bash", "Bash"]
    assert tools("--tool", "Read", "--tool", "edit") == ["Edit", "View"]
    assert tools("--tool", "Read", "--exact-tools") == []


def test_project_and_limit(cli: CliRunner, home: Path) -> None:
    """`--project` matches a part of the path; `--limit` keeps the newest, oldest first."""
    rows = cli("errors", "--home", home, "--project", "APP", "--json").json
    assert [row["tool"] for row in rows] == ["Bash", "View", "Bash"]
    newest = cli("errors", APP, "--home", home, "--limit", "2", "--json").json
    assert [row["timestamp"] for row in newest] == [row["timestamp"] for row in rows[-2:]]
    assert "Showing the newest 1." in cli("errors", "--home", home, "--limit", "1").out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--tool", "Zork"), "No failures of Zork. Tools with failures: Bash (2), Edit (1), View (1)."),
        (("--project", "moon"), "No failures in projects that match 'moon'. Projects with failures: /work/"),
        (("--project", "site", "--tool", "Bash"), "None of 4 failures matches all filters. Remove one."),
        (("--tool", "Bash", "--until", "2020-01-01"), "No failures in that time. Other failures are from 2026-01-05"),
    ],
)
def test_nothing_found_says_what_there_is(cli: CliRunner, home: Path, options: tuple[str, ...], sentence: str) -> None:
    """The message names the tools, projects or times that have failures."""
    result = cli("errors", "--home", home, *options)
    assert result.code == 1
    assert sentence in result.err


def test_project_cannot_be_combined_with_a_session(cli: CliRunner, home: Path) -> None:
    """As for `calls`."""
    assert cli("errors", APP, "--home", home, "--project", "app").code == 2


@pytest.mark.parametrize("session", [(), (APP,)], ids=["all", "one"])
def test_calls_ignore_the_case_of_tools(cli: CliRunner, home: Path, session: tuple[str, ...]) -> None:
    """`calls --tool bash` lists what `search tool:bash` finds, in one session and in all."""
    rows = cli("calls", *session, "--home", home, "--tool", "bash", "--json").json
    assert [row["tool"] for row in rows] == ["Bash", "Bash"]
