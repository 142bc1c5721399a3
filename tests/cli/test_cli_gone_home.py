"""A home that is gone: every command reads what was kept of it, and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.subtests import Subtests

ASKED = {
    "list": ("list", "--json"),
    "usage": ("usage", "--json"),
    "search": ("search", "test", "--json"),
    "show": ("show", "last", "--json"),
    "export": ("export", "last", "--format", "md", "--out", "-"),
    "overview": ("--json",),
    "history": ("history", "--json"),
    "errors": ("errors", "--json"),
}
_OTHER = {"kept", "homes", "score", "side_files"}
"""What may differ: the mark, where it was read, and that settings are never kept."""


@pytest.fixture
def home(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CliRunner) -> Path:
    """A home that was kept, and a user who has no other."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user" / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    copy = tmp_path / "user" / ".claude"
    shutil.copytree(demo_home, copy)
    assert cli("keep").code == 0
    return copy


def test_a_home_that_is_gone_is_answered_for(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Without --home and with it, the answer is the same as while it was there; a sentence says that it is gone."""
    answers = {name: cli(*words) for name, words in ASKED.items()}
    home.rename(tmp_path / "aside")
    said = f"threadline: Home '{home}' no longer exists. Reading the copy in the keep.\n"
    with Subtests() as subtests:
        for name, before in answers.items():
            with subtests.test(name):
                assert before.code == 0
                for given in ((), ("--home", str(home))):
                    told = cli(*ASKED[name], *given)
                    assert (told.code, told.err) == (0, said + before.err)
                    assert _as_there(told.out, home, tmp_path) == _as_there(before.out, home, tmp_path)
                    if name == "list":
                        assert all(one["kept"] for one in told.json)
                refused = cli(*ASKED[name], "--home", str(home), "--no-keep")
                assert refused.code == 2
                assert f"There is no directory '{home}'" in refused.err


def test_an_empty_home_hides_no_other(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who moved, and has an empty home: what was kept of the old one is listed, though a folder is left."""
    sessions = [one["id"] for one in cli("list", "--json").json]
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    (tmp_path / "other" / ".claude").mkdir(parents=True)
    assert cli("list", "--json").json == []
    shutil.rmtree(home)
    assert [one["id"] for one in cli("list", "--json").json] == sessions
    home.mkdir()
    assert [one["id"] for one in cli("list", "--json").json] == sessions
    assert [one["id"] for one in cli("list", "--json", "--home", str(home)).json] == sessions


def test_homes_of_the_app_go_without_a_word(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The desktop app makes a home for each of its sessions, and deletes it: that is nothing to be told each time."""
    of_the_app = tmp_path / "local-agent-mode-sessions" / "a" / "b" / "local_c" / ".claude"
    shutil.copytree(home, of_the_app)
    cli("keep", "--home", str(of_the_app))
    shutil.rmtree(of_the_app)
    assert cli("list", "--json").err == ""
    assert "no longer exists" not in cli("list").err


def test_one_that_nobody_knows_is_not_there(cli: CliRunner, home: Path) -> None:
    """A home that was never kept is still an error, and says what to name."""
    told = cli("list", "--home", str(home.with_name("never")))
    assert told.code == 2
    assert "There is no directory" in told.err


def _as_there(result: str, home: Path, tmp_path: Path) -> Any:
    """An answer as if all of it were in the home, and without the mark."""
    for kept in (tmp_path / "cache" / "kept").glob("*/*"):
        result = result.replace(str(kept), str(home))
    return _plain(json.loads(result)) if result[:1] in "[{" else result


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in _OTHER}
    return value


def test_the_overview_describes_a_kept_home_like_any_other(home: Path, cli: CliRunner) -> None:
    """As JSON, every home has a path and a source, also one that only the keep has."""
    shutil.rmtree(home)
    (kept,) = cli("--home", home, "--json").json["homes"]
    assert set(kept) == {"path", "source"}
    assert kept["source"] == "keep"
