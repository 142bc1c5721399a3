"""Tests of `Archive.tools`: counts, durations, programs and costs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import SESSION, Pen, Row, call, prompt, transcript, write

import threadline
from threadline.errors import BadQuery
from threadline.insight import ToolCall, add_up_calls

COPY = "5e551011-0000-4000-8000-000000000009"
DENIED = "The user doesn't want to proceed with this tool use. The tool use was rejected"


def make_home(folder: Path) -> Path:
    """A session with some calls, and a fork that repeats them."""
    rows = transcript(
        prompt("go"),
        call("Read", {"file_path": "/a"}, "text " * 50, input=1000),
        call("View", {"file_path": "/b"}, "text", input=1200),
        call("Bash", {"command": "cd x && sudo git status | head"}, "ok", input=1400),
        call("Bash", {"command": "git push"}, "Exit code 1\nno", error=True, input=1600),
        call("Bash", {"command": "rm -rf x"}, DENIED, error=True, input=1800),
        call("mcp__shop__order", {}, "done", input=2000),
        call("Grep", {"pattern": "x"}, input=2200),
        pen=Pen(SESSION, cwd="/work/app", version="2.1.300"),
    )
    write(folder / f"projects/-work-app/{SESSION}.jsonl", *rows)
    write(folder / f"projects/-work-app/{COPY}.jsonl", *(_fork(row) for row in rows if isinstance(row, dict)))
    return folder


def _fork(row: Row) -> Row:
    return {**row, "sessionId": COPY, "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}


@pytest.fixture
def archive(tmp_path: Path) -> threadline.Archive:
    """The archive of that home."""
    return threadline.open(make_home(tmp_path), index=tmp_path / "index.sqlite", keep=False, tz="UTC")


def test_tools(archive: threadline.Archive) -> None:
    """Each call once, failures by kind, a renamed tool under its current name."""
    groups = {group.key: group for group in archive.tools()}
    assert {key: group.calls for key, group in groups.items()} == {
        "Bash": 3,
        "Read": 2,
        "mcp__shop__order": 1,
        "Grep": 1,
    }
    shell = groups["Bash"]
    assert (shell.ok, shell.errors, shell.exit_codes, shell.denied) == (1, 1, 1, 1)
    assert shell.failure_rate == pytest.approx(2 / 3)
    assert (shell.median, shell.p95) == (1.0, 1.0)
    assert groups["Grep"].pending == 1
    assert groups["Grep"].median is None
    read = groups["Read"]
    assert read.output_tokens
    assert read.carried is not None
    causes = [cause for cause in archive.causes() if cause.kind == "result" and cause.name in {"Read", "View"}]
    assert read.output_tokens == sum(cause.tokens for cause in causes)
    amount = sum((cause.amount for cause in causes), Decimal(0))
    assert read.carried == amount.quantize(Decimal("0.000001"))


def test_keys(archive: threadline.Archive) -> None:
    """Programs, servers, models, versions, projects and times."""

    def calls(by: str) -> dict[str, int]:
        return {group.key: group.calls for group in archive.tools(by, costs=False)}

    assert calls("command") == {"git": 2, "head": 1, "rm": 1}
    assert calls("server") == {"(none)": 6, "shop": 1}
    assert calls("version") == {"2.1.300": 7}
    assert list(calls("model").values()) == [7]
    assert calls("project") == {"/work/app": 7}
    assert calls("day") == {"2026-01-05": 7}
    assert calls("week") == {"2026-01-05": 7}
    with pytest.raises(BadQuery):
        archive.tools("colour")


def test_filters(archive: threadline.Archive) -> None:
    """Tools, sessions, projects and periods. The fork has no calls of its own."""
    assert [group.key for group in archive.tools(tools="View", costs=False)] == ["Read"]
    assert sum(group.calls for group in archive.tools(session=SESSION, costs=False)) == 7
    assert not archive.tools(session=COPY, costs=False)
    assert not archive.tools(project="elsewhere", costs=False)
    assert not archive.tools(until="2020-01-01", costs=False)
    assert not list(archive.tools("day", limit=0, costs=False))
    groups = archive.tools(limit=1, costs=False)
    assert (groups[0].key, groups[0].carried, groups.more) == ("Bash", None, 3)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
def test_quantiles(durations: list[int]) -> None:
    """At least half, or 95 percent, of the durations are not greater, and each is one of them."""
    calls: list[ToolCall] = [(("x",), str(at), "ok", None, duration) for at, duration in enumerate(durations)]
    (group,) = add_up_calls(calls, None, "tool")
    for value, share in ((group.median, 0.5), (group.p95, 0.95)):
        assert value is not None
        milliseconds = round(value * 1000)
        assert milliseconds in durations
        assert sum(duration <= milliseconds for duration in durations) >= share * len(durations)
        assert sum(duration < milliseconds for duration in durations) < share * len(durations)
