"""A project's true path, by evidence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.find.a_home import ANOTHER, SESSION, project, write

from threadline.find import folder_name
from threadline.model.homes import PathSource

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "-w-my-app"
MAIN = f"projects/{FOLDER}/{SESSION}.jsonl"


def resolved(home: Path, folder: str = FOLDER) -> tuple[str | None, PathSource]:
    """Look at the home and give what is known of the project's path."""
    one = project(home, folder)
    return one.path, one.path_source


def test_the_first_cwd_wins(tmp_path: Path) -> None:
    """Scanning goes on past lines without a cwd and past garbage; later ones do not count."""
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
    assert resolved(tmp_path) == ("/w/my_app", PathSource.CWD)


def test_an_empty_transcript_is_passed_over(tmp_path: Path) -> None:
    """Where the first transcript says nothing, the next one is read."""
    write(tmp_path, MAIN)
    write(tmp_path, f"projects/{FOLDER}/{ANOTHER}.jsonl", {"cwd": "/w/my_app"})
    assert resolved(tmp_path) == ("/w/my_app", PathSource.CWD)


def test_agents_tell_where_main_transcripts_are_gone(tmp_path: Path) -> None:
    """An agent's transcript without its session's is normal, and names the path as well."""
    write(tmp_path, f"projects/{FOLDER}/{SESSION}/subagents/agent-a1.jsonl", {"cwd": "/w/my_app"})
    assert resolved(tmp_path) == ("/w/my_app", PathSource.CWD)


def test_a_session_begun_further_down_belongs_to_the_directory_above(tmp_path: Path) -> None:
    """A worktree or subdirectory is where the work happened; the project is what the folder names."""
    write(tmp_path, MAIN, {"cwd": "/w/my_app/.claude/worktrees/x"})
    assert resolved(tmp_path) == ("/w/my_app", PathSource.CWD)


@pytest.mark.parametrize(
    "row",
    [
        {"type": "relocated", "relocatedCwd": "/w/my_app"},
        {"type": "worktree-state", "worktreeSession": {"originalCwd": "/w/my_app"}},
    ],
)
def test_a_moved_session_says_so(tmp_path: Path, row: object) -> None:
    """A cwd that does not fit the folder gives way to the directory the session was moved to or came from."""
    write(tmp_path, MAIN, {"cwd": "/elsewhere"}, {"worktreeSession": "junk", "relocatedCwd": []}, row)
    assert resolved(tmp_path) == ("/w/my_app", PathSource.RELOCATED)


def test_a_folder_named_freely_keeps_its_cwd(tmp_path: Path) -> None:
    """An embedder may name the folder as it likes: then the cwd is the truth."""
    write(tmp_path, f"projects/my-name/{SESSION}.jsonl", {"cwd": "/somewhere/else"})
    assert resolved(tmp_path, "my-name") == ("/somewhere/else", PathSource.CWD)


@pytest.mark.parametrize("index", [{"originalPath": "/w/my_app"}, {"entries": [3, {"projectPath": "/w/my_app"}]}])
def test_the_sessions_index_comes_third(tmp_path: Path, index: object) -> None:
    """Without a cwd the sessions index is believed."""
    write(tmp_path, MAIN, {"type": "summary"})
    write(tmp_path, f"projects/{FOLDER}/sessions-index.json", index)
    assert resolved(tmp_path) == ("/w/my_app", PathSource.INDEX)


@pytest.mark.parametrize("place", [".claude/.claude.json", ".claude/.config.json", ".claude.json"])
def test_the_configuration_names_projects(tmp_path: Path, place: str) -> None:
    """The keys of `projects` are encoded and compared, wherever the configuration lies."""
    write(tmp_path, place, {"oauthAccount": {}, "projects": {"/w/other": 1, "/w/my.app": {"lastCost": 1}}})
    write(tmp_path, f".claude/projects/{FOLDER}/sessions-index.json", "{broken")
    assert resolved(tmp_path / ".claude") == ("/w/my.app", PathSource.CONFIG)


def test_the_history_names_projects(tmp_path: Path) -> None:
    """Where all else is silent, the prompts typed name the project; rows that are broken do not matter."""
    write(tmp_path, ".claude.json", '{"projects": [1]}')
    write(tmp_path, MAIN)
    write(tmp_path, "history.jsonl", "{\n", {"project": 1}, {"project": "/w/my app"}, {"project": "/w/my.app"})
    assert resolved(tmp_path) == ("/w/my app", PathSource.HISTORY)


def test_long_names_are_known_by_their_beginning(tmp_path: Path) -> None:
    """The suffix of a long name is not compared."""
    path = "/w/" + 220 * "x"
    folder = folder_name(path)[:200] + "-other"
    write(tmp_path, "history.jsonl", {"project": path})
    (tmp_path / "projects" / folder).mkdir(parents=True)
    assert resolved(tmp_path, folder) == (path, PathSource.HISTORY)


@pytest.mark.skipif(os.name == "nt", reason="the folder of a test is too deep there")
def test_the_disk_is_asked_last(tmp_path: Path) -> None:
    """A directory that exists and has that name is the project; two that have it leave it unknown."""
    real = tmp_path / "on_disk" / "an.app"
    folder = folder_name(real)
    (tmp_path / "home" / "projects" / folder).mkdir(parents=True)
    assert resolved(tmp_path / "home", folder) == (None, PathSource.UNKNOWN)
    real.mkdir(parents=True)
    assert resolved(tmp_path / "home", folder) == (str(real), PathSource.DISK)
    (tmp_path / "on_disk" / "an-app").mkdir()
    assert resolved(tmp_path / "home", folder) == (None, PathSource.UNKNOWN)


def test_no_evidence_leaves_the_folder_name(tmp_path: Path) -> None:
    """An unknown path is None, never a guess from the name, and the project is called by its folder."""
    (tmp_path / "projects" / "-nowhere-to-be-found").mkdir(parents=True)
    assert resolved(tmp_path, "-nowhere-to-be-found") == (None, PathSource.UNKNOWN)
    assert project(tmp_path, "-nowhere-to-be-found").name == "-nowhere-to-be-found"


def test_a_huge_transcript_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A cwd beyond the first megabyte is not looked for; a line longer than that is no obstacle."""
    write(tmp_path, MAIN, "x" * (1 << 20) + "\n", {"cwd": "/w/my_app"})
    assert resolved(tmp_path) == (None, PathSource.UNKNOWN)
    write(tmp_path, f"projects/{FOLDER}/{ANOTHER}.jsonl", {"cwd": "/w/my.app"})
    assert resolved(tmp_path) == ("/w/my.app", PathSource.CWD)


def test_windows_drives_match_in_any_case(tmp_path: Path) -> None:
    """A folder `c--x` belongs to the directory `x` on drive C."""
    write(tmp_path, f"projects/c--x/{SESSION}.jsonl", {"cwd": "C:\\x"})
    assert resolved(tmp_path, "c--x") == ("C:\\x", PathSource.CWD)
