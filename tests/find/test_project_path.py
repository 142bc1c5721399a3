"""Tests of finding a project's path from evidence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.find.home_files import OTHER_SESSION, SESSION, find_project, write

from threadline.find import folder_name
from threadline.model.homes import PathSource

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "-w-my-app"
MAIN = f"projects/{FOLDER}/{SESSION}.jsonl"


def project_path(home: Path, folder: str = FOLDER) -> tuple[str | None, PathSource]:
    """List the home and return the project's path and its source."""
    found_project = find_project(home, folder)
    return found_project.path, found_project.path_source


def test_first_cwd_wins(tmp_path: Path) -> None:
    """Lines without a cwd and invalid lines are skipped. Later ones do not count."""
    write(
        tmp_path,
        MAIN,
        {"type": "summary"},
        {"cwd": ""},
        {"cwd": 5},
        {"cwd": None},
        '{"cwd": "/torn\n',
        b"\xff\xfe\x00\n",
        "[" * 5000 + '"cwd"\n',
        {"message": {"cwd": "/w/my.app"}},
        {"cwd": "/w/my_app", "message": {"content": "hi"}},
        {"cwd": "/w/my-app"},
    )
    assert project_path(tmp_path) == ("/w/my_app", PathSource.CWD)


def test_empty_transcript_is_skipped(tmp_path: Path) -> None:
    """The next transcript is read."""
    write(tmp_path, MAIN)
    write(tmp_path, f"projects/{FOLDER}/{OTHER_SESSION}.jsonl", {"cwd": "/w/my_app"})
    assert project_path(tmp_path) == ("/w/my_app", PathSource.CWD)


def test_agent_transcripts_provide_the_path(tmp_path: Path) -> None:
    """An agent's transcript without its session's is normal."""
    write(tmp_path, f"projects/{FOLDER}/{SESSION}/subagents/agent-a1.jsonl", {"cwd": "/w/my_app"})
    assert project_path(tmp_path) == ("/w/my_app", PathSource.CWD)


def test_session_in_a_subdirectory_belongs_to_the_project(tmp_path: Path) -> None:
    """The work happened in a worktree or subdirectory. The project is the directory that the folder is named after."""
    write(tmp_path, MAIN, {"cwd": "/w/my_app/.claude/worktrees/x"})
    assert project_path(tmp_path) == ("/w/my_app", PathSource.CWD)


@pytest.mark.parametrize(
    "row",
    [
        {"type": "relocated", "relocatedCwd": "/w/my_app"},
        {"type": "worktree-state", "worktreeSession": {"originalCwd": "/w/my_app"}},
    ],
)
def test_relocated_session(tmp_path: Path, row: object) -> None:
    """If the cwd does not fit the folder, the directory that the session was moved to or came from is used."""
    write(tmp_path, MAIN, {"cwd": "/elsewhere"}, {"worktreeSession": "junk", "relocatedCwd": []}, row)
    assert project_path(tmp_path) == ("/w/my_app", PathSource.RELOCATED)


def test_custom_folder_name_keeps_its_cwd(tmp_path: Path) -> None:
    """A program that embeds Claude Code may choose any folder name. Then the cwd is right."""
    write(tmp_path, f"projects/my-name/{SESSION}.jsonl", {"cwd": "/somewhere/else"})
    assert project_path(tmp_path, "my-name") == ("/somewhere/else", PathSource.CWD)


@pytest.mark.parametrize("index", [{"originalPath": "/w/my_app"}, {"entries": [3, {"projectPath": "/w/my_app"}]}])
def test_sessions_index_is_used_without_a_cwd(tmp_path: Path, index: object) -> None:
    """It comes after cwd and relocation."""
    write(tmp_path, MAIN, {"type": "summary"})
    write(tmp_path, f"projects/{FOLDER}/sessions-index.json", index)
    assert project_path(tmp_path) == ("/w/my_app", PathSource.INDEX)


@pytest.mark.parametrize("place", [".claude/.claude.json", ".claude/.config.json", ".claude.json"])
def test_configuration_lists_projects(tmp_path: Path, place: str) -> None:
    """The keys of `projects` are encoded and compared, wherever the configuration is."""
    write(tmp_path, place, {"oauthAccount": {}, "projects": {"/w/other": 1, "/w/my.app": {"lastCost": 1}}})
    write(tmp_path, f".claude/projects/{FOLDER}/sessions-index.json", "{broken")
    assert project_path(tmp_path / ".claude") == ("/w/my.app", PathSource.CONFIG)


def test_history_lists_projects(tmp_path: Path) -> None:
    """Without other evidence, the prompt history has the project. Invalid rows are skipped."""
    write(tmp_path, ".claude.json", '{"projects": [1]}')
    write(tmp_path, MAIN)
    write(tmp_path, "history.jsonl", "{\n", {"project": 1}, {"project": "/w/my app"}, {"project": "/w/my.app"})
    assert project_path(tmp_path) == ("/w/my app", PathSource.HISTORY)


def test_long_names_match_by_their_beginning(tmp_path: Path) -> None:
    """The suffix of a long name is not compared."""
    path = "/w/" + 220 * "x"
    folder = folder_name(path)[:200] + "-other"
    write(tmp_path, "history.jsonl", {"project": path})
    (tmp_path / "projects" / folder).mkdir(parents=True)
    assert project_path(tmp_path, folder) == (path, PathSource.HISTORY)


@pytest.mark.skipif(os.name == "nt", reason="the folder of a test is too deep there")
def test_existing_directory_is_the_last_evidence(tmp_path: Path) -> None:
    """If two directories have the folder's name, the path is unknown."""
    real = tmp_path / "on_disk" / "an.app"
    folder = folder_name(real)
    (tmp_path / "home" / "projects" / folder).mkdir(parents=True)
    assert project_path(tmp_path / "home", folder) == (None, PathSource.UNKNOWN)
    real.mkdir(parents=True)
    assert project_path(tmp_path / "home", folder) == (str(real), PathSource.DISK)
    (tmp_path / "on_disk" / "an-app").mkdir()
    assert project_path(tmp_path / "home", folder) == (None, PathSource.UNKNOWN)


def test_path_is_unknown_without_evidence(tmp_path: Path) -> None:
    """The path is None, never guessed from the name, and the project is named after its folder."""
    (tmp_path / "projects" / "-nowhere-to-be-found").mkdir(parents=True)
    assert project_path(tmp_path, "-nowhere-to-be-found") == (None, PathSource.UNKNOWN)
    assert find_project(tmp_path, "-nowhere-to-be-found").name == "-nowhere-to-be-found"


def test_only_the_first_megabyte_is_read(tmp_path: Path) -> None:
    """A cwd after that is not found. A longer line does not cause an error."""
    write(tmp_path, MAIN, "x" * (1 << 20) + "\n", {"cwd": "/w/my_app"})
    assert project_path(tmp_path) == (None, PathSource.UNKNOWN)
    write(tmp_path, f"projects/{FOLDER}/{OTHER_SESSION}.jsonl", {"cwd": "/w/my.app"})
    assert project_path(tmp_path) == ("/w/my.app", PathSource.CWD)


def test_windows_drives_match_in_any_case(tmp_path: Path) -> None:
    """A folder `c--x` belongs to the directory `x` on drive C."""
    write(tmp_path, f"projects/c--x/{SESSION}.jsonl", {"cwd": "C:\\x"})
    assert project_path(tmp_path, "c--x") == ("C:\\x", PathSource.CWD)
