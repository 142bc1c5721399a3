"""Fields that every interface knows: renamed tools, agent types, stop reasons, request ids, tiers, slugs, platforms."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, call, prompt, transcript, write

import threadline
from threadline.render import CallItem, View, count_tools, place_items

PROJECT = Path("projects") / "-work-app"
INDEX = pytest.mark.parametrize("index", ["on", "off"])


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """A home whose sessions call tools by their old and new names."""
    parts = (
        prompt("look around"),
        call("View", {"file_path": "/a"}, "old"),
        call("Read", {"file_path": "/b"}, "new"),
        call("LSTool", {"path": "/"}, "a b"),
        call("Task", {"prompt": "go", "description": "d"}, "done"),
        call("Agent", {"prompt": "go on", "description": "d"}, "done"),
    )
    write(tmp_path / PROJECT / f"{SESSION}.jsonl", *transcript(*parts))
    return tmp_path


@pytest.mark.parametrize("session", [(), (SESSION,)])
@pytest.mark.parametrize(
    ("options", "tools"),
    [
        (["--tool", "Read"], ["Read", "View"]),
        (["--tool", "View"], ["Read", "View"]),
        (["--tool", "ls"], ["LSTool"]),
        (["--tool", "Task"], ["Agent", "Task"]),
        (["--tool", "Read", "--exact-tools"], ["Read"]),
        (["--tool", "View", "--exact-tools"], ["View"]),
    ],
)
def test_calls_of_a_tool_include_its_other_name(
    cli: CliRunner, renamed: Path, session: tuple[str, ...], options: list[str], tools: list[str]
) -> None:
    """Each call still has the name that the transcript has."""
    rows = cli("calls", *session, *options, "--home", renamed, "--json").json
    assert sorted(row["tool"] for row in rows) == tools


@INDEX
def test_usage_by_tool_merges_renamed_tools(
    cli: CliRunner, renamed: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """`--exact-tools` keeps the names apart; the totals are equal."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    merged = cli("usage", "--by", "tool", "--home", renamed, "--json").json
    assert {row["tool"]: row["charges"] for row in merged["rows"]} == {"Read": 2, "LS": 1, "Agent": 2}
    exact = cli("usage", "--by", "tool", "--exact-tools", "--home", renamed, "--json").json
    assert {row["tool"] for row in exact["rows"]} == {"View", "Read", "LSTool", "Task", "Agent"}
    assert merged["total"] == exact["total"]
    by_time = cli("usage", "--by", "tool", "--sort", "time", "--home", renamed, "--json").json
    assert [row["tool"] for row in by_time["rows"]] == ["Read", "LS", "Agent"]


def test_search_finds_a_tool_by_its_other_name(cli: CliRunner, renamed: Path) -> None:
    """A regular expression matches the name in the transcript."""

    def lines(query: str) -> list[int]:
        hits = cli("search", query, "--home", renamed, "--all", "--json").json
        return sorted(int(hit["place"].rpartition(":")[2]) for hit in hits)

    assert lines("tool:read") == lines("tool:View") == [2, 3, 4, 5]
    assert lines("tool:/^View$/") == [2, 3]


def test_session_page_filters_by_either_name(renamed: Path) -> None:
    """`count_tools`, which the page's filter lists, has the current names."""
    session = threadline.read(renamed / PROJECT / f"{SESSION}.jsonl")
    assert count_tools(session) == {"Agent": 2, "Read": 2, "LS": 1}
    assert count_tools(session, exact_tools=True)["View"] == 1
    assert _tools_shown(session, View(tools=("Read",))) == ["View", "Read"]
    assert _tools_shown(session, View(tools=("Read",), exact_tools=True)) == ["Read"]


def _tools_shown(session: threadline.Session, view: View) -> list[str]:
    return [placed.item.call.tool for placed in place_items(session.main, view) if isinstance(placed.item, CallItem)]
