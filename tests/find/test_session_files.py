"""Tests of finding the transcripts of one session."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.find.home_files import OTHER_SESSION, SESSION, write

from threadline.find import (
    DirectoryWalk,
    OutOfTime,
    find_main_transcript,
    note_session_links,
    recent_transcripts,
    session_todo_files,
    session_transcripts,
)
from threadline.find import sibling_transcripts as siblings
from threadline.find.listing import Directory
from threadline.model.homes import NO_HOMES, Home, Transcript

MAIN = f"projects/-a/{SESSION}.jsonl"


def names(home: Path, transcripts: list[Transcript]) -> list[tuple[str, str]]:
    """Return each transcript's path below `projects`, and its folder."""
    return [(t.path.relative_to(home / "projects").as_posix(), t.folder) for t in transcripts]


def test_agents_in_other_projects_belong_to_the_session(tmp_path: Path) -> None:
    """If the session has a transcript in two projects, each has the agents of its own folder."""
    main = write(tmp_path, MAIN)
    for folder in "abc":
        write(tmp_path, f"projects/-{folder}/{SESSION}/subagents/agent-{folder}.jsonl")
    write(tmp_path, f"projects/-b/{SESSION}.jsonl")
    below, beside = session_transcripts(main)
    assert names(tmp_path, below) == [
        (f"-a/{SESSION}/subagents/agent-a.jsonl", "-a"),
        (f"-c/{SESSION}/subagents/agent-c.jsonl", "-c"),
    ]
    assert beside == []


def test_symlinked_session_directory_is_not_followed(tmp_path: Path) -> None:
    """As in a listing of the home."""
    main = write(tmp_path, MAIN)
    write(tmp_path, "elsewhere/subagents/agent-a.jsonl")
    main.with_suffix("").symlink_to(tmp_path / "elsewhere")
    assert session_transcripts(main) == ([], [])


def test_agent_that_vanishes_after_it_was_listed_is_left_out(tmp_path: Path) -> None:
    """Claude Code may delete it at any time."""
    main = write(tmp_path, MAIN)
    kept, deleted = (write(tmp_path, f"projects/-a/{SESSION}/subagents/agent-{name}.jsonl") for name in "ab")

    class Walk(DirectoryWalk):
        def scan(self, path: str, parts: tuple[str, ...] = ()) -> Directory:
            directory = super().scan(path, parts)
            if directory.files:
                deleted.unlink()
            return directory

    below, _beside = session_transcripts(main, walk=Walk())
    assert [transcript.path for transcript in below] == [kept]


def test_other_files_are_not_transcripts_of_the_session(tmp_path: Path) -> None:
    """In a session's directory, only agents' transcripts and journals are its transcripts."""
    main = write(tmp_path, MAIN)
    agent = write(tmp_path, f"projects/-a/{SESSION}/subagents/workflows/run/agent-1.jsonl")
    journal = write(tmp_path, f"projects/-a/{SESSION}/subagents/workflows/run/journal.jsonl")
    write(tmp_path, f"projects/-a/{SESSION}/tool-results/x.jsonl")
    write(tmp_path, f"projects/-a/{SESSION}/x.jsonl")
    below, _beside = session_transcripts(main)
    assert [transcript.path for transcript in below] == [agent, journal]


def test_siblings_are_the_other_transcripts_of_the_folder(tmp_path: Path) -> None:
    """Main transcripts and agents' transcripts, without symlinks and without those of sessions' directories."""
    main = write(tmp_path, MAIN)
    other = write(tmp_path, f"projects/-a/{OTHER_SESSION}.jsonl")
    agent = write(tmp_path, "projects/-a/agent-1.jsonl")
    meta = write(tmp_path, "projects/-a/agent-1.meta.json")
    write(tmp_path, f"projects/-a/{OTHER_SESSION}/subagents/agent-2.jsonl")
    (tmp_path / "projects/-a/link.jsonl").symlink_to(other)
    assert [(t.path, t.meta) for t in siblings(main)] == [(agent, meta), (other, None)]
    assert [transcript.path for transcript in session_transcripts(main)[1]] == [agent]
    assert session_transcripts(agent) == ([], [])


def test_finds_the_main_transcript_in_any_project(tmp_path: Path) -> None:
    """A `projects` that is a symlink to something that contains the home is not searched."""
    main = write(tmp_path / "home", MAIN)
    assert find_main_transcript(SESSION, Home(tmp_path / "home", "option")) == main
    assert find_main_transcript(OTHER_SESSION, Home(tmp_path / "home", "option")) is None
    around = tmp_path / "home" / "projects" / "around"
    around.mkdir()
    (around / "projects").symlink_to(tmp_path / "home" / "projects")
    assert find_main_transcript(SESSION, Home(around, "option")) is None
    assert list(recent_transcripts(Home(around, "option"), 0, too_late=lambda: False)) == []


def test_listing_stops_at_the_deadline(tmp_path: Path) -> None:
    """If a folder is too large to list in time, what was listed so far is returned."""
    for number in range(600):
        write(tmp_path, f"projects/-a/{number:08}-0000-4000-8000-000000000000.jsonl")
    calls = iter([False, False, False, True])
    listed: list[Transcript] = []
    with pytest.raises(OutOfTime):
        listed.extend(recent_transcripts(Home(tmp_path, "option"), 0, too_late=lambda: next(calls)))
    assert len(listed) == 512


def test_files_under_todos_belong_to_the_session_of_that_name(tmp_path: Path) -> None:
    """Names that begin alike, or differ in case, are those of other sessions. Links are reported for their session."""
    main = write(tmp_path, "projects/-a/notes.jsonl")
    write(tmp_path, "todos/notes-agent-notes.json")
    write(tmp_path, "todos/notes-agent-a1.json")
    write(tmp_path, "todos/Notes-agent-Notes.json")
    write(tmp_path, "todos/notes2-agent-notes2.json")
    assert [agent for agent, _path in session_todo_files(main)] == ["a1", None]
    for name in ("notes-agent-a2.json", "notes2-agent-a3.json"):
        (tmp_path / "todos" / name).symlink_to(main)
    walk = DirectoryWalk()
    note_session_links(main, "notes", NO_HOMES, walk)
    assert [Path(problem.place.transcript).name for problem in walk.problems] == ["notes-agent-a2.json"]
