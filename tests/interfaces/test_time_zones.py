"""A day means the same day in every command, on every page and in the library, with and without an index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import transcripts
from tests.interfaces.entry_points import WebClient, run_command

import threadline

pytestmark = pytest.mark.sample(4)

EVENING = "e0000000-0000-4000-8000-000000000001"
"""A session of 3 November, 18:00 in Los Angeles, which is 4 November in UTC."""
NOON = "e0000000-0000-4000-8000-000000000002"
"""A session of 4 November, 04:00 in Los Angeles, and noon in UTC."""
TIMES = {EVENING: "2026-11-04T02:00:00.000Z", NOON: "2026-11-04T12:00:00.000Z"}
LOS_ANGELES = "America/Los_Angeles"
SELECTED = [
    (LOS_ANGELES, "2026-11-03", {EVENING}),
    (LOS_ANGELES, "2026-11-04", {NOON}),
    ("UTC", "2026-11-03", set()),
    ("UTC", "2026-11-04", {EVENING, NOON}),
]
COMMANDS: dict[str, list[str]] = {
    "list": ["--jsonl"],
    "usage": ["--by", "session", "--jsonl"],
    "calls": ["--jsonl"],
    "errors": ["--jsonl"],
    "files": ["--jsonl"],
    "history": ["--jsonl"],
}
"""Commands with `--since` and `--until` whose rows name their session."""


def _session_rows(session: str) -> Iterator[transcripts.Row]:
    pen = transcripts.Pen(session=session)
    wrote = {"type": "create", "filePath": "/work/app/a.py", "content": "a\n", "structuredPatch": []}
    rows = transcripts.transcript(
        transcripts.prompt("calibrate the harbour"),
        transcripts.call("Bash", "false", result="Exit code 1", error=True, output=9),
        transcripts.call("Write", {"file_path": "/work/app/a.py", "content": "a\n"}, "File created", details=wrote),
        transcripts.reply("AKIAIOSFODNN7REDWOOD", output=5),
        pen=pen,
    )
    for row in rows:
        assert isinstance(row, dict)
        yield {**row, "timestamp": TIMES[session]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with both sessions, and their prompts in history.jsonl."""
    folder = tmp_path_factory.mktemp("zones")
    for session in TIMES:
        transcripts.write(folder / f"projects/-work-app/{session}.jsonl", *_session_rows(session))
    rows: list[transcripts.Row | bytes] = [
        {"display": "calibrate", "timestamp": time, "project": "/work/app", "sessionId": session}
        for session, time in TIMES.items()
    ]
    transcripts.write(folder / "history.jsonl", *rows)
    return folder


def _sessions(text: bytes) -> set[str]:
    """The session of each row."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    return {row["session"] for row in rows}


@pytest.mark.parametrize(("zone", "day", "expected"), SELECTED)
@pytest.mark.parametrize("index", ["", "off"], ids=["index", "files"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_day_selects_the_same_sessions_in_every_command(  # noqa: PLR0917 - what a case consists of
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, index: str, zone: str, day: str, expected: set[str]
) -> None:
    """`--since DAY --until DAY --tz ZONE` selects what happened on that day in that zone."""
    if index and command in {"calls", "files"}:
        pytest.skip("across sessions, this command needs the index")
    monkeypatch.setenv("THREADLINE_INDEX", index)
    result = run_command(command, *COMMANDS[command], "--home", str(home), "--since", day, "--until", day, "--tz", zone)
    assert (_sessions(result.out), result.code) == (expected, 0 if expected else 1)


@pytest.mark.parametrize(("zone", "day", "expected"), SELECTED)
def test_a_day_selects_the_same_sessions_elsewhere(
    home: Path, tmp_path: Path, zone: str, day: str, expected: set[str]
) -> None:
    """Commands with other options or other rows, the page and the library agree."""
    here = ["--home", str(home), "--tz", zone]
    days = ["--since", day, "--until", day]
    code = 0 if expected else 1
    found = run_command("search", f"harbour since:{day} until:{day}", "--jsonl", *here)
    assert (_sessions(found.out), found.code) == (expected, code)
    receipt = run_command("explain", day, "--json", *here)
    assert {message["session"] for message in receipt.json["messages"]} == expected
    windows = run_command("blocks", "--json", *days, *here)
    used = [window for window in windows.json["rows"] if not window["is_gap"]]
    assert {
        session for session, time in TIMES.items() for window in used if window["first"][:13] == time[:13]
    } == expected
    if expected:
        exported = run_command("export", *days, *here, "--format", "md", "--json", "--out", f"{tmp_path}/exported/")
        assert {file["session"] for file in exported.json["files"]} == expected
    for session in TIMES:
        session_code = 0 if session in expected else 1
        path = next(home.glob(f"projects/*/{session}.jsonl"))
        assert run_command("calls", session, *days, *here).code == session_code
        assert run_command("files", session, *days, *here).code == session_code
        assert run_command("errors", session, *days, *here).code == session_code
        assert run_command("entries", str(path), *days, "--tz", zone).code == session_code
    archive = threadline.open(str(home))
    assert archive.ledger().where(since=day, until=day, tz=zone).sessions == expected
    client = WebClient(home)
    try:
        query = f"since={day}&until={day}&tz={zone}"
        for page in ("sessions", "calls", "files"):
            listed = json.dumps(client.json(f"/{page}.json?{query}")[page], default=str)
            assert {session for session in TIMES if session in listed} == expected
    finally:
        client.close()


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (["list"], "Times are America/Los_Angeles."),
        (["search", "harbour"], "Times are America/Los_Angeles."),
        (["history"], "Times are America/Los_Angeles."),
        (["show", EVENING], "2026-11-03 18:00 (America/Los_Angeles)"),
        (["tree", EVENING], "times America/Los_Angeles"),
        (["explain", EVENING], "times in America/Los_Angeles"),
        (["entries", EVENING], "time (America/Lo"),
        (["calls"], "time (America/Los_Angeles)"),
        (["calls", EVENING], "time (America/Los_Angeles)"),
        (["errors"], "time (America/Los_Angeles)"),
        (["files"], "last (America/Los_Angeles)"),
        (["context", EVENING], "time (America/Los_Angeles)"),
        (["blocks"], "Times are America/Los_Angeles."),
        (["usage"], "America/Los_Angeles"),
        ([], "2026-11-03 to 2026-11-04 (America/Los_Angeles)"),
        (["keep", "status"], "last written (America/Los_Angeles)"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and value else None,
)
def test_every_command_names_the_zone_of_its_times(home: Path, arguments: list[str], label: str) -> None:
    """Times are shown in the zone, and the output names it."""
    result = run_command(*arguments, "--home", str(home), "--tz", LOS_ANGELES)
    shown = " ".join(result.out.decode().split())
    assert label in shown
    if arguments[:1] != ["keep"]:
        assert "2026-11-03" in shown or "18:00" in shown
    assert "UTC" not in shown


def test_explain_and_show_agree_on_the_time(home: Path) -> None:
    """Both show the time in the user's zone: 02:00 UTC is 18:00 in Los Angeles."""
    shown = [run_command(name, EVENING, "--home", str(home), "--tz", LOS_ANGELES).out for name in ("show", "explain")]
    assert all(b"18:00" in text and b"02:00" not in text for text in shown)


def test_programs_get_utc(home: Path) -> None:
    """`--tz` does not change the times in JSON."""
    result = run_command("calls", "--jsonl", "--home", str(home), "--tz", LOS_ANGELES)
    assert {json.loads(line)["timestamp"] for line in result.out.splitlines()} <= {
        time.replace(".000Z", "Z") for time in TIMES.values()
    }
