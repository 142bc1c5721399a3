"""Which homes there are."""

from __future__ import annotations

import inspect
import os
import unicodedata
from pathlib import Path

import pytest

from threadline.errors import NotFound, Unreadable
from threadline.find import homes, look


def a_home(path: Path) -> Path:
    """Make a directory that is recognised."""
    (path / "projects").mkdir(parents=True)
    return path


def paths(*explicit: Path | str, **environ: str) -> list[Path]:
    """Give just the paths of the homes in an environment that holds nothing else."""
    return [home.path for home in homes(*explicit, environ=environ)]


def test_named_homes_are_the_only_ones(tmp_path: Path) -> None:
    """Naming a home keeps the environment out, and says so."""
    home = a_home(tmp_path / "a")
    found = homes(home, str(home), environ={"CLAUDE_CONFIG_DIR": str(a_home(tmp_path / "b"))})
    assert [(one.path, one.source) for one in found] == [(home, "option")]


def test_a_named_projects_directory_stands_for_its_home(tmp_path: Path) -> None:
    """`HOME/projects` means HOME, unless it has projects of its own."""
    home = a_home(tmp_path / "a")
    assert paths(home / "projects") == [home]
    inner = a_home(tmp_path / "projects")
    assert paths(inner) == [inner]


@pytest.mark.parametrize("name", ["missing", "nul\0byte", "empty"])
def test_a_named_home_that_is_none_is_an_error(tmp_path: Path, name: str) -> None:
    """What is not there or not a home is refused with a sentence."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match=r"^(There is no directory|The directory) '.*Name .*\.$"):
        homes(tmp_path / name)


def test_a_file_is_no_home(tmp_path: Path) -> None:
    """Who names a transcript as a home is told which command takes one."""
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(NotFound, match=r"is a file, not a home. .* threadline entries"):
        homes(tmp_path / "a.jsonl")


def test_the_environment_is_no_default_value() -> None:
    """`help(homes)` does not print the reader's environment."""
    assert inspect.signature(homes).parameters["environ"].default is None


def test_a_home_is_looked_at_by_its_path(tmp_path: Path) -> None:
    """`look` takes a path as well as a home."""
    home = a_home(tmp_path / "a")
    assert look(home) == look(str(home))


def test_a_named_home_that_may_not_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's refusal is passed on as a sentence."""
    home = a_home(tmp_path / "a")

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(Unreadable, match=r"Permission denied.*\.$"):
        homes(home)


def test_variables_list_homes_by_comma_or_path_separator(tmp_path: Path) -> None:
    """Both variables take one directory or a list; what is missing is left out; each is given once."""
    a, b, c = (a_home(tmp_path / name) for name in "abc")
    assert paths(CLAUDE_CONFIG_DIR=str(a)) == [a]
    assert paths(CLAUDE_CONFIG_DIR=f"{a}, {b},") == [a, b]
    assert paths(CLAUDE_CONFIG_DIR=f"{a}{os.pathsep}{tmp_path}/none{os.pathsep}{b}/projects") == [a, b]
    assert paths(CLAUDE_CONFIG_DIR=f"{a},{b}{os.pathsep}{c}") == [a, b, c]
    assert paths(CLAUDE_CONFIG_DIR=str(a), CLAUDE_CONFIG_DIRS=f"{b}{os.pathsep}{a}") == [a, b]
    assert paths(CLAUDE_CONFIG_DIR=f"{tmp_path}/none", HOME=str(a_home(tmp_path / "u/.claude").parent)) == []


@pytest.mark.parametrize("name", ["a,b", "a:b", ",", "x,y:z"])
def test_a_separator_may_be_part_of_a_name(tmp_path: Path, name: str) -> None:
    """A directory that exists as written counts as one, alone and within a list."""
    if os.name == "nt" and ":" in name:
        pytest.skip("Windows has no such names")
    odd, plain = a_home(tmp_path / name), a_home(tmp_path / "plain")
    assert paths(CLAUDE_CONFIG_DIR=str(odd)) == [odd]
    assert paths(CLAUDE_CONFIG_DIR=f"{plain},{odd}") == [plain, odd]


def test_without_variables_the_usual_places_are_looked_at(tmp_path: Path) -> None:
    """The command's home, the one of its months under XDG and those of the desktop app are all found."""
    places = [
        ".claude",
        ".config/claude",
        "Library/Application Support/Claude/local-agent-mode-sessions/app/space/local_1/.claude",
        "roaming/Claude/local-agent-mode-sessions/app/space/local_2/.claude",
        "local/Packages/Claude_x/LocalCache/Roaming/Claude/local-agent-mode-sessions/app/space/local_3/.claude",
        ".config/Claude/local-agent-mode-sessions/app/space/local_4/.claude",
    ]
    made = [a_home(tmp_path / place) for place in places]
    a_home(tmp_path / ".config/Claude/local-agent-mode-sessions/app/space/other/.claude")
    environ = {
        "HOME": str(tmp_path),
        "USERPROFILE": str(tmp_path),
        "APPDATA": str(tmp_path / "roaming"),
        "LOCALAPPDATA": str(tmp_path / "local"),
        "CLAUDE_CONFIG_DIR": "",
    }
    found = homes(environ=environ)
    assert [home.path for home in found] == made
    assert [home.source for home in found] == ["default", "xdg", *["desktop"] * 4]


def test_xdg_config_home_is_honoured(tmp_path: Path) -> None:
    """`$XDG_CONFIG_HOME/claude` is a home if it looks like one; another program may use that name."""
    home = a_home(tmp_path / "x/claude")
    (tmp_path / "y/claude").mkdir(parents=True)
    assert paths(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "x")) == [home]
    assert paths(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "y")) == []


def test_links_to_one_home_give_it_once(tmp_path: Path) -> None:
    """Homes are told apart by their real path."""
    home = a_home(tmp_path / "real")
    (tmp_path / ".claude").symlink_to(home)
    assert paths(HOME=str(tmp_path)) == [home]
    assert paths(tmp_path / ".claude", home) == [home]


def test_tilde_is_expanded(tmp_path: Path) -> None:
    """`~` is the user's directory wherever a home is named."""
    home = a_home(tmp_path / "h")
    assert paths("~/h", HOME=str(tmp_path), USERPROFILE=str(tmp_path)) == [home]
    assert paths(HOME=str(tmp_path), USERPROFILE=str(tmp_path), CLAUDE_CONFIG_DIR="~/none,~/h") == [home]
    with pytest.raises(NotFound):
        homes("~nobody-of-that-name/x")


def test_names_are_composed_where_that_exists(tmp_path: Path) -> None:
    """A decomposed name means the composed directory, as for Claude Code, or else the one as written."""
    composed, decomposed = "\u00e9", unicodedata.normalize("NFD", "\u00e9")
    as_written = a_home(tmp_path / decomposed)
    assert paths(CLAUDE_CONFIG_DIR=str(as_written)) == [as_written]
    home = a_home(tmp_path / composed)
    assert paths(CLAUDE_CONFIG_DIR=str(tmp_path / decomposed)) == [home]


@pytest.mark.parametrize("value", [None, "", "/nowhere/at/all", "nul\0byte", "relative", "~"])
def test_a_home_directory_that_is_no_use_is_no_error(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a usable HOME there are just no homes to be found there."""
    monkeypatch.setenv("HOME", "/nowhere/at/all")
    monkeypatch.setenv("USERPROFILE", "/nowhere/at/all")
    assert homes(environ={} if value is None else {"HOME": value, "USERPROFILE": value}) == []
