"""Tests of which homes are found."""

from __future__ import annotations

import inspect
import os
import unicodedata
from pathlib import Path

import pytest

from threadline.errors import NotFound, Unreadable
from threadline.find import homes, look


def make_home(path: Path) -> Path:
    """Create a directory that is recognised as a home."""
    (path / "projects").mkdir(parents=True)
    return path


def paths(*explicit: Path | str, **environ: str) -> list[Path]:
    """Return the paths of the homes in this environment."""
    return [home.path for home in homes(*explicit, environ=environ)]


def test_named_homes_override_the_environment(tmp_path: Path) -> None:
    """Their source is `option`."""
    home = make_home(tmp_path / "a")
    result = homes(home, str(home), environ={"CLAUDE_CONFIG_DIR": str(make_home(tmp_path / "b"))})
    assert [(home_.path, home_.source) for home_ in result] == [(home, "option")]


def test_named_projects_directory_means_its_home(tmp_path: Path) -> None:
    """`HOME/projects` means HOME, unless it has its own `projects`."""
    home = make_home(tmp_path / "a")
    assert paths(home / "projects") == [home]
    inner = make_home(tmp_path / "projects")
    assert paths(inner) == [inner]


@pytest.mark.parametrize("name", ["missing", "nul\0byte", "empty"])
def test_invalid_named_home_is_an_error(tmp_path: Path, name: str) -> None:
    """A missing directory, or one that is not a home, has a message."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match=r"^(There is no directory|The directory) '.*Name .*\.$"):
        homes(tmp_path / name)


def test_missing_archive_is_called_an_archive(tmp_path: Path) -> None:
    """The suffix says what the user meant."""
    with pytest.raises(NotFound, match=r"^There is no archive '.*backup\.tar\.gz'\. Check the path\.$"):
        homes(tmp_path / "backup.tar.gz")


def test_file_is_not_a_home(tmp_path: Path) -> None:
    """The message names the command that accepts a transcript."""
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(NotFound, match=r"is a file, not a home. .* `threadline entries"):
        homes(tmp_path / "a.jsonl")


def test_environment_is_not_a_default_value() -> None:
    """`help(homes)` must not print the user's environment."""
    assert inspect.signature(homes).parameters["environ"].default is None


def test_look_accepts_a_path(tmp_path: Path) -> None:
    """`look` takes a path or a home."""
    home = make_home(tmp_path / "a")
    assert look(home) == look(str(home))


def test_unreadable_named_home_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the reason of the operating system."""
    home = make_home(tmp_path / "a")

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(Unreadable, match=r"Permission denied.*\.$"):
        homes(home)


def test_variables_are_lists_of_homes(tmp_path: Path) -> None:
    """Both variables accept one directory or a list, separated by commas or colons.

    Missing and repeated ones are ignored.
    """
    a, b, c = (make_home(tmp_path / name) for name in "abc")
    assert paths(CLAUDE_CONFIG_DIR=str(a)) == [a]
    assert paths(CLAUDE_CONFIG_DIR=f"{a}, {b},") == [a, b]
    assert paths(CLAUDE_CONFIG_DIR=f"{a}{os.pathsep}{tmp_path}/none{os.pathsep}{b}/projects") == [a, b]
    assert paths(CLAUDE_CONFIG_DIR=f"{a},{b}{os.pathsep}{c}") == [a, b, c]
    assert paths(CLAUDE_CONFIG_DIR=str(a), CLAUDE_CONFIG_DIRS=f"{b}{os.pathsep}{a}") == [a, b]
    assert paths(CLAUDE_CONFIG_DIR=f"{tmp_path}/none", HOME=str(make_home(tmp_path / "u/.claude").parent)) == []


@pytest.mark.parametrize("name", ["a,b", "a:b", ",", "x,y:z"])
def test_separator_may_be_part_of_a_name(tmp_path: Path, name: str) -> None:
    """A directory that exists as written is one home, alone and within a list."""
    if os.name == "nt" and ":" in name:
        pytest.skip("Windows has no such names")
    odd, plain = make_home(tmp_path / name), make_home(tmp_path / "plain")
    assert paths(CLAUDE_CONFIG_DIR=str(odd)) == [odd]
    assert paths(CLAUDE_CONFIG_DIR=f"{plain},{odd}") == [plain, odd]


def test_default_places(tmp_path: Path) -> None:
    """The default home, the former one under XDG and those of the desktop app are found."""
    places = [
        ".claude",
        ".config/claude",
        "Library/Application Support/Claude/local-agent-mode-sessions/app/space/local_1/.claude",
        "roaming/Claude/local-agent-mode-sessions/app/space/local_2/.claude",
        "local/Packages/Claude_x/LocalCache/Roaming/Claude/local-agent-mode-sessions/app/space/local_3/.claude",
        ".config/Claude/local-agent-mode-sessions/app/space/local_4/.claude",
    ]
    expected = [make_home(tmp_path / place) for place in places]
    make_home(tmp_path / ".config/Claude/local-agent-mode-sessions/app/space/other/.claude")
    environ = {
        "HOME": str(tmp_path),
        "USERPROFILE": str(tmp_path),
        "APPDATA": str(tmp_path / "roaming"),
        "LOCALAPPDATA": str(tmp_path / "local"),
        "CLAUDE_CONFIG_DIR": "",
    }
    result = homes(environ=environ)
    assert [home.path for home in result] == expected
    assert [home.source for home in result] == ["default", "xdg", *["desktop"] * 4]


def test_xdg_config_home(tmp_path: Path) -> None:
    """`$XDG_CONFIG_HOME/claude` is a home if it looks like one. Another program may use that name."""
    home = make_home(tmp_path / "x/claude")
    (tmp_path / "y/claude").mkdir(parents=True)
    assert paths(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "x")) == [home]
    assert paths(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "y")) == []


def test_symlinks_to_one_home_list_it_once(tmp_path: Path) -> None:
    """Homes are compared by their real path."""
    home = make_home(tmp_path / "real")
    (tmp_path / ".claude").symlink_to(home)
    assert paths(HOME=str(tmp_path)) == [home]
    assert paths(tmp_path / ".claude", home) == [home]


def test_tilde_is_expanded(tmp_path: Path) -> None:
    """`~` is the user's directory wherever a home is named."""
    home = make_home(tmp_path / "h")
    assert paths("~/h", HOME=str(tmp_path), USERPROFILE=str(tmp_path)) == [home]
    assert paths(HOME=str(tmp_path), USERPROFILE=str(tmp_path), CLAUDE_CONFIG_DIR="~/none,~/h") == [home]
    with pytest.raises(NotFound):
        homes("~nobody-of-that-name/x")


def test_decomposed_name_means_the_composed_directory(tmp_path: Path) -> None:
    """As in Claude Code. If that does not exist, the name is used as written."""
    composed, decomposed = "\u00e9", unicodedata.normalize("NFD", "\u00e9")
    as_written = make_home(tmp_path / decomposed)
    assert paths(CLAUDE_CONFIG_DIR=str(as_written)) == [as_written]
    home = make_home(tmp_path / composed)
    assert paths(CLAUDE_CONFIG_DIR=str(tmp_path / decomposed)) == [home]


@pytest.mark.parametrize("value", [None, "", "/nowhere/at/all", "nul\0byte", "relative", "~"])
def test_unusable_home_variable_is_not_an_error(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a usable HOME, no homes are found there."""
    monkeypatch.setenv("HOME", "/nowhere/at/all")
    monkeypatch.setenv("USERPROFILE", "/nowhere/at/all")
    assert homes(environ={} if value is None else {"HOME": value, "USERPROFILE": value}) == []
