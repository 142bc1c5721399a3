"""Tests of the name of a project's folder."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.find import folder_matches, folder_name
from threadline.find.project_paths import PathsByFolder

LONG = "/home/u/" + 200 * "x"
ANY_TEXT = st.text(st.characters(), max_size=300)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/Users/me/my_proj.v2", "-Users-me-my-proj-v2"),
        ("/home/u/a b", "-home-u-a-b"),
        ("C:\\Users\\Ann\\x", "C--Users-Ann-x"),
        ("/tmp/日本", "-tmp---"),  # noqa: S108 - a vector of the format, not a file
        ("/a/.claude/worktrees/b", "-a--claude-worktrees-b"),
        ("/w/a😀b é", "-w-a--b--"),
        ("/w/e\u0301", "-w--"),
        (LONG, ("-home-u-" + 200 * "x")[:200] + "-kg56d7"),
        ("", ""),
    ],
)
def test_known_names(path: str, name: str) -> None:
    """The names are those that Claude Code was seen to use."""
    assert folder_name(path) == name


def test_names_above_200_characters_are_shortened() -> None:
    """A name of 200 characters is unchanged."""
    assert folder_name("/" + 199 * "x") == "-" + 199 * "x"
    assert re.fullmatch("-x{199}-[0-9a-z]+", folder_name("/" + 200 * "x"))


@given(ANY_TEXT)
def test_names_are_ascii_letters_digits_and_dashes(path: str) -> None:
    """For any path, with at most 208 characters."""
    assert re.fullmatch("[A-Za-z0-9-]{0,208}", folder_name(path))


@given(ANY_TEXT)
def test_name_matches_its_own_path(path: str) -> None:
    """In any Unicode normal form."""
    name = folder_name(path)
    assert folder_matches(name, path)
    assert folder_matches(name, unicodedata.normalize("NFD", path))
    assert PathsByFolder([path]).get(name) == (path or None)


@given(st.lists(ANY_TEXT.filter(bool), max_size=5), ANY_TEXT)
def test_lookup_agrees_with_matching(paths: list[str], path: str) -> None:
    """A path is found for a folder exactly if one of the paths matches it."""
    folder = folder_name(path)
    path_ = PathsByFolder(paths).get(folder)
    assert (path_ is not None) == any(folder_matches(folder, candidate) for candidate in paths)
    assert path_ is None or folder_matches(folder, path_)


def test_long_names_match_by_their_first_200_characters() -> None:
    """The hash at the end is never compared, because builds compute it differently."""
    assert folder_matches(folder_name(LONG)[:200] + "-another", LONG)
    assert folder_matches(folder_name(LONG), LONG + "y")
    assert not folder_matches(folder_name(LONG), LONG[:200])
    assert not folder_matches(folder_name(LONG)[:200], LONG)


def test_case_matters_except_on_windows() -> None:
    """`c--x` and `C--x` are one project. `-x` and `-X` are two."""
    assert folder_matches("c--users-ann", "C:\\Users\\Ann")
    assert not folder_matches("-users-ann", "/Users/Ann")
    assert PathsByFolder(["C:\\Users\\Ann"]).get("c--users-ann") == "C:\\Users\\Ann"
    assert PathsByFolder(["/Users/Ann"]).get("-users-ann") is None


def test_paths_that_collide_share_a_folder() -> None:
    """The name loses information, so several paths match one folder."""
    assert all(folder_matches("-a-b", path) for path in ("/a/b", "/a-b", "/a_b", "/a.b", "/a b"))
