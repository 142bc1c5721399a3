"""Every command reads a deleted home from the keep, and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.profiles import share
from tests.subtests import Subtests

COMMANDS = {
    "list": ("list", "--json"),
    "usage": ("usage", "--json"),
    "search": ("search", "test", "--json"),
    "show": ("show", "last", "--json"),
    "export": ("export", "last", "--format", "md", "--out", "-"),
    "overview": ("--json",),
    "history": ("history", "--json"),
    "errors": ("errors", "--json"),
}
_VARYING_KEYS = {"kept", "homes", "score", "side_files"}
"""Keys that may differ: the mark of kept sessions, the homes, and side files, because settings are never kept."""


@pytest.fixture
def home(small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CliRunner) -> Path:
    """A kept home of a user who has no other."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user" / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    copy = tmp_path / "user" / ".claude"
    shutil.copytree(small_home, copy)
    assert cli("keep").code == 0
    return copy


def test_deleted_home_is_read_from_the_keep(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """With and without --home, the output is the same as before, and a sentence says that the home was deleted."""
    results = {name: cli(*arguments) for name, arguments in share(COMMANDS.items(), 4)}
    home.rename(tmp_path / "aside")
    notice = f"threadline: Home '{home}' no longer exists. Reading the copy in the keep.\n"
    with Subtests() as subtests:
        for name, before in results.items():
            with subtests.test(name):
                assert before.code == 0
                for options in ((), ("--home", str(home))):
                    result = cli(*COMMANDS[name], *options)
                    assert (result.code, result.err) == (0, notice + before.err)
                    assert normalize(result.out, home, tmp_path) == normalize(before.out, home, tmp_path)
                    if name == "list":
                        assert all(session["kept"] for session in result.json)
                refused = cli(*COMMANDS[name], "--home", str(home), "--no-keep")
                assert refused.code == 2
                assert f"There is no directory '{home}'" in refused.err


def test_empty_home_does_not_hide_a_kept_home(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a move to an empty home, the kept sessions of the old home are listed, even if its folder remains."""
    sessions = [session["session"] for session in cli("list", "--json").json]
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    (tmp_path / "other" / ".claude").mkdir(parents=True)
    assert cli("list", "--json").json == []
    shutil.rmtree(home)
    assert [session["session"] for session in cli("list", "--json").json] == sessions
    home.mkdir()
    assert [session["session"] for session in cli("list", "--json").json] == sessions
    assert [session["session"] for session in cli("list", "--json", "--home", str(home)).json] == sessions


def test_deleted_homes_of_the_desktop_app_are_not_reported(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The desktop app creates a home for each session and deletes it, so nothing is reported."""
    app_home = tmp_path / "local-agent-mode-sessions" / "a" / "b" / "local_c" / ".claude"
    shutil.copytree(home, app_home)
    cli("keep", "--home", str(app_home))
    shutil.rmtree(app_home)
    assert cli("list", "--json").err == ""
    assert "no longer exists" not in cli("list").err


def test_unknown_home_is_an_error(cli: CliRunner, home: Path) -> None:
    """A home that was never kept is still an error."""
    result = cli("list", "--home", str(home.with_name("never")))
    assert result.code == 2
    assert "There is no directory" in result.err


def normalize(output: str, home: Path, tmp_path: Path) -> Any:
    """Output as if everything were in the home, without the mark of kept sessions."""
    for kept in (tmp_path / "cache" / "kept").glob("*/*"):
        output = output.replace(str(kept), str(home))
    return drop_varying_keys(json.loads(output)) if output[:1] in "[{" else output


def drop_varying_keys(value: Any) -> Any:
    """The value without the keys that may differ, at any depth."""
    if isinstance(value, list):
        return [drop_varying_keys(item) for item in value]
    if isinstance(value, dict):
        return {key: drop_varying_keys(item) for key, item in value.items() if key not in _VARYING_KEYS}
    return value


def test_overview_lists_a_kept_home_like_any_other(home: Path, cli: CliRunner) -> None:
    """In JSON, every home has a path and a source, including one that exists only in the keep."""
    shutil.rmtree(home)
    (kept_home,) = cli("--home", home, "--json").json["homes"]
    assert set(kept_home) == {"path", "source"}
    assert kept_home["source"] == "keep"
