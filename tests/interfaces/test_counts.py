"""Every count of sessions and calls has one meaning, or the difference is named where it is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import entry_points
from tests.interfaces.identity import CALL, RESULT, UUID, make_prompt, make_reply, write_rows

import threadline

FORK = "5eed0000-0000-4000-8000-000000000002"
AGENTS_ONLY = "5eed0000-0000-4000-8000-000000000003"
SIDE_FILES_ONLY = "5eed0000-0000-4000-8000-000000000004"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session, a fork of it, agents of a deleted session, and a todo list of another."""
    folder = tmp_path / "home/projects/-work-app"
    rows = [
        make_prompt("open the notes", uuid="u1", parentUuid=None),
        make_reply("I will.", CALL, tokens=(7, 5), uuid="a1", parentUuid="u1"),
        make_prompt("", message={"role": "user", "content": RESULT}, uuid="u2", parentUuid="a1"),
    ]
    write_rows(folder / f"{UUID}.jsonl", rows)
    later = {"timestamp": "2025-01-16T10:00:00.000Z"}
    write_rows(folder / f"{FORK}.jsonl", [*rows, make_prompt("go on", uuid="u3", parentUuid="u2", **later)])
    agent = make_reply("Seen.", tokens=(70, 2), uuid="x1", isSidechain=True)
    write_rows(folder / AGENTS_ONLY / "subagents/agent-a1.jsonl", [agent])
    write_rows(tmp_path / f"home/todos/{SIDE_FILES_ONLY}-agent-{SIDE_FILES_ONLY}.json", [])
    return tmp_path / "home"


def _ask(home: Path, *arguments: str | Path) -> Any:
    return entry_points.run_command(*arguments, "--json", "--home", home).json


def _text(*arguments: str | Path) -> str:
    return entry_points.run_command(*arguments).out.decode()


def test_sessions_have_a_conversation_of_their_own(home: Path) -> None:
    """List, overview, page and SQL count two sessions; `usage` and `list` have a row for the third, and say why."""
    assert [row["session"] for row in _ask(home, "list")] == [FORK, UUID, AGENTS_ONLY]
    reasons = [row["unlisted"] for row in _ask(home, "list")]
    assert reasons == [None, None, "the transcript of its session is missing"]
    overview = _ask(home)
    assert (overview["sessions"], overview["listed"], overview["agents_only"]) == (2, 2, 1)
    with threadline.open(home) as archive:
        assert archive.sql("SELECT COUNT(*) AS number FROM sessions") == [{"number": 2}]
        assert archive.open_index().activity().sessions == 2
    usage = _ask(home, "usage", "--by", "session")
    assert {row["session"] for row in usage["rows"]} == {UUID, AGENTS_ONLY}
    (note,) = (note for note in usage["notes"] if "list" in note)
    assert note == (
        f"1 session has only transcripts of agents, so `threadline list` does not count it: {AGENTS_ONLY[:8]}."
    )
    assert not [note for note in _ask(home, "usage")["notes"] if "threadline list" in note]


def test_commands_that_count_more_sessions_than_the_list_say_why(home: Path, tmp_path: Path) -> None:
    """A session with only transcripts of agents costs money and is kept, but it is not in the list."""
    note = f"1 session has only transcripts of agents, so `threadline list` does not count it: {AGENTS_ONLY[:8]}."
    assert "sessions 2 in 1 project; 1 more with only transcripts of agents" in " ".join(_text("--home", home).split())
    keep = tmp_path / "keep"
    _text("keep", "--home", home, "--keep", keep)
    commands: list[list[str | Path]] = [
        ["usage", "--by", "session", "--home", home],
        ["why", "--since", "2020", "--home", home],
        ["outcomes", "--home", home],
        ["digest", "--since", "2020", "--format", "text", "--home", home],
        ["keep", "list", "--keep", keep],
    ]
    assert [command[0] for command in commands if note not in " ".join(_text(*command).split())] == []


def test_keep_names_what_is_not_in_the_list(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of which only agents exist is kept and named; one of which only side files exist is not a session."""
    monkeypatch.setenv("COLUMNS", "500")  # paths may be long
    keep = tmp_path / "keep"
    heading = "At risk: 3 sessions, side files of 1 session without a transcript. Run `threadline keep`."
    assert heading in _text("keep", "status", "--home", home, "--keep", keep)
    ran = _text("keep", "--home", home, "--keep", keep)
    assert "3 sessions (1 with only transcripts of agents)" in ran
    status = _text("keep", "status", "--home", home, "--keep", keep)
    assert "sessions   3, 1 of them with only transcripts of agents (0 deleted by Claude Code)" in status
    assert f"{home}: 3 sessions, 1 of them with only transcripts of agents, " in status
    document = entry_points.run_command("keep", "status", "--home", home, "--keep", keep, "--json").json
    assert (document["sessions"], document["agents_only"], document["homes"][0]["agents_only"]) == (3, 1, 1)


def test_session_in_two_homes_is_one_session_and_two_rows(home: Path, tmp_path: Path) -> None:
    """The overview counts sessions and says how many rows the list has; the list says how many are repeated."""
    for path in home.rglob("*.jsonl"):
        write_rows(tmp_path / "other" / path.relative_to(home), []).write_bytes(path.read_bytes())
    homes = ("--home", home, "--home", tmp_path / "other")
    overview = entry_points.run_command("--json", *homes).json
    assert (overview["sessions"], overview["listed"]) == (2, 4)
    expected = "2 in 2 projects; `list` has 4, because some are in several homes or projects"
    assert expected in " ".join(_text(*homes).split())
    rows = entry_points.run_command("list", "--json", *homes).json
    assert [row["unlisted"] is None for row in rows] == [True] * 4 + [False]
    assert "Rows that are copies of a session in another home or project: 2." in _text("list", *homes)
    assert "Rows that are copies" not in _text("list", "--home", home)


def test_call_in_a_fork_counts_once(home: Path) -> None:
    """The page, the list of calls, the library and SQL count one call; each session has it."""
    assert len(_ask(home, "calls")) == 1
    with threadline.open(home) as archive:
        assert archive.open_index().activity().calls == 1
        assert archive.open_index().tool_counts() == {"Read": 1}
        assert archive.sql("SELECT COUNT(*) AS number FROM calls") == [{"number": 1}]
    server = entry_points.WebClient(home)
    try:
        done = [span["done"]["calls"] for span in server.json("/index.json")["spans"]]
        rows = server.json("/sessions.json")["sessions"]
        by_session = {row["calls"] for row in rows if row["unlisted"] is None}
    finally:
        server.close()
    assert done[-1] == 1
    assert by_session == {1}


def test_prompts_on_a_line_with_other_entries_count_once(tmp_path: Path) -> None:
    """Rows that a crash ran together are several entries of one line: each prompt is one of them, at its own time."""
    rows = [
        make_prompt("first", uuid="u1", timestamp="2025-01-01T10:00:00.000Z"),
        make_reply("Done.", tokens=(7, 5), uuid="a1", parentUuid="u1", timestamp="2025-01-01T10:00:01.000Z"),
        make_prompt("second", uuid="u2", parentUuid="a1", timestamp="2025-01-01T10:00:02.000Z"),
    ]
    path = write_rows(tmp_path / f"home/projects/-work-app/{UUID}.jsonl", rows)
    path.write_bytes(path.read_bytes().replace(b"\n", b"", 2))
    with threadline.open(tmp_path / "home") as archive:
        listed = [(prompt.text, prompt.timestamp) for prompt in archive.prompts()]
        stored = archive.sql("SELECT text, timestamp FROM prompts ORDER BY timestamp DESC")
        assert listed == [(row["text"], datetime.fromisoformat(row["timestamp"])) for row in stored]
        assert [(text, time and time.second) for text, time in listed] == [("second", 2), ("first", 0)]
        assert archive.open_index().activity(datetime(2024, 1, 1, tzinfo=UTC)).prompts == 2
    digest = _ask(tmp_path / "home", "digest", "--since", "2025-01-01", "--until", "2025-02-01")
    assert [session["prompts"] for project in digest["projects"] for session in project["sessions"]] == [2]


def test_prompts_are_what_was_typed(tmp_path: Path) -> None:
    """The page, the digest, SQL and the library count prompts, commands and memory lines, not interrupts and plans."""
    texts = ("look around", "#remember this", "[Request interrupted by user]", "go on")
    rows = [make_prompt(text, uuid=f"u{at}", parentUuid=f"u{at - 1}" if at else None) for at, text in enumerate(texts)]
    rows.append(make_prompt("Implement it.", uuid="u9", parentUuid="u3", planContent="# The plan"))
    rows[1]["message"]["content"] = "<user-memory-input>remember this</user-memory-input>"
    rows.append(make_reply("Done.", tokens=(7, 5), uuid="a1", parentUuid="u9"))
    write_rows(tmp_path / f"home/projects/-work-app/{UUID}.jsonl", rows)
    digest = _ask(tmp_path / "home", "digest", "--since", "2025-01-01", "--until", "2025-02-01")
    assert [session["prompts"] for project in digest["projects"] for session in project["sessions"]] == [3]
    with threadline.open(tmp_path / "home") as archive:
        assert archive.sql("SELECT COUNT(*) AS number FROM prompts") == [{"number": 3}]
        assert archive.open_index().activity().prompts == 3
        assert sorted(prompt.kind for prompt in archive.prompts()) == ["memory", "prompt", "prompt"]
        assert sorted(prompt.kind for prompt in archive.prompts(kinds=("interrupt", "plan"))) == ["interrupt", "plan"]
